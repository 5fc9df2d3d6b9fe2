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
from wireglot.ir.request import OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from wireglot.providers.fit import fit as fitting
from wireglot.providers.fit.fit import fit
from wireglot.providers.fit.survey import (
    BLANK,
    CALLS,
    CHOICE,
    FIELDS,
    FOREIGN,
    MARKED,
    MEDIA,
    MIDWAY,
    NAMED,
    NO_LIMIT,
    OUTPUT,
    OWN_FIELDS,
    REASONING,
    SAMPLING,
    SETTING_FIELDS,
    SIGNED,
    STOP,
    TOOLS,
    Survey,
    asks,
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
_ALL = FOREIGN | REASONING | MEDIA | SIGNED | BLANK | FIELDS | NAMED | CALLS | MIDWAY
_ALL_ASKED = (
    OWN_FIELDS | SETTING_FIELDS | TOOLS | CHOICE | STOP | SAMPLING | OUTPUT | MARKED
)  # what says that the number of tokens is negative is no guess: a pass relies on it


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
        patch.setattr(fitting, "asks", lambda request: _ALL_ASKED | asks(request))
        assert _fitted(request, limits, dialect, regroup) == known


def test_a_survey_sees_what_fitting_may_have_to_change():
    mark = CacheMark("short")
    picture = Media("image", url="https://x/y.png")
    plain = survey((Message("user", (Text("a"),)), Message("assistant", (ToolCall("c", "f", "{}"),))))
    assert plain == Survey(CALLS, neighbours=False, markers=0)
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
        ((ToolCall("c", "f", "{}", signature=signature),), CALLS | SIGNED),
        ((ToolCall("c", "f", "{}", extra=extra),), CALLS | FIELDS),
    ):
        assert survey((Message("user", content),)).seen == seen
    assert survey((Message("user", (), "name"),)).seen == BLANK | NAMED
    assert survey((Message("user", (Text("a"),), extra=extra),)).seen == FIELDS
    assert survey((Message("user", (Text("a"),), extra=Extra("x", {"content": ""})),)).seen == FIELDS | BLANK
    assert survey((Message("user", (Text("a", cache=mark), ToolResult("c", cache=mark))),)).markers == 2
    assert survey((Message("user", ()), Message("user", ()))).neighbours
    assert not survey((Message("system", ()), Message("system", ()))).neighbours
    said, system = Message("user", (Text("a"),)), Message("system", (Text("b"),))
    assert survey((system, system, said)).seen == 0
    assert survey((system, said, system)).seen == MIDWAY


def test_a_survey_sees_what_a_request_asks_for():
    extra, mark = Extra("gemini", {"own": 1}), CacheMark("short")
    assert asks(Request("m", ())) == 0
    for given_settings, seen in (
        ({"max_tokens": -1}, NO_LIMIT),
        ({"max_tokens": 1}, 0),
        ({"extra": extra}, OWN_FIELDS),
        ({"thinking": Thinking(extra=extra)}, SETTING_FIELDS),
        ({"output": OutputFormat("json", extra=extra)}, OUTPUT | SETTING_FIELDS),
        ({"tool_choice": ToolChoice("auto")}, CHOICE),
        ({"parallel_tools": False}, CHOICE),
        ({"stop": ("x",)}, STOP),
        ({"sampling": Sampling(0.5)}, SAMPLING),
        ({"cache": mark}, MARKED),
        ({"tools": (Tool("f", cache=mark),)}, TOOLS | MARKED),
        ({"tools": (Tool("f", extra=extra),)}, TOOLS | SETTING_FIELDS),
    ):
        assert asks(Request("m", (), **given_settings)) == seen
