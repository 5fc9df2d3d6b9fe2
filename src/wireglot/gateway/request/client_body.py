"""A client's body: its bytes, its top level, and all of it as JSON once that is needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from wireglot.dialects.base import Context
from wireglot.gateway.errors import RequestError
from wireglot.wire.cache import Cache, KnownBody
from wireglot.wire.json import MAX_DEPTH, BadJson, TooDeep, decode
from wireglot.wire.splice import Outline

_LONG_BYTES: Final = 256 * 1024
"""From here on it is decoded member by member."""
_UNLIMITED: Final = 1 << 60
"""The depth of what was found to be nested little enough."""
_NO_NUMBER: Final = re.compile(rb"\W?-?(?:NaN|Infinity)")


class ClientBody:
    """Implements the dialects' `Body`. Raises a RequestError where it is no JSON object."""

    __slots__ = ("_depth", "_document", "_find_memory", "_turns", "body", "memory", "outline", "sealed")

    def __init__(
        self,
        body: bytes,
        depth: int = MAX_DEPTH,
        memory: Cache | None = None,
        turns: str = "",
        *,
        grown: KnownBody | None = None,
        find_memory: Callable[[bytes], Cache | None] | None = None,
    ) -> None:
        """`turns`: the member whose items come again with every turn, in `memory`. `grown`: what of it is
        known, where that has been looked up. `find_memory`: where it is not known yet whether the body
        comes again, and is asked only for one that is decoded."""
        if not body:
            raise RequestError("bad", "the body is empty: expected a JSON object", code="invalid_json")
        self.body: Final = body
        try:
            self.outline: Final = _ClientOutline(body, memory, turns, grown, depth)
        except BadJson as problem:
            if not isinstance(read_json(body), dict):
                raise RequestError("bad", "expected a JSON object", code="invalid_type") from None
            raise bad_json(problem, body) from None
        self.memory = memory
        """What the caller's requests have in common. Known once it was recalled."""
        self._find_memory = find_memory if memory is None else None
        self._depth: Final = depth
        self._turns: Final = turns
        self._document: dict[str, Any] | None = None
        self.sealed = False
        """Whether it carries state that other providers minted."""

    def check(self) -> None:
        """Refuse broken characters, numbers out of range and what is nested too deeply, in a body that is
        passed on unread. Nothing of it is kept."""
        if self._document is None and not self.outline.is_sound:
            self._decoded()

    def recall(self) -> None:
        """Find the memory that it is decoded with."""
        if self._find_memory is not None:
            find, self._find_memory = self._find_memory, None
            self.memory = find(self.body)
            if self.memory is not None:
                self.outline.recall(self.memory, self._turns)

    def reading(self, context: Context) -> Context:
        """What the decoded body is read with."""
        return context if self.memory is None else msgspec.structs.replace(context, memory=self.memory)

    def document(self) -> dict[str, Any]:
        """Decoded once."""
        if self._document is None:
            self._document = self._decoded()
        return self._document

    def _decoded(self) -> dict[str, Any]:
        """Agents send the same tools and turns again and again: those are decoded, read and written once."""
        self.recall()
        memory, outline = self.memory, self.outline
        depth = _UNLIMITED if outline.is_sound and memory is None else self._depth
        # Of a member that stands twice the outline has only one.
        if (memory is not None or len(self.body) > _LONG_BYTES) and not outline.repeated:
            try:
                if memory is not None:
                    return memory.document(outline, depth, self._turns)
                return outline.document(depth)
            except BadJson:
                pass  # reported with its place in the whole body
        value = read_json(self.body, depth)
        if not isinstance(value, dict):
            raise RequestError("bad", "expected a JSON object", code="invalid_type")
        return value


def bad_json(problem: BadJson, body: bytes = b"") -> RequestError:
    at = problem.offset or 0
    if _NO_NUMBER.match(body, max(0, at - 1)) or "out of range" in problem.reason:
        message = f"the body holds a number that JSON has not: {problem}"
        return RequestError("bad", message, code="invalid_number")
    if isinstance(problem, TooDeep):
        return RequestError("bad", f"the JSON is {problem.reason}", code="json_too_deep")
    code = "invalid_utf8" if problem.reason == "invalid UTF-8" else "invalid_json"
    return RequestError("bad", f"the body is not JSON: {problem}", code=code)


class _ClientOutline(Outline):
    """Whatever reads a single member of it, its caller is shown what is wrong with that one."""

    __slots__ = ()

    def unreadable(self, problem: BadJson) -> Exception:
        try:
            read_json(self.body)  # to tell its place in the whole body
        except RequestError as fault:
            return fault
        return bad_json(problem)


def read_json(body: bytes, depth: int = MAX_DEPTH) -> Any:
    """The value of a body. Raises a RequestError that tells what is wrong with it, and where."""
    try:
        return decode(body, depth)
    except BadJson as problem:
        raise bad_json(problem, body) from None
