"""One recorded exchange: a row for the list, and its requests and answers if bodies were recorded.

The page, the command line, the exported file and `wireglot.testing.replay` all use these values, so they are
JSON without conversion (`msgspec.json`). Fields may be added; none is renamed or given another meaning.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wireglot_core.ir.loss import Loss

State = Literal["running", "done", "failed", "left"]
"""`left`: the client disconnected before its answer was complete."""

FORMAT = "wireglot-trace/1"


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    input: int = 0
    """All tokens that the model read, including cached ones."""
    output: int = 0
    """All tokens that the model wrote, including its reasoning."""
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0
    source: str = ""
    """`provider`, `partial` or `estimated`."""


class LossCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    serious: int = 0
    degraded: int = 0
    harmless: int = 0


class TurnHashes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hashes of a request's messages, without system messages; "" if there are none."""

    own: str
    """Of all messages."""
    before: str = ""
    """Of those before the last answer in it: the exchange that this one continues had them."""
    answered: str = ""
    """Of those up to and including that answer."""
    root: str = ""
    """Of those up to the first answer."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An entry of the list, known without any body. It is sent again when it changes: the newest counts."""

    id: str
    at: float
    """When the request came in: seconds since 1970."""
    state: State = "running"
    worker: str = ""
    """The process, and in a fleet the machine."""
    client: str = ""
    """The client program, from its user agent: `claude-code`, `codex`, `gemini-cli`, else the first word."""
    agent: str = ""
    """The client's User-Agent."""
    purpose: str = ""
    """The purpose that the client states: `main`, `subagent`, `auxiliary`, `background`, `compaction`."""
    purpose_word: str = ""
    """The client's own word for the purpose."""
    agent_name: str = ""
    """Name or type of the sub-agent that sends the request."""
    agent_id: str = ""
    parent_agent_id: str = ""
    dialect: str = ""
    operation: str = ""
    path: str = ""
    key: str = ""
    """The name of the client's key."""
    session: str = ""
    """The conversation it belongs to, if the client names one or it can be derived."""
    belongs_to: str = ""
    """The id of the exchange that caused this one, if it was made in the background."""
    asked: str = ""
    """The model name in the client's request."""
    provider: str = ""
    model: str = ""
    upstream_dialect: str = ""
    stream: bool = False
    passthrough: bool = False
    status: int = 0
    stop: str = ""
    error: str = ""
    attempts: int = 0
    first_ms: float | None = None
    """Milliseconds until the first byte was sent to the client."""
    total_ms: float | None = None
    waits_for: str = ""
    """What a running exchange is waiting for: `body` (its own, being read), `store`, `queue`, `provider
    queue`, `key` (one with an open circuit breaker), `sign-in`, `retry`, `download`, `first byte`, `answer`
    or `next event`; "": it is being processed."""
    waits_until: float | None = None
    """When the wait ends, if known: seconds since 1970."""
    tokens: Tokens | None = None
    cost: int | None = None
    """In millionths of the currency; None: unknown."""
    losses: LossCounts | None = None
    features: list[str] = []
    """The features among its losses, most serious first."""
    recorded: bool = False
    """Whether bodies were recorded: then there is a `Trace`."""
    booked: bool = False
    """Whether the usage ledger has this exchange: a provider was to be called."""
    title: str = ""
    """The last text of its user, if bodies were recorded."""
    history: TurnHashes | None = None
    """Used to join turns if the client names no session; known once it was computed."""


class TraceFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a stream, and when it was received or sent: milliseconds since the request came in."""

    ms: float
    data: str
    causes: list[int] = []
    """For the client's stream: the numbers (from 0) of the frames of the last attempt's answer that it was
    made from. None: it is a keep-alive, or the gateway's own."""


class TraceMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side of an HTTP exchange. Secrets have been removed."""

    method: str = ""
    url: str = ""
    status: int = 0
    headers: list[tuple[str, str]] = []
    body: str = ""
    """The body as text; "" for a stream, or if there was none."""
    frames: list[TraceFrame] = []
    bytes: int = 0
    """Its original size, even if the stored body is shorter."""
    truncated: bool = False
    """It is not all there: cut at its end, or see `shortened`."""
    shortened: int = 0
    """This number of long strings in the body were cut: the rest of it is complete, and still JSON."""
    base64: bool = False
    """The body is not UTF-8, and is stored as base64."""
    folded: str = ""
    """The document that a stream adds up to: the answer of its dialect when no stream is requested. Links of
    answers point into it. For a stream without an end, it is what had arrived."""
    stops: str = ""
    """Why `folded` is not the whole answer, as text for users."""
    caused_by: Literal["", "events", "times"] = ""
    """How the `causes` of its frames were determined. `events`: translating the upstream's stream again gives
    this one. `times`: not for all of it, so some frames have the events of the last read before they were
    written."""


class Link(msgspec.Struct, frozen=True):
    """A part of the client's document and the upstream part it became: two JSON pointers (RFC 6901)."""

    client: str
    upstream: str


class TracedLoss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    feature: str
    action: str
    grade: str
    document: str
    """`request` or `response`."""
    path: str
    """The path as reported to the client (`$.messages[2].content[0]`)."""
    pointer: str = ""
    """The same place as a JSON pointer into the client's document, if it exists there."""
    upstream: str = ""
    """Its place in the upstream's document, if it has one."""
    detail: str = ""


def traced(loss: Loss) -> TracedLoss:
    """A loss as reported, before its places in the documents are resolved."""
    return TracedLoss(
        feature=loss.feature,
        action=loss.action,
        grade=loss.grade,
        document=loss.document,
        path=loss.path,
        detail=loss.detail,
    )


class TraceStep(msgspec.Struct, frozen=True):
    """A phase of the exchange: `queue`, `store`, `connect`, `first byte`, `events`. Milliseconds since the
    request came in."""

    name: str
    began_ms: float
    ended_ms: float


class TraceCounted(msgspec.Struct, frozen=True):
    """A line of the transformation's summary: `system blocks` 3 to 1, `tool ids rewritten` 2 to 2."""

    what: str
    client: int
    upstream: int


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call to one provider. Only the last attempt's answer reached the client."""

    provider: str
    model: str
    dialect: str
    began_ms: float = 0.0
    passthrough: bool = False
    request: TraceMessage | None = None
    answer: TraceMessage | None = None
    error: str = ""
    limits: dict[str, Any] = {}
    """What was known of the model, so that `wireglot.testing.replay` can translate again."""
    losses: list[TracedLoss] = []
    links: list[Link] = []
    """Links between the requests."""
    answer_links: list[Link] = []
    """Links between the answers: their documents, or those that their streams add up to."""
    summary: list[TraceCounted] = []


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A whole exchange. The format field is always present."""

    format: str = FORMAT
    version: str = ""
    """The version of the program that recorded it."""
    row: Row
    request: TraceMessage
    answer: TraceMessage
    attempts: list[Attempt] = []
    losses: list[TracedLoss] = []
    steps: list[TraceStep] = []
    notes: list[str] = []
