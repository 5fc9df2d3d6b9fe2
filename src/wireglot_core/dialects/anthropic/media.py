"""Parses and renders images and documents: a `source` of one of four kinds."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal

from wireglot_core.dialects.anthropic.lost_fields import LOST
from wireglot_core.dialects.anthropic.names import NAME, keep, parse_cache, put_back, render_cache
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.ir.content import Extra, Foreign, Media
from wireglot_core.ir.loss import Feature, Loss

_KNOWN = {
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "title", "cache_control"}),
}
_SOURCES = {
    "base64": frozenset({"type", "media_type", "data"}),
    "text": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_MISSPELT = {"image/jpg": "image/jpeg"}
_PLAIN = "text/plain"
_PDF = "application/pdf"


def parse_media(fields: Fields, kind: Literal["image", "document"]) -> Media | Foreign:
    """Parses a block; one with an unknown kind of source stays verbatim."""
    source = fields.object("source")
    way = source.value.get("type")
    if way == "content" and kind == "document":
        return _parse_content_document(fields, source)
    if type(way) is not str or way not in _SOURCES or (way == "text" and kind == "image"):
        return Foreign(NAME, kind, fields.value)
    extra = _with_source(keep(fields.value, _KNOWN[kind]), source.rest(_SOURCES[way], NAME))
    return Media(
        kind,
        mime=source.text_or("media_type"),
        data=source.text("data") if way == "base64" else None,
        text=source.text("data") if way == "text" else None,
        url=source.text("url") if way == "url" else None,
        file_id=source.text("file_id") if way == "file" else None,
        name=fields.text_or("title") if kind == "document" else "",
        cache=parse_cache(fields),
        extra=extra,
    )


def _with_source(extra: Extra | None, beside: Extra | None) -> Extra | None:
    """Keep the unknown fields of a source: as information, unless they are only nulls."""
    if beside is None:
        return extra
    fields, form = (extra.fields, extra.form) if extra is not None else ({}, {})
    if any(value is not None for value in beside.fields.values()):
        return Extra(NAME, {**fields, "source": beside.fields}, form)
    return Extra(NAME, fields, {**form, "source": beside.fields})


def _parse_content_document(fields: Fields, source: Fields) -> Media | Foreign:
    """A document given as blocks. If all of them are text, it is parsed as one text; the division is
    spelling."""
    text = _joined(source.value.get("content"))
    if text is None or source.value.keys() != {"type", "content"}:
        return Foreign(NAME, "document", fields.value, _texts_of(fields, source.value.get("content")))
    extra = keep(fields.value, _KNOWN["document"], {"content": source.value})
    return Media(
        "document", _PLAIN, text=text, name=fields.text_or("title"), cache=parse_cache(fields), extra=extra
    )


def _texts_of(fields: Fields, content: Any) -> str:
    """The readable text of a document that has other content too."""
    blocks = content if type(content) is list else []
    texts = [block.get("text") for block in blocks if type(block) is dict and block.get("type") == "text"]
    said = [text for text in (fields.value.get("title"), *texts) if type(text) is str and text]
    return "\n".join(said) if texts else ""


def _joined(content: Any) -> str | None:
    if type(content) is str:
        return content
    if type(content) is not list:
        return None
    texts = []
    for block in content:
        if type(block) is not dict or block.keys() != {"type", "text"} or block["type"] != "text":
            return None
        if type(block["text"]) is not str:
            return None
        texts.append(block["text"])
    return "\n".join(texts)


def render_media(media: Media, path: str, losses: list[Loss], native: bool) -> dict[str, Any] | None:
    """The block, or None (with a loss) for what has no place in a message. `native`: the whole request came
    from this dialect, so forms that we would not choose ourselves are sent unchanged."""
    feature: Feature = media.kind
    if media.kind == "audio" or media.kind == "video":
        losses.append(Loss(path, feature, "dropped", f"no {media.kind} input; replaced by a note"))
        return None
    source = _source(media, path, losses, native, feature)
    if source is None:
        return None
    block: dict[str, Any] = {"type": media.kind, "source": source}
    if media.name:
        if media.kind == "document":
            block["title"] = media.name
        else:
            losses.append(Loss(f"{path}.name", feature, "approximated", "images have no name"))
    LOST.of(media, path, losses)
    if media.cache is not None:
        block["cache_control"] = render_cache(media.cache, path, losses)
    return put_back(block, media.extra)


def _source(
    media: Media, path: str, losses: list[Loss], native: bool, feature: Feature
) -> dict[str, Any] | None:
    form = own_form(media.extra, NAME)
    beside = own_fields(media.extra, NAME).get("source") or form.get("source") or {}
    if media.data is not None:
        return _inline(media, path, losses, native, feature=feature, beside=beside)
    if media.text is not None and media.kind == "document":
        content = form.get("content")
        if content is not None and _joined(content["content"]) == media.text:
            return dict(content)
        if media.mime != _PLAIN and not native:
            losses.append(Loss(f"{path}.mime", feature, "approximated", "read as text/plain"))
        return {
            "type": "text",
            "media_type": media.mime if native and media.mime else _PLAIN,
            "data": media.text,
            **beside,
        }
    if media.mime:
        losses.append(
            Loss(f"{path}.mime", feature, "approximated", "a reference does not state its media type")
        )
    if media.url is not None:
        return {"type": "url", "url": media.url, **beside}
    if media.file_id is not None:
        return {"type": "file", "file_id": media.file_id, **beside}
    losses.append(Loss(path, feature, "dropped", "nothing to show; replaced by a note"))
    return None


def _inline(
    media: Media, path: str, losses: list[Loss], native: bool, feature: Feature, beside: dict[str, Any]
) -> dict[str, Any] | None:
    mime = media.mime
    if native:
        source = {"type": "base64", "media_type": mime, "data": media.data, **beside}
        if not mime and "media_type" not in beside:
            del source["media_type"]
        return source
    allowed = mime in _IMAGES if media.kind == "image" else mime == _PDF
    if not allowed and mime in _MISSPELT:
        losses.append(Loss(f"{path}.mime", feature, "approximated", f"{mime} is spelt {_MISSPELT[mime]}"))
        mime, allowed = _MISSPELT[mime], True
    if allowed:
        return {"type": "base64", "media_type": mime, "data": media.data}
    text = (
        _decoded(media)
        if media.kind == "document" and (mime.startswith("text/") or mime in _TEXTUAL)
        else None
    )
    if text is not None:
        if mime != _PLAIN:
            losses.append(Loss(f"{path}.data", feature, "approximated", f"{mime} is sent as text/plain"))
        return {"type": "text", "media_type": _PLAIN, "data": text}
    losses.append(
        Loss(
            path, feature, "dropped", f"{mime or 'an unknown media type'} is not accepted; replaced by a note"
        )
    )
    return None


_TEXTUAL = frozenset({"application/json", "application/xml", "application/yaml", "application/javascript"})


def _decoded(media: Media) -> str | None:
    try:
        return base64.b64decode(media.data or "", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
