"""Lists as OpenAI pages them."""

from __future__ import annotations

from typing import Any, Final, Literal

from wireglot.gateway.faults import Fault
from wireglot.gateway.state.question import Question

_USUAL: Final = 20
_MOST: Final = 100


def page_size(question: Question) -> int:
    return question.number("limit", _USUAL, 1, _MOST)


def order_of(question: Question) -> Literal["asc", "desc"]:
    match question.query("order"):
        case "asc":
            return "asc"
        case "" | "desc":
            return "desc"
    raise Fault("bad", "order: expected asc or desc", code="invalid_value", param="order")


def listed(entries: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": entries,
        "first_id": entries[0]["id"] if entries else None,
        "last_id": entries[-1]["id"] if entries else None,
        "has_more": has_more,
    }
