"""The dialect: eight functions for documents and streams, and what it is over HTTP.

Acme differs from OpenAI's Chat in words alone: each function asks Chat's and renames. A dialect that differs
in more parses into `wireglot_core.ir` itself, as those in `wireglot_core.dialects` do.
"""

from collections.abc import Iterable
from typing import Any

from acme_wireglot.words import renamed, renamed_frames
from wireglot_core.extension import (
    AnswerGlance,
    ApiError,
    Body,
    ClientSide,
    Context,
    Dialect,
    Event,
    ListedModel,
    ModelLists,
    Rendered,
    Request,
    RequestGlance,
    Response,
    Route,
    SseDecoder,
    Surface,
    Tap,
    UpstreamFault,
    UpstreamSide,
    decode,
    dialect,
    encode,
    whole_number,
)

CHAT = dialect("openai-chat")


# Documents.


def parse_request(body: dict[str, Any], context: Context) -> Request:
    return CHAT.parse_request(renamed(body), context)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_request(request, context)
    return Rendered(renamed(rendered.value), rendered.losses)


def parse_response(body: dict[str, Any], context: Context) -> Response:
    return CHAT.parse_response(renamed(body), context)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_response(response, context, request)
    return Rendered(renamed(rendered.value), rendered.losses)


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    return CHAT.parse_error(renamed(body), status)


# Streams.


class Reader:
    """Bytes of an Acme server, cut anywhere, to events."""

    def __init__(self, context: Context) -> None:
        self._frames = SseDecoder(context.max_frame)
        self._chat = CHAT.stream_reader(context)

    def read(self, data: bytes) -> list[Event]:
        try:
            frames = self._frames.feed(data)
        except UpstreamFault:  # an event without an end: the stream is broken
            return self._chat.end()
        return self._chat.read(renamed_frames(frames))

    def end(self) -> list[Event]:
        return [*self._chat.read(renamed_frames(self._frames.close())), *self._chat.end()]


class Writer:
    """Events to the bytes that an Acme client reads."""

    def __init__(self, context: Context, request: Request | None = None) -> None:
        self._chat = CHAT.stream_writer(context, request)
        self.losses = self._chat.losses

    def write(self, events: Iterable[Event]) -> bytes:
        frames = SseDecoder()
        return renamed_frames([*frames.feed(self._chat.write(events)), *frames.close()])


# Over HTTP.


class Listener:
    """Hears usage, stop and errors in a stream that passes through untouched, with Chat's ears."""

    def __init__(self, max_frame: int) -> None:
        self._tap: Tap = CHAT.surface.tap(max_frame)
        self._frames = SseDecoder(max_frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tap, name)

    def feed(self, data: bytes) -> None:
        self._tap.feed(renamed_frames(self._frames.feed(data)))

    def close(self) -> None:
        self._tap.feed(renamed_frames(self._frames.close()))
        self._tap.close()


def glance_answer(body: bytes) -> AnswerGlance:
    return CHAT.surface.glance(encode(renamed(decode(body))))


def glance_request(body: Body) -> RequestGlance:
    return RequestGlance(body.outline.get("engine") or "", body.outline.get("stream"))


def render_model(model: ListedModel) -> dict[str, Any]:
    return {"engine": model.id, "by": model.provider}


SURFACE = Surface(
    name="acme",
    family=CHAT.name,  # whose signatures and further fields it shares
    client=ClientSide(
        routes=(Route("POST", "/acme/talk", "generate"),),
        lists=("/acme/engines",),
        endpoints=("POST /acme/talk",),
        prefixes=("/acme/",),
        key_headers=(("x-acme-key", ""),),
        glance=glance_request,
        asked_output=lambda body: whole_number(body.outline.get("max_tokens")),
        asked_answers=lambda body: whole_number(body.outline.get("n")),
        sealed_marks=CHAT.surface.client.sealed_marks,
        pings={"sse": b": still here\n\n"},
    ),
    upstream=UpstreamSide(
        paths={"generate": "/talk", "stream": "/talk"},
        fixed_headers=(("x-acme-version", "7"),),
        request_id_headers=("x-acme-id",),
    ),
    model_field="engine",
    status=CHAT.surface.status,
    tap=Listener,
    glance=glance_answer,
    reasoning=CHAT.surface.reasoning,
    models=ModelLists(
        render_list=lambda listing, query: {"engines": [render_model(model) for model in listing]},
        render_model=render_model,
    ),
    check_usage=CHAT.surface.check_usage,
)

DIALECT = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=CHAT.render_error,
    stream_writer=Writer,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=Reader,
)
