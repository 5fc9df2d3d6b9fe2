"""Whether a stream that passes through ends as an answer does, once it has begun.

Most of a stream cannot go wrong and is not read: words, and thoughts before them. Read is where calls come,
where something else than thoughts comes before a word, and where a server left its calls in the text. What
is no answer then ends in the client's own error event; calls from the text are told as calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from wireglot.dialects.base import LEAKED, WORDS, StreamReader, StreamWriter
from wireglot.ir.content import Text
from wireglot.ir.errors import ApiError
from wireglot.ir.leaked_calls import can_leak, leaks, may_begin
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Stop
from wireglot.ir.request import Request
from wireglot.ir.stream import Delta, Event, Failure, ForeignEvent, PartEnd, PartStart
from wireglot.ir.verdict import EMPTY, Watch, malformed
from wireglot.wire.json import BadJson, decode
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
_ANGLE: Final = re.compile(rb"<|\\u003[cC]")
_ANGLES: Final = (b"<", b"u003")
"""How JSON may spell what the tokens of leaked calls begin with: they may be cut over frames."""


class LateVerdict:
    def __init__(
        self,
        reader: Callable[[], StreamReader],
        writer: Callable[[], StreamWriter],
        asked: Callable[[], Request | None],
        *,
        retells: bool,
    ) -> None:
        """`asked`: what was asked. It may not have been read so far, and most answers do not need it.
        `retells`: the last event repeats the answer, of which only a part was read."""
        self.verdict: ApiError | None = None
        """Why what came is no answer."""
        self.losses: list[Loss] = []
        self._new_reader = reader
        self._new_writer = writer
        self._asked = asked
        self._retells = retells
        self._opened: bytearray | None = None
        """The first frames, and others that must be known to read on."""
        self._in_blocks = False
        """Whether parts are blocks that frames begin and end, as in Messages."""
        self.said = False
        """Whether there is something in it that is no thought."""
        self._telling: tuple[bytes, ...] = ()
        self._held = b""
        """Frames whose words end as the tokens of a leaked call begin: the next ones tell."""
        self._in_pieces = False
        """Gemini's calls may come in pieces, which the reader puts together: it must see all that comes."""
        self._over = self._unknown = False
        self._twice = False
        """Two beginnings came: of one answer, which is nothing, or of two."""
        self._reader: StreamReader | None = None
        self._writer: StreamWriter | None = None
        self._watch = Watch(None)

    @property
    def rest(self) -> tuple[bool, int] | None:
        """What it knows while nothing is read or held back: frames that leave it so told it nothing."""
        if self._opened is None or self._reader is not None or self._held or self._over:
            return None
        return self.said, len(self._opened)

    def pass_on(self, frames: bytes, *, complete: bool) -> bytes:
        """Whole frames: what of them goes out. After a `verdict` nothing does. `complete`: the end of the
        answer is among them, or was before."""
        if self._over:
            return frames
        if self._held:
            frames, self._held = self._held + frames, b""
            return self._looked_at(frames, complete)
        if (
            self._opened is not None
            and self._reader is None
            and not holds_any(frames, self._telling)
            and (self.said or (_THOUGHT.search(frames) is not None and _MORE.search(frames) is None))
        ):
            return frames
        return self._looked_at(frames, complete)

    def _looked_at(self, frames: bytes, complete: bool) -> bytes:
        leaked = self._writer is None and LEAKED.search(frames) is not None and can_leak(self._asked())
        if self._writer is None and not leaked and _ANGLE.search(frames) is not None:
            words = _words(frames)
            tail = words.rfind("<")
            if leaks(words):  # its tokens came in several frames
                leaked = can_leak(self._asked())
            elif not complete and tail >= 0 and may_begin(words[tail:]) and can_leak(self._asked()):
                self._held = frames
                return b""
        if len(_START.findall(frames)) + (self._opened is not None) > 1:
            self._twice = True
        if self._opened is None:
            self._telling = _telling(frames)
            self._in_blocks = _STARTS_AND_STOPS in self._telling
        if leaked and (self._retells or self._watch.has_open_calls) and self._opened is not None:
            self.verdict = malformed(Stop("malformed_call", "leaked tool tokens"))
            return b""
        if leaked:
            self._reader = None  # from here on it is written anew
        if self._reader is None:
            if not leaked and not self._twice and not self._is_read(frames):
                if self._opened is None or _BLOCK in frames:
                    self._remember(frames)
                return frames
            self._begin(leaked)
        self._over = complete and self._writer is None
        return self._read(frames)

    def end(self) -> bytes:
        """The upstream says no more."""
        if self._held:
            held, self._held = self._held, b""
            passed = self._looked_at(held, complete=True)
            if self._over or self.verdict is not None:
                return passed
            return passed + self.end()
        return self._judged(self._reader.end()) if self._reader is not None else b""

    def _is_read(self, frames: bytes) -> bool:
        if self.said:
            return _CALLS.search(frames) is not None
        return _THOUGHT.search(frames) is None or _MORE.search(frames) is not None

    def _begin(self, leaked: bool) -> None:
        self._reader = self._new_reader()
        self._watch = Watch(self._asked(), may_be_empty=self.said)
        before = (
            self._watch.pass_on(self._reader.read(bytes(self._opened))) if self._opened is not None else []
        )
        if leaked:
            self._writer = self._new_writer()
            self._writer.write([*before, *_begun(before)])  # the client has it already

    def _read(self, frames: bytes) -> bytes:
        assert self._reader is not None
        self._in_pieces = self._in_pieces or _PIECES in frames
        events = self._reader.read(frames)
        if self._over:  # some streams have no last event: they end
            events = [*events, *self._reader.end()]
        written = self._judged(events)
        if self.verdict is not None:
            return b""
        if self._writer is not None:
            return written
        # All of a block: with a part of its arguments it would look cut off when it is read again.
        if self._opened is None or self._in_blocks:
            self._remember(frames)
        if self._watch.is_clear and not self._in_pieces:
            self.said, self._reader = True, None
        return frames

    def _remember(self, frames: bytes) -> None:
        if self._opened is None:
            self._opened = bytearray()
        self._opened += frames

    def _judged(self, events: list[Event]) -> bytes:
        passed = self._watch.pass_on(events)
        self._unknown = self._unknown or any(type(event) is ForeignEvent for event in events)
        verdict = self._watch.verdict
        if verdict is not EMPTY or not self._unknown:  # what we do not know may be an answer
            self.verdict = verdict
        anew = self._writer is not None or self._twice or self._in_pieces
        if anew and passed and type(passed[-1]) is Failure:
            self.verdict = passed[-1].error
        if self._writer is None or self.verdict is not None:
            self._twice = False
            return b""
        self.losses += self._watch.losses
        self._watch.losses = []
        return self._writer.write(passed)


def _telling(opening: bytes) -> tuple[bytes, ...]:
    """What no frame lacks that must be looked at, in the dialect of the opening: looking for these words is
    all that most frames cost."""
    if b'"message_start"' in opening:
        return *_ANGLES, b"tool", _STARTS_AND_STOPS
    if b'"response.created"' in opening:
        return *_ANGLES, b"tool", b"unction_", b"se.created"
    if b'"candidates"' in opening:
        return *_ANGLES, b"tool", b"unctionC", b"MALFORMED_", b"TOOL_CALL", b"MISSING_"
    return *_ANGLES, b"tool", b"unction_"


def _words(frames: bytes) -> str:
    """The words of these frames, as far as they are an answer's."""
    return "".join(_text(found[1]) for found in WORDS.finditer(frames))


def _text(inside: bytes) -> str:
    try:
        text = decode(b'"' + inside + b'"')
    except BadJson:
        return ""
    return text if isinstance(text, str) else ""


def _begun(events: list[Event]) -> list[Event]:
    """A letter for each text that is open: a writer begins with a text when it has a word of it."""
    ended = {event.index for event in events if type(event) is PartEnd}
    return [
        Delta(event.index, "-")
        for event in events
        if type(event) is PartStart and type(event.part) is Text and event.index not in ended
    ]
