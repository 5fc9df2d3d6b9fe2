"""Losses at their places in both documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    known = by_client(links)
    return [placed(traced(loss), body, known) for loss in losses]


def placed(loss: TracedLoss, body: Any, links: Mapping[str, str]) -> TracedLoss:
    """The same loss with pointers: into the client's document as far as the path leads there, and to what
    the nearest part around it has become. `links`: see `by_client`."""
    pointer = pointer_of(loss.path)
    while pointer and not found(body, pointer):
        pointer = pointer.rpartition("/")[0]
    return replace(loss, pointer=pointer, upstream=_upstream(pointer, links) if pointer else "")


def _upstream(pointer: str, links: Mapping[str, str]) -> str:
    while pointer:
        if pointer in links:
            return links[pointer]
        pointer = pointer.rpartition("/")[0]
    return ""


def by_client(links: Iterable[Link]) -> dict[str, str]:
    """What became of each place; of one that became several, the last: turns come before their parts."""
    return {link.client: link.upstream for link in links}
