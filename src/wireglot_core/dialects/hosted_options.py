"""Options of tools that a provider runs: those that several dialects have, and those that only one has.

The neutral names are those of `ir.request.HostedTool.options`. An option without a place at the target is
reported as a loss, one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wireglot_core.ir.content import Foreign
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import HostedTool, McpServer

_PLACE = ("city", "region", "country", "timezone")

_HELD = frozenset(
    {
        "connector_id",
        "container",
        "container_id",
        "file_id",
        "file_ids",
        "file_search_store_names",
        "fileSearchStoreNames",
        "ragCorpora",
        "ragResources",
        "rag_resources",
        "skill_id",
        "vector_store_ids",
    }
)
"""Options that refer to something stored at their vendor: files, containers, skills, stores, connectors."""


def hosted_tool(
    kind: str,
    native: Foreign,
    options: dict[str, Any],
    given: dict[str, Any],
    known: Iterable[str],
) -> HostedTool:
    """`options`: those found, None for one that was not given. `given`: the object they are in. `known`: its
    fields that are read, or carry no information."""
    return HostedTool(
        kind,
        native,
        options={name: value for name, value in options.items() if value},
        untold=tuple(
            sorted(key for key, value in given.items() if key not in known and value not in (None, [], {}))
        ),
    )


def place_of(value: Any) -> dict[str, str] | None:
    """The user's location, from any spelling of it."""
    if type(value) is not dict:
        return None
    nested = value.get("approximate")
    source = nested if type(nested) is dict else value
    return {key: source[key] for key in _PLACE if type(source.get(key)) is str and source[key]}


def server_of(tool: HostedTool, path: str, form: str, losses: list[Loss]) -> McpServer | None:
    """The server whose tools it offers, None if it is unknown. `form`: what the tool becomes here."""
    server = tool.server
    if server is None:
        losses.append(Loss(path, "hosted_tool", "dropped", f"{tool.native.type} names no server by its URL"))
    elif server.rest:
        losses.append(Loss(path, "hosted_tool", "approximated", f"without its {', '.join(server.rest)}"))
    else:
        losses.append(Loss(path, "hosted_tool", "emulated", form))
    return server


def not_run(tool: HostedTool, path: str, detail: str) -> Loss:
    """The loss of a tool that is not run here. A search for tools finds only declared tools: without one,
    every tool is in the prompt from the start."""
    if tool.kind == "tool_search":
        return Loss(path, "tool.deferred", "dropped", "tool_search: every tool is declared from the start")
    return Loss(path, "hosted_tool", "dropped", detail)


def lose_options(tool: HostedTool, taken: Iterable[str], path: str, losses: list[Loss]) -> None:
    """Report the options of a tool that the target has no place for."""
    for name in (*(name for name in tool.options if name not in taken), *tool.untold):
        if _names_held({name: _stated(tool.native.value, name)}):
            detail = "stored by the provider that issued this id"
            losses.append(Loss(f"{path}.{name}", "file_reference", "dropped", detail))
            continue
        detail = f"{name} of {tool.native.dialect}"
        losses.append(Loss(f"{path}.{name}", "hosted_tool", "approximated", detail))


def _stated(value: dict[str, Any], name: str) -> Any:
    """An option of a declaration, which some dialects write inside an object of the tool's kind."""
    if name in value:
        return value[name]
    return next((inner[name] for inner in value.values() if type(inner) is dict and name in inner), None)


def _names_held(value: Any) -> bool:
    if type(value) is dict:
        return any(
            (key in _HELD and type(inner) in (str, list) and bool(inner)) or _names_held(inner)
            for key, inner in value.items()
        )
    return type(value) is list and any(map(_names_held, value))
