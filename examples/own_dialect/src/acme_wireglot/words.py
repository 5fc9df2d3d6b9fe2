"""Acme's words for what OpenAI's Chat calls otherwise: in documents, and in the frames of a stream."""

from collections.abc import Iterable
from typing import Any

from wireglot_core.extension import BadJson, Frame, decode, encode

_CHAT = {"engine": "model", "talk": "messages", "replies": "choices"}
_BOTH = {**_CHAT, **{chat: acme for acme, chat in _CHAT.items()}}
_ENDS = {b"[END]": b"[DONE]", b"[DONE]": b"[END]"}


def renamed(document: Any) -> Any:
    """Acme's document as Chat's, and Chat's as Acme's: names are swapped, so that no field is lost."""
    if not isinstance(document, dict):
        return document
    return {_BOTH.get(key, key): value for key, value in document.items()}


def renamed_frames(frames: Iterable[Frame]) -> bytes:
    """The same for events; what is no JSON stays as it is, for who reads it to complain."""
    return b"".join(b"data: %b\n\n" % _renamed_data(frame.data) for frame in frames)


def _renamed_data(data: bytes) -> bytes:
    if data in _ENDS:
        return _ENDS[data]
    try:
        return encode(renamed(decode(data)))
    except BadJson:
        return data
