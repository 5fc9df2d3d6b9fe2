"""Which exchanges are recorded and kept, how much of them there may be, and which rows are wanted."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.entry.callers import Caller
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.filters import parse_parameters
from wireglot.gateway.trace.pages import add_turn
from wireglot.gateway.trace.peers import PeerCommand
from wireglot.gateway.trace.policy import RecordingPolicy
from wireglot.gateway.trace.recording import Recording, Writer, recording_of
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.gateway.trace.traces import Traces
from wireglot.gateway.trace.wanted import Wanted, holds
from wireglot.http.application import Head
from wireglot.http.copies import PIECE_BYTES, MessageCopy, Room
from wireglot.stores.seal import Sealer
from wireglot_core.ir.loss import Loss
from wireglot_core.traces.trace import LossCounts, Row, Tokens, Trace, TraceMessage

HEAD = Head("POST", target="/v1/messages", path="/v1/messages", query="", headers={}, peer="127.0.0.1")
SERIOUS = Loss("$.tools[0]", "hosted_tool", "dropped")
HARMLESS = Loss("$.messages[0]", "content.empty", "dropped")


def incoming(trace: TraceSettings, caller: str = "ada", operation: Any = "generate") -> Incoming:
    return Incoming(Settings(trace=trace), HEAD, Asked("anthropic", operation), Caller(caller))


def record(**fields: Any) -> ExchangeRecord:
    return ExchangeRecord("req_1", 0.0, **{"model": "m1", "status": 200, **fields})


def test_the_losses_that_are_used_here_have_these_grades() -> None:
    assert (SERIOUS.grade, HARMLESS.grade) == ("serious", "harmless")


@rows(
    ("settings", "how", "kept"),
    [
        ({"mode": "off"}, {}, False),
        ({"mode": "all"}, {}, True),
        ({"mode": "all"}, {"outcome": "client_abort"}, True),
        ({"mode": "errors"}, {}, False),
        ({"mode": "errors"}, {"status": 399}, False),
        ({"mode": "errors"}, {"status": 400}, True),
        ({"mode": "errors"}, {"outcome": "error"}, True),
        ({"mode": "errors"}, {"outcome": "client_abort", "status": 500}, False),
        ({"mode": "errors"}, {"losses": [HARMLESS]}, False),
        ({"mode": "errors"}, {"losses": [HARMLESS, SERIOUS]}, True),
        ({"mode": "all", "routes": ("m2", "big-*")}, {}, False),
        ({"mode": "all", "routes": ("m2", "big-*")}, {"model": "m2"}, True),
        ({"mode": "all", "routes": ("m2", "big-*")}, {"model": "big-\none"}, True),
        ({"mode": "all", "routes": ("m2", "big-*")}, {"model": "xbig-one"}, False),
        ({"mode": "all", "routes": ("m.",)}, {"model": "m2"}, False),
        ({"mode": "all", "routes": ("*-a*-a*-a*-b",)}, {"model": "-a" * 100_000}, False),
    ],
)
def test_what_is_over_is_kept_as_the_settings_say(
    settings: dict[str, Any], how: dict[str, Any], kept: bool
) -> None:
    policy = RecordingPolicy(TraceSettings(**settings))
    assert policy.active is (settings["mode"] != "off")
    assert policy.keeps(record(**how)) is kept
    policy.record_until(time.time() + 60)
    assert policy.active
    assert policy.keeps(record(**how))


def test_what_begins_is_recorded_as_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = RecordingPolicy(TraceSettings())
    everything = TraceSettings(mode="all")
    assert policy.begins(incoming(everything))
    assert policy.begins(incoming(TraceSettings(mode="errors")))
    assert not policy.begins(incoming(TraceSettings()))
    for operation in ("compact", "count", "assist"):
        assert policy.begins(incoming(everything, operation=operation))
    for operation in ("models", "inspector", "health", "admin"):
        assert not policy.begins(incoming(everything, operation=operation))
    assert policy.begins(incoming(TraceSettings(mode="all", keys=("ada",))))
    assert not policy.begins(incoming(TraceSettings(mode="all", keys=("bob",))))
    half = incoming(TraceSettings(mode="all", sample=0.5))
    for drawn, begins in ((0.0, True), (0.49, True), (0.5, False), (0.99, False)):
        monkeypatch.setattr(random, "random", lambda drawn=drawn: drawn)
        assert policy.begins(half) is begins
        assert policy.begins(incoming(everything))
    policy.record_until(time.time() + 60)
    assert policy.begins(incoming(TraceSettings()))
    assert not policy.begins(incoming(TraceSettings(), operation="models"))


def test_an_order_from_before_counts_only_where_it_lasts_longer() -> None:
    now = time.time()
    policy = RecordingPolicy(TraceSettings())
    (standing,) = policy.standing()
    assert standing.record_until == 0.0
    policy.obey(PeerCommand(now), is_new=True)
    assert policy.until == 0.0
    policy.obey(PeerCommand(now, record_until=now - 10), is_new=False)
    assert not policy.active
    policy.obey(PeerCommand(now, record_until=now + 100), is_new=False)
    assert policy.until == now + 100
    policy.obey(PeerCommand(now, record_until=now + 50), is_new=False)
    assert policy.until == now + 100
    (standing,) = policy.standing()
    assert standing.record_until == now + 100
    policy.obey(PeerCommand(now, record_until=now + 50), is_new=True)
    assert policy.until == now + 50
    policy.obey(PeerCommand(now, record_until=0.0), is_new=True)
    assert policy.until == 0.0
    assert not policy.active


def test_anyone_who_starts_the_gateway_hears_what_is_recorded() -> None:
    policy = RecordingPolicy(TraceSettings())
    assert policy.announcement() == ""
    policy.adopt(TraceSettings(mode="all"))
    assert policy.announcement() == "bodies are recorded (trace.mode = all), sealed"
    policy.adopt(TraceSettings(mode="errors"))
    assert policy.announcement() == (
        "bodies of exchanges that fail are recorded (trace.mode = errors), sealed"
    )
    policy.record_until(time.time() + 15 * 60)
    assert policy.announcement() == (
        "all bodies are recorded for 15 minutes (--trace), without secrets, and sealed"
    )


# Bounds.


def unreported(level: str, event: str, **fields: Any) -> None:
    raise AssertionError(f"{event}: {fields}")


def recording(room: Room, body: bytes = b"{}") -> Recording:
    return recording_of(HEAD, body, record(begun=True), room, body_bytes=1 << 20)


def test_a_full_room_takes_no_byte_more() -> None:
    room = Room(350)
    first, second = MessageCopy(room, 1000), MessageCopy(room, 1000)
    first.add(b"x" * 100)
    second.add(b"y" * 51)
    assert (first.lost, second.lost, room.held) == (False, True, 200)
    second = MessageCopy(room, 1000)
    second.add(b"y" * 50)
    assert (second.lost, room.held) == (False, 350)
    first.let_go()
    assert room.held == 150


def test_what_may_be_shortened_is_held_whole_while_half_of_the_room_is_free() -> None:
    room = Room(4_000)
    whole = MessageCopy(room, 100, spare=1_000)
    for piece in (b"a" * 80, b"b" * 300, b"c" * 400):
        whole.add(piece)
    assert (whole.truncated, b"".join(data for _, data in whole.pieces)) == (
        False,
        b"a" * 80 + b"b" * 300 + b"c" * 400,
    )
    assert room.held == whole.held == 780 + 3 * PIECE_BYTES
    whole.add(b"d" * 400)  # too long for that, too: its beginning is kept
    assert (whole.truncated, whole.size) == (True, 1_180)
    assert b"".join(data for _, data in whole.pieces) == b"a" * 80 + b"b" * 20
    assert room.held == whole.held
    whole.let_go()
    assert room.held == 0
    room.held = 1_500
    full = MessageCopy(room, 100, spare=1_000)
    full.add(b"a" * 500)
    assert (full.truncated, full.lost, full.pieces[0][1]) == (True, False, b"a" * 100)
    stream = MessageCopy(Room(4_000), 100, spare=1_000, streamed=True)
    stream.add(b"a" * 500)
    assert stream.truncated


def test_a_writer_that_is_full_drops_what_comes_then() -> None:
    traces = Traces(Settings(trace=TraceSettings(mode="all")), Observer(Settings()), Sealer(b"s" * 32))
    begun, go = threading.Event(), threading.Event()

    def write(recording: Recording) -> None:
        begun.set()
        assert go.wait(DEADLINE_SECONDS)

    traces._writer = Writer(write, lambda recording: None, unreported, most=2)
    try:
        made = []
        for number in range(4):
            made.append(recording(traces.room))
            traces.over(made[number])
            traces.keep(made[number])
            if not number:
                assert begun.wait(DEADLINE_SECONDS)  # it is being written, and waits no more
        assert [each.record.recorded for each in made] == [True, True, True, False]
        assert traces.dropped == 1
        assert made[3].size == 0
    finally:
        go.set()
        traces._writer.close(DEADLINE_SECONDS)


def test_what_cannot_be_written_is_counted_and_reported_once() -> None:
    reported: list[str] = []
    through: list[Recording] = []

    def write(recording: Recording) -> None:
        raise OSError(28, "No space left on device")

    writer = Writer(write, through.append, lambda level, event, **fields: reported.append(fields["detail"]))
    for _ in range(3):
        writer.take(recording(Room(1 << 20)))
    assert writer.flush(DEADLINE_SECONDS)
    assert writer.failed == 3
    assert len(through) == 3
    assert reported == ["OSError: [Errno 28] No space left on device"]
    writer.close(DEADLINE_SECONDS)


def kept(id: str, at: float) -> Trace:
    return Trace(row=Row(id=id, at=at, key="k"), request=TraceMessage(body=id), answer=TraceMessage())


def test_not_one_recording_more_than_there_may_be_is_kept(tmp_path: Path) -> None:
    shelf = TraceShelf(tmp_path, Sealer(b"s" * 32), unreported)
    sizes = [shelf.put(kept(f"req_{number}", 1_800_000_000.0 + number)) for number in range(3)]
    settings = TraceSettings(keep_bytes=sizes[1] + sizes[2])
    now = 1_800_000_000.0 + 10
    assert shelf.sweep(settings, now) == settings.keep_bytes == shelf.bytes
    assert [each.id for each in shelf.listed()] == ["req_2", "req_1"]
    assert shelf.sweep(replace(settings, keep_bytes=settings.keep_bytes - 1), now) == sizes[2]
    assert [each.id for each in shelf.listed()] == ["req_2"]
    assert shelf.sweep(TraceSettings(keep_hours=11 / 3600), 1_800_000_000.0 + 13) == sizes[2]
    assert shelf.sweep(TraceSettings(keep_hours=11 / 3600), 1_800_000_000.0 + 14) == 0


def test_a_shelf_without_a_folder_makes_one_and_takes_it_away_again() -> None:
    shelf = TraceShelf(None, Sealer(b"s" * 32), unreported)
    assert shelf.listed() == []
    assert shelf.sweep(TraceSettings()) == shelf.bytes == 0
    shelf.put(kept("req_1", 1_800_000_000.0))
    folder = shelf.folder
    assert folder is not None
    assert folder.is_dir()
    assert [each.id for each in shelf.listed()] == ["req_1"]
    shelf.close()
    assert not folder.exists()


def test_a_shelf_with_a_folder_leaves_it(tmp_path: Path) -> None:
    shelf = TraceShelf(tmp_path, Sealer(b"s" * 32), unreported)
    shelf.put(kept("req_1", 1_800_000_000.0))
    shelf.close()
    assert [each.id for each in shelf.listed()] == ["req_1"]
    assert shelf.forget("another") == 0
    assert shelf.forget("k", 1_799_999_999.0) == 0
    assert shelf.forget("k", 1_800_000_000.0) == 1
    assert shelf.listed() == []


# Which rows are wanted.

ROW = Row(
    id="req_1",
    at=1000.0,
    state="failed",
    client="codex",
    agent="Codex/1.0",
    dialect="anthropic",
    key="ada",
    session="s1",
    asked="fast",
    provider="mine",
    model="m1",
    status=429,
    error="Slow down",
    losses=LossCounts(serious=0, degraded=2, harmless=1),
    features=["hosted_tool"],
)


@rows(
    ("given", "other"),
    [
        ({"client": "codex"}, {"client": "code"}),
        ({"dialect": "anthropic"}, {"dialect": "gemini"}),
        ({"model": "fast"}, {"model": "slow"}),
        ({"model": "m1"}, {"model": "m"}),
        ({"model": "mine/m1"}, {"model": "theirs/m1"}),
        ({"provider": "mine"}, {"provider": "m1"}),
        ({"key": "ada"}, {"key": "bob"}),
        ({"session": "s1"}, {"session": "s2"}),
        ({"status": "429"}, {"status": "428"}),
        ({"status": "4xx"}, {"status": "5xx"}),
        ({"status": "failed"}, {"status": "done"}),
        ({"loss": "any"}, {"loss": "serious"}),
        ({"loss": "degraded"}, {"loss": "refusal"}),
        ({"loss": "harmless"}, {"loss": "serious"}),
        ({"loss": "hosted_tool"}, {"loss": "hosted"}),
        ({"session": "S1"}, {"session": "s"}),
    ],
)
def test_a_row_is_wanted_by_each_parameter(given: dict[str, str], other: dict[str, str]) -> None:
    assert Wanted.of(parse_parameters(given, 0)).matches(ROW)
    assert not Wanted.of(parse_parameters(other, 0)).matches(ROW)


@rows(
    ("wanted", "other"),
    [
        ({"since": 1000.0}, {"since": 1000.5}),
        ({"until": 1000.5}, {"until": 1000.0}),
        ({"before": (1000.0, 1000.0, "req_2")}, {"before": (1000.0, 1000.0, "req_1")}),
        ({"before": (1000.1, 1000.1, "req_0")}, {"before": (999.9, 999.9, "req_2")}),
        ({"ids": ("req_0", "req_1")}, {"ids": ("req_0",)}),
        ({"only_key": "ada"}, {"only_key": "bob"}),
        ({"only_key": "ada", "only_since": 1000.0}, {"only_key": "ada", "only_since": 1000.5}),
        ({"only_key": None, "only_since": 2000.0}, {"only_key": "", "only_since": 0.0}),
    ],
)
def test_a_row_is_wanted_by_each_of_its_fields(wanted: dict[str, Any], other: dict[str, Any]) -> None:
    assert Wanted(**wanted).matches(ROW)
    assert not Wanted(**other).matches(ROW)


def test_a_row_without_losses_has_none_of_any_kind() -> None:
    bare = replace(ROW, losses=None, features=[])
    for loss in ("any", "serious", "harmless", "hosted_tool"):
        assert not Wanted.of(parse_parameters({"loss": loss}, 0)).matches(bare)


def test_a_page_has_the_newest_and_one_row_of_each_exchange() -> None:
    running = replace(ROW, state="running")
    older, newer = replace(ROW, id="req_0", at=999.0), replace(ROW, id="req_2", at=1000.0)
    assert Wanted().page([older, running, ROW, newer]) == [newer, ROW, older]
    assert Wanted().page([ROW, running]) == [ROW]
    assert Wanted(limit=2).page([older, ROW, newer]) == [newer, ROW]
    assert Wanted(limit=3).page([older, ROW, newer]) == [newer, ROW, older]


def test_a_search_looks_into_the_words_of_a_row() -> None:
    for text in ("req_1", "codex/1", "slow down", "ada", "s1", "fast", "mine", "hosted_tool", "anthropic"):
        assert holds(ROW, text), text
    assert not holds(ROW, "gemini")


def test_a_conversation_is_the_sum_of_its_turns() -> None:
    reported: dict[str, Any] = {}
    turns = (
        replace(ROW, at=1002.0, cost=3, tokens=Tokens(input=10, output=4), asked="newest"),
        replace(ROW, at=1001.0, state="done", losses=None, purpose="auxiliary", title="a side request"),
        replace(ROW, at=1003.0, state="done", cost=5, tokens=Tokens(input=1, output=2), title="last words"),
        replace(ROW, at=1000.0, state="done", losses=None, title="first words"),
    )
    for row in turns:
        add_turn(reported, row)
    assert reported == {
        "session": "s1", "key": "ada", "client": "codex", "model": "newest", "title": "last words", "turns": 4, "first_at": 1000.0,
        "last_at": 1003.0, "tokens": {"input": 11, "output": 6}, "cost": 8, "losses": 6, "serious": 0, "degraded": 4,
        "harmless": 2, "failed": 1,
    }  # fmt: skip
    free: dict[str, Any] = {}
    add_turn(free, ROW)
    assert free["cost"] is None
