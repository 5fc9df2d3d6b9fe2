"""What recording costs: steps that do not grow with a body's letters, and memory that is counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.trace.made_trace import Scrubber
from wireglot.gateway.trace.recording import Recording, recording_of
from wireglot.http.application import Head
from wireglot.http.copies import Room
from wireglot.http.redaction import Redactor
from wireglot.http.transport import Outbound
from wireglot_core.dialects.context import Context
from wireglot_core.ir.request import Request

SECRET = "the secret of a benchmark"
TEXT = b"the secretary has a table[key] of it. " + b"A line that says something else entirely. " * 20
BODY = b'{"messages": [{"role": "user", "content": "' + TEXT * 120 + b'"}]}'


def lines(work: Callable[[], object]) -> int:
    """How many lines of Python it runs."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_words_that_a_secret_shares_with_a_body_cost_their_own_places_only() -> None:
    """100 KB with a secret's words in it again and again: once every letter was gone through."""
    scrub = Scrubber(
        Redactor([SECRET]), [("authorization", "Bearer wg-client-key-0815")], "/v1/messages", BODY
    )
    assert len(BODY) > 100_000
    assert scrub.data(BODY) is BODY
    assert lines(lambda: scrub.data(BODY)) < len(BODY) // 10


def recording(room: Room) -> Recording:
    head = Head("POST", target="/v1/messages", path="/v1/messages", query="", headers={}, peer="127.0.0.1")
    return recording_of(head, b"{}", ExchangeRecord("req_1", 0.0), room, body_bytes=1 << 20)


def prepared(body: bytes) -> Prepared:
    outbound = Outbound("POST", "http://up/v1", [], body)
    return Prepared(outbound=outbound, stream=False, raw=False, context=Context())


def test_a_recording_holds_bytes_and_not_what_they_were_made_of() -> None:
    made, held = recording(Room(1 << 20)), prepared(b"{}")
    before = sys.getrefcount(held)
    made.asking(None, held, None)  # type: ignore[arg-type]  # nothing is asked of what is left out
    assert sys.getrefcount(held) == before


@pytest.mark.parametrize("differs", [False, True])
def test_what_was_translated_is_counted_where_it_is_held(differs: bool) -> None:
    room = Room(1 << 20)
    made = recording(room)
    before = room.held
    made.asking(None, prepared(b"x" * 1000), Request(model="m", messages=()) if differs else None)  # type: ignore[arg-type]  # nothing is asked of what is left out
    assert (room.held - before) // 1000 == 1 + 4 * differs
    made.let_go()
    assert room.held == 0
    assert made.attempts[0].differing is None
