"""Parses and renders tools, the tool choice, and calls."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.client_tools import declare_native
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.hosted_options import hosted_tool, lose_options, not_run, place_of
from wireglot_core.dialects.openai_chat.extras import (
    NAME,
    cache_key,
    keep,
    parse_stray_cache,
    put_back,
    put_cache,
)
from wireglot_core.dialects.openai_chat.lost_fields import LOST, LOST_OF_CUSTOM, NOT_MARKED
from wireglot_core.dialects.openai_chat.reasoning import CARRIER, call_signature
from wireglot_core.dialects.openai_shared import CHOICE_MODES, HOSTED_KINDS, Mode, custom_names, grammar_of
from wireglot_core.ir.content import CacheMark, Extra, Foreign, Origin, Signature, ToolCall
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import AnyTool, Grammar, HostedChoice, HostedTool, Tool, ToolChoice
from wireglot_core.wire.json import BadJson, decode, encode_text

WEB_SEARCH = "web_search_options"

_USUAL = frozenset({"name", "description", "parameters"})
_FUNCTION = _USUAL | {"strict"}
# Declarations of other servers' hosted tools with a shared concept.
_HOSTED = {**HOSTED_KINDS, "openrouter:web_search": "web_search", "browser_search": "web_search"}


# Declarations


_CUSTOM = frozenset({"name", "description", "format"})
_CALL = frozenset({"id", "type", "function"})
_ARGUMENTS = frozenset({"name", "arguments"})
_INPUT = frozenset({"name", "input"})


def parse_tools(body: Fields) -> tuple[AnyTool, ...]:
    return tuple(
        [
            usual_tool(value) or parse_tool(Fields(value, f"$.tools[{index}]"))
            for index, value in enumerate(body.array_or_empty("tools"))
        ]
    )


def usual_tool(value: Any) -> Tool | None:
    """An ordinary function without additional fields; None: it needs the full conversion."""
    function = value.get("function") if type(value) is dict and len(value) == 2 else None
    if type(function) is not dict or function.keys() != _USUAL or value.get("type") != "function":
        return None
    name, description, schema = function["name"], function["description"], function["parameters"]
    if type(name) is type(description) is str and type(schema) is dict:
        return Tool(name, description, schema)
    return None


def parse_tool(tool: Fields) -> AnyTool:
    value = tool.value
    kind = value.get("type")
    if kind == "custom" and type(value.get("custom")) is dict:
        return _parse_custom(tool, tool.object("custom"))
    if kind == "custom" and type(value.get("name")) is str:  # the flat form of Responses, as Cursor sends it
        return _parse_custom(tool, tool)
    if kind in ("function", None) and type(value.get("function")) is dict:
        function = tool.object("function")
        mark = parse_stray_cache(value) if len(value) > 2 else None
        form = {"type": "absent"} if kind is None else {}
        taken = {"type", "function", cache_key(mark)}
        extra = keep(value, taken, form, nested={"function": (function.value, _FUNCTION)})
        return Tool(
            function.text("name"),
            function.text_or_none("description"),
            function.dict_or_none("parameters"),
            function.boolean("strict"),
            cache=mark,
            extra=extra,
        )
    if kind in ("function", None) and type(value.get("name")) is str:  # the flat form of Responses
        form = {"flat": "function" if "type" in value else ""}
        return _parse_flat(tool, form, {"type"})
    if kind is None:
        raise tool.wrong("function", "an object")
    native = Foreign(NAME, tool.text("type"), value)
    inside = value.get("parameters")
    if type(inside) is dict and _hosted_kind(value) == "web_search":  # OpenRouter
        return parse_search(inside, native)
    return hosted_tool(_hosted_kind(value), native, {}, value, ("type", "function"))


def parse_search(given: dict[str, Any], native: Foreign) -> HostedTool:
    options = {
        "allowed_domains": given.get("allowed_domains"),
        "blocked_domains": given.get("excluded_domains"),
        "location": place_of(given.get("user_location")),
        "context_size": given.get("search_context_size"),
        "max_uses": given.get("max_uses"),
    }
    known = {"allowed_domains", "excluded_domains", "user_location", "search_context_size", "max_uses"}
    return hosted_tool("web_search", native, options, given, known)


def _hosted_kind(value: dict[str, Any]) -> str:
    kind = str(value["type"])
    function = value.get("function")
    if kind == "builtin_function" and type(function) is dict and function.get("name") == "$web_search":
        return "web_search"  # Kimi
    return _HOSTED.get(kind, kind)


def parse_function(function: Fields) -> Tool:
    """An entry of the deprecated `functions`."""
    return _parse_flat(function, {"flat": "functions"}, set())


def _parse_flat(tool: Fields, form: dict[str, Any], taken: set[str]) -> Tool:
    return Tool(
        tool.text("name"),
        tool.text_or_none("description"),
        tool.dict_or_none("parameters"),
        tool.boolean("strict"),
        extra=keep(tool.value, taken | _FUNCTION, form),
    )


def _parse_custom(tool: Fields, custom: Fields) -> Tool:
    shape = custom.object_or_none("format")
    grammar = None
    flat = custom is tool
    form: dict[str, Any] = {"flat": "custom"} if flat else {}
    if shape is not None:
        nested = shape.value.get("grammar")
        source = shape.object("grammar") if type(nested) is dict else shape
        if shape.value.get("type") == "grammar":
            grammar = Grammar(source.text_or("syntax"), source.text("definition"))
        form["format"] = shape.value
    return Tool(
        custom.text("name"),
        custom.text_or_none("description"),
        kind="custom",
        grammar=grammar,
        extra=keep(
            tool.value,
            {"type", *_CUSTOM} if flat else {"type", "custom"},
            form,
            nested=None if flat else {"custom": (custom.value, _CUSTOM)},
        ),
    )


def _function_out(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    return function


def render_tool(tool: Tool, path: str, losses: list[Loss]) -> tuple[str, dict[str, Any]]:
    """The list a tool belongs to (`tools`, or the deprecated `functions`) and its entry there."""
    if tool.is_plain():
        return "tools", {"type": "function", "function": _function_out(tool)}
    declare_native(tool, path, losses)
    form = own_form(tool.extra, NAME)
    if tool.kind == "custom":
        LOST_OF_CUSTOM.of(tool, path, losses)
        out = _custom_out(tool, form)
        put_back(out, tool.extra)
        return "tools", out
    LOST.of(tool, path, losses)
    function = _function_out(tool)
    flat = form.get("flat")
    cache, own_mark = tool.cache, tool.cache is not None and bool(own_form(tool.cache.extra, NAME))
    if cache is not None and (flat is not None or not own_mark):
        losses.append(NOT_MARKED.at(f"{path}.cache"))
    if flat is not None:
        out = {"type": "function", **function} if flat == "function" else function
        put_back(out, tool.extra)
        return ("functions" if flat == "functions" else "tools"), out
    out = (
        {"function": function} if form.get("type") == "absent" else {"type": "function", "function": function}
    )
    if own_mark:
        put_cache(out, cache, path, losses)
    put_back(out, tool.extra)
    return "tools", out


def _custom_out(tool: Tool, form: dict[str, Any]) -> dict[str, Any]:
    custom: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        custom["description"] = tool.description
    shape = form.get("format")
    if shape is not None and grammar_of(shape, "") == tool.grammar:
        custom["format"] = shape
    elif tool.grammar is not None:
        nested = {"syntax": tool.grammar.syntax, "definition": tool.grammar.definition}
        custom["format"] = {"type": "grammar", "grammar": nested}
    return {"type": "custom", **custom} if form.get("flat") else {"type": "custom", "custom": custom}


def render_hosted(tool: HostedTool, path: str, losses: list[Loss]) -> tuple[str, dict[str, Any]] | None:
    native = tool.native
    if native.dialect == NAME:
        return (WEB_SEARCH if native.type == WEB_SEARCH else "tools"), native.value
    if tool.kind == "web_search":
        losses.append(Loss(path, "hosted_tool", "approximated", "as web_search_options"))
        lose_options(tool, ("location", "context_size"), path, losses)
        out: dict[str, Any] = {}
        if "context_size" in tool.options:
            out["search_context_size"] = tool.options["context_size"]
        if "location" in tool.options:
            out["user_location"] = {"type": "approximate", "approximate": tool.options["location"]}
        return WEB_SEARCH, out
    losses.append(not_run(tool, path, f"Chat has no {tool.kind}"))
    return None


# The choice


def parse_choice(value: Any) -> ToolChoice | None:
    """A tool choice in any spelling; None for an unknown one."""
    mode = value if type(value) is str else value.get("type") if type(value) is dict else None
    if type(mode) is str and mode in CHOICE_MODES:
        plain = ToolChoice(CHOICE_MODES[mode])
        return plain if type(value) is str and mode != "any" else _spelled(plain, value)
    if type(value) is not dict:
        return None
    if mode == "allowed_tools":
        nested = value.get("allowed_tools")
        allowed = nested if type(nested) is dict else value
        entries = allowed.get("tools")
        if type(entries) is not list or not entries:
            return None
        only = tuple(name for entry in entries if (name := _name_in(entry)) is not None)
        hosted = tuple(kind for entry in entries if (kind := _hosted_in(entry)) is not None)
        if len(only) + len(hosted) < len(entries):
            return None
        wanted: Mode = "required" if allowed.get("mode") == "required" else "auto"
        return _spelled(ToolChoice(wanted, only, hosted=hosted), value)
    name, kind = _name_in(value), _hosted_in(value)
    if name is not None:
        return _spelled(ToolChoice("required", (name,)), value)
    return None if kind is None else _spelled(ToolChoice("required", hosted=(kind,)), value)


_NAMED = ("function", "custom", "tool")
"""Types of a choice that have a name next to them."""


def _spelled(choice: ToolChoice, raw: Any) -> ToolChoice:
    return replace(choice, extra=Extra(NAME, {}, {"raw": raw}))


def _hosted_in(value: Any) -> HostedChoice | None:
    """The hosted tool that an entry names by its type."""
    kind = value.get("type") if type(value) is dict else None
    return None if type(kind) is not str or kind in _NAMED else HostedChoice(_hosted_kind(value))


def _name_in(value: Any) -> str | None:
    if type(value) is not dict or value.get("type", "function") not in _NAMED:
        return None
    for holder in (value.get("function"), value.get("custom"), value):
        if type(holder) is dict and type(holder.get("name")) is str:
            return str(holder["name"])
    return None


def render_choice(choice: ToolChoice, tools: tuple[AnyTool, ...], losses: list[Loss]) -> Any:
    LOST.of(choice, "$.tool_choice", losses)
    raw = own_form(choice.extra, NAME).get("raw")
    if raw is not None:
        again = parse_choice(raw)
        same = again is not None and (again.mode, again.only, again.hosted) == (
            choice.mode,
            choice.only,
            choice.hosted,
        )
        if same:
            return raw
    if not choice.narrows:
        if choice.only or choice.hosted:
            losses.append(Loss("$.tool_choice.only", "tool_choice", "dropped", "none allows no tool anyway"))
        return choice.mode
    custom = custom_names(tools)
    entries = [_named_choice(name, "custom" if name in custom else "function") for name in choice.only]
    mode = choice.mode
    if choice.hosted:
        detail = f"{mode}: tools that the provider runs cannot be chosen here"
        losses.append(Loss("$.tool_choice", "tool_choice", "approximated", detail))
        if not entries:
            return "none"  # refers to functions: a search is an option of the request
        mode = "auto"
    if mode == "required" and len(entries) == 1:
        return entries[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": entries}}


def _named_choice(name: str, kind: str) -> dict[str, Any]:
    return {"type": kind, kind: {"name": name}}


# Calls


def usual_call(value: Any) -> ToolCall | None:
    """An ordinary entry of `tool_calls` without additional fields; None: it needs the full conversion."""
    inside = value.get("function") if type(value) is dict and value.keys() == _CALL else None
    if type(inside) is not dict or inside.keys() != _ARGUMENTS or value["type"] != "function":
        return None
    identifier, name, arguments = value["id"], inside["name"], inside["arguments"]
    if type(identifier) is type(name) is type(arguments) is str and identifier and name and arguments:
        return ToolCall(identifier, name, arguments)
    return None


def parse_call(call: Fields, mint: Callable[[str], str], context: Context, google: Origin) -> ToolCall:
    """An entry of `tool_calls`. `mint` makes the id of a call without one."""
    value = call.value
    custom = value.get("type") == "custom" or (type(value.get("custom")) is dict and "function" not in value)
    key = "custom" if custom else "function"
    inner = call.object(key)
    form: dict[str, Any] = {}
    name = inner.text("name")
    if not name and call.fault is not ClientFault:
        raise inner.wrong("name", "the name of a tool")
    arguments = _arguments(inner.value.get("input" if custom else "arguments"), form)
    identifier = call.text_or("id")
    taken = {key, "type", "id"}
    if not identifier:
        identifier = mint(name)
        if value.get("id") == "":
            form["id"] = "blank"
        else:
            taken.discard("id")
            if "id" not in value:
                form["no_id"] = True
    if value.get("type") != key:
        taken.discard("type")
        form["type"] = "absent"
    signature: Signature | None = None
    mark: CacheMark | None = None
    if not value.keys() <= taken:
        if type(value.get("index")) is int:  # a stream's field that servers leave in whole answers
            taken.add("index")
            form["index"] = value["index"]
        signature, native = call_signature(value, context, google)
        if signature is not None:
            taken.add(CARRIER)
            if native:
                form[CARRIER] = value[CARRIER]
        mark = parse_stray_cache(value)
        taken.add(cache_key(mark))
    known = _INPUT if custom else _ARGUMENTS
    extra = None
    if form or not value.keys() <= taken or inner.value.keys() != known or None in value.values():
        extra = keep(value, taken, form, nested={key: (inner.value, known)})
    return ToolCall(
        identifier,
        name,
        arguments,
        kind="custom" if custom else "function",
        signature=signature,
        cache=mark,
        extra=extra,
    )


def _arguments(value: Any, form: dict[str, Any]) -> str:
    if type(value) is str:
        if not value:
            form["arguments"] = "blank"
        return value
    if value is None:
        form["arguments"] = "absent"
        return ""
    form["arguments"] = "value"  # an object in place of its text
    return encode_text(value)


def parse_function_call(value: dict[str, Any], mint: Callable[[str], str]) -> ToolCall | None:
    """The deprecated single `function_call`."""
    name = value.get("name")
    if type(name) is not str or not name:
        return None
    form: dict[str, Any] = {"legacy": True}
    arguments = _arguments(value.get("arguments"), form)
    extra = keep({}, frozenset(), form, nested={"function_call": (value, _ARGUMENTS)})
    return ToolCall(mint(name), name, arguments, extra=extra)


def is_legacy(extra: Extra | None) -> bool:
    return bool(own_form(extra, NAME).get("legacy"))


def call_body(part: ToolCall) -> dict[str, Any]:
    """`{name, arguments}` or `{name, input}`, in its original form."""
    custom = part.kind == "custom"
    key = "input" if custom else "arguments"
    shape = own_form(part.extra, NAME).get("arguments")
    out: dict[str, Any] = {"name": part.name, key: part.arguments}
    if not part.arguments.strip() and not custom:
        # Every reader decodes this: no arguments must still be an object. The original spelling may be
        # restored.
        if shape == "absent":
            del out[key]
        elif shape != "blank":
            out[key] = "{}"
    elif shape == "absent" and not part.arguments:
        del out[key]
    elif shape == "value":
        with suppress(BadJson):
            out[key] = decode(part.arguments)
    return out


def plain_call(part: ToolCall) -> dict[str, Any]:
    """A call that `is_plain`, as nearly all are."""
    # Every reader decodes these: no arguments are an empty object.
    arguments = part.arguments if part.arguments and not part.arguments.isspace() else "{}"
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": arguments}}


def render_call(
    part: ToolCall, carrier: dict[str, Any] | None, path: str, losses: list[Loss]
) -> dict[str, Any]:
    LOST.of(part, path, losses)
    form = own_form(part.extra, NAME)
    fields = part.extra.fields if part.extra is not None and part.extra.dialect == NAME else {}
    out: dict[str, Any] = {}
    if "id" not in fields and not form.get("no_id"):
        out["id"] = "" if form.get("id") == "blank" else part.id
    if "type" not in form:
        out["type"] = part.kind
    out[part.kind] = call_body(part)
    if "index" in form:
        out["index"] = form["index"]
    if carrier is not None:
        out[CARRIER] = carrier
    if part.cache is not None and own_form(part.cache.extra, NAME):
        put_cache(out, part.cache, path, losses)
    elif part.cache is not None:
        losses.append(NOT_MARKED.at(f"{path}.cache"))
    put_back(out, part.extra)
    return out
