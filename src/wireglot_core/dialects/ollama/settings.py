"""Parses and renders the generation settings: `options`, `think`, `format` and tools."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.client_tools import declare_native
from wireglot_core.dialects.common_losses import EFFORT_OFF, LEVEL_ALONE, MODE_AS_OFF, NO_SCHEMA
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.hosted_options import not_run
from wireglot_core.dialects.ollama.extras import NAME, keep, put_back
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.dialects.request_fields import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    F,
    FieldKind,
    RequestFields,
)
from wireglot_core.ir.loss import Action, Loss, losses_of_extra
from wireglot_core.ir.request import (
    AnyTool,
    Effort,
    HostedTool,
    OutputFormat,
    Request,
    Thinking,
    Tool,
)

REQUEST_FIELDS: Final = RequestFields(
    F("model", "model", TEXT, apart=True),
    F("stream", "stream", BOOLEAN, apart=True),
    F("logprobs", "sampling.logprobs", BOOLEAN, also=("top_logprobs",)),
    F("top_logprobs", "sampling.top_logprobs", INTEGER, also=("logprobs",)),
)


def _stops(options: Fields, key: str) -> tuple[str, ...]:
    value = options.value.get(key)
    return (value,) if type(value) is str else options.texts(key)


_STOPS: Final = FieldKind((), _stops, [])

OPTION_FIELDS: Final = RequestFields(
    F("temperature", "sampling.temperature", NUMBER),
    F("top_p", "sampling.top_p", NUMBER),
    F("top_k", "sampling.top_k", NUMBER),
    F("frequency_penalty", "sampling.frequency_penalty", NUMBER),
    F("presence_penalty", "sampling.presence_penalty", NUMBER),
    F("seed", "sampling.seed", INTEGER),
    F("num_predict", "max_tokens", INTEGER, usual=-1),
    F("stop", "stop", _STOPS),
    inside="options.",
)
"""The `options` that other dialects have too. The rest (`num_ctx`, `min_p`) is Ollama's own."""


def read_options(
    body: Fields, taken: set[str], form: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings in `options`, and the options without meaning for other dialects, by path."""
    options = body.object_or_none("options")
    if options is None:
        return {}, {}
    taken.add("options")
    known: set[str] = set(OPTION_FIELDS.known)
    settings = OPTION_FIELDS.read(options, known)
    value = options.value
    if type(limit := settings.get("max_tokens")) is int and limit < 0:
        del settings["max_tokens"]  # -2 fills the context: no limit that another dialect could state
        known.discard("num_predict")
    if type(value.get("stop")) is str and "stop" in known:
        form["stop"] = "text"
    if value.get("num_predict") == -1:
        known.add("num_predict")
        form["num_predict"] = -1
    if not value:
        form["options"] = "empty"
    rest = {f"options.{key}": item for key, item in value.items() if key not in known or item is None}
    return settings, rest


def write_options(request: Request, form: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    OPTION_FIELDS.write(request, options)
    if form.get("stop") == "text" and len(request.stop) == 1:
        options["stop"] = request.stop[0]
    if "num_predict" in form:
        options.setdefault("num_predict", form["num_predict"])
    return options


# Thinking

_LEVELS: Final[dict[str, Effort]] = {"low": "low", "medium": "medium", "high": "high", "max": "max"}
_USUAL: Final[Effort] = "medium"
"""The meaning of `true` for models that have levels (gpt-oss); other models have only on and off."""
_NEAREST: Final[dict[Effort, Effort]] = {"minimal": "low", "xhigh": "high"}


def parse_thinking(body: Fields, taken: set[str]) -> Thinking:
    value = body.value.get("think")
    if value is None:
        return Thinking()
    if type(value) is bool:
        taken.add("think")
        return Thinking("on", _USUAL) if value else Thinking("off")
    if type(value) is str and value in _LEVELS:
        taken.add("think")
        return Thinking(effort=_LEVELS[value])
    raise body.wrong("think", 'a boolean or one of "low", "medium", "high", "max"')


def put_thinking(out: dict[str, Any], thinking: Thinking, reasons: bool, losses: list[Loss]) -> None:
    """`reasons`: whether the model can think; one that cannot refuses the field."""
    if thinking == Thinking():
        return
    path = "$.thinking"
    mode, effort = thinking.mode, thinking.effort
    if not reasons and mode != "off" and effort != "none":
        if mode is not None or effort is not None:
            losses.append(Loss(f"{path}.mode", "thinking.mode", "dropped", "this model does not think"))
    elif mode == "off" or effort == "none":
        out["think"] = False
        if effort not in (None, "none"):
            losses.append(EFFORT_OFF.at(f"{path}.effort"))
        elif mode not in (None, "off"):
            losses.append(MODE_AS_OFF.at(f"{path}.mode"))
    elif mode == "on" and effort in (None, _USUAL):
        out["think"] = True
        if effort is None and thinking.budget is None:
            losses.append(Loss(f"{path}.effort", "thinking.effort", "approximated", "as usual"))
    elif effort is not None:
        level = _NEAREST.get(effort, effort)
        out["think"] = level
        if level != effort:
            losses.append(Loss(f"{path}.effort", "thinking.effort", "approximated", f"as {level}"))
        if mode is not None:
            losses.append(LEVEL_ALONE.at(f"{path}.mode"))
    elif mode == "auto":  # a model that can think does so unless the request says not to
        losses.append(Loss(f"{path}.mode", "thinking.mode", "dropped", "the default of every model"))
    LOST.of(thinking, path, losses)


# The output format


def parse_output(body: Fields, taken: set[str]) -> OutputFormat | None:
    value = body.value.get("format")
    if value is None or value == "":
        return None
    if value == "json":
        taken.add("format")
        return OutputFormat("json")
    if type(value) is dict:
        taken.add("format")
        return OutputFormat("schema", value)
    raise body.wrong("format", '"json" or a JSON schema')


def put_output(out: dict[str, Any], output: OutputFormat | None, losses: list[Loss]) -> None:
    if output is None:
        return
    path = "$.output"
    if output.kind == "text":
        losses_of_extra(output.extra, NAME, path, losses)
        return
    LOST.of(output, path, losses)
    if output.kind == "schema" and output.schema is not None:
        out["format"] = output.schema
    else:
        out["format"] = "json"
        if output.kind == "schema":
            losses.append(NO_SCHEMA.at(f"{path}.schema"))


# Tools

_TOOL: Final = frozenset({"type", "function"})
_FUNCTION: Final = frozenset({"name", "description", "parameters"})


def parse_tools(body: Fields) -> tuple[AnyTool, ...]:
    return tuple([_parse_tool(tool) for tool in body.objects("tools")])


def _parse_tool(tool: Fields) -> Tool:
    function = tool.object("function")
    taken = set(_TOOL)
    form: dict[str, Any] = {}
    if tool.value.get("type") != "function":
        taken.discard("type")
        form["type"] = "stated"
    if function.value.get("parameters") is None:
        form["parameters"] = "absent"
    extra = keep(tool.value, taken, form, nested={"function": (function.value, _FUNCTION)})
    return Tool(
        function.text("name"),
        function.text_or_none("description"),
        function.dict_or_none("parameters"),
        extra=extra,
    )


def render_tools(tools: tuple[AnyTool, ...], losses: list[Loss]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        path = f"$.tools[{index}]"
        if isinstance(tool, HostedTool):
            losses.append(not_run(tool, path, f"Ollama has no {tool.kind}"))
        elif tool.kind == "custom":
            losses.append(Loss(path, "tool.custom", "dropped", "Ollama has no freeform tools"))
        else:
            out.append(_render_tool(tool, path, losses))
    return out


def _render_tool(tool: Tool, path: str, losses: list[Loss]) -> dict[str, Any]:
    declare_native(tool, path, losses)
    LOST.of(tool, path, losses)
    form = own_form(tool.extra, NAME)
    function: dict[str, Any] = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    elif form.get("parameters") != "absent":
        function["parameters"] = {"type": "object", "properties": {}}
    out: dict[str, Any] = {} if form.get("type") == "stated" else {"type": "function"}
    out["function"] = function
    return put_back(out, tool.extra)


def offered(request: Request, losses: list[Loss]) -> tuple[AnyTool, ...]:
    """The tools to send: there is no field for the choice, so only those that may be called."""
    choice, tools = request.tool_choice, request.tools
    if choice is None:
        return tools
    LOST.of(choice, "$.tool_choice", losses)
    if choice.mode == "none":
        if not tools:
            return tools
        losses.append(Loss("$.tool_choice", "tool_choice", "emulated", "none: no tool is sent"))
        return ()
    action: Action = "emulated"
    detail = "only the tools that may be called are sent"
    if choice.mode == "required":
        action, detail = "approximated", "required: the model may answer without a call"
    elif not choice.narrows:
        return tools
    losses.append(Loss("$.tool_choice", "tool_choice", action, detail))
    return tuple([tool for tool in tools if choice.allows(tool)]) if choice.narrows else tools
