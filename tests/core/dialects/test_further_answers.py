"""Several answers to one request, in streams: what was asked for and paid for is delivered, or not asked."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from tests.core.laws.sdks import _CHAT, _openai
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Candidate, Response, Stop
from wireglot_core.ir.stream import Event, fold, unfold
from wireglot_core.wire.json import encode

CONTEXT = Context(now=5)


def chat_stream(*choices: dict[str, Any]) -> bytes:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [encode({**head, "choices": [choice]}) for choice in choices]
    return b"".join(b"data: " + chunk + b"\n\n" for chunk in (*chunks, b"[DONE]"))


def piece(index: int, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def call(arguments: str, **more: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "function": {"arguments": arguments, **more}}]


CHAT = chat_stream(
    piece(0, role="assistant", content="One"),
    piece(1, role="assistant", content="T"),
    piece(2, role="assistant", tool_calls=call("", name="f")),
    piece(1, content="wo"),
    piece(2, tool_calls=call('{"a":')),
    piece(0, "stop"),
    piece(2, tool_calls=call("1}")),
    piece(1, "length"),
    piece(2, "tool_calls"),
)


def candidate(index: int, *parts: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    said: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": index}
    return said if finish is None else {**said, "finishReason": finish}


GEMINI = b"".join(
    b"data: " + encode({"candidates": list(several), "modelVersion": "m", "responseId": "r1"}) + b"\r\n\r\n"
    for several in (
        (candidate(0, {"text": "One"}), candidate(1, {"text": "T"})),
        (candidate(1, {"text": "wo"}, finish="MAX_TOKENS"),),
        (candidate(2, {"functionCall": {"name": "f", "args": {"a": 1}}}, finish="STOP"),),
        (candidate(0, finish="STOP"),),
    )
)
STREAMS = {"openai-chat": CHAT, "gemini": GEMINI}


def read(name: str, data: bytes) -> list[Event]:
    reader = dialect(name).stream_reader(CONTEXT)
    return [*reader.read(data), *reader.end()]


def spoken(response: Response) -> list[tuple[list[str], str]]:
    answers = (Candidate(response.content, response.stop), *response.others)
    return [([_said(part) for part in answer.content], answer.stop.reason) for answer in answers]


def _said(part: Any) -> str:
    assert isinstance(part, Text | ToolCall | Reasoning)
    return f"{part.name}{json.loads(part.arguments)}" if isinstance(part, ToolCall) else part.text


ALL = [(["One"], "end"), (["Two"], "length"), (["f{'a': 1}"], "tool_calls")]


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_of_several_answers_folds_to_all_of_them(name: str) -> None:
    """[X17] Also where a client wants it whole and the upstream only streams."""
    assert spoken(fold(read(name, STREAMS[name]))) == ALL


@pytest.mark.parametrize("source", STREAMS)
@pytest.mark.parametrize("target", STREAMS)
def test_several_answers_cross_between_dialects_that_have_a_place_for_them(source: str, target: str) -> None:
    """[X17] n and candidateCount: asked, paid and delivered."""
    writer = dialect(target).stream_writer(CONTEXT, None)
    data = b"".join(writer.write([event]) for event in read(source, STREAMS[source]))
    assert spoken(fold(read(target, data))) == ALL
    assert [loss for loss in writer.losses if loss.feature == "candidates"] == []


@pytest.mark.parametrize("source", STREAMS)
@pytest.mark.parametrize("target", ["anthropic", "openai-responses"])
def test_where_there_is_no_place_it_is_declared_once(source: str, target: str) -> None:
    """[X17]"""
    writer = dialect(target).stream_writer(CONTEXT, None)
    data = writer.write(read(source, STREAMS[source]))
    assert spoken(fold(read(target, data))) == ALL[:1]
    assert [loss.action for loss in writer.losses if loss.feature == "candidates"] == ["dropped"]


@pytest.mark.parametrize("source", STREAMS)
def test_openais_sdk_adds_up_every_choice(source: str) -> None:
    """[X17]"""
    data = dialect("openai-chat").stream_writer(CONTEXT, None).write(read(source, STREAMS[source]))
    client = _openai(data, True)
    try:
        with client.chat.completions.stream(**_CHAT) as stream:
            whole: Any = stream.get_final_completion()
    except openai.LengthFinishReasonError as cut:
        whole = cut.completion
    choices = sorted(whole.choices, key=lambda choice: int(choice.index))
    assert [choice.message.content for choice in choices][:2] == ["One", "Two"]
    assert [choice.finish_reason for choice in choices] == ["stop", "length", "tool_calls"]
    (made,) = choices[2].message.tool_calls
    assert (made.function.name, json.loads(made.function.arguments)) == ("f", {"a": 1})


def test_an_answer_that_came_whole_streams_all_of_its_answers() -> None:
    """[X17] For a client that wants a stream of an upstream that never streams."""
    response = Response(
        "r",
        "m",
        (Text("One"),),
        Stop("end"),
        others=(Candidate((Text("Two"),), Stop("length")),),
    )
    assert fold(unfold(response)) == response


@pytest.mark.parametrize("target", STREAMS)
def test_a_call_that_is_cut_in_a_further_answer_is_left_out(target: str) -> None:
    """[X17] [X7] No tool is asked with half of its arguments."""
    data = chat_stream(
        piece(0, "stop", content="One"),
        piece(1, "length", content="Two", tool_calls=call('{"path":"/srv/fo', name="rm")),
    )
    writer = dialect(target).stream_writer(CONTEXT, None)
    written = writer.write(read("openai-chat", data))
    assert spoken(fold(read(target, written))) == ALL[:2]
    assert [loss.path for loss in writer.losses if loss.feature == "tool_call.arguments"] == [
        "$.others[0].content[1]"
    ]


def test_a_further_answer_that_failed_fails_the_stream() -> None:
    """[X17]"""
    data = chat_stream(piece(0, "stop", content="One"), piece(1, "error"))
    assert type(read("openai-chat", data)[-1]).__name__ == "Failure"


@pytest.mark.parametrize("end", [0, 1])
def test_a_stream_is_complete_with_the_end_of_its_first_answer(end: int) -> None:
    """[X17] Another answer may end before it."""
    chat = encode({"choices": [piece(end, "length")]})
    gemini = encode({"candidates": [candidate(end, finish="MAX_TOKENS")]})
    for name, chunk in (("openai-chat", chat), ("gemini", gemini)):
        tap = surface(name).tap(1000)
        tap.feed(b"data: %b\n\n" % chunk)
        assert (tap.complete, tap.stop) == ((False, "") if end else (True, "length"))
