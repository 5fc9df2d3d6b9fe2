"""Whether a stream that passes through ends as an answer does, once it has begun.

Most of a stream cannot go wrong and is not read: words, and thoughts before them. Frames are read where calls
come, and where something else than thoughts comes before a word. The dialect says how such frames are known
(`StreamMarks`); without its marks every frame is read. What is no answer then ends in the client's own error
event.
"""

from __future__ import annotations

from collections.abc import Callable

from wireglot.dialects.base import StreamMarks, StreamReader
from wireglot.ir.errors import ApiError
from wireglot.ir.request import Request
from wireglot.ir.stream import Event, Failure, ForeignEvent
from wireglot.ir.verdict import EMPTY, Watch
from wireglot.wire.search import holds_any


class LateVerdict:
    def __init__(
        self,
        reader: Callable[[], StreamReader],
        asked: Callable[[], Request | None],
        marks: StreamMarks | None,
        *,
        leaves_out: bool = False,
    ) -> None:
        """`asked`: what was asked. It may not have been read so far, and most answers do not need it.
        `leaves_out`: the client knows a call that the limit cut off (`Watch`)."""
        self.verdict: ApiError | None = None
        """Why what came is no answer."""
        self._new_reader = reader
        self._asked = asked
        self._marks = marks
        self._leaves_out = leaves_out
        self._opened: bytearray | None = None
        """The first frames, and others that must be known to read on."""
        self.said = False
        """Whether there is something in it that is no thought."""
        self._in_pieces = False
        """Whether a call comes in pieces, which the reader puts together: it must see all that comes."""
        self._over = self._unknown = False
        self._twice = False
        """Two beginnings came: of one answer, which is nothing, or of two."""
        self._reader: StreamReader | None = None
        self._watch = Watch(None)

    @property
    def rest(self) -> tuple[bool, int] | None:
        """What it knows while nothing is read: frames that leave it so have nothing new."""
        if self._opened is None or self._reader is not None or self._over:
            return None
        return self.said, len(self._opened)

    def hear(self, frames: bytes, *, complete: bool) -> None:
        """Whole frames, before they go out. After a `verdict` they do not. `complete`: the end of the answer
        is among them, or was before."""
        if self._over or self._is_known(frames):
            return
        start = self._marks.start if self._marks is not None else None
        if start is not None and len(start.findall(frames)) + (self._opened is not None) > 1:
            self._twice = True
        if self._reader is None:
            if not self._is_read(frames):
                self._remember(frames)
                return
            self._begin()
        self._over = complete
        self._read(frames)

    def _is_known(self, frames: bytes) -> bool:
        """Whether there is nothing in these frames that must be looked at."""
        marks = self._marks
        if marks is None or self._opened is None or self._reader is not None:
            return False
        return not holds_any(frames, marks.signs) and (self.said or _thinks(frames, marks))

    def _is_read(self, frames: bytes) -> bool:
        marks = self._marks
        if marks is None or self._twice:
            return True
        return marks.calls.search(frames) is not None if self.said else not _thinks(frames, marks)

    def end(self) -> None:
        """The upstream says no more."""
        if self._reader is not None:
            self._judge(self._reader.end())

    def _begin(self) -> None:
        self._reader = self._new_reader()
        self._watch = Watch(self._asked(), leaves_out=self._leaves_out, may_be_empty=self.said)
        if self._opened is not None:
            self._watch.pass_on(self._reader.read(bytes(self._opened)))

    def _read(self, frames: bytes) -> None:
        assert self._reader is not None
        marks = self._marks
        if marks is not None and marks.pieces and marks.pieces in frames:
            self._in_pieces = True
        events = self._reader.read(frames)
        if self._over:  # some streams have no last event: they end
            events = [*events, *self._reader.end()]
        self._judge(events)
        if self.verdict is not None or marks is None:
            return
        # All of a block: with a part of its arguments it would look cut off when it is read again.
        self._remember(frames, always=bool(marks.blocks))
        if self._watch.is_clear and not self._in_pieces:
            self.said, self._reader = True, None

    def _remember(self, frames: bytes, *, always: bool = False) -> None:
        """Keep the first frames, and others that must be known to read on."""
        if self._opened is None:
            self._opened = bytearray(frames)
        elif always or (self._marks is not None and self._marks.blocks and self._marks.blocks in frames):
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


def _thinks(frames: bytes, marks: StreamMarks) -> bool:
    """Whether there are thoughts in these frames, and nothing else."""
    return marks.thoughts.search(frames) is not None and marks.more.search(frames) is None
