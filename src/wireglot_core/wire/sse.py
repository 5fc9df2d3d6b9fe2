"""Server-sent events, cut over bytes: a text line splitter would break at U+2028 inside JSON.

As https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation has it, with one
difference: a last frame without its blank line is delivered by `close()`, because several servers end so.
"""

import msgspec


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event: its name ("" if it has none) and its data, the lines joined with LF."""

    event: str
    data: bytes


# Bytes of one event of a stream.
MAX_FRAME = 32 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"
# Names of events that are cached.
_MAX_NAMES = 64
# Numbers, because `10 in data` is several times faster than `b"\n" in data`, which first tries b"\n" as one.
_LF, _CR = 10, 13


class FrameTooLarge(ValueError):
    """One frame is larger than the decoder's limit."""


class SseDecoder:
    """Decodes frames from bytes that may be split anywhere; the split does not affect the frames.

    Line ends are converted to LF as the bytes come in, so a frame is everything up to LF LF. A CR at the end
    of a chunk counts as a line end at once, and an LF at the start of the next chunk is then skipped.
    """

    __slots__ = ("_after_cr", "_fault", "_max_frame", "_names", "_opening", "_pending")

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._pending = bytearray()  # the frame not yet ended
        self._opening: bytes | None = b""  # the first bytes, until it is known whether they are a BOM
        self._after_cr = False
        self._names: dict[bytes, str] = {}  # event lines seen, decoded once
        self._fault: FrameTooLarge | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that `data` completes. Frames before one that is too large are still delivered."""
        return self._read(self.cut(data))

    def cut(self, data: bytes) -> list[bytes]:
        """The text of each frame that `data` completes, for `frame` to read; LF ends its lines."""
        if self._fault is not None:
            raise self._fault
        if self._opening is not None:
            data = self._open(data)
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if _CR in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        pending = self._pending
        if pending:
            searched = len(pending) - 1
            pending += data
            if pending.find(b"\n\n", searched) < 0:
                self._check_pending([])
                return []
            data = bytes(pending)
            pending.clear()
        blocks = data.split(b"\n\n")
        pending += blocks.pop()
        if len(data) > self._max_frame:
            blocks = self._within_limit(blocks)
            if len(pending) > self._max_frame:
                self._check_pending(blocks)
        return blocks

    def frame(self, block: bytes) -> Frame | None:
        """Parse the text of a frame; None for a comment."""
        if block[:6] == b"data: " and _LF not in block:
            return Frame("", block[6:])
        frames = self._read([block])
        return frames[0] if frames else None

    @property
    def is_between(self) -> bool:
        """Whether no bytes of the next frame have arrived, so that the next bytes begin a frame."""
        return not (self._pending or self._after_cr) and self._opening is None and self._fault is None

    @property
    def pending(self) -> bytes:
        """The bytes of an incomplete frame."""
        return bytes(self._pending)

    def close(self) -> list[Frame]:
        """The frame that the end of the stream completes, if there is one."""
        if self._fault is not None:
            raise self._fault
        block = bytes(self._pending)
        self._pending.clear()
        return self._read([block]) if block else []

    def _open(self, data: bytes) -> bytes:
        assert self._opening is not None
        data = self._opening + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._opening = data
            return b""
        self._opening = None
        return data.removeprefix(_BOM)

    def _read(self, blocks: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        names = self._names
        for block in blocks:
            # The two shapes that nearly all frames have; everything else takes the slower way.
            if block[:6] == b"data: " and _LF not in block:
                frames.append(Frame("", block[6:]))
                continue
            if block[:7] == b"event: ":
                line, found, data = block.partition(b"\ndata: ")
                if found and block.count(b"\n") == 1:
                    name = names.get(line)
                    frames.append(Frame(self._learn(line) if name is None else name, data))
                    continue
            frame = _read_lines(block)
            if frame is not None:
                frames.append(frame)
        return frames

    def _within_limit(self, blocks: list[bytes]) -> list[bytes]:
        for index, block in enumerate(blocks):
            if len(block) > self._max_frame:
                self._refuse(blocks[:index])
                return blocks[:index]
        return blocks

    def _check_pending(self, blocks: list[bytes]) -> None:
        pending = self._pending
        if len(pending) - pending.endswith(b"\n") > self._max_frame:  # that LF may be half of the frame's end
            self._refuse(blocks)

    def _refuse(self, blocks: list[bytes]) -> None:
        """Raise now or, if there are frames before the large one, at the next call."""
        self._pending.clear()
        self._fault = FrameTooLarge(f"a frame is larger than {self._max_frame} bytes")
        if not self._read(blocks):
            raise self._fault

    def _learn(self, line: bytes) -> str:
        name = line[7:].decode("utf-8", "replace")
        if len(self._names) < _MAX_NAMES:
            self._names[line] = name
        return name


def _read_lines(block: bytes) -> Frame | None:
    event = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")  # a comment has an empty field name
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            event = value.removeprefix(b" ")
    return Frame(event.decode("utf-8", "replace"), b"\n".join(data)) if data else None


def frame(data: bytes, event: bytes = b"") -> bytes:
    """The bytes of one frame. Data of several lines becomes several `data:` lines."""
    if _LF in data or _CR in data:
        data = b"\ndata: ".join(_lines(data))
    if not event:
        return b"data: %b\n\n" % data
    if _LF in event or _CR in event:  # a name must not be able to smuggle in a field
        event = b" ".join(_lines(event))
    return b"event: %b\ndata: %b\n\n" % (event, data)


def _lines(data: bytes) -> list[bytes]:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
