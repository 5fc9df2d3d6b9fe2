"""Whether a body comes again: only then is it worth remembering.

To remember a body costs as much as to read it once more, and pays when it is sent again. A conversation is; a
document that somebody asks about is not, although its system text or its tools may be. So a body comes again
where a good part of it, from its beginning on and from its end, stood at the same places of one before, and
where that is not so long ago that a memory would have forgotten it meanwhile: then nothing is ever found, and
all of it is paid for.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_FIRST_BYTES: Final = 4096
"""The first piece on either side; each further one ends twice as far."""
_LOOKED_AT_BYTES: Final = 512
"""Of each piece, all over it: to read it whole is much for no more than a guess, and of one place a template
with other words in it would be the same again."""
_REACH_BYTES: Final = 256 * 1024
"""So far from either side is looked."""
_PART: Final = 3
"""One of so many bytes must have come before: of pieces that double, the last one mostly does not fit."""
_PIECES_MOST: Final = 4096
"""Of some 400 conversations of 100 KB, more than are remembered: a megabyte."""
_CALLERS_MOST: Final = 1024


class Sightings:
    """Bodies themselves are not held, only what tells their pieces apart, and not all of a piece is looked
    at: a mistake would cost time, and nothing else. What one caller sent says nothing about what another
    sends."""

    __slots__ = ("_bytes", "_bytes_of", "_seen")

    def __init__(self) -> None:
        self._bytes = 0
        """Of all bodies so far."""
        self._bytes_of: dict[str, int] = {}
        """The same of each caller."""
        self._seen: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """When a piece came last: after so many bytes of all, and of its caller."""

    def pass_by(self, caller: str, size: int) -> tuple[int, int]:
        """A body of this size has come. How many bytes there were so far, of all and of its caller."""
        self._bytes += size
        own = self._bytes_of[caller] = self._bytes_of.get(caller, 0) + size
        if len(self._bytes_of) > _CALLERS_MOST:
            del self._bytes_of[next(iter(self._bytes_of))]  # begins anew: what it sent seems a little fresher
        return self._bytes, own

    def comes_again(self, caller: str, body: bytes, *, within: int, within_own: int) -> bool:
        """Whether much of it came before, no more than so many bytes of all and of its caller ago."""
        now = self.pass_by(caller, len(body))
        since, since_own = now[0] - len(body) - within, now[1] - len(body) - within_own
        known = 0
        for is_end in (False, True):
            fits = True
            start, end = 0, _FIRST_BYTES
            while end <= min(len(body), _REACH_BYTES):
                at = len(body) - end if is_end else start
                long = end - start
                key = hash((caller, is_end, end, body[at : at + long : long // _LOOKED_AT_BYTES]))
                last = self._seen.pop(key, None)
                self._seen[key] = now
                fits = fits and last is not None and last[0] >= since and last[1] >= since_own
                if fits:
                    known += end - start
                start, end = end, 2 * end
        while len(self._seen) > _PIECES_MOST:
            self._seen.popitem(last=False)
        return known * _PART >= min(len(body), _REACH_BYTES)
