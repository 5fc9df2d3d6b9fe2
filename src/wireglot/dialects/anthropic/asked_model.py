"""The model that was asked, in answers that pass through: its name takes the place of the one that answered.

Claude Code 2.1.197 drops the thinking of an answer whose model is not the one it asked for. Where the names
are equal, and everywhere else in the bytes, nothing changes.
"""

from __future__ import annotations

import re

import msgspec

from wireglot.wire.json import BadJson, encode
from wireglot.wire.splice import splice

_DATA = b"data:"
_START = b"message_start"
_LINE_END = re.compile(rb"[\r\n]")


class _Named(msgspec.Struct):
    model: str = ""


class _Opening(msgspec.Struct):
    type: str = ""
    message: msgspec.Raw = msgspec.Raw(b"{}")


def in_answer(body: bytes, asked: str) -> bytes:
    """A whole answer."""
    try:
        reported = msgspec.json.decode(body, type=_Named).model
        return body if reported in ("", asked) else splice(body, {"model": encode(asked)})
    except (msgspec.DecodeError, BadJson, UnicodeDecodeError):
        return body  # its reader will say what is wrong with it


def in_opening(frames: bytes, asked: str) -> bytes:
    """The first bytes of a stream, with its `message_start` among them."""
    at = 0
    while (start := frames.find(_DATA, at)) >= 0:
        start += len(_DATA)
        end = _LINE_END.search(frames, start)
        at = end.start() if end is not None else len(frames)
        line = frames[start:at]
        if _START in line:
            return frames[:start] + _renamed(line, asked) + frames[at:]
    return frames


def _renamed(line: bytes, asked: str) -> bytes:
    try:
        opening = msgspec.json.decode(line, type=_Opening)
        if opening.type != "message_start":
            return line
        message = bytes(opening.message)
        renamed = in_answer(message, asked)
        return line if renamed is message else splice(line, {"message": renamed})
    except (msgspec.DecodeError, BadJson, UnicodeDecodeError):
        return line
