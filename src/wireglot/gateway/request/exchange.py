"""What is still open of one request: its answer, its record, what was put into it on its way.

`Answerer` is the contract of everything that answers: the relay, and the steps around it (see `steps.py`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from itertools import repeat
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.base import Dialect, RequestPlaces, WebSockets
from wireglot.dialects.registry import dialect
from wireglot.gateway.entry.gates import Gate
from wireglot.gateway.errors import UNTRANSLATABLE, RequestError, request_error, with_request_errors
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.account_details import shown_route
from wireglot.gateway.request.client_stream import ClientStream, Teller
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
from wireglot.ir.content import Media, Origin, Part, ToolResult
from wireglot.ir.embedding import EmbeddingRequest
from wireglot.ir.loss import Loss, worst_first
from wireglot.ir.outcome import Candidate, Usage, added
from wireglot.ir.purpose import RequestFacts
from wireglot.ir.request import Request
from wireglot.ir.safeguards import SafeguardResult
from wireglot.providers.carried import brought_back
from wireglot.web.contract import MediaFile

_OPENING_BYTES: Final = 1024

_MESSAGE_BYTES: Final = 200
"""Of a stored history only its messages are counted: the shortest ones are the most work for their size."""

MAX_REPORTED_LOSSES: Final = 128
"""Of one request, by the whole of it. A long conversation may lose one thing a thousand times."""


class FurtherAnswer(msgspec.Struct, frozen=True):
    """An answer that the gateway asked for because the upstream gives one to a request."""

    answer: Candidate
    usage: Usage | None
    estimated: bool = False
    """No provider reported the usage."""


class Exchange(msgspec.Struct, eq=False):
    """The mutable half of a request. `job` is what was asked, and never changes."""

    job: Job
    record: Record
    reply: Reply
    redactor: Redactor
    held: MemoryLease
    ending: Ending = msgspec.field(default_factory=Ending)
    """That of the request in whose place this one is asked, or one of its own."""
    codec: Dialect = None  # type: ignore[assignment]  # `__post_init__` has it
    """Of the client's dialect."""
    carrier: Carrier | None = None
    """What may carry it to an upstream in place of a request over HTTP: its client has a connection there."""
    tap: Tap | None = None
    """Who records it, where anybody does."""
    targets: tuple[Target, ...] = ()
    """Who may be asked, in this order; known once it is routed."""
    fall_back: Callable[[Exchange, int], Coroutine[Any, Any, None] | None] | None = None
    """Asked before the next target is tried, by its place: what answers from there on, None: the relay."""
    client: ClientStream | None = None
    """The client's side of a stream, once the relay has begun."""
    feeder: Teller | None = None
    losses: tuple[Loss, ...] = ()
    """The losses of this attempt that are reported to the client."""
    minter: Origin | None = None
    """Who writes what this attempt's answer leaves unsigned, where the client's dialect is another."""
    policy: str = ""
    """What is done about losses: as the caller wants it, else the route that is tried, else everybody."""
    tells_losses: bool = True
    client_document: dict[str, Any] | None = None
    """The whole answer as the client gets it, where nothing of it is hidden from the client."""
    unstored: bool = False
    """The store has not taken what it was to keep of the answer, which says so."""
    at_end: list[Callable[[BaseException | None], None]] = []
    """What is to be done when its answer has ended. Called with what it failed with, None where it has
    not."""
    gates: list[Gate] = []
    """Where it holds a place, of the gateway itself."""
    provider_gate: Gate | None = None
    """Where it holds a place, of a provider with a limit of concurrent requests."""
    checking: asyncio.Task[tuple[SafeguardResult, ...]] | None = None
    """The check of its answer, while that runs."""
    files: dict[tuple[str, str], MediaFile] = {}
    """What the gateway has downloaded for upstreams that take no addresses, by its address and kind."""
    answered_parts: dict[str, tuple[bytes, ...]] = {}
    """The answers that are there, by target, of a request for embeddings that is sent in several."""
    asking: list[asyncio.Task[FurtherAnswer]] = []
    """The gateway's own requests for further answers."""
    further: tuple[FurtherAnswer, ...] = ()
    """What came of them."""
    own_functions: frozenset[str] = frozenset()
    """Names of functions that the gateway runs itself: the client never sees their calls."""
    loaded_tools: frozenset[str] = frozenset()
    """Names of tools that searches of earlier turns found, which the conversation no longer shows."""
    safeguard_results: tuple[SafeguardResult, ...] = ()
    """What the gateway's own check of the answer has found out."""
    invented: tuple[Loss, ...] = ()
    foreseen: tuple[Loss, ...] = ()
    """What will be lost with every target, with a place in the client's own document."""
    estimates: Callable[[Exchange], int] | None = None
    """Knows what providers have reported of conversations before."""
    passed_back: Headers = []
    """Headers of the provider that go on to the client."""
    budget_headers: tuple[tuple[str, str], ...] = ()
    """Of a good answer: how much of the caller's budget is used."""
    estimates_input: bool = False
    """Whether the beginning of a stream reports a count that no provider has."""
    sealed: bool = False
    """Whether the conversation carries state that other providers minted, or may."""
    rewritten: bool = False
    """The request is more than its body: turns or reasoning were put back into it."""
    asks_state: bool = True
    """The upstream is asked for the reasoning state of its answer: not one whose model has none."""
    hides_state: bool = False
    """The client does not see the reasoning state of its answer, not even that of its own dialect."""
    withholds_reasoning: bool = False
    """The client has not asked to see reasoning, and what other dialects answer is kept for it."""
    stripped: bool = False
    """The upstream refused the reasoning state of old turns: it is left out."""
    is_large: bool = False
    """Whether work on the whole of it is to be done in a worker thread (`run_in_thread`)."""
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
        self.policy = job.policy or job.settings.losses
        self.sealed = job.content.sealed
        self.is_large = len(job.body) > LARGE_BYTES and _is_large(job)
        record.model, record.stream, record.session = job.model, job.stream, job.session
        record.facts = job.surface.client.facts(job.head.headers)
        if not job.session:
            record.body = job.body

    @property
    def embeds(self) -> bool:
        """Whether it is a request for embeddings: no conversation, and `request` cannot read it."""
        return self.job.asked.operation == "embed"

    @property
    def differs(self) -> bool:
        """Whether what is asked is more or less than the client's body says."""
        return self.stripped or bool(self.invented) or self.sealed

    def document(self) -> dict[str, Any]:
        """The body as JSON, decoded once."""
        if self._document is None:
            self._document = decoded(self.job)
        return self._document

    def recall(self) -> None:
        """Find what is known of the body, before it is decoded: it may be less work then."""
        self.job.content.recall()
        self.is_large = _is_large(self.job)

    def request(self) -> Request:
        """The body in neutral terms, with what the path says about it. Read once."""
        if self._request is None:
            if self._unread is not None:
                raise self._unread
            try:
                self._request = self._parsed()
            except RequestError as refusal:
                self._unread = refusal
                raise
            except UNTRANSLATABLE as fault:
                self._unread = request_error(fault)
                raise self._unread from None
        return self._request

    def embedding(self) -> EmbeddingRequest:
        """The body of a request for embeddings in neutral terms. Read once."""
        if self._embedding is None:
            job, spoken = self.job, self.job.surface.embeddings
            assert spoken is not None, "only a dialect with embeddings has a path to them"
            parse = spoken.forms[job.embed_operation].parse_request
            self._embedding = with_request_errors(lambda: parse(self.document(), job.context))
        return self._embedding

    def rewrite(self, request: Request) -> None:
        """Ask this instead of what the body says: it can no longer pass as it came."""
        self._request = request
        self._conversation = ""  # turns before it may be in it now
        self.rewritten = self.sealed = True
        self.is_large = self.is_large or len(request.messages) * _MESSAGE_BYTES > LARGE_BYTES

    def located(self, losses: tuple[Loss, ...], asked: Request | None = None) -> tuple[Loss, ...]:
        """Losses of `asked`, or of the body itself, at their places in the client's body."""
        places = self._own_places() if losses else None
        if places is None:
            return losses
        losses = some_of_each(losses)
        return places.located(losses, asked)

    def lose(self, *losses: Loss) -> None:
        """Found out with the answer, at places in the client's own document: where its head has not gone out
        yet, the answer tells them; the log and the page of losses do in any case."""
        self.record.lost(losses)
        if self.tells_losses:
            self.losses += losses

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
        """What stays the same over the turns of one conversation and differs between callers."""
        if not self._conversation:
            job = self.job
            self._conversation = Estimator.conversation(self.request(), job.session, job.caller.name)
        return self._conversation

    def expected_input(self) -> int:
        """How many tokens the one that answers has read, as far as can be known from here."""
        if self.estimates is not None:
            return self.estimates(self)
        return -(-token_weight(self.request()) // TOKEN)

    def estimated_usage(self, weight: int) -> Usage:
        """What an answer comes to whose provider does not report it. `weight`: in thousandths of a token."""
        return Usage(input=self.expected_input(), output=-(-weight // TOKEN))

    def affinity(self) -> str:
        """The same, also for a body that only its own vendor can read, or that is no conversation."""
        if not self.embeds:
            with suppress(RequestError):
                return self.conversation_key()
        opening = hashlib.blake2b(self.job.body[:_OPENING_BYTES], digest_size=8)
        return f"{self.job.caller.name}\x1f{opening.hexdigest()}"

    def effort(self) -> str:
        """What the request asks for, where we can read it."""
        if self.embeds:
            return ""
        try:
            return self.request().thinking.effort or ""
        except RequestError:
            return ""

    def facts(self) -> RequestFacts:
        """What the client's headers say that the request is for."""
        return self.record.facts

    def prompt_tokens(self) -> int:
        """An estimate of what the body itself holds, 0 where we cannot read it."""
        try:
            if self.embeds:
                return embedding_tokens(self.embedding().inputs)
            return -(-token_weight(self.request()) // TOKEN)
        except RequestError:
            return 0

    def has_images(self) -> bool:
        """Whether the body holds an image, where we can read it."""
        try:
            if self.embeds:
                contents = [each.content for each in self.embedding().inputs]
                return any(_holds_image(content) for content in contents if isinstance(content, tuple))
            messages = self.request().messages
        except RequestError:
            return False
        return any(_holds_image(message.content) for message in messages)

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer: its account is complete before the client has it."""
        listener = self.ending.listener
        if listener is not None:
            listener(body)
        self.ending.complete()
        self.reply.send(status, headers, body)

    def open_stream(self) -> None:
        """Begin the client's side of a stream: it is kept alive from now on. Where it was opened before,
        nothing of an answer has been written to it."""
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
        """What every answer tells about itself."""
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
        if self.losses:
            headers += loss_headers(self.losses, details=wants_details(job.head))
        if self.estimates_input:
            headers.append(ESTIMATE)
        headers += self.passed_back
        headers += self.budget_headers
        return headers

    def leave(self, problem: BaseException | None) -> None:
        """Its answer has ended: its places are free, and every step that waits for the end has it."""
        for gate in self.gates:
            gate.leave()
        self.gates.clear()
        raised: Exception | None = None
        while self.at_end:
            try:
                self.at_end.pop()(problem)
            except Exception as fault:  # one step that fails must not keep another from its end
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
        """Nothing more will come of it: its account is complete, and what holds one another lets go."""
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
    """What an answer and the further ones used."""
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
    """The worst of very many, and one at least of everything that happened."""
    if len(losses) <= MAX_REPORTED_LOSSES:
        return losses
    worst = worst_first(losses)
    firsts = {(loss.feature, loss.action): loss for loss in reversed(worst)}.values()
    return tuple(dict.fromkeys([*reversed(firsts), *worst]))[:MAX_REPORTED_LOSSES]


class Answerer(Protocol):
    def answer(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Have a request answered. Raises RequestError, or AttemptFailed of the last provider that was asked.

        A step around an answer that has nothing to do for a request hands on its inner one's coroutine.
        """
        ...


class OwnRound(Protocol):
    """What prepares a request of the gateway's own whose body does not say all that is asked."""

    problem: Exception | None
    """Set where it fails."""

    def begin(self, exchange: Exchange) -> None: ...


class Carrier(Protocol):
    """Another way to an upstream than one request over HTTP. It goes that way itself where there is none."""

    async def send(
        self, transport: Transport, request: Outbound, timeouts: Timeouts, spoken: WebSockets
    ) -> Answer: ...


class Tap(Protocol):
    """What a recorder of an exchange is given on its way. One that is not recorded has no tap."""

    def passed(self, stretch: str) -> None:
        """A stretch of the way lies behind it, which began where the one before ended."""
        ...

    def asking(self, target: Target, prepared: Prepared, asked: Request | None) -> None:
        """One more provider is asked, or the same one again. `asked`: where it is not what the client's body
        says, but what came of it."""
        ...

    def answering(self, answer: Answer) -> Answer:
        """The provider has begun to answer. To be read in its place: it tells what it is read of."""
        ...

    def attempt_failed(self, message: str) -> None: ...

    def beside(self, head: Head, body: bytes, record: Record) -> TapBeside:
        """What this one asks for is made in the background: an exchange of its own, recorded as this one."""
        ...


class TapBeside(Tap, Protocol):
    """Of an exchange that no client waits for."""

    def wrote(self, data: bytes) -> None:
        """What a client may fetch of it, as it is made."""
        ...

    def over(self) -> None:
        """Its record is complete, and its row not reported yet. Where it has none, nothing is kept."""
        ...

    def keep(self) -> None:
        """There is no more to come."""
        ...
