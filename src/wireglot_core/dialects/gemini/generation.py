"""Parses and renders `generationConfig`: sampling, limits, thinking, output format."""

from __future__ import annotations

from typing import Any, Literal

from wireglot_core.dialects.common_losses import EFFORT_AS_OFF, LEVEL_ALONE, MODE_AS_OFF, NO_SCHEMA
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, integer, put_back
from wireglot_core.dialects.gemini.schema import is_openapi, json_schema
from wireglot_core.dialects.google_shared import ON_BY_DEFAULT, highest_level
from wireglot_core.dialects.request_fields import BOOLEAN, NUMBER, TEXTS, F, FieldKind, RequestFields
from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Effort, OutputFormat, Request, Thinking

_INTEGER = FieldKind((int,), integer)
REQUEST_FIELDS = RequestFields(
    F("temperature", "sampling.temperature", NUMBER),
    F("topP", "sampling.top_p", NUMBER),
    F("topK", "sampling.top_k", NUMBER),
    F("candidateCount", "sampling.candidates", _INTEGER),
    F("maxOutputTokens", "max_tokens", _INTEGER),
    F("seed", "sampling.seed", _INTEGER),
    F("presencePenalty", "sampling.presence_penalty", NUMBER),
    F("frequencyPenalty", "sampling.frequency_penalty", NUMBER),
    F("responseLogprobs", "sampling.logprobs", BOOLEAN),
    F("logprobs", "sampling.top_logprobs", _INTEGER),
    F("stopSequences", "stop", TEXTS),
    inside="generationConfig.",
)
SIMPLE_FIELDS = RequestFields(
    F("stream", "stream", BOOLEAN),
    F("temperature", "sampling.temperature", NUMBER),
    F("topP", "sampling.top_p", NUMBER),
    F("topK", "sampling.top_k", NUMBER),
    F("maxOutputTokens", "max_tokens", _INTEGER),
    F("stopSequences", "stop", TEXTS),
)
GENERATION = names.Names(
    *REQUEST_FIELDS.names,
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseFormat",
    "responseModalities",
    "mediaResolution",
    "speechConfig",
    "thinkingConfig",
    "imageConfig",
    "audioTranscriptionConfig",
    "audioTimestamp",
    "enableEnhancedCivicAnswers",
    "routingConfig",
    "modelSelectionConfig",
)
_EFFORTS: dict[str, Effort] = {
    "MINIMAL": "minimal",
    "LOW": "low",
    "MEDIUM": "medium",
    "HIGH": "high",
    "XHIGH": "xhigh",
}
_LEVELS: dict[Effort, str] = {effort: level for level, effort in _EFFORTS.items()} | {"max": "XHIGH"}
_LEVEL_NUMBERS = ("THINKING_LEVEL_UNSPECIFIED", "LOW", "HIGH", "MEDIUM", "MINIMAL")
_THINKING = frozenset({"includeThoughts", "thinkingBudget", "thinkingLevel"})
_JSON = "application/json"
_PLAIN = "text/plain"
_ENUM = "text/x.enum"


def parse_thinking(config: Fields) -> Thinking:
    if config.value.get("thinkingConfig") is None:
        return Thinking()
    given = names.THINKING.child(config, "thinkingConfig")
    show = given.boolean("includeThoughts")
    budget = integer(given, "thinkingBudget")
    level = names.enum_name(given.value.get("thinkingLevel"), _LEVEL_NUMBERS)
    effort = _EFFORTS.get(level)
    known = _THINKING if effort is not None else _THINKING - {"thinkingLevel"}
    form: dict[str, Any] = {}
    if effort is not None and budget is not None:
        form["both"] = True
    if effort is not None and given.value["thinkingLevel"] != level:
        form["thinkingLevel"] = given.value["thinkingLevel"]
    if not given.value:
        form["thinkingConfig"] = "empty"
    return Thinking(
        mode=None if budget is None else "off" if budget == 0 else "auto" if budget < 0 else "on",
        effort=effort,
        budget=budget if budget is not None and budget > 0 else None,
        display=None if show is None else "summary" if show else "omitted",
        extra=given.rest(known, OWN, form),
    )


def asks_thinking(request: Request) -> bool:
    """Whether thoughts are shown, which needs `includeThoughts`."""
    return request.thinking.display == "summary"


def parse_output(config: Fields) -> tuple[OutputFormat | None, frozenset[str]]:
    """The output format, and the fields it was read from."""
    entry = _text_format(config)
    if entry is not None:
        return _parse_text_format(entry), frozenset({"responseFormat"})
    mime = config.text_or("responseMimeType")
    key = "responseSchema" if config.value.get("responseJsonSchema") is None else "responseJsonSchema"
    given = config.dict_or_none(key)
    if not mime and given is None:
        return None, frozenset()
    fields: dict[str, Any] = {}
    form: dict[str, Any] = {}
    bare = given is not None and mime == _ENUM
    if mime not in (_JSON, _PLAIN, "") and not bare:
        fields["responseMimeType"] = mime
    elif mime != _JSON:
        form["responseMimeType"] = mime or "absent"
    schema = given
    if key == "responseSchema" and given is not None:
        form[key] = given
        schema = json_schema(given)
    extra = Extra(OWN, fields, form) if fields or form else None
    kind: Literal["text", "json", "schema"] = (
        "schema" if schema is not None else "json" if mime == _JSON else "text"
    )
    return OutputFormat(kind, schema, bare=bare, extra=extra), frozenset({"responseMimeType", key})


def _text_format(config: Fields) -> Fields | None:
    """`responseFormat`, if it requests text and nothing else."""
    given = config.value.get("responseFormat")
    if (
        type(given) is not list
        or len(given) != 1
        or type(given[0]) is not dict
        or given[0].keys() != {"text"}
    ):
        return None
    entry = Fields(given[0], f"{config.path}.responseFormat[0]", config.fault).object("text")
    mime = entry.value.get("mimeType", entry.value.get("mime_type"))
    schema = entry.value.get("schema")
    more = entry.value.keys() - {"mimeType", "mime_type", "schema"}
    if more or mime not in (_JSON, _PLAIN) or (schema is not None and type(schema) is not dict):
        return None
    return names.BLOB.read(entry.value, entry.path, entry.fault)


def _parse_text_format(entry: Fields) -> OutputFormat:
    schema = entry.dict_or_none("schema")
    is_json = entry.text("mimeType") == _JSON
    extra = Extra(OWN, {}, {"field": "responseFormat"})
    return OutputFormat(
        "schema" if schema is not None else "json" if is_json else "text", schema, extra=extra
    )


def is_default_modality(given: Any) -> bool:
    """Whether `responseModalities` names text only, which is the default."""
    wanted = names.listed(given)
    return len(wanted) == 1 and names.enum_name(wanted[0], ("", "TEXT")) == "TEXT"


_NO_THINKING = Thinking()


def render_generation(request: Request, form: dict[str, Any], out: list[Loss]) -> dict[str, Any]:
    """`form`: how a Gemini client spelled the request."""
    config: dict[str, Any] = {}
    REQUEST_FIELDS.write(request, config)
    if request.output is not None:
        config.update(_render_output(request.output, out))
    if request.thinking != _NO_THINKING:
        thinking = _render_thinking(request.thinking, out)
        if thinking is not None:
            config["thinkingConfig"] = thinking
    if "responseModalities" in form:
        config["responseModalities"] = form["responseModalities"]
    return config


def _render_output(output: OutputFormat, out: list[Loss]) -> dict[str, Any]:
    path = "$.output"
    LOST.of(output, path, out)
    form, fields = own_form(output.extra, OWN), own_fields(output.extra, OWN)
    if form.get("field") == "responseFormat":
        entry: dict[str, Any] = {"mimeType": _PLAIN if output.kind == "text" else _JSON}
        if output.schema is not None:
            entry["schema"] = output.schema
        return {"responseFormat": [{"text": entry}]}
    config: dict[str, Any] = {}
    mime = fields.get("responseMimeType") or form.get("responseMimeType")
    if mime is None:
        mime = _ENUM if output.bare else _JSON if output.kind != "text" else "absent"
    if mime != "absent":
        config["responseMimeType"] = mime
    if output.kind == "schema" and output.schema is None:
        out.append(NO_SCHEMA.at(f"{path}.schema"))
    elif output.schema is not None:
        original = form.get("responseSchema")
        if original is not None and json_schema(original) == output.schema:
            config["responseSchema"] = original
        else:
            config["responseSchema" if is_openapi(output.schema) else "responseJsonSchema"] = output.schema
    return config


def _render_thinking(thinking: Thinking, out: list[Loss]) -> dict[str, Any] | None:
    """Level or budget, never both: together they give a 400. `fit` has chosen which; otherwise the level has
    priority."""
    path = "$.thinking"
    LOST.of(thinking, path, out)
    form = own_form(thinking.extra, OWN)
    config: dict[str, Any] = {}
    if thinking.display is not None:
        config["includeThoughts"] = thinking.display == "summary"
    mode, effort, budget = thinking.mode, thinking.effort, thinking.budget
    level = _LEVELS.get(effort) if effort is not None else None
    if form.get("both") and level is not None:
        config["thinkingBudget"] = budget if budget is not None else -1 if mode == "auto" else 0
        config["thinkingLevel"] = level
    elif mode == "off" or effort == "none":
        config["thinkingBudget"] = 0
        if effort not in (None, "none"):
            out.append(EFFORT_AS_OFF.at(f"{path}.effort"))
        if budget is not None:
            out.append(Loss(f"{path}.budget", "thinking.budget", "dropped", "thinking is off"))
        elif mode != "off" and mode is not None:
            out.append(MODE_AS_OFF.at(f"{path}.mode"))
    elif level is not None:
        config["thinkingLevel"] = level
        if _EFFORTS[level] != effort:
            out.append(highest_level(level, path))
        if mode is not None:
            out.append(LEVEL_ALONE.at(f"{path}.mode"))
        if budget is not None:
            out.append(
                Loss(
                    f"{path}.budget", "thinking.budget", "dropped", "a level and a budget exclude each other"
                )
            )
    elif budget is not None:
        config["thinkingBudget"] = budget
        if mode != "on" or budget <= 0:
            out.append(
                Loss(
                    f"{path}.mode",
                    "thinking.mode",
                    "approximated",
                    "a budget means thinking is on, zero that it is off",
                )
            )
    elif mode == "auto":
        config["thinkingBudget"] = -1
    elif mode == "on":
        out.append(ON_BY_DEFAULT.at(f"{path}.mode"))
    stated = form.get("thinkingLevel")
    if stated is not None and names.enum_name(stated, _LEVEL_NUMBERS) == config.get("thinkingLevel"):
        config["thinkingLevel"] = stated
    put_back(config, thinking.extra)
    return config if config or form.get("thinkingConfig") == "empty" else None
