"""Pictures and sound: base64 without a type, which is derived from the first bytes."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from typing import Final, Literal

from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.dialects.ollama.lost_fields import LOST
from wireglot_core.ir.content import Media
from wireglot_core.ir.loss import Loss, losses_of_extra

_HEAD_CHARS: Final = 16
"""Characters of base64 that contain the 12 bytes needed to detect the type."""
_TYPES: Final[tuple[tuple[bytes, int, str], ...]] = (
    (b"\x89PNG", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
    (b"BM", 0, "image/bmp"),
    (b"WAVE", 8, "audio/wav"),
    (b"ID3", 0, "audio/mpeg"),
    (b"OggS", 0, "audio/ogg"),
    (b"fLaC", 0, "audio/flac"),
)
"""Signature bytes, their offset, and the media type."""


def media_type(data: str) -> str:
    """The type of base64 data, "" if its first bytes are unknown."""
    try:
        head = b64decode(data[:_HEAD_CHARS], validate=True)
    except (Error, ValueError):
        return ""
    for mark, start, mime in _TYPES:
        if head[start : start + len(mark)] == mark:
            return mime
    return ""


def parse_images(message: Fields) -> list[Media]:
    """The `images` of a request. Only their beginnings are checked: they may be large."""
    images = message.texts("images")
    for index, data in enumerate(images):
        if not _is_base64(data[:_HEAD_CHARS]):
            raise message.fault("expected base64", f"{message.path}.images[{index}]")
    return list(map(parse_media, images))


def _is_base64(head: str) -> bool:
    try:
        return bool(b64decode(head, validate=True))
    except (Error, ValueError):
        return False


def parse_media(data: str) -> Media:
    mime = media_type(data)
    kind: Literal["image", "audio"] = "audio" if mime.startswith("audio/") else "image"
    return Media(kind, mime, data)


def render_media(part: Media, path: str, losses: list[Loss]) -> str | None:
    """The base64 data; None if it cannot be expressed."""
    by_reference = part.file_id is not None or part.url is not None
    if by_reference or part.data is None or part.kind not in ("image", "audio"):
        losses_of_extra(part.extra, NAME, path, losses)
        what = "media are sent as base64 only" if by_reference else f"{part.kind} is not supported"
        feature = "file_reference" if part.file_id is not None else part.kind
        losses.append(Loss(path, feature, "dropped", f"{what}; replaced by a note"))
        return None
    LOST.of(part, path, losses)
    if parse_media(part.data) != Media(part.kind, part.mime, part.data) or part.name:
        losses.append(Loss(path, part.kind, "approximated", "its type and name are not stated"))
    return part.data
