"""One recorded exchange: a row for the list, and its requests and answers if bodies were recorded.

The page, the command line, the exported file and `wireglot.testing.replay` all use these values, so they are
JSON without conversion (`msgspec.json`). Fields may be added; none is renamed or given another meaning.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wireglot.ir.loss import Loss

State = Literal["running", "done", "failed", "left"]
"""`left`: the client went before its answer was whole."""

FORMAT = "wireglot-trace/1"


class Tokens(msgspec.Struct, frozen=True, omit_defaults=True):
    input: int = 0
    """Everything the model read, with what a cache gave."""
    output: int = 0
    """Everything it wrote, with its reasoning."""
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
    """Hashes of a request's messages, without those of the system; "" where there are none."""

    own: str
    """All of them."""
    before: str = ""
    """Those before the last answer in it: the exchange that this one continues had them."""
    answered: str = ""
    """Those with that answer."""
    root: str = ""
    """Those up to the first answer."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the list shows, known without any body. It is reported again as it changes: the newest counts."""

    id: str
    at: float
    """When it came in: seconds since 1970."""
    state: State = "running"
    worker: str = ""
    """Which process, and in a fleet which machine."""
    client: str = ""
    """The client program, from its user agent: `claude-code`, `codex`, `gemini-cli`, else the first word."""
    agent: str = ""
    """The client's User-Agent."""
    purpose: str = ""
    """The purpose that the client states: `main`, `subagent`, `auxiliary`, `background`, `compaction`."""
    purpose_word: str = ""
    """The client's own word for the purpose."""
    agent_name: str = ""
    """Name or type of the sub-agent that sends it."""
    agent_id: str = ""
    parent_agent_id: str = ""
    dialect: str = ""
    operation: str = ""
    path: str = ""
    key: str = ""
    """The name of the client's key."""
    session: str = ""
    """The conversation it belongs to, where the client names one or it can be derived."""
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
    """Until the first byte went to the client."""
    total_ms: float | None = None
    waits_for: str = ""
    """Of one that runs: `body` (its own, which is read), `store`, `queue`, `provider queue`, `key` (one that
    rests), `sign-in`, `retry`, `download`, `first byte`, `answer` or `next event`; "": it is worked on."""
    waits_until: float | None = None
    """Until when, where that is known: seconds since 1970."""
    tokens: Tokens | None = None
    cost: int | None = None
    """In millionths of the currency; None: not known."""
    losses: LossCounts | None = None
    features: list[str] = []
    """The features among its losses, the worst first."""
    recorded: bool = False
    """Whether bodies were recorded: then there is a `Trace` to look at."""
    booked: bool = False
    """Whether the usage ledger has this exchange: a provider was to be called."""
    title: str = ""
    """The last text of its user, if bodies were recorded."""
    history: TurnHashes | None = None
    """By what turns are joined where the client names no session; known where it was requested."""


class TraceFrame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a stream, and when it came or went: milliseconds since the request came in."""

    ms: float
    data: str
    causes: list[int] = []
    """Of the client's stream: the numbers (from 0) of those frames of the last attempt's answer that it was
    made of. None: it is a keep-alive, or the gateway's own."""


class TraceMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side of an HTTP exchange. What is secret is gone from it already."""

    method: str = ""
    url: str = ""
    status: int = 0
    headers: list[tuple[str, str]] = []
    body: str = ""
    """As text; "" where it was a stream, or none."""
    frames: list[TraceFrame] = []
    bytes: int = 0
    """How large it was, also where the body kept is shorter."""
    truncated: bool = False
    base64: bool = False
    """The body is no UTF-8, and is kept so."""
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
    """A part of the client's document and what became of it upstream: two JSON pointers (RFC 6901)."""

    client: str
    upstream: str


class TracedLoss(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    feature: str
    action: str
    grade: str
    document: str
    """`request` or `response`."""
    path: str
    """As the client is given it (`$.messages[2].content[0]`)."""
    pointer: str = ""
    """The same place as a JSON pointer into the client's document, where it has one."""
    upstream: str = ""
    """Its place in the upstream's document, where it has one."""
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
    """A stretch of time on the way: `queue`, `store`, `connect`, `first byte`, `events`. Milliseconds since
    the request came in."""

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
    """What was known of the model, as `wireglot.testing.replay` needs it to translate again."""
    losses: list[TracedLoss] = []
    links: list[Link] = []
    """Between the requests."""
    answer_links: list[Link] = []
    """Between the answers: their documents, or what their streams amount to."""
    summary: list[TraceCounted] = []


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """A whole exchange. The format field is always present."""

    format: str = FORMAT
    version: str = ""
    """Of the program that recorded it."""
    row: Row
    request: TraceMessage
    answer: TraceMessage
    attempts: list[Attempt] = []
    losses: list[TracedLoss] = []
    steps: list[TraceStep] = []
    notes: list[str] = []
