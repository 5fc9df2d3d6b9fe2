"""Short ways to build and to read this dialect's wire."""

import json
from collections.abc import Iterable
from typing import Any

from wireglot_core.dialects.anthropic import DIALECT
from wireglot_core.dialects.context import Context
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import Event, Failure, Finish, check, fold

CONTEXT = Context()


def ask(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}], **changes}


def parse(body: dict[str, Any], context: Context = CONTEXT):
    return DIALECT.parse_request(body, context)


def again(body: dict[str, Any]) -> dict[str, Any]:
    """The request after it went through the IR; it must not have lost anything on the way."""
    rendered = DIALECT.render_request(parse(body), CONTEXT)
    assert rendered.losses == ()
    return rendered.value


def features(losses: Iterable[Loss]) -> list[tuple[str, str, str]]:
    return [(loss.path, loss.feature, loss.action) for loss in losses]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def message_start(**changes: Any) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    }
    return {"type": "message_start", "message": {**message, **changes}}


def block_start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def block_delta(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def block_stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None, **usage: Any) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7, **usage}}


MESSAGE_STOP = {"type": "message_stop"}


def text_block(index: int, *pieces: str) -> list[dict[str, Any]]:
    deltas = [block_delta(index, "text_delta", text=piece) for piece in pieces]
    return [block_start(index, type="text", text=""), *deltas, block_stop(index)]


def read(data: bytes, context: Context = CONTEXT) -> list[Event]:
    reader = DIALECT.stream_reader(context)
    return list(check([*reader.read(data), *reader.end()]))


def hear(*events: dict[str, Any]) -> Response:
    found = read(sse(*events))
    assert isinstance(found[-1], Finish), found[-1]
    return fold(found)


def failure(data: bytes) -> Failure:
    last = read(data)[-1]
    assert isinstance(last, Failure)
    return last


def write(events: Iterable[Event], context: Context = CONTEXT) -> tuple[list[dict[str, Any]], list[Loss]]:
    """The wire events a writer makes, each checked to name its type in its `event:` line."""
    writer = DIALECT.stream_writer(context)
    data = writer.write(events)
    found = []
    for frame in data.decode().split("\n\n")[:-1]:
        name, value = frame.split("\n", 1)
        event = json.loads(value.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found, writer.losses


def blocks(wire: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks a client assembles; fails unless they come one after the other without gaps."""
    content: list[dict[str, Any]] = []
    open_index = None
    for event in wire:
        match event["type"]:
            case "content_block_start":
                assert open_index is None
                assert event["index"] == len(content)
                open_index = event["index"]
                content.append({**event["content_block"], "deltas": []})
            case "content_block_delta":
                assert event["index"] == open_index
                content[-1]["deltas"].append(event["delta"])
            case "content_block_stop":
                assert event["index"] == open_index
                open_index = None
    assert open_index is None
    return content
