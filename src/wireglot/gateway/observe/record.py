"""What is known about one request: updated by methods as it proceeds, read by every sink."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

import msgspec

from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss, grouped
from wireglot_core.ir.outcome import Usage, added
from wireglot_core.ir.purpose import NO_FACTS, RequestFacts
from wireglot_core.ir.usage import kinds_of

Outcome = Literal["ok", "error", "client_abort", "gateway_abort"]
UsageSource = Literal["provider", "partial", "estimated", "none"]

CLIENT_LEFT = 499
"""The status of a request whose client has gone, as in nginx's log."""


class Record(msgspec.Struct):
    """Times are monotonic seconds. "" and None: unknown, or not reached."""

    id: str
    started: float
    dialect: str = ""
    operation: str = ""
    caller: str = ""
    """The name of the client's key."""
    model: str = ""
    """As the client named it."""
    stream: bool = False
    session: str = ""
    """From the client's own header, or the conversation it named."""
    body: bytes = b""
    """The client's body, if it names no session: the list uses it to join turns, when it is opened."""
    path: str = ""
    """Without its query; reported if there is no operation, or for an error."""
    agent: str = ""
    """The client's User-Agent."""
    facts: RequestFacts = NO_FACTS
    """The purpose of the request, by the client's headers."""
    traceparent: str = ""
    """The client's own, if it traces."""
    asked_as: str = ""
    """The id that the client was given, if the work continues under another."""
    within: str = ""
    """The id of the client's request, if the gateway itself sends this one to answer it."""

    provider: str = ""
    upstream_model: str = ""
    upstream_dialect: str = ""
    upstream_url: str = ""
    """Only its host and port are ever reported."""
    passthrough: bool = False
    account: str = ""
    attempts: int = 0
    fallbacks: list[str] = []
    """The targets (`provider/model`) that failed before this one."""

    status: int = 0
    outcome: Outcome = "ok"
    stop: str = ""
    error_kind: str = ""
    error_code: str = ""
    error_message: str = ""
    error_fix: str = ""
    """A hint for the operator where to look."""
    usage: Usage | None = None
    """Including attempts that ended without an answer: they were paid for."""
    usage_source: UsageSource = "none"
    token_kinds: tuple[int, ...] | None = None
    """See `kinds`."""
    wasted: Usage | None = None
    """The usage of those attempts alone."""
    cost: int | None = None
    """In millionths of the currency, as in the ledger; None: unknown, or nothing was counted."""
    losses: list[Loss] = []
    loss_groups: list[Loss] | None = None
    """See `grouped_losses`."""
    response_model: str = ""
    """The name that the provider reports in its answer."""
    upstream_request_id: str = ""
    """The provider's id for its answer."""
    notes: list[str] = []
    flaws: list[str] = []
    """Rules that the provider violated: in its stream (`ir.stream.FLAWS`), or in its token counts."""

    waits: str = ""
    """What it waits for now, in a word or two; "" if it is being worked on."""
    waits_until: float = 0.0
    """When that wait ends, if it is known."""
    first_byte: float | None = None
    """When the first byte of the answer went to the client."""
    wiped: bool = False
    """Its caller's data was removed while it ran: nothing of it is stored or listed."""
    recorded: bool = False
    """Its bodies are kept for viewers (`gateway/trace`)."""
    booked: bool = False
    """Whether it is in the ledger."""
    routine: bool = False
    """Sent again and again by a program that waits or shows figures: it is logged only if it fails, and not
    listed."""
    begun: bool = False
    """Set by `Observer.begin`: it counts as in flight."""
    finished: float = 0.0
    """Set by `Observer.finish` if it is 0; not 0 also means that the request has been counted."""

    # Events, in the order in which they usually happen.

    def asked(
        self,
        provider: str,
        model: str,
        dialect: str,
        *,
        url: str = "",
        account: str = "",
        passthrough: bool = False,
        losses: Iterable[Loss] = (),
    ) -> None:
        """A provider is called, for the first time or again. The losses of an earlier attempt do not
        apply."""
        self.attempts += 1
        self.provider, self.upstream_model, self.upstream_dialect = provider, model, dialect
        self.upstream_url, self.account, self.passthrough = url, account, passthrough
        self.losses, self.loss_groups = list(losses), None

    def routed(self, provider: str, model: str, dialect: str) -> None:
        """The target that answers, whether or not it had to be called."""
        self.provider, self.upstream_model, self.upstream_dialect = provider, model, dialect

    def fell_back(self, target: str) -> None:
        """This target has failed: the next one is called."""
        self.fallbacks = [*self.fallbacks, target]

    def used(self, usage: Usage | None, source: UsageSource | None = None) -> None:
        """Its usage. Without a source it is the provider's, if there is one."""
        source = source or ("provider" if usage is not None else "none")
        if self.wasted is not None:
            usage, source = added(self.wasted, usage), "partial" if source == "none" else source
        self.usage, self.usage_source, self.token_kinds = usage, source, None

    def answered_nothing(
        self, error: ApiError, usage: Usage | None, source: UsageSource = "provider"
    ) -> None:
        """An attempt was paid for, but brought no answer."""
        self.noted(f"{self.route}: {error.message}")
        if usage is not None:
            self.wasted = added(self.wasted, usage)
            self.usage, self.usage_source, self.token_kinds = self.wasted, source, None

    def kinds(self) -> tuple[int, ...]:
        """The tokens of each kind of its usage, in the order of `KINDS`."""
        if self.token_kinds is None:
            assert self.usage is not None, "nothing was counted"
            self.token_kinds = kinds_of(self.usage)
        return self.token_kinds

    def began(self) -> None:
        """The first byte of the answer is sent to the client."""
        self.first_byte = time.monotonic()

    def stopped(self, reason: str, model: str = "") -> None:
        """Why the model stopped, in the log's words for every dialect, and the name that the model
        reported."""
        self.stop = reason
        self.response_model = model or self.response_model

    def lost(self, losses: Iterable[Loss]) -> None:
        self.losses, self.loss_groups = [*self.losses, *losses], None

    def grouped_losses(self) -> list[Loss]:
        """The losses as they are reported: equal ones are grouped."""
        if self.loss_groups is None:
            self.loss_groups = grouped(self.losses)
        return self.loss_groups

    def flawed(self, flaws: Iterable[str]) -> None:
        self.flaws = list(dict.fromkeys((*self.flaws, *flaws)))

    def noted(self, text: str) -> None:
        self.notes = [*self.notes, text]

    def answered(self, status: int = 200) -> None:
        self.status = status

    def failed(self, error: ApiError, fix: str = "") -> None:
        self.outcome = "error"
        self.error_fix = fix
        self.error_kind, self.error_code, self.error_message = error.kind, error.code, error.message

    def left(self) -> None:
        """The client left before its answer was complete."""
        self.outcome = "client_abort"
        self.status = self.status or CLIENT_LEFT

    def cut_off(self) -> None:
        """The gateway stops before the end of the answer."""
        self.outcome = "gateway_abort"

    @property
    def at(self) -> float:
        """When it began, in unix seconds."""
        return time.time() - (time.monotonic() - self.started)

    @property
    def seconds(self) -> float:
        return self.finished - self.started

    @property
    def route(self) -> str:
        return f"{self.provider}/{self.upstream_model}" if self.provider else ""
