"""Endpoints that only some dialects have, and the functions a dialect must provide to serve them.

A dialect has a capability if its surface contains one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from wireglot_core.dialects.body import Body
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.listed_model import ListedModel
from wireglot_core.ir.content import Extra, Foreign, Message, Part
from wireglot_core.ir.embedding import EmbeddingRequest, EmbeddingResponse
from wireglot_core.ir.hosted import Approval, HostedCall, ListedTool, RanCall, ToolListing, WebSource
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import HostedTool, Request, Tool
from wireglot_core.ir.stream import Event, Finish

Document = dict[str, Any]


class Assist(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What a vendor's own client requests in addition to model calls (Code Assist's tiers and quotas)."""

    answer: Callable[[str, Document, Iterable[ListedModel]], Document | None]
    """The answer to a verb, given its body and the models that the caller may use; None: no such verb."""
    operation: Callable[[str], Document | None]
    """The status of a long-running operation, by its name; None: there is no operation of that name."""


EmbedOperation = Literal["embed", "embed_one"]
"""Endpoints for embeddings: of several inputs, or of one."""


class EmbeddingForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Requests for embeddings and their answers, at one of the dialect's endpoints."""

    parse_request: Callable[[Document, Context], EmbeddingRequest]
    render_request: Callable[[EmbeddingRequest, Context], Rendered[Document]]
    """Losses are at neutral places: `$.inputs[2].task`. Raises Unsupported."""
    render_response: Callable[[EmbeddingResponse, Context, EmbeddingRequest], Rendered[Document]]
    """Renders an answer with a vector for each input. Raises UpstreamFault for one that cannot be written."""
    place: Callable[[str, EmbeddingRequest], str]
    """Converts a neutral place to a path in the client's document."""
    rename: Callable[[bytes, str], bytes]
    """A body with another model's name, and every other byte unchanged. Raises BadJson."""
    max_inputs: int = 0
    """Maximum number of inputs of one request; 0: unknown."""
    tells_usage: bool = True
    """Whether its clients expect the usage in an answer."""
    idle: Callable[[Body, Context], Document | None] | None = None
    """As `ClientSide.idle`: the answer to a request without inputs, if such a request is allowed."""


class Embeddings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The embeddings capability."""

    forms: Mapping[EmbedOperation, EmbeddingForm]
    """The forms by endpoint, in the order in which they are tried for requests of other dialects."""
    operation: Callable[[Document], EmbedOperation]
    """The endpoint that a request is for, by its body alone."""
    parse_response: Callable[[Document, Context], EmbeddingResponse]
    """Parses an answer of any of the endpoints."""
    usage: Callable[[bytes], Usage | None]
    """The usage in an answer that passes through. Raises BadJson if the body is not a JSON object."""


class StateOptions(msgspec.Struct, frozen=True):
    """State settings of a request. `store` None: not stated, which means that it is stored."""

    store: bool | None
    previous: str
    holding: str
    """The conversation that it continues."""
    background: bool
    refers: bool
    """Some of its items are only references."""

    @property
    def stateful(self) -> bool:
        return self.store is not False or self.needs_state

    @property
    def needs_state(self) -> bool:
        return bool(self.previous or self.holding or self.background or self.refers)


class Compaction(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Compaction of a conversation: the item that replaces it, and the answer that contains the item."""

    kind: str
    """The item's type."""
    is_asked: Callable[[Body], bool]
    """Whether an ordinary request asks for compaction: then the answer is that item alone."""
    is_item: Callable[[Part], bool]
    render_item: Callable[[str, str], Document]
    """The item, from its id and its sealed text."""
    sealed_text: Callable[[Part], str]
    """The sealed text of such an item, "" if it has none."""
    render_kept: Callable[[list[Message], Callable[[], str], Context], list[Document]]
    """Messages that are kept next to it, as items; ids for them are created one by one."""
    render_answer: Callable[[str, list[Document], Document | None, Context], Document]
    """The whole answer, from its id, its items and the usage of the summary."""
    texts: Callable[[Document], Iterator[str]]
    """The text of the answer that was requested as a summary."""
    put_in: Callable[[Document, Document], Document]
    """The answer that was requested as a summary, with the item in place of its text."""


class SocketRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request received as a message of a WebSocket."""

    body: Document
    """The body as over HTTP, to be answered by a stream."""
    lane: str = ""
    """The name of its lane, a sequence of requests; every message of the answer contains it."""
    generates: bool = True
    """False: the request is only to be stored, for later requests that continue it."""
    previous: str = ""
    """The answer that it continues."""


class SocketEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an answer, from its last event."""

    id: str
    is_whole: bool
    """Whether a request may continue it."""
    is_stored: bool
    """Whether requests of other connections may continue it, too."""
    is_error: bool = False
    """An error that does not end the answer if another event repeats it; it has another form over a
    WebSocket."""


class SocketRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """An error that an upstream sends over a WebSocket in place of an answer."""

    status: int
    headers: dict[str, str]
    body: bytes
    """The body as over HTTP."""
    is_lost: bool = False
    """Whether the error concerns the connection or its state: the whole request on a new one may succeed."""


class WebSockets(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Requests and answers as messages of a WebSocket: one object each; events as in a stream."""

    paths: tuple[str, ...]
    lane: Callable[[bytes], str]
    """The lane of a message; "" if it names none, or an invalid one."""
    read: Callable[[Any], SocketRequest | None]
    """Parses a message as a request; None for a message that is not one. Raises BadField."""
    items: Callable[[Document], list[Document]]
    """The input of a request."""
    carried: Callable[[list[Document]], list[Document]]
    """The items of an answer, as input for a request that continues it if it is not stored."""
    continued: Callable[[Document, list[Document], str], Document]
    """The request with these items before its own, after the stored answer of this id ("": none). Raises
    BadField if it answers a call that is not among them."""
    event: Callable[[bytes, SocketRequest], str]
    """An event of the answer to a request, as a message."""
    item: Callable[[bytes], Document | None]
    """The item that an event contains whole, if any."""
    end: Callable[[bytes], SocketEnd | None]
    """The end of its answer, if the event is that."""
    is_beginning: Callable[[bytes], bool]
    """Whether an event may be repeated to show that the answer is being made."""
    error: Callable[[int, Any, Mapping[str, str], str], str]
    """A message that reports an error: status, the body of an HTTP answer, headers, lane."""
    is_missing: Callable[[str], Document]
    """The body of an error: there is no answer with this id to continue."""
    expired: Document
    """The body of an error: the connection has reached its maximum age."""
    is_whole: Callable[[Document], bool]
    """Whether a request contains its whole history itself."""
    mark: Callable[[Document], bytes]
    """A mark by which an item is recognized in a later request; b"" for an item that requests do not
    repeat."""
    message: Callable[[Document, int, str], bytes]
    """A request as a message to an upstream: its input from this index on, after the answer of this id. 0 and
    "": all of it, unchanged."""
    refused: Callable[[bytes], SocketRefusal | None]
    """The refusal that an upstream's message reports in place of an answer, if any."""


class ItemForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The item format in which conversations are stored."""

    cut: Callable[[Message], Iterator[tuple[str, tuple[Part, ...]]]]
    """A neutral message divided into items: the id prefix and the parts of each."""
    render_item: Callable[[Message, str, Context], Document]
    """A piece of a message as an item of this id."""
    parse_items: Callable[[list[Document], Context], Request]
    """Items parsed to a neutral request, with the tools that they declare."""


class StoredEvents(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The events of an answer that is made in the background, for clients that follow its stream."""

    number: Callable[[Document], int]
    """The number of an event, after which a stream can be resumed."""
    kind: Callable[[Document], str]
    event: Callable[[str, int, Document], Document]
    """An event of a kind, with its number and its content."""
    holder: str
    """The field of an event that contains the answer."""
    opening: frozenset[str]
    """Kinds of events that contain the answer before it has ended."""
    ends: frozenset[str]
    """Kinds of events that end a stream."""
    last: Callable[[Document], tuple[str, Document]]
    """The kind and the content of the last event for an answer with this end."""
    after: str
    """The query parameter for the last event that a client has."""
    closing: bytes = b""
    """The end of a stream after its last event."""
    waiting: str
    """The status of an answer that has not been started."""


def _refers_nowhere(item: Any) -> bool:
    return False


class Stored(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Answers and conversations that outlive their request."""

    noun: str
    """The clients' name for an answer: `response`."""
    prefix: str
    """Prefix of the id of an answer."""
    previous: str
    """The field of a request that names the answer it continues."""
    missing_previous: int
    """The HTTP status if there is no such answer."""
    options: Callable[[Body, str], StateOptions]
    """The state settings of a request; the second argument is the conversation named in its headers or
    body."""
    fields: frozenset[str]
    """The body's fields for state. The server handles them; they are not sent upstream."""
    is_reference: Callable[[Any], bool] = _refers_nowhere
    """Whether an item is only a reference to another."""
    whole_items: Callable[[Any, Callable[[str, int], str]], list[Document]]
    """The input of a request as items with all fields that clients may read. An id is made from a prefix and
    the item's index."""
    shown: Callable[[Document, list[Document], Mapping[str, str]], Document]
    """The document about an answer, from: its document, the items of its input, the query parameters."""
    deleted: Callable[[str], Document]
    """The document about a deleted answer of this id."""
    items: ItemForm | None = None
    """None: its documents are not items, and they are stored in neutral form."""
    events: StoredEvents
    patch: Callable[[str, int, Document], Document]
    """The state fields of an answer in the background, from its id, the time and the body of its request."""
    begun: Callable[[Document], float]
    """When an answer was started, in unix seconds."""
    ended: Callable[[Document, str, str], Document]
    """The document of an answer that ended early with a status, and why it failed."""
    without_state: Callable[[Request], Request]
    """The request without its state fields."""
    reported: Callable[[Request, Document], Request]
    """The request, whose answer is to have these state fields (its id, whether it is stored). They are added
    when the answer ends, since only then is it known what is stored."""
    hides_state: Callable[[Request], bool]
    """Whether the answer to such a request hides its reasoning state from the client."""
    instructions: Callable[[str], Message]
    is_instructions: Callable[[Message], bool]
    """Whether a message is an instruction of one request only, which does not belong to its history."""
    unstored: Extra
    """The extra of a request that is made up here and must not be stored upstream."""
    compaction: Compaction | None = None


def _show_nothing(call: HostedCall, index: int) -> list[Event]:
    return []


def _report_nothing(ran: RanCall, index: int) -> list[Event]:
    return []


def _finish_unchanged(finish: Finish, ran: Sequence[RanCall]) -> Finish:
    return finish


def _read_nothing(part: Foreign) -> RanCall | None:
    return None


def _by_words(tool: HostedTool) -> bool:
    return False


def _is_no_search(tool: Tool) -> bool:
    return False


def _found_nothing(extra: Extra | None) -> Sequence[tuple[str, tuple[WebSource, ...]]]:
    return ()


def _unlimited(request: Request) -> int | None:
    return None


def _allows_all(tool: HostedTool, listed: ListedTool) -> bool:
    return tool.server is None or tool.server.allowed is None or listed.name in tool.server.allowed


def _server_defers(tool: HostedTool, listed: ListedTool) -> bool:
    return tool.server is not None and tool.server.deferred


class McpForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A dialect's form for MCP servers that the gateway connects to in the provider's place."""

    list_tools: Callable[[ToolListing, int], list[Event]] = lambda listing, index: []
    """Shows the tools of a server to the client before the answer."""
    listed: Callable[[Foreign], str] = lambda part: ""
    """The server whose tools a part of an earlier turn lists."""
    allows: Callable[[HostedTool, ListedTool], bool] = _allows_all
    """Whether the request lets the model call a tool of the server."""
    is_deferred: Callable[[HostedTool, ListedTool], bool] = _server_defers
    """Whether a tool of the server is sent only after a search for tools has found it."""
    needs_approval: Callable[[HostedTool, ListedTool], bool] = lambda tool, listed: False
    headers: Callable[[HostedTool], Mapping[str, str]] = lambda tool: {}
    """Headers for the server besides its token."""
    approval: Callable[[Foreign], Approval | None] = lambda part: None
    """A request for approval in a conversation, or the answer to one."""


class CodeForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A dialect's parts for code that the provider has run: one for the code, one for its result."""

    read: Callable[[Foreign], RanCall | None]
    """Parses such a part. A part without an id has the id "": a result belongs to the last call."""
    render: Callable[[RanCall, str, list[Loss]], Foreign]
    """The part for a call alone or for a result alone, which reports losses at this path."""
    fields: frozenset[str]
    """The fields that are parsed."""
    signature: str
    """The field that only the provider can read."""


class HostedForm(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How clients are shown hosted tools of the vendor's own API, when the gateway runs them. By default only
    citations of the text are shown."""

    announce: Callable[[HostedCall, int], list[Event]] = _show_nothing
    """Shows a call that begins to run; the number is the index of the next part."""
    report: Callable[[RanCall, int], list[Event]] = _report_nothing
    """The same call once it has run."""
    finish: Callable[[Finish, Sequence[RanCall]], Finish] = _finish_unchanged
    """The end of an answer, with totals of all calls: how many there were, what was searched for."""
    read: Callable[[Foreign], RanCall | None] = _read_nothing
    """Parses a part of an earlier turn that shows a call or its result; None: it is something else."""
    found: Callable[[Extra | None], Sequence[tuple[str, tuple[WebSource, ...]]]] = _found_nothing
    """The searches that an answer as a whole reports: each query with its sources."""
    max_calls: Callable[[Request], int | None] = _unlimited
    """The maximum number of hosted tool calls that a request allows; None: not stated."""
    searches_by_pattern: Callable[[HostedTool], bool] = _by_words
    """Whether a search for tools takes a regular expression instead of words."""
    is_search: Callable[[Tool], bool] = _is_no_search
    """Whether a client's own tool is its search for deferred tools."""
    mcp: McpForm = McpForm()
    code: CodeForm | None = None
    carried: frozenset[str] = frozenset()
    """Kinds of tools whose results clients send back with the next turn."""
    quotes: bool = False
    """Whether citations quote the source."""
    tool_marks: dict[str, tuple[bytes, ...]] = {}
    """By the body field that declares hosted tools: byte sequences of which one is in such a body, b""
    matches any. For dialects whose upstreams run hosted tools only if they declare so; empty: they run
    all."""
    marks: tuple[bytes, ...] = ()
    """Byte sequences of which one is in a body with such a part made by the gateway."""
    vendor_marks: tuple[bytes, ...] = ()
    """Byte sequences of which one is in a body with any such part."""
