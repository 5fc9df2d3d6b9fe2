"""The file of one trace: JSON that can be read, attached to a report, and replayed.

Traces may come from elsewhere: they are limited in size, validated against the data types, and never
evaluated.
"""

from __future__ import annotations

import gzip
import re
import zlib
from typing import Final, TypeVar

import msgspec

from wireglot_core.traces.trace import FORMAT, Trace

T = TypeVar("T")

SUFFIX: Final = ".wgtrace.json"
MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of an exported exchange as JSON, compressed or not. It has four bodies, each limited when it is
recorded."""

# The cost of an exchange in a file of traces, in millionths of a currency.
_MAX_COST: Final = 2**63
_GZIP: Final = b"\x1f\x8b"
_KIND: Final = FORMAT.rpartition("/")[0]
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LATEST: Final = 1e10
_PLACE: Final = re.compile(r" - at `\$\.?([^`]*)`$")


class BadTrace(ValueError):
    """The file is not a valid trace; the message is for users."""


def write_trace(trace: Trace, *, packed: bool = False) -> bytes:
    """Serialize a trace. The same trace gives the same bytes, also when compressed."""
    text = msgspec.json.format(msgspec.json.encode(trace), indent=1) + b"\n"
    return gzip.compress(text, mtime=0) if packed else text


def read_trace(data: bytes) -> Trace:
    """Parse a trace. Raises BadTrace, which names the field and what was expected."""
    text = _unpacked(data)
    head = _decoded(text, _HEAD)
    if head.format != FORMAT:
        raise BadTrace(_unknown(head))
    trace = _decoded(text, _TRACE)
    if not _ID.fullmatch(trace.row.id):  # it is used in URLs and file names
        raise BadTrace("row.id: expected at most 64 letters, digits, hyphens and underscores")
    if not 0 <= trace.row.at < _LATEST:
        raise BadTrace("row.at: expected seconds since 1970")
    if trace.row.cost is not None and abs(trace.row.cost) > _MAX_COST:
        raise BadTrace("row.cost: expected millionths of a currency")
    return trace


def _decoded(text: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as fault:
        raise BadTrace(_reported(fault)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise BadTrace(f"expected the JSON of an exported trace: {fault}") from None
    except RecursionError:
        raise BadTrace("expected the JSON of an exported trace: it is nested too deeply") from None


class _Head(msgspec.Struct, frozen=True):
    format: str = ""
    version: str = ""


_HEAD: Final = msgspec.json.Decoder(_Head)
_TRACE: Final = msgspec.json.Decoder(Trace)


def _unpacked(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        if len(data) > MAX_BYTES:
            raise BadTrace(f"expected at most {MAX_BYTES // 1024 // 1024} MB")
        return data
    unpack = zlib.decompressobj(wbits=31)
    try:
        text = unpack.decompress(data, MAX_BYTES)
    except zlib.error as fault:
        raise BadTrace(f"expected a gzip file: {fault}") from None
    if unpack.unconsumed_tail:
        raise BadTrace(f"expected at most {MAX_BYTES // 1024 // 1024} MB once it is unpacked")
    if not unpack.eof:
        raise BadTrace("expected a whole gzip file: it ends too early")
    return text


def _unknown(head: _Head) -> str:
    kind, _, number = head.format.rpartition("/")
    if kind == _KIND and number.isdecimal():
        by = f" by wireglot {head.version[:40]}" if head.version else ""
        return f"format: expected {FORMAT}, got {head.format[:40]}, written{by}: get a newer wireglot"
    return f"format: expected {FORMAT}: this is no exported trace"


def _reported(fault: msgspec.ValidationError) -> str:
    text = str(fault)
    found = _PLACE.search(text)
    if found is None:
        return f"expected an exported trace: {text}"
    return f"{found[1] or 'the file'}: {text[: found.start()]}"
