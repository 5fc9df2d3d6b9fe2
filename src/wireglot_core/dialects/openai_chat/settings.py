"""Parses and renders the generation settings: regular ones, thinking and output format."""

from __future__ import annotations

from typing import Any, Final, Literal, assert_never

from msgspec.structs import replace

from wireglot_core.dialects.common_losses import EFFORT_OFF
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_chat.extras import NAME, keep, put_back
from wireglot_core.dialects.openai_chat.lost_fields import LOST
from wireglot_core.dialects.request_fields import BOOLEAN, INTEGER, NUMBER, TEXT, F, RequestFields
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Action, Loss
from wireglot_core.ir.request import EFFORTS, Effort, OutputFormat, Thinking

REQUEST_FIELDS: Final = RequestFields(
    F("model", "model", TEXT, apart=True),
    F("parallel_tool_calls", "parallel_tools", BOOLEAN, apart=True),
    F("temperature", "sampling.temperature", NUMBER),
    F("top_p", "sampling.top_p", NUMBER),
    F("frequency_penalty", "sampling.frequency_penalty", NUMBER),
    F("presence_penalty", "sampling.presence_penalty", NUMBER),
    F("seed", "sampling.seed", INTEGER),
    F("n", "sampling.candidates", INTEGER, usual=1),
    F("logprobs", "sampling.logprobs", BOOLEAN, also=("top_logprobs",)),
    F("top_logprobs", "sampling.top_logprobs", INTEGER, also=("logprobs",)),
    F("top_k", "sampling.top_k", NUMBER, apart=True),  # not OpenAI's, but many servers read it
    F("verbosity", "verbosity", TEXT, apart=True),
    F("stream", "stream", BOOLEAN, apart=True),
    F("prompt_cache_key", "cache_key", TEXT, apart=True),
)

_MODES: dict[str, Literal["on", "auto", "off"]] = {"enabled": "on", "disabled": "off"}
_TEMPLATE: Final = "chat_template_kwargs"
_TEMPLATE_FLAGS: Final = ("enable_thinking", "thinking")
_EFFORTS: Final[dict[str, Effort]] = {effort: effort for effort in EFFORTS}
_ROUTER = frozenset({"effort", "max_tokens", "enabled", "exclude"})
_NAMELESS = frozenset({"schema", "strict", "description"})
_SCHEMA = _NAMELESS | {"name"}


# Thinking


def parse_thinking(value: dict[str, Any], effort: str, known: set[str]) -> Thinking:
    """`effort`: the `reasoning_effort` of the request, "" if it has none."""
    switch = value.get("thinking")
    if type(switch) is dict and _is_switch(switch):
        return _parse_switch(switch, effort, known)
    template = _parse_template(value, effort, known)
    if template is not None:
        return template
    if effort:
        if effort in EFFORTS:
            thinking = Thinking(effort=effort)
        else:
            thinking = Thinking(extra=Extra(NAME, {"reasoning_effort": effort}))
        return thinking
    router = value.get("reasoning")
    if type(router) is dict and router:
        return _parse_router(router, known)
    return Thinking()


def _parse_template(value: dict[str, Any], effort: str, known: set[str]) -> Thinking | None:
    """`chat_template_kwargs: {enable_thinking}` of vLLM, SGLang and llama.cpp (some templates call it
    `thinking`), and Qwen's `enable_thinking`. If it is off, an `effort` next to it does not change that."""
    for key, holder in ((_TEMPLATE, value.get(_TEMPLATE)), ("", value)):
        given = holder if type(holder) is dict else {}
        flags = [name for name in _TEMPLATE_FLAGS if type(given.get(name)) is bool]
        if not flags or (given[flags[0]] and effort):
            continue
        raw: dict[str, Any] = {}
        if not key:
            raw = {name: given[name] for name in flags}
        elif len(flags) == len(given):
            raw = {key: given}
        known.update(raw)  # flags with others next to them stay fields of Chat alone
        if effort:
            raw["reasoning_effort"] = effort
        return Thinking(
            "on" if given[flags[0]] else "off",
            _EFFORTS.get(effort),
            extra=Extra(NAME, {}, {"control": _TEMPLATE, "raw": raw}),
        )
    return None


def _parse_switch(switch: dict[str, Any], beside: str, known: set[str]) -> Thinking:
    """`thinking: {type, effort, keep}` of Kimi, DeepSeek, GLM. `beside`: the effort in a
    field next to it, which the one inside overrules."""
    known.add("thinking")
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


def _parse_router(router: dict[str, Any], known: set[str]) -> Thinking:
    """OpenRouter's `reasoning: {effort, max_tokens, enabled, exclude}`."""
    known.add("reasoning")
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


def _is_switch(value: dict[str, Any]) -> bool:
    if "type" in value:
        return value["type"] in ("enabled", "disabled", "adaptive", "auto")
    return value.get("effort") in EFFORTS


def put_thinking(out: dict[str, Any], thinking: Thinking, losses: list[Loss]) -> None:
    if thinking == Thinking():
        return
    form = own_form(thinking.extra, NAME)
    match form.get("control"):
        case "thinking":
            _put_switch(out, thinking, losses)
        case "reasoning":
            _put_router(out, thinking, form.get("raw", {}))
        case "chat_template_kwargs":
            out.update(form["raw"])
        case "enable_thinking":
            out["enable_thinking"] = thinking.mode != "off"  # Qwen's, if a provider's limits name it
        case _:
            _put_effort(out, thinking, losses)
    put_back(out, thinking.extra)


def _put_effort(out: dict[str, Any], thinking: Thinking, losses: list[Loss]) -> None:
    if thinking.mode == "off":
        out["reasoning_effort"] = "none"
        if thinking.effort not in (None, "none"):
            losses.append(EFFORT_OFF.at("$.thinking.effort"))
    else:
        if thinking.effort is not None:
            out["reasoning_effort"] = thinking.effort
        if thinking.mode is not None:
            action: Action = "dropped" if thinking.effort in (None, "none") else "emulated"
            losses.append(Loss("$.thinking.mode", "thinking.mode", action, "Chat knows the effort only"))
    LOST.of(thinking, "$.thinking", losses)


def _put_switch(out: dict[str, Any], thinking: Thinking, losses: list[Loss]) -> None:
    """`thinking: {type}`, for servers that have it: as in the request, or as a provider's limits require."""
    raw = own_form(thinking.extra, NAME).get("raw", {})
    names = {"on": "enabled", "off": "disabled", "auto": raw.get("type", "auto")}
    switch: dict[str, Any] = {}
    if thinking.mode is not None or "type" in raw or not raw:
        switch["type"] = names[thinking.mode or "on"]
    if thinking.budget is not None:
        switch["budget_tokens"] = thinking.budget
    out["thinking"] = switch
    if thinking.effort is not None:
        inside = own_form(thinking.extra, NAME).get("effort") == "inside"
        (switch if inside else out)["effort" if inside else "reasoning_effort"] = thinking.effort
    LOST.of(replace(thinking, budget=None), "$.thinking", losses)


def _put_router(out: dict[str, Any], thinking: Thinking, raw: dict[str, Any]) -> None:
    router: dict[str, Any] = {}
    if thinking.effort is not None:
        router["effort"] = thinking.effort
    if thinking.budget is not None:
        router["max_tokens"] = thinking.budget
    if thinking.mode is not None:
        router["enabled"] = thinking.mode != "off"
    if thinking.display is not None or type(raw.get("exclude")) is bool:
        router["exclude"] = thinking.display == "omitted"
    out["reasoning"] = router


# Output format


def parse_output(fields: Fields, known: set[str]) -> OutputFormat | None:
    shape = fields.object_or_none("response_format")
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
    known.add("response_format")
    return output


def render_output(output: OutputFormat, losses: list[Loss]) -> dict[str, Any]:
    LOST.of(output, "$.output", losses)
    out: dict[str, Any] = {"type": "json_object" if output.kind == "json" else output.kind}
    match output.kind:
        case "schema":
            schema: dict[str, Any] = {}
            if own_form(output.extra, NAME).get("name") != "absent" or output.name:
                schema["name"] = output.name or "response"
            if output.description is not None:
                schema["description"] = output.description
            if output.schema is not None:
                schema["schema"] = output.schema
            if output.strict is not None:
                schema["strict"] = output.strict
            out = {"type": "json_schema", "json_schema": schema}
        case "text" | "json":
            pass
        case _:
            assert_never(output.kind)
    if output.kind != "schema" and output.schema is not None:
        losses.append(
            Loss("$.output.schema", "output_format.schema", "dropped", f"{output.kind} has no schema")
        )
    put_back(out, output.extra)
    return out
