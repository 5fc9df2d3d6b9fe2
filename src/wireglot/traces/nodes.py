"""A document cut as its dialect reads it: turns, their parts, tools, settings, each by its place."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.dialects.json_path import joined, resolved
from wireglot.dialects.places import Node, Places
from wireglot.ir.request import Request
from wireglot.traces.pointer import Steps, steps_of

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
    "sampling.temperature",
    "sampling.top_p",
    "sampling.top_k",
    "sampling.frequency_penalty",
    "sampling.presence_penalty",
    "sampling.seed",
    "sampling.candidates",
    "sampling.logprobs",
    "sampling.top_logprobs",
    "thinking.mode",
    "thinking.effort",
    "thinking.budget",
    "thinking.display",
)


class Spot(msgspec.Struct, frozen=True):
    """A part of a document, and the turn that it stands in."""

    steps: Steps
    kind: str
    turn: Steps


class Cut(msgspec.Struct, frozen=True):
    """One document."""

    turns: tuple[Steps, ...]
    spots: tuple[Spot, ...]
    tools: tuple[tuple[Steps, str], ...]
    """With their names, or the types of their vendor's declarations."""


class Index:
    """What a place of a document is in: asked for each part of a long conversation."""

    __slots__ = ("_spots", "_turns")

    def __init__(self, cut: Cut) -> None:
        self._spots = {spot.steps: spot for spot in reversed(cut.spots)}
        self._turns = frozenset(cut.turns)

    def around(self, at: Steps) -> Spot | None:
        """The part that a place is in, or is."""
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
    """What a request sets, by its neutral name, and where the document says it."""
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
