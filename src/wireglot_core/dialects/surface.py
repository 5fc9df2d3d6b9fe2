"""A dialect's HTTP interface: paths, headers, pings, counts, lists and habits, as data and pure functions.

Code that serves a dialect or calls an upstream in it takes everything from its surface and knows no dialect
by name. Missing features are None, or empty: there is no fallback to another dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from wireglot_core.dialects.body import Body, RequestGlance
from wireglot_core.dialects.capabilities import Assist, Embeddings, HostedForm, Stored, WebSockets
from wireglot_core.dialects.context import Context, Framing, Rendered
from wireglot_core.dialects.listed_model import ListedModel, Query
from wireglot_core.ir.content import Extra, Foreign, Message, Part, Reasoning
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response, Usage
from wireglot_core.ir.purpose import NO_FACTS, RequestFacts, client_word
from wireglot_core.ir.request import Request, ToolChange
from wireglot_core.wire.event_stream import BadFrame
from wireglot_core.wire.splice import Outline

Operation = Literal[
    "generate", "compact", "count", "embed", "models", "model", "assist", "operation", "state", "managed",
    "telemetry",
]  # fmt: skip
"""A client's operation. `assist`, `operation`, `state`, `compact` and `embed` need a capability. The verb of
`embed` is the endpoint's name among the dialect's `Embeddings`."""

CONFIRM: Final = "confirm"
"""The verb of `model` by which a client requires that a model exists."""

UpstreamOperation = Literal[
    "generate", "stream", "compact", "count", "embed", "embed_one", "models", "shown", "running"
]  # fmt: skip


# --- paths


class RouteMatch(msgspec.Struct, frozen=True):
    """The operation a path addresses. `model` and `stream` are set if the path contains them; names and ids
    keep their percent escapes."""

    operation: Operation
    model: str = ""
    stream: bool | None = None
    verb: str = ""
    """The document or call, if the operation has several."""
    ids: tuple[str, ...] = ()


class Route(msgspec.Struct, frozen=True):
    """A path of the dialect's clients; `*` matches an id. If two routes match, the first one is used."""

    method: str
    path: str
    operation: Operation
    verb: str = ""


class Probe(msgspec.Struct, frozen=True):
    """A small answer to requests of the dialect's own clients outside the API; a 404 would fill logs. It
    reveals nothing and changes nothing, so it needs no key."""

    methods: tuple[str, ...]
    body: dict[str, Any] = {}
    text: str = ""
    """Plain text in place of the body."""


# --- a client


class Thread(msgspec.Struct, frozen=True):
    """Turns stored only at the dialect's vendor. If they are not available, clients continue without them if
    they get exactly this error."""

    field: str
    """The field of the body, present if a client requests such turns."""
    error: ApiError
    body: dict[str, Any]


class AskedModel(msgspec.Struct, frozen=True):
    """Replaces the model name in bytes that pass through: (bytes, requested model) -> the same bytes with
    that name."""

    in_answer: Callable[[bytes, str], bytes]
    in_opening: Callable[[bytes, str], bytes]
    """The same in a stream, up to its first event that belongs to the answer."""


def session_facts(headers: Mapping[str, str]) -> RequestFacts:
    """Facts from the session headers, which clients of every dialect may send: a session with a parent is a
    sub-agent's (opencode 1.18)."""
    parent = headers.get("x-parent-session-id")
    if not parent:
        return NO_FACTS
    own = headers.get("x-session-id") or headers.get("x-session-affinity")
    return RequestFacts("subagent", agent_id=client_word(own), parent_id=client_word(parent))


class BudgetStanding(msgspec.Struct, frozen=True):
    """The used amount of a budget, in tokens or in millionths of the currency."""

    unit: Literal["tokens", "cost"]
    period: Literal["day", "month"]
    used: int
    limit: int
    resets: int
    """Unix seconds."""
    resets_at: str
    """The same time as text: `2026-12-01T00:00:00Z`."""
    shared: bool = False
    """It is the budget of a group."""

    @property
    def share(self) -> float:
        return self.used / self.limit


class Spending(msgspec.Struct, frozen=True):
    """A caller's spending since the beginning of the day, the week and the month (UTC), in millionths."""

    day: int
    week: int
    month: int


class BudgetReports(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How the dialect's clients are informed of the budget of their key."""

    allowed: Callable[[BudgetStanding], tuple[tuple[str, str], ...]]
    """Headers of a successful answer, about the fullest budget."""
    refused: Callable[[BudgetStanding | None], tuple[tuple[str, str], ...]]
    """Headers of a refusal: this budget is used up; None: the counters cannot be read."""
    page: Callable[[Sequence[BudgetStanding], Spending, str], dict[str, Any]]
    """The document about all budgets, in a currency. Without any budget it shows the spending."""


class Framer(Protocol):
    """Converts a stream of server-sent events to another framing."""

    def feed(self, data: bytes) -> bytes:
        """The frames of the events that `data` completes."""
        ...

    def close(self) -> bytes:
        """The frame of a last event without a blank line after it."""
        ...


class StreamFraming(msgspec.Struct, frozen=True, eq=False):
    content_type: str
    framer: Callable[[int], Framer]
    """Takes the maximum bytes held for one event."""


class CloudForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A cloud's form of a dialect that another vendor defines: the model in the path, headers in the body.
    Requests are converted to the vendor's own form before they are parsed, and answers are written in it."""

    dialect: str
    """The vendor's dialect."""
    headers: Mapping[str, str]
    """Fields of the body that are headers in the vendor's form; "": the vendor's header has different
    values."""
    plain_model: Callable[[str], str]
    """The cloud's name of a model -> the vendor's, or the same name if it is not one of the cloud's."""
    unwrapped_count: Callable[[bytes], bytes] | None = None
    """The request inside a count request; None: it is not wrapped."""
    framing: StreamFraming | None = None
    """The framing of streams; None: server-sent events."""


class ClientSide(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The interface of the dialect's clients."""

    # Paths.
    routes: tuple[Route, ...] = ()
    find: Callable[[str, str], RouteMatch | None] | None = None
    """Method and path -> the operation, for paths that no table can list."""
    lists: tuple[str, ...] = ()
    """Paths of the model list (and below it each model by name). Dialects may share a path."""
    endpoints: tuple[str, ...] = ()
    """The paths as documented."""
    safeguards: str = ""
    """The request field for checks of the answer, "" if there is none."""
    probes: Mapping[str, Probe] = {}
    unserved: Mapping[str, str] = {}
    """Path suffixes that the dialect's SDKs know and that are not served here, and the feature requested
    there."""

    # How to recognize the dialect's clients if the path belongs to no dialect.
    headers: tuple[str, ...] = ()
    """Headers that only clients of this dialect send."""
    prefixes: tuple[str, ...] = ()
    """Prefixes of its paths. The longest match decides if no header of `headers` is present."""
    vendor_headers: tuple[str, ...] = ()
    """The vendor's clients send them in other dialects too: they decide if nothing else does."""

    version: tuple[str, str] | None = None
    """The header in which clients name the API version (a date), and the oldest version that is served."""

    # Keys.
    key_headers: tuple[tuple[str, str], ...] = ()
    """Header name, and the prefix before the key in its value, in lower case."""
    key_query: str = ""
    """The query parameter that may contain the key."""
    key_root: str = ""
    """A path prefix after which a key may follow, for clients that cannot send a header: the rest of the path
    is the actual request path."""
    key_hint: str = ""
    """How to give its clients a key, if that is not obvious. Used in the error for a request without one."""

    # The body.
    typed_bodies: bool = True
    """Whether its clients always send the content type of JSON."""
    cloud: CloudForm | None = None
    """The cloud's form; None: requests have the vendor's own form."""
    glance: Callable[[Body], RequestGlance] | None
    """Model and stream flag; None if the path contains both. Raises BadField."""
    asked_output: Callable[[Body], int]
    """The maximum tokens of an answer, 0 if the request sets none."""
    asked_answers: Callable[[Body], int]
    """The number of answers requested, 0 if not set."""
    agent_field: str = ""
    """The field for an agent instead of a model, which only the vendor runs. The vendor stores what it
    did."""
    turns: str = ""
    """The array of the body that grows with every turn of a conversation."""
    conversation_field: str = ""
    """The field in which the body may name a conversation that the server stores."""
    session_headers: tuple[str, ...] = ()
    """Headers in which the vendor's clients name their session, in addition to those that all dialects
    share."""
    session: Callable[[Outline], str] | None = None
    """The client's own name for its session, if a body may have one; "": it has none."""
    facts: Callable[[Mapping[str, str]], RequestFacts] = session_facts
    """Headers -> the purpose of the request and the agent that sends it, as named by the vendor's clients."""
    state_fields: tuple[str, ...] = ("conversation",)
    """Fields that connect a request to something the server has stored or runs in the background."""
    timeout_field: str = ""
    """The body field for the maximum seconds of the answer. It is our own: no provider sees it."""
    gateway_fields: frozenset[str] = frozenset()
    """Fields for the gateway, unknown to every provider."""
    sealed_marks: tuple[bytes, ...] = ()
    """Byte sequences in a body that carries state minted by other providers."""
    media_marks: tuple[bytes, ...] = ()
    tool_changes: Callable[[Foreign], tuple[ToolChange, ...]] | None = None
    """The changes of the tools in a part of a message; None: no part has any."""
    results_without_calls: bool = False
    """A request may contain the results of calls that only the server knows."""
    thread: Thread | None = None

    idle: Callable[[Body, Context], dict[str, Any] | None] | None = None
    """The answer to a request that only loads or unloads its model, for which no provider is called; None: it
    is another request."""

    # The answer.
    framing: StreamFraming | None = None
    """The framing of streams; None: server-sent events, or what the query requests."""
    pings: Mapping[Framing, bytes]
    """The bytes written while an upstream is silent, in each framing that clients may request."""
    words: re.Pattern[bytes] | None = None
    """Matches the text of an answer in its bytes, to estimate its length."""
    pauses: bool = False
    """Its clients know answers that pause, and send them back to have them continued."""
    end_frame: bytes = b""
    """The frame after the last event of a stream. Some servers leave it out, and its clients wait for it."""
    leaves_out_calls: bool = False
    """A stream can end with a call that the limit cut off, and its clients do not run that call: they detect
    it by the stop reason, or by its item. Clients of other dialects use whatever arguments they received."""
    tells_usage: Callable[[Request], bool] | None = None
    """Whether the answer to a request reports its usage, which clients rely on: an estimate if no provider
    reports one. None: never."""
    usage_first: bool = False
    """A stream reports the input tokens at its beginning, too."""
    owns_error: Callable[[Any], bool] | None = None
    """Whether the body of an error has the form that clients read. A server of the dialect may send another
    one, which is converted to the client's. None: all have."""
    error_headers: Callable[[ApiError], tuple[tuple[str, str], ...]] | None = None
    """Headers in which clients look for the type of an error; None: it is in the body."""
    call_prefix: str = ""
    """Prefix of minted call ids, if clients expect a certain one."""
    identity_headers: tuple[str, ...] = ()
    """Further headers in which clients look for the id of their request."""
    spent_quota: ErrorKind = "rate_limit"
    """The kind of error for a budget that is used up."""
    budgets: BudgetReports | None = None
    """None: its clients do not show budgets."""
    failed_search: Callable[[Request, str, Context], tuple[Part, ...]] | None = None
    """How a search that could not run is shown to these clients, with the reason; None: as an error."""
    hosted: HostedForm = HostedForm()
    """How tools that the gateway runs in the provider's place are shown to these clients."""
    alias_prefix: str = ""
    """A prefix that clients may add to a model's name: some clients accept only names that look like their
    vendor's."""
    alias_suffix: str = ""
    """The same for a suffix: a tag without meaning."""
    managed: Callable[[dict[str, Any], Sequence[ListedModel]], dict[str, Any]] | None = None
    """Adds the gateway's models to the settings that an administrator gives to these clients."""
    asked_model: AskedModel | None = None
    """Clients compare the model of an answer with the one they requested: they get the requested name. None:
    they get the name of the model that answered."""

    def model_name(self, asked: str) -> str:
        """The name of a model, without the prefix or suffix that these clients may add."""
        return asked.removeprefix(self.alias_prefix).removesuffix(self.alias_suffix)


# --- an upstream


class StreamUsage(msgspec.Struct, frozen=True):
    """How to request usage in a stream, for dialects that report it only on request."""

    field: str
    is_asked: Callable[[Any], bool]
    """Whether that field already requests usage."""
    asking: Callable[[Any], Any]
    """The field's value with usage requested."""
    hide: Callable[[bytes], bytes]
    """Removes the frames that exist only because usage was requested."""


class Unframer(Protocol):
    """Converts a stream in another framing to server-sent events. Raises BadFrame."""

    @property
    def fault(self) -> BadFrame | None:
        """The error after the events already returned: the next call would raise it."""
        ...

    def feed(self, data: bytes) -> bytes:
        """The events that `data` completes. Events before invalid bytes are returned first."""
        ...

    def close(self) -> bytes:
        """The end of the bytes: returns the event that it completes. Raises BadFrame in the middle of a
        frame."""
        ...


class UpstreamFraming(msgspec.Struct, frozen=True, eq=False):
    content_type: str
    """The content type of such a stream."""
    unframer: Callable[[int], Unframer]
    """Takes the maximum bytes held for one event."""


class ContextForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Servers that load a model with a context of a requested size, and cut longer prompts. They have the
    operations `shown`, for one model, and `running`, for the loaded ones."""

    ask: Callable[[str], dict[str, Any]]
    """The body of a request for `shown`, of a model's name."""
    shown: Callable[[Any], tuple[int, int]]
    """The model's own maximum, and the size that is set for it; 0: unknown."""
    running: Callable[[Any], Mapping[str, int]]
    """The sizes of the loaded models, by their names."""
    write: Callable[[dict[str, Any], int], None]
    """Puts a size into the body of a request."""


class UpstreamSide(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The interface of the dialect's servers."""

    paths: Mapping[UpstreamOperation, str]
    """Appended to a provider's base URL; `{model}` is replaced by the model's name."""
    of_family: bool = False
    """Served by every provider of the dialect's family, at that provider's base URL: none declares it
    separately."""
    passed_headers: tuple[str, ...] = ()
    """Client headers that belong to the dialect and are passed on. No other client header is."""
    fixed_headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request, unless the client's own header was passed on."""
    body_headers: tuple[tuple[bytes, tuple[str, str]], ...] = ()
    """A byte sequence in a body, and the header without which the upstream does not accept it: clients of
    another dialect could not know that header."""
    returned_headers: tuple[str, ...] = ()
    """Prefixes of response headers that a client may see."""
    quota_headers: tuple[str, ...] = ()
    """The same for headers about the account's quota: only for clients that need no key. Others would take
    the operator's quota for their own."""
    request_id_headers: tuple[str, ...] = ()
    """Response headers with the id of the request in the server's logs."""
    body_variables: Mapping[str, str] = {}
    """Fields of the body that are set from a provider's variables: field -> variable."""
    stream_usage: StreamUsage | None = None
    framing: UpstreamFraming | None = None
    """The framing of streams; None: server-sent events."""
    framings: Mapping[str, Callable[[int], Unframer]] = {}
    """Other framings in which hosts send its streams, by the names used in a provider's `forms`. Each takes
    the maximum bytes held for one event."""
    pauses: bool = False
    """Answers with tools that the provider runs may pause: sent back unchanged, they continue."""
    resume: Callable[[Response], Message | None] | None = None
    """Any answer may pause, and continues if the same request is sent again with this message after it. The
    function returns None for an answer that cannot be resumed; None: no answer can."""
    telemetry_operation: str = "chat"
    """`gen_ai.operation.name` of OpenTelemetry's conventions."""
    limits: Mapping[str, Any] = {}
    """Limits of the dialect for any model, in the format of a provider's `limits` table."""
    contexts: ContextForm | None = None
    has_variants: bool = False
    """Whether servers spell some fields in several ways. The limits name the spelling of a server
    (`max_tokens_field`, `reasoning_field`, `thinking_switch` and the like); in other dialects they have no
    effect."""


# --- both


class Tap(Protocol):
    """Reads a stream that passes through untouched. A tap that does not understand a stream does not affect
    it. It may have `flaws`, like a `StreamReader`."""

    stop: str
    complete: bool
    """Whether the answer is complete; a stream that ends before that is broken."""
    ended: bool
    """Whether the last frame was seen, so that nothing more is expected."""
    error: ApiError | None

    @property
    def usage(self) -> Usage | None: ...

    @property
    def next_event(self) -> int:
        """The number of the next event, in a dialect that numbers them."""
        ...

    @property
    def settled(self) -> int:
        """The number of bytes of a JSON array that are whole elements."""
        ...

    def feed(self, data: bytes) -> None:
        """Raises BadJson or FrameTooLarge if the bytes are not frames: the stream is broken."""
        ...

    def close(self) -> None:
        """The end of the bytes: it also ends a last frame that has no blank line after it."""
        ...


class StreamRepair(Protocol):
    """Repairs parts of a passed-through stream that clients could not process; all other bytes stay
    unchanged. `losses` reports the changes."""

    losses: list[Loss]

    def repair(self, data: bytes) -> bytes:
        """Repairs whole frames. Frames that are not yet known to be right are held back, at most until the
        end."""
        ...

    def leaves(self, frames: bytes) -> bool:
        """Whether these frames stay unchanged, and others with different text would too."""
        ...


class StreamMarks(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Patterns for the frames of a stream that must be parsed to judge whether it is a valid answer. All
    other frames are text, or thoughts before it."""

    signs: tuple[bytes, ...]
    """Each relevant frame contains one of these: most frames cost only the search for them."""
    calls: re.Pattern[bytes]
    """Matches frames with a call, or with the report of a malformed one."""
    thoughts: re.Pattern[bytes]
    """Matches frames with thoughts, which are not an answer."""
    more: re.Pattern[bytes]
    """Matches what frames with thoughts do not have, unless they are the last ones."""
    start: re.Pattern[bytes] | None = None
    """Occurs once in the first frame, in its name or its data; None: there is no frame whose repetition would
    begin another answer."""
    blocks: bytes = b""
    """In the frames that begin and end parts, if later ones cannot be parsed without them."""
    pieces: bytes = b""
    """In frames with a piece of a call that only the reader can assemble: it must see all frames."""


class AnswerGlance(msgspec.Struct, frozen=True):
    """What a whole answer that passes through reports."""

    usage: Usage | None = None
    stop: str = ""


class Counts(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Counting the tokens of a request without answering it."""

    parse_request: Callable[[dict[str, Any], Context], Request]
    render_answer: Callable[[int], dict[str, Any]]
    render_request: Callable[[Request, Context, str], Rendered[dict[str, Any]]]
    """The last argument is the base URL: one vendor's hosts may require different forms."""
    parse_answer: Callable[[Any], int]
    same_body: bool
    """Whether a count has the body of a request, so that additions to one can be made to the other."""
    model_inside: bool = False
    """Whether the body may contain the model in a nested object, where it can only be replaced by parsing."""


class ModelLists(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The models a client may use. An invalid cursor or number raises ClientFault."""

    render_list: Callable[[Sequence[ListedModel], Query], dict[str, Any]]
    """One page, as the query requests it."""
    render_model: Callable[[ListedModel], dict[str, Any]]
    named: Callable[[dict[str, Any]], str] | None = None
    """The model in the body of a request for one; None: the path has it."""
    confirm: Callable[[ListedModel], dict[str, Any]] | None = None
    """The answer to a client that requires an existing model; None: no path of the dialect has the verb
    `confirm`."""
    tells_more: bool = False
    """Whether a server's list in this dialect reports what its models can do, and lists in other dialects do
    not."""
    with_aliases: Callable[[Sequence[ListedModel], str], Sequence[ListedModel]] | None = None
    """The list as the client with this user agent should see it: see `ClientSide.alias_prefix`."""


class ReasoningState(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Handling of the state that models add to their answers and need back with the next request."""

    # Of clients.
    returns: Literal["all", "own"]
    """What clients reliably send back: everything they received, or only what the dialect's own family
    minted."""
    drops_thoughts: bool = False
    """Clients often send an answer back without its reasoning."""
    returns_pieces: bool = False
    """Clients send thoughts back in the pieces of a stream."""
    bare_signatures: bool = False
    """State that others minted comes back without the minter's name."""
    turn_marks: tuple[bytes, ...] = ()
    """Byte sequences of which one is in any body with a turn of the model."""
    placeholders: tuple[bytes, ...] = ()
    """Placeholders that clients write for a lost signature, as byte sequences in a body."""
    asks_thinking: Callable[[Request], bool] | None = None
    """Whether a request asks to see the thinking, for clients that take the first part of an answer for its
    text. None: there is a separate field for it next to the text."""

    shows: tuple[Literal["on", "auto", "effort"], ...] = ()
    """How a request asks for thinking that is shown unless it says otherwise: by a mode, or by an effort."""

    # Of upstreams.
    signs_texts: bool = False
    """State may come after the text that it signs. Clients of the dialect have a place for it there too."""
    hosts: tuple[str, ...] = ()
    """Dialects whose vendors also serve their models in this one, with a field for their signatures."""
    takes_unsigned: Callable[[Reasoning], bool] | None = None
    """Whether unsigned reasoning is sent back to its writer unchanged."""
    unsigned: Extra | None = None
    """How plain reasoning text is written where it usually is signed."""
    between_tools: Extra | None = None
    """How thinking is switched off for models that can only stop it between calls."""
    shows_unasked: bool = False
    """Models show the thinking that is requested in one of the ways of `shows`. Elsewhere some do not."""
    shows_by_effort: bool = True
    """Whether visible thinking can be requested together with an effort alone."""
    shown_marks: tuple[bytes, ...] = ()
    """Byte sequences of which one is in any body with state; empty: it cannot be known."""
    takes_bypass: bool = False
    """A call without its signature may be sent with a bypass value."""
    thinks_only_with_state: bool = False
    """Within a turn of calls the model cannot continue thinking without the state of that turn."""
    is_refusal: Callable[[ApiError], bool] | None = None
    """Whether an upstream refuses state that it did not mint, or no longer knows. Hosts pass on the messages
    of the vendors whose models they sell, in any dialect."""
    has_none: Callable[[ApiError], bool] | None = None
    """Whether an upstream refuses a request for state, or for thinking, because its model has none."""
    has_no_summary: Callable[[ApiError], bool] | None = None
    """Whether an upstream refuses to summarize reasoning for this account."""
    without_state: Callable[[Extra], Extra] | None = None
    """This dialect's extra of a part or message, without fields that bind it to state."""


class Surface(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """`family`: the dialect whose signatures and extras this one shares, usually its own name."""

    name: str
    family: str
    vendor: str = ""
    """The vendor of the API, if a family has several; "": the family's own. See `issuer`."""
    client: ClientSide
    upstream: UpstreamSide | None
    """None: only a gateway serves it, and calls upstreams in the dialect of its family."""
    model_field: str = "model"
    """The body field for the model; "": it is in the path."""
    sse_query: str = ""
    """Streams are JSON arrays unless the query contains this; "": they are always SSE."""
    stop_sequences: Literal["told", "hidden", "none"] = "none"
    """Whether requests may have them, and whether an answer reports which one ended it."""
    status: Callable[[ApiError], int]
    """The HTTP status for an error."""
    tap: Callable[[int], Tap]
    """Takes the maximum bytes held for one event."""
    repair: Callable[[], StreamRepair] | None = None
    """Repairs streams; None: no repairs are known."""
    marks: StreamMarks | None = None
    """Marks for streams that pass through; None: every frame is parsed, and so is every whole answer."""
    glance: Callable[[bytes], AnswerGlance]
    """Reads a whole answer. Raises BadJson if the body is not a JSON object."""
    reasoning: ReasoningState
    models: ModelLists
    counts: Counts | None = None
    check_usage: Callable[[Extra], tuple[str, ...]] | None = None
    """Contradictions in a provider's own counts; the argument is `Usage.raw`."""
    assist: Assist | None = None
    embeddings: Embeddings | None = None
    stored: Stored | None = None
    websockets: WebSockets | None = None

    @property
    def model_in_path(self) -> bool:
        return not self.model_field

    @property
    def issuer(self) -> str:
        """The issuer of the ids of files, containers and the like in its requests: no other vendor resolves
        them."""
        return self.vendor or self.family

    def framing(self, query: str) -> Framing:
        return "sse" if not self.sse_query or self.sse_query in query else "json-array"


def complains(words: re.Pattern[str], code: str = "") -> Callable[[ApiError], bool]:
    """A function that checks whether an error has a message that matches, or has this code."""

    def is_one(error: ApiError) -> bool:
        return (bool(code) and error.code == code) or words.search(error.message) is not None

    return is_one


def in_every_answer(request: Request) -> bool:
    """`ClientSide.tells_usage` of a dialect whose answers all report it."""
    return True
