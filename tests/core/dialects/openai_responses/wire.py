"""What the tests of this dialect share: short ways in and out of it."""

from typing import Any

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_responses import DIALECT
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, check
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.sse import SseDecoder, frame

CONTEXT = Context(now=1_760_000_000)


def parse(body: dict[str, Any]) -> Request:
    return DIALECT.parse_request(body, CONTEXT)


def render(request: Request) -> dict[str, Any]:
    return DIALECT.render_request(request, CONTEXT).value


def losses(request: Request) -> list[tuple[str, str, str]]:
    return [_brief(loss) for loss in DIALECT.render_request(request, CONTEXT).losses]


def _brief(loss: Loss) -> tuple[str, str, str]:
    return loss.path, loss.feature, loss.action


def comes_back(body: dict[str, Any]) -> Request:
    """Parse, and insist on the identity law and on silence."""
    request = parse(body)
    rendered = DIALECT.render_request(request, CONTEXT)
    assert rendered.value == body
    assert rendered.losses == ()
    return request


def answer_comes_back(body: dict[str, Any]) -> Response:
    response = DIALECT.parse_response(body, CONTEXT)
    rendered = DIALECT.render_response(response, CONTEXT)
    assert rendered.value == body
    assert rendered.losses == ()
    return response


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(frame(encode(event), event["type"].encode()) for event in events)


def read(data: bytes) -> list[Event]:
    reader = DIALECT.stream_reader(CONTEXT)
    return list(check([*reader.read(data), *reader.end()]))


def write(events: list[Event], request: Request | None = None) -> list[dict[str, Any]]:
    """The events a client gets, with the frame's name checked against the type."""
    data = DIALECT.stream_writer(CONTEXT, request).write(events)
    decoder = SseDecoder()
    out = []
    for one in [*decoder.feed(data), *decoder.close()]:
        event = decode(one.data)
        assert event["type"] == one.event
        out.append(event)
    assert [event["sequence_number"] for event in out] == list(range(len(out)))
    return out
