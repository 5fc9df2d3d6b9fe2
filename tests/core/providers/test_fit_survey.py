"""Passes that a survey finds needless would have changed nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.providers.asks import fit
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import (
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
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.request import OutputFormat, Request, Sampling, Thinking, Tool, ToolChoice
from wireglot_core.providers.fit import fitting
from wireglot_core.providers.fit.survey import (
    ALWAYS,
    ANSWERED,
    BLANK,
    CALLS,
    CHOICE,
    FIELDS,
    FOREIGN,
    MARKED,
    MARKED_PARTS,
    MEDIA,
    MIDWAY,
    NAMED,
    NEIGHBOURS,
    NO_IDS,
    NO_LIMIT,
    ODD_CALLS,
    ODD_IDS,
    OUTPUT,
    OWN_FIELDS,
    REASONING,
    RESULTS,
    ROLES,
    SAMPLING,
    SETTING_FIELDS,
    SIGNED,
    STOP,
    THINKING,
    TOOLS,
    UNOPENED,
    CallRules,
    Survey,
    asks,
    survey,
)
from wireglot_core.providers.limits import BASE, Limits
from wireglot_core.testing.strategies import requests

_LIMITS = [
    *BASE.values(),
    Limits(reasoning_required=True),
    Limits(message_names=False),
    Limits(cache_markers=0),
]
_ALL = (
    FOREIGN
    | REASONING
    | MEDIA
    | SIGNED
    | BLANK
    | FIELDS
    | NAMED
    | CALLS
    | RESULTS
    | ODD_CALLS
    | ODD_IDS
    | NO_IDS
    | ROLES
    | MARKED_PARTS
    | MIDWAY
    | NEIGHBOURS
    | UNOPENED
    | ANSWERED
)
_ALL_ASKED = (
    OWN_FIELDS | SETTING_FIELDS | TOOLS | CHOICE | STOP | SAMPLING | OUTPUT | MARKED | THINKING
)  # what says that the number of tokens is negative is no guess: a pass relies on it


_ANYTHING = Survey(_ALL, markers=1 << 30)


def _fitted(request: Request, limits: Limits, dialect: str, foreign: bool) -> object:
    try:
        fitted = fit(request, limits, Context(seed="s", provider="p"), dialect, foreign)
    except Unsupported as fault:
        return str(fault)
    return fitted.request, fitted.aliases, fitted.losses


@given(requests(), st.sampled_from(_LIMITS), st.sampled_from(["openai-chat", "gemini"]), st.booleans())
def test_a_request_is_fitted_as_if_nothing_were_known_about_it(request, limits, dialect, foreign):
    known = _fitted(request, limits, dialect, foreign)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "survey", lambda messages, rules, row: _ANYTHING)
        patch.setattr(fitting, "asks", lambda request: _ALL_ASKED | asks(request))
        assert _fitted(request, limits, dialect, foreign) == known


_RULES = CallRules.of(Limits(tool_name="[a-z]+", tool_name_max=9, call_id="[a-z]+", call_id_max=9))
_PLAIN = CallRules.of(Limits())


def seen(*messages: Message, rules: CallRules = _PLAIN) -> int:
    return survey(messages, rules).seen


def test_a_survey_sees_what_fitting_may_have_to_change():
    mark = CacheMark("short")
    picture = Media("image", url="https://x/y.png")
    said = Message("user", (Text("a"),))
    answer = Message("assistant", (ToolCall("c", "f", "{}"),))
    assert survey((said, answer), _PLAIN) == Survey(CALLS | ANSWERED, 0, "assistant")
    extra = Extra("gemini", {"own": 1})
    signature = Signature("s", Origin("gemini"))
    foreign = Foreign("gemini", "odd", {})
    for content, found in (
        ((Text(" \n"),), BLANK),
        ((), BLANK),
        ((ToolResult("c", (picture,)),), RESULTS | MEDIA),
        ((ToolResult("c", (foreign,)),), RESULTS | FOREIGN),
        ((ToolResult("c", (Text("a", extra=extra),)),), RESULTS | FIELDS),
        ((picture,), MEDIA),
        ((Reasoning("a"),), REASONING),
        ((Reasoning("a", extra=extra),), REASONING | FIELDS),
        ((foreign, Text("")), FOREIGN | BLANK | UNOPENED),
        ((Text("a"), foreign), FOREIGN),
        ((ToolCall("c", "f", "{}", signature=signature),), CALLS | SIGNED),
        ((ToolCall("c", "f", "{}", extra=extra),), CALLS | FIELDS),
        ((ToolCall("c", "f", "{}", extra=Extra("x", form={"no_id": True})),), CALLS | NO_IDS),
        ((ToolCall("c", "f", "{}", extra=Extra("x", form={"id": ""})),), CALLS | NO_IDS),
        ((ToolResult("c", extra=Extra("x", {"id": None})),), RESULTS | FIELDS | NO_IDS),
        ((Text("a", cache=mark),), MARKED_PARTS),
    ):
        assert seen(Message("user", content)) == found, content
    assert seen(Message("user", (), "name")) == BLANK | NAMED
    assert seen(Message("user", (Text("a"),), extra=extra)) == FIELDS
    assert seen(Message("user", (Text("a"),), extra=Extra("x", {"content": ""}))) == FIELDS | BLANK
    assert seen(Message("user", (Text("a"),), extra=Extra("x", form={"role": "developer"}))) == ROLES
    assert (
        survey((Message("user", (Text("a", cache=mark), ToolResult("c", cache=mark))),), _PLAIN).markers == 2
    )


def test_a_survey_sees_who_speaks_when():
    said, system = Message("user", (Text("a"),)), Message("system", (Text("b"),))
    answer = Message("assistant", (Text("c"),))
    for messages, found in (
        ((), UNOPENED),
        ((system,), UNOPENED),
        ((said,), 0),
        ((said, said), NEIGHBOURS),
        ((system, system, said), 0),
        ((system, said, system), MIDWAY | UNOPENED),  # whose turn it is last does not matter then
        ((system, said, system, said), MIDWAY),
        ((said, system, answer), MIDWAY | ANSWERED),
        ((answer, said), UNOPENED),
        ((system, answer), UNOPENED | ANSWERED),
    ):
        assert seen(*messages) == found, messages


def test_a_survey_sees_which_calls_an_endpoint_refuses():
    for call, found in (
        (ToolCall("c", "f", "{}"), 0),
        (ToolCall("c", "abcdefghi", "{}"), 0),
        (ToolCall("c", "abcdefghij", "{}"), ODD_CALLS),
        (ToolCall("c", "F", "{}"), ODD_CALLS),
        (ToolCall("C", "f", "{}"), ODD_IDS),
        (ToolCall("abcdefghi", "f", "{}"), 0),
        (ToolCall("abcdefghij", "f", "{}"), ODD_IDS),
        (ToolCall("c", "f", "x", kind="custom"), 0),
        (ToolCall("c", "f", "{}", namespace="n"), 0),
    ):
        assert seen(Message("user", (call,)), rules=_RULES) == CALLS | found, call
    narrow = CallRules.of(Limits(custom_tools=False, namespaces=False))
    assert seen(Message("user", (ToolCall("c", "f", "x", kind="custom"),)), rules=narrow) == CALLS | ODD_CALLS
    assert (
        seen(Message("user", (ToolCall("c", "f", "{}", namespace="n"),)), rules=narrow) == CALLS | ODD_CALLS
    )
    by_place = CallRules.of(Limits(call_ids="positional"))
    assert seen(Message("user", (ToolCall("c", "f", "{}"),)), rules=by_place) == CALLS | ODD_IDS


def test_a_survey_sees_what_a_request_asks_for():
    extra, mark = Extra("gemini", {"own": 1}), CacheMark("short")
    assert asks(Request("m", ())) == ALWAYS
    for given_settings, found in (
        ({"max_tokens": -1}, NO_LIMIT),
        ({"max_tokens": 1}, 0),
        ({"extra": extra}, OWN_FIELDS),
        ({"thinking": Thinking(extra=extra)}, THINKING | SETTING_FIELDS),
        ({"output": OutputFormat("json", extra=extra)}, OUTPUT | SETTING_FIELDS),
        ({"tool_choice": ToolChoice("auto")}, CHOICE),
        ({"parallel_tools": False}, CHOICE),
        ({"stop": ("x",)}, STOP),
        ({"sampling": Sampling(0.5)}, SAMPLING),
        ({"cache": mark}, MARKED),
        ({"tools": (Tool("f", cache=mark),)}, TOOLS | MARKED),
        ({"tools": (Tool("f", extra=extra),)}, TOOLS | SETTING_FIELDS),
    ):
        assert asks(Request("m", (), **given_settings)) == ALWAYS | found
