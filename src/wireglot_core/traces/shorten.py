"""Shortens a JSON text: its longest strings are cut; its form, its other values and its end are kept."""

from __future__ import annotations

import re
from typing import Final

KEPT_BYTES: Final = (16 * 1024, 4 * 1024, 1024, 256)
"""Bytes that are kept of a string that is cut: fewer where the body is still too long. Shorter ones are never
cut."""
MAX_STEPS: Final = 1_000_000
"""Quotes that are looked at in one body. Each is a step of Python, between which other threads run: a body of
more is cut at its end instead."""
MARK: Final = b" [... %d bytes left out]"
_MARK_BYTES: Final = len(MARK) + 16
"""And a string that is not longer than what would be written in its place is not worth cutting."""

_ENCODED: Final = re.compile(rb"(?:data:[a-z0-9.+/;=-]{0,100},)?[A-Za-z0-9+/_=-]++")
"""How base64 begins. Its end is not looked at: a picture may have millions of characters."""
_LOOKED_AT: Final = 1024
_PIECES: Final = re.compile(rb"(?:[^\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+")
_HALF_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


def shortened(data: bytes, most: int) -> tuple[bytes, int] | None:
    """The text in `most` bytes, and the number of strings that were cut: base64 first, then the longest.
    None: that does not suffice, or it is no JSON."""
    excess = len(data) - most
    if excess <= 0:
        return data, 0
    found = _long_strings(data)
    if found is None:
        return None
    cuts: dict[int, tuple[int, int, bytes]] = {}
    for kept in KEPT_BYTES:
        for encoded, begin, end in found:
            if end - begin <= kept + _MARK_BYTES:
                continue
            if begin in cuts:
                excess += _saved(cuts[begin])
            cuts[begin] = _cut(data, begin, end, kept, encoded=encoded)
            excess -= _saved(cuts[begin])
            if excess <= 0:
                return _without(data, cuts), len(cuts)
    return None


def _saved(cut: tuple[int, int, bytes]) -> int:
    begin, end, mark = cut
    return end - begin - len(mark)


def _without(data: bytes, cuts: dict[int, tuple[int, int, bytes]]) -> bytes:
    pieces, at = [], 0
    for _, (begin, end, mark) in sorted(cuts.items()):
        pieces += [data[at:begin], mark]
        at = end
    return b"".join([*pieces, data[at:]])


def _long_strings(data: bytes) -> list[tuple[bool, int, int]] | None:
    """Strings that may be cut, in the order in which they are: whether one is base64, and where it begins and
    ends, without its quotes. None: there are too many, or one without an end."""
    found: list[tuple[bool, int, int]] = []
    begin, at = -1, 0
    for _ in range(MAX_STEPS):
        quote = data.find(b'"', at)
        if quote < 0:
            break
        at = quote + 1
        if begin < 0:
            begin = at
        elif not _is_escaped(data, begin, quote):
            if quote - begin > KEPT_BYTES[-1] + _MARK_BYTES:
                found.append((_is_encoded(data, begin, quote), begin, quote))
            begin = -1
    else:
        return None
    return sorted(found, key=lambda each: (not each[0], each[1] - each[2])) if begin < 0 else None


def _is_escaped(data: bytes, begin: int, quote: int) -> bool:
    window = 64
    while True:
        before = data[max(begin, quote - window) : quote]
        run = len(before) - len(before.rstrip(b"\\"))
        if run < window:
            return bool(run % 2)
        window *= 2


def _is_encoded(data: bytes, begin: int, end: int) -> bool:
    head = data[begin : min(end, begin + _LOOKED_AT)]
    return _ENCODED.fullmatch(head) is not None


def _cut(data: bytes, begin: int, end: int, kept: int, *, encoded: bool) -> tuple[int, int, bytes]:
    """Where the part that is left out begins and ends, and what is written in its place. Base64 stays base64:
    whole groups of four, without a mark."""
    if encoded:
        comma = data.find(b",", begin, begin + _LOOKED_AT) + 1 or begin
        return comma + (kept - (comma - begin)) // 4 * 4, end, b""
    pieces = _PIECES.match(data, begin, begin + kept)
    stop = pieces.end() if pieces is not None else begin
    while stop > begin and data[stop] & 0xC0 == 0x80:  # within a character of UTF-8
        stop -= 1
    if _HALF_PAIR.search(data[max(begin, stop - 6) : stop]):
        stop -= 6
    return stop, end, MARK % (end - stop)
