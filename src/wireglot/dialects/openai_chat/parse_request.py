"""A client's request, into the IR."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.fields import Fields
from wireglot.dialects.openai_chat.extras import NAME, keep
from wireglot.dialects.openai_chat.messages import Conversation
from wireglot.dialects.openai_chat.outcome import parse_tier, render_tier
from wireglot.dialects.openai_chat.plain_request import plain_tool
from wireglot.dialects.openai_chat.tools import (
    WEB_SEARCH,
    parse_choice,
    parse_function,
    parse_search,
    parse_tool,
)
from wireglot.dialects.turns import read_turns
from wireglot.ir.content import CacheMark, Extra, Foreign
from wireglot.ir.request import (
    EFFORTS,
    AnyTool,
    Effort,
    OutputFormat,
    Request,
    Sampling,
    Thinking,
    ToolChoice,
)
from wireglot.wire.memory import Memory, remembered, share

_SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
    "n": "candidates",
    "logprobs": "logprobs",
    "top_logprobs": "top_logprobs",
}
_ROUTER = frozenset({"effort", "max_tokens", "enabled", "exclude"})
_NAMELESS = frozenset({"schema", "strict", "description"})
_SCHEMA = _NAMELESS | {"name"}


_MODES: dict[str, Literal["on", "auto", "off"]] = {"enabled": "on", "disabled": "off"}


def _is_switch(value: dict[str, Any]) -> bool:
    if "type" in value:
        return value["type"] in ("enabled", "disabled", "adaptive", "auto")
    return value.get("effort") in EFFORTS


_TEMPLATE: Final = "chat_template_kwargs"
_TEMPLATE_FLAGS: Final = ("enable_thinking", "thinking")
_EFFORTS: Final[dict[str, Effort]] = {effort: effort for effort in EFFORTS}


class _Body:
    """One request being read: its fields, those already taken, and how they were spelled."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.fields = Fields(body)
        self.value = body
        self.taken: set[str] = {"model", "messages"}
        # Says that every message was cut by this dialect: its renderer must not regroup them.
        self.form: dict[str, Any] = {"native": True}

    def text(self, key: str) -> str:
        value = self.fields.text_or(key)
        if value:
            self.taken.add(key)
        return value

    def integer(self, key: str) -> int | None:
        self.taken.add(key)
        return self.fields.integer(key)

    def boolean(self, key: str) -> bool | None:
        self.taken.add(key)
        return self.fields.boolean(key)

    # Tools

    def tools(self, declared: list[AnyTool], memory: Memory | None) -> tuple[AnyTool, ...]:
        """Those of the request, and behind them those that its messages have declared."""
        stated: tuple[AnyTool, ...] = ()
        tools: list[AnyTool] = []
        listed = self.fields.array_or_empty("tools")
        if listed:
            self.taken.add("tools")
            stated = remembered(memory, listed, NAME, lambda: share(memory, self._stated(), listed))
        if self.fields.array_or_empty("functions"):
            self.taken.add("functions")
            tools += [parse_function(function) for function in self.fields.objects("functions")]
        search = self.fields.dict_or_none(WEB_SEARCH)
        if search is not None:
            self.taken.add(WEB_SEARCH)
            tools.append(parse_search(search, Foreign(NAME, WEB_SEARCH, search)))
        tools += declared
        return (*stated, *tools) if tools else stated

    def _stated(self) -> tuple[AnyTool, ...]:
        return tuple([plain_tool(tool.value) or parse_tool(tool) for tool in self.fields.objects("tools")])

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
        newer, older = self.integer("max_completion_tokens"), self.integer("max_tokens")
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

    def sampling(self) -> Sampling:
        given = [key for key in _SAMPLING if self.value.get(key) is not None]
        if self.value.get("n") == 1:  # the default of every API: nothing another dialect could lose
            given.remove("n")
            self.taken.add("n")
            self.form["n"] = 1
        if not given:
            return Sampling()
        self.taken.update(given)
        read = self.fields
        values: dict[str, Any] = {}
        for key in given:
            if key == "logprobs":
                values[key] = read.boolean(key)
            elif key in ("seed", "n", "top_logprobs"):
                values[_SAMPLING[key]] = read.integer(key)
            else:
                values[_SAMPLING[key]] = read.number(key)
        return Sampling(**values)

    def thinking(self) -> Thinking:
        effort = self.text("reasoning_effort")
        switch = self.value.get("thinking")
        if type(switch) is dict and _is_switch(switch):
            return self._switch(switch, effort)
        template = self._template(effort)
        if template is not None:
            return template
        if effort:
            if effort in EFFORTS:
                thinking = Thinking(effort=effort)
            else:
                thinking = Thinking(extra=Extra(NAME, {"reasoning_effort": effort}))
            return thinking
        router = self.value.get("reasoning")
        if type(router) is dict and router:
            return self._router(router)
        return Thinking()

    def _template(self, effort: str) -> Thinking | None:
        """`chat_template_kwargs: {enable_thinking}` of vLLM, SGLang and llama.cpp (some templates call it
        `thinking`), and Qwen's `enable_thinking`. Switched off, no `effort` beside it changes that."""
        for key, holder in ((_TEMPLATE, self.value.get(_TEMPLATE)), ("", self.value)):
            given = holder if type(holder) is dict else {}
            flags = [name for name in _TEMPLATE_FLAGS if type(given.get(name)) is bool]
            if not flags or (given[flags[0]] and effort):
                continue
            raw: dict[str, Any] = {}
            if not key:
                raw = {name: given[name] for name in flags}
            elif len(flags) == len(given):
                raw = {key: given}
            self.taken.update(raw)  # flags with others beside them stay among the fields that only Chat knows
            if effort:
                raw["reasoning_effort"] = effort
            return Thinking(
                "on" if given[flags[0]] else "off",
                _EFFORTS.get(effort),
                extra=Extra(NAME, {}, {"control": _TEMPLATE, "raw": raw}),
            )
        return None

    def _switch(self, switch: dict[str, Any], beside: str) -> Thinking:
        """`thinking: {type, effort, keep}` of Kimi, DeepSeek, GLM. `beside` it an effort may stand, which the
        one inside overrules."""
        self.taken.add("thinking")
        form: dict[str, Any] = {"control": "thinking", "raw": switch}
        budget, effort = switch.get("budget_tokens"), switch.get("effort")
        taken = {"type", "budget_tokens"} if type(budget) is int else {"type"}
        over: dict[str, Any] = {}
        if effort in EFFORTS:
            taken.add("effort")
            form["effort"] = "inside"
            over = {"reasoning_effort": beside} if beside else {}
        elif beside in EFFORTS:
            effort = beside
        else:
            effort = None
            over = {"reasoning_effort": beside} if beside else {}
        return Thinking(
            mode=_MODES.get(switch["type"], "auto") if "type" in switch else None,
            effort=effort,
            budget=budget if type(budget) is int else None,
            extra=keep(over, frozenset(), form, nested={"thinking": (switch, frozenset(taken))}),
        )

    def _router(self, router: dict[str, Any]) -> Thinking:
        """OpenRouter's `reasoning: {effort, max_tokens, enabled, exclude}`."""
        self.taken.add("reasoning")
        effort, budget = router.get("effort"), router.get("max_tokens")
        enabled, exclude = router.get("enabled"), router.get("exclude")
        taken = set(_ROUTER)
        if effort not in EFFORTS:
            taken.discard("effort")
            effort = None
        if type(budget) is not int:
            taken.discard("max_tokens")
            budget = None
        if type(enabled) is not bool:
            taken.discard("enabled")
        if type(exclude) is not bool:
            taken.discard("exclude")
        return Thinking(
            mode=None if type(enabled) is not bool else "on" if enabled else "off",
            effort=effort,
            budget=budget,
            display="omitted" if exclude is True else None,
            extra=keep(
                {},
                frozenset(),
                {"control": "reasoning", "raw": router},
                nested={"reasoning": (router, frozenset(taken))},
            ),
        )

    def output(self) -> OutputFormat | None:
        shape = self.fields.object_or_none("response_format")
        if shape is None:
            return None
        match shape.value.get("type"):
            case "text":
                output = OutputFormat("text", extra=keep(shape.value, {"type"}))
            case "json_object":
                output = OutputFormat("json", extra=keep(shape.value, {"type"}))
            case "json_schema":
                schema = shape.object("json_schema")
                named = bool(schema.value.get("name"))
                extra = keep(
                    shape.value,
                    {"type", "json_schema"},
                    None if named else {"name": "absent"},
                    nested={"json_schema": (schema.value, _SCHEMA if named else _NAMELESS)},
                )
                output = OutputFormat(
                    "schema",
                    schema=schema.dict_or_none("schema"),
                    name=schema.text_or("name"),
                    description=schema.text_or_none("description"),
                    strict=schema.boolean("strict"),
                    extra=extra,
                )
            case _:
                return None  # stays unknown
        self.taken.add("response_format")
        return output

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
        """Implicit caching, asked for by name, is the neutral "cache it all"; explicit concerns the marks."""
        options = self.value.get("prompt_cache_options")
        if type(options) is not dict or options.get("mode") != "implicit":
            return None
        self.taken.add("prompt_cache_options")
        return CacheMark("short" if options.get("ttl") == "30m" else "", Extra(NAME, {}, {"raw": options}))


def parse_request(body: dict[str, Any], context: Context) -> Request:
    read = _Body(body)
    conversation = Conversation(context)
    turns = read.fields.array("messages")
    if not turns:
        raise read.fields.fault("expected at least one message", "$.messages")
    read_turns(conversation, turns, context, NAME)
    if body.get("stream") is True:
        read.form["stream"] = True
    if "stream_options" in body:
        read.form["stream_options"] = body["stream_options"]
        read.taken.add("stream_options")
    verbosity = read.text("verbosity")
    # Arguments are evaluated in order; the rest is taken last, when all else has been. With one name more
    # Python would make a dictionary of them all, which takes as long as the rest of the call.
    request = Request(
        read.fields.text_or("model"),
        conversation.finish(),
        read.tools(conversation.tools, context.memory),
        read.tool_choice(),
        read.boolean("parallel_tool_calls"),
        max_tokens=read.max_tokens(),
        stop=read.stop(),
        sampling=read.sampling(),
        thinking=read.thinking(),
        output=read.output(),
        stream=read.boolean("stream"),
        user=read.user(),
        metadata=read.metadata(),
        service_tier=read.service_tier(),
        cache=read.cache(),
        cache_key=read.text("prompt_cache_key"),
        extra=_rest(read),
    )
    return msgspec.structs.replace(request, verbosity=verbosity) if verbosity else request


def _rest(read: _Body) -> Extra | None:
    if "model" not in read.value:
        read.form["model"] = "absent"
    if read.value.get("stream_options") is None and "stream_options" in read.value:
        read.taken.discard("stream_options")
    return keep(read.value, read.taken, read.form)
