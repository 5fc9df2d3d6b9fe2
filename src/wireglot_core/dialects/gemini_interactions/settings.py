"""Parses `generation_config` and `response_format`; also the tables of regular fields for both directions."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from wireglot_core.dialects.fields import Fields, object_in
from wireglot_core.dialects.gemini_interactions.names import DISPLAYS, EFFORTS, OWN
from wireglot_core.dialects.request_fields import BOOLEAN, INTEGER, NUMBER, TEXT, TEXTS, F, RequestFields
from wireglot_core.ir.content import Extra
from wireglot_core.ir.request import OutputFormat, Thinking

REQUEST_FIELDS: Final = RequestFields(
    F("model", "model", TEXT),
    F("stream", "stream", BOOLEAN),
    F("service_tier", "service_tier", TEXT),
)
GENERATION: Final = "generation_config"
GENERATION_FIELDS: Final = RequestFields(
    F("max_output_tokens", "max_tokens", INTEGER),
    F("stop_sequences", "stop", TEXTS),
    F("seed", "sampling.seed", INTEGER),
    F("temperature", "sampling.temperature", NUMBER),
    F("top_p", "sampling.top_p", NUMBER),
    inside=f"{GENERATION}.",
)

_TEXT_FORMAT: Final = frozenset({"type", "mime_type", "schema"})
JSON_TYPE: Final = "application/json"
PLAIN_TYPE: Final = "text/plain"


def parse_thinking(config: Fields, known: set[str]) -> Thinking:
    """`thinking_level` and `thinking_summaries`; unknown values stay fields of the request."""
    level, shown = config.value.get("thinking_level"), config.value.get("thinking_summaries")
    effort = EFFORTS.get(level) if type(level) is str else None
    display = DISPLAYS.get(shown) if type(shown) is str else None
    if effort is not None:
        known.add("thinking_level")
    if display is not None:
        known.add("thinking_summaries")
    return Thinking(effort=effort, display=display)


def parse_output(fields: Fields, known: set[str]) -> OutputFormat | None:
    """The output format, if the request asks for a single text format. Anything else stays a field of the
    request."""
    given = fields.value.get("response_format")
    mime = fields.value.get("response_mime_type")
    if given is None:
        if mime not in (JSON_TYPE, PLAIN_TYPE):
            return None
        known.add("response_mime_type")
        kind: Literal["text", "json", "schema"] = "json" if mime == JSON_TYPE else "text"
        return OutputFormat(kind, extra=Extra(OWN, form={"response_mime_type": mime, "shape": "absent"}))
    form: dict[str, Any] = {}
    if type(given) is list:
        form["shape"] = "list"
        if len(given) != 1:
            return None
    entry = object_in(given[0] if type(given) is list else given)
    output = _parse_bare(entry, form) or _parse_entry(entry, form)
    if output is not None:
        known.add("response_format")
        if mime == JSON_TYPE and output.kind != "text":
            known.add("response_mime_type")
            output = replace(output, extra=Extra(OWN, form={**form, "response_mime_type": mime}))
    return output


def _parse_bare(entry: dict[str, Any], form: dict[str, Any]) -> OutputFormat | None:
    """A JSON Schema in place of a format, as accepted by the first version of the API."""
    if form or not entry or "mime_type" in entry or "schema" in entry:
        return None
    if entry.get("type") not in ("object", "array") and not entry.keys() & {"properties", "anyOf", "$ref"}:
        return None
    form["shape"] = "schema"
    return OutputFormat("schema", entry, extra=Extra(OWN, form=form))


def _parse_entry(entry: dict[str, Any], form: dict[str, Any]) -> OutputFormat | None:
    mime, schema = entry.get("mime_type"), entry.get("schema")
    if (
        entry.get("type") != "text"
        or not entry.keys() <= _TEXT_FORMAT
        or mime not in (None, JSON_TYPE, PLAIN_TYPE)
        or (schema is not None and type(schema) is not dict)
    ):
        return None
    if mime is None or "mime_type" not in entry:
        form["mime_type"] = "null" if "mime_type" in entry else "absent"
    elif schema is not None and mime == PLAIN_TYPE:
        form["mime_type"] = mime
    if schema is None and "schema" in entry:
        form["schema"] = "null"
    kind: Literal["text", "json", "schema"] = (
        "schema" if schema is not None else "json" if mime == JSON_TYPE else "text"
    )
    return OutputFormat(kind, schema, extra=Extra(OWN, form=form) if form else None)
