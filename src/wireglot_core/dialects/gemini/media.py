"""Parses and renders inline data and files by URI."""

from __future__ import annotations

from typing import Any, Literal

from wireglot_core.dialects.common_losses import guessed_type
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.lost_fields import LOST
from wireglot_core.dialects.gemini.names import OWN, put_back
from wireglot_core.dialects.google_shared import FOREIGN_FILE, lose_name, unknown_resolution
from wireglot_core.ir.content import Extra, Media, Signature
from wireglot_core.ir.loss import Loss

DETAILS = {
    "MEDIA_RESOLUTION_LOW": "low",
    "MEDIA_RESOLUTION_MEDIUM": "medium",
    "MEDIA_RESOLUTION_HIGH": "high",
    "MEDIA_RESOLUTION_ULTRA_HIGH": "original",
}
_LEVELS = {detail: level for level, detail in DETAILS.items()}
_TO_STANDARD = str.maketrans("-_", "+/")
_TO_URLSAFE = str.maketrans("+/", "-_")
_BLOB_KNOWN = frozenset({"mimeType", "data", "displayName"})
_FILE_KNOWN = frozenset({"mimeType", "fileUri", "displayName"})

_BY_SUFFIX = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}
_BY_KIND = {"image": "image/jpeg", "document": "application/pdf", "audio": "audio/wav", "video": "video/mp4"}


def parse_blob(part: Fields, blob: Fields, signature: Signature | None) -> Media:
    mime = blob.text_or("mimeType")
    data = blob.text_or("data")
    form: dict[str, Any] = {}
    if "-" in data or "_" in data:
        data = data.translate(_TO_STANDARD)
        form["base64"] = "urlsafe"
    if len(data) % 4 and not data.endswith("="):
        form["padding"] = "absent"
        data += "=" * (-len(data) % 4)
    if blob.value.get("displayName") is not None:
        form["displayName"] = "stated"
    if blob.value.get("mimeType") is None:
        form["mimeType"] = "absent"
    detail, known = _detail(part, "inlineData")
    extra = nested_rest(part, known, "inlineData", blob, inner_known=_BLOB_KNOWN, form=form)
    name = blob.text_or("displayName")
    return Media(
        media_kind(mime), mime, data=data, name=name, detail=detail, signature=signature, extra=extra
    )


def parse_file(part: Fields, file: Fields, signature: Signature | None) -> Media:
    mime = file.text_or("mimeType")
    form: dict[str, Any] = {}
    if file.value.get("displayName") is not None:
        form["displayName"] = "stated"
    if file.value.get("mimeType") is None:
        form["mimeType"] = "absent"
    detail, known = _detail(part, "fileData")
    extra = nested_rest(part, known, "fileData", file, inner_known=_FILE_KNOWN, form=form)
    name = file.text_or("displayName")
    url = file.text_or("fileUri")
    return Media(media_kind(mime), mime, url=url, name=name, detail=detail, signature=signature, extra=extra)


def _detail(part: Fields, data_key: str) -> tuple[str, frozenset[str]]:
    """The media resolution, if the IR has it, and the fields of the part that it was read from."""
    known = frozenset({data_key, "thoughtSignature"})
    resolution = part.value.get("mediaResolution")
    if type(resolution) is dict and resolution.keys() == {"level"}:
        detail = DETAILS.get(names.enum_name(resolution["level"]), "")
        if detail:
            return detail, known | {"mediaResolution"}
    return "", known


def media_kind(mime: str) -> Literal["image", "document", "audio", "video"]:
    match mime.partition("/")[0].lower():
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "document"


def nested_rest(
    outer: Fields,
    outer_known: frozenset[str],
    key: str,
    inner: Fields,
    inner_known: frozenset[str],
    form: dict[str, Any] | None = None,
) -> Extra | None:
    """The unknown fields of an object and of the object inside it, the inner ones under the inner object's
    key."""
    extra = outer.rest(outer_known, OWN, form)
    within = {name: item for name, item in inner.value.items() if name not in inner_known or item is None}
    if not within:
        return extra
    fields = dict(extra.fields) if extra is not None else {}
    fields[key] = within
    return Extra(OWN, fields, form or {})


def render_media(media: Media, path: str, out: list[Loss]) -> dict[str, Any] | None:
    """The part for a medium, without its signature; None if Gemini cannot express it."""
    LOST.of(media, path, out)
    form = own_form(media.extra, OWN)
    part: dict[str, Any]
    if media.data is not None:
        data = media.data
        if form.get("padding") == "absent":
            data = data.rstrip("=")
        if form.get("base64") == "urlsafe":
            data = data.translate(_TO_URLSAFE)
        part = {"inlineData": {**_mime(media, path, out), "data": data, **_name(media, path, form, out)}}
    elif media.text is not None:
        out.append(Loss(path, "document", "approximated", "a plain-text document becomes a text part"))
        return {"text": f"{media.name}\n\n{media.text}" if media.name else media.text}
    elif media.url is not None:
        uri = {"fileUri": media.url} if media.url else {}
        part = {"fileData": {**_mime(media, path, out), **uri, **_name(media, path, form, out)}}
    else:
        out.append(FOREIGN_FILE.at(path))
        return None
    if media.detail and media.detail != "auto":  # OpenAI's value for the default
        level = _LEVELS.get(media.detail)
        if level is not None:
            part["mediaResolution"] = {"level": level}
        else:
            out.append(unknown_resolution(media, path))
    return put_back(part, media.extra)


def _mime(media: Media, path: str, out: list[Loss]) -> dict[str, str]:
    if media.mime:
        if media_kind(media.mime) != media.kind:
            out.append(
                Loss(f"{path}.kind", media.kind, "approximated", f"Gemini goes by the type {media.mime}")
            )
        return {"mimeType": media.mime}
    if own_form(media.extra, OWN).get("mimeType") == "absent":
        return {}
    suffix = (media.url or media.name).partition("?")[0].rpartition(".")[2].lower()
    guess = _BY_SUFFIX.get(suffix, "")
    if media_kind(guess) != media.kind or not guess:
        guess = _BY_KIND[media.kind]
    out.append(guessed_type(media.kind, guess, path))
    return {"mimeType": guess}


def _name(media: Media, path: str, form: dict[str, Any], out: list[Loss]) -> dict[str, str]:
    """Only Vertex accepts display names, so only one that the client stated is sent."""
    if form.get("displayName") == "stated":
        return {"displayName": media.name}
    lose_name(media, path, out)
    return {}
