"""A client's body: its bytes, its top level, and all of it as JSON once somebody wants that."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot.gateway.errors import RequestError
from wireglot.wire.json import BadJson, decode
from wireglot.wire.splice import Outline

_NO_NUMBER: Final = re.compile(rb"\W?-?(?:NaN|Infinity)")


class ClientBody:
    """Implements the dialects' `Body`. Raises a RequestError where it is no JSON object."""

    __slots__ = ("_document", "body", "outline")

    def __init__(self, body: bytes) -> None:
        if not body:
            raise RequestError("bad", "the body is empty: expected a JSON object", code="invalid_json")
        self.body: Final = body
        self.outline: Final = _outlined(body)
        self._document: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """Decoded once."""
        if self._document is None:
            self._document = self._decoded()
        return self._document

    def _decoded(self) -> dict[str, Any]:
        """Agents send the same tools with every turn: those are decoded, read and fitted once."""
        if "tools" in self.outline:
            try:
                return self.outline.document("tools")
            except BadJson:
                pass  # told with its place in the whole body
        value = _decoded(self.body)
        if not isinstance(value, dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type")
        return value


def bad_json(problem: BadJson, body: bytes = b"") -> RequestError:
    at = problem.offset or 0
    if _NO_NUMBER.match(body, max(0, at - 1)) or "out of range" in problem.reason:
        message = f"the body holds a number that JSON has not: {problem}"
        return RequestError("bad", message, code="invalid_number")
    if problem.reason == "nested too deeply":
        return RequestError("bad", "the JSON is nested too deeply", code="json_too_deep")
    code = "invalid_utf8" if problem.reason == "invalid UTF-8" else "invalid_json"
    return RequestError("bad", f"the body is not JSON: {problem}", code=code)


def _outlined(body: bytes) -> Outline:
    try:
        return Outline(body)
    except BadJson as problem:
        if not isinstance(_decoded(body), dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type") from None
        raise bad_json(problem, body) from None


def _decoded(body: bytes) -> Any:
    try:
        return decode(body)
    except BadJson as problem:
        raise bad_json(problem, body) from None
