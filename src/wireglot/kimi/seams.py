"""What a caller may put in the place of the network, the log and the clock."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from typing import Literal, Protocol

from wireglot.http import transport as http

HttpAnswer = tuple[int, Mapping[str, str], bytes | AsyncIterable[bytes]]
"""Status, headers, and the body: whole, or in pieces as they arrive (which a stream wants)."""


class HttpFunction(Protocol):
    """One HTTP exchange. Whatever it raises is taken for a network failure."""

    def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes, /
    ) -> Awaitable[HttpAnswer]: ...


SendingTransport = http.Transport
"""One that shares its connections between calls."""

Transport = HttpFunction | SendingTransport
Log = Callable[[str], object]
Sleep = Callable[[float], Awaitable[object]]
"""Takes seconds."""

RetryPreset = Literal["fixed-100ms", "modern"]
