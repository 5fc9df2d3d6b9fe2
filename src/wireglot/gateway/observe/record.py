"""What is known about one request: updated by methods as it proceeds, read by every sink.

Each field is declared once, with the forms that show it (`forms.Shown`) and its name in each of them. The log
line, the row of the list, the row of the ledger, labels and attributes are made from this declaration. A new
field is one more field here, and one in `traces.trace.Row` or `stores.records.UsageRow` if these show it: the
columns of every store and the types of the page are derived from them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec

from wireglot.gateway.observe.forms import As, Marks, Shown
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss, grouped
from wireglot_core.ir.outcome import Usage, added
from wireglot_core.ir.purpose import MAX_WORD, NO_FACTS, RequestFacts
from wireglot_core.ir.usage import COUNTS, kinds_of

Outcome = Literal["ok", "error", "client_abort", "gateway_abort"]
UsageSource = Literal["provider", "partial", "estimated", "none"]

CLIENT_LEFT = 499
"""The status of a request whose client has gone, as in nginx's log."""

# Characters of a model's name in a log line, a span or a row of the list of exchanges.
MODEL_MAX: Final = 128
# Characters of another name in a log line or a span, and of a name in the usage ledger.
NAME_MAX: Final = 256
# Characters of a text in a log line or a span.
TEXT_MAX: Final = 512
# Characters of a text in a row of the list of exchanges.
ROW_TEXT_MAX: Final = 256
# Characters of an error's message in a row of the list of exchanges.
ROW_ERROR_MAX: Final = 500


class ExchangeRecord(msgspec.Struct):
    """Times are monotonic seconds. "" and None: unknown, or not reached. Values that a form computes, and
    parts of a form, are explained where it is made."""

    id: Annotated[str, Shown(ledger="id", row="id", log="id", span="wireglot.request.id")]
    started: Annotated[float, Shown(ledger="started", row="at")]

    # What the client asked for.

    caller: Annotated[
        str,
        Shown(
            ledger="caller",
            row="key",
            log=As("key", NAME_MAX),
            metrics="key",
            span=As("wireglot.key", NAME_MAX),
        ),
    ] = ""
    """The name of the client's key."""
    dialect: Annotated[
        str,
        Shown(
            ledger="dialect",
            row="dialect",
            log=As("dialect", always=True),
            metrics="dialect",
            span=As("wireglot.dialect", always=True),
        ),
    ] = ""
    operation: Annotated[
        str, Shown(ledger="operation", row="operation", log="operation", span="gen_ai.operation.name")
    ] = ""
    facts: Annotated[
        RequestFacts,
        Shown(
            ledger=(As("purpose", of="purpose"), As("agent", of="agent")),
            row=(
                As("purpose", of="purpose"),
                As("purpose_word", MAX_WORD, of="word"),
                As("agent_name", MAX_WORD, of="agent"),
                As("agent_id", MAX_WORD, of="agent_id"),
                As("parent_agent_id", MAX_WORD, of="parent_id"),
            ),
            log=(As("purpose", of="purpose"), As("agent_name", NAME_MAX, of="agent")),
            span=(
                As("wireglot.purpose", of="purpose"),
                As("gen_ai.agent.name", NAME_MAX, of="agent"),
                As("gen_ai.agent.id", NAME_MAX, of="agent_id"),
                As("wireglot.agent.parent_id", NAME_MAX, of="parent_id"),
            ),
        ),
    ] = NO_FACTS
    """The purpose of the request, by the client's headers."""
    model: Annotated[
        str,
        Shown(
            ledger=As("model", NAME_MAX),
            row=As("asked", MODEL_MAX),
            log=As("model", MODEL_MAX, always=True),
            span=As("wireglot.asked.model", MODEL_MAX),
        ),
    ] = ""
    """As the client named it."""
    session: Annotated[
        str,
        Shown(ledger=As("session", NAME_MAX), row=As("session", ROW_TEXT_MAX)),
    ] = ""
    """From the client's own header, or the conversation it named."""
    asked_as: Annotated[str, Shown(row="belongs_to")] = ""
    """The id that the client was given, if the work continues under another."""
    within: Annotated[str, Shown(row="belongs_to")] = ""
    """The id of the client's request, if the gateway itself sends this one to answer it."""

    # Where it was sent.

    provider: Annotated[
        str,
        Shown(
            ledger="provider", row="provider", log="route", metrics="provider", span="gen_ai.provider.name"
        ),
    ] = ""
    upstream_model: Annotated[
        str,
        Shown(
            ledger="upstream_model",
            row=As("model", MODEL_MAX),
            log="route",
            metrics="model",
            span="gen_ai.request.model",
        ),
    ] = ""
    upstream_dialect: Annotated[
        str, Shown(ledger="upstream_dialect", row="upstream_dialect", span="gen_ai.operation.name")
    ] = ""
    passthrough: Annotated[bool, Shown(row="passthrough")] = False
    stream: Annotated[
        bool, Shown(ledger="stream", row="stream", log="stream", span="gen_ai.request.stream")
    ] = False
    """Whether the client asked for a stream."""

    # What became of it.

    status: Annotated[
        int,
        Shown(
            ledger="status",
            row="status",
            log="status",
            metrics="status",
            span="http.response.status_code",
        ),
    ] = 0
    outcome: Annotated[
        Outcome,
        Shown(
            ledger=As("outcome", part="end"),
            row="state",
            log="outcome",
            metrics="outcome",
            span="wireglot.outcome",
        ),
    ] = "ok"
    stop: Annotated[
        str,
        Shown(row=As("stop", ROW_TEXT_MAX), log=As("stop", NAME_MAX), span="GEN_AI_RESPONSE_FINISH_REASONS"),
    ] = ""
    usage: Annotated[
        Usage | None,
        Shown(
            ledger=tuple(COUNTS),
            row="tokens",
            log=As("tokens", part="each"),
            metrics=("wireglot_tokens_total", "wireglot_key_tokens_total"),
            span=(
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_creation.input_tokens",
                "gen_ai.usage.reasoning.output_tokens",
            ),
        ),
    ] = None
    """Including attempts that ended without an answer: they were paid for."""
    usage_source: Annotated[
        UsageSource,
        Shown(
            ledger=As("source", part="end"),
            row="tokens",
            log=As("tokens_source", part="each"),
            metrics=("source", "wireglot_usage_total"),
            span="wireglot.usage.source",
        ),
    ] = "none"
    cost: Annotated[
        int | None,
        Shown(
            ledger="cost",
            row="cost",
            metrics=("wireglot_cost_total", "wireglot_key_cost_total", "wireglot_unpriced_total"),
        ),
    ] = None
    """In millionths of the currency, as in the ledger; None: unknown, or nothing was counted."""
    finished: Annotated[
        float,
        Shown(
            ledger="finished",
            row="total_ms",
            log=As("ms", part="each"),
            metrics=("wireglot_requests_total", "wireglot_key_requests_total", "wireglot_request_seconds"),
        ),
    ] = 0.0
    """Set by `Observer.finish` if it is 0; not 0 also means that the request has been counted."""
    first_byte: Annotated[
        float | None,
        Shown(
            ledger="first_byte",
            row="first_ms",
            log=As("first_byte_ms", part="each"),
            metrics="wireglot_first_byte_seconds",
            span="gen_ai.response.time_to_first_chunk",
        ),
    ] = None
    """When the first byte of the answer went to the client."""
    attempts: Annotated[
        int,
        Shown(
            ledger=As("attempts", part="end"),
            row="attempts",
            log=As("attempts", part="each", always=True),
            metrics="wireglot_retries_total",
            span="wireglot.attempts",
        ),
    ] = 0
    flaws: Annotated[
        list[str],
        Shown(ledger="flags", log=As("flaws", part="each"), metrics="wireglot_stream_flaws_total"),
    ] = []
    """Rules that the provider violated: in its stream (`ir.stream.FLAWS`), or in its token counts."""
    losses: Annotated[
        list[Loss],
        Shown(
            ledger="losses",
            row=("losses", "features"),
            log=(
                As("losses", part="each"),
                As("loss_details", part="each"),
                As("losses_unreported", part="each"),
                As("losses_untold", part="each"),
            ),
            metrics="wireglot_losses_total",
            span="wireglot.losses",
        ),
    ] = []
    fallbacks: Annotated[
        list[str],
        Shown(log=As("fallbacks", NAME_MAX, part="problem"), metrics="wireglot_fallbacks_total"),
    ] = []
    """The targets (`provider/model`) that failed before this one."""
    notes: Annotated[list[str], Shown(log=As("notes", TEXT_MAX, part="problem"))] = []
    error_kind: Annotated[
        str,
        Shown(ledger=As("error", part="end"), log=As("error", part="problem"), span="error.type"),
    ] = ""
    error_code: Annotated[str, Shown(log=As("error", part="problem"))] = ""
    error_message: Annotated[str, Shown(row=As("error", ROW_ERROR_MAX), log=As("error", part="problem"))] = ""
    error_fix: Annotated[
        str, Shown(log=As("error", part="problem"), span=As("wireglot.error.fix", TEXT_MAX))
    ] = ""
    """A hint for the operator where to look."""

    # For those who look for a cause.

    path: Annotated[str, Shown(row=As("path", ROW_TEXT_MAX), log=As("path", TEXT_MAX, part="problem"))] = ""
    """Without its query; reported if there is no operation, or for an error."""
    agent: Annotated[
        str,
        Shown(
            ledger="client",
            row=(As("agent", ROW_TEXT_MAX), "client"),
            log=As("agent", NAME_MAX, part="problem"),
        ),
    ] = ""
    """The client's User-Agent."""
    account: Annotated[str, Shown(log=As("account", NAME_MAX, part="problem"))] = ""
    upstream_url: Annotated[str, Shown(span=("server.address", "server.port"))] = ""
    """Only its host and port are ever reported."""
    upstream_request_id: Annotated[str, Shown(log=As("upstream_id", NAME_MAX, part="problem"))] = ""
    """The provider's id for its answer."""
    response_model: Annotated[str, Shown(span=As("gen_ai.response.model", MODEL_MAX))] = ""
    """The name that the provider reports in its answer."""

    # While it runs.

    waits: Annotated[str, Shown(row="waits_for")] = ""
    """What it waits for now, in a word or two; "" if it is being worked on."""
    waits_until: Annotated[float, Shown(row="waits_until")] = 0.0
    """When that wait ends, if it is known."""
    recorded: Annotated[bool, Shown(row="recorded")] = False
    """Its bodies are kept for viewers (`gateway/trace`)."""
    booked: Annotated[bool, Shown(row="booked")] = False
    """Whether it is in the ledger."""
    body: Annotated[bytes, Shown(no_form="from it the list computes `history`, when it is opened")] = b""
    """The client's body, if it names no session: the list uses it to join turns, when it is opened."""
    traceparent: Annotated[str, Shown(no_form="the parent of its span")] = ""
    """The client's own, if it traces."""
    wasted: Annotated[Usage | None, Shown(no_form="part of `usage`")] = None
    """The usage of attempts that ended without an answer."""
    token_kinds: Annotated[tuple[int, ...] | None, Shown(no_form="computed from `usage`")] = None
    """See `kinds`."""
    loss_groups: Annotated[list[Loss] | None, Shown(no_form="computed from `losses`")] = None
    """See `grouped_losses`."""
    wiped: Annotated[bool, Shown(no_form="nothing of such a request is shown")] = False
    """Its caller's data was removed while it ran: nothing of it is stored or listed."""
    routine: Annotated[bool, Shown(no_form="decides whether it is logged and listed")] = False
    """Sent again and again by a program that waits or shows figures: it is logged only if it fails, and not
    listed."""
    begun: Annotated[bool, Shown(no_form="decides whether it is counted as in flight")] = False
    """Set by `Observer.begin`: it counts as in flight."""

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


MARKS: Final = Marks(ExchangeRecord)
