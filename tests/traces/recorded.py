"""Traces made without a gateway: a request translated for real, answered by the demo model, translated back."""

from __future__ import annotations

from typing import Any

from wireglot.demo import service
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, dialect_name
from wireglot_core.traces.target import RecordedTarget
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceFrame, TraceMessage, traced
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import encode

MODEL = "demo-model"
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}


def path_of(name: str, stream: bool) -> str:
    method = "streamGenerateContent" if stream else "generateContent"
    return PATHS.get(name) or f"/v1beta/models/{MODEL}:{method}"


def recorded(source: str, target: str, body: dict[str, Any], *, stream: bool = False) -> Trace:
    """The exchange of a client that speaks `source` with the demo model, which speaks `target`."""
    client, upstream = dialect_name(source), dialect_name(target)
    id, at = "req_0123456789abcdef", 1_790_000_000.25
    context = Context(seed=id, now=int(at), call_prefix=dialect(source).surface.client.call_prefix or "call")
    sent = translate_request(
        body, source=client, target=upstream, model=MODEL, stream=stream, context=context
    )
    query = "alt=sse" if stream else ""
    where = service.target_of(path_of(target, stream), query)
    assert where is not None
    served = service.serve(where, encode(sent.value), seed="1", now=int(at))
    back: dict[str, Any] = {
        "source": upstream,
        "target": client,
        "request": body,
        "model": MODEL,
        "context": context,
    }
    if stream:
        translator = StreamTranslator(**back)
        pieces = [translator.feed(piece) for piece in served.pieces] + [translator.close()]
        answered = [traced(loss) for loss in translator.losses]
        came = _streamed(served.pieces)
        got = _streamed(tuple(pieces))
    else:
        whole = translate_response(served.body, **back)
        answered = [traced(loss) for loss in whole.losses]
        came = _whole(served.body)
        got = _whole(encode(whole.value))
    losses = [*(traced(loss) for loss in sent.losses), *answered]
    return Trace(
        version="0",
        row=Row(
            id=id,
            at=at,
            state="done",
            client="test",
            dialect=source,
            path=path_of(source, stream),
            asked=MODEL,
            provider="",
            model=MODEL,
            upstream_dialect=target,
            stream=stream,
            status=200,
            attempts=1,
            total_ms=12.5,
            recorded=True,
        ),
        request=_whole(encode(body), method="POST", url=path_of(source, stream)),
        answer=got,
        attempts=[
            Attempt(
                provider="",
                model=MODEL,
                dialect=target,
                request=_whole(encode(sent.value), method="POST", url=path_of(target, stream)),
                answer=came,
                limits=RecordedTarget(limits=None, stream=stream).written(),
                losses=losses,
            )
        ],
        losses=losses,
    )


def _whole(body: bytes, method: str = "", url: str = "") -> TraceMessage:
    status = 0 if method else 200
    return TraceMessage(method=method, url=url, status=status, body=body.decode(), bytes=len(body))


def _streamed(pieces: tuple[bytes, ...]) -> TraceMessage:
    frames = [TraceFrame(float(number), piece.decode()) for number, piece in enumerate(pieces) if piece]
    return TraceMessage(status=200, frames=frames, bytes=sum(map(len, pieces)))
