"""`countTokens`, bare and in Code Assist's form."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.counting import counted, only, tokens_in, without_settings
from wireglot_core.dialects.gemini.render_request import render_request
from wireglot_core.dialects.gemini.wrapped import parse_request
from wireglot_core.dialects.surface import Counts
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import encode_text

_NESTED: Final = ("generateContentRequest", "generate_content_request")
_COUNTED: Final = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "cachedContent"})
"""The request fields that the counter accepts."""
_SCHEMAS: Final = ("responseMimeType", "responseSchema", "responseJsonSchema")
"""The fields of `generationConfig` that Gemini includes in the prompt."""


def parse_count(body: dict[str, Any], context: Context) -> Request:
    """Parses a count request, which may be a whole request inside one field."""
    for name in _NESTED:
        if body.get(name) is not None:
            return _parse_nested(name, body[name], context)
    return parse_request(body, context)


def _parse_nested(name: str, inner: Any, context: Context) -> Request:
    if type(inner) is not dict:
        raise ClientFault("expected an object", f"$.{name}")
    try:
        return parse_request(inner, context)
    except ClientFault as fault:
        raise ClientFault(fault.message, fault.path.replace("$", f"$.{name}", 1)) from None


def render_answer(tokens: int) -> dict[str, Any]:
    return {"totalTokens": tokens}


def parse_answer(body: Any) -> int:
    return tokens_in(body, "totalTokens")


def render_count(request: Request, context: Context, base_url: str) -> Rendered[dict[str, Any]]:
    """System and tools are sent as a whole request inside (the Developer API) or next to the contents
    (Vertex)."""
    request = without_settings(request)
    rendered = render_request(request, context)
    body = only(rendered.value, _COUNTED)
    schema = only(rendered.value.get("generationConfig") or {}, _SCHEMAS)
    if schema:
        body["generationConfig"] = schema
    if "publishers" not in base_url and len(body) > 1:
        body = {"generateContentRequest": {"model": _resource(request.model or context.model), **body}}
    return counted(body, rendered.losses)


def render_wrapped_count(request: Request, context: Context, base_url: str) -> Rendered[dict[str, Any]]:
    """Code Assist's counter accepts only contents, so system and tools are counted as text before them."""
    request = without_settings(request)
    rendered = render_request(request, context)
    contents = rendered.value["contents"]
    before = [
        {"text": encode_text(rendered.value[name])}
        for name in ("systemInstruction", "tools")
        if rendered.value.get(name)
    ]
    if before:
        contents = [{"role": "user", "parts": before}, *_as_list(contents)]
    model = _resource(request.model or context.model)
    return counted({"request": {"model": model, "contents": contents}}, rendered.losses)


def _resource(model: str) -> str:
    return model if model.startswith("models/") else f"models/{model}"


def _as_list(contents: Any) -> list[Any]:
    return contents if type(contents) is list else [contents]


COUNTS: Final = Counts(
    parse_request=parse_count,
    render_answer=render_answer,
    render_request=render_count,
    parse_answer=parse_answer,
    same_body=False,
    model_inside=True,
)
WRAPPED_COUNTS: Final = Counts(
    parse_request=parse_request,
    render_answer=render_answer,
    render_request=render_wrapped_count,
    parse_answer=parse_answer,
    same_body=False,
    model_inside=True,
)
