"""What the scripted upstream does with a request, well or badly, and what it remembers of it."""

from __future__ import annotations

import threading
from typing import Any, Literal, get_args

import msgspec

from wireglot.wire.json import decode

Fault = Literal[
    "",
    # before the head of an answer
    "close",
    "reset",
    "stall",
    "garbage",
    "interim-flood",
    "huge-headers",
    # another answer than the one expected
    "redirect",
    "html",
    "empty",
    "wrong-type",
    "truncated-json",
    "json-for-stream",
    "gzip",
    # at the level of bytes
    "byte-chunks",
    "unframed",
    "short-body",
    # in the middle, after `after` pieces (none given: half way)
    "close-midstream",
    "reset-midstream",
    "stall-midstream",
    "no-terminal",
    "half-event",
    "bad-json",
    "error-first",
    "error-midstream",
    "endless-line",
]
"""
close, reset: the connection ends with FIN or RST before a byte of the answer, after the request was read.
stall: no byte until the peer leaves. garbage: no HTTP. interim-flood: `size` times `100 Continue`.
huge-headers: a header of `size` bytes. redirect: 307 to `location`. html: 200 with a page.
empty: 200 without body. wrong-type: the answer under `text/plain`. truncated-json: half the document, framed
as if it were whole. json-for-stream: the whole document although a stream was asked for. gzip: the answer
compressed, unasked. byte-chunks: each byte in a chunk and a write of its own. unframed: no length, the close
ends it. short-body: fewer bytes than the length says. no-terminal: the stream ends properly, but for its last
event. half-event: it ends inside an event. bad-json: one event is no JSON. error-first, error-midstream: the
dialect's own error event. endless-line: `size` bytes of an event that never ends.
"""

FAULTS: tuple[Fault, ...] = get_args(Fault)

_ENDLESS = 40 * 1024 * 1024
_USUAL_SIZES: dict[Fault, int] = {"interim-flood": 1_000, "huge-headers": 64 * 1024, "endless-line": _ENDLESS}


class Behaviour(msgspec.Struct, frozen=True, kw_only=True):
    """By default the demo model's answer in the dialect of the path, as a provider would send it.

    `error` answers with that status in the dialect. `pieces` is a body of the test's own, sent chunked, one
    write each; `body` one with a length; both under `status` and `headers`. `delay` (seconds) comes before
    the head, `gap` between two pieces. `gate` is waited for: before the head, or with `after` (and no fault)
    once so many pieces are sent.
    """

    fault: Fault = ""
    error: int = 0
    retry_after: float | None = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    pieces: tuple[bytes, ...] | None = None
    delay: float = 0.0
    gap: float | None = None
    gate: threading.Event | None = None
    after: int | None = None
    size: int = 0
    location: str = ""
    close: bool = False
    """End the connection after a good answer."""

    @property
    def amount(self) -> int:
        return self.size or _USUAL_SIZES.get(self.fault, 0)


class Recorded(msgspec.Struct, eq=False):
    """A request as it arrived. Header names are in lower case; a repeated header is joined with ", "."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Which connection brought it, counted from 1: the same number means the connection was kept."""
    raw: bytes = b""
    """The head as it came, with the case and order of its headers."""
    done: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when its answer has been sent, or given up."""
    abandoned: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when the peer left before the answer was complete."""

    @property
    def json(self) -> Any:
        return decode(self.body)
