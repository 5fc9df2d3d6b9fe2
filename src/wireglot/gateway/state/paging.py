"""Lists as OpenAI pages them."""

from __future__ import annotations

from typing import Any, Final, Literal

from wireglot.gateway.errors import RequestError
from wireglot.gateway.state.page_request import PageRequest

_USUAL: Final = 20
_MOST: Final = 100


def page_size(page: PageRequest) -> int:
    return page.number("limit", _USUAL, 1, _MOST)


def order_of(page: PageRequest) -> Literal["asc", "desc"]:
    match page.query("order"):
        case "asc":
            return "asc"
        case "" | "desc":
            return "desc"
    raise RequestError("bad", "order: expected asc or desc", code="invalid_value", param="order")


def listed(entries: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": entries,
        "first_id": entries[0]["id"] if entries else None,
        "last_id": entries[-1]["id"] if entries else None,
        "has_more": has_more,
    }
