"""The mutable state of one request: its answer, its record, and what was added to it.

`Answerer` is the interface of everything that answers: the relay, and the steps around it (see `steps.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, Protocol

import msgspec

from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import UNTRANSLATABLE, RequestError, request_error, with_request_errors
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.account_details import shown_route
from wireglot.gateway.request.attempt import Attempt
from wireglot.gateway.request.client_stream import ClientStream, RunningAnswer
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.request.headers import ESTIMATE, IDENTITY, cross_origin, loss_headers, wants_details
from wireglot.gateway.request.job import Job, decoded
from wireglot.gateway.request.results import with_calls
from wireglot.gateway.request.token_weight import TOKEN, Estimator, embedding_tokens, token_weight
from wireglot.gateway.request.worker_thread import LARGE_BYTES, weight
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.http.account import MemoryLease
from wireglot.http.application import Head, Headers, Reply
from wireglot.http.redaction import Redactor
from wireglot.http.transport import Answer, Outbound, Timeouts, Transport
from wireglot.web.contract import MediaFile
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.capabilities import WebSockets
from wireglot_core.dialects.places import RequestPlaces
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Media, Part, ToolResult
from wireglot_core.ir.embedding import EmbeddingRequest
from wireglot_core.ir.loss import Loss, worst_first
from wireglot_core.ir.outcome import Candidate, Usage, added
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.ir.request import Request
from wireglot_core.ir.safeguards import SafeguardResult
from wireglot_core.providers.carried import brought_back
from wireglot_core.providers.fit.thinking import effective_effort

_OPENING_BYTES: Final = 1024

_MESSAGE_BYTES: Final = 200
"""Estimated size of each message of a stored history, which are only counted: the shortest ones are the most
work for their size."""

MAX_REPORTED_LOSSES: Final = 128
"""Losses that are reported for one request: the worst, and at least one of each kind. A long conversation may
have the same loss a thousand times."""


class FurtherAnswer(msgspec.Struct, frozen=True):
    """A further answer that the gateway requested because the upstream gives one per request."""

    answer: Candidate
    usage: Usage | None
    estimated: bool = False
    """No provider reported the usage."""


class Exchange(msgspec.Struct, eq=False):
    """The mutable half of a request. `job` is what the client sent, and never changes."""

    job: Job
    record: ExchangeRecord
    reply: Reply
    redactor: Redactor
    held: MemoryLease
    attempt: Attempt = None  # type: ignore[assignment]  # `__post_init__` has it
    """The one that runs, or the last one."""
    ending: Ending = msgspec.field(default_factory=Ending)
    """Shared with the request in whose place this one is sent, or separate."""
    codec: Dialect = None  # type: ignore[assignment]  # `__post_init__` has it
    """Of the client's dialect."""
    carrier: Carrier | None = None
    """Sends it to an upstream in place of a request over HTTP, if its client has a WebSocket."""
    tap: Tap | None = None
    """The recorder, if it is recorded."""
    targets: tuple[Target, ...] = ()
    """The allowed targets in order; known once it is routed."""
    fall_back: Callable[[Exchange, int], Coroutine[Any, Any, None] | None] | None = None
    """Called before the next target is tried, with its index: returns what answers from there on; None: the
    relay."""
    client: ClientStream | None = None
    """The client's side of a stream, once the relay has begun."""
    feeder: RunningAnswer | None = None
    client_document: dict[str, Any] | None = None
    """The whole answer as the client gets it, if nothing of it is hidden from the client."""
    unstored: bool = False
    """The store has not accepted the answer's state, which the answer reports."""
    at_end: list[Callable[[BaseException | None], None]] = []
    """Called when its answer has ended, with the exception that it failed with, or None."""
    gates: list[Gate] = []
    """The gateway's gates where it holds a place."""
    provider_gate: Gate | None = None
    """The gate of a provider with a limit of concurrent requests, where it holds a place."""
    checking: asyncio.Task[tuple[SafeguardResult, ...]] | None = None
    """The running check of its answer."""
    files: dict[tuple[str, str], MediaFile] = {}
    """Files that the gateway has downloaded for upstreams that accept no URLs, by URL and kind."""
    answered_parts: dict[str, tuple[bytes, ...]] = {}
    """The answers received so far, by target, for a request for embeddings that is sent in several parts."""
    asking: list[asyncio.Task[FurtherAnswer]] = []
    """The gateway's own requests for further answers."""
    further: tuple[FurtherAnswer, ...] = ()
    """The results of those."""
    own_functions: frozenset[str] = frozenset()
    """Names of functions that the gateway runs itself: the client never sees their calls."""
    loaded_tools: frozenset[str] = frozenset()
    """Names of tools that searches of earlier turns found, which the conversation no longer shows."""
    safeguard_results: tuple[SafeguardResult, ...] = ()
    """The results of the gateway's own check of the answer."""
    invented: tuple[Loss, ...] = ()
    foreseen: tuple[Loss, ...] = ()
    """Losses with every target, with a place in the client's own document."""
    estimates: Callable[[Exchange], int] | None = None
    """Knows what providers have reported for conversations before."""
    budget_headers: tuple[tuple[str, str], ...] = ()
    """For a good answer: how much of the caller's budget is used."""
    estimates_input: bool = False
    """Whether the beginning of a stream reports an estimated count."""
    sealed: bool = False
    """Whether the conversation carries state that other providers minted, or may."""
    rewritten: bool = False
    """The request is more than its body: turns or reasoning were put back into it."""
    hides_state: bool = False
    """The client does not see the reasoning state of its answer, not even that of its own dialect."""
    withholds_reasoning: bool = False
    """The client has not asked to see reasoning, so that of other dialects is stored for it."""
    is_large: bool = False
    """Whether work on all of it must run in a worker thread (`run_in_thread`)."""
    _conversation: str = ""
    _document: dict[str, Any] | None = None
    _embedding: EmbeddingRequest | None = None
    _own: Request | None = None
    _places: RequestPlaces | None = None
    _request: Request | None = None
    _unread: RequestError | None = None

    def __post_init__(self) -> None:
        job, record = self.job, self.record
        self.codec = dialect(job.dialect)
        self.attempt = Attempt(job.policy or job.settings.losses)
        self.sealed = job.content.sealed
        self.is_large = len(job.body) > LARGE_BYTES and _is_large(job)
        record.model, record.stream, record.session = job.model, job.stream, job.session
        record.facts = job.surface.client.facts(job.head.headers)
        if not job.session:
            record.body = job.body

    @property
    def embeds(self) -> bool:
        """Whether it is a request for embeddings: no conversation, and `request` cannot parse it."""
        return self.job.asked.operation == "embed"

    @property
    def differs(self) -> bool:
        """Whether the request differs from the client's body."""
        return self.attempt.stripped or bool(self.invented) or self.sealed

    def document(self) -> dict[str, Any]:
        """The body as JSON, decoded once."""
        if self._document is None:
            self._document = decoded(self.job)
        return self._document

    def recall(self) -> None:
        """Find the cached parts of the body before it is decoded, which may save work."""
        self.job.content.recall()
        self.is_large = _is_large(self.job)

    def request(self) -> Request:
        """The body in neutral terms, with what the path says about it. Parsed once."""
        if self._request is None:
            if self._unread is not None:
                raise self._unread.again()
            try:
                self._request = self._parsed()
            except RequestError as refusal:
                self._unread = refusal.again()
                raise
            except UNTRANSLATABLE as fault:
                self._unread = request_error(fault)
                raise self._unread.again() from None
        return self._request

    def embedding(self) -> EmbeddingRequest:
        """The body of a request for embeddings in neutral terms. Parsed once."""
        if self._embedding is None:
            job, spoken = self.job, self.job.surface.embeddings
            assert spoken is not None, "only a dialect with embeddings has a path to them"
            parse = spoken.forms[job.embed_operation].parse_request
            self._embedding = with_request_errors(lambda: parse(self.document(), job.context))
        return self._embedding

    def rewrite(self, request: Request) -> None:
        """Send this instead of the body, which can no longer pass unchanged."""
        self._request = request
        self._conversation = ""  # it may contain earlier turns now
        self.rewritten = self.sealed = True
        self.is_large = self.is_large or len(request.messages) * _MESSAGE_BYTES > LARGE_BYTES

    def located(self, losses: tuple[Loss, ...], asked: Request | None = None) -> tuple[Loss, ...]:
        """Losses of `asked`, or of the body itself, with their places in the client's body."""
        places = self._own_places() if losses else None
        if places is None:
            return losses
        losses = some_of_each(losses)
        return places.located(losses, asked)

    def lose(self, *losses: Loss) -> None:
        """Report losses found with the answer, at places in the client's own document: in its headers if they
        have not been sent yet, and in any case in the log and the page of losses."""
        self.record.lost(losses)
        if self.attempt.policy != "silent":
            self.attempt.losses += losses

    def place(self, path: str, asked: Request) -> str:
        """A neutral place of `asked`, in the client's body."""
        places = self._own_places()
        return path if places is None else places.of(path, asked)

    def _own_places(self) -> RequestPlaces | None:
        places = self.codec.places
        if self._places is None and places is not None and self._own is not None:
            self._places = RequestPlaces(places, self.document(), self._own)
        return self._places

    def conversation_key(self) -> str:
        """A key that stays the same over the turns of one conversation and differs between callers."""
        if not self._conversation:
            job = self.job
            self._conversation = Estimator.conversation(self.request(), job.session, job.caller.name)
        return self._conversation

    def expected_input(self) -> int:
        """How many tokens the answering provider has read, as far as the gateway can know."""
        if self.estimates is not None:
            return self.estimates(self)
        return -(-token_weight(self.request()) // TOKEN)

    def estimated_usage(self, weight: int) -> Usage:
        """The usage of an answer whose provider does not report it. `weight`: in thousandths of a token."""
        return Usage(input=self.expected_input(), output=-(-weight // TOKEN))

    def affinity(self) -> str:
        """The same, also for a body that only its own vendor can read, or that is not a conversation."""
        if not self.embeds:
            with suppress(RequestError):
                return self.conversation_key()
        opening = hashlib.blake2b(self.job.body[:_OPENING_BYTES], digest_size=8)
        return f"{self.job.caller.name}\x1f{opening.hexdigest()}"

    def effort(self) -> str:
        """The requested effort, also one that is given as a budget, if the body can be parsed."""
        if self.embeds:
            return ""
        try:
            return effective_effort(self.request().thinking) or ""
        except RequestError:
            return ""

    def facts(self) -> RequestFacts:
        """The purpose of the request, by the client's headers."""
        return self.record.facts

    def prompt_tokens(self) -> int:
        """An estimate for the body itself; 0 if it cannot be parsed."""
        try:
            if self.embeds:
                return embedding_tokens(self.embedding().inputs)
            return -(-token_weight(self.request()) // TOKEN)
        except RequestError:
            return 0

    def has_images(self) -> bool:
        """Whether the body contains an image, if it can be parsed."""
        try:
            if self.embeds:
                contents = [each.content for each in self.embedding().inputs]
                return any(_holds_image(content) for content in contents if isinstance(content, tuple))
            messages = self.request().messages
        except RequestError:
            return False
        return any(_holds_image(message.content) for message in messages)

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a whole answer: its account is completed before the client has it."""
        listener = self.ending.listener
        if listener is not None:
            listener(body)
        self.ending.complete()
        self.reply.send(status, headers, body)

    def open_stream(self) -> None:
        """Begin the client's side of a stream: it is kept alive from now on. If it was opened before, nothing
        of an answer has been written to it."""
        job, before = self.job, self.client
        self.client = ClientStream(
            self.reply,
            self.ending,
            self.record,
            surface=job.surface,
            framing=job.context.framing,
            ping_seconds=job.settings.limits.ping,
            headers=self.headers,
        )
        if before is not None:
            before.close()
            self.client.opened = before.opened

    def headers(self) -> Headers:
        """The headers of every answer."""
        record, job = self.record, self.job
        headers = list(zip((*IDENTITY, *job.surface.client.identity_headers), repeat(record.id)))
        if record.provider:
            route = f"{record.provider}/{record.upstream_model}"
            if job.caller.key is not None:
                route = shown_route(record.provider, record.upstream_model)
            headers.append(("x-wireglot-route", route))
        origin = job.head.headers.get("origin")
        if origin is not None and origin in job.settings.server.origins:
            headers += cross_origin(origin)
        if self.attempt.losses:
            headers += loss_headers(self.attempt.losses, details=wants_details(job.head))
        if self.estimates_input:
            headers.append(ESTIMATE)
        headers += self.attempt.returned_headers
        headers += self.budget_headers
        return headers

    def leave(self, problem: BaseException | None) -> None:
        """Its answer has ended: its places are free, and every step that waits for the end is called."""
        for gate in self.gates:
            gate.leave()
        self.gates.clear()
        raised: Exception | None = None
        while self.at_end:
            try:
                self.at_end.pop()(problem)
            except Exception as fault:  # one failing step must not keep others from ending
                raised = raised or fault
                problem = problem or fault
        if raised is not None:
            raise raised

    def leave_provider(self) -> None:
        """The provider has answered: another request may have its place."""
        gate, self.provider_gate = self.provider_gate, None
        if gate is not None:
            gate.leave()

    def close(self) -> None:
        """The request is over: its account is complete, and reference cycles are broken."""
        if self.client is not None:
            self.client.close()
        if self.checking is not None:
            self.checking.cancel()  # it is done, unless the client has left
        for task in self.asking:
            task.cancel()
        self.ending.close()
        self.held.release()
        self.client = self.feeder = None

    def _parsed(self) -> Request:
        job = self.job
        request = self._own = self.codec.parse_request(self.document(), job.content.reading(job.context))
        if job.surface.client.results_without_calls and not job.conversation:
            request, self.invented = with_calls(request)
        if self.sealed:
            request = brought_back(request)
        return msgspec.structs.replace(request, model=job.model or request.model, stream=job.stream)


def whole_usage(usage: Usage | None, further: tuple[FurtherAnswer, ...]) -> Usage | None:
    """The usage of an answer and the further ones."""
    for each in further:
        usage = added(usage, each.usage)
    return usage


def _holds_image(parts: Iterable[Part]) -> bool:
    return any(
        part.kind == "image"
        if isinstance(part, Media)
        else isinstance(part, ToolResult) and _holds_image(part.content)
        for part in parts
    )


def _is_large(job: Job) -> bool:
    return weight(job.body, job.outline.grown) > LARGE_BYTES


def some_of_each(losses: tuple[Loss, ...]) -> tuple[Loss, ...]:
    """The worst of very many, and at least one of every kind."""
    if len(losses) <= MAX_REPORTED_LOSSES:
        return losses
    worst = worst_first(losses)
    firsts = {(loss.feature, loss.action): loss for loss in reversed(worst)}.values()
    return tuple(dict.fromkeys([*reversed(firsts), *worst]))[:MAX_REPORTED_LOSSES]


class Answerer(Protocol):
    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Have a request answered. Raises RequestError, or AttemptFailed of the last provider that was
        called.

        A step around an answer that has nothing to do for a request returns its inner one's coroutine.
        """
        ...


class OwnRound(Protocol):
    """Prepares a request sent by the gateway itself whose body does not contain the whole request."""

    problem: Exception | None
    """Set if it fails."""

    def begin(self, exchange: Exchange) -> None: ...


class Carrier(Protocol):
    """Another way to an upstream than one request over HTTP. It uses HTTP itself if the other way fails."""

    async def send(
        self, transport: Transport, request: Outbound, timeouts: Timeouts, spoken: WebSockets
    ) -> Answer: ...


class Tap(Protocol):
    """Called by an exchange that is recorded. Others have no tap."""

    def passed(self, stretch: str) -> None:
        """A stage of the request has ended, which began where the one before ended."""
        ...

    def asking(self, target: Target, prepared: Prepared, asked: Request | None) -> None:
        """A provider is called, for the first time or again. `asked`: the request, if it differs from the
        client's body."""
        ...

    def answering(self, answer: Answer) -> Answer:
        """The provider has begun to answer. The returned answer must be read instead: it records what is
        read."""
        ...

    def attempt_failed(self, message: str) -> None: ...

    def beside(self, head: Head, body: bytes, record: ExchangeRecord) -> TapBeside:
        """This request starts another one in the background: a separate exchange, recorded like this one."""
        ...


class TapBeside(Tap, Protocol):
    """For an exchange that no client waits for."""

    def wrote(self, data: bytes) -> None:
        """Output that a client may fetch, as it is made."""
        ...

    def over(self) -> None:
        """Its record is complete, and its row not reported yet. Without a record, nothing is kept."""
        ...

    def keep(self) -> None:
        """No more will come."""
        ...
