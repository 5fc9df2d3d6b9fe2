"""Tool declarations and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects import client_tools
from wireglot_core.dialects.common_losses import NO_TOOL_SEARCH
from wireglot_core.dialects.fields import Fields, own_fields, own_form, text_in
from wireglot_core.dialects.hosted_options import hosted_tool, lose_options, place_of
from wireglot_core.dialects.openai_responses.client_tools import client_run, parse_client_tool, with_own_names
from wireglot_core.dialects.openai_responses.lost_fields import LOST, LOST_OF_FREEFORM
from wireglot_core.dialects.openai_responses.mcp import parse_server, render_server
from wireglot_core.dialects.openai_responses.spelling import NAME, keep, put_back
from wireglot_core.dialects.openai_shared import CHOICE_MODES, HOSTED_KINDS, Mode, custom_names, grammar_of
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Grammar, HostedChoice, HostedTool, Tool, ToolChoice

_FUNCTION_KEYS = frozenset({"type", "name", "description", "parameters", "strict", "defer_loading"})
_CUSTOM_KEYS = frozenset({"type", "name", "description", "format", "defer_loading"})
_GROUP = "namespace."
"""Prefix of a namespace's own fields in the extra of its first tool, where other dialects report them
lost."""
_OUTER = "outer."
"""Prefix of the fields next to a nested declaration, likewise."""
_NAMESPACE_KEYS = frozenset({"type", "name", "tools"})

_HOSTED = {
    **HOSTED_KINDS,
    "tool_search": "tool_search",
    "web_search_2025_08_26": "web_search",
    "web_search_preview": "web_search",
    "web_search_preview_2025_03_11": "web_search",
}
_NATIVE: dict[str, dict[str, Any]] = {
    "web_search": {"type": "web_search"},
    "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
    "tool_search": {"type": "tool_search"},
}
"""The tool of this dialect that replaces one another provider runs."""

_EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def parse_tools(entries: list[Any], path: str, carrier: str = "") -> list[AnyTool]:
    """`carrier`: the input item that declared the tools, if it was not the request itself."""
    tools: list[AnyTool] = []
    for number, entry in enumerate(entries):
        tool = Fields(entry, f"{path}[{number}]")
        marks: dict[str, Any] = {"carrier": carrier} if carrier else {}
        if tool.value.get("type") == "namespace":
            tools += _parse_namespace(tool, number, marks)
        else:
            tools.append(_parse_tool(tool, "", marks))
    return with_own_names(tools)


def _parse_namespace(tool: Fields, number: int, marks: dict[str, Any]) -> list[AnyTool]:
    name = tool.text("name")
    members = [
        Fields(entry, f"{tool.path}.tools[{index}]")
        for index, entry in enumerate(tool.array_or_empty("tools"))
    ]
    if not members or any(member.value.get("type") not in ("function", "custom") for member in members):
        return [HostedTool("namespace", Foreign(NAME, "namespace", tool.value))]
    rest = tool.rest(_NAMESPACE_KEYS, NAME)
    said = rest.fields if rest is not None else {}
    group = {"number": number, "rest": said}
    tools = [_parse_tool(member, name, {**marks, "group": group}) for member in members]
    first = tools[0]
    reported = {f"{_GROUP}{key}": value for key, value in said.items() if value}
    if isinstance(first, Tool):
        tools[0] = _telling(first, reported)
    return tools


def _telling(tool: Tool, more: dict[str, Any]) -> Tool:
    if not more:
        return tool
    extra = tool.extra or Extra(NAME)
    return replace(tool, extra=Extra(NAME, {**extra.fields, **more}, extra.form))


def _parse_tool(tool: Fields, namespace: str, marks: dict[str, Any]) -> AnyTool:
    kind = tool.text_or_none("type")
    nested = tool.value.get(kind or "function")
    if kind in (None, "function", "custom") and type(nested) is dict:
        # Chat's nesting, which clients send here too.
        inner = Fields(nested, f"{tool.path}.{kind or 'function'}")
        outer = {key: value for key, value in tool.value.items() if key != (kind or "function")}
        marks = {**marks, "outer": outer, "key": kind or "function"}
        parse = _parse_custom if kind == "custom" else _parse_function
        beside = {f"{_OUTER}{key}": value for key, value in outer.items() if key != "type" and value}
        return _telling(parse(inner, namespace, marks), beside)
    if kind == "function" or (kind is None and "name" in tool.value):
        return _parse_function(tool, namespace, marks)
    if kind == "custom":
        return _parse_custom(tool, namespace, marks)
    kind = tool.text("type")
    run_by_client = parse_client_tool(tool, kind)
    if run_by_client is not None:
        return run_by_client
    if kind == "mcp":
        return HostedTool("mcp", Foreign(NAME, kind, tool.value), parse_server(tool))
    return _parse_hosted(tool.value, kind)


def _parse_function(tool: Fields, namespace: str, form: dict[str, Any]) -> Tool:
    deferred = tool.boolean("defer_loading")
    if deferred is False:
        form["defer_loading"] = False
    if tool.value.get("parameters") == {}:
        form["parameters"] = {}
    return Tool(
        tool.text("name"),
        tool.text_or_none("description"),
        tool.dict_or_none("parameters"),
        tool.boolean("strict"),
        namespace=namespace,
        deferred=bool(deferred),
        extra=keep(tool.value, _FUNCTION_KEYS, form, always=("type", "parameters", "strict")),
    )


def _parse_custom(tool: Fields, namespace: str, form: dict[str, Any]) -> Tool:
    deferred = tool.boolean("defer_loading")
    if deferred is False:
        form["defer_loading"] = False
    raw = tool.object_or_none("format")
    grammar: Grammar | None = None
    if raw is not None:
        form["format"] = raw.value
        grammar = grammar_of(raw.value)
    return Tool(
        tool.text("name"),
        tool.text_or_none("description"),
        kind="custom",
        grammar=grammar,
        namespace=namespace,
        deferred=bool(deferred),
        extra=keep(tool.value, _CUSTOM_KEYS, form, always=("type",)),
    )


def render_tools(tools: tuple[AnyTool, ...], losses: list[Loss], own: bool = True) -> list[dict[str, Any]]:
    """The declarations; neighbours of one namespace are grouped in one entry. `own`: those of a request of
    this dialect, which itself declares what searches for its deferred tools."""
    out: list[dict[str, Any]] = []
    searches = own or any(isinstance(tool, HostedTool) and tool.kind == "tool_search" for tool in tools)
    open_group: tuple[str, Any] | None = None
    for number, tool in enumerate(tools):
        path = f"$.tools[{number}]"
        if isinstance(tool, HostedTool):
            open_group = None
            hosted = _render_hosted(tool, path, losses)
            if hosted is not None:
                out.append(hosted)
            continue
        if client_tools.is_own(tool, NAME):
            assert tool.native is not None
            open_group = None
            out.append(tool.native.value)
            continue
        value = _render_tool(tool, path, losses, searches)
        if not tool.namespace:
            open_group = None
            out.append(value)
            continue
        group = own_form(tool.extra, NAME).get("group", {})
        key = (tool.namespace, group.get("number"))
        if key != open_group:
            open_group = key
            rest = group.get("rest", {"description": tool.namespace})
            out.append({"type": "namespace", "name": tool.namespace, **rest, "tools": []})
        out[-1]["tools"].append(value)
    return out


def _parse_hosted(value: dict[str, Any], kind: str) -> HostedTool:
    filters = value.get("filters")
    filters = filters if type(filters) is dict else {}
    options = {
        "allowed_domains": filters.get("allowed_domains"),
        "location": place_of(value.get("user_location")),
        "context_size": value.get("search_context_size"),
    }
    known = {"type", "filters", "user_location", "search_context_size"}
    if value.get("external_web_access") is True:
        known.add("external_web_access")  # the purpose of a web search
    return hosted_tool(_HOSTED.get(kind, kind), Foreign(NAME, kind, value), options, value, known)


def _render_hosted(tool: HostedTool, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if tool.native.dialect == NAME:
        return tool.native.value
    if tool.kind == "mcp":
        return render_server(tool, path, losses)
    value = _NATIVE.get(tool.kind)
    if value is None:
        losses.append(Loss(path, "hosted_tool", "dropped", f"{tool.kind} of {tool.native.dialect}"))
        return None
    losses.append(Loss(path, "hosted_tool", "approximated", f"{tool.native.type} runs as {value['type']}"))
    if tool.kind != "web_search":
        lose_options(tool, (), path, losses)
        return dict(value)
    options = tool.options
    lose_options(tool, _SEARCH_OPTIONS, path, losses)
    out: dict[str, Any] = dict(value)
    if "allowed_domains" in options:
        out["filters"] = {"allowed_domains": options["allowed_domains"]}
    if "location" in options:
        out["user_location"] = {"type": "approximate", **options["location"]}
    if "context_size" in options:
        out["search_context_size"] = options["context_size"]
    return out


_SEARCH_OPTIONS = frozenset({"allowed_domains", "location", "context_size"})


def _ungrouped(extra: Extra | None) -> Extra | None:
    """The extra without the fields of the namespace or next to the declaration, which are written already."""
    if extra is None or not any(key.startswith((_GROUP, _OUTER)) for key in extra.fields):
        return extra
    fields = {key: value for key, value in extra.fields.items() if not key.startswith((_GROUP, _OUTER))}
    return Extra(extra.dialect, fields, extra.form)


def _render_tool(tool: Tool, path: str, losses: list[Loss], searches: bool) -> dict[str, Any]:
    client_tools.declare_native(tool, path, losses)
    (LOST_OF_FREEFORM if tool.kind == "custom" else LOST).of(tool, path, losses)
    form = own_form(tool.extra, NAME)
    value: dict[str, Any] = {"type": tool.kind, "name": tool.name}
    if tool.description is not None:
        value["description"] = tool.description
    if tool.kind == "custom":
        raw = form.get("format")
        if raw is not None and grammar_of(raw) == tool.grammar:
            value["format"] = raw
        elif tool.grammar is not None:
            grammar = tool.grammar
            value["format"] = {"type": "grammar", "syntax": grammar.syntax, "definition": grammar.definition}
    else:
        value["parameters"] = _parameters(tool, form)
        # If it is missing, this API tries strict mode; in no other dialect does a missing field mean that.
        value["strict"] = bool(tool.strict)
    if tool.deferred and searches:
        value["defer_loading"] = True
    elif tool.deferred:
        losses.append(NO_TOOL_SEARCH.at(f"{path}.deferred"))
    elif "defer_loading" in form:
        value["defer_loading"] = form["defer_loading"]
    if "outer" in form:
        inner = put_back(value, _ungrouped(tool.extra))
        inner.pop("type", None)
        return {**form["outer"], form["key"]: inner}
    return put_back(value, _ungrouped(tool.extra))


def _parameters(tool: Tool, form: dict[str, Any]) -> dict[str, Any] | None:
    if tool.schema:
        return tool.schema
    unsaid = "parameters" in own_fields(tool.extra, NAME) or "parameters" in form.get(WITHOUT, ())
    return tool.schema if unsaid or "parameters" in form else dict(_EMPTY_SCHEMA)


# The choice


def parse_tool_choice(value: Any, path: str, tools: Sequence[AnyTool] = ()) -> ToolChoice:
    choice = _read_choice(value, path, _own_types(tools))
    plain = type(value) is str and value == choice.mode
    telling = choice.extra.fields if choice.extra is not None else {}
    return replace(choice, extra=None if plain else Extra(NAME, telling, {"value": value}))


def _own_types(tools: Sequence[AnyTool]) -> dict[str, str]:
    """Type -> name of the tools that the client runs: a choice names them by type."""
    return {
        tool.native.type: tool.name for tool in client_run(tuple(tools)).values() if tool.native is not None
    }


def _read_choice(value: Any, path: str, own_types: dict[str, str]) -> ToolChoice:
    """The choice; its extra has fields unknown to the IR."""
    if type(value) is str:
        mode = CHOICE_MODES.get(value)
        return ToolChoice("auto", extra=Extra(NAME, {"mode": value})) if mode is None else ToolChoice(mode)
    choice = Fields(value, path)
    kind = choice.text_or("type")
    if kind in ("function", "custom"):
        nested = choice.value.get(kind)
        named = Fields(nested, f"{path}.{kind}") if type(nested) is dict else choice
        return ToolChoice("required", (named.text("name"),))
    if kind == "allowed_tools":
        nested = choice.value.get("allowed_tools")
        inner = Fields(nested, f"{path}.allowed_tools") if type(nested) is dict else choice
        return _read_allowed(inner, own_types)
    if kind in CHOICE_MODES:
        return ToolChoice(CHOICE_MODES[kind])
    if kind in own_types:
        return ToolChoice("required", (own_types[kind],))
    return ToolChoice("required", hosted=(_hosted_choice(choice.value, kind),))


def _hosted_choice(value: dict[str, Any], kind: str) -> HostedChoice:
    server, tool = text_in(value.get("server_label")), text_in(value.get("name"))
    return HostedChoice(_HOSTED.get(kind, kind), server, tool)


def _read_allowed(choice: Fields, own_types: dict[str, str]) -> ToolChoice:
    names: list[str] = []
    hosted: list[HostedChoice] = []
    for entry in choice.objects("tools"):
        kind = entry.text_or("type", "function")
        nested = entry.value.get(kind)
        name = (nested if type(nested) is dict else entry.value).get("name")
        if kind in ("function", "custom") and type(name) is str:
            names.append(name)
        elif kind in own_types:
            names.append(own_types[kind])
        else:
            hosted.append(_hosted_choice(entry.value, kind))
    mode: Mode = "required" if choice.text_or("mode") == "required" else "auto"
    return ToolChoice(mode, tuple(names), hosted=tuple(hosted))


def render_tool_choice(choice: ToolChoice, tools: tuple[AnyTool, ...], losses: list[Loss]) -> Any:
    path = "$.tool_choice"
    LOST.of(choice, path, losses)
    form = own_form(choice.extra, NAME)
    if "value" in form:
        said = _read_choice(form["value"], path, _own_types(tools))
        if (said.mode, said.only, said.hosted) == (choice.mode, choice.only, choice.hosted):
            return form["value"]
    if not choice.narrows:
        if choice.only or choice.hosted:
            losses.append(Loss(path, "tool_choice", "approximated", "none of them, whichever were named"))
        return choice.mode
    customs, own_types = custom_names(tools), {name: kind for kind, name in _own_types(tools).items()}
    named = [
        {"type": own_types[name]}
        if name in own_types
        else {"type": "custom" if name in customs else "function", "name": name}
        for name in choice.only
    ]
    for chosen in choice.hosted:
        entries = [
            entry
            for tool in tools
            if isinstance(tool, HostedTool) and chosen.names(tool) and (entry := _choosing(tool, chosen))
        ]
        if not entries:
            losses.append(Loss(path, "tool_choice", "approximated", f"{chosen.kind} is not available here"))
        named += entries
    if not named:
        return "none"
    if choice.mode == "required" and len(named) == 1 and named[0]["type"] not in _NEVER_ALONE:
        return named[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": named}


_NEVER_ALONE: Final = frozenset({"web_search", "web_search_2025_08_26"})
"""Tools that a choice names only in a list (openai-python 3.51.0, `ToolChoiceTypes`)."""


def _choosing(tool: HostedTool, chosen: HostedChoice) -> dict[str, Any] | None:
    """How a choice names a hosted tool; None for one that it cannot name."""
    rendered = _render_hosted(tool, "$", [])
    if rendered is None:
        return None
    if tool.kind != "mcp":
        return {"type": rendered["type"]}
    value = {"type": "mcp", "server_label": rendered.get("server_label", "")}
    return {**value, "name": chosen.tool} if chosen.tool else value
