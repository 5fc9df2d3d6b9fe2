"""The options that every call takes by name, and the arguments of one call. docs/kimi.md explains them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypedDict, TypeVar, cast

import msgspec

from wireglot.http import transport as http
from wireglot_core.ir.content import Message

HttpAnswer = tuple[int, Mapping[str, str], bytes | AsyncIterable[bytes]]
"""Status, headers, and the body: whole, or in pieces as they arrive (which a stream needs)."""


class HttpFunction(Protocol):
    """One HTTP exchange. Any exception is treated as a network failure."""

    def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes, /
    ) -> Awaitable[HttpAnswer]: ...


SendingTransport = http.Transport
"""A transport that shares its connections between calls."""

Transport = HttpFunction | SendingTransport
Log = Callable[[str], object]
Sleep = Callable[[float], Awaitable[object]]
"""Takes seconds."""

RetryPreset = Literal["fixed-100ms", "modern"]


Turn = Mapping[str, Any] | Message
"""A message in Anthropic's form, or in the neutral one (`wireglot_core.ir`), as a History keeps it."""

System = str | Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]]

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """As a caller writes them. Omitted options have the defaults of `CallArguments`."""

    messages: Sequence[Turn] | None
    model: str | None
    max_tokens: int | None
    system: System | None
    fields: Mapping[str, Any] | None
    api_key: str | None
    base_url: str | None
    transport: Transport | None
    log: Log | None
    sleep: Sleep | None
    retry: RetryPreset


class CallArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a call, unprocessed."""

    prompt: str | None
    tools: Tools
    stream: bool
    messages: Sequence[Turn] | None = None
    model: str | None = None
    max_tokens: int | None = None
    system: System | None = None
    fields: Mapping[str, Any] | None = None
    api_key: str | None = None
    base_url: str | None = None
    transport: Transport | None = None
    log: Log | None = None
    sleep: Sleep | None = None
    retry: RetryPreset = "fixed-100ms"

    def __repr__(self) -> str:
        """Without the key."""
        return f"Asked({self.model})"


def spelled_out(function: F) -> F:
    """The same function; `help` and `inspect.signature` show each option that its `**options` takes."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    annotations = inspect.get_annotations(CallArguments)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=annotations[field.name],
        )
        for field in msgspec.structs.fields(CallArguments)
        if field.name in Options.__annotations__
    ]
    cast("Any", function).__signature__ = signature.replace(parameters=[*own, *options])
    return function


_MIB: Final = 1024 * 1024


class CallLimits(msgspec.Struct, frozen=True):
    """Implements `wireglot.http.limits.ClientLimits`."""

    response: int = 64 * _MIB
    error_body: int = 64 * 1024
    pool: int = 256
    pool_idle: float = 60.0
    queue: int = 1_000_000
    queue_time: float = 3600.0
    """A program that begins many calls at once means to wait for them: only its own timeouts end that."""
    write_pending: int = 64 * 1024


LIMITS: Final = CallLimits()
