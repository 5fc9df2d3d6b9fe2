"""The interface of every dialect: eight functions for its documents and streams, and its surface."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.places import Places
from wireglot_core.dialects.surface import (
    Surface,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event


class StreamReader(Protocol):
    """Converts upstream bytes, however they are split, to events.

    After `end` every stream has had its Finish or Failure. Bytes that are not a stream of the dialect become
    a Failure, never another exception. Feeding after the terminal event yields nothing. The events of one
    stream always satisfy the grammar of `ir.stream`. A reader may have `flaws`, a list of names of
    `ir.stream.FLAWS`: rules that the upstream broke.
    """

    def read(self, data: bytes) -> list[Event]: ...

    def end(self) -> list[Event]: ...


class StreamWriter(Protocol):
    """Converts events (grammatical) to the client's bytes. `losses` grows as things cannot be expressed."""

    losses: list[Loss]

    def write(self, events: Iterable[Event]) -> bytes: ...


class RenderResponse(Protocol):
    def __call__(
        self, response: Response, context: Context, request: Request | None = None, /
    ) -> Rendered[dict[str, Any]]: ...


class OpenWriter(Protocol):
    def __call__(self, context: Context, request: Request | None = None, /) -> StreamWriter: ...


class ParseError(Protocol):
    def __call__(self, body: Any, status: int = 0, /) -> ApiError | None:
        """The error a body reports; None if it reports none and the status (0: unknown) is not an error
        either."""
        ...


class Dialect(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One wire format, both ways: the requests and answers of its clients and of its upstreams. A dialect
    that differs little from another is `msgspec.structs.replace(OTHER, ...)`."""

    surface: Surface

    # The client's side.
    parse_request: Callable[[dict[str, Any], Context], Request]
    render_response: RenderResponse
    render_error: Callable[[ApiError, Context], Rendered[dict[str, Any]]]
    stream_writer: OpenWriter

    # The upstream's side.
    render_request: Callable[[Request, Context], Rendered[dict[str, Any]]]
    parse_response: Callable[[dict[str, Any], Context], Response]
    parse_error: ParseError
    stream_reader: Callable[[Context], StreamReader]

    places: Places | None = None
    """Paths in its clients' documents; None: losses keep their neutral paths."""

    @property
    def name(self) -> str:
        return self.surface.name
