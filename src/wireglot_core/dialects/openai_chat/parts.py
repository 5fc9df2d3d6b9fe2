"""Parses and renders content parts."""

from __future__ import annotations

from typing import Any, Literal

from wireglot_core.dialects.common_losses import HIGH_DETAIL, media_note
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.dialects.openai_chat.extras import (
    NAME,
    cache_key,
    is_of_message,
    keep,
    parse_cache,
    put_back,
    put_cache,
)
from wireglot_core.dialects.openai_chat.lost_fields import LOST, NOT_MARKED
from wireglot_core.dialects.openai_shared import guessed_mime
from wireglot_core.ir.content import Extra, Foreign, Media, Reasoning, Text
from wireglot_core.ir.loss import Loss, left_out

_PLAIN_TEXT = frozenset({"type", "text"})
_LINK = frozenset({"url"})
_IMAGE = _LINK | {"detail"}
_AUDIO = frozenset({"data", "format"})
_SOUND = frozenset({"data"})

_AUDIO_MIMES = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}
_DETAILS = frozenset({"", "auto", "low", "high", "original"})


# Parts in


def parse_part(item: Any, path: str, fault: type[Any]) -> Text | Media | Reasoning | Foreign:
    """One entry of a content list."""
    if type(item) is str:
        return Text(item, extra=Extra(NAME, {}, {"bare": True}))
    part = Fields(item, path, fault)
    match item.get("type"):
        case "text":
            text = part.text("text")
            if item.keys() == _PLAIN_TEXT:
                return Text(text)
            mark = parse_cache(item)
            return Text(text, cache=mark, extra=keep(item, {"type", "text", cache_key(mark)}))
        case "refusal":
            extra = keep(item, {"type", "refusal"}, {"part": True})
            return Text(part.text("refusal"), refusal=True, extra=extra)
        case "image_url":
            return _parse_linked(part, "image_url", "image")
        case "video_url":
            return _parse_linked(part, "video_url", "video")
        case "input_audio":
            return _parse_audio(part)
        case "file":
            return _parse_file(part)
        case "document_url" if type(item.get("document_url")) is str:
            return _parse_document_url(part)
        case "thinking":
            return _parse_thinking(item)
        case kind:
            return Foreign(NAME, kind if type(kind) is str else "", item)


def _parse_linked(part: Fields, key: str, kind: Literal["image", "video"]) -> Media:
    item = part.value
    link = item.get(key)
    form: dict[str, Any] = {}
    if type(link) is str:  # Mistral
        form["bare"] = True
        link = {"url": link}
    nested = Fields(link, f"{part.path}.{key}", part.fault)
    mime, data, url = split_url(nested.text("url"), form)
    mark = parse_cache(item)
    detail = nested.text_or("detail")
    if detail not in _DETAILS:
        form["detail"] = detail
    extra = keep(
        item, {"type", key, cache_key(mark)}, form, nested={key: (nested.value, _IMAGE if detail else _LINK)}
    )
    return Media(kind, mime, data, None, url, detail=detail, cache=mark, extra=extra)


def split_url(url: str, form: dict[str, Any]) -> tuple[str, str | None, str | None]:
    """Media type, base64 data or address. An unusual prefix of a data URL is kept in `form`."""
    if url[:5].lower() == "data:":
        head, comma, data = url.partition(",")
        if comma and head[-7:].lower() == ";base64":
            mime = head[5:-7].partition(";")[0]
            if head != f"data:{mime};base64":
                form["head"] = head
            return mime, data, None
    return "", None, url


def _parse_audio(part: Fields) -> Media:
    item = part.value
    form: dict[str, Any] = {}
    sound = item.get("input_audio")
    if type(sound) is str:  # Mistral: the data alone
        form["bare"] = True
        sound = {"data": sound}
    audio = Fields(sound, f"{part.path}.input_audio", part.fault)
    spoken = audio.text_or("format")
    if not spoken and not form:
        form["format"] = "absent"
    mark = parse_cache(item)
    extra = keep(
        item,
        {"type", "input_audio", cache_key(mark)},
        form,
        nested={"input_audio": (audio.value, _AUDIO if spoken else _SOUND)},
    )
    mime = _AUDIO_MIMES.get(spoken or "wav", f"audio/{spoken or 'wav'}")
    return Media("audio", mime, audio.text("data"), cache=mark, extra=extra)


def _parse_document_url(part: Fields) -> Media:
    """Mistral's documents: an address, or a data URL."""
    item = part.value
    form: dict[str, Any] = {"part": "document_url"}
    mime, data, url = split_url(part.text("document_url"), form)
    name = part.text_or("document_name")
    mark = parse_cache(item)
    taken = {"type", "document_url", cache_key(mark)} | ({"document_name"} if name else set())
    return Media("document", mime, data, None, url, name=name, cache=mark, extra=keep(item, taken, form))


def _parse_file(part: Fields) -> Media | Foreign:
    file = part.object("file")
    form: dict[str, Any] = {}
    taken = {"filename"} if file.value.get("filename") else set()
    mime, data, url, file_id = "", None, None, None
    content = file.text_or_none("file_data")
    if content is not None:
        taken.add("file_data")
        mime, data, url = split_url(content, form)
        if url is not None and "://" not in url[:12]:  # bare base64
            mime, data, url = _mime_of(file.text_or("filename")), url, None
            form["bare"] = True
        elif url is not None:
            form["address"] = True  # OpenRouter's field, unknown to OpenAI: returned to its writer
    else:
        file_id = file.text_or_none("file_id")
        taken.add("file_id")
        if file_id is None:
            return Foreign(NAME, "file", part.value)
    if not file.value.get("filename"):
        form["name"] = "absent"
    if data is not None and not mime:
        form["mime"] = "absent"
    mark = parse_cache(part.value)
    extra = keep(
        part.value, {"type", "file", cache_key(mark)}, form, nested={"file": (file.value, frozenset(taken))}
    )
    return Media(
        "document",
        mime,
        data,
        url=url,
        file_id=file_id,
        name=file.text_or("filename"),
        cache=mark,
        extra=extra,
    )


def _mime_of(filename: str) -> str:
    return "application/pdf" if filename.lower().endswith(".pdf") else ""


def _parse_thinking(item: dict[str, Any]) -> Reasoning | Foreign:
    """Mistral's thinking chunk: `{"type": "thinking", "thinking": [{"type": "text", "text": ...}]}`."""
    text = thinking_text(item.get("thinking"))
    if text is None:
        return Foreign(NAME, "thinking", item)
    form = {"field": "content", "thinking": item["thinking"]}
    return Reasoning(text, extra=keep(item, {"type", "thinking"}, form))


def thinking_text(value: Any) -> str | None:
    if type(value) is str:
        return value
    if type(value) is not list:
        return None
    texts = []
    for piece in value:
        if type(piece) is not dict or type(piece.get("text")) is not str:
            return None
        texts.append(piece["text"])
    return "".join(texts)


# Parts out


def text_part(part: Text, path: str, losses: list[Loss]) -> dict[str, Any] | str:
    if part.refusal:
        out: dict[str, Any] = {"type": "refusal", "refusal": part.text}
    elif own_form(part.extra, NAME).get("bare"):
        return part.text
    else:
        out = {"type": "text", "text": part.text}
    put_cache(out, part.cache, path, losses)
    put_back(out, part.extra)
    return out


def is_plain(part: Text) -> bool:
    """Whether the text can be written as a bare string without losing anything."""
    return (part.cache is None or is_of_message(part.cache)) and not own_fields(part.extra, NAME)


def media_part(part: Media, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    """A user's image, audio, file or video; None if it cannot be expressed."""
    LOST.of(part, path, losses)
    out = _media_body(part, path, losses)
    if out is not None:
        put_cache(out, part.cache, path, losses)
        put_back(out, part.extra)
    elif part.cache is not None:
        losses.append(NOT_MARKED.at(f"{path}.cache"))
    return out


def _media_body(part: Media, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if part.file_id is not None:
        return _file_reference(part, path, losses)
    if part.text is not None:
        losses.append(Loss(path, "document", "approximated", "a text document became plain text"))
        return {"type": "text", "text": f"{part.name}\n{part.text}" if part.name else part.text}
    match part.kind:
        case "image" | "video":
            return _linked(part, path, losses)
        case "audio":
            return _audio(part, path, losses)
        case "document":
            return _document(part, path, losses)


def _file_reference(part: Media, path: str, losses: list[Loss]) -> dict[str, Any]:
    if part.kind != "document" or part.mime:
        losses.append(
            Loss(path, "file_reference", "approximated", f"a file id does not state that it is {part.kind}")
        )
    _lose_detail(part, path, losses)
    file = {"file_id": part.file_id}
    if part.name:
        file["filename"] = part.name
    return {"type": "file", "file": file}


def _linked(part: Media, path: str, losses: list[Loss]) -> dict[str, Any]:
    key = "image_url" if part.kind == "image" else "video_url"
    form = own_form(part.extra, NAME)
    if part.data is not None:
        mime = part.mime
        if not mime and "head" not in form and not (part.extra and part.extra.dialect == NAME):
            mime = guessed_mime("image" if part.kind == "image" else "video", path, losses)
        url = f"{form.get('head', f'data:{mime};base64')},{part.data}"
    else:
        url = part.url or ""
        if part.mime:
            losses.append(Loss(f"{path}.mime", part.kind, "dropped", "a URL has no media type"))
    if part.name:
        losses.append(Loss(f"{path}.name", part.kind, "dropped", "images and videos have no name"))
    if form.get("bare") and not part.detail:
        return {"type": key, key: url}
    link = {"url": url}
    if part.detail:
        link["detail"] = part.detail
        if part.detail not in _DETAILS and not (part.extra and part.extra.dialect == NAME):
            link["detail"] = "high"
            losses.append(HIGH_DETAIL.at(f"{path}.detail"))
    return {"type": key, key: link}


def _audio(part: Media, path: str, losses: list[Loss]) -> dict[str, Any]:
    if part.data is None:
        losses.append(Loss(path, "audio", "dropped", "Chat takes audio as data only; replaced by a note"))
        return {"type": "text", "text": media_note("audio")}
    spoken = _AUDIO_FORMATS.get(part.mime) or part.mime.removeprefix("audio/") or "wav"
    if _AUDIO_MIMES.get(spoken, f"audio/{spoken}") != part.mime:
        losses.append(Loss(f"{path}.mime", "audio", "approximated", f"sent as {spoken}"))
    if part.name:
        losses.append(Loss(f"{path}.name", "audio", "dropped", "audio has no name"))
    _lose_detail(part, path, losses)
    form = own_form(part.extra, NAME)
    if form.get("bare"):
        return {"type": "input_audio", "input_audio": part.data}
    if form.get("format") == "absent":
        return {"type": "input_audio", "input_audio": {"data": part.data}}
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": spoken}}


def _document(part: Media, path: str, losses: list[Loss]) -> dict[str, Any]:
    _lose_detail(part, path, losses)
    native = part.extra is not None and part.extra.dialect == NAME
    form = own_form(part.extra, NAME)
    if form.get("part") == "document_url":
        inline = f"{form.get('head', f'data:{part.mime};base64')},{part.data}"
        address = {"type": "document_url", "document_url": part.url if part.data is None else inline}
        return {**address, "document_name": part.name} if part.name else address
    if part.data is None:
        if native:  # OpenRouter reads an address in file_data
            return {"type": "file", "file": _named({"file_data": part.url or ""}, part)}
        losses.append(
            Loss(path, "document", "approximated", "Chat does not accept document URLs: sent as text")
        )
        label = f"{part.name}: {part.url}" if part.name else part.url or ""
        return {"type": "text", "text": label}
    if form.get("bare"):
        return {"type": "file", "file": _named({"file_data": part.data}, part)}
    guessed = part.mime if native else part.mime or "application/pdf"
    head = form.get("head", f"data:{guessed};base64")
    file = _named({"file_data": f"{head},{part.data}"}, part)
    if not part.mime and "head" not in form and not native:
        losses.append(Loss(f"{path}.mime", "document", "invented", "taken for a PDF"))
    if "filename" not in file and not native:
        file["filename"] = "document.pdf" if part.mime in ("", "application/pdf") else "document"
        losses.append(Loss(f"{path}.name", "document", "invented", "Chat requires a file name"))
    return {"type": "file", "file": file}


def _named(file: dict[str, Any], part: Media) -> dict[str, Any]:
    if part.name:
        file["filename"] = part.name
    return file


def _lose_detail(part: Media, path: str, losses: list[Loss]) -> None:
    if part.detail:
        losses.append(Loss(f"{path}.detail", "image.detail", "dropped", "images only"))


def thinking_part(part: Reasoning) -> dict[str, Any]:
    raw = own_form(part.extra, NAME).get("thinking")
    value = (
        raw if raw is not None and thinking_text(raw) == part.text else [{"type": "text", "text": part.text}]
    )
    out = {"type": "thinking", "thinking": value}
    put_back(out, part.extra)
    return out


def foreign_part(part: Foreign, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if part.dialect == NAME:
        return part.value
    losses.append(left_out(part, path))
    return None


# Texts of a list as one string


def is_text(part: Any) -> bool:
    """Whether a rendered part is only a text: no marker, no unknown field."""
    return type(part) is dict and part.keys() == {"type", "text"}


def joined_texts(parts: list[Any]) -> str:
    """Joins texts with a blank line (R-H-02)."""
    return "\n\n".join(part["text"] for part in parts)
