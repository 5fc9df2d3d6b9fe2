"""Reads Gemini's answers that pass through untouched, bare or in Code Assist's envelope."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

import msgspec

from wireglot_core.dialects.answer_reader import MAX_DOCUMENT_BYTES, before_first_byte, first_byte
from wireglot_core.dialects.gemini.errors import parse_error
from wireglot_core.dialects.gemini.outcome import read_stop, read_usage
from wireglot_core.dialects.passthrough import object_of, shaped
from wireglot_core.dialects.surface import AnswerGlance
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Usage
from wireglot_core.wire.json_array import ArrayDecoder
from wireglot_core.wire.sse import FrameTooLarge, SseDecoder

_TELLING: Final = re.compile(rb'"(?:finishReason|finish_reason|blockReason|error)"\s*:')
_SAID: Final = re.compile(rb'"(?:text"\s*:\s*"[^"]|functionCall"|function_call")')
_CALL: Final = b'"functionCall"'
_SNAKE_CALL: Final = b'"function_call"'


class GeminiTap:
    """Each chunk carries the whole usage so far: the last one is kept and decoded on request."""

    def __init__(self, max_frame: int, wrapped: bool = False) -> None:
        self.stop = ""
        self.complete = False
        self.ended = False  # a chunk with usage may follow the one with the finish reason
        self.error: ApiError | None = None
        self.flaws: list[str] = []
        self._framing = StreamDocuments(max_frame)
        self._last = b""
        self._wrapped = wrapped
        self._calls = False
        self._first_ended = False  # of several candidates, the first

    @property
    def usage(self) -> Usage | None:
        if not self._last:
            return None
        reported = self._inner(object_of(self._last))
        usage = reported.get("usageMetadata", reported.get("usage_metadata"))
        return read_usage(usage) if type(usage) is dict else None

    @property
    def next_event(self) -> int:
        return 0

    @property
    def settled(self) -> int:
        return self._framing.settled

    def feed(self, data: bytes) -> None:
        self._read(self._framing.feed(data))

    def close(self) -> None:
        self._read(self._framing.close())

    def _read(self, documents: list[bytes]) -> None:
        for document in documents:
            if document.find(b"usageMetadata") >= 0 or document.find(b"usage_metadata") >= 0:
                self._last = document
            if not self._calls:
                self._calls = document.find(_CALL) >= 0 or document.find(_SNAKE_CALL) >= 0
            if (
                self._first_ended
                and _SAID.search(document) is not None
                and _says(_first(self._inner(object_of(document))))
            ):
                self._flawed("content_after_end")
            if _TELLING.search(document) is not None:
                self._end(self._inner(object_of(document)))

    def _inner(self, document: dict[str, Any]) -> dict[str, Any]:
        inner = document.get("response") if self._wrapped else None
        return inner if type(inner) is dict else document

    def _end(self, document: dict[str, Any]) -> None:
        if type(document.get("error")) is dict and (error := parse_error(document)) is not None:
            self.error = error
            self.complete = True
            return
        stop = _stated_stop(document)
        if stop:
            if _finish(_first(document)):
                if self._first_ended:
                    self._flawed("second_end")
                self._first_ended = True
            self.stop = read_stop(stop, self._calls).reason
            self.complete = True

    def _flawed(self, flaw: str) -> None:
        if flaw not in self.flaws:
            self.flaws.append(flaw)


class StreamDocuments:
    """Extracts the JSON documents from a stream, however its bytes are split.

    There are three framings under one name: SSE, one JSON array that grows (no `alt=sse`), and one plain
    object (an error, or an answer that was not streamed after all). The first non-space byte distinguishes
    them.
    """

    __slots__ = ("_array", "_kind", "_pending", "_sse")

    def __init__(self, max_frame: int) -> None:
        self._kind: Literal["unknown", "sse", "array", "object"] = "unknown"
        self._sse = SseDecoder(max_frame)
        self._array = ArrayDecoder(max_frame)
        self._pending = bytearray()  # the object so far, or the blanks before anything

    def feed(self, data: bytes) -> list[bytes]:
        """The documents that `data` completes."""
        if self._kind == "unknown":
            data = self._sniff(data)
        if self._kind == "sse":
            return [frame.data for frame in self._sse.feed(data)]
        if self._kind == "array":
            return self._array.feed(data)
        if self._kind == "object":
            self._pending += data
            if len(self._pending) > MAX_DOCUMENT_BYTES:
                raise FrameTooLarge("the answer is too large")
        return []

    @property
    def settled(self) -> int:
        """The number of bytes of an array, from its start, that are whole elements (or all of it)."""
        return self._array.settled

    def close(self) -> list[bytes]:
        """The document that the end of the bytes completes: a frame without its blank line, or the whole
        object."""
        if self._kind == "sse":
            return [frame.data for frame in self._sse.close()]
        return [bytes(self._pending)] if self._kind == "object" else []

    def _sniff(self, data: bytes) -> bytes:
        self._pending += data
        data = bytes(self._pending)
        first = first_byte(data)
        if not first:
            self._pending[:] = before_first_byte(data)
            return b""
        self._pending.clear()
        self._kind = "array" if first == b"[" else "object" if first == b"{" else "sse"
        return data[data.index(first) :] if self._kind == "sse" else data


def wrapped_tap(max_frame: int) -> GeminiTap:
    return GeminiTap(max_frame, wrapped=True)


def _first(document: dict[str, Any]) -> dict[str, Any]:
    """The first candidate, if this document has a part of it."""
    candidates = document.get("candidates")
    for position, candidate in enumerate(candidates if type(candidates) is list else ()):
        if type(candidate) is dict and not candidate.get("index", position):
            return candidate
    return {}


def _finish(candidate: dict[str, Any]) -> Any:
    return candidate.get("finishReason") or candidate.get("finish_reason")


def _says(candidate: dict[str, Any]) -> bool:
    content = candidate.get("content")
    parts = content.get("parts") if type(content) is dict else None
    return type(parts) is list and any(
        type(part) is dict and (part.get("text") or "functionCall" in part or "function_call" in part)
        for part in parts
    )


def _stated_stop(document: dict[str, Any]) -> str:
    stop = _finish(_first(document))
    feedback = document.get("promptFeedback")
    if not stop and type(feedback) is dict:
        stop = feedback.get("blockReason")
    return str(stop or "")


class _Candidate(msgspec.Struct, rename="camel"):
    finish_reason: Any = None


class _Answer(msgspec.Struct, rename="camel"):
    """The few fields to decode; msgspec skips the rest and still checks its syntax."""

    usage_metadata: Any = None
    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None


class _Wrapper(msgspec.Struct):
    response: _Answer | None = None


_read: Final = msgspec.json.Decoder(_Answer).decode
_read_wrapper: Final = msgspec.json.Decoder(_Wrapper).decode


def glance(body: bytes) -> AnswerGlance:
    return _reported(shaped(body, _read), body)


def wrapped_glance(body: bytes) -> AnswerGlance:
    wrapper = shaped(body, _read_wrapper)
    return _reported(wrapper.response if wrapper is not None else None, body)


def _reported(answer: _Answer | None, body: bytes) -> AnswerGlance:
    if answer is None:
        return AnswerGlance()
    usage = answer.usage_metadata
    stop = answer.candidates[0].finish_reason if answer.candidates else None
    if stop is None and type(answer.prompt_feedback) is dict:
        stop = answer.prompt_feedback.get("blockReason")
    reason = read_stop(stop, _CALL in body).reason if stop else ""
    return AnswerGlance(read_usage(usage) if type(usage) is dict else None, reason)
