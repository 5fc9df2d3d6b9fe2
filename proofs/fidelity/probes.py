"""What a probe is: one small conversation or answer, and how to find its feature in what arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wireglot_core.ir.content import Media, Part, Reasoning, ToolCall
from wireglot_core.ir.loss import Feature
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.testing.strategies import samples
from wireglot_core.traces.canonical import canonical_arguments


class RequestProbe(msgspec.Struct, frozen=True):
    """`look` finds the feature in a request; `features` are the losses that may speak of it."""

    name: str
    request: Request
    look: Callable[[Request], Any]
    features: frozenset[Feature]


class ResponseProbe(msgspec.Struct, frozen=True):
    name: str
    response: Response
    look: Callable[[Response], Any]
    features: frozenset[Feature]


class StateProbe(msgspec.Struct, frozen=True):
    """Opaque state an upstream minted: it must come back to it through the client's next request."""

    name: str
    part: Part
    look: Callable[[tuple[Part, ...]], Any]
    features: frozenset[Feature]


def calls(parts: tuple[Part, ...] | list[Part]) -> list[tuple[str, ...]]:
    return [
        (
            part.kind,
            part.namespace,
            part.name,
            part.arguments if part.kind == "custom" else canonical_arguments(part.arguments),
        )
        for part in parts
        if isinstance(part, ToolCall)
    ]


def reasoning(parts: tuple[Part, ...] | list[Part]) -> list[str]:
    return [part.text for part in parts if isinstance(part, Reasoning)]


def features(*names: Feature) -> frozenset[Feature]:
    return frozenset(names)


CALL = ToolCall("call_1", "get_weather", '{"city":"Bern"}')
OTHER = ToolCall("call_2", "get_time", "{}")
IMAGE = Media("image", "image/png", samples.PNG)
