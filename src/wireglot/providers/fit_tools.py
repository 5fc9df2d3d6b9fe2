"""Tools toward an endpoint: names, shapes, schemas, and who may be called."""

from __future__ import annotations

import hashlib
import re

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.schema import object_root, project
from wireglot.ir.content import Message, ToolCall, ToolResult
from wireglot.ir.loss import Feature, Loss
from wireglot.ir.request import AnyTool, HostedTool, Request, Tool, ToolChoice
from wireglot.providers.aliases import INPUT, Aliases, freeform_arguments, legal_name
from wireglot.providers.limits import Limits

_FREEFORM_SCHEMA = {
    "type": "object",
    "properties": {
        INPUT: {"type": "string", "description": "The complete input of the tool, as plain text."}
    },
    "required": [INPUT],
    "additionalProperties": False,
}


def fit_tools(request: Request, limits: Limits, losses: list[Loss]) -> tuple[Request, Aliases]:
    """The request with every tool in the endpoint's own shape, and the way back to the client's."""
    disguise = _Disguise(limits, losses)
    tools = tuple(
        fitted
        for index, tool in enumerate(request.tools)
        if (fitted := disguise.tool(tool, f"$.tools[{index}]"))
    )
    messages = disguise.history(request.messages)
    choice = request.tool_choice
    if choice is not None and choice.only and disguise.upstream:
        only = tuple(disguise.upstream.get(("", name), name) for name in choice.only)
        choice = ToolChoice(choice.mode, only, choice.extra)
    if tools == request.tools and messages is request.messages and choice is request.tool_choice:
        return request, disguise.aliases()
    return (
        msgspec.structs.replace(request, tools=tools, messages=messages, tool_choice=choice),
        disguise.aliases(),
    )


class _Disguise:
    def __init__(self, limits: Limits, losses: list[Loss]) -> None:
        self.limits = limits
        self.losses = losses
        self.name_rule = re.compile(limits.tool_name) if limits.tool_name else None
        self.upstream: dict[tuple[str, str], str] = {}
        """(namespace, client's name) -> upstream name, where they differ."""
        self.custom: set[str] = set()
        self.reported: set[str] = set()

    def aliases(self) -> Aliases:
        names = {upstream: key for key, upstream in self.upstream.items()}
        return Aliases(names, frozenset(self.custom))

    def tool(self, tool: AnyTool, path: str) -> AnyTool | None:
        limits = self.limits
        if type(tool) is HostedTool:
            if limits.hosted_tools:
                return tool
            self.losses.append(
                Loss(path, "hosted_tool", "dropped", f"{tool.kind}: this provider runs no tools")
            )
            return None
        assert type(tool) is Tool
        name = self.name(tool.namespace, tool.name, path)
        namespace = tool.namespace if limits.namespaces else ""
        if tool.kind == "custom" and not limits.custom_tools:
            return self._freeform(tool, name, namespace, path)
        strict = tool.strict
        if strict and not limits.strict_tools:
            self.losses.append(
                Loss(f"{path}.strict", "tool.strict", "dropped", "this provider does not enforce schemas")
            )
            strict = None
        elif strict and limits.tool_schema == "openai" and tool.schema is not None:
            strict = self._strict_if_possible(tool, path)
        schema = self._schema(tool, path)
        if (name, namespace, strict) == (tool.name, tool.namespace, tool.strict) and schema is tool.schema:
            return tool
        return msgspec.structs.replace(tool, name=name, namespace=namespace, strict=strict, schema=schema)

    def name(self, namespace: str, name: str, path: str) -> str:
        """The upstream name of a tool; remembered where it differs."""
        key = (namespace, name)
        known = self.upstream.get(key)
        if known is not None:
            return known
        flat = name if not namespace or self.limits.namespaces else f"{namespace}__{name}"
        legal = flat
        if len(flat) > self.limits.tool_name_max or (self.name_rule and not self.name_rule.fullmatch(flat)):
            legal = legal_name(flat, self.limits.tool_name, self.limits.tool_name_max)
        if legal != name:
            self.upstream[key] = legal
            if legal != flat:
                self._report(f"{path}.name", "tool.name", f"sent as {legal}")
            else:
                self._report(f"{path}.namespace", "tool.namespace", f"sent as {legal}")
        return legal

    def _report(self, path: str, feature: Feature, detail: str) -> None:
        """Once per kind of disguise and name: history repeats what the tools already said."""
        if detail not in self.reported:
            self.reported.add(detail)
            self.losses.append(Loss(path, feature, "emulated", detail))

    def _freeform(self, tool: Tool, name: str, namespace: str, path: str) -> Tool:
        self.custom.add(name)
        self.losses.append(
            Loss(path, "tool.custom", "emulated", f"sent as a function with one string argument, {INPUT!r}")
        )
        description = tool.description or ""
        if tool.grammar is not None:
            text = f"The input must follow this {tool.grammar.syntax} grammar:\n{tool.grammar.definition}"
            description = f"{description}\n\n{text}" if description else text
        return Tool(
            name,
            description or None,
            _FREEFORM_SCHEMA,
            None,
            "function",
            None,
            namespace,
            tool.deferred,
            tool.cache,
            tool.extra,
        )

    def _strict_if_possible(self, tool: Tool, path: str) -> bool:
        """OpenAI refuses `strict` for schemas outside its subset: then say no, aloud."""
        assert tool.schema is not None
        if project(tool.schema, "openai-strict").schema == tool.schema:
            return True
        self.losses.append(
            Loss(
                f"{path}.strict",
                "tool.strict",
                "dropped",
                "the schema is outside the subset that can be enforced",
            )
        )
        return False

    def _schema(self, tool: Tool, path: str) -> dict[str, object] | None:
        if tool.schema is None or tool.kind == "custom" or self.limits.tool_schema == "json-schema":
            return tool.schema
        projected = project(tool.schema, self.limits.tool_schema)
        if projected.notes:
            detail = "; ".join(f"{note.path} {note.keyword}: {note.detail}" for note in projected.notes[:5])
            more = len(projected.notes) - 5
            if more > 0:
                detail = f"{detail}; and {more} more"
            self.losses.append(Loss(f"{path}.schema", "tool.schema", "approximated", detail))
        return tool.schema if projected.schema == tool.schema else projected.schema

    def history(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """Earlier calls and results under the names and shapes the tools now have."""
        if not self._touches(messages):
            return messages
        changed: list[Message] = []
        custom_ids: set[str] = set()
        for index, message in enumerate(messages):
            content = list(message.content)
            for position, part in enumerate(content):
                if type(part) is ToolCall:
                    content[position] = self._call(
                        part, f"$.messages[{index}].content[{position}]", custom_ids
                    )
                elif type(part) is ToolResult and (part.call_id in custom_ids or part.name):
                    name = self.upstream.get(("", part.name), part.name)
                    kind = "function" if part.call_id in custom_ids else part.kind
                    if name != part.name or kind != part.kind:
                        content[position] = msgspec.structs.replace(part, name=name, kind=kind)
            changed.append(Message(message.role, tuple(content), message.name, message.extra))
        return tuple(changed)

    def _touches(self, messages: tuple[Message, ...]) -> bool:
        limits, rule, known = self.limits, self.name_rule, self.upstream
        for message in messages:
            if message.role != "assistant":
                continue
            for part in message.content:
                if type(part) is ToolCall and (
                    (part.kind == "custom" and not limits.custom_tools)
                    or (part.namespace and not limits.namespaces)
                    or (known and (part.namespace, part.name) in known)
                    or len(part.name) > limits.tool_name_max
                    or (rule is not None and not rule.fullmatch(part.name))
                ):
                    return True
        return False

    def _call(self, call: ToolCall, path: str, custom_ids: set[str]) -> ToolCall:
        name = self.name(call.namespace, call.name, path)
        namespace = call.namespace if self.limits.namespaces else ""
        if call.kind == "custom" and not self.limits.custom_tools:
            custom_ids.add(call.id)
            self._report(path, "tool.custom", f"calls of {call.name} sent as function calls")
            return msgspec.structs.replace(
                call,
                name=name,
                namespace=namespace,
                kind="function",
                arguments=freeform_arguments(call.arguments),
            )
        return msgspec.structs.replace(call, name=name, namespace=namespace)


def fit_tool_choice(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    """The choice in a form the endpoint takes; without tools there is nothing to choose."""
    choice, parallel = request.tool_choice, request.parallel_tools
    if not request.tools:
        if choice is not None or parallel is not None:
            if choice is not None and choice.mode != "none":
                losses.append(Loss("$.tool_choice", "tool_choice", "dropped", "no tools are offered"))
            request = msgspec.structs.replace(request, tool_choice=None, parallel_tools=None)
        return request
    if parallel is not None and not limits.parallel_switch:
        if not parallel:
            losses.append(
                Loss("$.parallel_tools", "parallel_tools", "dropped", "this provider has no such switch")
            )
        request = msgspec.structs.replace(request, parallel_tools=None)
    if choice is None:
        return request
    allowed = limits.tool_choices
    if limits.tool_choices_thinking is not None and request.thinking.mode != "off":
        allowed = limits.tool_choices_thinking
    fitted = _weaken(choice, allowed, request)
    if fitted == choice:
        return request
    losses.append(
        Loss(
            "$.tool_choice",
            "tool_choice",
            "approximated",
            f"weakened to {fitted.mode}: this model takes no more",
        )
    )
    return msgspec.structs.replace(request, tool_choice=fitted)


def _weaken(choice: ToolChoice, allowed: tuple[str, ...], request: Request) -> ToolChoice:
    if choice.only:
        form = "named" if choice.mode == "required" and len(choice.only) == 1 else "subset"
        if form in allowed:
            return choice
        sole = len(request.tools) == 1 and form == "named"
        mode = choice.mode if (sole or form == "subset") and choice.mode in allowed else "auto"
        return ToolChoice(mode, (), choice.extra)
    return choice if choice.mode in allowed else ToolChoice("auto", (), choice.extra)


def fit_call_ids(request: Request, limits: Limits, losses: list[Loss], context: Context) -> Request:
    """Call ids the endpoint accepts. A positional one is minted, and minted ids are never sent to Gemini."""
    rule = re.compile(limits.call_id) if limits.call_id else None
    renames: dict[str, str] = {}
    counter = 0
    for message in request.messages:
        for part in message.content:
            if type(part) is not ToolCall:
                continue
            if limits.call_ids == "kimi":
                wanted = f"functions.{part.name}:{counter}"
            elif limits.call_ids == "positional":
                wanted = context.new_id(context.call_prefix, str(counter), part.name)
            elif (limits.call_id_max and len(part.id) > limits.call_id_max) or (
                rule is not None and not rule.fullmatch(part.id)
            ):
                wanted = _hashed_id(part.id, limits.call_id_max)
            else:
                wanted = part.id
            counter += 1
            if wanted != part.id:
                renames[part.id] = wanted
    if not renames:
        return request
    if limits.call_ids == "positional":
        detail = "this model pairs calls and results by order; ids are not sent"
    else:
        detail = "rewritten to the form this provider takes"
    losses.append(Loss("$.messages", "tool_call.id", "emulated", detail))
    return msgspec.structs.replace(request, messages=tuple(_renamed(m, renames) for m in request.messages))


def _renamed(message: Message, renames: dict[str, str]) -> Message:
    content = list(message.content)
    changed = False
    for position, part in enumerate(content):
        if type(part) is ToolCall and part.id in renames:
            content[position] = msgspec.structs.replace(part, id=renames[part.id])
            changed = True
        elif type(part) is ToolResult and part.call_id in renames:
            content[position] = msgspec.structs.replace(part, call_id=renames[part.call_id])
            changed = True
    return Message(message.role, tuple(content), message.name, message.extra) if changed else message


def _hashed_id(identifier: str, longest: int) -> str:
    digest = hashlib.sha256(identifier.encode("utf-8", "replace")).hexdigest()
    if longest and longest < 20:
        return digest[:longest]
    return f"call_{digest[:32]}"


def fit_output_schema(request: Request, limits: Limits, losses: list[Loss]) -> Request:
    """A schema for the answer within the endpoint's rules; its root must be an object outside Gemini."""
    output = request.output
    if (
        output is None
        or output.kind != "schema"
        or output.schema is None
        or limits.output_schema == "json-schema"
    ):
        return request
    schema, wrapped = output.schema, False
    if not limits.output_schema.startswith("gemini"):
        schema, wrapped = object_root(schema)
    form = limits.output_schema
    if form == "anthropic":
        projected = project(schema, "anthropic-strict")
    elif form == "openai" and output.strict:
        projected = project(schema, "openai-strict")
    else:
        projected = project(schema, form)
    if wrapped:
        losses.append(
            Loss(
                "$.output.schema",
                "output_format.schema",
                "approximated",
                'the answer comes as {"value": ...}',
            )
        )
    if projected.notes:
        detail = "; ".join(f"{note.path} {note.keyword}: {note.detail}" for note in projected.notes[:5])
        losses.append(Loss("$.output.schema", "output_format.schema", "approximated", detail))
    if projected.schema == output.schema:
        return request
    return msgspec.structs.replace(request, output=msgspec.structs.replace(output, schema=projected.schema))
