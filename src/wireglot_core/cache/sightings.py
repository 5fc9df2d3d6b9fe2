"""Decides whether a body continues an earlier one: only then is it worth caching.

Caching a body costs one to three times as much as parsing it, and pays when it is sent again. A conversation
is; a template with other ids in it is not, nor is a document with a question. So a body is cached if most of
it, from its beginning and from its end, is equal to an earlier one, byte for byte, and has grown since. A
body that was sent twice unchanged is a repetition, not a conversation: it is cached the third time. Sightings
so old that the cache has evicted the body meanwhile do not count: nothing would be found.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from wireglot_core.wire.scan import fold

_FIRST_BYTES: Final = 4096
"""Size of the first piece on either side; each further one ends a quarter further."""
_HEAD_BYTES: Final = 256 * 1024
_TAIL_BYTES: Final = 128 * 1024
"""Maximum bytes compared from either side: hashing 100 KB takes a hundredth of a millisecond, or a
twentieth."""
_MAX_PIECES: Final = 8192
"""Pieces of bodies that are recognized when they are sent again: those of some 250 conversations of 100 KB,
in two megabytes."""
# Callers whose repeated bytes are counted at the same time.
_MAX_CALLERS: Final = 1024
_KEY_BITS: Final = 0xFFFF_FFFF_FFFF_FFFF


class Sightings:
    """Bodies are not stored, only hashes of their pieces: a collision would cost time and nothing else.
    Sightings are kept per caller."""

    __slots__ = ("_bytes", "_bytes_of", "_seen")

    def __init__(self) -> None:
        self._bytes = 0
        """Total bytes of all bodies so far."""
        self._bytes_of: dict[str, int] = {}
        """The same for each caller."""
        self._seen: OrderedDict[int, tuple[int, int, int]] = OrderedDict()
        """For each piece: the total bytes and the caller's bytes when it was last seen, and how often it was
        seen."""

    def pass_by(self, caller: str, size: int) -> tuple[int, int]:
        """Count a body of this size. Returns the total bytes so far, of all callers and of this one."""
        self._bytes += size
        own = self._bytes_of[caller] = self._bytes_of.get(caller, 0) + size
        if len(self._bytes_of) > _MAX_CALLERS:
            del self._bytes_of[
                next(iter(self._bytes_of))
            ]  # starts again: its sightings seem slightly more recent
        return self._bytes, own

    def comes_again(self, caller: str, body: bytes, *, within: int, within_own: int) -> bool:
        """Whether three fifths of a body were seen before, at most that many bytes (of all callers and of its
        own) ago."""
        now = self.pass_by(caller, len(body))
        since = now[0] - len(body) - within, now[1] - len(body) - within_own
        view = memoryview(body)
        head_key, tail_key = hash((caller, "head")) & _KEY_BITS, hash((caller, "tail")) & _KEY_BITS
        head, head_key = self._known(head_key, view, min(len(body), _HEAD_BYTES), now, since)
        tail, tail_key = self._known(tail_key, view, min(len(body), _TAIL_BYTES), now, since, from_end=True)
        times = self._look(hash((head_key, tail_key, len(body))), now, since)
        while len(self._seen) > _MAX_PIECES:
            self._seen.popitem(last=False)
        compared = min(len(body), _HEAD_BYTES + _TAIL_BYTES)
        return head > 0 and times != 1 and 5 * (head + tail) >= 3 * compared

    def _known(
        self,
        key: int,
        body: memoryview,
        reach: int,
        now: tuple[int, int],
        since: tuple[int, int],
        *,
        from_end: bool = False,
    ) -> tuple[int, int]:
        """The number of known bytes on one side, and the hash of all that was compared."""
        known, fits = 0, True
        start, end = 0, _FIRST_BYTES
        while end <= reach:
            piece = body[len(body) - end : len(body) - start] if from_end else body[start:end]
            key = fold(piece, key)  # a chain: equal only if everything before it is equal, too
            fits = self._look(key, now, since) > 0 and fits
            if fits:
                known = end
            start, end = end, end + end // 4
        return known, key

    def _look(self, key: int, now: tuple[int, int], since: tuple[int, int]) -> int:
        """How often the piece was seen recently enough; records it as seen now."""
        last, last_own, times = self._seen.pop(key, (-1, -1, 0))
        if last < since[0] or last_own < since[1]:
            times = 0
        self._seen[key] = (*now, times + 1)
        return times
