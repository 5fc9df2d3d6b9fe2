"""What is told of a part that only its own dialect knows, by whoever leaves it out."""

from __future__ import annotations

from wireglot.ir.content import Foreign
from wireglot.ir.loss import Loss


def left_out(part: Foreign, path: str) -> Loss:
    what = f"{part.type} of {part.dialect}"
    if part.for_vendor:
        return Loss(path, "metadata", "dropped", f"{what}: a note to its vendor")
    if part.stands_elsewhere:
        return Loss(path, "foreign_part", "emulated", f"{what}: its content is told elsewhere")
    return Loss(path, "foreign_part", "dropped", what)
