"""Parses and renders tool declarations and the tool choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wireglot_core.dialects import client_tools
from wireglot_core.dialects.anthropic.client_tools import parse_client_tool
from wireglot_core.dialects.anthropic.lost_fields import LOST
from wireglot_core.dialects.anthropic.mcp import SERVERS, TOOLSET, parse_server, render_toolset, servers_of
from wireglot_core.dialects.anthropic.names import NAME, is_own, keep, parse_cache, put_back, render_cache
from wireglot_core.dialects.common_losses import NO_TOOL_SEARCH
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.hosted_options import hosted_tool, lose_options, place_of
from wireglot_core.ir.content import Foreign
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, HostedTool, Request, Tool, ToolChange, ToolChoice

_TOOL = frozenset({"type", "name", "description", "input_schema", "strict", "defer_loading", "cache_control"})
_PLAIN = frozenset({"name", "description", "input_schema"})
_CHOICE = frozenset({"type", "name", "disable_parallel_tool_use"})

_HOSTED_READ = (
    ("web_search_", "web_search"),
    ("web_fetch_", "web_fetch"),
    ("code_execution_", "code_execution"),
    ("tool_search_tool_", "tool_search"),
    ("mcp_toolset", "mcp"),
)
"""Type prefix -> shared concept. Every other type (advisor) is its own concept; tools that the client runs
are in `client_tools.py`."""

_HOSTED_WRITTEN = {
    "web_search": {"type": "web_search_20250305", "name": "web_search"},
    "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
    "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
    "tool_search": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
}
"""For a hosted tool of another dialect: the version that the widest range of models takes."""


def parse_tools(body: Fields, context: Context) -> tuple[AnyTool, ...]:
    declared = body.value.get("tools")
    if SERVERS in body.value:
        return _parse_tools(body)  # toolsets need the `mcp_servers` of the body
    return context.remembered(declared, NAME, lambda: context.share(_parse_tools(body), declared))


def _parse_tools(body: Fields) -> tuple[AnyTool, ...]:
    tools: list[AnyTool] = []
    servers = servers_of(body) if SERVERS in body.value else {}
    for index, item in enumerate(body.array_or_empty("tools")):
        plain = _plain_tool(item)
        if plain is not None:
            tools.append(plain)
        else:
            tools += _parse_tool(Fields(item, f"$.tools[{index}]"), servers)
    return tuple(tools)


def _plain_tool(value: Any) -> Tool | None:
    """A tool with only ordinary fields, like nearly all."""
    if type(value) is dict and value.keys() == _PLAIN:
        name, description, schema = value["name"], value["description"], value["input_schema"]
        if type(name) is str and type(description) is str and type(schema) is dict and description and schema:
            return Tool(name, description, schema)
    return None


def _parse_tool(fields: Fields, servers: dict[str, dict[str, Any]]) -> Sequence[AnyTool]:
    kind = fields.text_or("type", "custom")
    if kind != "custom":
        run_by_client = parse_client_tool(fields, kind)
        if run_by_client is not None:
            return run_by_client
        if kind == TOOLSET:
            server = parse_server(fields.value, servers)
            return [HostedTool(_concept(kind), Foreign(NAME, kind, fields.value), server)]
        return [_parse_hosted(fields.value, kind)]
    form = {"type": "custom"} if fields.value.get("type") is not None else {}
    if "input_schema" not in fields.value:
        form["input_schema"] = "absent"
    blanks = ("strict", "defer_loading", "input_schema", "description")
    tool = Tool(
        fields.text("name"),
        fields.text_or_none("description"),
        fields.dict_or_none("input_schema"),
        fields.boolean("strict"),
        deferred=fields.boolean("defer_loading") or False,
        cache=parse_cache(fields),
        extra=keep(fields.value, _TOOL, form, blanks=blanks),
    )
    return [tool]


def tool_changes(part: Foreign) -> tuple[ToolChange, ...]:
    """The tools that a block adds or removes, including those of a summary of turns with such blocks."""
    if part.type == "compaction":
        listed = part.value.get("tool_changes")
        entries = listed if type(listed) is list else []
    else:
        entries = [part.value] if part.type in _CHANGES else []
    return tuple(change for entry in entries if (change := _change(entry)) is not None)


_CHANGES = ("tool_addition", "tool_removal")


def _change(block: Any) -> ToolChange | None:
    tool = block.get("tool") if type(block) is dict else None
    if type(tool) is not dict or block.get("type") not in _CHANGES:
        return None
    removes = block["type"] == "tool_removal"
    name, server = tool.get("name"), tool.get("server_name")
    match tool.get("type"):
        case "tool_reference" if type(name) is str:
            return ToolChange(removes, name)
        case "mcp_tool_reference" if type(name) is str and type(server) is str:
            return ToolChange(removes, name, server)
        case "mcp_toolset_reference" if type(server) is str:
            return ToolChange(removes, server=server)
        case "tool_definition" if type(tool.get("definition")) is dict and not removes:
            return ToolChange(tools=tuple(_parse_tool(Fields(tool["definition"], "$.definition"), {})))
        case _:
            return None


def _concept(kind: str) -> str:
    for prefix, concept in _HOSTED_READ:
        if kind.startswith(prefix):
            return concept
    return kind


def parse_choice(body: Fields) -> tuple[ToolChoice | None, bool | None]:
    """The tool choice, and whether parallel calls are allowed (a field inside the choice in this dialect)."""
    fields = body.object_or_none("tool_choice")
    if fields is None:
        return None, None
    disabled = fields.boolean("disable_parallel_tool_use")
    parallel = None if disabled is None else not disabled
    extra = keep(fields.value, _CHOICE, blanks=("disable_parallel_tool_use",))
    match fields.text("type"):
        case "auto":
            return ToolChoice("auto", extra=extra), parallel
        case "none":
            return ToolChoice("none", extra=extra), parallel
        case "any":
            return ToolChoice("required", extra=extra), parallel
        case "tool":
            return ToolChoice("required", (fields.text("name"),), extra), parallel
        case _:
            return ToolChoice("auto", extra=keep(fields.value, _CHOICE - {"type", "name"})), parallel


class Declared(NamedTuple):
    """The rendered tools, and the choice among them."""

    blocks: list[dict[str, Any]]
    choice: ToolChoice | None
    whole: bool = True
    """Whether these are all of the request's tools."""


def render_tools(request: Request, losses: list[Loss], context: Context) -> Declared:
    choice = request.tool_choice
    if choice is None or not choice.narrows or choice.is_named:
        return Declared(_all_tools(request, losses, context), choice)
    name = _forced_name(choice, request)
    if name:
        named = ToolChoice("required", (name,), choice.extra)
        return Declared(_all_tools(request, losses, context), named)
    # This dialect has no choice among several tools: declaring only those comes closest.
    lost: list[Loss] = []
    allowed = _render_tools(request, choice, lost)
    if not allowed:
        detail = "the chosen tool is not available here: no tool may be called"
        losses.append(Loss("$.tool_choice", "tool_choice", "approximated", detail))
        return Declared(_all_tools(request, losses, context), ToolChoice("none", extra=choice.extra))
    losses += lost
    if not all(map(choice.allows, request.tools)):
        detail = "tools outside the allowed ones are not declared"
        losses.append(Loss("$.tool_choice.only", "tool_choice", "approximated", detail))
    return Declared(allowed, ToolChoice(choice.mode, extra=choice.extra), whole=False)


def _forced_name(choice: ToolChoice, request: Request) -> str:
    """The name of the one hosted tool that a choice forces, "" if there is none."""
    if choice.mode != "required" or choice.only:
        return ""
    blocks = _render_tools(request, choice, [])
    name = blocks[0].get("name") if len(blocks) == 1 else None
    return name if type(name) is str else ""


def _all_tools(request: Request, losses: list[Loss], context: Context) -> list[dict[str, Any]]:
    key = (NAME, is_own(request.extra))
    return context.rendered_once(request.tools, key, lambda lost: _render_tools(request, None, lost), losses)


def _render_tools(request: Request, choice: ToolChoice | None, losses: list[Loss]) -> list[dict[str, Any]]:
    names = {tool.name for tool in request.tools if isinstance(tool, Tool)}
    native = is_own(request.extra)
    searches = native or any(
        isinstance(tool, HostedTool) and tool.kind == "tool_search" for tool in request.tools
    )
    rendered: list[dict[str, Any]] = []
    for index, tool in enumerate(request.tools):
        path = f"$.tools[{index}]"
        block: dict[str, Any] | None
        if choice is not None and not choice.allows(tool):
            continue
        if isinstance(tool, HostedTool):
            block = _render_hosted(tool, path, losses, names)
        elif client_tools.is_own(tool, NAME):
            assert tool.native is not None
            block = tool.native.value
            if tool.namespace and rendered and rendered[-1] == block:
                continue  # another member of the same family
        else:
            block = _render_tool(tool, path, losses, native, searches)
        if block is not None:
            rendered.append(block)
    return rendered


def _render_tool(
    tool: Tool, path: str, losses: list[Loss], native: bool, searches: bool
) -> dict[str, Any] | None:
    if tool.kind == "custom":
        losses.append(Loss(path, "tool.custom", "dropped", "tools take JSON objects only"))
        return None
    client_tools.declare_native(tool, path, losses)
    form = own_form(tool.extra, NAME)
    block: dict[str, Any] = {}
    if "type" in form:
        block["type"] = form["type"]
    block["name"] = tool.name
    if tool.description:
        block["description"] = tool.description
    schema = _render_schema(tool, form, path, losses, native)
    if schema is not None:
        block["input_schema"] = schema
    if tool.strict:
        block["strict"] = True
    if tool.deferred and searches:
        block["defer_loading"] = True
    elif tool.deferred:
        losses.append(NO_TOOL_SEARCH.at(f"{path}.deferred"))
    LOST.of(tool, path, losses)
    if tool.cache is not None:
        block["cache_control"] = render_cache(tool.cache, path, losses)
    return put_back(block, tool.extra)


def _render_schema(
    tool: Tool, form: dict[str, Any], path: str, losses: list[Loss], native: bool
) -> dict[str, Any] | None:
    schema = tool.schema
    if not schema:
        if "input_schema" in form or "input_schema" in form.get("blank", {}):
            return None  # the source wrote none or an empty one, which `put_back` restores
        return (
            None if "input_schema" in own_fields(tool.extra, NAME) else {"type": "object", "properties": {}}
        )
    if "type" not in schema and not native:
        losses.append(
            Loss(f"{path}.schema.type", "tool.schema", "approximated", "the root is declared an object")
        )
        return {"type": "object", **schema}
    return schema


def _parse_hosted(value: dict[str, Any], kind: str) -> HostedTool:
    get = value.get
    options = {
        "allowed_domains": get("allowed_domains"),
        "blocked_domains": get("blocked_domains"),
        "location": place_of(get("user_location")),
        "max_uses": get("max_uses"),
    }
    known = {"type", "name", "user_location", *options}
    return hosted_tool(_concept(kind), Foreign(NAME, kind, value), options, value, known)


_SEARCH_OPTIONS = frozenset({"allowed_domains", "blocked_domains", "location", "max_uses"})


def _render_hosted(tool: HostedTool, path: str, losses: list[Loss], names: set[str]) -> dict[str, Any] | None:
    if tool.native.dialect == NAME:
        return tool.native.value
    if tool.kind == "mcp":
        return render_toolset(tool, path, losses)
    own = _HOSTED_WRITTEN.get(tool.kind)
    if own is None or own["name"] in names:
        losses.append(
            Loss(path, "hosted_tool", "dropped", f"no counterpart of {tool.native.type or tool.kind}")
        )
        return None
    losses.append(Loss(path, "hosted_tool", "approximated", f"runs as {own['type']}"))
    options = tool.options
    # Of the two lists of domains one may be given.
    taken = _SEARCH_OPTIONS - {"blocked_domains"} if "allowed_domains" in options else _SEARCH_OPTIONS
    if own["name"] not in ("web_search", "web_fetch"):
        taken = frozenset()
    lose_options(tool, taken, path, losses)
    block: dict[str, Any] = dict(own)
    for name in ("max_uses", "allowed_domains", "blocked_domains"):
        if name in options and name in taken:
            block[name] = options[name]
    if "location" in options and own["name"] == "web_search":
        block["user_location"] = {"type": "approximate", **options["location"]}
    return block


def render_choice(request: Request, declared: Declared, losses: list[Loss]) -> dict[str, Any] | None:
    """The tool choice; None without tools, since it would be refused."""
    choice, parallel = declared.choice, request.parallel_tools
    native = is_own(request.extra)
    if choice is None and parallel is not False:
        return None
    if not declared.blocks and not native:
        if choice is not None and (choice.mode != "auto" or choice.only):
            losses.append(Loss("$.tool_choice", "tool_choice", "dropped", "no tool is declared"))
        if parallel is False:
            losses.append(Loss("$.parallel_tools", "parallel_tools", "dropped", "no tool is declared"))
        return None
    mode = choice.mode if choice is not None else "auto"
    block: dict[str, Any] = {}
    if "type" not in own_fields(choice.extra if choice is not None else None, NAME):
        block = _choice(mode, choice.only if choice is not None else ())
    if mode == "none" and choice is not None and choice.only:
        losses.append(Loss("$.tool_choice.only", "tool_choice", "dropped", "none means none"))
    if parallel is False:
        if mode != "none" or native:
            block["disable_parallel_tool_use"] = True
        else:
            losses.append(
                Loss("$.parallel_tools", "parallel_tools", "dropped", "no tool may be called at all")
            )
    if choice is None:
        return block
    LOST.of(choice, "$.tool_choice", losses)
    return put_back(block, choice.extra)


def _choice(mode: str, only: tuple[str, ...]) -> dict[str, Any]:
    if mode == "required":
        return {"type": "tool", "name": only[0]} if len(only) == 1 else {"type": "any"}
    return {"type": mode}
