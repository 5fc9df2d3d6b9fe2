"""Links each part of a client's document to the part of the upstream's document it became: pairs of JSON
pointers.

They are derived from the translation itself. The trail of the fitting knows what each message, part and tool
became; marks in the fitted request show where its renderer put them (`Marker`); the dialects' places define
how both documents are divided. Nothing is found by comparing texts.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.json_path import joined, resolved
from wireglot_core.dialects.places import Node, Places, RequestPlaces
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import (
    Foreign,
    Media,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.request import AnyTool, Request, Sampling, Thinking, Tool
from wireglot_core.traces.again import RequestAgain, answer_again, ask_again, without_error
from wireglot_core.traces.bodies import UnreadableBody
from wireglot_core.traces.pointer import Steps, found, pointer, steps_of
from wireglot_core.traces.target import TraceTarget
from wireglot_core.traces.trace import Link
from wireglot_core.wire.json import encode

_SETTINGS: Final = (
    "model",
    "stream",
    "max_tokens",
    "stop",
    "tool_choice",
    "parallel_tools",
    "output",
    "verbosity",
    "user",
    "metadata",
    "service_tier",
    "cache_key",
    *(f"sampling.{name}" for name in Sampling.__struct_fields__),
    *(f"thinking.{name}" for name in Thinking.__struct_fields__ if name != "extra"),
)


class Spot(msgspec.Struct, frozen=True):
    """A part of a document, and the turn it belongs to."""

    steps: Steps
    kind: str
    turn: Steps


class Cut(msgspec.Struct, frozen=True):
    """One document, divided into parts."""

    turns: tuple[Steps, ...]
    spots: tuple[Spot, ...]
    tools: tuple[tuple[Steps, str], ...]
    """Tools with their names, or the types of their vendor's declarations."""


class Index:
    """Finds the parts and turns that contain a path. Built once per document: it is used for each part of a
    long conversation."""

    __slots__ = ("_spots", "_turns")

    def __init__(self, cut: Cut) -> None:
        self._spots = {spot.steps: spot for spot in reversed(cut.spots)}
        self._turns = frozenset(cut.turns)

    def around(self, at: Steps) -> Spot | None:
        """The part that contains a path, or is at it."""
        for size in range(len(at), -1, -1):
            found = self._spots.get(at[:size])
            if found is not None:
                return found
        return None

    def turn(self, at: Steps) -> Steps | None:
        return next((at[:size] for size in range(len(at) + 1) if at[:size] in self._turns), None)


def cut_request(places: Places, body: dict[str, Any]) -> Cut:
    inner, root = _inside(body, places.request_envelope)
    turns, spots = [], []
    for turn in places.turns(inner):
        at = _under(root, turn.path)
        turns.append(at)
        spots += _spots(places.parts(turn), root, at)
    tools = [(_under(root, node.path), node.kind) for node in places.tools(inner)]
    return Cut(tuple(turns), tuple(spots), tuple(tools))


def cut_answer(places: Places, body: dict[str, Any]) -> Cut:
    inner, root = _inside(body, places.response_envelope)
    return Cut((), tuple(_spots(places.answer_parts(inner), root, root)), ())


def settings_of(places: Places, body: dict[str, Any], request: Request) -> dict[str, Steps]:
    """The settings of a request, by neutral name, and their paths in the document."""
    inner, root = _inside(body, places.request_envelope)
    out = {}
    for name in _SETTINGS:
        value: Any = request
        for field in name.split("."):
            value = getattr(value, field)
        if value is None or value == "" or value == () or value == {}:
            continue
        for own in places.settings.get(name, (name,)):
            found, left = resolved(inner, joined("$", own), places.snake)
            if not left and found != "$":
                out[name] = _under(root, found)
                break
    return out


def _inside(body: dict[str, Any], envelope: str) -> tuple[dict[str, Any], Steps]:
    if envelope and type(body.get(envelope)) is dict:
        return body[envelope], (envelope,)
    return body, ()


def _spots(nodes: list[Node], root: Steps, turn: Steps) -> list[Spot]:
    return [Spot(_under(root, node.path), node.kind, turn) for node in nodes]


def _under(root: Steps, path: str) -> Steps:
    steps = steps_of(path)
    assert steps is not None, path
    return root + steps


_DIGITS: Final = 6
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PLAIN_KEYS: Final = 64

_MARK: Final = re.compile(rb"W(?=([a-z]{2})[0-9]{6})|V[23](?=([A-Za-z0-9+/]{10}))")
"""A mark, or what may be one in base64. A large picture has every three letters somewhere, but without digits
after them."""

Place = tuple[int, int, int]
"""The indexes of a message, of its part, and of an item of that result, or -1."""


def _words_of(text: bytes) -> Iterator[bytes]:
    """The words of marks in a text."""
    for mark in _MARK.finditer(text):
        if mark[1]:
            yield b"W" + mark[1]
        elif _MARK.match(plain := base64.b64decode(mark[0] + mark[2])):
            yield plain[:3]


class Marker:
    """Marks that do not occur in a document yet. Each is nine characters: in base64 it stays in one piece.
    Raises UnreadableBody if all of them do."""

    __slots__ = ("_encoded", "_plain", "_word", "places")

    def __init__(self, *documents: Any) -> None:
        taken = {word for document in documents for word in _words_of(encode(document))}
        words = (f"W{one}{two}" for one in _LETTERS for two in _LETTERS)
        word = next((word for word in words if word.encode() not in taken), None)
        if word is None:
            raise UnreadableBody("it contains every mark by which its parts could be found again")
        self._word = word
        self._plain = re.compile(rf"{self._word}(\d{{{_DIGITS}}})")
        begins = base64.b64encode(self._word.encode()).decode()
        self._encoded = re.compile(rf"{re.escape(begins)}[A-Za-z0-9+/]{{8}}")
        self.places: list[Place] = []

    def _next(self, place: Place) -> str:
        self.places.append(place)
        return f"{self._word}{len(self.places) - 1:0{_DIGITS}}"

    def marked(self, messages: Iterable[Message], *, blank: bool, opaque: bool) -> tuple[Message, ...]:
        """`blank`: also mark parts without content. `opaque`: also mark parts that only their own dialect
        reads."""
        return tuple(
            replace(message, content=self.parts(message.content, number, blank=blank, opaque=opaque))
            for number, message in enumerate(messages)
        )

    def parts(self, content: Iterable[Part], number: int, *, blank: bool, opaque: bool) -> tuple[Part, ...]:
        return tuple(
            self._part(part, (number, at, -1), blank=blank, opaque=opaque) for at, part in enumerate(content)
        )

    def _part(self, part: Part, place: Place, *, blank: bool, opaque: bool) -> Part:
        match part:
            case ToolCall():
                return replace(part, arguments=self._arguments(part, place))
            case ToolResult():
                return self._result(part, place, blank=blank, opaque=opaque)
            case Reasoning():
                return self._reasoning(part, place, opaque=opaque)
            case Text() | Media() | Foreign():
                return self._plain_part(part, place, blank=blank, opaque=opaque)

    def _plain_part(self, part: ResultPart, place: Place, *, blank: bool, opaque: bool) -> ResultPart:
        match part:
            case Text():
                if not part.text.strip() and not blank:
                    return part
                return replace(part, text=self._next(place) + part.text)
            case Media():
                return self._media(part, place)
            case Foreign():
                return replace(part, value={self._next(place): 0, **part.value}) if opaque else part

    def _media(self, part: Media, place: Place) -> Media:
        mark = self._next(place)
        if part.data is not None:
            return replace(part, data=base64.b64encode(mark.encode()).decode() + part.data)
        if part.text is not None:
            return replace(part, text=mark + part.text)
        if part.url is not None:
            return replace(part, url=f"{part.url}#{mark}")
        return replace(part, file_id=f"{part.file_id or ''}{mark}")

    def _reasoning(self, part: Reasoning, place: Place, *, opaque: bool) -> Reasoning:
        if part.text and not part.redacted:
            return replace(part, text=self._next(place) + part.text)
        if part.signature is None or not opaque:
            return part
        name = part.signature
        return replace(part, signature=Signature(self._next(place) + name.data, name.origin, name.id))

    def _arguments(self, call: ToolCall, place: Place) -> str:
        text, mark = call.arguments.strip(), self._next(place)
        if call.kind == "custom" or not (text.startswith("{") or not text):
            return mark + call.arguments
        inside = text[1:].lstrip()
        return f'{{"{mark}":0}}' if not inside or inside == "}" else f'{{"{mark}":0,{inside}'

    def _result(self, part: ToolResult, place: Place, *, blank: bool, opaque: bool) -> ToolResult:
        number, at, _ = place
        content = tuple(
            self._plain_part(item, (number, at, index), blank=blank, opaque=opaque)
            for index, item in enumerate(part.content)
        )
        return replace(part, content=content)

    def found(self, document: Any) -> dict[Place, list[Steps]]:
        """Where each mark is in a document: the path of a text itself; for a key, the path of its object."""
        out: dict[Place, list[Steps]] = {}
        stack: list[tuple[Steps, Any]] = [((), document)]
        while stack:
            at, value = stack.pop()
            if type(value) is str:
                for number in self._numbers(value):
                    out.setdefault(self.places[number], []).append(at)
            elif type(value) is list:
                stack += [((*at, index), item) for index, item in reversed(list(enumerate(value)))]
            elif type(value) is dict:
                for key in value:
                    for number in self._numbers(key) if len(key) <= _PLAIN_KEYS else ():
                        out.setdefault(self.places[number], []).append(at)
                stack += [((*at, key), item) for key, item in reversed(value.items())]
        return out

    def _numbers(self, text: str) -> list[int]:
        numbers = [int(found[1]) for found in self._plain.finditer(text)]
        for encoded in self._encoded.finditer(text):
            plain = self._plain.fullmatch(base64.b64decode(encoded[0]).decode("utf-8", "replace"))
            if plain is not None:
                numbers.append(int(plain[1]))
        return [number for number in numbers if number < len(self.places)]

    def same_shape(self, marked: Any, real: Any) -> bool:
        """Whether two documents have the same members and items, apart from members that are marks."""
        stack = [(marked, real)]
        while stack:
            one, other = stack.pop()
            if type(one) is dict and type(other) is dict:
                names = [key for key in one if not self._plain.match(key)]
                if len(names) != len(other) or any(key not in other for key in names):
                    return False
                stack += [(one[key], other[key]) for key in names]
            elif type(one) is list and type(other) is list:
                if len(one) != len(other):
                    return False
                stack += zip(one, other, strict=True)
            elif _container(one) is not _container(other):
                return False
        return True


def _container(value: Any) -> type | None:
    """The kind of container a value is, as far as paths are concerned."""
    kind = type(value)
    return kind if kind in (dict, list, str) else None


_DEGREES: Final = ((True, True), (False, True), (True, False), (False, False))
"""Which parts are marked, most first: (blank parts, opaque parts)."""
_COUNTED: Final[dict[type[Part], str]] = {ToolCall: "ToolCall", ToolResult: "ToolResult"}
_NOBODY: Final = "$.messages"
"""The trail's path for values that no client wrote."""

Pair = tuple[Steps, Steps]


def request_links(
    client: str,
    body: dict[str, Any],
    target: TraceTarget,
    upstream: dict[str, Any],
    *,
    context: Context | None = None,
    asked: RequestAgain | None = None,
) -> list[Link]:
    """Pairs of places in the client's request and in the upstream request, in the order of the client's
    document.

    `asked`: the translated request, if the translation has been done already. Raises the translation's
    errors.
    """
    ours, theirs = dialect(target.source or client).places, dialect(target.dialect).places
    if ours is None or theirs is None:
        return []
    if target.passthrough:
        return linked(_as_it_is(ours, body), body, upstream)
    again = asked or ask_again(client, body, target, context)
    there = cut_request(theirs, again.document)
    if len(cut_request(theirs, upstream).turns) != len(there.turns):
        return []  # another conversation was sent upstream: its places are unknown
    return linked(_Translated(again, target, ours, body, there).pairs(theirs), body, upstream)


def linked(pairs: Iterable[Pair], body: Any, upstream: Any) -> list[Link]:
    """The pairs whose sides both exist, each once, in the order of the first side."""
    order = {pointer(mine): None for mine, _ in pairs}
    links = {Link(pointer(mine), pointer(place)): None for mine, place in pairs if mine and place}
    known = [link for link in links if found(body, link.client) and found(upstream, link.upstream)]
    places = {name: number for number, name in enumerate(order)}
    return sorted(known, key=lambda link: places[link.client])


def _as_it_is(places: Places, body: dict[str, Any]) -> list[Pair]:
    cut = cut_request(places, body)
    whole = [*cut.turns, *(spot.steps for spot in cut.spots), *(steps for steps, _ in cut.tools)]
    inside = {steps[:1] for steps in whole}
    whole += [(name,) for name in body if (name,) not in inside]
    return [(steps, steps) for steps in whole]


class _Translated:
    """The translation of one request from one document to the other."""

    def __init__(
        self, again: RequestAgain, target: TraceTarget, places: Places, body: dict[str, Any], there: Cut
    ) -> None:
        self.again = again
        self.planned = again.planned
        self.answered = dialect(target.dialect)
        self.places = places
        self.body = body
        self.here = Index(cut_request(places, body))
        self.there = there
        self.inside = Index(there)
        self.way = RequestPlaces(places, body, again.read)

    def pairs(self, theirs: Places) -> list[Pair]:
        asked, sent = self.again.own, self.planned.upstream
        ours = settings_of(self.places, self.body, asked)
        others = settings_of(theirs, self.again.document, sent)
        settings = [(ours[name], others[name]) for name in ours if name in others]
        return [*self._conversation(), *self._tools(sent.tools), *settings]

    def _home(self, value: Any, neutral: str) -> Steps | None:
        """The place where the client wrote what became this value."""
        trail = self.planned.trail
        before = neutral if trail is None else trail.of(value)
        return steps_of(self.way.of(before, self.planned.client)) if before != _NOBODY else None

    def _conversation(self) -> list[Pair]:
        pairs: list[Pair] = []
        for (number, at, item), places in self._placed().items():
            part = self.planned.upstream.messages[number].content[at]
            value: Any = part
            neutral = f"$.messages[{number}].content[{at}]"
            if item >= 0 and type(part) is ToolResult:
                value, neutral = part.content[item], f"{neutral}.content[{item}]"
            mine = self._home(value, neutral)
            for place in places if mine else ():
                assert mine is not None
                pairs += [*self._turn(mine, place), (mine, place)]
        return pairs

    def _turn(self, mine: Steps, place: Steps) -> list[Pair]:
        here, there = self.here.turn(mine), self.inside.turn(place)
        return [(here, there)] if here is not None and there is not None else []

    def _tools(self, tools: tuple[AnyTool, ...]) -> list[Pair]:
        """Links the tools: by name; one that its provider runs, by its position among those."""
        pairs: list[Pair] = []
        left = dict(self.there.tools)
        unnamed: list[Steps] = []
        for number, tool in enumerate(tools):
            mine = self._home(tool, f"$.tools[{number}]")
            if mine is None:
                continue
            name = tool.name if isinstance(tool, Tool) else tool.native.type
            place = next((steps for steps, reported in left.items() if reported == name), None)
            if place is not None:
                del left[place]
                pairs.append((mine, place))
            elif not isinstance(tool, Tool):
                unnamed.append(mine)
        if len(unnamed) == len(left):
            pairs += zip(unnamed, left, strict=True)
        return pairs

    def _placed(self) -> dict[Place, list[Steps]]:
        """The path of each part of the fitted request in the upstream's document."""
        sent = self.planned.upstream
        context = replace(self.again.context, memory=None)
        real = self.answered.render_request(sent, context).value
        marker, marks = Marker(real), {}
        for blank, opaque in _DEGREES:
            marker = Marker(real)
            messages = marker.marked(sent.messages, blank=blank, opaque=opaque)
            try:
                marked = self.answered.render_request(replace(sent, messages=messages), context).value
            except WireglotError:  # this dialect validates the values it renders
                continue
            if marker.same_shape(marked, real):
                marks = marker.found(marked)
                break
        return self._with_results(marks)

    def _with_results(self, marks: dict[Place, list[Steps]]) -> dict[Place, list[Steps]]:
        """Extends each mark's path to the whole part that contains it. A tool result is located by its
        content."""
        placed: dict[Place, list[Steps]] = {}
        for place, ways in marks.items():
            number, at, item = place
            for way in ways:
                spot = self.inside.around(way)
                if spot is None:
                    continue
                whole = spot.steps
                if item >= 0:
                    _add(placed, (number, at, -1), whole, spot.kind == "ToolResult")
                    whole = _inner(way, whole)
                _add(placed, place, whole, True)
        for kind, name in _COUNTED.items():
            self._count(kind, name, placed)
        return dict(sorted(placed.items()))

    def _count(self, kind: type[Part], name: str, placed: dict[Place, list[Steps]]) -> None:
        """Places calls and results without content by their order, if all of them are present."""
        asked = [
            (number, at, -1)
            for number, message in enumerate(self.planned.upstream.messages)
            for at, part in enumerate(message.content)
            if type(part) is kind
        ]
        there = [spot.steps for spot in self.there.spots if spot.kind == name]
        if len(asked) == len(there):
            for place, steps in zip(asked, there, strict=True):
                placed.setdefault(place, [steps])


def _add(placed: dict[Place, list[Steps]], place: Place, steps: Steps, wanted: bool) -> None:
    known = placed.setdefault(place, []) if wanted else []
    if steps not in known:
        known.append(steps)


def _inner(way: Steps, whole: Steps) -> Steps:
    """The path of the item of a result that contains a mark, or of the text if the result is one text."""
    for size in range(len(way), len(whole), -1):
        if type(way[size - 1]) is int:
            return way[:size]
    return way


_ANSWER_DEGREES: Final = ((True, True), (False, False))


def answer_links(
    client: str,
    reported: dict[str, Any],
    target: TraceTarget,
    came: dict[str, Any],
    *,
    asked: RequestAgain | None = None,
    context: Context | None = None,
) -> list[Link]:
    """Pairs of places in what the client was `reported` and what `came` from upstream. Raises the
    translation's errors."""
    spoken, answered = dialect(target.source or client), dialect(target.dialect)
    if spoken.places is None or answered.places is None:
        return []
    there = cut_answer(answered.places, came)
    if answered.parse_error(came) is not None:
        if not there.spots:
            return []
        came = without_error(came)  # a stream may contain an answer before it
    if target.passthrough:
        return linked([(spot.steps, spot.steps) for spot in there.spots], reported, came)
    context = context or (asked.context if asked is not None else Context())
    response = answered.parse_response(came, context)
    origins = _aligned(there.spots, response.content)
    real = answer_again(client, response, target, asked, context).document
    here = Index(cut_answer(spoken.places, real))
    for blank, opaque in _ANSWER_DEGREES:
        marker = Marker(real)
        content = marker.parts(response.content, 0, blank=blank, opaque=opaque)
        try:
            marked = answer_again(client, replace(response, content=content), target, asked, context).document
        except WireglotError:
            continue
        if not marker.same_shape(marked, real):
            continue
        pairs: list[tuple[Steps, Steps]] = []
        for (_, at, _), ways in sorted(marker.found(marked).items()):
            origin = origins[at]
            spots = (here.around(way) for way in ways)
            pairs += [(spot.steps, origin.steps) for spot in spots if spot is not None and origin is not None]
        return linked(pairs, reported, came)
    return []


def _aligned(spots: Sequence[Spot], content: Sequence[Part]) -> list[Spot | None]:
    """A place for each part, in order: some places are not parts (the state of a neighbour)."""
    out: list[Spot | None] = []
    at = 0
    for part in content:
        kinds = (type(part).__name__, "")
        number = next((index for index in range(at, len(spots)) if spots[index].kind in kinds), None)
        out.append(None if number is None else spots[number])
        at = at if number is None else number + 1
    return out
