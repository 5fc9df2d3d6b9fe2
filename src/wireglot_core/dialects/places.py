"""Converts places in the neutral conversation to paths in a client's own document.

A codec declares a loss at its neutral place (`$.sampling.seed`, `$.messages[2].content[0].signature`). A
client looks for it in what it sent (`$.generationConfig.seed`, `$.contents[1].parts[0].thoughtSignature`) or
received. Each dialect defines how it divides a document into turns, parts and tools, and its names for the
rest; everything else is done here, and only if there is a loss. A path is cut where the document ends, so
that it always resolves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from wireglot_core.dialects.json_path import PATH_LONGEST, joined, nearest
from wireglot_core.ir.content import Message, Part
from wireglot_core.ir.loss import Document, Feature, Loss
from wireglot_core.ir.request import AnyTool, Request, Tool

_PLACE = re.compile(r"\$\.(messages|tools)\[(\d+)\](?:\.content\[(\d+)\])?")
_PART = re.compile(r"\$\.content\[(\d+)\]")
_OTHER = re.compile(r"\$\.others\[(\d+)\]")
Names = Mapping[str, tuple[str, ...]]
"""Neutral name -> possible names in a dialect, the most likely first."""


class Node(msgspec.Struct, frozen=True):
    """A place in a document. `kind` is that of the part which is parsed there (`Text`, `ToolCall`), or the
    name of a tool; "" if the document does not contain it."""

    path: str
    kind: str = ""
    value: Any = None


class Turn(msgspec.Struct, frozen=True):
    path: str
    value: Any


_PATHS_KEPT = 512


def numbered_turns(name: str, items: list[Any]) -> list[Turn]:
    """The items of an array under this name, each a turn."""
    paths = _first_paths(name) if len(items) <= _PATHS_KEPT else _paths(name, len(items))
    return list(map(Turn, paths, items))


@lru_cache(maxsize=8)
def _first_paths(name: str) -> list[str]:
    """It must not be changed."""
    return _paths(name, _PATHS_KEPT)


def _paths(name: str, count: int) -> list[str]:
    return [f"$.{name}[{number}]" for number in range(count)]


def numbered_nodes(path: str, items: Any, kind: Callable[[Any], str]) -> list[Node]:
    """The items of an array at this path, each a node; empty if it is not an array."""
    if type(items) is not list:
        return []
    return [Node(f"{path}[{number}]", kind(item), item) for number, item in enumerate(items)]


def kind_by_type(kinds: Mapping[str, str], untyped: str = "Foreign") -> Callable[[Any], str]:
    """A function that returns the kind of a part by its `type`. `untyped`: the kind of a part without one."""

    def kind(part: Any) -> str:
        name = part.get("type") if type(part) is dict else None
        return kinds.get(name, "Foreign") if type(name) is str else untyped

    return kind


def _nothing(*_: Any) -> list[Any]:
    return []


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a dialect's documents. Paths begin at `$`, or inside the envelope if there is one."""

    turns: Callable[[dict[str, Any]], list[Turn]] = _nothing
    parts: Callable[[Turn], list[Node]] = _nothing
    tools: Callable[[dict[str, Any]], list[Node]] = _nothing
    settings: Names = {}
    """Names of the fields outside turns and tools."""
    fields: Names = {}
    """Names of the fields inside a turn, a part or a tool."""
    answer_parts: Callable[[dict[str, Any]], list[Node]] = _nothing
    answer: Names = {}
    """Names in an answer: `content` is where its parts are, `others` where further answers are."""
    request_envelope: str = ""
    response_envelope: str = ""
    snake: bool = False
    """Whether any field may be spelled in snake_case too."""


class RequestPlaces:
    """The places of one request. `request` is the parsed body."""

    __slots__ = (
        "_body", "_inner", "_known", "_named", "_nodes", "_numbers", "_ordinals", "_places", "_request",
        "_root", "_tools", "_turns",
    )  # fmt: skip

    def __init__(self, places: Places, body: dict[str, Any], request: Request) -> None:
        self._places = places
        self._body = body
        self._request = request
        inner, self._root = body, "$"
        envelope = places.request_envelope
        if envelope and type(body.get(envelope)) is dict:
            inner, self._root = body[envelope], f"$.{envelope}"
        self._turns = places.turns(inner)
        self._inner = inner
        self._tools: list[Node] | None = None
        self._named: dict[str, Node] = {}
        self._numbers: dict[int, int] | None = None
        self._ordinals: dict[tuple[int, int], _Ordinals] = {}
        self._nodes: dict[int, list[Node]] = {}
        self._known: dict[int, tuple[int, int]] | None = None
        if len(self._turns) != len(request.messages):
            self._turns = _aligned_turns(self._turns, request.messages, places.parts)

    def located(self, losses: Iterable[Loss], asked: Request | None = None) -> tuple[Loss, ...]:
        """Losses of `asked` (default: the parsed request), with paths in the client's own document."""
        whole = asked if asked is not None else self._request
        # Losses may coincide in one place of the client's document: they are reported once.
        return _once([_moved(loss, self._path(loss, whole)) for loss in losses])

    def of(self, path: str, asked: Request | None = None) -> str:
        """The path of a neutral place in the client's own document."""
        # Not a field that only the client knows: the path consists of neutral names.
        return self._path(Loss(path, "metadata", "dropped"), asked if asked is not None else self._request)

    def _path(self, loss: Loss, asked: Request) -> str:
        found = _PLACE.match(loss.path)
        if found is None:
            return self._setting(loss)
        rest = loss.path[found.end() :]
        number, position = int(found[2]), found[3]
        if found[1] == "tools":
            node = self._tool(number, asked)
            return self._follow(node.path, node.value, rest)
        turn, part = self._spot(number, None if position is None else int(position), asked)
        if turn is None:
            return self._setting(Loss("$.history", loss.feature, loss.action))
        if part is None:
            return self._follow(self._turns[turn].path, self._turns[turn].value, rest)
        node = self._node(turn, part)
        return self._follow(node.path, node.value, rest)

    def _setting(self, loss: Loss) -> str:
        name = loss.path.removeprefix("$").removeprefix(".")
        candidates = _candidates(name, self._places.settings)
        if loss.feature == "unknown_field":  # its name is the client's own, even if the IR has the same name
            holder, _, own = name.rpartition(".")
            candidates = [f"{one}.{own}" for one in self._places.settings.get(holder, ())] + candidates
        roots = (self._root,) if self._root == "$" else (self._root, "$")
        paths = [joined(root, candidate) for candidate in candidates for root in roots]
        best = nearest(self._body, paths, self._places.snake)
        if loss.action == "invented" and paths[0].rpartition(".")[0] == best:
            return paths[0]
        return best

    def _follow(self, path: str, value: Any, rest: str) -> str:
        path = self._root + path[1:]
        if not rest:
            return path
        name = rest.removeprefix(".")
        own_names = self._places.fields.get(name)
        if own_names is not None and type(value) is dict:
            # The usual case: fields of the value itself, without a nested path.
            for own in own_names:
                if "." in own:
                    break  # a shorter name after it would be found first
                if own in value:
                    return f"{path}.{own}"
            else:
                if name.isidentifier() and name not in value and not self._places.snake:
                    return path
        names = _candidates(name, self._places.fields)
        inside = nearest(value, [joined("$", name) for name in names], self._places.snake)
        return path + inside[1:]

    def _tool(self, number: int, asked: Request) -> Node:
        if number >= len(asked.tools):
            return self._all_tools()
        if self._tools is None:
            self._tools = self._places.tools(self._inner)
            for node in self._tools:
                self._named.setdefault(node.kind, node)
        nodes = self._tools
        tool = asked.tools[number]
        own = self._request.tools
        if asked.tools is not own:
            if self._numbers is None:
                self._numbers = {id(known): place for place, known in reversed(list(enumerate(own)))}
            number = self._numbers.get(id(tool), number)
        # By its index, unless a different node is there: items and messages may declare tools too, and some
        # declarations contain several.
        name, kind = _tool_names(tool)
        there = nodes[number] if number < len(nodes) else None
        if there is not None and there.kind in (name, kind):
            return there
        for wanted in (name, kind):
            named = self._named.get(wanted) if wanted else None
            if named is not None:
                return named
        return there if there is not None and len(nodes) == len(own) else self._all_tools()

    def _all_tools(self) -> Node:
        path = self._setting(Loss("$.tools", "unknown_field", "dropped"))
        return Node("$" + path.removeprefix(self._root))  # `_follow` prepends the root again

    def _spot(self, number: int, position: int | None, asked: Request) -> tuple[int | None, int | None]:
        """The indexes of the message and part of the parsed request that one of `asked` is, or replaces."""
        own = self._request.messages
        if asked.messages is own:
            return (number, position) if number < len(self._turns) else (None, None)
        if number >= len(asked.messages):
            return None, None
        message = asked.messages[number]
        part = message.content[position] if position is not None and position < len(message.content) else None
        known = self._identities()
        if part is not None and id(part) in known:
            return known[id(part)]
        if id(message) in known:
            turn = known[id(message)][0]
        else:
            # The part of a conversation that the gateway stores comes before what the client sent.
            turn = number - (len(asked.messages) - len(own))
            if not 0 <= turn < len(own):
                return None, None
        if part is None:
            return turn, None
        content = message.content
        ordinals = self._ordinals.get((id(content), turn))
        if ordinals is None:
            ordinals = self._ordinals[id(content), turn] = _Ordinals(content, map(_kind, own[turn].content))
        return turn, ordinals.place(part)

    def _identities(self) -> dict[int, tuple[int, int]]:
        if self._known is None:
            self._known = {}
            for number, message in enumerate(self._request.messages):
                self._known[id(message)] = (number, 0)
                for position, part in enumerate(message.content):
                    self._known[id(part)] = (number, position)
        return self._known

    def _node(self, turn: int, position: int) -> Node:
        nodes = self._nodes.get(turn)
        if nodes is None:
            place = self._turns[turn]
            nodes = self._places.parts(place)
            content = self._request.messages[turn].content if turn < len(self._request.messages) else ()
            if len(nodes) != len(content):
                nodes = _aligned(nodes, content, Node(place.path, "", place.value))
            self._nodes[turn] = nodes
        return nodes[position] if position < len(nodes) else Node(self._turns[turn].path)


def answer_located(
    places: Places | None,
    losses: Iterable[Loss],
    body: dict[str, Any] | None = None,
    content: Sequence[Part] = (),
) -> tuple[Loss, ...]:
    """Losses of an answer, in the document that the client gets. Without a `body` (a stream: its client
    assembles the document) they are reported at the usual places of that document."""
    if places is None:
        return tuple([_moved(loss, loss.path, "response") for loss in losses])
    parts = _AnswerParts(places, content)
    moved = [_moved(loss, _answer_path(places, loss.path, body, parts), "response") for loss in losses]
    return _once(moved)


def _once(losses: list[Loss]) -> tuple[Loss, ...]:
    return tuple(dict.fromkeys(losses)) if len(losses) > 1 else tuple(losses)


class _AnswerParts:
    """The parts of one answer in its document, for all of its losses."""

    __slots__ = ("_nodes", "_ordinals", "_places", "content")

    def __init__(self, places: Places, content: Sequence[Part]) -> None:
        self.content = content
        self._places = places
        self._nodes: list[Node] | None = None
        self._ordinals: _Ordinals | None = None

    def node(self, number: int, inner: dict[str, Any]) -> Node | None:
        if self._nodes is None or self._ordinals is None:
            self._nodes = self._places.answer_parts(inner)
            self._ordinals = _Ordinals(self.content, [node.kind for node in self._nodes])
        place = self._ordinals.place(self.content[number])
        return None if place is None else self._nodes[place]


def _answer_path(places: Places, path: str, body: dict[str, Any] | None, parts: _AnswerParts) -> str:
    root = "$"
    inner = body
    envelope = places.response_envelope
    if envelope and (body is None or type(body.get(envelope)) is dict):
        root = f"$.{envelope}"
        inner = body[envelope] if body is not None else None
    if body is not None and inner is not None and not places.snake and not body.get("error"):
        name = path[2:]
        if name.isidentifier() and name.isascii() and len(path) < PATH_LONGEST and name not in places.answer:
            # A field of the upstream's dialect alone, as most are: it is here, or nowhere.
            return f"{root}.{name}" if name in inner else root
    found = _PART.match(path)
    if found is not None:
        name = "content"
        if inner is not None and int(found[1]) < len(parts.content):
            node = parts.node(int(found[1]), inner)
            if node is not None:
                rest = path[found.end() :].removeprefix(".")
                candidates = _candidates(rest, places.fields)
                inside = nearest(node.value, [joined("$", one) for one in candidates], places.snake)
                return root + node.path[1:] + inside[1:]
    elif (other := _OTHER.match(path)) is not None:
        name = f"others[{int(other[1]) + 1}]"
    else:
        name = path.removeprefix("$").removeprefix(".")
    candidates = _candidates(name, places.answer)
    if body is None:
        own = places.answer.get(name) or places.answer.get(name.partition(".")[0].partition("[")[0])
        return joined(root, own[0]) if own else root
    if body.get("error"):  # many answers have an empty `error`
        candidates = [*candidates, "error"]
    return nearest(body, [joined(root, candidate) for candidate in candidates], places.snake)


def _kind(part: object) -> str:
    return type(part).__name__


class _Ordinals:
    """Finds parts among others: as the n-th of their kind, or the last of it if there are fewer."""

    __slots__ = ("_among", "_order", "_places")

    def __init__(self, among: Sequence[Part], others: Iterable[str]) -> None:
        """`others`: their kinds."""
        self._among = among  # what has an id below stays
        self._places: dict[str, list[int]] = {}
        for place, kind in enumerate(others):
            self._places.setdefault(kind, []).append(place)
        self._order: dict[int, int] = {}
        count: dict[str, int] = {}
        for part in among:
            kind = _kind(part)
            count[kind] = before = count.get(kind, -1) + 1
            self._order.setdefault(id(part), before)

    def place(self, part: Part) -> int | None:
        places = self._places.get(_kind(part))
        return None if places is None else places[min(self._order[id(part)], len(places) - 1)]


def _aligned(nodes: list[Node], content: Sequence[Part], fallback: Node) -> list[Node]:
    """A node for each part, in order: some nodes are not parts (the state of a neighbour)."""
    out: list[Node] = []
    place = 0
    absent: set[str] = set()
    for part in content:
        kind = _kind(part)
        left = range(place, len(nodes)) if kind not in absent else ()
        found = next((index for index in left if nodes[index].kind in (kind, "")), None)
        if found is None:
            absent.add(kind)
            out.append(fallback)
        else:
            out.append(nodes[found])
            place = found + 1
    return out


def _aligned_turns(
    turns: list[Turn], messages: Sequence[Message], parts: Callable[[Turn], list[Node]]
) -> list[Turn]:
    """A turn for each message, if there are turns that became none or part of another."""
    nodes = [parts(turn) for turn in turns]
    out: list[Turn] = []
    place = 0
    absent: set[str] = set()
    for message in messages:
        kind = _kind(message.content[0]) if message.content else ""
        left = range(place, len(turns)) if kind not in absent else ()
        found = next(
            (
                index
                for index in left
                if (not nodes[index] and not kind) or any(node.kind in (kind, "") for node in nodes[index])
            ),
            None,
        )
        if found is None:
            absent.add(kind)
            out.append(turns[min(place, len(turns) - 1)] if turns else Turn("$", None))
        else:
            out.append(turns[found])
            place = found + 1
    return out


def _tool_names(tool: AnyTool) -> tuple[str, str]:
    """The tool's own name, and the type of its vendor's declaration; "" if it has none."""
    if isinstance(tool, Tool):
        return tool.name, tool.native.type if tool.native is not None else ""
    return "", tool.native.type


def _candidates(name: str, names: Names) -> list[str]:
    """Possible names for a neutral name: with its longest known prefix translated by the dialect, or
    unchanged."""
    out: list[str] = []
    end = len(name)
    while end > 0:
        own = names.get(name[:end])
        if own is not None:
            rest = name[end:]
            out += (one + rest for one in own)
            if rest.startswith("."):  # unknown fields keep their own names
                out.append(rest[1:])
            break
        end = max(map(name[:end].rfind, ".["))
    out.append(name)
    return out


_USAGE = "$.usage."
_MANY: frozenset[Feature] = frozenset({"unknown_field", "usage.detail"})


def _moved(loss: Loss, path: str, document: Document = "request") -> Loss:
    if path == loss.path and document == loss.document:
        return loss
    detail = loss.detail
    if loss.feature in _MANY or (document == "response" and loss.action == "dropped"):
        # Several counts have one place, or the document has no such field, since it was lost. Audio tokens of
        # a request differ from those of its answer, so counts keep their whole name.
        counted = loss.path.startswith(_USAGE)
        name = loss.path[len(_USAGE) :] if counted else loss.path.rpartition(".")[2]
        if name != "$" and "[" not in name and not path.endswith(name):
            detail = f"{name}: {detail}" if detail else name
    return Loss(path, loss.feature, loss.action, detail, document)
