"""What only Ollama's wire has: lines, pairing by name, untyped pictures, requests that ask nothing."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from tests.core.sent_body import SentBody
from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.iso_time import iso_time, unix_seconds
from wireglot_core.dialects.ollama.framing import CONTENT_TYPE, LineFramer, LineUnframer
from wireglot_core.dialects.ollama.media import media_type
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import Extra, Media, Message, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request, Thinking
from wireglot_core.ir.stream import unfold
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.event_stream import BadFrame
from wireglot_core.wire.json import decode, encode

OLLAMA = dialect("ollama")
LINES = b'{"message":{"content":"a"},"done":false}\n{"message":{"content":""},"done":true}\n'
EVENTS = b'data: {"message":{"content":"a"},"done":false}\n\ndata: {"message":{"content":""},"done":true}\n\n'


def _calls(*names: str) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": {"n": number}}} for number, name in enumerate(names)]
    return {"role": "assistant", "content": "", "tool_calls": calls}


# Framing


def test_events_become_lines_and_lines_events_however_they_are_cut() -> None:
    for pieces in every_cut(EVENTS):
        framer = LineFramer(1000)
        assert b"".join(map(framer.feed, pieces)) + framer.close() == LINES
    for pieces in every_cut(LINES):
        unframer = LineUnframer(1000)
        assert b"".join(map(unframer.feed, pieces)) + unframer.close() == EVENTS


def test_a_ping_is_a_blank_before_the_next_line() -> None:
    """Every client decodes each line: an empty one would be an error, and a blank before JSON is none."""
    framer = LineFramer(1000)
    data = framer.feed(surface("ollama").client.pings["sse"]) + framer.feed(EVENTS)
    assert data == b" " + LINES
    assert [decode(line)["done"] for line in data.splitlines()] == [False, True]


def test_a_last_line_without_its_end_is_an_event() -> None:
    unframer = LineUnframer(1000)
    assert unframer.feed(LINES.rstrip(b"\n")) + unframer.close() == EVENTS


def test_a_line_that_is_too_long_breaks_the_stream_behind_those_before_it() -> None:
    unframer = LineUnframer(60)
    assert unframer.feed(LINES[:41] + b"x" * 61) == EVENTS[: EVENTS.index(b"\n\n") + 2]
    assert unframer.fault is not None
    with pytest.raises(BadFrame):
        unframer.feed(b"\n")


def test_a_translated_stream_is_lines_unless_events_are_asked_for() -> None:
    chunk = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "a\u2028b\u0085"}}]}
    ends = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    data = b"".join(b"data: %b\n\n" % encode(each) for each in (chunk, ends)) + b"data: [DONE]\n\n"
    translator = StreamTranslator(source="openai-chat", target="ollama")
    written = translator.feed(data) + translator.close()
    lines = written.decode().splitlines()  # as httpx cuts them: at U+2028 and U+0085, too
    assert [decode(line)["message"]["content"] for line in lines] == ["a\u2028b\u0085", ""]
    translator = StreamTranslator(source="openai-chat", target="ollama", framing="sse")
    assert (translator.feed(data) + translator.close()).startswith(b"data: {")
    assert surface("ollama").client.framing is not None
    assert CONTENT_TYPE == "application/x-ndjson"


# Tools


@rows(
    ("results", "expected"),
    [
        ([{"tool_name": "b"}, {"tool_name": "a"}], [1, 0]),
        ([{}, {}], [0, 1]),
        ([{"tool_name": "b"}, {}], [1, 0]),
        ([{"tool_name": "nobody"}, {"tool_name": "a"}], [None, 0]),
    ],
)
def test_results_are_paired_by_the_name_of_their_tool_or_in_order(
    results: list[dict[str, Any]], expected: list[int | None]
) -> None:
    said = [{"role": "tool", "content": "x", **result} for result in results]
    for called in ([_calls("a", "b")], [_calls("a"), _calls("b")]):  # also of several messages of one turn
        request = OLLAMA.parse_request({"model": "m", "messages": [*called, *said]}, Context())
        parts = [part for message in request.messages for part in message.content]
        ids = [part.id for part in parts if isinstance(part, ToolCall)]
        found = [part.call_id for part in parts if isinstance(part, ToolResult)]
        assert [ids.index(call) if call in ids else None for call in found] == expected


def test_a_result_answers_a_call_of_its_own_turn() -> None:
    """A call of an earlier turn that was never answered gets no result of a later one."""
    ask = {"role": "user", "content": "x"}
    result = {"role": "tool", "content": "y"}
    for named in ({}, {"tool_name": "a"}, {"name": "a"}):
        messages = [_calls("a"), ask, _calls("b", "a", "a"), {**result, **named}, {**result, **named}]
        request = OLLAMA.parse_request({"model": "m", "messages": messages}, Context())
        ids = [part.id for m in request.messages for part in m.content if isinstance(part, ToolCall)]
        found = [part.call_id for m in request.messages for part in m.content if isinstance(part, ToolResult)]
        assert found == ([ids[2], ids[3]] if named else [ids[1], ids[2]]), named
    # One that comes late is still that of the call.
    late = OLLAMA.parse_request({"model": "m", "messages": [_calls("a"), ask, result]}, Context())
    called, answered = late.messages[0].content[0], late.messages[-1].content[0]
    assert isinstance(called, ToolCall)
    assert isinstance(answered, ToolResult)
    assert answered.call_id == called.id


def test_a_call_without_an_id_has_the_same_one_in_every_request() -> None:
    body = {"model": "m", "messages": [_calls("a"), {"role": "tool", "content": "x"}]}
    first, second = (translate_request(body, source="ollama", target="openai-chat").value for _ in range(2))
    assert first == second
    called, answered = first["messages"][-2:]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert called["tool_calls"][0]["function"]["arguments"] == '{"n":0}'


@rows("extra", [None, Extra("anthropic", {"caller": {"type": "direct"}})])
def test_calls_of_another_dialect_are_numbered_as_servers_do_it(extra: Extra | None) -> None:
    calls = tuple(ToolCall(f"c{number}", "f", "{}", extra=extra) for number in range(2))
    document = OLLAMA.render_response(
        Response("id", "m", content=calls, stop=Stop("tool_calls")), Context()
    ).value
    assert [call["function"]["index"] for call in document["message"]["tool_calls"]] == [0, 1]


def test_no_field_for_the_choice_leaves_what_may_be_called() -> None:
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("a", "b")]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": tools}
    for choice, names in (
        ("auto", ["a", "b"]),
        ("none", []),
        ("required", ["a", "b"]),
        ({"type": "function", "function": {"name": "b"}}, []),  # its schema is the format of the answer
    ):
        done = translate_request({**body, "tool_choice": choice}, source="openai-chat", target="ollama")
        sent = [tool["function"]["name"] for tool in done.value.get("tools", [])]
        assert sent == names, choice
        assert ("tool_choice" in {loss.feature for loss in done.losses}) is (choice != "auto")


# Messages


def test_texts_and_pictures_keep_their_order_in_messages_of_one_role() -> None:
    png = "iVBORw0KGgoAAAANSUhEUg=="
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}
    content = [image, {"type": "text", "text": "Above?"}, {"type": "text", "text": "Below:"}, image]
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    done = translate_request(body, source="openai-chat", target="ollama")
    assert done.value["messages"] == [
        {"role": "user", "content": "", "images": [png]},
        {"role": "user", "content": "Above?"},
        {"role": "user", "content": "Below:", "images": [png]},
    ]
    assert done.losses == ()


@rows(
    ("data", "mime"),
    [
        ("iVBORw0KGgoAAAANSUhEUg==", "image/png"),
        ("/9j/4AAQSkZJRgABAQAAAQ==", "image/jpeg"),
        ("UklGRiQAAABXRUJQVlA4IA==", "image/webp"),
        ("UklGRiQAAABXQVZFZm10IA==", "audio/wav"),
        ("R0lGODlhAQABAAAAACw=", "image/gif"),
        ("not base64!", ""),
        ("", ""),
    ],
)
def test_a_picture_has_the_type_of_its_bytes(data: str, mime: str) -> None:
    assert media_type(data) == mime


@rows("data", ["not base64!", "!!!", "data:image/png;base64,iVBORw0KGgo=", "\u00e9\u00e9\u00e9\u00e9", ""])
def test_a_picture_that_is_no_base64_is_refused(data: str) -> None:
    """As by Ollama, whose type of it is `[]byte`."""
    said = {"role": "user", "content": "x", "images": ["iVBORw0KGgo=", data]}
    with pytest.raises(ClientFault) as caught:
        OLLAMA.parse_request({"model": "m", "messages": [said]}, Context())
    assert caught.value.path == "$.messages[0].images[1]"
    with pytest.raises(ClientFault) as caught:
        dialect("ollama-generate").parse_request({"model": "m", "prompt": "x", "images": [data]}, Context())
    assert caught.value.path == "$.images[0]"


def test_thinking_without_a_level_is_asked_of_every_dialect() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "think": True}
    chat = translate_request(body, source="ollama", target="openai-chat").value
    assert chat["reasoning_effort"] == "medium"
    off = translate_request({**body, "think": False}, source="ollama", target="openai-chat").value
    assert off["reasoning_effort"] == "none"


def test_a_model_that_is_known_not_to_think_is_not_asked_to() -> None:
    for thinking, stated, features in (
        (Thinking("on", "high"), None, ["thinking.mode"]),
        (Thinking(effort="low"), None, ["thinking.mode"]),
        (Thinking("off"), False, []),
        (Thinking(effort="none"), False, []),
        (Thinking("on", budget=9), None, ["thinking.mode", "thinking.budget"]),
    ):
        request = Request("m", (Message("user", (Text("x"),)),), thinking=thinking)
        out = dialect("ollama").render_request(request, Context(reasons=False))
        assert (out.value.get("think"), [loss.feature for loss in out.losses]) == (stated, features)


def test_an_answer_is_a_stream_unless_the_request_says_otherwise() -> None:
    for stated, stream in (({}, True), ({"stream": None}, True), ({"stream": False}, False)):
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **stated}
        assert translate_request(body, source="ollama", target="openai-chat").value["stream"] is stream
        glance = surface("ollama").client.glance
        assert glance is not None
        assert glance(SentBody(encode(body))).stream is stream
    whole = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    assert translate_request(whole, source="openai-chat", target="ollama").value["stream"] is False


def test_options_of_ollama_alone_are_reported_where_they_are() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "x"}],
        "keep_alive": -1,
        "options": {"num_ctx": 8192, "num_predict": 5, "min_p": 0.1, "stop": ["END"]},
    }
    done = translate_request(body, source="ollama", target="anthropic")
    assert (done.value["max_tokens"], done.value["stop_sequences"]) == (5, ["END"])
    assert {"$.keep_alive", "$.options.num_ctx", "$.options.min_p"} == {
        loss.path for loss in done.losses if loss.feature == "unknown_field"
    }


# Answers


@rows(
    ("finish", "reason", "lossy"),
    [("stop", "stop", False), ("length", "length", False), ("content_filter", "stop", True)],
)
def test_a_reason_to_stop_is_ollamas_or_a_loss(finish: str, reason: str, lossy: bool) -> None:
    message = {"role": "assistant", "content": "Hi"}
    answer = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    done = translate_response(answer, source="openai-chat", target="ollama")
    assert done.value["done_reason"] == reason
    assert ("stop_reason" in {loss.feature for loss in done.losses}) is lossy


def test_a_prompt_with_a_suffix_is_refused() -> None:
    with pytest.raises(Unsupported) as caught:
        dialect("ollama-generate").parse_request({"model": "m", "prompt": "a", "suffix": "b"}, Context())
    assert caught.value.path == "$.suffix"


@rows(
    ("name", "body", "expected"),
    [
        ("ollama", {"messages": []}, "load"),
        ("ollama", {}, "load"),
        ("ollama", {"messages": [], "keep_alive": 0}, "unload"),
        ("ollama", {"messages": None, "keep_alive": "0s"}, "unload"),
        ("ollama", {"messages": [], "keep_alive": "0h0.0m"}, "unload"),
        ("ollama", {"messages": [], "keep_alive": "10m"}, "load"),
        ("ollama", {"messages": [], "keep_alive": False}, "load"),
        ("ollama", {"messages": [{}]}, None),
        ("ollama", {"messages": {}}, None),
        ("ollama", {"messages": ""}, None),
        ("ollama", {"messages": 0}, None),
        ("ollama", {"messages": [{"role": "user", "content": "x"}], "keep_alive": 0}, None),
        ("ollama-generate", {"prompt": ""}, "load"),
        ("ollama-generate", {"keep_alive": 0}, "unload"),
        ("ollama-generate", {"prompt": "x"}, None),
        ("ollama-generate", {"prompt": []}, None),
        ("ollama-generate", {"prompt": 0}, None),
        ("ollama-generate", {"prompt": "", "images": ["iVBORw0KGgo="]}, None),
    ],
)
def test_a_request_asks_something_or_is_answered_at_once(
    name: str, body: dict[str, Any], expected: str | None
) -> None:
    idle = surface(name).client.idle
    assert idle is not None
    document = idle(SentBody(encode({"model": "m", **body})), Context(now=1760000000))
    assert (document or {}).get("done_reason") == expected
    if document is not None:
        assert (document["model"], document["created_at"], document["done"]) == (
            "m",
            "2025-10-09T08:53:20Z",
            True,
        )


@rows(
    ("kind", "stated", "status"),
    [
        ("billing", 429, 402),
        ("auth", 400, 401),
        ("rate_limit", 429, 429),
        ("server", 503, 503),  # a circuit breaker is open
        ("timeout", 502, 502),
        ("overloaded", 529, 503),
        ("server", 0, 500),
    ],
)
def test_the_status_says_what_the_body_cannot(kind: Any, stated: int, status: int) -> None:
    assert surface("ollama").status(ApiError(kind, "no", stated)) == status


def test_times_come_back() -> None:
    for seconds in (0, 951782400, 1709164800, 1760000000, 4102444799):
        assert unix_seconds(iso_time(seconds)) == seconds
    assert iso_time(1709164800) == "2024-02-29T00:00:00Z"


@pytest.mark.parametrize(("kind", "mime"), [("image", "image/png"), ("audio", "audio/wav")])
def test_a_picture_or_a_sound_of_an_answer_is_named_in_the_text(
    kind: Literal["image", "audio"], mime: str
) -> None:
    """ollama-python takes `images` of an answer for files to send, and fails."""
    media = Media(kind, mime, "iVBORw0KGgo=")
    answer = Response("r", "m", (Text("Here:"), media, Text("Done.")), Stop("end"))
    whole = dialect("ollama").render_response(answer, Context())
    assert whole.value["message"] == {"role": "assistant", "content": f"Here:\n[{kind} left out]\nDone."}
    assert ("$.content[1]", kind, "dropped") in {
        (loss.path, loss.feature, loss.action) for loss in whole.losses
    }
    writer = dialect("ollama").stream_writer(Context())
    events = b"".join(writer.write([event]) for event in unfold(answer)).split(b"\n\n")
    messages = [decode(event.removeprefix(b"data: "))["message"] for event in events if event]
    assert "".join(message["content"] for message in messages) == f"Here:\n[{kind} left out]\nDone."
    assert not any("images" in message for message in messages)
    assert (kind, "dropped") in {(loss.feature, loss.action) for loss in writer.losses}
