"""Options of tools that a provider runs: those that several dialects have, and those that only one has.

The neutral names are those of `ir.request.HostedTool.options`. What a target has no place for is declared,
option by option.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wireglot.ir.content import Foreign
from wireglot.ir.loss import Loss
from wireglot.ir.request import HostedTool

_PLACE = ("city", "region", "country", "timezone")


def hosted_tool(
    kind: str,
    native: Foreign,
    options: dict[str, Any],
    given: dict[str, Any],
    known: Iterable[str],
) -> HostedTool:
    """`options` are those found, None where one was not given; `given` is the object they stand in and
    `known` its fields that are read, or say nothing."""
    return HostedTool(
        kind,
        native,
        options={name: value for name, value in options.items() if value},
        untold=tuple(
            sorted(key for key, value in given.items() if key not in known and value not in (None, [], {}))
        ),
    )


def place_of(value: Any) -> dict[str, str] | None:
    """Where the user is, from any spelling of it."""
    if type(value) is not dict:
        return None
    nested = value.get("approximate")
    source = nested if type(nested) is dict else value
    return {key: source[key] for key in _PLACE if type(source.get(key)) is str and source[key]}


def lose_options(tool: HostedTool, taken: Iterable[str], path: str, losses: list[Loss]) -> None:
    """Declare what of a tool's options the target has no place for."""
    for name in (*(name for name in tool.options if name not in taken), *tool.untold):
        detail = f"{name} of {tool.native.dialect}"
        losses.append(Loss(f"{path}.{name}", "hosted_tool", "approximated", detail))
