"""Reads answers that pass through untouched: common parts of the taps and glances of all dialects.

Decoding every event would cost more than forwarding it, so only the few relevant ones are decoded: a pattern
over the raw frame finds them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from wireglot_core.dialects.arguments import is_json
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Usage
from wireglot_core.wire.json import BadJson, decode
from wireglot_core.wire.json_array import ArrayDecoder
from wireglot_core.wire.search import holds_any
from wireglot_core.wire.shape import Shape
from wireglot_core.wire.sse import Frame, SseDecoder

T = TypeVar("T")

WORDS: Final = re.compile(
    rb'"(?:text|content|delta|thinking|partial_json|arguments|reasoning_content|refusal)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*)'
)
"""Matches the text of an answer, in any of the dialects."""


_GAPS: Final = re.compile(rb"(?<=\r\n\r\n)|(?<=\n\n)|(?<=\r\r)")
_LINE_ENDS: Final = re.compile(rb"\r\n|\r")
_GAP: Final = b"\n\n"
_RETURN: Final = ord("\r")
_NEWLINE: Final = ord("\n")
_DATA: Final = b"data: "
_CRLF_GAP: Final = b"\r\n\r\n"
_FIELDS: Final = (b"data:", b"event:")
_NO_DOCUMENTS: Final = (b"", b"[DONE]")


def whole_frames(data: bytes) -> list[bytes]:
    """Splits into unchanged frames, each with the blank line after it."""
    gap = _GAP
    if _RETURN in data:
        if data.find(_GAP) >= 0 or data.find(b"\r\r") >= 0:
            return [whole for whole in _GAPS.split(data) if whole]
        gap = _CRLF_GAP
    if data.find(gap) == len(data) - len(gap):
        return [data]
    frames = data.split(gap)
    last = frames.pop()
    frames = [whole + gap for whole in frames]
    return [*frames, last] if last else frames


def event_of(whole: bytes) -> bytes:
    """The data of a frame, unchanged; empty for a comment."""
    at = whole.find(_DATA)
    start = at + len(_DATA)
    if at == 0 or (at > 0 and whole[at - 1] == _NEWLINE and whole.startswith(b"event:")):
        # One line of data, at the end, as in nearly all frames.
        end = whole.find(b"\n", start)
        if whole[end:] == _GAP and _RETURN not in whole:
            return whole[start:end]
        end = len(whole) - len(_CRLF_GAP)
        if at == 0 and whole[end:] == _CRLF_GAP and whole.find(b"\r") == end and _NEWLINE not in whole[:end]:
            return whole[:end][start:]
    found = SseDecoder().frame(_LINE_ENDS.sub(b"\n", whole).strip(b"\n"))
    return found.data if found is not None else b""


class _Document(msgspec.Struct):
    """Validates only: msgspec skips all members and still checks their syntax."""


_check: Final = msgspec.json.Decoder(_Document).decode
_check_all: Final = msgspec.json.Decoder(list[_Document]).decode


def _is_json(data: bytes, check: Callable[[bytes], object] = _check) -> bool:
    try:
        check(data)
        if not data.isascii():
            data.decode()  # msgspec does not validate UTF-8 in what it skips
    except (ValueError, RecursionError):
        try:
            decode(data)  # like every reader here, which is slightly lenient
        except BadJson:
            return False
    return True


def readable(frames: bytes, is_end: Callable[[bytes], bool]) -> int:
    """The number of bytes of whole frames before the first whose data a client could not decode. `is_end`:
    whether a frame that is not JSON is how the dialect ends a stream."""
    size = len(frames)
    one_line = frames.endswith(_GAP) and frames.find(b"\n") == size - 2 and _RETURN not in frames
    if one_line and frames.startswith(_DATA):
        try:  # the case of most reads
            if frames[6:-2] in _NO_DOCUMENTS:
                return size
            _check(frames[6:])
            if frames.isascii() or frames.decode():
                return size
        except (ValueError, RecursionError):
            pass  # it is checked more closely
    at = 0
    for whole in whole_frames(frames):
        data = event_of(whole)
        if data not in _NO_DOCUMENTS and not _is_json(data) and not _is_readable(whole, is_end):
            return at
        at += len(whole)
    return at


def _is_readable(whole: bytes, is_end: Callable[[bytes], bool]) -> bool:
    """The same for something that looks like one frame and may be several: line ends may be mixed."""
    decoder = SseDecoder()
    documents = [frame.data for frame in (*decoder.feed(whole), *decoder.close())]
    if all(data.strip() in _NO_DOCUMENTS or _is_json(data) for data in documents):
        return True
    return whole.startswith(b"data:") and len(documents) == 1 and is_end(whole)


def readable_elements(elements: bytes) -> int:
    """The same for whole elements of a JSON array, which are objects, and the bytes between them."""
    array = b"[%b]" % elements.strip(b"[], \t\r\n")
    if _is_json(array, _check_all):
        return len(elements)
    at = 0
    for element in ArrayDecoder(len(array)).feed(array):
        if not _is_json(element):
            break
        at = elements.index(element, at) + len(element)
    return at


_SPOKEN: Final = re.compile(rb'"(?:text|content)"\s*:\s*"[^"]')
_THOUGHTS: Final = re.compile(rb'"thought"\s*:\s*true|:\s*"thought"|"(?:summary|reasoning)_text"')
"""Thoughts, which are not an answer, under the same key as the answer's text."""
_THOUGHT_SIGNS: Final = (b'"thought"', b'_text"')
_ARGUMENTS: Final = re.compile(rb'"arguments"\s*:\s*("(?:[^"\\]|\\.)*")')
_ARGUMENTS_SIGN: Final = b'"arguments"'
_BROKEN: Final = (
    b"MALFORMED_", b"UNEXPECTED_TOOL_CALL", b"TOO_MANY_TOOL_CALLS", b"MISSING_THOUGHT_SIGNATURE",
)  # fmt: skip
_BROKEN_LETTERS: Final = (ord("M"), ord("X"))
"""Each of those words contains one of these characters. Searching for one character (as a number) takes a
tenth of the time of a word."""

_ANSWERS: Final = re.compile(
    rb'"choices"\s*:\s*\[\s*\{|"(?:content|candidates|output|steps)"\s*:\s*["\[{]|"promptFeedback"'
)
"""Matches the fields that contain answers, in any of the dialects."""

_decode_text = msgspec.json.Decoder(str).decode


def has_no_answer(body: bytes) -> bool:
    """Whether there is not even a field for one: no vendor sends such a document as an answer."""
    return _ANSWERS.search(body) is None


def is_doubtful(body: bytes) -> bool:
    """Whether a whole answer, in any of the dialects, must be parsed to find out if it is valid. Most need
    not be: they have text, and complete arguments."""
    mark, other_mark = _BROKEN_LETTERS
    if (mark in body or other_mark in body) and holds_any(body, _BROKEN):
        return True
    if holds_any(body, _THOUGHT_SIGNS) and _THOUGHTS.search(body) is not None:
        return True
    is_answer = _SPOKEN.search(body) is not None
    if body.find(_ARGUMENTS_SIGN) < 0:
        return not is_answer
    for found in _ARGUMENTS.finditer(body):
        is_answer = True
        try:
            arguments = _decode_text(found[1])
        except ValueError:
            return True
        if not arguments.strip() or not is_json(arguments):
            return True
    return not is_answer


class SseTap(ABC):
    """A `Tap` for streams of server-sent events."""

    def __init__(self, max_frame: int) -> None:
        self.usage: Usage | None = None
        self.stop = ""
        self.complete = False
        self.ended = False
        self.error: ApiError | None = None
        self.flaws: list[str] = []
        self._decoder = SseDecoder(max_frame)

    def feed(self, data: bytes) -> None:
        for frame in self._decoder.feed(data):
            self._frame(frame)

    def close(self) -> None:
        for frame in self._decoder.close():
            self._frame(frame)

    @property
    def next_event(self) -> int:
        return 0

    @property
    def settled(self) -> int:
        return 0

    @abstractmethod
    def _frame(self, frame: Frame) -> None: ...

    def _flawed(self, flaw: str) -> None:
        if flaw not in self.flaws:
            self.flaws.append(flaw)

    def _failed(self, error: ApiError | None) -> None:
        self.error = error
        self.complete = self.ended = True  # an error is an end, and it has been reported


def object_of(data: bytes) -> dict[str, Any]:
    """The decoded object of a frame. An unreadable frame counts as empty; the client's own reader will report
    it."""
    try:
        value = decode(data)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}


def shaped(body: bytes, read: Callable[[bytes], T]) -> T | None:
    """The few fields of an answer that `read` decodes; None if they have another structure. Raises BadJson if
    the body is not a JSON object."""
    try:
        return read(body)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # `decode` repairs what can be repaired and reports what cannot.
        if not isinstance(decode(body), dict):
            raise BadJson("expected a JSON object") from None
        return None


# --- frames that repeat others

_VARYING: Final = re.compile(
    rb'"(?:text|content|delta|thinking|reasoning_content|reasoning|refusal|obfuscation)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)+)"'
    rb'|"(?:sequence_number|[a-z]*[tT]okenCount)"\s*:\s*(\d+)'
)
"""Values that may differ. An empty text differs in meaning, so it is not matched."""
_QUOTE, _BACKSLASH = b'"\\'
"""As numbers: searching for them is four times as fast."""
_PLAIN: Final = re.compile(rb"(?:[^\\]|\\(?:[\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
"""A quote after a backslash does not end its text, and JSON has no other escapes."""
_CONTROL: Final = re.compile(rb"[\0-\x09\x0b-\x1f]")
"""Control characters, which no JSON value contains. LF separates the values here."""
_TRIES: Final = 4
"""Number of frames in a row that are learned without success: some servers send something new in each."""


class RepeatedFrames(msgspec.Struct, eq=False):
    """Recognizes frames that pass through and differ from an earlier one only in their text: most of a
    stream.

    What a tap or a verdict learns from a frame is in its keys and in values that name something. If a frame
    without news has the same bytes except for its text and for growing numbers, a repetition has no news
    either.
    """

    largest: int
    """Maximum bytes of a frame."""
    shape: Shape | None = None
    """The shape of the last frame, if that reported nothing; else None."""
    _tries: int = _TRIES

    def hold(self, data: bytes) -> bool:
        """Whether these are only whole frames of that shape."""
        shape = self.shape
        if shape is None or len(data) > self.largest:
            return False
        said = shape.values(data)
        if not said or _QUOTE in said:
            return False
        if _BACKSLASH in said and _PLAIN.fullmatch(said) is None:
            return False
        try:
            if not said.decode().isprintable() and _CONTROL.search(said) is not None:
                return False
        except UnicodeDecodeError:
            return False
        self._tries = _TRIES
        return True

    def learn(self, data: bytes) -> None:
        """Remember the last of these frames, which are whole and `readable`. They were all inspected, and
        reported nothing."""
        if not self._tries:
            return
        self._tries -= 1
        for gap in (_GAP, _CRLF_GAP):
            if data.endswith(gap):
                frame = data[: -len(gap)].rpartition(gap)[2] + gap
                # In JSON, unlike in comments, what looks like a key and its value is one.
                if frame.startswith(_FIELDS) and _VARYING.search(frame) is not None:
                    self.shape = Shape(frame, _VARYING)
