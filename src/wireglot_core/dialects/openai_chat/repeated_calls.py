"""Repairs calls that a stream repeats as a whole, mostly in its last chunk, and other arguments that are
invalid JSON: clients concatenate all pieces, and two objects in a row are not valid.

Whole arguments are one object, and nothing can follow a complete object. So a fragment that is itself
complete and equal to the arguments so far is a repetition, whatever else it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from wireglot_core.dialects.argument_stream import MendedArguments
from wireglot_core.dialects.arguments import declare_arguments
from wireglot_core.dialects.passthrough import event_of, object_of, whole_frames
from wireglot_core.ir.loss import Loss
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.sse import frame

_ARGUMENTS: Final = b'"arguments"'
_ENDS: Final = re.compile(rb'"finish_reason"\s*:\s*"[^"]|\[DONE\]')
_OPENINGS: Final = ("{", " ", "\n", "\t", "\r")

# How many times longer than a fragment of streamed arguments those before it may be, to be compared with it:
# the same object may have blanks and escapes. Otherwise each of many small objects is compared with all
# before it.
_MAX_TIMES_LONGER: Final = 16

_Key = tuple[Any, Any]
"""The choice and the call that a fragment belongs to."""
_Fragment = tuple[_Key, str, tuple[int, int]]


def is_repeated(said: Sequence[str], fragment: str) -> bool:
    """Whether a fragment of arguments repeats all the fragments before it as a whole."""
    if fragment[:1] not in _OPENINGS:
        return False
    again = _object(fragment)
    if again is None:
        return False
    room = _MAX_TIMES_LONGER * len(fragment)
    for piece in reversed(said):
        room -= len(piece)
        if room < 0:
            return False
    return _object("".join(said)) == again


def _object(text: str) -> dict[str, Any] | None:
    if not text.rstrip().endswith("}"):
        return None  # most fragments that begin an object do not end it
    try:
        value = decode(text)
    except BadJson:
        return None
    return value if type(value) is dict else None


class CallRepair(msgspec.Struct, eq=False):
    """Implements `StreamRepair`: makes the concatenated arguments valid JSON if their meaning is clear.
    Chunks pass unchanged, except that those whose arguments may be superfluous are held back
    (`MendedArguments`)."""

    losses: list[Loss] = []
    _calls: dict[_Key, MendedArguments] = {}
    _begun: set[_Key] = set()
    """Calls of which something was sent: their names are known."""
    _waiting: list[bytes] = []

    def repair(self, data: bytes) -> bytes:
        if data.find(_ARGUMENTS) < 0 and not self._waiting:
            return data
        return b"".join([self._frame(whole) for whole in whole_frames(data)])

    def leaves(self, frames: bytes) -> bool:
        return frames.find(_ARGUMENTS) < 0 and not self._waiting

    def _frame(self, whole: bytes) -> bytes:
        if whole.find(_ARGUMENTS) >= 0:
            fragments = list(_fragments(object_of(event_of(whole))))
            if fragments:
                self._take(fragments)
                self._waiting.append(whole)
                return b"" if any(call.waits for call in self._calls.values()) else self._release()
        if self._waiting and _ENDS.search(whole) is not None:
            return self._end() + whole
        return whole

    def _take(self, fragments: list[_Fragment]) -> None:
        present = {key for key, _, _ in fragments}
        for key, call in self._calls.items():
            if key not in present and not call.is_bent:
                call.release()  # the next call follows: text that was only held for more is complete
        for key, fragment, _ in fragments:
            self._calls.setdefault(key, MendedArguments()).feed(fragment)

    def _release(self) -> bytes:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._begun.update(self._calls)
        return data

    def _end(self) -> bytes:
        """The end of the calls: the held chunks, with the remaining arguments of those that were repaired."""
        rests: dict[_Key, str] = {}
        for key, call in self._calls.items():
            rest = call.finish()
            if call.form:
                rests[key] = rest
                choice, number = key
                place = f"$.choices[{choice}].message.tool_calls[{number}].function"
                declare_arguments(call.form, place, self.losses)
        frames = [self._left_over(whole, rests) for whole in self._waiting] if rests else self._waiting
        self._waiting = []
        self._calls.clear()
        self._begun.clear()
        return b"".join(frames)

    def _left_over(self, whole: bytes, rests: dict[_Key, str]) -> bytes:
        """A held chunk: the first one of a repaired call gets all the remaining arguments."""
        chunk = object_of(event_of(whole))
        fragments = [fragment for fragment in _fragments(chunk) if fragment[0] in rests]
        if not fragments:
            return whole
        spent = []
        for key, _, (number, place) in fragments:
            calls = chunk["choices"][number]["delta"]["tool_calls"]
            rest, rests[key] = rests[key], ""
            if key not in self._begun:
                calls[place]["function"]["arguments"] = rest
                self._begun.add(key)
            elif rest:
                calls[place] = {"index": calls[place].get("index"), "function": {"arguments": rest}}
            else:
                spent.append((number, place))
        return frame(encode(_without(chunk, spent)))


def _fragments(chunk: dict[str, Any]) -> Iterable[_Fragment]:
    """The fragments of arguments in a chunk: the call each belongs to, its text, and where it is in the
    chunk."""
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
    """The chunk without the calls at these places, which add nothing."""
    for number, place in reversed(repeated):
        delta = chunk["choices"][number]["delta"]
        del delta["tool_calls"][place]
        if not delta["tool_calls"]:
            del delta["tool_calls"]
    return chunk
