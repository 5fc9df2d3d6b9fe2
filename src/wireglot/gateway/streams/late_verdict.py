"""Whether a stream that passes through ends as an answer does, once it has begun.

Most of a stream cannot go wrong and is not read: words, and thoughts before them. Frames are read where calls
come, and where something else than thoughts comes before a word. What is no answer then ends in the client's
own error event.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from wireglot.dialects.base import StreamReader
from wireglot.ir.errors import ApiError
from wireglot.ir.request import Request
from wireglot.ir.stream import Event, Failure, ForeignEvent
from wireglot.ir.verdict import EMPTY, Watch
from wireglot.wire.search import holds_any

_CALLS: Final = re.compile(
    rb'"tool_calls"\s*:\s*\[\s*\{|"tool_use"|"function_call"|"functionCall"'
    rb"|MALFORMED_|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS|MISSING_THOUGHT_SIGNATURE"
)
_THOUGHT: Final = re.compile(
    rb'"thinking_delta"|"(?:reasoning_content|reasoning)"\s*:\s*"[^"]|"thought"\s*:\s*true'
    rb'|"response\.reasoning_(?:summary_)?text\.delta"'
)
_MORE: Final = re.compile(
    rb'"(?:finish_reason|finishReason|stop_reason)"\s*:\s*"|\[DONE\]|"(?:text|content)"\s*:\s*"[^"]'
    rb'|"response\.(?:output|completed|incomplete|failed)'
)
"""What thoughts do not have beside them, unless they are the last ones."""
_START: Final = re.compile(rb'"(?:message_start|response\.created)"')
_BLOCK: Final = b"content_block_st"
"""Of the frames that say where a block of Messages begins and ends: without them no later one can be read."""

_STARTS_AND_STOPS: Final = b"_st"
_PIECES: Final = b'"willContinue"'


class LateVerdict:
    def __init__(self, reader: Callable[[], StreamReader], asked: Callable[[], Request | None]) -> None:
        """`asked`: what was asked. It may not have been read so far, and most answers do not need it."""
        self.verdict: ApiError | None = None
        """Why what came is no answer."""
        self._new_reader = reader
        self._asked = asked
        self._opened: bytearray | None = None
        """The first frames, and others that must be known to read on."""
        self._in_blocks = False
        """Whether parts are blocks that frames begin and end, as in Messages."""
        self.said = False
        """Whether there is something in it that is no thought."""
        self._telling: tuple[bytes, ...] = ()
        self._in_pieces = False
        """Gemini's calls may come in pieces, which the reader puts together: it must see all that comes."""
        self._over = self._unknown = False
        self._twice = False
        """Two beginnings came: of one answer, which is nothing, or of two."""
        self._reader: StreamReader | None = None
        self._watch = Watch(None)

    @property
    def rest(self) -> tuple[bool, int] | None:
        """What it knows while nothing is read: frames that leave it so told it nothing."""
        if self._opened is None or self._reader is not None or self._over:
            return None
        return self.said, len(self._opened)

    def hear(self, frames: bytes, *, complete: bool) -> None:
        """Whole frames, before they go out. After a `verdict` they do not. `complete`: the end of the answer
        is among them, or was before."""
        if self._over or (
            self._opened is not None
            and self._reader is None
            and not holds_any(frames, self._telling)
            and (self.said or (_THOUGHT.search(frames) is not None and _MORE.search(frames) is None))
        ):
            return
        if len(_START.findall(frames)) + (self._opened is not None) > 1:
            self._twice = True
        if self._opened is None:
            self._telling = _telling(frames)
            self._in_blocks = _STARTS_AND_STOPS in self._telling
        if self._reader is None:
            if not self._twice and not self._is_read(frames):
                if self._opened is None or _BLOCK in frames:
                    self._remember(frames)
                return
            self._begin()
        self._over = complete
        self._read(frames)

    def end(self) -> None:
        """The upstream says no more."""
        if self._reader is not None:
            self._judge(self._reader.end())

    def _is_read(self, frames: bytes) -> bool:
        if self.said:
            return _CALLS.search(frames) is not None
        return _THOUGHT.search(frames) is None or _MORE.search(frames) is not None

    def _begin(self) -> None:
        self._reader = self._new_reader()
        self._watch = Watch(self._asked(), may_be_empty=self.said)
        if self._opened is not None:
            self._watch.pass_on(self._reader.read(bytes(self._opened)))

    def _read(self, frames: bytes) -> None:
        assert self._reader is not None
        self._in_pieces = self._in_pieces or _PIECES in frames
        events = self._reader.read(frames)
        if self._over:  # some streams have no last event: they end
            events = [*events, *self._reader.end()]
        self._judge(events)
        if self.verdict is not None:
            return
        # All of a block: with a part of its arguments it would look cut off when it is read again.
        if self._opened is None or self._in_blocks:
            self._remember(frames)
        if self._watch.is_clear and not self._in_pieces:
            self.said, self._reader = True, None

    def _remember(self, frames: bytes) -> None:
        if self._opened is None:
            self._opened = bytearray()
        self._opened += frames

    def _judge(self, events: list[Event]) -> None:
        passed = self._watch.pass_on(events)
        self._unknown = self._unknown or any(type(event) is ForeignEvent for event in events)
        verdict = self._watch.verdict
        if verdict is not EMPTY or not self._unknown:  # what we do not know may be an answer
            self.verdict = verdict
        if (self._twice or self._in_pieces) and passed and type(passed[-1]) is Failure:
            self.verdict = passed[-1].error
        self._twice = False


def _telling(opening: bytes) -> tuple[bytes, ...]:
    """What no frame lacks that must be looked at, in the dialect of the opening: looking for these words is
    all that most frames cost."""
    if b'"message_start"' in opening:
        return b"tool", _STARTS_AND_STOPS
    if b'"response.created"' in opening:
        return b"tool", b"unction_", b"se.created"
    if b'"candidates"' in opening:
        return b"tool", b"unctionC", b"MALFORMED_", b"TOOL_CALL", b"MISSING_"
    return b"tool", b"unction_"
