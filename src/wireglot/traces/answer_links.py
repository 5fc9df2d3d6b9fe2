"""What became of each part of an upstream's answer, in the answer that the client got."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.content import Part
from wireglot.ir.errors import WireglotError
from wireglot.traces.again import Asked, answer_again, without_error
from wireglot.traces.links import linked
from wireglot.traces.marks import Marker
from wireglot.traces.nodes import Index, Spot, cut_answer
from wireglot.traces.pointer import Steps
from wireglot.traces.target import Target
from wireglot.traces.trace import Link

_DEGREES: Final = ((True, True), (False, False))


def answer_links(
    client: str,
    told: dict[str, Any],
    target: Target,
    came: dict[str, Any],
    *,
    asked: Asked | None = None,
    context: Context | None = None,
) -> list[Link]:
    """Pairs of what the client was `told` and what `came` from upstream. Raises what a translation raises."""
    spoken, answered = dialect(target.source or client), dialect(target.dialect)
    if spoken.places is None or answered.places is None:
        return []
    there = cut_answer(answered.places, came)
    if answered.parse_error(came) is not None:
        if not there.spots:
            return []
        came = without_error(came)  # a stream may have said something before it
    if target.passthrough:
        return linked([(spot.steps, spot.steps) for spot in there.spots], told, came)
    context = context or (asked.context if asked is not None else Context())
    response = answered.parse_response(came, context)
    origins = _aligned(there.spots, response.content)
    real = answer_again(client, response, target, asked, context).document
    here = Index(cut_answer(spoken.places, real))
    for blank, opaque in _DEGREES:
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
        return linked(pairs, told, came)
    return []


def _aligned(spots: Sequence[Spot], content: Sequence[Part]) -> list[Spot | None]:
    """A place for each part, in their order: some places are no part (the state of a neighbour)."""
    out: list[Spot | None] = []
    at = 0
    for part in content:
        kinds = (type(part).__name__, "")
        number = next((index for index in range(at, len(spots)) if spots[index].kind in kinds), None)
        out.append(None if number is None else spots[number])
        at = at if number is None else number + 1
    return out
