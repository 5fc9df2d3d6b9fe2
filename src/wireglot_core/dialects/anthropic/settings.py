"""Parses and renders the generation settings: thinking, effort, output format, sampling, tier."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.anthropic.lost_fields import LOST, no_tier
from wireglot_core.dialects.anthropic.names import NAME, is_own, keep, put_back
from wireglot_core.dialects.anthropic.outcome import parse_tier, render_tier
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.request_fields import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TEXTS,
    F,
    RequestFields,
)
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss, losses_of_extra
from wireglot_core.ir.request import EFFORTS, OutputFormat, Request, Thinking

EFFORT = "output_config.effort"
"""Key in `Thinking.extra` for an effort that the IR has no name for."""

REQUEST_FIELDS = RequestFields(
    F("model", "model", TEXT, apart=True),
    F("max_tokens", "max_tokens", INTEGER, apart=True),
    F("stop_sequences", "stop", TEXTS),
    F("stream", "stream", BOOLEAN),
    F("temperature", "sampling.temperature", NUMBER),
    F("top_p", "sampling.top_p", NUMBER),
    F("top_k", "sampling.top_k", NUMBER),
)

_THINKING = frozenset({"type", "budget_tokens", "display"})
_MODES: dict[str, Any] = {"enabled": "on", "adaptive": "auto", "disabled": "off"}
_DISPLAYS: dict[str, Any] = {"summarized": "summary", "omitted": "omitted"}
_MODES_WRITTEN = {mode: raw for raw, mode in _MODES.items()}
_DISPLAYS_WRITTEN = {display: raw for raw, display in _DISPLAYS.items()}
_EFFORTS_WRITTEN = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_FORMAT = frozenset({"type", "schema"})


def parse_thinking_config(body: Fields) -> Thinking:
    """`thinking` and `output_config.effort` together define how much to think."""
    effort, extra = None, None
    config = body.object_or_none("output_config")
    if config is not None and (raw := config.text_or_none("effort")) is not None:
        if raw in EFFORTS:
            effort = raw
        else:
            extra = Extra(NAME, {EFFORT: raw})
    fields = body.object_or_none("thinking")
    if fields is None:
        return Thinking(effort=effort, extra=extra) if effort is not None or extra is not None else Thinking()
    known = _THINKING
    kind, shown = fields.text_or_none("type"), fields.text_or_none("display")
    if kind not in _MODES:
        known = known - {"type"}  # a mode the IR does not have (`between_tools`) stays an unknown field
    if shown not in _DISPLAYS:
        known = known - {"display"}
    beside = keep(fields.value, known, None if fields.value else {"empty": True})
    if extra is not None:
        beside = Extra(NAME, {**(beside.fields if beside is not None else {}), **extra.fields})
    mode = _MODES.get(kind or "")
    if kind == "between_tools":
        mode = "off"
    return Thinking(mode, effort, fields.integer("budget_tokens"), _DISPLAYS.get(shown or ""), beside)


def asks_thinking(request: Request) -> bool:
    """Whether the request enables thinking: otherwise an answer has none. A mode that the IR does not have
    may enable it."""
    thinking = request.thinking
    return thinking.mode in ("on", "auto") or "type" in own_fields(thinking.extra, NAME)


def render_thinking_config(
    thinking: Thinking, losses: list[Loss]
) -> tuple[dict[str, Any] | None, str | None]:
    """The `thinking` object and the effort."""
    extra = thinking.extra
    own = dict(own_fields(extra, NAME))
    effort = own.pop(EFFORT, None) or _render_effort(thinking, losses)
    LOST.of(thinking, "$.thinking", losses)
    block: dict[str, Any] = {}
    mode = thinking.mode
    if "type" not in own:
        if mode is None:
            mode = _implied_mode(thinking, losses)
        if mode is not None:
            block["type"] = _MODES_WRITTEN[mode]
    if thinking.budget is not None:
        if mode == "on":
            block["budget_tokens"] = thinking.budget
        else:
            losses.append(
                Loss("$.thinking.budget", "thinking.budget", "dropped", f"no budget when thinking is {mode}")
            )
    if thinking.display is not None:
        if mode in ("on", "auto") or "type" in own:
            block["display"] = _DISPLAYS_WRITTEN[thinking.display]
        else:
            losses.append(
                Loss("$.thinking.display", "thinking.display", "dropped", "thinking is not requested")
            )
    for key, value in own.items():
        block.setdefault(key, value)
    return (block if block or "empty" in own_form(extra, NAME) else None), effort


def _render_effort(thinking: Thinking, losses: list[Loss]) -> str | None:
    effort = thinking.effort
    if effort is None:
        return None
    if effort == "none":
        detail = (
            "no effort none: thinking is disabled" if thinking.mode in (None, "off") else "no effort none"
        )
        losses.append(Loss("$.thinking.effort", "thinking.effort", "approximated", detail))
        return None
    written = _EFFORTS_WRITTEN[effort]
    if written != effort:
        losses.append(
            Loss("$.thinking.effort", "thinking.effort", "approximated", f"{effort} is sent as {written}")
        )
    return written


def _implied_mode(thinking: Thinking, losses: list[Loss]) -> Any:
    """The mode implied by a budget, or by visible thinking with some effort: neither can be expressed without
    a mode."""
    if thinking.effort == "none":
        return "off"  # reported as a loss by `_render_effort`
    if thinking.budget is not None:
        losses.append(Loss("$.thinking.mode", "thinking.mode", "invented", "a budget turns thinking on"))
        return "on"
    if thinking.display is not None and thinking.effort is not None:
        losses.append(Loss("$.thinking.mode", "thinking.mode", "invented", "adaptive, to say what to show"))
        return "auto"
    return None


def parse_format(body: Fields) -> OutputFormat | None:
    """`output_config.format`, or the older top-level `output_format`."""
    config = body.object_or_none("output_config")
    for holder, key, spelling in ((config, "format", {}), (body, "output_format", {"key": "output_format"})):
        if holder is None or holder.value.get(key) is None:
            continue
        fields = holder.object(key)
        if fields.value.get("type") == "json_schema":
            # Decoding is constrained by the schema: in this dialect every schema is strict.
            return OutputFormat(
                "schema",
                fields.dict_or_none("schema"),
                strict=True,
                extra=keep(fields.value, _FORMAT, spelling),
            )
    return None


def config_rest(body: Fields, output: OutputFormat | None) -> dict[str, Any]:
    """The fields of `output_config` other than effort and format."""
    config = body.object_or_none("output_config")
    if config is None:
        return {}
    taken = {"effort"}
    if output is not None and "key" not in own_form(output.extra, NAME):
        taken.add("format")
    return {key: value for key, value in config.value.items() if key not in taken or value is None}


def render_format(output: OutputFormat | None, losses: list[Loss]) -> dict[str, Any] | None:
    if output is None:
        return None
    if output.kind == "text":
        losses_of_extra(output.extra, NAME, "$.output", losses, "output_format")
        return None
    if output.kind == "json":
        losses.append(
            Loss("$.output", "output_format", "dropped", "JSON without a schema cannot be requested")
        )
        return None
    if not output.strict:
        losses.append(
            Loss("$.output.strict", "output_format.strict", "approximated", "a schema is always enforced")
        )
    LOST.of(output, "$.output", losses)
    block: dict[str, Any] = {"type": "json_schema"}
    if output.schema is not None:
        block["schema"] = output.schema
    return put_back(block, output.extra)


def render_settings(request: Request, body: dict[str, Any], losses: list[Loss]) -> None:
    temperature = request.sampling.temperature
    too_high = temperature is not None and temperature > 1 and not is_own(request.extra)
    if too_high:
        losses.append(
            Loss("$.sampling.temperature", "sampling.temperature", "approximated", "1 is the highest")
        )
    REQUEST_FIELDS.write(request, body)
    LOST.of_fields(request.sampling, "$.sampling", losses)
    if too_high:
        body["temperature"] = 1


def parse_tiers(body: Fields, form: dict[str, Any]) -> str:
    """`speed: fast`, or else `service_tier`: both choose a speed at a price."""
    raw = body.text_or("service_tier")
    if body.value.get("speed") == "fast":
        if raw:
            form["beside_speed"] = raw
        return "fast"
    if raw:
        tier = parse_tier(raw)
        if render_tier(tier) != raw:
            form["service_tier"] = raw
        return tier
    return ""


def render_tiers(request: Request, body: dict[str, Any], losses: list[Loss]) -> None:
    tier = request.service_tier
    if not tier:
        return
    form = own_form(request.extra, NAME)
    said = form.get("service_tier")
    if said is not None and parse_tier(said) == tier:
        body["service_tier"] = said
    elif tier == "fast":
        body["speed"] = "fast"
        if "beside_speed" in form:
            body["service_tier"] = form["beside_speed"]
    elif (written := render_tier(tier)) is not None:
        body["service_tier"] = written
    else:
        losses.append(no_tier(tier))
