"""Parses a client's request: `POST /v1/responses`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_responses.client_calls import (
    CLIENT_CALLS,
    is_client_call,
    is_client_result,
    parse_client_call,
    parse_client_result,
)
from wireglot_core.dialects.openai_responses.items import (
    Carried,
    foreign_role,
    parse_call,
    parse_image_call,
    parse_message,
    parse_reasoning,
    parse_result,
)
from wireglot_core.dialects.openai_responses.mcp import parse_made_call
from wireglot_core.dialects.openai_responses.settings import (
    REQUEST_FIELDS,
    parse_output,
    parse_thinking,
    parse_tier,
)
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_responses.tools import parse_tool_choice, parse_tools
from wireglot_core.dialects.turns import read_turns
from wireglot_core.dialects.unknown_fields import split_blank
from wireglot_core.ir.content import Extra, Foreign, Media, Message, Origin, Part, Signature, Text, ToolCall
from wireglot_core.ir.request import AnyTool, HostedTool, OutputFormat, Request, Thinking, Tool

_LOGPROBS = "message.output_text.logprobs"
_INCLUDED = (_LOGPROBS, "reasoning.encrypted_content")
"""Values of `include` that hold for answers of every upstream: the first if requested, the second always."""

_USERS = ("safety_identifier", "user")
_OPERATIONAL = ("store", "include", "stream_options", "background", "truncation")
"""Fields about how the exchange runs, without content. (`background: true` and `truncation: auto` do have a
meaning.)"""

_INSTEAD = ("prompt", "conversation", "previous_response_id")
"""With any of these, a request needs no input. OpenAI refuses instructions alone (pydantic-ai's pull request
3470, read 2026-11-19)."""

_KNOWN = REQUEST_FIELDS.known.union(
    {
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "store",
        "include",
        "stream_options",
    }
)


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    form: dict[str, Any] = {"native": True}
    telling: dict[str, Any] = {}
    known = set(_KNOWN)

    # Readers of missing fields are not called: most requests have few of these.
    listed = fields.array_or_empty("tools") if "tools" in body else []
    stated: tuple[AnyTool, ...] = ()
    if listed:
        stated = context.remembered(
            listed, NAME, lambda: context.share(tuple(parse_tools(listed, "$.tools")), listed)
        )
    tools = list(stated)
    messages = InputReader(context, tools)
    instructions = fields.text_or_none("instructions") if "instructions" in body else None
    if instructions is not None:
        extra = Extra(NAME, form={"instructions": True})
        messages.messages.append(Message("system", (Text(instructions),), extra=extra))
    messages.read_input(fields)

    if "tools" in body and not tools:
        form["tools"] = body["tools"]
    if messages.brought:
        tools = _loaded(tools, messages.brought)
        tools += new_tools(tools, messages.brought)
    choice = body.get("tool_choice")

    output, verbosity = _read_text(fields, form, telling) if "text" in body else (None, "")
    reasoning = fields.object_or_none("reasoning") if "reasoning" in body else None
    for key in _OPERATIONAL:
        if key in body and not ((key == "background" and body[key] is True) or body.get(key) == "auto"):
            form[key] = body[key]
            known.add(key)
    for key in ("model", "input"):
        if key not in body:
            form.setdefault("without", []).append(key)

    settings = REQUEST_FIELDS.read(fields, known)
    include = body.get("include")
    if type(include) is list:
        if _LOGPROBS in include:
            settings["sampling"] = replace(settings["sampling"], logprobs=True)
        more = [entry for entry in include if entry not in _INCLUDED]
        if more:
            telling["include"] = more
    user = _read_user(fields, form, known) if not body.keys().isdisjoint(_USERS) else ""
    metadata = body.get("metadata")
    if type(metadata) is dict and all(type(value) is str for value in metadata.values()):
        known.add("metadata")
        form["metadata"] = True
    else:
        metadata = {}
    tier = body.get("service_tier")
    if type(tier) is str and tier:
        known.add("service_tier")
        form["service_tier"] = tier

    rest = fields.rest(frozenset(known), NAME)
    if rest is not None:
        telling = {**rest.fields, **telling}
    return Request(
        messages=tuple(messages.messages),
        tools=tuple(tools) if messages.brought else stated,
        tool_choice=parse_tool_choice(choice, "$.tool_choice", tools) if choice is not None else None,
        thinking=parse_thinking(reasoning) if reasoning is not None else Thinking(),
        output=output,
        verbosity=verbosity,
        user=user,
        metadata=metadata,
        service_tier=parse_tier(tier) if type(tier) is str else "",
        extra=Extra(NAME, telling, form),
        **settings,
    )


def _read_text(
    fields: Fields, form: dict[str, Any], telling: dict[str, Any]
) -> tuple[OutputFormat | None, str]:
    text = fields.object_or_none("text")
    if text is None:
        return None, ""
    rest = dict(text.value)
    output = parse_output(text)
    if output is not None:
        del rest["format"]
    verbosity = rest.get("verbosity")
    if type(verbosity) is str and verbosity:
        del rest["verbosity"]
    else:
        verbosity = ""
    more, blank = split_blank(rest)
    form["text"] = blank
    if more:
        telling["text"] = more
    return output, verbosity


def _read_user(fields: Fields, form: dict[str, Any], known: set[str]) -> str:
    """The end user: `safety_identifier`, or `user`, which it replaced. If both are set, the other stays in
    the extra."""
    for key in _USERS:
        value = fields.text_or(key)
        if value:
            known.add(key)
            form["user_key"] = key
            return value
    return ""


def _loaded(declared: list[AnyTool], brought: list[AnyTool]) -> list[AnyTool]:
    """Marks deferred tools that a search has found as no longer deferred."""
    found = {(tool.namespace, tool.name) for tool in brought if isinstance(tool, Tool) and not tool.deferred}
    if not found:
        return declared
    return [
        _found(tool)
        if isinstance(tool, Tool) and tool.deferred and (tool.namespace, tool.name) in found
        else tool
        for tool in declared
    ]


def _found(tool: Tool) -> Tool:
    extra = tool.extra if tool.extra is not None else Extra(NAME)
    form = {**extra.form, "defer_loading": True}
    return replace(tool, deferred=False, extra=Extra(NAME, extra.fields, form))


def new_tools(declared: list[AnyTool], brought: list[AnyTool]) -> list[AnyTool]:
    """Tools declared by input items, for dialects that take tools with the request only."""
    names = {(tool.namespace, tool.name) for tool in declared if isinstance(tool, Tool)}
    hosted = [tool.native.value for tool in declared if isinstance(tool, HostedTool)]
    new: list[AnyTool] = []
    for tool in brought:
        if isinstance(tool, HostedTool):
            if tool.native.value not in hosted:
                hosted.append(tool.native.value)
                new.append(tool)
        elif (tool.namespace, tool.name) not in names:
            names.add((tool.namespace, tool.name))
            new.append(tool)
    return new


_ALONE = frozenset(
    {
        "message",
        "function_call",
        "custom_tool_call",
        "function_call_output",
        "custom_tool_call_output",
        "reasoning",
    }
)
"""Items that are parsed independently of others, except for a pending signature."""


def _is_alone(item: Any) -> bool:
    kind = item.get("type", "message") if type(item) is dict else None
    return type(kind) is str and kind in _ALONE


class InputReader:
    """Parses the input, item by item. `waiting`: a signature that precedes its call."""

    def __init__(self, context: Context, tools: Sequence[AnyTool] = ()) -> None:
        self.context = context
        self.messages: list[Message] = []
        self.brought: list[AnyTool] = []
        self.hosted_shell = "shell" in [tool.kind for tool in tools if isinstance(tool, HostedTool)]
        self.hosted_calls: set[str] = set()
        """Ids of calls that look like the client's but were run by the server."""
        self.waiting: Signature | None = None
        self.calls = 0

    def read_input(self, fields: Fields) -> None:
        value = fields.value.get("input")
        if value is None:
            if not any(map(fields.value.get, _INSTEAD)):
                raise fields.wrong("input", "a string or an array of items")
            return
        if type(value) is str:
            extra = Extra(NAME, form={"item": "message", "input": True})
            self.messages.append(Message("user", (Text(value),), extra=extra))
            return
        if type(value) is not list:
            raise fields.wrong("input", "a string or an array of items")
        if not value and self.context.generates and not any(map(fields.value.get, _INSTEAD)):
            raise fields.fault("expected at least one item", "$.input")
        read_turns(self, value, self.context, NAME, self.hosted_shell)

    def read_message(self, item: Any, index: int) -> None:
        self.read_item(Fields(item, f"$.input[{index}]"))

    def state(self, item: Any) -> Hashable:
        """The state an item depends on: a call without an id gets one from its number; a pending signature
        belongs to the next call."""
        return self.calls if self.waiting is None and _is_alone(item) else None

    def mark(self) -> int | None:
        return self.calls if self.waiting is None else None

    def go_on(self, mark: int) -> None:
        self.calls = mark

    def snapshot(self) -> int | None:
        return None if self.waiting is not None or self.brought or self.hosted_calls else self.calls

    restore = go_on

    def read_item(self, item: Fields) -> None:
        kind = item.text_or_none("type")
        match kind:
            case None | "message":
                if kind is None and "role" not in item.value:
                    if "id" not in item.value:
                        raise item.wrong("type", "the type of an item")
                    # An item reference may leave its type out.
                    self.add_foreign(item, "item_reference")
                    return
                message = parse_message(item, Origin(NAME))
                if message.role != "assistant":
                    self.waiting = None
                extra = Extra(NAME, message.fields, message.form)
                self.messages.append(Message(message.role, message.parts, extra=extra))
            case "function_call" | "custom_tool_call":
                self.calls += 1
                call = parse_call(item, self.context, str(self.calls))
                self.add(self.signed(call))
            case "function_call_output" | "custom_tool_call_output":
                self.waiting = None
                self.messages.append(Message("user", (parse_result(item),)))
            case "reasoning":
                reasoning = parse_reasoning(item, Origin(NAME), self.context)
                if isinstance(reasoning, Carried):
                    self.carry(reasoning)
                else:
                    self.add(reasoning)
            case "image_generation_call":
                self.add(parse_image_call(item))
            case "mcp_call" if (made := parse_made_call(item)) is not None:
                call, result = made
                self.add(self.signed(call))
                self.messages.append(Message("user", (result,)))
            case _ if kind in CLIENT_CALLS and self.is_client_call(item.value):
                self.calls += 1
                self.add(self.signed(parse_client_call(item, self.context, str(self.calls))))
            case _ if is_client_result(item.value, self.hosted_calls):
                self.waiting = None
                if kind == "tool_search_output":
                    self.bring(item, kind)
                self.messages.append(Message("user", (parse_client_result(item),)))
            case _:
                if kind == "additional_tools":
                    self.bring(item, kind)
                self.add_foreign(item, kind)

    def bring(self, item: Fields, kind: str) -> None:
        """Adds tools declared by an item. A tool that was searched for is no longer deferred."""
        for tool in parse_tools(item.array_or_empty("tools"), f"{item.path}.tools", kind):
            loaded = kind == "tool_search_output" and isinstance(tool, Tool) and tool.deferred
            if tool.native is not None:
                tool = replace(tool, native=replace(tool.native, stands_elsewhere=True))
            self.brought.append(replace(tool, deferred=False) if loaded else tool)

    def is_client_call(self, value: dict[str, Any]) -> bool:
        if is_client_call(value) and not (
            self.hosted_shell and value["type"] == "shell_call" and value.get("environment") is None
        ):
            return True
        if type(value.get("call_id")) is str:
            self.hosted_calls.add(value["call_id"])
        return False

    def add(self, part: Part) -> None:
        self.messages.append(Message("assistant", (part,)))

    def add_foreign(self, item: Fields, kind: str) -> None:
        # The tools that it declares are among the request's.
        foreign = Foreign(NAME, kind, item.value, stands_elsewhere=kind == "additional_tools")
        extra = Extra(NAME, form={"item": "foreign"})
        self.messages.append(Message(foreign_role(item.value, kind), (foreign,), extra=extra))

    def signed(self, call: ToolCall) -> ToolCall:
        signature, self.waiting = self.waiting, None
        return call if signature is None else replace(call, signature=signature)

    def carry(self, carried: Carried) -> None:
        """A call's signature goes before it; a text's comes after it, as in a stream it is known last."""
        if carried.holder == "call":
            self.waiting = carried.signature
            return
        if not self.messages or self.messages[-1].role != "assistant" or not self.messages[-1].content:
            return
        message = self.messages[-1]
        last = message.content[-1]
        if isinstance(last, Text | Media):
            signed = replace(last, signature=carried.signature)
            self.messages[-1] = replace(message, content=(*message.content[:-1], signed))
