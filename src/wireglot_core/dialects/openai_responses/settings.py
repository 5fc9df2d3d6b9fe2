"""`reasoning`, `text`, service tiers: settings that are more than one field of the request."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.spelling import NAME, keep, put_back
from wireglot_core.dialects.request_fields import BOOLEAN, INTEGER, NUMBER, TEXT, F, RequestFields
from wireglot_core.dialects.unknown_fields import split_blank
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Action, Loss
from wireglot_core.ir.request import EFFORTS, Effort, OutputFormat, Thinking

REQUEST_FIELDS = RequestFields(
    F("model", "model", TEXT, apart=True),
    F("parallel_tool_calls", "parallel_tools", BOOLEAN),
    F("max_output_tokens", "max_tokens", INTEGER),
    F("temperature", "sampling.temperature", NUMBER),
    F("top_p", "sampling.top_p", NUMBER),
    F("top_logprobs", "sampling.top_logprobs", INTEGER, also=("include",)),
    F("stream", "stream", BOOLEAN, apart=True),
    F("prompt_cache_key", "cache_key", TEXT, apart=True),
)

_SUMMARIES = frozenset({"auto", "concise", "detailed"})
_EFFORTS: dict[str, Effort] = {effort: effort for effort in EFFORTS}

_FORMAT_KEYS = frozenset({"type", "name", "schema", "strict", "description"})

_TIERS = {"default": "standard"}
_TIER_NAMES = {
    "auto": "auto",
    "standard": "default",
    "flex": "flex",
    "priority": "priority",
    "scale": "scale",
    "fast": "fast",
    "ultrafast": "ultrafast",
}


# Reasoning


def parse_thinking(reasoning: Fields) -> Thinking:
    """Fields that the IR does not have (context, mode, a new effort) stay in the extra."""
    rest = dict(reasoning.value)
    form: dict[str, Any] = {"reasoning": True}
    effort = rest.get("effort")
    if type(effort) is str and effort in _EFFORTS:
        del rest["effort"]
    display = None
    for key in ("summary", "generate_summary"):
        summary = rest.get(key)
        if type(summary) is str and summary in _SUMMARIES:
            display = "summary"
            form[key] = rest.pop(key)
    telling, blank = split_blank(rest)
    if blank:
        form["blank"] = blank
    return Thinking(
        effort=_EFFORTS.get(effort) if type(effort) is str else None,
        display="summary" if display else None,
        extra=Extra(NAME, telling, form),
    )


def render_thinking(thinking: Thinking, summaries: bool, losses: list[Loss]) -> dict[str, Any] | None:
    """`summaries`: whether the account may ask for them."""
    path = "$.thinking"
    form = own_form(thinking.extra, NAME)
    value: dict[str, Any] = {}
    if thinking.effort is not None:
        value["effort"] = thinking.effort
    elif thinking.mode == "off":
        value["effort"] = "none"
    if thinking.mode is not None and (thinking.mode, value.get("effort")) != ("off", "none"):
        thinks = thinking.mode != "off" and thinking.effort not in (None, "none")
        action: Action = "emulated" if thinks else "approximated"
        losses.append(Loss(f"{path}.mode", "thinking.mode", action, "only an effort can be set"))
    LOST.of(thinking, path, losses)
    if thinking.display == "summary" and not summaries:
        detail = "this account gets no summaries of reasoning"
        losses.append(Loss(f"{path}.display", "thinking.display", "dropped", detail))
    elif thinking.display == "summary":
        spelled: dict[str, Any] = {key: form[key] for key in ("summary", "generate_summary") if key in form}
        value.update(spelled or {"summary": "auto"})
    elif thinking.display == "omitted":
        losses.append(
            Loss(
                f"{path}.display", "thinking.display", "approximated", "expressed by not requesting a summary"
            )
        )
    for key, item in form.get("blank", {}).items():
        value.setdefault(key, item)
    value.update(own_fields(thinking.extra, NAME))
    return value if value or form.get("reasoning") else None


# Text


def parse_output(text: Fields) -> OutputFormat | None:
    """The output format, for a known `format`; any other stays in the request's extra."""
    value = text.value.get("format")
    if type(value) is not dict or value.get("type") not in ("text", "json_object", "json_schema"):
        return None
    place = Fields(value, f"{text.path}.format", text.fault)
    match value["type"]:
        case "text":
            return OutputFormat("text", extra=keep(place.value, frozenset({"type"}), {"native": True}))
        case "json_object":
            return OutputFormat("json", extra=keep(place.value, frozenset({"type"})))
        case _:
            return _parse_schema(place)


def _parse_schema(place: Fields) -> OutputFormat:
    form: dict[str, Any] = {}
    inner = place
    if type(place.value.get("json_schema")) is dict:  # Chat's nesting
        inner = place.object("json_schema")
        form["nested"] = {key: value for key, value in place.value.items() if key != "json_schema"}
    return OutputFormat(
        "schema",
        schema=inner.dict_or_none("schema"),
        name=inner.text_or("name"),
        description=inner.text_or_none("description"),
        strict=inner.boolean("strict"),
        extra=keep(inner.value, _FORMAT_KEYS, form, always=("name", "schema")),
    )


def render_output(output: OutputFormat, losses: list[Loss]) -> dict[str, Any] | None:
    LOST.of(output, "$.output", losses)
    match output.kind:
        case "text":
            # The default format: written only where the client wrote it.
            return put_back({"type": "text"}, output.extra) if own_form(output.extra, NAME) else None
        case "json":
            return put_back({"type": "json_object"}, output.extra)
        case "schema":
            return _render_schema(output)


def _render_schema(output: OutputFormat) -> dict[str, Any]:
    form = own_form(output.extra, NAME)
    own = output.extra is not None and output.extra.dialect == NAME
    value: dict[str, Any] = {
        "type": "json_schema",
        "name": output.name or ("" if own else "response"),
        "schema": output.schema if output.schema is not None or own else {},
    }
    if output.description is not None:
        value["description"] = output.description
    if output.strict is not None:
        value["strict"] = output.strict
    put_back(value, output.extra)
    if "nested" in form:
        del value["type"]
        return {**form["nested"], "json_schema": value}
    return value


# Service tiers


def parse_tier(raw: str) -> str:
    return _TIERS.get(raw, raw)


def render_tier(tier: str, path: str, losses: list[Loss]) -> str | None:
    name = _TIER_NAMES.get(tier)
    if name is None:
        losses.append(Loss(path, "service_tier", "dropped", f"no tier {tier!r} here"))
    return name
