"""Exchanges that run are looked at: both requests at once, both streams as they grow, and what is waited for."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, provider, start
from tests.gateway.trace.trace_kit import Document, Stage, stage, text_of
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace import growing
from wireglot.gateway.trace.growing import GrowingTraces
from wireglot.gateway.trace.recording import Recording, recording_of
from wireglot.gateway.trace.rows import facts_of, row_of
from wireglot.http.application import Head
from wireglot.http.copies import Room
from wireglot.http.redaction import Redactor
from wireglot.testing.scripted_upstream import Behaviour

A, C = BY_NAME["anthropic"], BY_NAME["openai-chat"]
MIB = 1 << 20


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Stage]:
    with stage('mode = "off"', memory=8 * MIB) as made:
        yield made


def running(made: Stage, model: str) -> Document:
    return wait_until(lambda: next(iter(made.look.rows(f"model={model}&status=running")), None))


def grown(made: Stage, id: str, cursor: str = "") -> Document:
    return made.look.get(f"exchanges/{id}/running?cursor={cursor}")


def test_both_requests_are_there_at_once_and_the_streams_as_they_grow(in_memory: Stage) -> None:
    gate = threading.Event()
    in_memory.upstream.next(Behaviour(gate=gate, after=2))
    call = start(in_memory.gateway, A, "gemini-up/grows", "Watch upstream-key-0123456789 grow", stream=True)
    call.until(b"content_block_delta")
    row = running(in_memory, "gemini-up/grows")
    assert row["title"] == "Watch [redacted] grow"
    id = row["id"]
    first = wait_until(lambda: found if (found := grown(in_memory, id)).get("answer") else None)
    assert first["row"]["waits_for"] == "next event"
    assert first["row"]["title"] == row["title"]
    assert "messages" in first["request"]["body"]
    (attempt,) = first["attempts"]
    assert "contents" in attempt["request"]["body"]
    assert len(attempt["answer"]["frames"]) >= 1
    assert "content_block_delta" in text_of(first["answer"])
    assert first["steps"][-1]["name"] == "events"
    again = grown(in_memory, id, first["cursor"])
    assert "request" not in again
    assert not again["answer"].get("frames")
    assert "request" not in again["attempts"][0]
    gate.set()
    call.rest()
    row = in_memory.look.over(id)
    assert row["state"] == "done"
    over = grown(in_memory, id, first["cursor"])
    assert set(over) == {"row"}
    shown = text_of(in_memory.look.trace(id)["answer"])
    assert shown.startswith(text_of(first["answer"]))


@rows("waits", ["first byte", "retry"])
def test_one_that_hangs_says_what_it_waits_for(waits: str) -> None:
    gate, retry = threading.Event(), "retry = {retries = 1}\n"
    behaviour = Behaviour(gate=gate) if waits == "first byte" else Behaviour(error=503, retry_after=3)
    with stage('mode = "off"', lambda up: provider("slow", up, "gemini", retry), memory=MIB) as made:
        made.upstream.next(behaviour)
        call = start(made.gateway, C, "slow/waits")

        def waiting() -> Document | None:
            row = running(made, "slow/waits")
            return row if row.get("waits_for") == waits else None

        row = wait_until(waiting)
        assert (waits == "retry") == (row.get("waits_until", 0) > time.time())
        shown = grown(made, row["id"])
        assert shown["steps"][-1]["name"] == {"retry": "retry wait"}.get(waits, waits)
        assert "contents" in shown["attempts"][0]["request"]["body"]
        call.leave(reset=True)
        gate.set()


def test_without_a_recording_a_running_one_has_its_row_alone() -> None:
    gate = threading.Event()
    with stage('mode = "off"') as made:
        made.upstream.next(Behaviour(gate=gate, after=1))
        call = start(made.gateway, A, "gemini-up/plain", stream=True)
        row = running(made, "gemini-up/plain")
        assert not row.get("title")
        assert set(grown(made, row["id"])) == {"row"}
        gate.set()
        call.rest()


KEY = "sk-live-0123456789abcdefghij"


def recording(streamed: bool = True) -> Recording:
    head = Head("POST", target="/v1/messages", path="/v1/messages", query="", headers={}, peer="")
    made = recording_of(head, b"{}", ExchangeRecord("req_1", time.monotonic()), Room(64 * MIB), 16 * MIB)
    made.answer.status, made.answer.streamed = 200, streamed
    made.answer.headers = [("content-type", "text/event-stream")]
    return made


def event(text: str) -> bytes:
    return b'data: {"delta":{"text":"%b"}}\n\n' % text.encode()


class Page:
    """Follows what a recording's answer comes to."""

    def __init__(self, made: Recording, secret: str = "") -> None:
        self.growing = GrowingTraces(lambda: Redactor({secret}))
        self.made = made
        self.cursor = ""
        self.frames: list[str] = []

    def look(self) -> bool:
        """Whether there is more already."""
        row = row_of(facts_of(self.made.record), "w")
        found = asyncio.run(self.growing.since(self.made, row, self.cursor))
        assert found.answer is not None
        self.frames += [frame.data for frame in found.answer.frames]
        self.cursor = found.cursor
        return found.more


@rows("size", [1, 3, 5, 8])
def test_no_beginning_of_a_secret_is_shown_while_it_comes(size: int) -> None:
    """One letter less would be enough to guess it."""
    for secret in (KEY, "hunter2xyz"):
        made = recording()
        page = Page(made, secret)
        words, said = f"the word is {secret}. And it goes on", ""
        for at in range(0, len(words), size):
            made.answer.add(event(words[at : at + size]))
            page.look()
            said = "".join(part.partition('"')[0] for part in "".join(page.frames).split('"text":"')[1:])
            assert secret[:5] not in said, said
        assert "goes o" in said


@rows("name", ["Authorization: Bearer ", "api_key=", "see https://host/?token="])
def test_the_value_of_a_credential_that_is_named_is_not_shown_piece_by_piece(name: str) -> None:
    """Nobody knows it; only its name says what it is."""
    made = recording()
    page = Page(made, KEY)
    words = f"say {name}qwertyuiopasdfghjkl and go on"
    for at in range(0, len(words), 3):
        made.answer.add(event(words[at : at + 3]))
        page.look()
    said = "".join(part.partition('"')[0] for part in "".join(page.frames).split('"text":"')[1:])
    assert said == f"say {name}[redacted] and go on"


def test_the_beginning_of_a_secret_behind_much_that_is_new_is_held_back_too() -> None:
    """Somebody begins to look when there is much already."""
    for secret in (KEY, "hunter2xyz"):
        made = recording()
        page = Page(made, secret)
        for text in (*["x" * 1000] * 100, f"the word is {secret[:9]}"):
            made.answer.add(event(text))
        page.look()
        assert len(page.frames) == 100
        for at in range(9, len(secret), 9):
            made.answer.add(event(secret[at : at + 9]))
        made.answer.add(event(". And it goes on"))
        page.look()
        assert secret[:5] not in "".join(page.frames)
        assert '"the word is [redacted]. And it goes on"' in "".join(page.frames)


def test_a_secret_that_goes_over_pieces_of_one_event_is_gone() -> None:
    made = recording()
    page = Page(made, KEY)
    whole = event(f"a {KEY} b")
    for at in range(0, len(whole), 7):
        made.answer.add(whole[at : at + 7])
        page.look()
    assert KEY not in "".join(page.frames)
    assert '"a [redacted] b"' in "".join(page.frames)


def test_a_long_stream_comes_in_parts() -> None:
    made = recording()
    for number in range(3000):
        made.answer.add(event(f"{number} " + "x" * 1000))
    page, sizes = Page(made), [0]
    more = True
    while more:
        more = page.look()
        sizes.append(len(page.frames))
    assert sizes[-1] == 3000
    assert max(after - before for before, after in pairwise(sizes)) < 1000


def test_no_event_is_shown_twice_where_more_are_followed_than_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(growing, "MAX_LOOKED_AT", 1)
    held = GrowingTraces(Redactor)
    pages = [Page(recording()), Page(recording())]
    for number, page in enumerate(pages):
        page.growing, page.made.record.id = held, f"req_{number}"
        for text in range(1500):
            page.made.answer.add(event(f"{text} " + "x" * 1000))
    for _ in range(2):
        while pages[0].look():
            pass
        pages[1].look()
        pages[0].made.answer.add(event("last"))
    while pages[0].look():
        pass
    said = [frame.partition('"text":"')[2].split('"')[0].split()[0] for frame in pages[0].frames]
    assert said == [*map(str, range(1500)), "last", "last"]


def test_a_cursor_that_is_none_begins_anew() -> None:
    made = recording()
    made.answer.add(event("one"))
    page = Page(made)
    for cursor in ("", "x", "1.1", "-1.0.0", "1.1.1.1", "9" * 40):
        page.cursor = cursor
        page.frames = []
        page.look()
        assert page.frames == [event("one").decode()]
