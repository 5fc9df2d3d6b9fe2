"""Passes that a survey finds needless would have changed nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot.dialects.base import Context
from wireglot.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.ir.errors import Unsupported
from wireglot.ir.request import Request
from wireglot.providers.fit import fit as fitting
from wireglot.providers.fit.fit import fit
from wireglot.providers.fit.survey import (
    BLANK,
    FIELDS,
    FOREIGN,
    MEDIA,
    NAMED,
    REASONING,
    SIGNED,
    Survey,
    survey,
)
from wireglot.providers.limits import BASE, Limits
from wireglot.testing.strategies import requests

_LIMITS = [
    *BASE.values(),
    Limits(reasoning_required=True),
    Limits(message_names=False),
    Limits(cache_markers=0),
]
_ALL = FOREIGN | REASONING | MEDIA | SIGNED | BLANK | FIELDS | NAMED


class _Anything(Survey, frozen=True):
    def suits(self, limits: Limits) -> bool:
        return False


_ANYTHING = _Anything(_ALL, neighbours=True, markers=1 << 30)


def _fitted(request: Request, limits: Limits, dialect: str, regroup: bool) -> object:
    try:
        fitted = fit(request, limits, Context(seed="s", provider="p"), dialect, regroup)
    except Unsupported as fault:
        return str(fault)
    return fitted.request, fitted.aliases, fitted.losses


@given(requests(), st.sampled_from(_LIMITS), st.sampled_from(["openai-chat", "gemini"]), st.booleans())
def test_a_request_is_fitted_as_if_nothing_were_known_about_it(request, limits, dialect, regroup):
    known = _fitted(request, limits, dialect, regroup)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "survey", lambda messages, row: _ANYTHING)
        assert _fitted(request, limits, dialect, regroup) == known


def test_a_survey_sees_what_fitting_may_have_to_change():
    mark = CacheMark("short")
    picture = Media("image", url="https://x/y.png")
    plain = survey((Message("user", (Text("a"),)), Message("assistant", (ToolCall("c", "f", "{}"),))))
    assert plain == Survey(0, neighbours=False, markers=0)
    assert all(plain.suits(limits) for limits in BASE.values())
    extra = Extra("gemini", {"own": 1})
    signature = Signature("s", Origin("gemini"))
    foreign = Foreign("gemini", "odd", {})
    for content, seen in (
        ((Text(" \n"),), BLANK),
        ((), BLANK),
        ((ToolResult("c", (picture,)),), MEDIA),
        ((ToolResult("c", (foreign,)),), FOREIGN),
        ((ToolResult("c", (Text("a", extra=extra),)),), FIELDS),
        ((picture,), MEDIA),
        ((Reasoning("a"),), REASONING),
        ((Reasoning("a", extra=extra),), REASONING | FIELDS),
        ((foreign, Text("")), FOREIGN | BLANK),
        ((ToolCall("c", "f", "{}", signature=signature),), SIGNED),
        ((ToolCall("c", "f", "{}", extra=extra),), FIELDS),
    ):
        assert survey((Message("user", content),)).seen == seen
    assert survey((Message("user", (), "name"),)).seen == BLANK | NAMED
    assert survey((Message("user", (Text("a"),), extra=extra),)).seen == FIELDS
    assert survey((Message("user", (Text("a"),), extra=Extra("x", {"content": ""})),)).seen == FIELDS | BLANK
    assert survey((Message("user", (Text("a", cache=mark), ToolResult("c", cache=mark))),)).markers == 2
    assert survey((Message("user", ()), Message("user", ()))).neighbours
    assert not survey((Message("system", ()), Message("system", ()))).neighbours
