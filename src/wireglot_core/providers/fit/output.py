"""The output format for an endpoint: its schema is adapted, or requested in words."""

from __future__ import annotations

import msgspec

from wireglot_core.dialects.schema import SchemaNote, object_root, project
from wireglot_core.ir.content import Message, Text
from wireglot_core.ir.loss import losses_of_extra
from wireglot_core.ir.request import UNNAMED_FORMAT, Request
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.wire.json import encode_text

_NOTES_REPORTED = 5


def reported_notes(notes: tuple[SchemaNote, ...]) -> str:
    """Changes to a schema, in one line."""
    text = "; ".join(f"{note.path} {note.keyword}: {note.detail}" for note in notes[:_NOTES_REPORTED])
    more = len(notes) - _NOTES_REPORTED
    return f"{text}; and {more} more" if more > 0 else text


def fit_output_schema(request: Request, fitting: Fitting) -> Request:
    """A schema for the answer within the endpoint's rules. Outside Gemini the root is an object, so anything
    else is requested as `{"value": ...}`, and unwrapped in the answer."""
    output, limits = request.output, fitting.limits
    if output is None or output.kind != "schema" or output.schema is None:
        return request
    is_gemini = limits.output_schema.startswith("gemini")
    if output.bare and not is_gemini:
        fitting.aliases = msgspec.structs.replace(fitting.aliases, bare=True)
    if limits.output_schema == "json-schema":
        return request
    schema, wrapped = output.schema, False
    if not is_gemini:
        schema, wrapped = object_root(schema)
    form = limits.output_schema
    if form == "anthropic":
        projected = project(schema, "anthropic-strict")
    elif form == "openai" and output.strict:
        projected = project(schema, "openai-strict")
    else:
        projected = project(schema, form)
    if wrapped:
        detail = 'requested as {"value": ...}, which is removed from the answer'
        fitting.lose("$.output.schema", "output_format.schema", "emulated", detail)
        fitting.aliases = msgspec.structs.replace(fitting.aliases, unwraps=True)
    if projected.notes:
        detail = reported_notes(projected.notes)
        fitting.lose("$.output.schema", "output_format.schema", "approximated", detail)
    if projected.schema == output.schema:
        return request
    fitted = msgspec.structs.replace(output, schema=projected.schema)
    return msgspec.structs.replace(request, output=fitted)


def ask_for_output(request: Request, fitting: Fitting) -> Request:
    """Instructs the model in words if the endpoint cannot enforce a format: derived from the request alone,
    so that the prompt prefix stays the same from turn to turn."""
    output, formats = request.output, fitting.limits.output_formats
    if output is None or output.kind == "text":
        return request
    if output.kind in formats and (output.schema is not None or "json" in formats):
        return request
    if output.kind == "schema" and "json" in formats:
        fitted = msgspec.structs.replace(
            output, kind="json", schema=None, name="", strict=None, description=None
        )
    else:
        fitted = None
        losses_of_extra(output.extra, "", "$.output", fitting.losses)
    if output.kind == "schema" and output.schema is not None:
        schema = encode_text(output.schema)
        text = f"Answer with one JSON object of this JSON Schema, and nothing else:\n{schema}"
    else:
        text = "Answer with one JSON object, and nothing else."
    if output.kind == "schema" and output.description:
        text += f"\n\n{output.description}"
    fitting.lose("$.output", "output_format", "approximated", "requested in the prompt, not enforced")
    if output.name and output.name != UNNAMED_FORMAT:
        fitting.lose("$.output.name", "output_format", "approximated", "a format in words has no name")
    head = 0
    while head < len(request.messages) and request.messages[head].role == "system":
        head += 1
    messages = (*request.messages[:head], Message("system", (Text(text),)), *request.messages[head:])
    return msgspec.structs.replace(request, output=fitted, messages=messages)
