"""Documents with a field left out, empty, null or of another type: kept as they are, and what is read of them."""

from __future__ import annotations

from typing import Any

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini_interactions import DIALECT
from wireglot_core.ir.content import (
    Citation,
    Extra,
    Foreign,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall, WebSource
from wireglot_core.ir.stream import Event, PartEnd, PartStart, fold
from wireglot_core.wire.json import encode, encode_text

OWN = "gemini-interactions"
CONTEXT = Context()
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "QQ==", "mime_type": "image/png"}
SCHEMA = {"type": "object", "properties": {}}
PICTURE = Media("image", "image/png", "QQ==")


def own(form: dict[str, Any], **fields: Any) -> Extra:
    return Extra(OWN, fields, form)


def noted(*annotations: Any) -> dict[str, Any]:
    return {"type": "text", "text": "Grüezi.", "annotations": list(annotations)}


def cited(citation: Citation, given: Any = None) -> Text:
    return Text("Grüezi.", citations=(citation,), extra=own({"annotations": [given]}) if given else None)


def source(**more: Any) -> dict[str, Any]:
    return {"type": "url_citation", **more}


WHOLE_SOURCE = source(url="https://e.com", title="E", start_index=0, end_index=4)
BEYOND = source(url="https://e.com", start_index=3, end_index=99)
BEFORE = source(url="https://e.com", start_index=-1, end_index=7, x_new=1)
WRONG = source(url=7, title=7, start_index="1", end_index=None)
HALF = source(url="https://e.com", start_index=3, end_index=4)

CONTENT: list[tuple[dict[str, Any], Part]] = [
    ({"type": "text", "text": ""}, Text("")),
    ({**TEXT, "annotations": []}, Text("hi", extra=own({"annotations": []}))),
    ({**TEXT, "annotations": None}, Text("hi", extra=own({}, annotations=None))),
    ({**TEXT, "x_new": 1}, Text("hi", extra=own({}, x_new=1))),
    (noted(source()), cited(Citation(), source())),
    (noted(WHOLE_SOURCE), cited(Citation("https://e.com", "E", start=0, end=3))),
    (noted(HALF), cited(Citation("https://e.com", start=2, end=3), HALF)),
    (noted(BEYOND), cited(Citation("https://e.com", start=2, end=7), BEYOND)),
    (noted(BEFORE), cited(Citation("https://e.com", start=0, end=6, extra=own({}, x_new=1)), BEFORE)),
    (noted(WRONG), cited(Citation(extra=own({}, end_index=None)), WRONG)),
    (
        noted(7, {"type": 7}, {"type": "place_citation", "name": "x"}),
        Text(
            "Grüezi.",
            citations=(
                Citation(native=Foreign(OWN, "", {"type": 7})),
                Citation(native=Foreign(OWN, "place_citation", {"type": "place_citation", "name": "x"})),
            ),
            extra=own({"annotations": [7, {"type": 7}, {"type": "place_citation", "name": "x"}]}),
        ),
    ),
    ({"type": "image", "data": "-_-_"}, Media("image", data="+/+/", extra=own({"base64": "urlsafe"}))),
    ({**IMAGE, "data": "-A=="}, Media("image", "image/png", "+A==", extra=own({"base64": "urlsafe"}))),
    ({**IMAGE, "data": "_A=="}, Media("image", "image/png", "/A==", extra=own({"base64": "urlsafe"}))),
    ({**IMAGE, "data": "QQ"}, Media("image", "image/png", "QQ==", extra=own({"padding": "absent"}))),
    ({**IMAGE, "data": "QUE"}, Media("image", "image/png", "QUE=", extra=own({"padding": "absent"}))),
    (
        {"type": "image", "data": "-_", "mime_type": ""},
        Media(
            "image",
            data="+/==",
            extra=own({"base64": "urlsafe", "padding": "absent", "blank": {"mime_type": ""}}),
        ),
    ),
    (
        {"type": "image", "data": "+/+/", "uri": "https://e.com/a.png"},
        Media("image", data="+/+/", extra=own({}, uri="https://e.com/a.png")),
    ),
    (
        {"type": "document", "uri": "files/1", "mime_type": "text/plain"},
        Media("document", "text/plain", url="files/1"),
    ),
    (
        {"type": "video", "uri": "https://e.com/a", "mime_type": "video/mp4", "data": None},
        Media("video", "video/mp4", url="https://e.com/a", extra=own({}, data=None)),
    ),
    *(
        ({**IMAGE, "resolution": word}, Media("image", "image/png", "QQ==", detail=detail))
        for word, detail in (("low", "low"), ("medium", "medium"), ("high", "high"), ("ultra_high", "original"))
    ),
    *(
        ({**IMAGE, "resolution": odd}, Media("image", "image/png", "QQ==", extra=own({}, resolution=odd)))
        for odd in ("colossal", 7, None)
    ),
]  # fmt: skip


@rows(("content", "part"), CONTENT)
def test_content_is_read_and_written_again(content: dict[str, Any], part: Part) -> None:
    """In a turn of a request, in an answer, and in one that is streamed."""
    body = {"model": "m", "input": [{"type": "user_input", "content": [TEXT, content]}]}
    request = DIALECT.parse_request(body, CONTEXT)
    assert request.messages[0].content == (Text("hi"), part)
    again = DIALECT.render_request(request, CONTEXT)
    assert (again.value, again.losses) == (body, ())
    answer_is_kept({"type": "model_output", "content": [content]}, part)


STEPS: list[tuple[dict[str, Any], Part]] = [
    ({"type": "thought"}, Reasoning()),
    ({"type": "thought", "signature": ""}, Reasoning(extra=own({"signature": ""}))),
    ({"type": "thought", "signature": None}, Reasoning(extra=own({}, signature=None))),
    ({"type": "thought", "summary": []}, Reasoning(extra=own({"summary": []}))),
    ({"type": "thought", "summary": None}, Reasoning(extra=own({}, summary=None))),
    ({"type": "thought", "summary": [TEXT]}, Reasoning("hi")),
    ({"type": "thought", "summary": [TEXT, TEXT]}, Reasoning("hihi", extra=own({"summary": [TEXT, TEXT]}))),
    (
        {"type": "thought", "summary": [TEXT, IMAGE, TEXT], "x_new": 1},
        Reasoning("hihi", extra=own({}, x_new=1, summary=[TEXT, IMAGE, TEXT])),
    ),
    (
        {"type": "model_output", "content": [{"type": "hologram"}], "x_new": 1},
        Foreign(OWN, "hologram", {"type": "model_output", "content": [{"type": "hologram"}], "x_new": 1}),
    ),
    ({"type": "model_output"}, Text("", extra=own({"content": "absent"}))),
    ({"type": "model_output", "content": []}, Text("", extra=own({"content": "empty"}))),
    ({"type": "dream", "a": None}, Foreign(OWN, "dream", {"type": "dream", "a": None})),
    ({"type": "google_search_call", "id": "s"}, Foreign(OWN, "google_search_call", {"type": "google_search_call", "id": "s"})),
]  # fmt: skip


@rows(("step", "part"), STEPS)
def test_a_step_of_an_answer_is_read_and_written_again(step: dict[str, Any], part: Part) -> None:
    answer_is_kept(step, part)


def answer_is_kept(step: dict[str, Any], part: Part) -> None:
    shell = {"id": "v1_1", "object": "interaction", "model": "m", "status": "completed"}
    body = {**shell, "steps": [step]}
    answer = DIALECT.parse_response(body, CONTEXT)
    assert answer.content == (part,)
    again = DIALECT.render_response(answer, CONTEXT)
    assert (again.value, again.losses) == (body, ())
    events: tuple[dict[str, Any], ...] = (
        {"event_type": "interaction.created", "interaction": shell},
        {"event_type": "step.start", "index": 0, "step": step},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": shell},
    )
    reader = DIALECT.stream_reader(CONTEXT)
    frames = (b"event: %b\ndata: %b\n\n" % (event["event_type"].encode(), encode(event)) for event in events)
    assert fold([*reader.read(b"".join(frames)), *reader.end()]).content == (part,)


SIGNED = {"type": "thought", "signature": "c2ln"}
CALL = {"type": "function_call", "id": "c", "name": "f"}
RESULT = {"type": "function_result", "call_id": "c"}


@rows(
    "step",
    [
        {"type": "user_input", "content": "hi"},
        {"type": "user_input"},
        {"type": "user_input", "content": []},
        {"type": "user_input", "content": None},
        {"type": "user_input", "content": [TEXT], "x_new": {}},
        {"type": "user_input", "content": [TEXT, {"type": "hologram", "x": 1}]},
        {"type": "model_output", "content": "hi"},
        {"type": "model_output", "content": [TEXT, TEXT], "x_new": 1},
        {"type": "model_output", "content": [{"type": "hologram", "x": 1}]},
        SIGNED,
        *({**SIGNED, "summary": given} for given in ([], None, [TEXT])),
        *({**SIGNED, "summary": [TEXT, each]} for each in (TEXT, IMAGE, {**TEXT, "x_new": 1})),
        {"type": "thought", "signature": "skip_thought_signature_validator", "summary": [TEXT]},
        *({**CALL, "arguments": given} for given in (None, "", "{}", '{"a": 1}', "no", {}, {"a": [1, None]})),
        CALL,
        {**CALL, "arguments": {}, "signature": "c2ln"},
        {"type": "function_call", "name": "f", "arguments": {}},
        {"type": "function_call", "name": "f", "id": None},
        *({**RESULT, "result": given} for given in ("", "x", None, {}, {"a": 1}, [], [1, 2], [TEXT, {}])),
        *({**RESULT, "result": [each]} for each in (TEXT, IMAGE, {**TEXT, "x_new": 1})),
        *({**RESULT, "result": "x", "is_error": given} for given in (True, False, None)),
        *({**RESULT, "result": "x", "name": given} for given in ("f", "", None)),
        {**RESULT, "result": "x", "x_new": 1},
    ],
)  # fmt: skip
def test_a_step_of_a_request_goes_back_as_it_came(step: dict[str, Any]) -> None:
    is_kept({"input": [step, {"type": "user_input", "content": [TEXT]}]})


@rows(
    ("given", "arguments", "form"),
    [
        (None, "{}", {"arguments": "absent"}),
        ("", "", {"arguments": "string"}),
        ("no", "no", {"arguments": "string"}),
        ({}, "{}", {}),
        ({"_raw": "no", "_parse_error": "y"}, "no", {}),
    ],
)
def test_the_arguments_of_a_call(given: Any, arguments: str, form: dict[str, Any]) -> None:
    step = {**CALL, **({"arguments": given} if given is not None else {})}
    (message,) = DIALECT.parse_request({"model": "m", "input": [step]}, CONTEXT).messages
    assert message.content == (ToolCall("c", "f", arguments, extra=own(form) if form else None),)


@rows(
    ("given", "content", "form"),
    [
        ("", (Text(""),), "string"),
        (None, (), "null"),
        ({"a": 1}, (Text('{"a":1}'),), "value"),
        ([], (), "list"),
        ([1], (Text("[1]"),), "value"),
        ([TEXT, IMAGE], (Text("hi"), PICTURE), "list"),
        ([TEXT, 7], (Text(encode_text([TEXT, 7])),), "value"),
    ],
)
def test_the_result_of_a_call(given: Any, content: tuple[Any, ...], form: str) -> None:
    step = {**RESULT, "result": given, "is_error": False}
    (message,) = DIALECT.parse_request({"model": "m", "input": [step]}, CONTEXT).messages
    fields = {"result": None} if given is None else {}
    extra = own({"result": form, "is_error": False}, **fields)
    assert message.content == (ToolResult("c", content, extra=extra),)


def is_kept(more: dict[str, Any]) -> None:
    body = {"model": "m", **more}
    again = DIALECT.render_request(DIALECT.parse_request(body, CONTEXT), CONTEXT)
    assert (again.value, again.losses) == (body, ())


STATED: tuple[Any, ...] = (True, False, None, "x")
FORMATS: tuple[Any, ...] = (
    None, {}, [], {"type": "text"}, [{"type": "text"}], {"type": "text", "mime_type": None},
    {"type": "text", "mime_type": "application/json"}, {"type": "text", "mime_type": "text/plain"},
    {"type": "text", "mime_type": "text/csv"}, {"type": "text", "mime_type": "text/plain", "schema": SCHEMA},
    {"type": "text", "schema": SCHEMA}, {"type": "text", "mime_type": "application/json", "schema": None},
    {"type": "text", "mime_type": "application/json", "schema": SCHEMA, "x": 1}, {"type": "text", "schema": 7},
    {"type": "image"}, {"type": "object"}, {"type": "array", "items": {}}, {"type": "string"}, {"properties": {}},
    {"anyOf": []}, {"$ref": "#"}, {"type": "object", "mime_type": "x"}, {"type": "object", "schema": {}},
    [{"type": "object"}], [{"type": "text", "schema": {}}, {"type": "image"}], "text",
)  # fmt: skip
JSON = "application/json"


@rows(
    "more",
    [
        *({"input": given} for given in ("", "hi", TEXT, [TEXT], [TEXT, IMAGE], {**TEXT, "x_new": 1})),
        *({"input": given} for given in ([{**TEXT, "x_new": 1}], {"type": "hologram"})),
        {"input": {"type": "user_input", "content": [TEXT]}},
        *({"system_instruction": given, "input": "hi"} for given in ("Be.", "", None)),
        *({"previous_interaction_id": "p", **more} for more in ({}, {"input": None}, {"input": "hi"})),
        *({"continuation_token": "t", **more} for more in ({}, {"input": None})),
        *({"input": "hi", "store": store, "background": given} for store in STATED for given in STATED),
        {"input": "hi", "model": None},
        *({"input": "hi", "labels": given} for given in ({}, None, {"a": "b"}, {"A b": "C d"})),
        *({"input": "hi", "response_format": given} for given in FORMATS),
        *({"input": "hi", "response_mime_type": given} for given in (JSON, "text/plain", "text/csv", None, 7)),
        *(
            {"input": "hi", "response_mime_type": mime, "response_format": given}
            for mime in (JSON, "text/plain", "text/csv")
            for given in (
                {"type": "object"}, {"type": "text"}, [{"type": "text", "mime_type": JSON}], {"type": "image"},
                {"type": "text", "mime_type": JSON}, {"type": "text", "mime_type": JSON, "schema": SCHEMA},
            )
        ),
        *({"input": "hi", "service_tier": given} for given in ("flex", "odd", "", None)),
        *({"input": "hi", "stream": given} for given in (True, False, None)),
        {"input": "hi", "x_new": None},
    ],
)  # fmt: skip
def test_a_request_goes_back_as_it_came(more: dict[str, Any]) -> None:
    is_kept(more)


@rows(
    "config",
    [
        {}, None, {"top_p": None}, {"seed": 1}, {"stop_sequences": []}, {"x_new": {"a": 1}},
        {"max_output_tokens": 5, "stop_sequences": ["a"], "temperature": 0, "top_p": 1},
        *({"thinking_level": given} for given in ("minimal", "low", "medium", "high", "xhigh", None, 7)),
        *({"thinking_summaries": given} for given in ("auto", "none", "x", None)),
        *({"tool_choice": given} for given in (None, "auto", "any", "none", "validated")),
        *(
            {"tool_choice": {"allowed_tools": given}}
            for given in (
                {}, {"mode": "auto"}, {"tools": ["f"]}, {"mode": "none", "tools": ["f"]},
                {"mode": "any", "tools": ["f", "g"]}, {"mode": "validated", "tools": ["f"]},
            )
        ),
    ],
)  # fmt: skip
def test_a_generation_config_goes_back_as_it_came(config: dict[str, Any] | None) -> None:
    is_kept({"input": "hi", "generation_config": config})


@rows(
    "tools",
    [
        [], None, [{"type": "function", "name": "f"}],
        [{"type": "function", "name": "f", "description": "", "parameters": {}, "x_new": 1}],
        [{"type": "google_search", "exclude_domains": ["a"], "more": 1}],
        [{"type": "mcp_server", "name": "a", "url": "https://e.com", "allowed_tools": ["x"]}],
    ],
)  # fmt: skip
def test_tools_go_back_as_they_came(tools: Any) -> None:
    is_kept({"input": "hi", "tools": tools})


# --- tools that the gateway runs, as steps

FORM = DIALECT.surface.client.hosted
SEARCH = HostedCall("web_search", "wg1", input={"query": "q"})
FETCH = HostedCall("web_fetch", "wg2", input={"url": "https://e.com"})
SERVED = HostedCall("mcp", "wg3", "find", {"q": "x"}, "docs")
FOUND = HostedResult(text="x", sources=(WebSource("https://e.com", "E"), WebSource("https://f.com")))
FAILED = HostedResult(error="unavailable", message="down")


def step_in(events: list[Event], index: int) -> Any:
    if not events:
        return None
    start, end = events
    assert isinstance(start, PartStart)
    assert isinstance(start.part, Foreign)
    assert (start.index, end) == (index, PartEnd(index))
    assert (start.part.dialect, start.part.type) == (OWN, start.part.value["type"])
    return start.part.value


@rows(
    ("call", "step"),
    [
        (SEARCH, {"type": "google_search_call", "id": "call_wg1", "arguments": {"queries": ["q"]}}),
        (FETCH, {"type": "url_context_call", "id": "call_wg2", "arguments": {"urls": ["https://e.com"]}}),
        (HostedCall("web_search", "a"), {"type": "google_search_call", "id": "call_a", "arguments": {"queries": [""]}}),
        (HostedCall("web_fetch", "a"), {"type": "url_context_call", "id": "call_a", "arguments": {"urls": [""]}}),
        (
            SERVED,
            {"type": "mcp_server_tool_call", "id": "call_wg3", "name": "find", "server_name": "docs", "arguments": {"q": "x"}},
        ),
        (HostedCall("mcp", "wg3", pending=True), None),
        (HostedCall("computer", "wg4"), None),
    ],
)  # fmt: skip
def test_a_call_that_the_gateway_runs_is_a_step(call: HostedCall, step: Any) -> None:
    assert step_in(FORM.announce(call, 4), 4) == step


@rows(
    ("call", "result", "step"),
    [
        (SEARCH, FOUND, {"type": "google_search_result", "call_id": "call_wg1",
                         "result": [{"url": "https://e.com", "title": "E"}, {"url": "https://f.com", "title": ""}]}),
        (SEARCH, FAILED, {"type": "google_search_result", "call_id": "call_wg1", "result": [], "is_error": True}),
        (FETCH, FOUND, {"type": "url_context_result", "call_id": "call_wg2",
                        "result": [{"url": "https://e.com", "status": "success"}]}),
        (FETCH, FAILED, {"type": "url_context_result", "call_id": "call_wg2",
                         "result": [{"url": "https://e.com", "status": "error"}], "is_error": True}),
        (HostedCall("web_fetch", "a"), FOUND, {"type": "url_context_result", "call_id": "call_a",
                                               "result": [{"url": "", "status": "success"}]}),
        (SERVED, FOUND, {"type": "mcp_server_tool_result", "call_id": "call_wg3", "name": "find", "server_name": "docs",
                         "result": [{"type": "text", "text": "x"}]}),
        (SERVED, FAILED, {"type": "mcp_server_tool_result", "call_id": "call_wg3", "name": "find", "server_name": "docs",
                          "result": [{"type": "text", "text": "down"}], "is_error": True}),
        (HostedCall("mcp", "wg3", pending=True), FOUND, None),
        (HostedCall("computer", "wg4"), FOUND, None),
    ],
)  # fmt: skip
def test_its_result_is_another(call: HostedCall, result: HostedResult, step: Any) -> None:
    assert step_in(FORM.report(RanCall(call.id, call, result), 5), 5) == step


def found(*sources: WebSource, **more: Any) -> HostedResult:
    return HostedResult(sources=sources, **more)


@rows(
    ("step", "ran"),
    [
        ({"type": "google_search_call", "id": "call_wg1", "arguments": {"queries": ["q", "r"]}}, RanCall("wg1", SEARCH)),
        ({"type": "url_context_call", "id": "call_wg2", "arguments": {"urls": ["https://e.com"]}}, RanCall("wg2", FETCH)),
        ({"type": "google_search_call", "id": "s"}, RanCall("s", HostedCall("web_search", "s", input={"query": ""}))),
        ({"type": "google_search_call", "id": "s", "arguments": {"queries": []}},
         RanCall("s", HostedCall("web_search", "s", input={"query": ""}))),
        ({"type": "url_context_call", "id": "s", "arguments": {"urls": [7]}},
         RanCall("s", HostedCall("web_fetch", "s", input={"url": ""}))),
        ({"type": "google_search_result", "call_id": "call_wg1",
          "result": [{"url": "https://e.com", "title": "E"}, {"url": "https://f.com"}, {"title": "E"}, {"url": 7}, 7]},
         RanCall("wg1", result=found(WebSource("https://e.com", "E"), WebSource("https://f.com")))),
        ({"type": "url_context_result", "call_id": "s", "result": "x"}, RanCall("s", result=found())),
        ({"type": "url_context_result", "call_id": "s", "is_error": True}, RanCall("s", result=found(error="unavailable"))),
        ({"type": "url_context_result", "call_id": "s", "is_error": 1}, RanCall("s", result=found())),
        ({"type": "google_search_call", "call_id": "s"}, None),
        ({"type": "google_search_result", "id": "s"}, None),
        ({"type": "mcp_server_tool_call", "id": "call_wg3", "name": "find"}, None),
        ({"type": "code_execution_call", "id": "call_wg3"}, None),
    ],
)  # fmt: skip
def test_a_step_of_an_earlier_turn_is_the_call_or_its_result(
    step: dict[str, Any], ran: RanCall | None
) -> None:
    assert FORM.read(Foreign(OWN, step["type"], step)) == ran
