"""Recorded traffic: searched for secrets, cut into events, and read for display."""

from __future__ import annotations

from typing import Any

from tests.laws.bounded import Row
from wireglot.gateway.trace.growing import _Frames
from wireglot.gateway.trace.made_trace import Scrubber, clean_events, open_events
from wireglot.http.copies import MessageCopy, Room
from wireglot.http.redaction import Redactor
from wireglot_core.traces.bodies import MAX_CONTAINERS, is_tangled
from wireglot_core.traces.diff import differences, sides
from wireglot_core.traces.trace import Link, TracedLoss

Body = dict[str, Any]

SCRUBBER = Scrubber(Redactor(["a-very-secret-word"]), [], "/")


def pieces(data: bytes) -> list[tuple[float, bytes]]:
    return [(0.0, event + b"\n\n") for event in data.split(b"\n\n")]


def events(data: bytes) -> list[tuple[float, bytes]]:
    return clean_events(pieces(data), SCRUBBER)


def still_open(data: bytes) -> int:
    return open_events(pieces(data), SCRUBBER)


def laid_beside(n: int) -> tuple[Body, Body, list[Link], list[TracedLoss]]:
    body = {"messages": [{"content": str(number)} for number in range(n)]}
    places = [f"/messages/{number}/content" for number in range(n)]
    losses = [
        TracedLoss(
            feature="image", action="dropped", grade="serious", document="request", path="$", pointer=place
        )
        for place in places
    ]
    return (
        body,
        {**body, **{f"x{number}": 1 for number in range(n)}},
        [Link(place, place) for place in places],
        losses,
    )


def watched(pieces: list[bytes]) -> object:
    """An event in many pieces, in the live view."""
    side = MessageCopy(Room(1 << 30), 1 << 30, headers=[("content-type", "text/event-stream")])
    side.pieces.extend((0.0, piece) for piece in pieces)
    frames = _Frames()
    frames.grow(side, SCRUBBER, 0.0)
    return frames.frames


def compared(pair: tuple[Body, Body]) -> object:
    return differences(*pair)


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
    Row("links and losses of a request", laid_beside, lambda four: sides(*four), n=200),
    Row("documents that differ", lambda n: ({"a": list(range(n))}, {"a": list(range(n, 0, -1))}), compared),
    Row("an event in pieces of one byte", lambda n: [b"data: x", *[b"x"] * n, b"\n\n"], watched, n=20_000),
    Row("unclosed strings", lambda n: b"[" * (MAX_CONTAINERS + 1) + b'\\"W' * n, is_tangled, n=4000),
]
