"""Parses and renders tools and the tool choice."""

from __future__ import annotations

from typing import Any, Final, Literal, assert_never

from wireglot_core.dialects.client_tools import declare_native
from wireglot_core.dialects.fields import Fields, object_in, own_fields, own_form, text_in
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, put_back
from wireglot_core.dialects.gemini.schema import is_openapi, is_trivial, json_schema
from wireglot_core.dialects.google_shared import (
    ALL_LOADED,
    NO_CHOICE_ANYWAY,
    NO_FREEFORM,
    server_headers,
    server_token,
    unchosen,
)
from wireglot_core.dialects.hosted_options import hosted_tool, lose_options, not_run, server_of
from wireglot_core.ir.content import Extra, Foreign
from wireglot_core.ir.loss import Loss, is_blank
from wireglot_core.ir.request import AnyTool, HostedTool, McpServer, Tool, ToolChoice

_KINDS = {
    "googleSearch": "web_search",
    "googleSearchRetrieval": "web_search",
    "enterpriseWebSearch": "web_search",
    "parallelAiSearch": "web_search",
    "exaAiSearch": "web_search",
    "codeExecution": "code_execution",
    "urlContext": "web_fetch",
    "fileSearch": "file_search",
    "computerUse": "computer",
    "mcpServers": "mcp",
}
_OWN_TOOLS: dict[str, dict[str, Any]] = {
    "web_search": {"googleSearch": {}},
    "code_execution": {"codeExecution": {}},
    "web_fetch": {"urlContext": {}},
}
_DECLARATION = frozenset({"name", "description", "parameters", "parametersJsonSchema"})

Layout = list[list[int | str]]
"""How declarations were grouped: per tool object the number of functions, the name of a hosted tool, or,
after a minus, the name of a field that was null."""


def parse_tools(fields: Fields) -> tuple[tuple[AnyTool, ...], Layout | None]:
    """The tools in order, and their grouping if it is not the usual one."""
    given = fields.value.get("tools")
    if given is None:
        return (), None
    tools: list[AnyTool] = []
    layout: Layout = []
    for index, item in enumerate(names.listed(given)):
        group = names.TOOL.read(item, f"{fields.path}.tools[{index}]", fields.fault)
        entry: list[int | str] = []
        for key, value in group.value.items():
            if value is None:
                entry.append("-" + key)
            elif key == "functionDeclarations":
                before = len(tools)
                for place, declaration in enumerate(names.listed(value)):
                    path = f"{group.path}.functionDeclarations[{place}]"
                    tools.append(_parse_function(names.DECLARATION.read(declaration, path, fields.fault)))
                entry.append(len(tools) - before)
            else:
                tools.append(_parse_hosted(key, value))
                entry.append(key)
        layout.append(entry)
    return tuple(tools), None if layout and layout == _usual_layout(tools) else layout


def _usual_layout(tools: list[AnyTool] | tuple[AnyTool, ...]) -> Layout:
    """All functions in one object, at the position of the first function; each hosted tool in a separate
    object."""
    functions = sum(type(tool) is Tool for tool in tools)
    layout: Layout = []
    placed = False
    for tool in tools:
        if type(tool) is HostedTool:
            layout.append([tool.native.type])
        elif not placed:
            layout.append([functions])
            placed = True
    return layout


def _parse_function(declaration: Fields) -> Tool:
    form: dict[str, Any] = {}
    schema = declaration.dict_or_none("parametersJsonSchema")
    parameters = declaration.dict_or_none("parameters")
    known = _DECLARATION
    if schema is not None:
        if is_trivial(schema):
            form["parametersJsonSchema"] = "stated"
        if parameters is not None:
            known = _DECLARATION - {"parameters"}
    elif parameters is not None:
        schema = json_schema(parameters)
        form["parameters"] = parameters
    description = declaration.text_or_none("description")
    if description is None:
        form["description"] = "absent"
    return Tool(declaration.text("name"), description, schema, extra=declaration.rest(known, OWN, form))


def render_tools(tools: tuple[AnyTool, ...], layout: Layout | None, out: list[Loss]) -> list[dict[str, Any]]:
    functions: list[dict[str, Any]] = []
    hosted: list[tuple[str, dict[str, Any]]] = []
    order: Layout = []
    for index, tool in enumerate(tools):
        path = f"$.tools[{index}]"
        if type(tool) is HostedTool:
            native = _render_hosted(tool, path, out)
            if native is not None:
                key = next(iter(native))
                hosted.append((key, native))
                order.append([key])
        elif type(tool) is Tool:
            function = _render_function(tool, path, out)
            if function is None:
                continue
            if not functions:
                order.append([0])
            functions.append(function)
    for group in order:
        if group == [0]:
            group[0] = len(functions)
    if layout is not None and _fits(layout, len(functions), [key for key, _ in hosted]):
        order = layout
    return _grouped(order, functions, hosted)


def _fits(layout: Layout, functions: int, hosted: list[str]) -> bool:
    entries = [entry for group in layout for entry in group]
    return (
        sum(entry for entry in entries if type(entry) is int) == functions
        and [entry for entry in entries if type(entry) is str and entry[:1] != "-"] == hosted
    )


def _grouped(
    order: Layout, functions: list[dict[str, Any]], hosted: list[tuple[str, dict[str, Any]]]
) -> list[dict[str, Any]]:
    taken, used = 0, 0
    groups: list[dict[str, Any]] = []
    for entries in order:
        group: dict[str, Any] = {}
        for entry in entries:
            if type(entry) is int:
                group["functionDeclarations"] = functions[taken : taken + entry]
                taken += entry
            elif type(entry) is str and entry[:1] == "-":
                group[entry[1:]] = None
            else:
                group.update(hosted[used][1])
                used += 1
        groups.append(group)
    return groups


def _render_function(tool: Tool, path: str, out: list[Loss]) -> dict[str, Any] | None:
    if tool.is_plain() and not tool.strict and not is_trivial(tool.schema):
        place = "parameters" if is_openapi(tool.schema) else "parametersJsonSchema"
        return {"name": tool.name, "description": tool.description or "", place: tool.schema}
    if tool.kind == "custom":
        out.append(NO_FREEFORM.at(path))
        return None
    declare_native(tool, path, out)
    LOST.of(tool, path, out)
    form = own_form(tool.extra, OWN)
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description is not None or form.get("description") != "absent":
        declaration["description"] = tool.description or ""
    parameters = form.get("parameters")
    if parameters is not None and json_schema(parameters) == tool.schema:
        declaration["parameters"] = parameters
    elif not is_trivial(tool.schema) or (
        form.get("parametersJsonSchema") == "stated" and tool.schema is not None
    ):
        declaration["parameters" if is_openapi(tool.schema) else "parametersJsonSchema"] = tool.schema
    return put_back(declaration, tool.extra)


def _parse_hosted(key: str, value: Any) -> HostedTool:
    given = value if type(value) is dict else {}
    excluded = given.get("excludeDomains", given.get("exclude_domains"))
    native = Foreign(OWN, key, {key: value})
    if _KINDS.get(key) == "mcp":
        return HostedTool("mcp", native, _parse_server(value))
    known = ("excludeDomains", "exclude_domains")
    return hosted_tool(_KINDS.get(key, key), native, {"blocked_domains": excluded}, given, known)


def _render_hosted(tool: HostedTool, path: str, out: list[Loss]) -> dict[str, Any] | None:
    if tool.native.dialect == OWN:
        return tool.native.value or {tool.native.type: {}}
    if tool.kind == "mcp":
        return _render_server(tool, path, out)
    own = _OWN_TOOLS.get(tool.kind)
    if own is None:
        out.append(not_run(tool, path, f"{tool.native.type} of {tool.native.dialect}"))
        return None
    out.append(Loss(path, "hosted_tool", "approximated", f"Google's own {tool.kind}"))
    # Only Vertex takes `excludeDomains`, so only options that were written for Google are sent.
    lose_options(tool, (), path, out)
    return dict(own)


_TRANSPORT: Final = "streamableHttpTransport"


def _parse_server(value: Any) -> McpServer | None:
    """The one server of `mcpServers`; None if there are several, or it is not given by its URL."""
    listed = names.listed(value)
    server = object_in(listed[0]) if len(listed) == 1 else {}
    transport = object_in(server.get(_TRANSPORT, server.get("streamable_http_transport")))
    url, headers = text_in(transport.get("url")), object_in(transport.get("headers"))
    if not url:
        return None
    rest = [key for key, item in transport.items() if key not in ("url", "headers") and not is_blank(item)]
    token = server_token(headers)
    if token is None:
        rest.append("headers")
    return McpServer(text_in(server.get("name")), url, token or "", rest=tuple(rest))


def _render_server(tool: HostedTool, path: str, out: list[Loss]) -> dict[str, Any] | None:
    """An entry of `mcpServers`. It names no tools: a server of which only some may be called is left out."""
    if tool.server is not None and (tool.server.approval or tool.server.is_narrowed):
        what = "no one can approve its calls" if tool.server.approval else "all of its tools would be allowed"
        out.append(Loss(path, "hosted_tool", "dropped", f"{what} here"))
        return None
    server = server_of(tool, path, "as one of mcpServers", out)
    if server is None:
        return None
    if server.deferred:
        out.append(ALL_LOADED.at(f"{path}.deferred"))
    transport = {"url": server.url, **server_headers(server.token)}
    return {"mcpServers": [{"name": server.name, _TRANSPORT: transport}]}


def parse_choice(config: Fields) -> ToolChoice | None:
    """`functionCallingConfig`. VALIDATED is AUTO with checked arguments, and the one way to narrow AUTO."""
    only = config.texts("allowedFunctionNames")
    stated = config.value.get("mode")
    mode = names.enum_name(stated, _MODES)
    fields: dict[str, Any] = {}
    form: dict[str, Any] = {}
    if stated != mode or mode not in ("ANY", "NONE", "VALIDATED"):
        form["mode"] = stated
    match mode:
        case "ANY":
            reads: Literal["auto", "none", "required"] = "required"
        case "NONE":
            reads = "none"
            if only:
                form["mode"] = stated
        case "AUTO" | "MODE_UNSPECIFIED" | "":
            reads = "auto"
            if not mode and not only:
                return None
        case "VALIDATED":
            reads = "auto"
            if not only:
                fields["mode"] = mode
        case _:
            raise config.wrong("mode", "AUTO, ANY, NONE or VALIDATED")
    return ToolChoice(reads, only, Extra(OWN, fields, form) if fields or form else None)


_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_READINGS = {
    "ANY": "required",
    "NONE": "none",
    "AUTO": "auto",
    "MODE_UNSPECIFIED": "auto",
    "": "auto",
    "VALIDATED": "auto",
}


def render_choice(choice: ToolChoice, tools: tuple[AnyTool, ...], out: list[Loss]) -> dict[str, Any] | None:
    """`functionCallingConfig`; None if there is no function for it to apply to."""
    path = "$.tool_choice"
    LOST.of(choice, path, out)
    form = own_form(choice.extra, OWN)
    only: dict[str, Any] = {"allowedFunctionNames": list(choice.only)} if choice.only else {}
    if "mode" in form and _READINGS.get(names.enum_name(form["mode"], _MODES)) == choice.mode:
        return {**({} if form["mode"] is None else {"mode": form["mode"]}), **only}
    if choice.hosted and choice.mode != "none":
        out.append(unchosen(choice, path))
        if only:
            return {"mode": "VALIDATED", **only}
        # Refers to functions only: tools that Google runs are not affected.
        return {"mode": "NONE"} if any(type(tool) is Tool for tool in tools) else None
    match choice.mode:
        case "required":
            return {"mode": "ANY", **only}
        case "none":
            if choice.only:
                out.append(NO_CHOICE_ANYWAY.at(f"{path}.only"))
            return {"mode": "NONE"}
        case "auto":
            validated = choice.only or own_fields(choice.extra, OWN).get("mode") == "VALIDATED"
            return {"mode": "VALIDATED" if validated else "AUTO", **only}
        case _ as never:
            assert_never(never)
