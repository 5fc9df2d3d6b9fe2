"""Short ways to say what the tests of this dialect say all the time."""

from typing import Any

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_chat import DIALECT
from wireglot_core.ir.content import Message
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, check, fold
from wireglot_core.wire.json import decode, encode

CONTEXT = Context(provider="acme", model="m", now=1700000000)


def parsed(body: dict[str, Any]) -> Request:
    return DIALECT.parse_request(body, CONTEXT)


def asked(*messages: dict[str, Any], **settings: Any) -> Request:
    """A request of these messages, parsed."""
    return parsed({"model": "m", "messages": list(messages), **settings})


def sent(request: Request, context: Context = CONTEXT) -> dict[str, Any]:
    return DIALECT.render_request(request, context).value


def losses_of(request: Request) -> list[tuple[str, str]]:
    return [(loss.path, loss.feature) for loss in DIALECT.render_request(request, CONTEXT).losses]


def foreign(*messages: Message, **settings: Any) -> Request:
    """A request no dialect has spelled yet."""
    return Request("m", messages, **settings)


def answer(message: dict[str, Any] | None, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        **more,
    }


def understood(body: dict[str, Any]) -> Response:
    return DIALECT.parse_response(body, CONTEXT)


def chunk(delta: Any, finish: Any = None, **more: Any) -> bytes:
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **more,
    }
    return frame(body)


def frame(body: Any) -> bytes:
    return b"data: " + encode(body) + b"\n\n"


DONE = b"data: [DONE]\n\n"


def read(*frames: bytes, context: Context = CONTEXT) -> list[Event]:
    """The events of a stream, checked against the grammar."""
    reader = DIALECT.stream_reader(context)
    events = reader.read(b"".join(frames))
    return list(check([*events, *reader.end()]))


def folded(*frames: bytes) -> Response:
    return fold(read(*frames))


def failure(*frames: bytes) -> ApiError:
    last = read(*frames)[-1]
    assert isinstance(last, Failure)
    return last.error


def written(events: list[Event], request: Request | None = None) -> tuple[bytes, list[Loss]]:
    writer = DIALECT.stream_writer(CONTEXT, request)
    return writer.write(events), writer.losses


def chunks(data: bytes) -> list[Any]:
    """The decoded frames of what was written; `[DONE]` as it is."""
    frames = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    return ["[DONE]" if body == b"[DONE]" else decode(body) for body in frames]
