"""Parses a client's request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_chat.extras import NAME, keep
from wireglot_core.dialects.openai_chat.messages import Conversation
from wireglot_core.dialects.openai_chat.outcome import parse_tier, render_tier
from wireglot_core.dialects.openai_chat.settings import REQUEST_FIELDS, parse_output, parse_thinking
from wireglot_core.dialects.openai_chat.tools import (
    WEB_SEARCH,
    parse_choice,
    parse_function,
    parse_search,
    parse_tools,
)
from wireglot_core.dialects.turns import read_turns
from wireglot_core.ir.content import CacheMark, Extra, Foreign
from wireglot_core.ir.request import AnyTool, OutputFormat, Request, Thinking, ToolChoice


class _Body:
    """The request being parsed: its fields, those already taken, and their spelling."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.fields = Fields(body)
        self.value = body
        self.taken: set[str] = {"model", "messages", *REQUEST_FIELDS.known}
        # Marks all messages as divided by this dialect: its renderer must not regroup them.
        self.form: dict[str, Any] = {"native": True}

    def note_stream(self) -> None:
        if self.value.get("stream") is True:
            self.form["stream"] = True
        if "stream_options" in self.value:
            self.form["stream_options"] = self.value["stream_options"]
            self.taken.add("stream_options")

    def text(self, key: str) -> str:
        value = self.fields.text_or(key)
        if value:
            self.taken.add(key)
        return value

    # Tools

    def tools(self, declared: list[AnyTool], context: Context) -> tuple[AnyTool, ...]:
        """The tools of the request, followed by those that its messages declare."""
        stated: tuple[AnyTool, ...] = ()
        tools: list[AnyTool] = []
        listed = self.fields.array_or_empty("tools")
        if listed:
            self.taken.add("tools")
            stated = context.remembered(listed, NAME, lambda: context.share(parse_tools(self.fields), listed))
        if self.fields.array_or_empty("functions"):
            self.taken.add("functions")
            tools += [parse_function(function) for function in self.fields.objects("functions")]
        search = self.fields.dict_or_none(WEB_SEARCH)
        if search is not None:
            self.taken.add(WEB_SEARCH)
            tools.append(parse_search(search, Foreign(NAME, WEB_SEARCH, search)))
        tools += declared
        return (*stated, *tools) if tools else stated

    def tool_choice(self) -> ToolChoice | None:
        for key in ("tool_choice", "function_call"):
            value = self.value.get(key)
            if value is None:
                continue
            if type(value) not in (str, dict):
                raise self.fields.wrong(key, "a string or an object")
            choice = parse_choice(value)
            if choice is not None:
                self.taken.add(key)
                if key == "function_call":
                    return ToolChoice(
                        choice.mode, choice.only, Extra(NAME, {}, {"raw": value, "legacy": True})
                    )
                return choice
        return None

    # Settings

    def max_tokens(self) -> int | None:
        self.taken.update(("max_completion_tokens", "max_tokens"))
        newer, older = self.fields.integer("max_completion_tokens"), self.fields.integer("max_tokens")
        if newer is None:
            if older is not None:
                self.form["limit"] = "max_tokens"
            return older
        if older is not None:
            self.form["max_tokens"] = older  # the newer name wins
        return newer

    def stop(self) -> tuple[str, ...]:
        value = self.value.get("stop")
        if value is None or value == [] or value == "":
            return ()
        self.taken.add("stop")
        if type(value) is str:
            self.form["stop"] = "string"
            return (value,)
        return self.fields.texts("stop")

    def thinking(self) -> Thinking:
        return parse_thinking(self.value, self.text("reasoning_effort"), self.taken)

    def output(self) -> OutputFormat | None:
        return parse_output(self.fields, self.taken)

    def user(self) -> str:
        newer, older = self.text("safety_identifier"), self.text("user")
        if newer and older:
            if newer == older:
                self.form["user"] = "both"
            else:
                self.taken.discard("user")
        elif older:
            self.form["user"] = "user"
        return newer or older

    def metadata(self) -> dict[str, str]:
        value = self.fields.dict_or_none("metadata")
        if not value or not all(type(item) is str for item in value.values()):
            return {}
        self.taken.add("metadata")
        return value

    def service_tier(self) -> str:
        raw = self.text("service_tier")
        tier = parse_tier(raw)
        if raw and render_tier(tier, True, "", []) != raw:
            self.form["service_tier"] = raw
        return tier

    def cache(self) -> CacheMark | None:
        """An explicit `implicit` mode is the neutral "cache it all"; `explicit` is about the markers."""
        options = self.value.get("prompt_cache_options")
        if type(options) is not dict or options.get("mode") != "implicit":
            return None
        self.taken.add("prompt_cache_options")
        return CacheMark("short" if options.get("ttl") == "30m" else "", Extra(NAME, {}, {"raw": options}))


_READERS: Final[dict[str, tuple[str, Callable[[_Body], Any]]]] = {
    "tool_choice": ("tool_choice", _Body.tool_choice),
    "function_call": ("tool_choice", _Body.tool_choice),
    "max_completion_tokens": ("max_tokens", _Body.max_tokens),
    "max_tokens": ("max_tokens", _Body.max_tokens),
    "stop": ("stop", _Body.stop),
    "reasoning_effort": ("thinking", _Body.thinking),
    "thinking": ("thinking", _Body.thinking),
    "chat_template_kwargs": ("thinking", _Body.thinking),
    "enable_thinking": ("thinking", _Body.thinking),
    "reasoning": ("thinking", _Body.thinking),
    "response_format": ("output", _Body.output),
    "safety_identifier": ("user", _Body.user),
    "user": ("user", _Body.user),
    "metadata": ("metadata", _Body.metadata),
    "service_tier": ("service_tier", _Body.service_tier),
    "prompt_cache_options": ("cache", _Body.cache),
}
"""Irregular fields: the setting that each is parsed to, together with others of the same, and its parser."""


def parse_request(body: dict[str, Any], context: Context) -> Request:
    read = _Body(body)
    conversation = Conversation(context)
    turns = read.fields.array("messages")
    if not turns:
        raise read.fields.fault("expected at least one message", "$.messages")
    read_turns(conversation, turns, context, NAME)
    messages = conversation.finish()
    tools = read.tools(conversation.tools, context)
    settings = REQUEST_FIELDS.read(read.fields, read.taken)
    read.note_stream()
    for name, (setting, reader) in _READERS.items():
        if name in body and setting not in settings:
            settings[setting] = reader(read)
    settings.setdefault("thinking", Thinking())
    return Request(messages=messages, tools=tools, extra=_rest(read), **settings)


def _rest(read: _Body) -> Extra | None:
    body, form, taken = read.value, read.form, read.taken
    if "model" not in body:
        form["model"] = "absent"
    if body.get("n") == 1:  # the default of every API: nothing another dialect could lose
        form["n"] = 1
        taken.add("n")
    return keep(body, taken, form)
