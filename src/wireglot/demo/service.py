"""The demo model behind the paths of every dialect: a request's bytes in, the bytes of its answer out.

No sockets and no clock: the code that delivers the pieces (`transport` in the process, `wireglot.testing`
over HTTP) waits between them and ends them as `Served` says.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from wireglot.demo import script, vectors, words
from wireglot.http.application import Headers
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.capabilities import EmbedOperation
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import Extra, ToolCall
from wireglot_core.ir.embedding import Embedding, EmbeddingResponse
from wireglot_core.ir.errors import ApiError, ClientFault, Unsupported
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, PartStart, Start, unfold
from wireglot_core.providers.endpoints import Operation
from wireglot_core.wire.json import BadJson, decode, encode

MODELS: Final = ("demo",)
"""The listed models. It answers to every name."""

_JSON: Final = "application/json"
_SSE: Final = "text/event-stream"

_ENDS: Final[tuple[tuple[str, str, Operation], ...]] = (
    ("/messages/count_tokens", "anthropic", "count"),
    ("/messages", "anthropic", "generate"),
    ("/chat/completions", "openai-chat", "generate"),
    ("/responses/input_tokens", "openai-responses", "count"),
    ("/responses", "openai-responses", "generate"),
    ("/interactions", "gemini-interactions", "generate"),
    ("/api/chat", "ollama", "generate"),
    ("/api/generate", "ollama-generate", "generate"),
    ("/api/tags", "ollama", "models"),
    ("/api/embed", "ollama", "embed"),
    ("/api/embeddings", "ollama", "embed_one"),
    ("/embeddings", "openai-chat", "embed"),
)
_METHODS: Final[dict[str, Operation]] = {
    "generateContent": "generate",
    "streamGenerateContent": "stream",
    "countTokens": "count",
}
_EMBEDS: Final[dict[str, EmbedOperation]] = {"embedContent": "embed_one", "batchEmbedContents": "embed"}
_GEMINI: Final = re.compile(r"/(?:models|publishers/[^/]+/models|tunedModels)/(.+)\Z", re.DOTALL)
_VERB: Final = re.compile(r"\w+")
_CODE_ASSIST: Final = re.compile(r"/v1internal:(\w+)$")
_LISTING: Final = re.compile(r"/models(?:/(.+))?\Z", re.DOTALL)
_IDS: Final = {
    "anthropic": "msg_demo",
    "openai-chat": "chatcmpl-demo",
    "openai-responses": "resp_demo",
    "gemini-interactions": "v1_demo",
}
_COUNTS: Final = {"anthropic": "input_tokens", "openai-responses": "input_tokens"}


_NO_THREADS: Final = ApiError(
    "invalid_request",
    "thread is not supported",
    400,
    extra=Extra(
        "anthropic",
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "thread is not supported",
                "details": {"error_code": "thread_unsupported_request", "unsupported": ["thread"]},
            },
        },
    ),
)
"""The demo stores no conversations. Anthropic's SDK sends the whole history after exactly this refusal."""


class _Refused(Exception):
    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


class DemoTarget(msgspec.Struct, frozen=True):
    """The operation at a path. Not `sse`: Gemini's streams are one JSON array unless the query asks for
    SSE."""

    dialect: str
    operation: Operation
    model: str = ""
    sse: bool = True


class Served(msgspec.Struct, frozen=True):
    """An answer in pieces, sent `gap` seconds apart. `streams`: its length is not known."""

    status: int
    headers: Headers
    pieces: tuple[bytes, ...]
    streams: bool = False
    gap: float = 0.0
    ending: script.Ending = "complete"

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)


def target_of(path: str, query: str = "", headers: Mapping[str, str] = {}) -> DemoTarget | None:
    """The dialect and operation after any base URL. `headers` distinguish clients that list models."""
    for end, name, operation in _ENDS:
        if path.endswith(end):
            return DemoTarget(name, operation)
    if (found := _CODE_ASSIST.search(path)) is not None:
        known = _METHODS.get(found[1])
        return DemoTarget("code-assist", known, "", "alt=sse" in query) if known is not None else None
    named, _, verb = path.rpartition(":")
    if _VERB.fullmatch(verb) and (found := _GEMINI.search(named)) is not None:
        known = _METHODS.get(verb) or _EMBEDS.get(verb)
        return (
            DemoTarget("gemini", known, unquote(found[1]), "alt=sse" in query) if known is not None else None
        )
    if (found := _LISTING.search(path)) is not None:
        return DemoTarget(_listing_dialect(path, headers), "models", unquote(found[1] or ""))
    return None


def serve(
    target: DemoTarget, body: bytes, *, seed: str = "", now: int = 0, ending: script.Ending | None = None
) -> Served:
    """The demo model's answer. Never raises: an invalid request gets the dialect's own error.

    `ending` overrides the request's directives.
    """
    if target.operation == "models":
        return _whole(_listing(target, now), seed)
    speaks = dialect(target.dialect)
    if target.operation == "embed" or target.operation == "embed_one":
        return _embedded(speaks, target, target.operation, body, seed)
    try:
        request, stream = _read(speaks, target, body)
    except _Refused as fault:
        return refused(target.dialect, fault.error, seed)
    except (ClientFault, Unsupported, BadJson) as fault:
        return refused(target.dialect, ApiError("invalid_request", str(fault), 400), seed)
    if target.operation == "count":
        return _whole(
            {_COUNTS.get(target.dialect, "totalTokens"): script.count(request), **_kind(target)}, seed
        )
    written = script.answer(request, seed=seed, dialect=target.dialect)
    if written.error is not None:
        return refused(target.dialect, written.error, seed)
    if ending is not None:
        written = msgspec.structs.replace(written, ending=ending)
    identifier = (
        _IDS.get(target.dialect, "demo") + hashlib.blake2b(body + seed.encode(), digest_size=9).hexdigest()
    )
    response = Response(
        identifier,
        request.model or MODELS[0],
        content=written.content,
        stop=written.stop,
        usage=written.usage,
        created=now,
    )
    context = Context(seed=identifier, now=now, framing="sse" if target.sse else "json-array")
    if stream:
        return _streamed(speaks, response, request, context, written)
    if written.ending == "fail":
        return refused(target.dialect, written.failure, seed)
    document = encode(speaks.render_response(response, context, request).value)
    if written.ending in ("cut", "hang"):
        document = document[: len(document) // 2]
    return Served(200, _headers(_JSON, identifier), (document,), gap=written.gap, ending=written.ending)


def _embedded(
    speaks: Dialect, target: DemoTarget, operation: EmbedOperation, body: bytes, seed: str
) -> Served:
    embeddings = speaks.surface.embeddings
    assert embeddings is not None, f"{target.dialect} has a path to them"
    form = embeddings.forms[operation]
    try:
        document = decode(body)
        if not isinstance(document, dict):
            raise ClientFault("expected a JSON object")
        request = form.parse_request(document, Context())
        for index, given in enumerate(request.inputs):
            if (given.dimensions or 0) > vectors.MAX_DIMENSIONS:
                place = form.place(f"$.inputs[{index}].dimensions", request)
                raise ClientFault(f"expected at most {vectors.MAX_DIMENSIONS}", place)
    except (ClientFault, Unsupported, BadJson) as fault:
        return refused(target.dialect, ApiError("invalid_request", str(fault), 400), seed)
    response = EmbeddingResponse(
        request.model or target.model or MODELS[0],
        tuple(Embedding(vectors.vector(given)) for given in request.inputs),
        usage=Usage(input=sum(words.tokens(vectors.text_of(given.content)) for given in request.inputs)),
    )
    return _whole(form.render_response(response, Context(), request).value, seed)


def refused(name: str, error: ApiError, seed: str = "") -> Served:
    """An error as a whole answer, with its own status."""
    document = encode(dialect(name).render_error(error, Context()).value)
    headers = _headers(_JSON, "req_demo" + hashlib.blake2b(seed.encode(), digest_size=6).hexdigest())
    if error.retry_after is not None:
        whole = error.retry_after == int(error.retry_after)
        wait = ("retry-after", str(int(error.retry_after)))
        headers.append(wait if whole else ("retry-after-ms", str(round(error.retry_after * 1000))))
    return Served(error.status or 500, headers, (document,))


def pieces_of(
    speaks: Dialect, events: Iterable[Event], context: Context, request: Request | None
) -> Iterator[bytes]:
    """The bytes for each event that has any in a stream of this dialect."""
    writer = speaks.stream_writer(context, request)
    framing = speaks.surface.client.framing
    framer = framing.framer(context.max_frame) if framing is not None else None
    for event in events:
        data = writer.write((event,))
        if data:
            yield framer.feed(data) if framer is not None else data


def small_deltas(response: Response) -> list[Event]:
    """The events of a response as a model would send them: word by word, arguments a few characters each."""
    events: list[Event] = []
    calls: set[int] = set()
    whole = response.usage or Usage()
    # The usage of the prompt is known from the start, and Anthropic reports it there.
    known = Usage(input=whole.input, cache_read=whole.cache_read, output=1)
    for event in unfold(response):
        if isinstance(event, PartStart) and isinstance(event.part, ToolCall):
            calls.add(event.index)
        if isinstance(event, Start):
            events.append(msgspec.structs.replace(event, usage=known))
        elif not isinstance(event, Delta):
            events.append(event)
        elif event.index in calls:
            events += [Delta(event.index, bit) for bit in words.even_pieces(event.text)]
        else:
            events += [Delta(event.index, bit) for bit in words.word_pieces(event.text)]
    return events


def _read(speaks: Dialect, target: DemoTarget, body: bytes) -> tuple[Request, bool]:
    document = decode(body)
    if not isinstance(document, dict):
        raise ClientFault("expected a JSON object")
    if target.dialect == "anthropic" and document.get("thread") is not None:
        raise _Refused(_NO_THREADS)
    inner = document.get("generateContentRequest")
    if target.operation == "count" and isinstance(inner, dict):
        document = inner
    request = speaks.parse_request(document, Context())
    if target.model and not request.model:
        request = msgspec.structs.replace(request, model=target.model)
    return request, target.operation == "stream" or bool(request.stream)


def _streamed(
    speaks: Dialect, response: Response, request: Request, context: Context, written: script.Script
) -> Served:
    events = small_deltas(response)
    if written.ending in ("fail", "cut", "hang"):
        deltas = [number for number, event in enumerate(events) if isinstance(event, Delta)]
        half = deltas[len(deltas) // 2] if deltas else 1
        events = [event for event in events[: half + 1] if not isinstance(event, Finish)]
    if written.ending == "fail":
        events.append(Failure(written.failure))
    framing = speaks.surface.client.framing
    kind = framing.content_type if framing is not None else _SSE if context.framing == "sse" else _JSON
    pieces = tuple(pieces_of(speaks, events, context, request))
    return Served(
        200, _headers(kind, response.id), pieces, streams=True, gap=written.gap, ending=written.ending
    )


def _headers(kind: str, identifier: str) -> Headers:
    return [("content-type", kind), ("x-request-id", identifier), ("request-id", identifier)]


def _whole(document: dict[str, Any], seed: str) -> Served:
    return Served(200, _headers(_JSON, f"req_demo{seed}"), (encode(document),))


def _kind(target: DemoTarget) -> dict[str, str]:
    return {"object": "response.input_tokens"} if target.dialect == "openai-responses" else {}


def _listing_dialect(path: str, headers: Mapping[str, str]) -> str:
    if "anthropic-version" in headers:
        return "anthropic"
    return "gemini" if "x-goog-api-key" in headers or "/v1beta" in path else "openai-chat"


def _listing(target: DemoTarget, now: int) -> dict[str, Any]:
    names = (target.model,) if target.model else MODELS
    if target.dialect == "ollama":
        listing = [ListedModel(name, "demo") for name in names]
        return surface(target.dialect).models.render_list(listing, {})
    if target.dialect == "anthropic":
        made = [
            {
                "type": "model",
                "id": name,
                "display_name": "Wireglot demo",
                "created_at": "2026-01-01T00:00:00Z",
            }
            for name in names
        ]
        rest: dict[str, Any] = {"has_more": False, "first_id": names[0], "last_id": names[-1]}
        return made[0] if target.model else {"data": made, **rest}
    if target.dialect == "gemini":
        found = [
            {
                "name": f"models/{name}",
                "version": "001",
                "displayName": "Wireglot demo",
                "inputTokenLimit": 1_000_000,
                "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            }
            for name in names
        ]
        return found[0] if target.model else {"models": found}
    data = [{"id": name, "object": "model", "created": now, "owned_by": "wireglot"} for name in names]
    return data[0] if target.model else {"object": "list", "data": data}


_SCHEME = "demo:"


class DemoTransport:
    """Answers requests to `demo:` URLs. `seed` keeps the ids of two gateways distinct."""

    waiting = 0
    """The number of connections is unlimited."""

    def __init__(self, seed: str = "", clock: Callable[[], float] = time.time) -> None:
        self._seed = seed
        self._clock = clock

    async def send(self, request: Outbound, timeouts: Timeouts) -> Answer:
        path, _, query = request.url.removeprefix(_SCHEME).partition("?")
        headers = dict(request.headers)
        target = target_of(path, query, headers)
        if target is None:
            unknown = ApiError("not_found", f"The demo provider has nothing at {path}", 404)
            return DemoAnswer(refused("openai-chat", unknown), timeouts)
        served = serve(target, request.body, seed=self._seed, now=int(self._clock()))
        if served.ending == "silent":
            await asyncio.sleep(min(timeouts.first_byte, timeouts.total))
            raise TransportFault("first_byte_timeout", "the demo provider was instructed not to answer")
        return DemoAnswer(served, timeouts)

    async def close(self) -> None:
        """Nothing to close."""


class DemoAnswer:
    """Its pieces come one by one, `gap` apart, so that other tasks can run in between."""

    def __init__(self, served: Served, timeouts: Timeouts) -> None:
        self.status = served.status
        self.headers = {name.lower(): value for name, value in served.headers}
        if not served.streams:
            self.headers["content-length"] = str(len(served.body))
        self._served = served
        self._timeouts = timeouts
        self._aborted = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        kept = bytearray()

        def keep(piece: bytes) -> None:
            kept.extend(piece)
            if held is not None:
                held(len(piece))
            if len(kept) > limit:
                raise TransportFault("too_large", f"the answer is larger than {limit} bytes")

        await self.pump(keep)
        return bytes(kept)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeouts.total
        for piece in self._served.pieces:
            await self._pass(self._served.gap)
            await self._flowing.wait()
            if clock() > deadline:
                raise TransportFault("total_timeout", "the demo provider was instructed to be slow")
            if self._aborted:
                raise TransportFault("broken", "the answer was aborted")
            feed(piece)
        if self._served.ending == "hang":
            await self._pass(float("inf"))
        if self._served.ending == "cut" and not self._served.streams:
            raise TransportFault("broken", "the demo provider was instructed to cut its answer")

    def pause(self) -> None:
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def abort(self) -> None:
        self._aborted = True
        self._flowing.set()

    async def _pass(self, gap: float) -> None:
        limit = min(self._timeouts.idle, self._timeouts.total)
        await asyncio.sleep(min(gap, limit))
        if gap > limit:
            raise TransportFault("idle_timeout", "the demo provider was instructed to fall silent")
