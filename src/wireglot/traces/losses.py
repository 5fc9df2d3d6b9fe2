"""Losses at their places in both documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from wireglot.ir.loss import Loss
from wireglot.traces.pointer import found, pointer_of
from wireglot.traces.trace import Link, TracedLoss


def traced(loss: Loss) -> TracedLoss:
    """A loss as it is told, before anybody has looked for its places."""
    return TracedLoss(
        feature=loss.feature,
        action=loss.action,
        grade=loss.grade,
        document=loss.document,
        path=loss.path,
        detail=loss.detail,
    )


def traced_losses(losses: Iterable[Loss], body: Any, links: Sequence[Link] = ()) -> list[TracedLoss]:
    """Losses of one document of the client's (`body`), and where that is upstream."""
    return [placed(traced(loss), body, links) for loss in losses]


def placed(loss: TracedLoss, body: Any, links: Sequence[Link]) -> TracedLoss:
    """The same loss with pointers: into the client's document as far as the path leads there, and to what
    the nearest part around it has become."""
    pointer = pointer_of(loss.path)
    while pointer and not found(body, pointer):
        pointer = pointer.rpartition("/")[0]
    return replace(loss, pointer=pointer, upstream=_upstream(pointer, links) if pointer else "")


def _upstream(pointer: str, links: Sequence[Link]) -> str:
    around = [link for link in links if link.client == pointer or pointer.startswith(f"{link.client}/")]
    return max(around, key=lambda link: len(link.client)).upstream if around else ""
