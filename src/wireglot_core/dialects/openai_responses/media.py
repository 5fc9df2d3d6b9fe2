"""Images, files and audio as content parts."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from wireglot_core.dialects.common_losses import HIGH_DETAIL
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.spelling import NAME, parse_cache, put_back, render_cache
from wireglot_core.dialects.openai_shared import BREAKPOINT, guessed_mime
from wireglot_core.ir.content import Media
from wireglot_core.ir.loss import Feature, Loss

_COMMON = frozenset({"type", "detail", BREAKPOINT})

_FORMATS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_FORMAT_OF = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}

_EXTENSIONS = {"application/pdf": "pdf", "text/plain": "txt", "text/markdown": "md", "text/csv": "csv"}
_UNNAMED = "unnamed."
"""A file sent as data must have a name. This prefix means that it has none."""

Kind = Literal["image", "document", "audio", "video"]
_DETAILS = frozenset({"auto", "low", "high", "original"})
_FEATURES: dict[Kind, Feature] = {
    "image": "image",
    "document": "document",
    "audio": "audio",
    "video": "video",
}


def parse_media(part: Fields, kind: str) -> Media | None:
    """The media of a content part; None if it has another type, or no source."""
    match kind:
        case "input_image":
            return _parse_image(part)
        case "input_file":
            return _parse_file(part)
        case "input_audio":
            return _parse_audio(part)
        case _:
            return None


def _parse_image(part: Fields) -> Media | None:
    form: dict[str, Any] = {}
    raw = part.value.get("image_url")
    detail = part.text_or("detail")
    if type(raw) is dict:  # Chat's nesting, which clients mix in
        form["nested"] = {key: value for key, value in raw.items() if key != "url"}
        url = Fields(raw, f"{part.path}.image_url", part.fault).text("url")
        detail = detail or str(raw.get("detail") or "")
    else:
        url = part.text_or("image_url")
    if url:
        mime, data = _split_data_url(url, form)
        known = _COMMON | {"image_url"}
        if data is None:
            return Media(
                "image", url=url, detail=detail, cache=parse_cache(part), extra=part.rest(known, NAME, form)
            )
        return Media(
            "image", mime, data, detail=detail, cache=parse_cache(part), extra=part.rest(known, NAME, form)
        )
    file_id = part.text_or("file_id")
    if not file_id:
        return None
    return Media(
        "image",
        file_id=file_id,
        detail=detail,
        cache=parse_cache(part),
        extra=part.rest(_COMMON | {"image_url", "file_id"}, NAME, form),
    )


def _parse_file(part: Fields) -> Media | None:
    form: dict[str, Any] = {}
    name = part.text_or("filename")
    detail = part.text_or("detail")
    known = _COMMON | {"filename"}
    raw = part.text_or("file_data")
    if raw:
        mime, data = _split_data_url(raw, form)
        if data is None:
            mime, data = "", raw
            form["bare"] = True
        if not name or name == unnamed(mime):
            name, form["filename"] = "", part.value.get("filename")
        kind = _kind_of(mime)
        if kind != "document":
            form["type"] = "input_file"
        extra = part.rest(known | {"file_data"}, NAME, form)
        return Media(kind, mime, data, name=name, detail=detail, cache=parse_cache(part), extra=extra)
    url = part.text_or("file_url")
    if url:
        extra = part.rest(known | {"file_data", "file_url"}, NAME, form)
        return Media("document", url=url, name=name, detail=detail, cache=parse_cache(part), extra=extra)
    file_id = part.text_or("file_id")
    if file_id:
        extra = part.rest(known | {"file_data", "file_url", "file_id"}, NAME, form)
        return Media(
            "document", file_id=file_id, name=name, detail=detail, cache=parse_cache(part), extra=extra
        )
    return None


def _parse_audio(part: Fields) -> Media | None:
    inner = part.value.get("input_audio")
    if type(inner) is not dict or type(inner.get("data")) is not str:
        return None
    raw = inner.get("format")
    form = {"audio": {key: value for key, value in inner.items() if key != "data"}}
    mime = _FORMATS.get(raw, f"audio/{raw}") if type(raw) is str else ""
    return Media(
        "audio",
        mime,
        inner["data"],
        cache=parse_cache(part),
        extra=part.rest(frozenset({"type", "input_audio", BREAKPOINT}), NAME, form),
    )


def render_media(media: Media, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    """The content part for a medium, or None (with a loss) if there is no such part."""
    form = own_form(media.extra, NAME)
    value: dict[str, Any] | None
    match media.kind:
        case "image" if "type" not in form:
            value = _render_image(media, form, path, losses)
        case "audio" if "type" not in form:
            value = _render_audio(media, form, path, losses)
        case "video" if "type" not in form:
            value = None
        case _:
            value = _render_file(media, form, path, losses)
    if value is None:
        losses.append(Loss(path, _FEATURES[media.kind], "dropped", f"{media.kind} is not supported here"))
        return None
    LOST.of(media, path, losses)
    if media.cache is not None:
        value[BREAKPOINT] = render_cache(media.cache, path, losses)
    return put_back(value, media.extra)


def _render_image(media: Media, form: dict[str, Any], path: str, losses: list[Loss]) -> dict[str, Any] | None:
    value: dict[str, Any] = {"type": "input_image"}
    if media.data is not None and not media.mime and not form:
        media = msgspec.structs.replace(media, mime=guessed_mime("image", path, losses))
    url = _data_url(media, form) if media.data is not None else media.url
    if url is not None:
        nested = form.get("nested")
        value["image_url"] = url if nested is None else {"url": url, **nested}
        if media.url is not None and media.mime:
            losses.append(
                Loss(f"{path}.mime", "image", "approximated", "a URL is sent without its media type")
            )
    elif media.file_id is not None:
        value["file_id"] = media.file_id
    else:
        return None
    if media.name:
        losses.append(Loss(f"{path}.name", "image", "approximated", "images have no name here"))
    if media.detail and "nested" not in form:
        value["detail"] = media.detail
        if media.detail not in _DETAILS and not form:
            value["detail"] = "high"
            losses.append(HIGH_DETAIL.at(f"{path}.detail"))
    return value


def _render_file(media: Media, form: dict[str, Any], path: str, losses: list[Loss]) -> dict[str, Any] | None:
    value: dict[str, Any] = {"type": "input_file"}
    if media.data is not None:
        value["file_data"] = media.data if form.get("bare") else _data_url(media, form)
        name = media.name or form.get("filename", unnamed(media.mime))
        if name:
            value["filename"] = name
    elif media.text is not None:
        data = base64.b64encode(media.text.encode("utf-8", "replace")).decode()
        mime = media.mime or "text/plain"
        value["file_data"] = f"data:{mime};base64,{data}"
        value["filename"] = media.name or unnamed(mime)
        losses.append(Loss(path, "document", "approximated", "text sent as the data of a file"))
    elif media.url is not None:
        value["file_url"] = media.url
        if media.mime:
            losses.append(
                Loss(f"{path}.mime", "document", "approximated", "a URL is sent without its media type")
            )
        if media.name:
            value["filename"] = media.name
    elif media.file_id is not None:
        value["file_id"] = media.file_id
        if media.mime:
            losses.append(
                Loss(f"{path}.mime", "document", "approximated", "a file id is sent without its media type")
            )
        if media.name:
            value["filename"] = media.name
    else:
        return None
    if media.detail:
        value["detail"] = media.detail
    return value


def _render_audio(media: Media, form: dict[str, Any], path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if media.data is None:
        return None
    spelled = form.get("audio")
    if spelled is not None:
        return {"type": "input_audio", "input_audio": {"data": media.data, **spelled}}
    audio_format = _FORMAT_OF.get(media.mime)
    if audio_format is None:
        return None
    if _FORMATS[audio_format] != media.mime:
        losses.append(Loss(f"{path}.mime", "audio", "approximated", f"{media.mime} is {audio_format} here"))
    if media.name or media.detail:
        losses.append(Loss(path, "audio", "approximated", "audio has no name and no detail here"))
    return {"type": "input_audio", "input_audio": {"data": media.data, "format": audio_format}}


def unnamed(mime: str) -> str:
    return _UNNAMED + _EXTENSIONS.get(mime, "bin")


def _kind_of(mime: str) -> Kind:
    match mime.partition("/")[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "document"


def _split_data_url(url: str, form: dict[str, Any]) -> tuple[str, str | None]:
    """Type and base64 of a data URL; (`""`, None) for any other address."""
    if not url.startswith("data:"):
        return "", None
    header, comma, data = url[5:].partition(",")
    if not comma or not header.endswith(";base64"):
        return "", None
    mime = header.partition(";")[0]
    if header != f"{mime};base64":
        form["data_url"] = header
    return mime, data


def _data_url(media: Media, form: dict[str, Any]) -> str:
    header = form.get("data_url")
    if header is None or header.partition(";")[0] != media.mime:
        header = f"{media.mime};base64"
    return f"data:{header},{media.data}"
