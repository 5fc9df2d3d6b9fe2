"""The equality behind the laws: what it forgives, and that it forgives nothing else."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.request import (
    Grammar,
    HostedChoice,
    HostedTool,
    McpServer,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    Tool,
    ToolChoice,
)
from wireglot_core.ir.safeguards import CallVerdict, Safeguard, SafeguardResult
from wireglot_core.ir.stream import unfold
from wireglot_core.traces.canonical import (
    canonical_arguments,
    canonical_events,
    canonical_extra,
    canonical_request,
    canonical_response,
    canonical_schema,
)

EXTRA = Extra("acme", {"colour": "red"}, {"order": 1})
SIGNED = Signature("proof", Origin("acme", "acme.com", "acme-1", "mine"), "item-1")
MARK = CacheMark("long", EXTRA)
FOREIGN = Foreign("acme", "whistle", {"tune": "high"}, "it whistles")
CITED = Citation("https://a.example", "A", "said", 1, 5, EXTRA, FOREIGN)
LOGPROB = TokenLogprob("word", -0.5, (("word", -0.5), ("other", -1.5)))

SAID = Text("words", False, (CITED,), (LOGPROB,), SIGNED, MARK, EXTRA)
PICTURE = Media("image", "image/png", "aGk=", None, None, None, "a.png", "low", SIGNED, MARK, EXTRA)
CALL = ToolCall("call-1", "look", '{"at":1}', "function", "eyes", SIGNED, MARK, EXTRA)
PARTS: tuple[Part, ...] = (
    SAID,
    Reasoning("thought", SIGNED, True, EXTRA, Origin("acme")),
    CALL,
    ToolCall("call-2", "write", "as it is", "custom"),
    PICTURE,
    Media("document", "application/pdf", url="https://a.example/a.pdf"),
    Media("document", text="plain"),
    Media("document", file_id="file-1"),
    FOREIGN,
)
RESULT = ToolResult("call-1", (SAID, PICTURE, FOREIGN), True, "stranger", "custom", MARK, EXTRA)

REQUEST = Request(
    "acme-1",
    (
        Message("system", (Text("be good"),)),
        Message("user", (SAID, PICTURE), "ann", EXTRA),
        Message("assistant", PARTS),
        Message("user", (RESULT,)),
    ),
    (
        Tool(
            "look",
            "looks",
            {"type": "object", "properties": {"at": {"type": "integer"}}},
            True,
            "custom",
            Grammar("lark", "start: WORD"),
            "eyes",
            True,
            FOREIGN,
            MARK,
            EXTRA,
        ),
        HostedTool(
            "mcp",
            FOREIGN,
            McpServer("s", "https://s.example", "t", ("a",), True, True, ("rest",)),
            {"max_uses": 1},
            ("untold",),
        ),
    ),
    ToolChoice("required", ("look",), EXTRA, hosted=(HostedChoice("web_search"),)),
    False,
    100,
    ("stop",),
    Sampling(0.5, 0.5, 5, 0.5, 0.5, 5, 2, True, 3),
    Thinking("on", "high", 1000, "summary", EXTRA),
    OutputFormat("schema", {"type": "object", "minProperties": 1}, "n", "d", True, EXTRA),
    "low",
    True,
    "ann",
    {"k": "v"},
    "priority",
    MARK,
    "key",
    EXTRA,
    (Safeguard("tool_calls", {"v": 1}, EXTRA),),
)
USAGE = Usage(
    input=1, cache_read=2, cache_write=3, cache_write_long=4, tool_prompt=5, output=6, reasoning=7, raw=EXTRA
)
STOP = Stop("stop_sequence", "raw", "acme", "stop", EXTRA)
CHECKED = (SafeguardResult("tool_calls", "available", {"call-1": CallVerdict("flagged")}, "why", EXTRA),)
RESPONSE = Response(
    "id-1", "acme-1", PARTS, STOP, USAGE, 5, "priority", (Candidate((SAID,), STOP, EXTRA),), EXTRA, CHECKED
)

FORGIVEN = frozenset(
    {
        "Request.model",
        "Request.stream",
        "Response.id",
        "Response.model",
        "Response.created",
        "Extra.form",
        "Usage.raw",
        "Stop.raw",
        "Stop.dialect",
        "Origin.provider",
        "Origin.model",
        "Origin.account",
        "Reasoning.minter",
        "HostedTool.options",
        "HostedTool.untold",
    }
)
"""Fields whose every value is as good as any other: addresses, and one dialect's own spelling."""

Trail = tuple[str, ...]


def bent(value: Any, trail: Trail = ()) -> Iterator[tuple[Trail, Any]]:
    """The value with one field changed, for every field at any depth, and the names on the way to it."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            way = (*trail, f"{type(value).__name__}.{name}")
            for found, changed in bent(getattr(value, name), way):
                yield found, replace(value, **{name: changed})
    elif isinstance(value, tuple):
        if value:
            yield trail, value[:-1]
        for index, item in enumerate(value):
            for found, changed in bent(item, trail):
                yield found, (*value[:index], changed, *value[index + 1 :])
    elif isinstance(value, dict):
        yield trail, {**value, "more": 1}
    elif isinstance(value, bool):
        yield trail, not value
    elif isinstance(value, str):
        yield trail, value + "~"
    elif value is not None:
        yield trail, value + 1


def test_the_samples_say_something_in_every_field():
    """Otherwise what follows would be blind to it."""
    seen = {name for whole in (REQUEST, RESPONSE) for way, _ in bent(whole) for name in way}
    for kind in (
        *(Text, Reasoning, ToolCall, ToolResult, Media, Foreign, Message, Signature, Origin, CacheMark),
        *(Citation, Tool, HostedTool, McpServer, ToolChoice, Sampling, Thinking, OutputFormat, Request),
        *(Response, Usage, Stop, Candidate, Extra, Grammar, TokenLogprob),
    ):
        assert {f"{kind.__name__}.{name}" for name in kind.__struct_fields__} <= seen


@pytest.mark.parametrize(
    ("whole", "canonical"), [(REQUEST, canonical_request), (RESPONSE, canonical_response)], ids=["r", "a"]
)
def test_every_field_counts_but_those_that_are_forgiven(whole, canonical):
    plain = canonical(whole)
    wrong = [
        trail for trail, changed in bent(whole) if (canonical(changed) == plain) is FORGIVEN.isdisjoint(trail)
    ]
    assert wrong == []


def reported(*messages: Message) -> Request:
    return Request("", messages)


def user(*parts: Part, name: str = "", extra: Extra | None = None) -> Message:
    return Message("user", parts, name, extra)


def tool(schema: dict[str, Any] | None = None, **more: Any) -> Request:
    return Request("", (), (Tool("t", schema=schema, **more),))


def asked(**settings: Any) -> Request:
    return Request("", (), **settings)


def result(*items: ResultPart, name: str = "", cache: CacheMark | None = None) -> Request:
    call = Message("assistant", (ToolCall("1", "look", "{}"),))
    return reported(call, user(ToolResult("1", items, name=name, cache=cache)))


def called(arguments: str, kind: Any = "function") -> Request:
    return reported(Message("assistant", (ToolCall("1", "look", arguments, kind),)))


def document(**fields: Any) -> Request:
    return reported(user(Media("document", **fields)))


A, B = Text("a"), Text("b")
BASE64 = b64encode(b"hello").decode()
BLANK = Extra("acme", {"nothing": None, "zero": 0, "no": False, "empty": "", "list": [], "map": {}})
SAME = {
    "neighbours of one role": (reported(user(A), user(B)), reported(user(A, B))),
    "neighbours of one name": (
        reported(user(A, name="n"), user(B, name="n")),
        reported(user(A, B, name="n")),
    ),
    "three neighbours": (reported(user(A), user(B), user(A)), reported(user(A, B, A))),
    "an empty text": (reported(user(A, Text(""))), reported(user(A))),
    "an empty turn next to one of its role": (reported(user(A), Message("user", ())), reported(user(A))),
    "an empty system text": (reported(Message("system", ()), user(A)), reported(user(A))),
    "thinking that says nothing": (reported(user(A, Reasoning())), reported(user(A))),
    "thinking with blank fields": (reported(user(A, Reasoning(extra=BLANK))), reported(user(A))),
    "texts of a result": (result(A, B), result(Text("a\nb"))),
    "three texts of a result": (result(A, B, A), result(Text("a\nb\na"))),
    "an empty text of a result": (result(A, Text("")), result(A)),
    "a mark behind the only text of a result": (
        result(replace(A, cache=CacheMark("long"))),
        result(A, cache=CacheMark("long")),
    ),
    "a mark behind the last picture of a result": (
        result(A, Media("image", cache=CacheMark("long"))),
        result(A, Media("image"), cache=CacheMark("long")),
    ),
    "the name of its own call": (result(A, name="look"), result(A)),
    "blank fields": (asked(extra=BLANK), asked()),
    "arguments in another order": (
        called('{"b": 1, "a": {"d": [{"f": 1, "e": 2}], "c": 2}}'),
        called('{"a":{"c":2,"d":[{"e":2,"f":1}]},"b":1}'),
    ),
    "no arguments": (called(""), called("{}")),
    "blank arguments": (called(" \n"), called("{}")),
    "null arguments": (called("null"), called("{}")),
    "$schema": (tool({"$schema": "x", "type": "object", "a": 1}), tool({"type": "object", "a": 1})),
    "empty required": (tool({"required": [], "a": 1}), tool({"a": 1})),
    "empty properties": (tool({"properties": {}, "a": 1}), tool({"a": 1})),
    "required in another order": (tool({"required": ["b", "a"]}), tool({"required": ["a", "b"]})),
    "const": (tool({"const": 1}), tool({"enum": [1]})),
    "strings of an enum": (tool({"type": "string", "enum": ["a"]}), tool({"enum": ["a"]})),
    "a const string": (tool({"type": "string", "const": "a"}), tool({"enum": ["a"]})),
    "nullable": (tool({"type": "string", "nullable": True}), tool({"type": ["string", "null"]})),
    "properties of a schema": (
        tool({"properties": {"a": {"const": 1}}}),
        tool({"properties": {"a": {"enum": [1]}}}),
    ),
    "$defs of a schema": (
        tool({"$defs": {"const": {"const": 1}}}),
        tool({"$defs": {"const": {"enum": [1]}}}),
    ),
    "definitions of a schema": (
        tool({"definitions": {"const": {"const": 1}}}),
        tool({"definitions": {"const": {"enum": [1]}}}),
    ),
    "branches of a schema": (tool({"anyOf": [{"const": 1}]}), tool({"anyOf": [{"enum": [1]}]})),
    "items of a schema": (tool({"items": {"const": 1}}), tool({"items": {"enum": [1]}})),
    "an empty schema": (tool({}), tool(None)),
    "a schema of any object": (tool({"type": "object", "properties": {}}), tool(None)),
    "an empty description": (tool(description=""), tool()),
    "strict false": (tool(strict=False), tool()),
    "a mark with blank fields": (tool(cache=CacheMark("", BLANK)), tool(cache=CacheMark())),
    "the choice auto": (asked(tool_choice=ToolChoice("auto")), asked()),
    "the choice auto with blank fields": (asked(tool_choice=ToolChoice("auto", extra=BLANK)), asked()),
    "parallel tools": (asked(parallel_tools=True), asked()),
    "plain text output": (asked(output=OutputFormat("text")), asked()),
    "an empty description of a format": (
        asked(output=OutputFormat("json", description="")),
        asked(output=OutputFormat("json")),
    ),
    "a format that is not strict": (
        asked(output=OutputFormat("json", strict=False)),
        asked(output=OutputFormat("json")),
    ),
    "a format's name of ours": (
        asked(output=OutputFormat("json", name="response")),
        asked(output=OutputFormat("json")),
    ),
    "a format's schema": (
        asked(output=OutputFormat("schema", {"const": 1})),
        asked(output=OutputFormat("schema", {"enum": [1]})),
    ),
    "one candidate": (asked(sampling=Sampling(candidates=1)), asked()),
    "no effort is off": (asked(thinking=Thinking(effort="none")), asked(thinking=Thinking("off"))),
    "off without effort": (asked(thinking=Thinking("off", "none")), asked(thinking=Thinking("off"))),
    "text in base64": (document(mime="text/plain", data=BASE64), document(mime="text/plain", text="hello")),
    "detail auto": (reported(user(Media("image", detail="auto"))), reported(user(Media("image")))),
}
DIFFERENT = {
    "neighbours of two roles": (reported(user(A), Message("assistant", (B,))), reported(user(A, B))),
    "neighbours of two names": (reported(user(A, name="n"), user(B)), reported(user(A, B))),
    "neighbours with fields": (reported(user(A, extra=EXTRA), user(B)), reported(user(A, B))),
    "where a text is cut": (reported(user(A, B)), reported(user(Text("ab")))),
    "a signed empty text": (reported(user(A, Text("", signature=SIGNED))), reported(user(A))),
    "a signed empty text of a result": (result(A, Text("", signature=SIGNED)), result(A)),
    "a text of a result with a field": (result(A, replace(B, extra=EXTRA)), result(Text("a\nb"))),
    "a text behind one with a field": (result(replace(A, extra=EXTRA), B), result(Text("a\nb"))),
    "texts around a picture": (result(A, PICTURE, B), result(Text("a\nb"), PICTURE)),
    "a mark in the middle of a result": (
        result(replace(A, cache=CacheMark("long")), PICTURE),
        result(A, PICTURE),
    ),
    "two marks of a result": (
        result(replace(A, cache=CacheMark("long")), cache=CacheMark("short")),
        result(A, cache=CacheMark("short")),
    ),
    "a mark of a result": (result(A, cache=CacheMark("short")), result(A)),
    "another name": (result(A, name="hear"), result(A)),
    "custom arguments in another order": (
        called('{"b":1,"a":2}', "custom"),
        called('{"a":2,"b":1}', "custom"),
    ),
    "blank custom arguments": (called("", "custom"), called("{}", "custom")),
    "arguments in a list": (called("[]"), called("{}")),
    "lists in another order": (called('{"a":[1,2]}'), called('{"a":[2,1]}')),
    "an enum in another order": (tool({"enum": [1, 2]}), tool({"enum": [2, 1]})),
    "a property called const": (tool({"properties": {"const": {}}}), tool({"properties": {"enum": [{}]}})),
    "a default that looks like a schema": (tool({"default": {"const": 1}}), tool({"default": {"enum": [1]}})),
    "an example that looks like a schema": (
        tool({"example": {"const": 1}}),
        tool({"example": {"enum": [1]}}),
    ),
    "examples that look like schemas": (
        tool({"examples": [{"const": 1}]}),
        tool({"examples": [{"enum": [1]}]}),
    ),
    "values that look like schemas": (tool({"enum": [{"const": 1}]}), tool({"enum": [{"enum": [1]}]})),
    "any string": (tool({"type": "string"}), tool({"a": 1})),
    "strings among other values": (tool({"type": "string", "enum": ["a", 1]}), tool({"enum": ["a", 1]})),
    "numbers of an enum": (tool({"type": "integer", "enum": [1]}), tool({"enum": [1]})),
    "not nullable": (tool({"type": "string", "nullable": False}), tool({"type": ["string", "null"]})),
    "nullable of several types": (
        tool({"type": ["string"], "nullable": True}),
        tool({"type": [["string"], "null"]}),
    ),
    "a schema of something else": (tool({"type": "string"}), tool(None)),
    "a description": (tool(description="d"), tool()),
    "a mark": (tool(cache=CacheMark()), tool()),
    "the choice none": (asked(tool_choice=ToolChoice("none")), asked()),
    "the choice auto among some": (asked(tool_choice=ToolChoice("auto", ("a",))), asked()),
    "one call at a time": (asked(parallel_tools=False), asked()),
    "a format of text with a name": (asked(output=OutputFormat("text", name="n")), asked()),
    "two candidates": (asked(sampling=Sampling(candidates=2)), asked()),
    "no effort, but on": (asked(thinking=Thinking("on", "none")), asked(thinking=Thinking("off"))),
    "off with an effort": (asked(thinking=Thinking("off", "low")), asked(thinking=Thinking("off"))),
    "no effort with a budget": (asked(thinking=Thinking("off", budget=1)), asked(thinking=Thinking("off"))),
    "another type in base64": (
        document(mime="text/html", data=BASE64),
        document(mime="text/html", text="hello"),
    ),
    "a picture of text": (
        reported(user(Media("image", "text/plain", BASE64))),
        reported(user(Media("image", "text/plain", text="hello"))),
    ),
    "detail": (reported(user(Media("image", detail="high"))), reported(user(Media("image")))),
}


@rows(("one", "other"), SAME.values(), ids=SAME)
def test_what_is_forgiven(one, other):
    assert canonical_request(one) == canonical_request(other)


@rows(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_is_not_forgiven(one, other):
    assert canonical_request(one) != canonical_request(other)


def answered(**fields: Any) -> Response:
    return Response("", "", (), Stop("end"), **fields)


@rows(
    ("one", "other"),
    [
        (answered(service_tier="standard"), answered()),
        (answered(usage=Usage()), answered()),
        (answered(usage=Usage(reasoning=0)), answered()),
        (answered(usage=Usage(input=1, reasoning=0)), answered(usage=Usage(input=1))),
        (answered(usage=Usage(raw=EXTRA)), answered()),
    ],
)
def test_what_is_forgiven_of_an_answer(one, other):
    assert canonical_response(one) == canonical_response(other)


def test_an_answer_that_cost_something_is_no_free_one():
    assert canonical_response(answered(usage=Usage(reasoning=1))) != canonical_response(answered())
    assert canonical_response(answered(service_tier="flex")) != canonical_response(answered())


def test_what_is_no_text_stays_in_base64():
    """Data that is no base64, or no UTF-8, is somebody's document all the same."""
    for data in ("not base64!", b64encode(b"\xff\xfe").decode()):
        asked = document(mime="text/plain", data=data)
        assert canonical_request(asked) == asked


def test_arguments_that_are_no_object_stay_as_they_were_written():
    for text in ('{"a": ', "[1, 2]", '"a"', " 1"):
        assert canonical_arguments(text) == text
    assert canonical_arguments("null") == canonical_arguments("") == "{}"


def test_a_schema_has_one_spelling():
    schema = {
        "$schema": "x",
        "type": "object",
        "properties": {"b": {"const": "x"}, "a": {"type": "string", "nullable": True}},
        "required": ["b", "a"],
        "anyOf": [{"required": []}, True],
    }
    assert canonical_schema(schema) == {
        "type": "object",
        "properties": {"b": {"enum": ["x"]}, "a": {"type": ["string", "null"]}},
        "required": ["a", "b"],
        "anyOf": [{}, True],
    }
    assert canonical_schema({"required": "odd", "properties": "odd", "not": True}) == {
        "required": "odd",
        "properties": "odd",
        "not": True,
    }


def test_only_fields_that_say_something_are_extra():
    assert canonical_extra(None) is None
    assert canonical_extra(BLANK) is None
    assert canonical_extra(Extra("acme", {"a": 1, "b": None}, {"c": 1})) == Extra("acme", {"a": 1})


def test_a_stream_is_what_it_amounts_to():
    whole = Response("id", "m", (A, ToolCall("1", "look", '{"b":1,"a":2}')), Stop("end"), Usage(input=1))
    assert canonical_events(unfold(whole)) == canonical_response(whole)


def test_a_canonical_form_has_no_addresses():
    request, response = canonical_request(REQUEST), canonical_response(RESPONSE)
    assert (request.model, request.stream) == ("", None)
    assert (response.id, response.model, response.created) == ("", "", 0)
