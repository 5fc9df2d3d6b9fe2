"""Recorded traffic: searched for secrets, cut into events, and read for display."""

from __future__ import annotations

from tests.laws.bounded import Row
from wireglot.gateway.trace.made_trace import Scrubber, clean_events, open_events
from wireglot.http.redaction import Redactor
from wireglot.traces.bodies import MAX_CONTAINERS, is_tangled

SCRUBBER = Scrubber(Redactor(["a-very-secret-word"]), [], "/")


def pieces(data: bytes) -> list[tuple[float, bytes]]:
    return [(0.0, event + b"\n\n") for event in data.split(b"\n\n")]


def events(data: bytes) -> list[tuple[float, bytes]]:
    return clean_events(pieces(data), SCRUBBER)


def still_open(data: bytes) -> int:
    return open_events(pieces(data), SCRUBBER)


DELTA = b'data: {"choices":[{"index":0,"delta":{"content":"sk-"}}]}\n\n'

ROWS = [
    Row("backslashes before an escape", lambda n: b"\\" * n + b"u00", SCRUBBER.data, n=2000),
    Row("escapes of a slash", lambda n: b"\\\\\\/" * n, SCRUBBER.data),
    Row("beginnings of keys", lambda n: b"sk-" * n + b" ", Redactor().data),
    Row("beginnings of keys that stay open", lambda n: b"sk-" * n + b" ", Redactor().open_end),
    Row("names of credentials", lambda n: b"authorization: bearer   " * n, Redactor().data),
    Row("an event that is no JSON", lambda n: b'data: {"a": ' + b'\\"W' * n, events),
    Row("quotes before a last backslash", lambda n: b'\\"W' * n + b"\\", events),
    Row("many events", lambda n: DELTA * n, events, n=200),
    Row("many events with the beginning of a key", lambda n: DELTA * n, still_open, n=200),
    Row("unclosed strings", lambda n: b"[" * (MAX_CONTAINERS + 1) + b'\\"W' * n, is_tangled, n=4000),
]
