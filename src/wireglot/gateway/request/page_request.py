"""A request for a page, which needs no provider; and lists with OpenAI's paging."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.entry.routes import Asked, query_value
from wireglot.gateway.errors import RequestError, invalid_value
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.headers import JSON, identity
from wireglot.gateway.settings import Settings
from wireglot.http.application import Head, Headers, Reply
from wireglot_core.wire.json import BadJson, decode, encode

_PAGE_USUAL: Final = 20
# Items on one page of a list of stored items.
_MAX_PAGE: Final = 100


class PageRequest(msgspec.Struct, frozen=True, kw_only=True):
    settings: Settings
    caller: Caller
    head: Head
    asked: Asked
    body: bytes
    reply: Reply
    record: ExchangeRecord

    def document(self) -> dict[str, Any]:
        """The body; {} if there is none."""
        try:
            value = decode(self.body) if self.body else {}
        except BadJson as problem:
            raise RequestError("bad", f"the body is not JSON: {problem}", code="invalid_json") from None
        if not isinstance(value, dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type")
        return value

    def query(self, name: str) -> str:
        return query_value(self.head.query, name)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        text = self.query(name)
        if not text:
            return default
        if len(text) > 18 or not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise RequestError("bad", f"{name}: expected a whole number from {least} to {most}", param=name)
        return int(text)

    def send(self, document: object, status: int = 200, more: Headers | None = None) -> None:
        self.record.answered(status)
        headers = [JSON, *identity(self.record.id, self.asked.dialect), *(more or [])]
        self.reply.send(status, headers, encode(document))


def unavailable(what: str) -> RequestError:
    """The store does not answer, and the request needs it."""
    return RequestError(
        "upstream_down", f"{what}: the gateway's store is not available", code="storage_unavailable",
        retry_after=2,
    )  # fmt: skip


def page_size(page: PageRequest) -> int:
    return page.number("limit", _PAGE_USUAL, 1, _MAX_PAGE)


def order_of(page: PageRequest) -> Literal["asc", "desc"]:
    match page.query("order"):
        case "asc":
            return "asc"
        case "" | "desc":
            return "desc"
    raise invalid_value("order", "asc or desc")


def listed(entries: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": entries,
        "first_id": entries[0]["id"] if entries else None,
        "last_id": entries[-1]["id"] if entries else None,
        "has_more": has_more,
    }
