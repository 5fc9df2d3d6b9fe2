"""What is reported about a part that only its own dialect knows, by the one that leaves it out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from wireglot.ir.content import Foreign, Reasoning
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request

_PART: Final = re.compile(r"\$\.messages\[(\d+)\]\.content\[(\d+)\](\.signature)?")
_WHOLE: Final = frozenset({"reasoning.text", "reasoning.redacted"})


def left_out(part: Foreign, path: str) -> Loss:
    what = f"{part.type} of {part.dialect}"
    if part.for_vendor:
        return Loss(path, "metadata", "dropped", f"{what}: a note to its vendor")
    if part.stands_elsewhere:
        return Loss(path, "foreign_part", "emulated", f"{what}: its content is sent elsewhere")
    return Loss(path, "foreign_part", "dropped", what)


def withheld(request: Request, losses: Iterable[Loss]) -> tuple[Reasoning, ...]:
    """The reasoning of a history of which nothing reaches the model, in its order. `losses` are at their
    neutral places in the request."""
    found: dict[tuple[int, int], Reasoning] = {}
    for loss in losses:
        if loss.action != "dropped" or not loss.feature.startswith("reasoning."):
            continue
        place = _PART.fullmatch(loss.path)
        if place is None:
            continue
        message, index = int(place[1]), int(place[2])
        part = request.messages[message].content[index]
        if isinstance(part, Reasoning) and (loss.feature in _WHOLE or not part.text):
            found[message, index] = part
    return tuple(map(found.__getitem__, sorted(found)))
