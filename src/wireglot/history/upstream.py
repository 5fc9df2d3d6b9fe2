"""What an upstream sends, as events: names that were bent on the way up are turned back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.faults import broken
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import UpstreamFault
from wireglot.ir.stream import Event, Failure, unfold
from wireglot.providers.aliases import Aliases, EventRestorer
from wireglot.wire.json import BadJson, decode


class Upstream:
    """The stream, or the one document, of one answer."""

    def __init__(self, name: str, context: Context, aliases: Aliases) -> None:
        self._dialect = dialect(name)
        self._context = context
        self._aliases = aliases
        self._reader = self._dialect.stream_reader(context)
        self._restorer = EventRestorer(aliases)

    def read(self, data: bytes) -> list[Event]:
        return self._restorer.events(self._reader.read(data))

    def end(self) -> list[Event]:
        return self._restorer.events(self._reader.end())

    def whole(self, body: dict[str, Any] | bytes | str, status: int) -> Iterator[Event]:
        try:
            document = body if isinstance(body, dict) else decode(body)
        except BadJson as problem:
            document = body  # an error page: below it is told from an answer, as far as the status tells
            fault = broken(problem)
        else:
            fault = broken("no JSON object")
        error = self._dialect.parse_error(document, status)
        if error is None and isinstance(document, dict):
            try:
                response = self._dialect.parse_response(document, self._context)
            except UpstreamFault as problem:
                error = broken(problem)
            else:
                content = tuple(self._aliases.restore(part) for part in response.content)
                return unfold(msgspec.structs.replace(response, content=content, others=()))
        return iter((Failure(error if error is not None else fault),))
