"""Undoing a content coding we did not ask for, without letting a small body become a huge one."""

from __future__ import annotations

import zlib
from typing import Final

from wireglot.http.transport import TransportFault

FREE_BYTES: Final = 1024 * 1024
RATIO: Final = 100
"""Beyond FREE_BYTES when decoded, a body may not be more than this many times what came over the wire."""

_STEP_BYTES: Final = 256 * 1024
_GZIP_BITS: Final = 16 + zlib.MAX_WBITS


def decoder_for(coding: str) -> Decoder | None:
    """None where the body is as it is. What we cannot undo is the server's fault: we asked for identity."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip"):
        return Decoder(gzip=True)
    if name == "deflate":
        return Decoder(gzip=False)
    raise TransportFault("protocol", "the upstream's answer has an encoding that was not asked for")


class Decoder:
    """gzip or deflate, piece by piece."""

    __slots__ = ("_consumed", "_gzip", "_inflate", "_produced")

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        # Servers send "deflate" with and without its zlib header: the first byte tells which.
        self._inflate = zlib.decompressobj(_GZIP_BITS) if gzip else None
        self._consumed = 0
        self._produced = 0

    def decode(self, data: bytes) -> bytes:
        self._consumed += len(data)
        try:
            return self._decode(data)
        except zlib.error as error:
            raise TransportFault("protocol", "the upstream's answer could not be decompressed") from error

    def _decode(self, data: bytes) -> bytes:
        if self._inflate is None:
            headed = data[0] & 0x0F == 8
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if headed else -zlib.MAX_WBITS)
        inflate = self._inflate
        pieces: list[bytes] = []
        while data:
            if inflate.eof:
                if not self._gzip:
                    raise zlib.error("bytes after the end")
                # gzip allows several members in a row.
                inflate = self._inflate = zlib.decompressobj(_GZIP_BITS)
            piece = inflate.decompress(data, _STEP_BYTES)
            pieces.append(piece)
            self._count(len(piece))
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        return b"".join(pieces)

    def _count(self, produced: int) -> None:
        self._produced += produced
        if self._produced > FREE_BYTES and self._produced > RATIO * self._consumed:
            raise TransportFault("too_large", "the upstream's answer grows too large when decompressed")

    def finish(self) -> None:
        """The body is over: was it whole?"""
        if self._consumed and not (self._inflate is not None and self._inflate.eof):
            raise TransportFault("broken", "the upstream's compressed answer ended too early")
