"""A request about what is remembered, with all that is needed to answer it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from wireglot.gateway.entry.guard import Caller, check_body_form
from wireglot.gateway.entry.routes import Asked, query_value
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.record import Record
from wireglot.gateway.request.job import identity
from wireglot.gateway.settings import Settings
from wireglot.http.application import Head, Headers, Reply
from wireglot.wire.json import BadJson, decode, encode

if TYPE_CHECKING:
    from wireglot.gateway.app import Gateway


class PageRequest(msgspec.Struct, frozen=True):
    gateway: Gateway
    settings: Settings
    caller: Caller
    head: Head
    asked: Asked
    body: bytes
    reply: Reply
    record: Record

    def document(self) -> dict[str, Any]:
        """The body, {} where there is none."""
        if self.body:
            check_body_form(self.head)  # one in chunks does not show before it has come
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
        self.record.status = status
        headers = [("content-type", "application/json"), *identity(self.record.id, self.asked.dialect)]
        self.reply.send(status, [*headers, *(more or [])], encode(document))


def unavailable(what: str) -> RequestError:
    """The store does not answer, and this cannot be done without it."""
    return RequestError(
        "upstream_down", f"{what}: the gateway's store is not available", code="storage_unavailable",
        retry_after=2,
    )  # fmt: skip
