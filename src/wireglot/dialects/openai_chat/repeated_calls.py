"""Calls that a stream tells whole once more, mostly in its last chunk: clients add up what they get, and two
objects in a row are no JSON.

Whole arguments are one object, and nothing can follow an object that is whole. So a fragment that is whole
itself and the same once more is a repetition, whatever else it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from wireglot.dialects.passthrough import event_of, object_of, whole_frames
from wireglot.ir.loss import Loss
from wireglot.wire.json import BadJson, decode, encode
from wireglot.wire.sse import frame

_ARGUMENTS: Final = b'"arguments"'
_BEGINS: Final = re.compile(rb'"arguments"\s*:\s*"\s*\{')
_OPENINGS: Final = ("{", " ", "\n", "\t", "\r")


def is_repeated(said: Iterable[str], fragment: str) -> bool:
    """Whether a fragment of arguments tells again, and whole, what the fragments before it told."""
    if fragment[:1] not in _OPENINGS:
        return False
    again = _object(fragment)
    return again is not None and _object("".join(said)) == again


def _object(text: str) -> dict[str, Any] | None:
    if not text.rstrip().endswith("}"):
        return None  # most fragments that begin an object do not end it
    try:
        value = decode(text)
    except BadJson:
        return None
    return value if type(value) is dict else None


class CallMender:
    """Implements `Mender`. A chunk is read only once another fragment of its call began with a brace."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self._begun = False
        self._unread: list[bytes] = []
        self._said: dict[tuple[Any, Any], list[str]] = {}

    def mend(self, data: bytes) -> bytes:
        if data.find(_ARGUMENTS) < 0:
            return data
        return b"".join([self._frame(whole) for whole in whole_frames(data)])

    def leaves(self, frames: bytes) -> bool:
        return frames.find(_ARGUMENTS) < 0

    def _frame(self, whole: bytes) -> bytes:
        if whole.find(_ARGUMENTS) < 0:
            return whole
        if not self._begun or _BEGINS.search(whole) is None:
            self._begun = True
            self._unread.append(whole)
            return whole
        chunk = object_of(event_of(whole))
        unread, self._unread = self._unread, []
        for earlier in unread:
            for key, fragment, _ in _fragments(object_of(event_of(earlier))):
                self._said.setdefault(key, []).append(fragment)
        repeated = []
        for key, fragment, place in _fragments(chunk):
            said = self._said.setdefault(key, [])
            if said and is_repeated(said, fragment):
                repeated.append(place)
            else:
                said.append(fragment)
        return frame(encode(_without(chunk, repeated))) if repeated else whole


def _fragments(chunk: dict[str, Any]) -> Iterable[tuple[tuple[Any, Any], str, tuple[int, int]]]:
    """The fragments of arguments in a chunk: whose each is, what it says, where it stands."""
    choices = chunk.get("choices")
    for number, choice in enumerate(choices if type(choices) is list else ()):
        delta = choice.get("delta") if type(choice) is dict else None
        calls = delta.get("tool_calls") if type(delta) is dict else None
        for place, call in enumerate(calls if type(calls) is list else ()):
            function = call.get("function") if type(call) is dict else None
            fragment = function.get("arguments") if type(function) is dict else None
            if type(fragment) is str and fragment:
                index = call.get("index")
                key = index if type(index) is int else call.get("id")
                yield (choice.get("index"), key), fragment, (number, place)


def _without(chunk: dict[str, Any], repeated: list[tuple[int, int]]) -> dict[str, Any]:
    """The chunk without the calls at these places: their ids and names were told before, too."""
    for number, place in reversed(repeated):
        delta = chunk["choices"][number]["delta"]
        del delta["tool_calls"][place]
        if not delta["tool_calls"]:
            del delta["tool_calls"]
    return chunk
