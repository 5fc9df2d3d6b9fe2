"""The Code Assist envelope, both sides."""

import json
from typing import Any

import pytest

from wireglot_core import translate_request
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT as GEMINI
from wireglot_core.dialects.gemini.code_assist import DIALECT
from wireglot_core.dialects.registry import dialect as registered
from wireglot_core.ir.content import Message, Text, ToolCall
from wireglot_core.ir.errors import ApiError, ClientFault
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, PartEnd, PartStart, Start, fold
from wireglot_core.wire.json import encode

CONTEXT = Context()
INNER = {
    "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
    "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
    "tools": [{"functionDeclarations": [{"name": "f", "description": "d"}]}],
    "session_id": "s1",
}
BODY = {
    "model": "gemini-3-pro",
    "project": "p1",
    "user_prompt_id": "u1",
    "enabled_credit_types": ["G1"],
    "request": INNER,
}
ANSWER: dict[str, Any] = {
    "response": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1},
        "modelVersion": "gemini-3-pro",
        "automaticFunctionCallingHistory": [],
    },
    "traceId": "t1",
    "consumedCredits": [],
}


def test_a_request_is_opened_and_comes_back():
    """R-S-01, R-S-02, R-S-03, R-S-04, R-S-07, R-H-07, C50"""
    request = DIALECT.parse_request(BODY, CONTEXT)
    assert request.model == "gemini-3-pro"
    assert [message.role for message in request.messages] == ["system", "user"]
    rendered = DIALECT.render_request(request, CONTEXT)
    assert (rendered.value, rendered.losses) == (BODY, ())


def test_the_envelope_stays_behind_when_the_upstream_is_plain_gemini():
    rendered = GEMINI.render_request(DIALECT.parse_request(BODY, CONTEXT), CONTEXT)
    assert rendered.value == {key: item for key, item in INNER.items() if key != "session_id"}
    assert rendered.losses == ()


def test_a_bare_request_is_taken_too():
    assert DIALECT.parse_request({"contents": "Hello"}, CONTEXT).messages == (
        Message("user", (Text("Hello"),)),
    )


def test_everything_of_a_request_stands_inside():
    """R-S-07: instruction, tools and configuration are never beside `request`."""
    messages = (Message("system", (Text("Be brief."),)), Message("user", (Text("Hello"),)))
    body = DIALECT.render_request(Request("gemini-3-pro", messages, (Tool("f", "d"),)), CONTEXT).value
    assert body.keys() == {"model", "request"}
    assert body["request"].keys() == {"contents", "systemInstruction", "tools"}


def test_the_path_of_a_fault_leads_into_the_envelope():
    with pytest.raises(ClientFault) as fault:
        DIALECT.parse_request({"request": {"contents": [{"parts": [5]}]}}, CONTEXT)
    assert fault.value.path == "$.request.contents[0].parts[0]"


def test_a_response_is_opened_and_comes_back():
    """R-T-01, R-T-04, C50: the trace id plays the response id."""
    response = DIALECT.parse_response(ANSWER, CONTEXT)
    assert response.id == "t1"
    assert isinstance(response.content[0], ToolCall)
    assert response.stop.reason == "tool_calls"
    rendered = DIALECT.render_response(response, CONTEXT)
    assert (rendered.value, rendered.losses) == (ANSWER, ())
    assert DIALECT.parse_response(ANSWER["response"], CONTEXT).content


def test_another_providers_answer_is_wrapped():
    rendered = DIALECT.render_response(Response("msg_1", "m", (Text("x"),), Stop("end")), CONTEXT)
    assert rendered.value["traceId"] == "msg_1"
    assert rendered.value["response"]["modelVersion"] == "m"
    assert DIALECT.parse_response(rendered.value, CONTEXT).id == "msg_1"


def test_streams_are_opened_and_wrapped():
    """R-J-09, R-S-10"""
    events: list[Event] = [
        Start("t1", "m"),
        PartStart(0, Text("")),
        Delta(0, "a"),
        Delta(0, "b"),
        PartEnd(0),
        Finish(Stop("end")),
    ]
    data = DIALECT.stream_writer(CONTEXT).write(events)
    chunks = [json.loads(line[6:]) for line in data.decode().split("\n\n")[:-1]]
    assert all(chunk.keys() == {"response", "traceId"} for chunk in chunks)
    assert chunks[-1]["response"]["candidates"][0]["finishReason"] == "STOP"
    reader = DIALECT.stream_reader(CONTEXT)
    response = fold(reader.read(data) + reader.end())
    assert (response.id, response.content) == ("t1", (Text("ab"),))


def test_a_bare_stream_is_taken_too():
    data = GEMINI.stream_writer(CONTEXT).write(
        [Start("r", "m"), PartStart(0, Text("")), Delta(0, "a"), PartEnd(0), Finish(Stop("end"))]
    )
    reader = DIALECT.stream_reader(CONTEXT)
    assert fold(reader.read(data) + reader.end()).content == (Text("a"),)


def test_an_error_is_not_wrapped():
    data = DIALECT.stream_writer(CONTEXT).write([Failure(ApiError("overloaded", "busy"))])
    assert json.loads(data[6:]).keys() == {"error"}
    reader = DIALECT.stream_reader(CONTEXT)
    events = reader.read(data) + reader.end()
    assert isinstance(events[-1], Failure)
    assert DIALECT.parse_error(json.loads(data[6:])) is not None


def test_plain_gemini_takes_wrapped_bodies_too():
    """R-T-04"""
    assert GEMINI.parse_request(BODY, CONTEXT).model == "gemini-3-pro"
    assert GEMINI.parse_response(ANSWER, CONTEXT).id == "t1"
    events: list[Event] = [Start("t1", "m"), PartStart(0, Text("a")), PartEnd(0), Finish(Stop("end"))]
    reader = GEMINI.stream_reader(CONTEXT)
    assert fold(reader.read(DIALECT.stream_writer(CONTEXT).write(events)) + reader.end()).content == (
        Text("a"),
    )


@pytest.mark.parametrize("name", ["gemini", "code-assist"])
def test_an_error_inside_the_envelope_is_one(name: str):
    """Carried as a field beside the answer it would have been the client's error, in an answer of ours that
    says it went well."""
    error = {"code": 503, "message": "The model failed.", "status": "UNAVAILABLE"}
    wrapped = {"response": {"error": error}, "traceId": "t1"}
    codec = registered(name)
    reported = codec.parse_error(wrapped, 200)
    assert reported is not None
    assert (reported.kind, reported.message) == ("overloaded", "The model failed.")
    assert codec.render_error(reported, CONTEXT).value == {"error": error}

    begun = {"response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]}}
    ended = {"response": {"candidates": [{"finishReason": "STOP"}]}}
    data = b"".join(b"data: %b\n\n" % encode(chunk) for chunk in (begun, wrapped, ended))
    reader = codec.stream_reader(CONTEXT)
    last = (reader.read(data) + reader.end())[-1]
    assert isinstance(last, Failure)
    assert last.error.message == "The model failed."


def test_a_hollow_error_inside_the_envelope_is_none():
    response = {"error": {"code": 0, "message": ""}, **ANSWER["response"]}
    assert DIALECT.parse_error({**ANSWER, "response": response}, 200) is None


def test_the_project_of_a_request_is_that_of_the_context() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    context = Context(project="my-project")
    sent = translate_request(asked, source="openai-chat", target="code-assist", context=context).value
    assert list(sent) == ["model", "project", "request"]
    assert sent["project"] == "my-project"
    assert "project" not in translate_request(asked, source="openai-chat", target="code-assist").value
    other = translate_request(asked, source="openai-chat", target="gemini", context=context).value
    assert "project" not in other
