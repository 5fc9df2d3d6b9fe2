"""Fits tools to an endpoint: names, shapes, schemas, and which may be called."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from wireglot_core.dialects.client_tools import declare_native
from wireglot_core.dialects.hosted_options import not_run
from wireglot_core.dialects.schema import SchemaNote, SchemaTarget, project
from wireglot_core.ir.content import Extra, Message, Part, ToolCall, ToolResult
from wireglot_core.ir.loss import Feature, Loss, losses_of_extra
from wireglot_core.ir.request import (
    AnyTool,
    HostedChoice,
    HostedTool,
    Request,
    Thinking,
    Tool,
    ToolChoice,
    tool_name,
)
from wireglot_core.ir.trail import Trail
from wireglot_core.providers.aliases import INPUT, NO_ALIASES, Aliases, freeform_arguments, legal_name
from wireglot_core.providers.fit.fitting import FitTarget, Fitting
from wireglot_core.providers.fit.output import reported_notes
from wireglot_core.providers.fit.survey import ODD_CALLS
from wireglot_core.providers.fit.thinking import thinks
from wireglot_core.providers.limits import Limits
from wireglot_core.wire.cache import Cache

_FREEFORM_SCHEMA = {
    "type": "object",
    "properties": {
        INPUT: {"type": "string", "description": "The complete input of the tool, as plain text."}
    },
    "required": [INPUT],
    "additionalProperties": False,
}


def fit_tools(request: Request, fitting: Fitting) -> Request:
    """The request with every tool in the endpoint's own form, and the aliases to convert back."""
    limits, losses, trail = fitting.limits, fitting.losses, fitting.trail
    client, memory = fitting.target.client, fitting.context.memory
    foreign = fitting.foreign and (client is None or client.family != fitting.dialect)
    disguise = _Disguise(fitting.target, losses, trail)
    tools = disguise.known_tools(request.tools, memory) if memory is not None else None
    tools = tools or disguise.tools(request.tools)
    messages = request.messages
    if fitting.seen & ODD_CALLS or disguise.renames_calls(messages):
        messages = disguise.history(messages)
    choice = request.tool_choice
    if choice is not None and choice.narrows:
        if foreign:
            choice = _with_hosted(choice, request.tools)
        choice = disguise.choice(choice)
        if foreign or len(tools) < len(request.tools):
            choice, tools = _offered_choice(choice, tools, limits, losses, trail)
    elif choice is not None and choice.mode == "none" and foreign and not limits.hosted_choice:
        tools = _allowed(choice, tools, losses, trail)
    fitting.aliases = disguise.aliases()
    if tools == request.tools and messages is request.messages and choice is request.tool_choice:
        return request
    return msgspec.structs.replace(request, tools=tools, messages=messages, tool_choice=choice)


def _with_hosted(choice: ToolChoice, tools: tuple[AnyTool, ...]) -> ToolChoice:
    """Converts a choice that names a hosted tool like a client's tool (Anthropic) to one by its kind."""
    if not choice.only:
        return choice
    functions = {tool.name for tool in tools if type(tool) is Tool}
    hosted = {tool_name(tool): HostedChoice(tool.kind) for tool in tools if type(tool) is HostedTool}
    found = [name for name in choice.only if name not in functions and name in hosted]
    if not found:
        return choice
    return msgspec.structs.replace(
        choice,
        only=tuple(name for name in choice.only if name not in found),
        hosted=(*choice.hosted, *(hosted[name] for name in found)),
    )


def _offered_choice(
    choice: ToolChoice, tools: tuple[AnyTool, ...], limits: Limits, losses: list[Loss], trail: Trail
) -> tuple[ToolChoice, tuple[AnyTool, ...]]:
    """A choice among the tools that are sent, and the tools without hosted ones that it does not allow: a
    provider may run those unrequested. A tool that is not sent is not replaced by another."""
    if not tools:
        return choice, tools
    names = {tool.name for tool in tools if type(tool) is Tool}
    only = tuple(name for name in choice.only if name in names)
    hosted = tuple(
        chosen
        for chosen in choice.hosted
        if any(type(tool) is HostedTool and chosen.names(tool) for tool in tools)
    )
    if not only and not hosted:
        detail = "the chosen tool is not available here: no tool may be called"
        losses.append(Loss("$.tool_choice", "tool_choice", "approximated", detail))
        return ToolChoice("none"), tools
    if (only, hosted) != (choice.only, choice.hosted):
        left = ", ".join((*only, *(chosen.kind for chosen in hosted)))
        place = "$.tool_choice" if hosted == choice.hosted else "$.tool_choice.hosted"
        losses.append(Loss(place, "tool_choice", "approximated", f"only {left} of those chosen"))
        choice = msgspec.structs.replace(choice, only=only, hosted=hosted)
    if choice.is_named and limits.hosted_choice:
        return choice, tools
    return choice, _allowed(choice, tools, losses, trail)


def _allowed(
    choice: ToolChoice, tools: tuple[AnyTool, ...], losses: list[Loss], trail: Trail
) -> tuple[AnyTool, ...]:
    """The tools without hosted ones that a choice does not allow."""
    kept = tuple(
        _of_server(tool, choice, trail) if type(tool) is HostedTool else tool
        for tool in tools
        if type(tool) is Tool or choice.allows(tool)
    )
    if len(kept) == len(tools):
        return kept
    losses.append(_UNDECLARED)
    return kept


_UNDECLARED: Final = Loss(
    "$.tool_choice.only", "tool_choice", "approximated", "tools outside the allowed ones are not declared"
)


def _of_server(tool: HostedTool, choice: ToolChoice, trail: Trail) -> HostedTool:
    """A server's tool declaration, limited to the tools that the choice names."""
    chosen = [each for each in choice.hosted if each.names(tool)]
    if tool.server is None or not all(each.tool for each in chosen):
        return tool
    allowed = tuple(each.tool for each in chosen)
    narrowed = msgspec.structs.replace(tool, server=msgspec.structs.replace(tool.server, allowed=allowed))
    trail.follow(tool, narrowed)
    return narrowed


class _Undisguised(msgspec.Struct, frozen=True):
    """Tools that an endpoint accepts under their own names, without any loss."""

    tools: tuple[AnyTool, ...]
    owners: dict[str, tuple[str, str]]
    changed: tuple[tuple[AnyTool, AnyTool], ...]


def _undisguised(tools: tuple[AnyTool, ...], target: FitTarget, memory: Cache) -> _Undisguised | None:
    disguise = _Disguise(target, [], Trail(Request("", (), tools)))
    fitted = disguise.tools(tools)
    if disguise.losses or disguise.upstream or disguise.custom or disguise.kept:
        return None
    if fitted == tools:
        fitted = tools
    changed = tuple([(old, new) for old, new in zip(tools, fitted, strict=True) if new is not old])
    return _Undisguised(memory.share(fitted, tools), disguise.owners, changed)


class _Disguise:
    def __init__(self, target: FitTarget, losses: list[Loss], trail: Trail) -> None:
        self.target = target
        self.limits = target.limits
        self.losses = losses
        self.trail = trail
        self.upstream: dict[tuple[str, str], str] = {}
        """(namespace, client's name) -> upstream name, where they differ."""
        self.owners: dict[str, tuple[str, str]] = {}
        """Upstream name -> the tool that has it. Plain legal names are assigned first."""
        self.custom: set[str] = set()
        self.dialect = target.server.family
        self.kept: set[tuple[str, str]] = set()
        """(namespace, name) of vendors' own tools that stay unchanged, as do their calls."""
        self.plain: set[tuple[str, str]] = set()
        """The same for those that become functions here, as do their calls."""
        self.reported: set[str] = set()

    def renames_calls(self, messages: tuple[Message, ...]) -> bool:
        """Whether a tool with another name or form here was called before."""
        renamed = self.upstream.keys() | self.plain
        return bool(renamed) and any(
            type(part) is ToolCall and (part.namespace, part.name) in renamed
            for message in messages
            for part in message.content
        )

    def choice(self, choice: ToolChoice) -> ToolChoice:
        """The choice with upstream names. It names tools without a namespace."""
        if not choice.only or not self.upstream:
            return choice
        return msgspec.structs.replace(choice, only=tuple(map(self._chosen, choice.only)))

    def _chosen(self, name: str) -> str:
        return next((new for (_, old), new in self.upstream.items() if old == name), name)

    def aliases(self) -> Aliases:
        if not self.upstream and not self.custom:
            return NO_ALIASES
        names = {upstream: key for key, upstream in self.upstream.items()}
        return Aliases(names, frozenset(self.custom))

    def known_tools(self, tools: tuple[AnyTool, ...], memory: Cache) -> tuple[AnyTool, ...] | None:
        """The result of `tools`, if it is known from an earlier turn; None if it has to be computed."""
        if not memory.is_known(tools):
            return None
        limits = self.limits
        key = (
            "fit",
            limits.tool_name,
            limits.tool_name_max,
            limits.custom_tools,
            limits.namespaces,
            limits.strict_tools,
            limits.hosted_tools,
            limits.tool_schema,
            self.dialect,
        )
        known = memory.remembered(tools, key, lambda: _undisguised(tools, self.target, memory))
        if known is None:
            return None
        self.owners = dict(known.owners)
        for old, new in known.changed:
            self.trail.follow(old, new)
        return known.tools

    def tools(self, tools: tuple[AnyTool, ...]) -> tuple[AnyTool, ...]:
        for tool in tools:
            if type(tool) is Tool and not tool.namespace:
                self.owners.setdefault(tool.name, ("", tool.name))
        fitted: list[AnyTool] = []
        for tool in tools:
            new = self._tool(tool)
            if new is not None and new is not tool:
                self.trail.follow(tool, new)
            if new is not None:
                fitted.append(new)
        return tuple(fitted)

    def _tool(self, tool: AnyTool) -> AnyTool | None:
        limits = self.limits
        if type(tool) is HostedTool:
            if limits.hosted_tools:
                return tool
            detail = f"{tool.kind}: this provider runs no tools"
            self.losses.append(not_run(tool, self.trail.of(tool), detail))
            return None
        assert type(tool) is Tool
        if tool.native is not None:
            if limits.hosted_tools and tool.native.dialect == self.dialect:
                self.kept.add((tool.namespace, tool.name))
                return tool
            self.plain.add((tool.namespace, tool.name))
            declare_native(tool, self.trail.of(tool), self.losses)
            function = msgspec.structs.replace(tool, native=None)
            self.trail.follow(tool, function)
            tool = function
        name = self.name(tool)
        namespace = tool.namespace if limits.namespaces else ""
        if tool.kind == "custom" and not limits.custom_tools:
            return self._freeform(tool, name, namespace)
        strict = self._strict(tool) if tool.strict else tool.strict
        enforced = strict and limits.tool_schema == "openai"
        schema = self._schema(tool, "openai-strict" if enforced else limits.tool_schema)
        if (
            schema is tool.schema
            and name == tool.name
            and namespace == tool.namespace
            and strict is tool.strict
        ):
            return tool
        return msgspec.structs.replace(tool, name=name, namespace=namespace, strict=strict, schema=schema)

    def name(self, named: Tool | ToolCall) -> str:
        """The upstream name of a tool; recorded if it differs. No two tools ever share one."""
        namespace, name = key = (named.namespace, named.name)
        known = self.upstream.get(key)
        if known is not None:
            return known
        limits = self.limits
        flat = name if not namespace or limits.namespaces else f"{namespace}__{name}"
        legal = flat
        if self.target.rules.refuses_name(flat):
            legal = legal_name(flat, limits.tool_name_max)
        owner = key if not namespace or not limits.namespaces else ("", name)
        if self.owners.setdefault(legal, owner) != owner:
            legal = legal_name(f"{namespace}/{name}", limits.tool_name_max)
            self.owners[legal] = owner
        if legal != name:
            self.upstream[key] = legal
            feature: Feature = "tool.namespace" if legal == f"{namespace}__{name}" else "tool.name"
            path = f"{self.trail.of(named)}.{feature.removeprefix('tool.')}"
            self._report(path, feature, f"sent as {legal}")
        return legal

    def _report(self, path: str, feature: Feature, detail: str) -> None:
        """Reports once per kind of change and name: the history repeats what was reported for the tools."""
        if detail not in self.reported:
            self.reported.add(detail)
            self.losses.append(Loss(path, feature, "emulated", detail))

    def _freeform(self, tool: Tool, name: str, namespace: str) -> Tool:
        self.custom.add(name)
        detail = f"sent as a function with one string argument, {INPUT!r}"
        self.losses.append(Loss(self.trail.of(tool), "tool.custom", "emulated", detail))
        description = tool.description or ""
        if tool.grammar is not None:
            text = f"The input must follow this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
            description = f"{description}\n\n{text}" if description else text
        return Tool(
            name,
            description or None,
            schema=_FREEFORM_SCHEMA,
            kind="function",
            namespace=namespace,
            deferred=tool.deferred,
            cache=tool.cache,
            extra=tool.extra,
        )

    def _strict(self, tool: Tool) -> bool | None:
        if not self.limits.strict_tools:
            detail = "this provider does not enforce schemas"
            self.losses.append(Loss(f"{self.trail.of(tool)}.strict", "tool.strict", "dropped", detail))
            return None
        if self.limits.tool_schema == "openai" and project(tool.schema, "openai-strict").notes:
            # OpenAI refuses `strict` for schemas outside its subset, and tries it if the field is missing.
            detail = "the schema is outside the subset that can be enforced"
            self.losses.append(Loss(f"{self.trail.of(tool)}.strict", "tool.strict", "dropped", detail))
            return False
        return True

    def _schema(self, tool: Tool, form: SchemaTarget) -> dict[str, Any] | None:
        if tool.schema is None or tool.kind == "custom" or form == "json-schema":
            return tool.schema
        projected = project(tool.schema, form)
        if projected.notes:
            self._noted(tool, projected.notes)
        return tool.schema if projected.same else projected.schema

    def _noted(self, tool: Tool, notes: tuple[SchemaNote, ...]) -> None:
        """Bounds and the like were only a hint to the model before, unless the client requested a strict
        tool."""
        hints = () if tool.strict else tuple(note for note in notes if note.hint)
        changes = tuple(note for note in notes if note not in hints)
        path = f"{self.trail.of(tool)}.schema"
        grouped: tuple[tuple[Feature, tuple[SchemaNote, ...]], ...] = (
            ("tool.schema", changes),
            ("tool.schema.hint", hints),
        )
        for feature, some in grouped:
            if some:
                self.losses.append(Loss(path, feature, "approximated", reported_notes(some)))

    def history(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Earlier calls and results, with the names and forms that the tools now have."""
        custom_ids: set[str] = set()
        plain_ids: set[str] = set()

        def disguised(part: Part) -> Part:
            if type(part) is ToolCall:
                return self._call(self._plain(part, plain_ids), custom_ids)
            if type(part) is ToolResult:
                return self._result(_unspelled(part) if part.call_id in plain_ids else part, custom_ids)
            return part

        return self.trail.changed_parts(messages, disguised)

    def _plain(self, call: ToolCall, plain_ids: set[str]) -> ToolCall:
        """A call of a vendor's own tool that is a function here, without the vendor's spelling."""
        if (call.namespace, call.name) not in self.plain:
            return call
        plain_ids.add(call.id)
        return _unspelled(call)

    def _result(self, result: ToolResult, custom_ids: set[str]) -> ToolResult:
        name = self.upstream.get(("", result.name), result.name)
        kind = "function" if result.call_id in custom_ids else result.kind
        if name == result.name and kind == result.kind:
            return result
        return msgspec.structs.replace(result, name=name, kind=kind)

    def _call(self, call: ToolCall, custom_ids: set[str]) -> ToolCall:
        if (call.namespace, call.name) in self.kept:
            return call
        name = self.name(call)
        namespace = call.namespace if self.limits.namespaces else ""
        if call.kind == "custom" and not self.limits.custom_tools:
            custom_ids.add(call.id)
            detail = f"calls of {call.name} sent as function calls"
            self._report(self.trail.of(call), "tool.custom", detail)
            return msgspec.structs.replace(
                call,
                name=name,
                namespace=namespace,
                kind="function",
                arguments=freeform_arguments(call.arguments),
            )
        if name == call.name and namespace == call.namespace:
            return call
        return msgspec.structs.replace(call, name=name, namespace=namespace)


_P = TypeVar("_P", ToolCall, ToolResult)


def _unspelled(part: _P) -> _P:
    extra = part.extra
    if extra is None or not extra.form:
        return part
    kept = Extra(extra.dialect, extra.fields) if extra.fields else None
    return msgspec.structs.replace(part, extra=kept)


_SWITCHED: Final = ("toggle", "budget")
"""Thinking styles that can be switched off."""


def fit_tool_choice(request: Request, fitting: Fitting) -> Request:
    """The choice in a form the endpoint accepts; without tools there is none."""
    limits, losses = fitting.limits, fitting.losses
    choice, parallel = request.tool_choice, request.parallel_tools
    if not request.tools:
        return request if choice is None and parallel is None else _without_choice(request, losses)
    if parallel is not None and not limits.parallel_switch:
        if not parallel:
            losses.append(
                Loss("$.parallel_tools", "parallel_tools", "dropped", "this provider has no such switch")
            )
        request = msgspec.structs.replace(request, parallel_tools=None)
    if choice is None:
        return request
    allowed = limits.tool_choices
    if limits.tool_choices_thinking is not None and thinks(fitting.asked, request.thinking, limits):
        allowed = limits.tool_choices_thinking
        if _needs_calm(choice, request.tools, limits):
            detail = "switched off for this turn: the model does not accept a forced choice while it thinks"
            losses.append(Loss("$.thinking.mode", "thinking.mode", "approximated", detail))
            return msgspec.structs.replace(request, thinking=Thinking("off"))
    fitted, tools = _weaken(choice, allowed, request.tools)
    if fitted == choice:
        return request
    if tools is not request.tools:
        losses.append(_UNDECLARED)
    if fitted is None or fitted.mode != choice.mode:
        detail = (
            f"weakened to {fitted.mode}: this model does not support the requested choice"
            if fitted
            else "no tool is declared"
        )
        losses.append(Loss("$.tool_choice", "tool_choice", "approximated", detail))
    return msgspec.structs.replace(request, tool_choice=fitted, tools=tools)


def _without_choice(request: Request, losses: list[Loss]) -> Request:
    choice = request.tool_choice
    if choice is not None and choice.mode != "none":
        losses.append(Loss("$.tool_choice", "tool_choice", "dropped", "no tools are offered"))
    elif choice is not None:
        losses_of_extra(choice.extra, "", "$.tool_choice", losses)
    return msgspec.structs.replace(request, tool_choice=None, parallel_tools=None)


def _needs_calm(choice: ToolChoice, tools: tuple[AnyTool, ...], limits: Limits) -> bool:
    """Whether the model accepts this choice only if it does not think, and thinking can be switched off."""
    while_thinking = limits.tool_choices_thinking
    if limits.forced_choice != "stop_thinking" or while_thinking is None:
        return False
    if not limits.thinking_off or limits.thinking not in _SWITCHED:
        return False
    calm, _ = _weaken(choice, limits.tool_choices, tools)
    return calm == choice and _weaken(choice, while_thinking, tools)[0] != choice


def _weaken(
    choice: ToolChoice, allowed: tuple[str, ...], tools: tuple[AnyTool, ...]
) -> tuple[ToolChoice | None, tuple[AnyTool, ...]]:
    """The nearest choice that the endpoint accepts, and the tools to declare with it: if a choice cannot name
    the tools that may be called, the others are not declared."""
    if choice.mode == "none":
        return (choice, tools) if "none" in allowed else (None, ())
    mode = choice.mode if choice.mode in allowed else "auto"
    if not choice.narrows:
        return (choice if mode == choice.mode else ToolChoice(mode, extra=choice.extra)), tools
    if ("named" if choice.is_named else "subset") in allowed:
        return choice, tools
    kept = tuple(tool for tool in tools if choice.allows(tool))
    return ToolChoice(mode, extra=choice.extra), tools if len(kept) == len(tools) else kept
