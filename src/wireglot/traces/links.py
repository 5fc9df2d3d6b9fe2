"""What became of each part of a client's document: pairs of JSON pointers.

They come of the translation itself. The trail of the fitting knows what became of each message, part and
tool; marks in the fitted request show where its renderer put them (`marks.py`); the dialects' places say how
both documents are cut. Nothing is found by comparing texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.base import Context, Places
from wireglot.dialects.places import RequestPlaces
from wireglot.dialects.registry import dialect
from wireglot.ir.content import Part, ToolCall, ToolResult
from wireglot.ir.errors import WireglotError
from wireglot.ir.request import AnyTool, Tool
from wireglot.traces.again import Asked, ask_again
from wireglot.traces.marks import Marker, Place
from wireglot.traces.nodes import Cut, Index, cut_request, settings_of
from wireglot.traces.pointer import Steps, found, pointer, steps_of
from wireglot.traces.target import Target
from wireglot.traces.trace import Link

_DEGREES: Final = ((True, True), (False, True), (True, False), (False, False))
"""Which parts are marked, the most first: blank ones, opaque ones."""
_COUNTED: Final[dict[type[Part], str]] = {ToolCall: "ToolCall", ToolResult: "ToolResult"}
_NOBODY: Final = "$.messages"
"""Where the trail puts what no client wrote."""

Pair = tuple[Steps, Steps]


def request_links(
    client: str,
    body: dict[str, Any],
    target: Target,
    upstream: dict[str, Any],
    *,
    context: Context | None = None,
    asked: Asked | None = None,
) -> list[Link]:
    """Pairs of the client's request and what was sent upstream, in the order of the client's document.

    `asked`: what was translated, where somebody has done so already. Raises what a translation raises.
    """
    ours, theirs = dialect(target.source or client).places, dialect(target.dialect).places
    if ours is None or theirs is None:
        return []
    if target.passthrough:
        return linked(_as_it_is(ours, body), body, upstream)
    again = asked or ask_again(client, body, target, context)
    there = cut_request(theirs, again.document)
    if len(cut_request(theirs, upstream).turns) != len(there.turns):
        return []  # it was another conversation that went upstream: nothing is known of its places
    return linked(_Translated(again, target, ours, body, there).pairs(theirs), body, upstream)


def linked(pairs: Iterable[Pair], body: Any, upstream: Any) -> list[Link]:
    """Those of which both sides are there, each once, in the order of the first side."""
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
    """One request on its way from one document into the other."""

    def __init__(
        self, again: Asked, target: Target, places: Places, body: dict[str, Any], there: Cut
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
        """Where the client wrote what became this value."""
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
        """A tool is known by its name there; one that its provider runs by its place among those."""
        pairs: list[Pair] = []
        left = dict(self.there.tools)
        unnamed: list[Steps] = []
        for number, tool in enumerate(tools):
            mine = self._home(tool, f"$.tools[{number}]")
            if mine is None:
                continue
            name = tool.name if isinstance(tool, Tool) else tool.native.type
            place = next((steps for steps, told in left.items() if told == name), None)
            if place is not None:
                del left[place]
                pairs.append((mine, place))
            elif not isinstance(tool, Tool):
                unnamed.append(mine)
        if len(unnamed) == len(left):
            pairs += zip(unnamed, left, strict=True)
        return pairs

    def _placed(self) -> dict[Place, list[Steps]]:
        """Where each part of the fitted request stands in the upstream's document."""
        sent = self.planned.upstream
        context = replace(self.again.context, memory=None)
        real = self.answered.render_request(sent, context).value
        marker, marks = Marker(real), {}
        for blank, opaque in _DEGREES:
            marker = Marker(real)
            messages = marker.marked(sent.messages, blank=blank, opaque=opaque)
            try:
                marked = self.answered.render_request(replace(sent, messages=messages), context).value
            except WireglotError:  # this dialect looks into what it is given
                continue
            if marker.same_shape(marked, real):
                marks = marker.found(marked)
                break
        return self._with_results(marks)

    def _with_results(self, marks: dict[Place, list[Steps]]) -> dict[Place, list[Steps]]:
        """Whole parts: a mark stands somewhere inside of one. A result is where what it says is."""
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
        """Calls and results that say nothing, by their number, where all of them are there."""
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
    """The item of a result that a mark stands in, or the text that all of it is."""
    for size in range(len(way), len(whole), -1):
        if type(way[size - 1]) is int:
            return way[:size]
    return way
