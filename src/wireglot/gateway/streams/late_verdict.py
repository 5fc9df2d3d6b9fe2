"""Whether a stream that passes through is still an answer after it has begun.

Most of a stream cannot go wrong and is not parsed: text, and thoughts before it. Frames are parsed if they
contain calls, or anything but thoughts before the first text. The dialect defines how such frames are
recognized (`StreamMarks`); without its marks every frame is parsed. A stream that turns out to be no answer
ends with the client's own error event.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot_core.dialects.base import StreamReader
from wireglot_core.dialects.surface import StreamMarks
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Failure, ForeignEvent, PartStart
from wireglot_core.ir.verdict import EMPTY, StreamVerdict
from wireglot_core.wire.search import holds_any


class LateVerdict(msgspec.Struct, eq=False):
    new_reader: Callable[[], StreamReader]
    asked: Callable[[], Request | None]
    """Returns the request. It may not be parsed yet, and most answers do not need it."""
    marks: StreamMarks | None
    leaves_out: bool = False
    """The client knows a call that the limit cut off (`StreamVerdict`)."""
    verdict: ApiError | None = None
    """Why the stream is not an answer."""
    said: bool = False
    """Whether it contains anything but thoughts."""
    _opened: bytearray | None = None
    """The first frames, and others that are needed to parse later ones."""
    _reading: tuple[StreamReader, StreamVerdict] | None = None
    """Set while something is open that may still turn out to be no answer."""
    _in_pieces: bool = False
    """Whether a call comes in pieces, which the reader joins: it must see everything."""
    _holds_call: bool = False
    """Whether the reader may hold a call back, as its id and its arguments are still missing."""
    _over: bool = False
    _unknown: bool = False
    _twice: bool = False
    """Two beginnings came: of one answer, which is harmless, or of two."""

    def hear(self, frames: bytes, *, complete: bool) -> bool:
        """Check whole frames before they are sent; after a `verdict` they must not be. `complete`: the end of
        the answer is among them, or came before. Returns whether they contain nothing new: further frames
        that differ only in their text need not be checked."""
        marks = self.marks
        if self._over:
            return False
        if marks is None:
            self._read(frames, complete=complete)
            return False
        is_first, is_idle = self._opened is None, self._reading is None
        has_signs = is_idle and holds_any(frames, marks.signs)
        thinks = is_idle and not self.said and _thinks(frames, marks)
        only_thinks = thinks and len(marks.thoughts.findall(frames)) >= _most_frames(frames)
        if is_idle and not is_first and not has_signs and (self.said or only_thinks):
            return True
        if marks.start is not None and len(marks.start.findall(frames)) > is_first:
            self._twice = True
        if is_idle and not self._twice:
            reads = not (self.said or thinks) or (has_signs and marks.calls.search(frames) is not None)
            if not reads:
                # Among thoughts there may be what answers: the end is judged with it.
                needed = (thinks and not only_thinks) or (bool(marks.blocks) and marks.blocks in frames)
                return not self._remember(frames, needed)
        self._read(frames, complete=complete)
        return False

    def end(self) -> None:
        """The upstream's stream has ended."""
        if self._reading is not None:
            reader, watch = self._reading
            self._judge(watch, reader.end())

    def _read(self, frames: bytes, *, complete: bool) -> None:
        if self._reading is None:
            watch = StreamVerdict(self.asked(), leaves_out=self.leaves_out, may_be_empty=self.said)
            self._reading = self.new_reader(), watch
            if self._opened is not None:
                watch.pass_on(self._reading[0].read(bytes(self._opened)))
        reader, watch = self._reading
        marks, self._over = self.marks, complete
        if marks is not None and marks.pieces and marks.pieces in frames:
            self._in_pieces = True
        events = reader.read(frames)
        if complete:  # some streams have no last event: they just end
            events = [*events, *reader.end()]
        self._judge(watch, events)
        if self.verdict is not None or marks is None:
            return
        # The whole block: with only a part of its arguments it would look cut off when it is parsed again.
        self._remember(frames, bool(marks.blocks))
        if marks.calls.search(frames) is not None:
            self._holds_call = not any(
                type(each) is PartStart and type(each.part) is ToolCall for each in events
            )
        if watch.is_clear and not self._in_pieces and not self._holds_call:
            self.said, self._reading = True, None

    def _remember(self, frames: bytes, needed: bool) -> bool:
        """Keep the first frames, and others that are needed to parse later ones. Returns whether these are
        kept."""
        if self._opened is None:
            self._opened = bytearray(frames)
            return True
        if needed:
            self._opened += frames
        return needed

    def _judge(self, watch: StreamVerdict, events: list[Event]) -> None:
        passed = watch.pass_on(events)
        self._unknown = self._unknown or any(type(event) is ForeignEvent for event in events)
        verdict = watch.verdict
        if verdict is not EMPTY or not self._unknown:  # unknown content may be an answer
            self.verdict = verdict
        if (self._twice or self._in_pieces) and passed and type(passed[-1]) is Failure:
            self.verdict = passed[-1].error
        self._twice = False


def _thinks(frames: bytes, marks: StreamMarks) -> bool:
    """Whether these frames contain thoughts, and neither text nor an end."""
    return marks.thoughts.search(frames) is not None and marks.more.search(frames) is None


def _most_frames(frames: bytes) -> int:
    """An upper limit: a text may contain `data:`, and the elements of an array have none."""
    return frames.count(b"data:") or len(frames)
