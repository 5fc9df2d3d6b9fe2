"""A dialect that no file of `src` knows: Chat's content under other names, paths, headers and an end of its own.

Requests have an `engine` and a `talk`, answers have `replies`; a stream ends with `[END]`.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from wireglot_core.extension import (
    AnswerGlance,
    ApiError,
    BadJson,
    Body,
    ClientSide,
    Context,
    Counts,
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
from wireglot_core.testing import Samples

NAME = "acme"
CHAT = dialect("openai-chat")

_TO_CHAT = {"engine": "model", "talk": "messages", "replies": "choices"}
_TO_ACME = {chat: own for own, chat in _TO_CHAT.items()}


def chat_words(document: Any) -> Any:
    return _renamed(document, _TO_CHAT)


def acme_words(document: Any) -> Any:
    return _renamed(document, _TO_ACME)


def _renamed(document: Any, names: dict[str, str]) -> Any:
    """Only at the top, and only where nothing else stands under the other name."""
    if not isinstance(document, dict):
        return document
    both = {**names, **{other: name for name, other in names.items()}}
    return {both.get(key, key): value for key, value in document.items()}


# Documents.


def parse_request(body: dict[str, Any], context: Context) -> Request:
    return CHAT.parse_request(chat_words(body), context)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_request(request, context)
    return Rendered(acme_words(rendered.value), rendered.losses)


def parse_response(body: dict[str, Any], context: Context) -> Response:
    return CHAT.parse_response(chat_words(body), context)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_response(response, context, request)
    return Rendered(acme_words(rendered.value), rendered.losses)


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    return CHAT.parse_error(chat_words(body), status)


# Streams.


def _frame(data: bytes, end: bytes, other: bytes, words: Any) -> bytes:
    if data == end:
        return other
    try:
        return encode(words(decode(data)))
    except BadJson:
        return data


class Reader:
    words = staticmethod(chat_words)
    last = b"[END]"

    def __init__(self, context: Context) -> None:
        self._frames = SseDecoder(context.max_frame)
        self._chat = CHAT.stream_reader(context)

    def read(self, data: bytes) -> list[Event]:
        try:
            frames = self._frames.feed(data)
        except UpstreamFault:
            return self._chat.end()
        return self._read(frames)

    def end(self) -> list[Event]:
        return [*self._read(self._frames.close()), *self._chat.end()]

    def _read(self, frames: Iterable[Any]) -> list[Event]:
        data = b"".join(
            b"data: %b\n\n" % _frame(frame.data, self.last, b"[DONE]", self.words) for frame in frames
        )
        return self._chat.read(data) if data else []


class Writer:
    words = staticmethod(acme_words)
    last = b"[END]"

    def __init__(self, context: Context, request: Request | None = None) -> None:
        self._chat = CHAT.stream_writer(context, request)
        self.losses = self._chat.losses

    def write(self, events: Iterable[Event]) -> bytes:
        return _in_words(self._chat.write(events), self.words, self.last)


def _in_acme(data: bytes) -> bytes:
    return _in_words(data, acme_words, b"[END]")


def _in_words(data: bytes, words: Any, last: bytes) -> bytes:
    frames = SseDecoder()
    return b"".join(
        b"data: %b\n\n" % _frame(frame.data, b"[DONE]", last, words)
        for frame in (*frames.feed(data), *frames.close())
    )


# Over HTTP.


class Listener:
    """Chat's tap behind a translation of each frame."""

    words = staticmethod(chat_words)
    last = b"[END]"

    def __init__(self, max_frame: int) -> None:
        self._tap: Tap = CHAT.surface.tap(max_frame)
        self._frames = SseDecoder(max_frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tap, name)

    def feed(self, data: bytes) -> None:
        self._hear(self._frames.feed(data))

    def close(self) -> None:
        self._hear(self._frames.close())
        self._tap.close()

    def _hear(self, frames: Iterable[Any]) -> None:
        for frame in frames:
            self._tap.feed(b"data: %b\n\n" % _frame(frame.data, self.last, b"[DONE]", self.words))


def glance(body: bytes) -> AnswerGlance:
    return CHAT.surface.glance(encode(chat_words(decode(body))))


def glance_request(body: Body) -> RequestGlance:
    return RequestGlance(body.outline.get("engine") or "", body.outline.get("stream"))


def parse_count(body: dict[str, Any], context: Context) -> Request:
    return parse_request(body, context)


def render_count(request: Request, context: Context, base_url: str) -> Rendered[dict[str, Any]]:
    return render_request(replace(request, stream=None), context)


def parse_tokens(body: Any) -> int:
    tokens = body.get("tokens") if isinstance(body, dict) else None
    if type(tokens) is not int:
        raise UpstreamFault("expected a count of tokens", "$.tokens")
    return tokens


def render_list(listing: Any, query: Any) -> dict[str, Any]:
    return {"engines": [render_model(model) for model in listing]}


def render_model(model: ListedModel) -> dict[str, Any]:
    return {"engine": model.id, "by": model.provider}


SURFACE = Surface(
    name=NAME,
    family=CHAT.name,
    client=ClientSide(
        routes=(
            Route("POST", "/acme/talk", "generate"),
            Route("POST", "/acme/count", "count"),
        ),
        lists=("/acme/engines",),
        endpoints=("POST /acme/talk", "POST /acme/count"),
        prefixes=("/acme/",),
        headers=("x-acme-version",),
        key_headers=(("x-acme-key", ""),),
        glance=glance_request,
        asked_output=lambda body: whole_number(body.outline.get("max_tokens")),
        asked_answers=lambda body: whole_number(body.outline.get("n")),
        conversation_field="conversation",
        gateway_fields=frozenset({"conversation"}),
        sealed_marks=CHAT.surface.client.sealed_marks,
        pings={"sse": b": still here\n\n"},
        call_prefix="acme",
        identity_headers=("x-acme-id",),
    ),
    upstream=UpstreamSide(
        paths={"generate": "/talk", "stream": "/talk", "count": "/count", "models": "/engines"},
        passed_headers=("x-acme-version",),
        fixed_headers=(("x-acme-version", "7"),),
        returned_headers=("x-acme-left",),
        request_id_headers=("x-acme-id",),
    ),
    model_field="engine",
    status=lambda error: 418 if error.kind == "overloaded" else CHAT.surface.status(error),
    tap=Listener,
    glance=glance,
    reasoning=CHAT.surface.reasoning,
    models=ModelLists(render_list=render_list, render_model=render_model),
    counts=Counts(
        parse_request=parse_count,
        render_answer=lambda tokens: {"tokens": tokens},
        render_request=render_count,
        parse_answer=parse_tokens,
        same_body=True,
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


def acme_samples(chat: Samples) -> Samples:
    """Those of Chat, in other words."""
    return Samples(
        [acme_words(body) for body in chat.requests],
        [acme_words(body) for body in chat.responses],
        [_in_acme(data) for data in chat.streams],
        chat.errors,
        [(_in_acme(data), acme_words(body)) for data, body in chat.twins],
    )
