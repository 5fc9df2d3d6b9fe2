"""Listening to an answer that passes through untouched: its usage, its stop reason, whether it is complete.

Decoding every event would cost more than forwarding it, so only the few that can tell something are decoded:
a pattern over the raw frame finds them. A tap that understands nothing harms nothing.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.anthropic import outcome as anthropic
from wireglot.dialects.gemini import outcome as gemini
from wireglot.dialects.gemini.framing import Framing
from wireglot.dialects.openai_chat import outcome as chat
from wireglot.dialects.openai_responses import outcome as responses
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Usage
from wireglot.wire.json import BadJson, decode
from wireglot.wire.sse import Frame, SseDecoder


class Tap(Protocol):
    stop: str
    complete: bool
    """Whether the answer is whole; a stream that ends before is broken."""
    ended: bool
    """Whether the last frame was seen, so that nothing need be waited for."""
    error: ApiError | None

    @property
    def usage(self) -> Usage | None: ...

    @property
    def next_event(self) -> int:
        """The number of the event that would come next, where the dialect counts them."""
        ...

    @property
    def settled(self) -> int:
        """How many bytes of a JSON array are whole elements."""
        ...

    def feed(self, data: bytes) -> None: ...

    def close(self) -> None:
        """The end of the bytes: it also ends a last frame that has no blank line behind it."""
        ...


class _SseTap(ABC):
    dialect = ""

    def __init__(self, max_frame: int) -> None:
        self.usage: Usage | None = None
        self.stop = ""
        self.complete = False
        self.ended = False
        self.error: ApiError | None = None
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

    def _failed(self, document: dict[str, Any]) -> None:
        self.error = dialect(self.dialect).parse_error(document)
        self.complete = self.ended = True  # an error is an end, and it has been told


class _AnthropicTap(_SseTap):
    dialect = "anthropic"

    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._account: dict[str, Any] = {}

    def _frame(self, frame: Frame) -> None:
        name = frame.event
        if name == "message_delta":
            document = _object(frame.data)
            self._merge(document.get("usage"))
            delta = document.get("delta")
            if type(delta) is dict:
                self.stop = anthropic_stop(delta.get("stop_reason")) or self.stop
        elif name == "message_stop":
            self.complete = self.ended = True
        elif name == "message_start":
            message = _object(frame.data).get("message")
            if type(message) is dict:
                self._merge(message.get("usage"))
        elif name == "error":
            self._failed(_object(frame.data))

    def _merge(self, usage: Any) -> None:
        self._account = anthropic.merge_usage(self._account, usage)
        self.usage = anthropic.parse_usage(self._account)


_CHAT: Final = re.compile(rb'"(?:finish_reason|usage|error)"\s*:\s*[{"]')


class _ChatTap(_SseTap):
    dialect = "openai-chat"

    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._max_frame = max_frame
        self._between = True  # whether the last read ended with a frame

    def feed(self, data: bytes) -> None:
        if self._between and len(data) <= self._max_frame:
            data = _from_first_that_tells(data)
        if data:
            super().feed(data)
        self._between = not data or data.endswith(b"\n\n")

    def _frame(self, frame: Frame) -> None:
        data = frame.data
        if _CHAT.search(data) is None:
            if data == b"[DONE]":
                self.complete = self.ended = True
            return
        document = _object(data)
        if type(document.get("error")) in (dict, str) and not document.get("choices"):
            self._failed(document)
            return
        choices = document.get("choices")
        first = choices[0] if type(choices) is list and choices and type(choices[0]) is dict else {}
        if type(first.get("finish_reason")) is str:
            self.stop = chat_stop(first["finish_reason"])
            self.complete = True
        usage = document.get("usage") or first.get("usage")
        if type(usage) is dict:
            self.usage = chat.parse_usage(usage)


def _from_first_that_tells(data: bytes) -> bytes:
    """What is left once the frames are skipped, not even cut, that stand before the first telling one."""
    found = _CHAT.search(data)
    first = found.start() if found is not None else len(data)
    done = data.find(b"[DONE]", 0, first)
    start = data.rfind(b"\n\n", 0, done if done >= 0 else first)
    return data[start + 2 :] if start >= 0 else data


_RESPONSES: Final = re.compile(rb'"type"\s*:\s*"(?:response\.(?:completed|incomplete|failed)|error)"')
_RESPONSES_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class _ResponsesTap(_SseTap):
    dialect = "openai-responses"

    def __init__(self, max_frame: int) -> None:
        super().__init__(max_frame)
        self._last = b""

    def close(self) -> None:
        whole = self._last
        super().close()
        if not _object(self._last):
            self._last = whole  # half an event has no number

    @property
    def next_event(self) -> int:
        number = _object(self._last).get("sequence_number")
        return number + 1 if type(number) is int else 0

    def _frame(self, frame: Frame) -> None:
        self._last = frame.data
        name = frame.event
        if name not in _RESPONSES_ENDS and (name or _RESPONSES.search(frame.data) is None):
            return
        document = _object(frame.data)
        kind = document.get("type", name)
        if kind == "error":
            self._failed(document)
            return
        answer = document.get("response")
        if kind not in _RESPONSES_ENDS or type(answer) is not dict:
            return
        self.complete = self.ended = True
        self.usage = responses.parse_usage(answer.get("usage"))
        self.stop = _responses_stop(answer)
        if kind == "response.failed":
            self.error = dialect(self.dialect).parse_error(document)


_GEMINI: Final = re.compile(rb'"(?:finishReason|finish_reason|blockReason|error)"\s*:')


class _GeminiTap:
    """Each chunk carries the whole account so far: the last one is kept and decoded when asked for."""

    def __init__(self, max_frame: int, wrapped: bool) -> None:
        self.stop = ""
        self.complete = False
        self.ended = False  # a chunk with usage may follow the one with the finish reason
        self.error: ApiError | None = None
        self._framing = Framing(max_frame)
        self._last = b""
        self._wrapped = wrapped
        self._calls = False

    @property
    def usage(self) -> Usage | None:
        if not self._last:
            return None
        usage = self._inner(_object(self._last)).get("usageMetadata")
        return gemini.read_usage(usage) if type(usage) is dict else None

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
            if b"usageMetadata" in document:
                self._last = document
            if not self._calls:
                self._calls = b'"functionCall"' in document
            if _GEMINI.search(document) is not None:
                self._end(self._inner(_object(document)))

    def _inner(self, document: dict[str, Any]) -> dict[str, Any]:
        inner = document.get("response") if self._wrapped else None
        return inner if type(inner) is dict else document

    def _end(self, document: dict[str, Any]) -> None:
        if type(document.get("error")) is dict:
            self.error = dialect("gemini").parse_error(document)
            self.complete = True
            return
        stop = _gemini_stop(document)
        if stop:
            self.stop = gemini.read_stop(stop, self._calls).reason
            self.complete = True


def tap(dialect_name: str, max_frame: int) -> Tap:
    match dialect_name:
        case "anthropic":
            return _AnthropicTap(max_frame)
        case "openai-chat":
            return _ChatTap(max_frame)
        case "openai-responses":
            return _ResponsesTap(max_frame)
        case _:
            return _GeminiTap(max_frame, dialect_name == "code-assist")


class Glance(msgspec.Struct, frozen=True):
    """What a whole answer that passes through tells."""

    usage: Usage | None = None
    stop: str = ""


class _Choice(msgspec.Struct):
    finish_reason: Any = None
    usage: Any = None


class _Body(msgspec.Struct):
    """The few fields worth decoding, of all dialects; msgspec skips the rest and still checks its syntax."""

    usage: Any = None
    stop_reason: Any = None
    choices: list[_Choice] | None = None
    status: Any = None
    incomplete_details: Any = None
    output: Any = None


class _Candidate(msgspec.Struct, rename="camel"):
    finish_reason: Any = None


class _GeminiBody(msgspec.Struct, rename="camel"):
    usage_metadata: Any = None
    candidates: list[_Candidate] | None = None
    prompt_feedback: Any = None


class _Wrapper(msgspec.Struct):
    response: _GeminiBody | None = None


_read_body: Final = msgspec.json.Decoder(_Body).decode
_read_gemini: Final = msgspec.json.Decoder(_GeminiBody).decode
_read_wrapper: Final = msgspec.json.Decoder(_Wrapper).decode


def glance(dialect_name: str, body: bytes) -> Glance:
    """Raises BadJson where the body is no JSON object of a shape the dialect can have."""
    try:
        if dialect_name in ("gemini", "code-assist"):
            inner = _read_gemini(body) if dialect_name == "gemini" else _read_wrapper(body).response
            return _glance_gemini(inner or _GeminiBody(), b'"functionCall"' in body)
        document = _read_body(body)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _glance_again(body)
    usage = document.usage
    if dialect_name == "anthropic":
        account = anthropic.parse_usage(usage) if type(usage) is dict else None
        return Glance(account, anthropic_stop(document.stop_reason))
    if dialect_name == "openai-responses":
        return Glance(
            responses.parse_usage(usage),
            _responses_stop(msgspec.structs.asdict(document)),
        )
    first = document.choices[0] if document.choices else _Choice()
    usage = usage or first.usage
    return Glance(chat.parse_usage(usage) if type(usage) is dict else None, chat_stop(first.finish_reason))


def _glance_again(body: bytes) -> Glance:
    """Not of our shape: is it JSON at all? `decode` mends what can be mended and tells what cannot."""
    if not isinstance(decode(body), dict):
        raise BadJson("expected a JSON object")
    return Glance()


def _glance_gemini(body: _GeminiBody, calls: bool) -> Glance:
    usage = body.usage_metadata
    stop = body.candidates[0].finish_reason if body.candidates else None
    if stop is None and type(body.prompt_feedback) is dict:
        stop = body.prompt_feedback.get("blockReason")
    reason = gemini.read_stop(stop, calls).reason if stop else ""
    return Glance(gemini.read_usage(usage) if type(usage) is dict else None, reason)


def _gemini_stop(document: dict[str, Any]) -> str:
    candidates = document.get("candidates")
    first = candidates[0] if type(candidates) is list and candidates and type(candidates[0]) is dict else {}
    stop = first.get("finishReason") or first.get("finish_reason")
    feedback = document.get("promptFeedback")
    if not stop and type(feedback) is dict:
        stop = feedback.get("blockReason")
    return str(stop or "")


def anthropic_stop(raw: Any) -> str:
    """Why an answer ended, in the words that the log uses for every dialect."""
    return anthropic.parse_stop(raw, None, {}, False).reason if raw else ""


def chat_stop(raw: Any) -> str:
    return chat.parse_stop(raw, raw in ("tool_calls", "function_call"), False).reason if raw else ""


def _responses_stop(answer: dict[str, Any]) -> str:
    items = answer.get("output")
    kinds = [item.get("type") for item in items if type(item) is dict] if type(items) is list else []
    calls = any(type(kind) is str and kind.endswith("_call") for kind in kinds)
    details = answer.get("incomplete_details")
    status = answer.get("status")
    return responses.parse_stop(status, details, calls, False).reason if type(status) is str else ""


def _object(data: bytes) -> dict[str, Any]:
    """A frame that cannot be read tells nothing; the client's own reader will say so."""
    try:
        value = decode(data)
    except BadJson:
        return {}
    return value if isinstance(value, dict) else {}
