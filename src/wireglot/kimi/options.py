"""The options that every call takes by name, and the arguments of one call. docs/kimi.md explains them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar, cast

import msgspec

from wireglot.ir.content import Message
from wireglot.kimi.seams import Log, RetryPreset, Sleep, Transport

Turn = Mapping[str, Any] | Message
"""A message as Anthropic writes it, or one of the neutral form (`wireglot.ir`), as a History keeps it."""

System = str | Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]]

F = TypeVar("F", bound=Callable[..., Any])


class Options(TypedDict, total=False):
    """As a caller writes them. What is left out is as `Asked` has it."""

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


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a call, before anything is made of them."""

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
    annotations = inspect.get_annotations(Asked)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=annotations[field.name],
        )
        for field in msgspec.structs.fields(Asked)
        if field.name in Options.__annotations__
    ]
    cast("Any", function).__signature__ = signature.replace(parameters=[*own, *options])
    return function
