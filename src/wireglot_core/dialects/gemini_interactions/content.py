"""Parses and renders the content of steps: texts with their annotations, and media."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.gemini_interactions.lost_fields import LOST
from wireglot_core.dialects.gemini_interactions.names import CONTENT, OWN, UNKNOWN, part_extra, put_back
from wireglot_core.dialects.google_shared import (
    FOREIGN_FILE,
    WEB_SOURCES_ONLY,
    ByteOffsets,
    lose_name,
    unknown_resolution,
)
from wireglot_core.ir.content import Citation, Foreign, Media, Part, Text
from wireglot_core.ir.loss import Loss, left_out

_TEXT: Final = frozenset({"type", "text", "annotations"})
_MEDIA: Final = frozenset({"type", "data", "uri", "mime_type"})
_CITATION: Final = frozenset({"type", "url", "title", "start_index", "end_index"})
_DETAILS: Final = {"low": "low", "medium": "medium", "high": "high", "ultra_high": "original"}
_RESOLUTIONS: Final = {detail: resolution for resolution, detail in _DETAILS.items()}
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_TO_URLSAFE: Final = str.maketrans("+/", "-_")


def is_content(value: Any) -> bool:
    """Whether an object is content rather than a step, by its type."""
    kind = value.get("type") if type(value) is dict else None
    return type(kind) is str and kind in CONTENT


def parse_content(item: Fields) -> Text | Media | Foreign:
    kind = item.text("type")
    if kind == "text":
        return _parse_text(item)
    if kind in CONTENT:
        return _parse_media(item, cast(Literal["image", "audio", "document", "video"], kind))
    return Foreign(OWN, kind, item.value)


def _parse_text(item: Fields) -> Text:
    value = item.value
    text = item.text("text")
    if len(value) == 2:
        return Text(text)
    form: dict[str, Any] = {}
    citations: tuple[Citation, ...] = ()
    given = value.get("annotations")
    if given is not None:
        citations = parse_annotations(item.array("annotations"), text)
        if not given or render_annotations(citations, text, item.path, []) != given:
            form["annotations"] = given
    return Text(text, citations=citations, extra=UNKNOWN.keep(value, _TEXT, form))


def parse_annotations(given: list[Any], text: str) -> tuple[Citation, ...]:
    """The sources of a text. Offsets count bytes of UTF-8 here, and characters in a citation."""
    offsets = ByteOffsets(text)
    citations: list[Citation] = []
    for item in given:
        if type(item) is not dict:
            continue
        kind = item.get("type")
        if kind != "url_citation":
            citations.append(Citation(native=Foreign(OWN, kind if type(kind) is str else "", item)))
            continue
        url, title = item.get("url"), item.get("title")
        citations.append(
            Citation(
                url if type(url) is str else "",
                title if type(title) is str else "",
                start=_character(offsets, item.get("start_index")),
                end=_character(offsets, item.get("end_index")),
                extra=UNKNOWN.keep(item, _CITATION),
            )
        )
    return tuple(citations)


def _character(offsets: ByteOffsets, byte: Any) -> int | None:
    return offsets.character(byte) if type(byte) is int else None


def render_annotations(
    citations: tuple[Citation, ...], text: str, path: str, losses: list[Loss]
) -> list[dict[str, Any]]:
    rendered: list[dict[str, Any]] = []
    offsets = ByteOffsets(text)
    for index, citation in enumerate(citations):
        place = f"{path}.citations[{index}]"
        if citation.native is not None:
            if citation.native.dialect == OWN:
                rendered.append(citation.native.value)
            else:
                detail = f"{citation.native.type} of {citation.native.dialect}"
                losses.append(Loss(place, "citations", "dropped", detail))
            continue
        if not citation.url and (citation.extra is None or citation.extra.dialect != OWN):
            losses.append(WEB_SOURCES_ONLY.at(place))
            continue
        LOST.of(citation, place, losses)
        annotation: dict[str, Any] = {"type": "url_citation"}
        if citation.url:
            annotation["url"] = citation.url
        if citation.title:
            annotation["title"] = citation.title
        if citation.start is not None:
            annotation["start_index"] = offsets.byte(citation.start)
        if citation.end is not None:
            annotation["end_index"] = offsets.byte(citation.end)
        rendered.append(put_back(annotation, citation.extra))
    return rendered


def _parse_media(item: Fields, kind: Literal["image", "audio", "document", "video"]) -> Media:
    data, uri = item.text_or_none("data"), item.text_or_none("uri")
    if data is None and uri is None:
        raise item.fault("expected base64 `data` or a `uri`", item.path)
    form: dict[str, Any] = {}
    known = _MEDIA
    if data is not None:
        if uri is not None:
            known = known - {"uri"}
            uri = None
        if "-" in data or "_" in data:
            data = data.translate(_TO_STANDARD)
            form["base64"] = "urlsafe"
        if len(data) % 4 and not data.endswith("="):
            data += "=" * (-len(data) % 4)
            form["padding"] = "absent"
    stated = item.value.get("resolution")
    detail = _DETAILS.get(stated, "") if type(stated) is str else ""
    if detail:
        known = known | {"resolution"}
    return Media(
        kind,
        item.text_or("mime_type"),
        data=data,
        url=uri,
        detail=detail,
        extra=UNKNOWN.keep(item.value, known, form, blanks=("mime_type",)),
    )


def render_content(part: Part, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    """A text or medium as content; None if it cannot be expressed."""
    if type(part) is Text:
        return _render_text(part, path, losses)
    if type(part) is Media:
        return _render_media(part, path, losses)
    if type(part) is Foreign:
        if part.dialect == OWN:
            return part.value
        losses.append(left_out(part, path))
    return None


def _render_text(part: Text, path: str, losses: list[Loss]) -> dict[str, Any]:
    content: dict[str, Any] = {"type": "text", "text": part.text}
    if part.is_plain(OWN):
        return content
    LOST.of(part, path, losses)
    if part.citations:
        stated = own_form(part.extra, OWN).get("annotations")
        if type(stated) is list and parse_annotations(stated, part.text) == part.citations:
            content["annotations"] = stated
        elif annotations := render_annotations(part.citations, part.text, path, losses):
            content["annotations"] = annotations
    elif own_form(part.extra, OWN).get("annotations") == []:
        content["annotations"] = []
    return put_back(content, part_extra(part.extra))


def _render_media(media: Media, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    LOST.of(media, path, losses)
    form = own_form(media.extra, OWN)
    content: dict[str, Any] = {"type": media.kind}
    if media.data is not None:
        data = media.data
        if form.get("padding") == "absent":
            data = data.rstrip("=")
        if form.get("base64") == "urlsafe":
            data = data.translate(_TO_URLSAFE)
        content["data"] = data
    elif media.text is not None:
        losses.append(Loss(path, "document", "approximated", "a plain-text document becomes a text"))
        return {"type": "text", "text": f"{media.name}\n\n{media.text}" if media.name else media.text}
    elif media.url is not None:
        content["uri"] = media.url
    else:
        losses.append(FOREIGN_FILE.at(path))
        return None
    if media.mime:
        content["mime_type"] = media.mime
    lose_name(media, path, losses)
    if media.detail and media.detail != "auto":  # OpenAI's value for the default
        resolution = _RESOLUTIONS.get(media.detail)
        if resolution is not None:
            content["resolution"] = resolution
        else:
            losses.append(unknown_resolution(media, path))
    return put_back(content, part_extra(media.extra))
