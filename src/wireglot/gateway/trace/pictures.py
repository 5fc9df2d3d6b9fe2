"""A picture of a recorded exchange: raster types only, known by their first bytes, never by what is said."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from wireglot.traces.trace import Message, Trace
from wireglot.wire.json import BadJson, decode

_POINTER_LETTERS: Final = 1024
_KINDS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_RIFF: Final = b"RIFF"
_WEBP: Final = b"WEBP"


class NoPicture(Exception):
    """There is none at that place, or none that is shown."""


def picture(trace: Trace, part: str, pointer: str) -> tuple[str, bytes]:
    """Its type and its bytes. `part`: `client` or `upstream`, whose document; both requests and whole
    answers are looked through."""
    for message in _messages(trace, part):
        try:
            document = decode(message.body) if message.body and not message.base64 else None
        except BadJson:
            continue
        found = _at(document, pointer)
        if isinstance(found, str):
            return _raster(found)
    raise NoPicture("there is no text at that place")


def _messages(trace: Trace, part: str) -> list[Message]:
    if part in ("", "client"):
        return [trace.request, trace.answer]
    if part == "upstream":
        last = trace.attempts[-1:]
        return [side for each in last for side in (each.request, each.answer) if side is not None]
    raise NoPicture("part: expected client or upstream")


def _at(document: Any, pointer: str) -> Any:
    if len(pointer) > _POINTER_LETTERS or not pointer.startswith("/"):
        return None
    for piece in pointer[1:].split("/"):
        name = piece.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isascii() and name.isdigit() and len(name) < 9:
            document = document[int(name)] if int(name) < len(document) else None
        else:
            return None
    return document


def _raster(text: str) -> tuple[str, bytes]:
    """Of base64, alone or in a data URL."""
    if text[:5].lower() == "data:":
        text = text.partition(",")[2]
    try:
        data = base64.b64decode(text, altchars=b"-_" if "-" in text or "_" in text else None, validate=True)
    except (binascii.Error, ValueError):
        raise NoPicture("what is there is no base64") from None
    for beginning, kind in _KINDS:
        if data.startswith(beginning):
            return kind, data
    if data[:4] == _RIFF and data[8:12] == _WEBP:
        return "image/webp", data
    raise NoPicture("what is there is no picture that is shown: PNG, JPEG, GIF or WebP")
