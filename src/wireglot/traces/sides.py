"""Both requests of an exchange, part by part: what was kept, written otherwise, lost, or put in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import msgspec

from wireglot.traces.diff import object_in
from wireglot.traces.pointer import resolve
from wireglot.traces.trace import Link, TracedLoss

Fate = Literal["kept", "rewritten", "lost", "put in"]
_FATES: Final[dict[str, Fate]] = {"dropped": "lost", "invented": "put in"}
_FORM: Final = frozenset({"type", "role", "object", "status"})


class Side(msgspec.Struct, frozen=True):
    fate: Fate
    client: str = ""
    """A pointer into the client's request; "" where it has no such part."""
    upstream: str = ""
    detail: str = ""


def sides(
    body: dict[str, Any], sent: dict[str, Any], links: Sequence[Link], losses: Sequence[TracedLoss]
) -> list[Side]:
    """In the order of the client's document; what only the upstream's has comes last."""
    lost = [loss for loss in losses if loss.document == "request"]
    out: list[Side] = []
    for link in _innermost(links):
        here, there = resolve(body, link.client), resolve(sent, link.upstream)
        fate: Fate = "kept" if words(here) == words(there) else "rewritten"
        out.append(Side(fate, link.client, link.upstream))
        out += [_lost(loss) for loss in lost if _is_in(loss.pointer, link.client)]
    told = {side.client for side in out}
    out += [_lost(loss) for loss in lost if loss.pointer not in told or not loss.pointer]
    linked = [link.upstream for link in links]
    for name in sent:
        if not any(_is_in(place, f"/{name}") for place in linked):
            out.append(Side("put in", "", f"/{name}"))
    return list(dict.fromkeys(out))


def _lost(loss: TracedLoss) -> Side:
    detail = f"{loss.feature} {loss.action}" + (f": {loss.detail}" if loss.detail else "")
    return Side(_FATES.get(loss.action, "rewritten"), loss.pointer or loss.path, loss.upstream, detail)


def _innermost(links: Sequence[Link]) -> Iterable[Link]:
    """Parts rather than the turns around them."""
    around = _around({link.client for link in links})
    inner = [link for link in links if link.client not in around]
    there: dict[str, set[str]] = {}
    for link in inner:
        there.setdefault(link.client, set()).add(link.upstream)
    return [link for link in inner if link.upstream not in _around(there[link.client])]


def _around(places: Iterable[str]) -> set[str]:
    """All that any of these stands in."""
    return {place[:end] for place in places for end, letter in enumerate(place) if letter == "/" and end}


def _is_in(place: str, around: str) -> bool:
    return place == around or place.startswith(f"{around}/")


def words(value: Any) -> list[str]:
    """What a value says: its texts, numbers and names, in any order, without the words of its form."""
    out: list[str] = []
    stack = [value]
    while stack:
        each = stack.pop()
        if type(each) is dict:
            stack += [item for key, item in each.items() if key not in _FORM]
        elif type(each) is list:
            stack += each
        elif type(each) is str and each.startswith("{") and (inside := object_in(each)) is not None:
            stack.append(inside)  # arguments, which some dialects write as a text
        elif each is not None:
            out.append(str(each))
    return sorted(out)
