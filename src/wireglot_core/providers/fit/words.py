"""Renders parts as plain text for endpoints that do not take them: text documents, and blocks with content
that only one dialect has (search results)."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from wireglot_core.ir.content import Foreign, Media, Part, ResultPart, Text, ToolResult
from wireglot_core.ir.loss import Feature, Loss
from wireglot_core.ir.request import Request
from wireglot_core.providers.fit.fitting import Fitting

_TEXTUAL = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/toml",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
_OPAQUE: Final[dict[str, Feature]] = {
    "encrypted_content": "reasoning.redacted",
    "signature": "reasoning.signature",
}
"""Fields that some parts have in addition to their text."""
_SUFFIXES = frozenset({"csv", "json", "md", "markdown", "rst", "toml", "tsv", "txt", "xml", "yaml", "yml"})


def document_text(media: Media) -> str | None:
    """A document's text under its name; None if it is not text."""
    text = media.text
    if text is None and media.kind == "document" and media.data and _is_textual(media):
        try:
            text = base64.b64decode(media.data, validate=True).decode()
        except (binascii.Error, ValueError):
            return None
    if text is None:
        return None
    return f"{media.name}\n\n{text}" if media.name else text


def _is_textual(media: Media) -> bool:
    mime = media.mime.partition(";")[0].strip().lower()
    if mime in ("", "application/octet-stream"):
        return media.name.rpartition(".")[2].lower() in _SUFFIXES
    return mime.startswith("text/") or mime in _TEXTUAL


def tell_in_words(request: Request, fitting: Fitting) -> Request:
    """Converts parts of other dialects with content to text. Parts without are left for renderers to
    report."""
    dialect, losses, trail = fitting.dialect, fitting.losses, fitting.trail

    def reported(part: Part) -> Part:
        if type(part) is Foreign and part.text and part.dialect != dialect:
            return _reported(part, trail.of(part), losses)
        return _result(part, dialect, trail.of(part), losses) if type(part) is ToolResult else part

    messages = trail.changed_parts(request.messages, reported)
    return request if messages is request.messages else msgspec.structs.replace(request, messages=messages)


def _result(result: ToolResult, dialect: str, path: str, losses: list[Loss]) -> ToolResult:
    if not any(type(item) is Foreign and item.text and item.dialect != dialect for item in result.content):
        return result
    content: list[ResultPart] = []
    for number, item in enumerate(result.content):
        if type(item) is Foreign and item.text and item.dialect != dialect:
            content.append(_reported(item, f"{path}.content[{number}]", losses))
        else:
            content.append(item)
    return msgspec.structs.replace(result, content=tuple(content))


def _reported(part: Foreign, path: str, losses: list[Loss]) -> Text:
    losses.append(Loss(path, "foreign_part", "approximated", f"{part.type} of {part.dialect} sent as text"))
    for name, feature in _OPAQUE.items():
        if part.value.get(name):
            detail = f"only {part.dialect} can read it"
            losses.append(Loss(f"{path}.{name}", feature, "dropped", detail))
    if _holds_image(part.value):
        losses.append(Loss(f"{path}.source", "image", "dropped", "only its text is sent"))
    if part.value.get("cache_control"):
        losses.append(Loss(f"{path}.cache", "cache_marker", "dropped", "sent as text, without its marker"))
    return Text(part.text)


def _holds_image(value: object) -> bool:
    if isinstance(value, dict):
        return value.get("type") == "image" or any(map(_holds_image, value.values()))
    return isinstance(value, list) and any(map(_holds_image, value))
