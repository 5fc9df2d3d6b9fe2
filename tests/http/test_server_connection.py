"""Connections without sockets, on a clock of the tests' own: limits of time and size, to the byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.http.limits_kit import Limits
from tests.http.server_kit import PLAIN, FakeApp, Recorder, connect, get, post
from tests.tiers import rows
from wireglot.http.account import ByteAccount
from wireglot.http.application import Head, Refusal, Reply, Upgrade
from wireglot.http.server.connection import Backlog, Hub, ServerConnection, ServerReply

LIMITS = Limits()
KIB = 1024


class Loop:
    """The running loop, but for its clock."""

    def __init__(self, real: asyncio.AbstractEventLoop) -> None:
        self.real = real
        self.now = 1000.0

    def time(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class Transport(Recorder):
    """`pending`: bytes that its client has not taken."""

    pending = 0

    def get_write_buffer_size(self) -> int:
        return self.pending


class Stage:
    """A hub, and one connection to it."""

    def __init__(self, handler: Any = None, limits: Limits = LIMITS, **given: Any) -> None:
        self.app = FakeApp(handler or _wait_for_ever, limit=1 << 22)
        self.refusals: list[tuple[str, str]] = []
        self.hub = Hub(self.app, limits, on_refusal=lambda *each: self.refusals.append(each), **given)
        self.hub.open()
        self.loop = Loop(self.hub.loop)
        self.hub.loop = cast(Any, self.loop)
        self.connection = ServerConnection(self.hub)
        self.transport = Transport()
        self.connection.connection_made(self.transport)

    async def take(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.data_received(piece)
            for _ in range(3):
                await asyncio.sleep(0)

    def sweep(self, seconds: float) -> None:
        """After some time from now."""
        self.connection.sweep(self.loop.now + seconds, self.hub.limits)

    @property
    def written(self) -> bytes:
        return b"".join(self.transport.writes)

    @property
    def is_over(self) -> bool:
        return self.transport.is_closing() or b"EOF" in self.transport.writes


async def _wait_for_ever(head: Head, body: bytes, reply: Reply) -> None:
    await asyncio.Event().wait()


async def _answer(head: Head, body: bytes, reply: Reply) -> None:
    reply.send(200, PLAIN, b"ok")


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await scenario()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    asyncio.run(run())


# --- time

CASES: dict[str, tuple[list[bytes], float, bytes]] = {
    "an idle connection": ([], 75.0, b""),
    "a head": ([b"GET / HT"], 10.0, b"408"),
    "a body that stalls": ([post("/", b"body")[:-1]], 30.0, b"408"),
    "a refused body": ([post("/no", b"body")[:-1]], 30.0, b""),
    "a client that lingers": ([b"hello\r\n\r\n"], 2.0, b""),
    "a client far ahead": ([get("/"), b"x" * (64 * KIB + 1)], 1.0, b""),
}


@rows("name", CASES)
def test_each_wait_has_its_limit(name):
    pieces, limit, status = CASES[name]

    async def scenario() -> None:
        stage = Stage()
        stage.app.refusals["/no"] = Refusal(404, PLAIN, b"")
        await stage.take(*pieces)
        before = list(stage.transport.writes)
        stage.sweep(limit)
        assert stage.transport.writes == before
        assert not stage.transport.is_closing()
        stage.sweep(limit + 0.001)
        assert stage.is_over
        assert stage.transport.is_closing() or status
        assert status in b"".join(stage.transport.writes[len(before) :])

    play(scenario)


def test_a_request_that_runs_and_an_idle_connection_that_is_not_read_are_left_alone():
    async def scenario() -> None:
        stage = Stage()
        await stage.take(get("/"), b"x" * 64 * KIB)
        stage.sweep(10_000)
        assert not stage.is_over
        idle = Stage()
        idle.transport.pending = 5
        idle.sweep(1)  # seen for the first time
        idle.sweep(59)
        assert not idle.is_over

    play(scenario)


def test_the_time_for_a_head_begins_with_its_first_byte_and_that_of_a_connection_with_its_last_answer():
    async def scenario() -> None:
        stage = Stage(_answer)
        stage.loop.now += 70
        await stage.take(b"GET / HTTP/1.1\r\nHost: a\r\n")
        stage.loop.now += 9
        await stage.take(b"A: b\r\n")
        stage.sweep(1)
        assert not stage.is_over
        stage.loop.now += 2
        await stage.take(b"\r\n")
        assert stage.written.startswith(b"HTTP/1.1 200")
        stage.sweep(75)
        assert not stage.is_over
        stage.sweep(75.1)
        assert stage.transport.closed

    play(scenario)


def test_a_body_may_take_as_long_as_it_goes_on_at_a_kilobyte_a_second():
    for have, fine in ((121 * KIB, True), (121 * KIB - 1, False)):

        async def scenario(have: int = have, fine: bool = fine) -> None:
            stage = Stage()
            await stage.take(post("/", b"x" * (1 << 20))[: -(1 << 20)])
            stage.loop.now += 121
            await stage.take(b"x" * have)
            stage.sweep(0)
            assert stage.is_over is not fine
            assert (b"stalled" in stage.written) is not fine

        play(scenario)


def test_for_two_minutes_a_body_may_be_slower():
    async def scenario() -> None:
        stage = Stage()
        await stage.take(post("/", b"x" * 1000)[:-1000])
        for _ in range(12):
            stage.loop.now += 10
            await stage.take(b"x")
            stage.sweep(0)
            assert not stage.is_over
        stage.loop.now += 1
        await stage.take(b"x")
        stage.sweep(0)
        assert b"stalled" in stage.written

    play(scenario)


def test_a_client_that_takes_nothing_for_a_minute_is_cut_off():
    async def scenario() -> None:
        stage = Stage(limits=Limits(write_pending=100))
        stage.connection.write(b"x" * 1000)
        stage.transport.pending = 1000
        cut: list[bool] = []
        for seconds, pending in ((0, 1000), (60, 1000), (60, 901), (60.1, 901)):
            stage.transport.pending = pending
            stage.sweep(seconds)
            cut.append(stage.transport.aborted)
        assert cut == [False, False, False, True], "99 bytes are not enough"
        other = Stage(limits=Limits(write_pending=100))
        other.connection.write(b"x" * 1000)
        other.transport.pending = 1000
        other.sweep(0)
        other.transport.pending = 900
        other.sweep(61)
        other.sweep(121)
        assert not other.transport.aborted, "it went on after 61 seconds"
        other.sweep(121.1)
        assert other.transport.aborted

    play(scenario)


# --- who may connect


def test_as_many_clients_may_connect_as_the_limit_says():
    async def scenario() -> None:
        hub = Stage(limits=Limits(connections=3)).hub
        assert [connect(hub)[1].writes for _ in range(2)] == [[], []]
        turned = connect(hub)[1]
        assert b"503 Service Unavailable" in turned.writes[0]
        assert b"too_many_connections" in turned.writes[0]
        assert b"retry-after: 1" in turned.writes[0]
        assert b"connection: close" in turned.writes[0]
        others = [connect(hub)[1] for _ in range(64)]
        assert [each.aborted for each in others] == [False] * 63 + [True]
        assert hub.refused["too_many_connections"] == 65

    play(scenario)


@rows("peer", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "10.0.0.1", "::2", "128.0.0.1"])
def test_clients_of_this_machine_are_not_counted_by_address(peer):
    async def scenario() -> None:
        hub = Stage(limits=Limits(connections_per_peer=2)).hub
        found = [connect(hub, peer) for _ in range(3)]
        ours = peer == "::1" or "127." in peer
        assert [bool(transport.writes) for _, transport in found] == [False, False, not ours]
        assert hub._peers == ({} if ours else {peer: 3})
        for connection, _ in found:
            connection.connection_lost(None)
        assert hub._peers == {}
        assert not connect(hub, peer)[1].writes

    play(scenario)


def test_a_server_that_is_shutting_down_takes_no_one_in():
    async def scenario() -> None:
        stage = Stage()
        stage.hub.draining = True
        connection, transport = connect(stage.hub)
        assert b"503" in transport.writes[0]
        assert b"server_is_overloaded" in transport.writes[0]
        assert stage.refusals == [("server_is_overloaded", "the server is shutting down")]
        connection.connection_lost(None)
        assert not stage.hub.empty.is_set()
        stage.connection.connection_lost(None)
        assert stage.hub.empty.is_set()

    play(scenario)


def test_the_first_refusal_of_each_kind_is_reported_and_all_are_counted():
    async def scenario() -> None:
        stage = Stage()
        for _ in range(3):
            connection, _ = connect(stage.hub)
            connection.data_received(b"hello\r\n\r\n")
        assert stage.refusals == [("invalid_request_line", "the request line is not valid HTTP/1.1")]
        assert stage.hub.refused == {"invalid_request_line": 3}

    play(scenario)


# --- requests that wait


def test_a_client_may_be_64_kib_ahead():
    transport = Recorder()
    backlog = Backlog(transport)
    backlog.put(b"x" * (64 * KIB + 3), 3)
    assert (backlog.is_full, transport.flow) == (False, [])
    backlog.add(b"y")
    assert (backlog.is_full, transport.flow) == (True, ["pause"])
    backlog.add(b"z")
    assert transport.flow == ["pause"]
    data, at = backlog.take()
    assert (len(data), at, data[-2:]) == (64 * KIB + 2, 0, b"yz")
    backlog.put(data, 1)
    backlog.read_on()
    assert transport.flow == ["pause"], "one byte too many"
    backlog.put(data, 2)
    backlog.read_on()
    assert (backlog.is_full, transport.flow) == (False, ["pause", "resume"])
    backlog.read_on()
    assert transport.flow == ["pause", "resume"]
    backlog.put(b"x" * 70 * KIB, 0)
    backlog.drop()
    assert (backlog.data, backlog.at, backlog.is_full) == (b"", 0, False)


def test_a_refused_body_of_64_kib_is_read_past_and_a_longer_one_ends_the_connection():
    for size, stays in ((64 * KIB, True), (64 * KIB + 1, False)):

        async def scenario(size: int = size, stays: bool = stays) -> None:
            stage = Stage(_answer)
            stage.app.refusals["/no"] = Refusal(404, PLAIN, b"no")
            await stage.take(post("/no", b"x" * size)[:-size])
            assert (b"connection: close" not in stage.written) is stays
            if stays:
                await stage.take(b"x" * (size - 1), b"x" + get("/next"))
                assert stage.written.count(b"HTTP/1.1 ") == 2
                assert stage.written.endswith(b"ok")

        play(scenario)


def test_an_expected_body_that_is_refused_ends_the_connection():
    async def scenario() -> None:
        for there, ends in ((False, True), (True, False)):
            stage = Stage()
            stage.app.refusals["/no"] = Refusal(404, PLAIN, b"no")
            data = post("/no", b"body", "Expect: 100-continue")
            await stage.take(data if there else data[:-4])
            assert (b"connection: close" in stage.written) is ends
            assert b"100 Continue" not in stage.written

    play(scenario)


def test_it_is_said_to_go_on_only_where_nothing_of_the_body_has_come():
    async def scenario() -> None:
        for come, said in ((0, True), (1, False)):
            stage = Stage()
            data = post("/", b"body", "Expect: 100-continue")
            await stage.take(data[: len(data) - 4 + come])
            assert (stage.written == b"HTTP/1.1 100 Continue\r\n\r\n") is said

    play(scenario)


def test_an_empty_line_before_a_request_is_overlooked_and_a_second_is_not():
    async def scenario() -> None:
        for data, status in ((b"\r\n" + get("/"), b"200"), (b"\r\n\r\n" + get("/"), b"400")):
            whole, cut = Stage(_answer), Stage(_answer)
            await whole.take(data)
            await cut.take(*[data[at : at + 1] for at in range(len(data))])
            assert whole.written[9:12] == cut.written[9:12] == status

    play(scenario)


def test_a_head_that_arrives_in_pieces_behind_an_empty_line_is_judged_alike():
    """What was looked at is counted from where the head begins."""

    async def scenario() -> None:
        for before in (b"", b"\r\n"):
            for bad in (b"\0", b"\n", b"\rx"):
                stage = Stage()
                await stage.take(before + b"GET / HTTP/1.1\r\nA: b", bad)
                assert b"400 Bad Request" in stage.written, (before, bad)
            fine = Stage()
            await fine.take(before + b"GET / HTTP/1.1\r", b"\nA: b\r", b"\nHost: a")
            assert fine.written == b""

    play(scenario)


# --- answers


def started(stage: Stage, *, head_only: bool = False, minor: int = 1) -> ServerReply:
    return ServerReply(stage.connection, head_only, False, minor)


async def _turn() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def test_parts_of_a_stream_are_framed_by_their_exact_length():
    async def scenario() -> None:
        for size in (1, 15, 16, 1023, 1024, 5000):
            stage = Stage()
            reply = started(stage)
            reply.start(200, [])
            reply.write(b"x" * size)
            (written,) = stage.transport.writes
            assert written.endswith(b"\r\n\r\n%x\r\n" % size + b"x" * size + b"\r\n")
            reply.write(b"")
            reply.write(b"y" * size)
            assert stage.transport.writes[1] == b"%x\r\n" % size + b"y" * size + b"\r\n"
            reply.end()
            assert stage.transport.writes[2:] == [b"0\r\n\r\n"]

    play(scenario)


def test_a_head_without_a_body_in_the_same_step_is_sent_alone():
    async def scenario() -> None:
        stage = Stage()
        reply = started(stage)
        reply.start(200, PLAIN)
        assert stage.transport.writes == []
        await _turn()
        (head,) = stage.transport.writes
        assert head.endswith(b"content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
        reply.write(b"a")
        reply.end()
        await _turn()
        assert stage.transport.writes[1:] == [b"1\r\na\r\n", b"0\r\n\r\n"]
        empty = Stage()
        reply = started(empty)
        reply.start(200, [])
        reply.end()
        await _turn()
        assert len(empty.transport.writes) == 1
        assert empty.written.endswith(b"\r\n\r\n0\r\n\r\n")

    play(scenario)


def test_an_answer_to_head_has_the_framing_of_its_body_and_no_body():
    async def scenario() -> None:
        stage = Stage()
        started(stage, head_only=True).send(200, [], b"body")
        assert stage.written.endswith(b"content-length: 4\r\n\r\n")
        stream = Stage()
        reply = started(stream, head_only=True)
        reply.start(200, [])
        reply.write(b"a")
        reply.end()
        assert stream.written.endswith(b"transfer-encoding: chunked\r\n\r\n")

    play(scenario)


def test_an_old_client_is_told_how_the_connection_goes_on():
    async def scenario() -> None:
        whole, stream = Stage(), Stage()
        started(whole, minor=0).send(200, [], b"x")
        assert b"connection: keep-alive\r\n" in whole.written
        reply = started(stream, minor=0)
        reply.start(200, [])
        reply.write(b"a")
        assert stream.written.endswith(b"connection: close\r\n\r\na")
        assert b"chunked" not in stream.written
        assert reply.close

    play(scenario)


def test_a_body_is_joined_with_its_head_up_to_64_kib():
    async def scenario() -> None:
        for size, writes in ((64 * KIB, 1), (64 * KIB + 1, 2)):
            stage = Stage()
            started(stage).send(200, [], b"x" * size)
            assert len(stage.transport.writes) == writes
            assert stage.written.endswith(b"x" * size)
        for status in (204, 304):
            stage = Stage()
            started(stage).send(status, [], b"body")
            assert b"content-length" not in stage.written
            assert stage.written.endswith(b"\r\n\r\n")

    play(scenario)


def test_what_is_over_is_not_written_to_again():
    async def scenario() -> None:
        stage = Stage()
        reply = started(stage)
        reply.send(200, [], b"x")
        before = list(stage.transport.writes)
        reply.send(200, [], b"y")
        reply.start(200, [])
        reply.write(b"z")
        reply.end()
        reply.abort()
        reply.write_raw(b"raw")
        reply.linger()
        reply.on_pressure(lambda: before.append(b"pause"), lambda: None)
        reply.upgrade([], _upgrade([]))
        await _turn()
        assert stage.transport.writes == before

    play(scenario)


def test_an_answer_begins_once_and_before_its_parts():
    async def scenario() -> None:
        stage = Stage()
        reply = started(stage)
        for early in (lambda: reply.write(b"x"), reply.end):
            with pytest.raises(RuntimeError, match="before start"):
                early()
        reply.start(200, [])
        for late in (
            lambda: reply.start(200, []),
            lambda: reply.send(200, [], b""),
            lambda: reply.upgrade([], _upgrade([])),
        ):
            with pytest.raises(RuntimeError, match="has begun already"):
                late()

    play(scenario)


# --- another protocol


def _upgrade(steps: list[Any]) -> Upgrade:
    return Upgrade(
        receive=lambda data: steps.append(bytes(data)),
        drain=lambda: steps.append("drain"),
        pause=lambda: steps.append("pause"),
        resume=lambda: steps.append("resume"),
    )


def test_another_protocol_gets_all_that_comes_and_how_fast_its_client_reads():
    async def scenario() -> None:
        steps: list[Any] = []

        async def handler(head: Head, body: bytes, reply: Any) -> None:
            reply.upgrade([("upgrade", "x")], _upgrade(steps))
            assert reply.hold(10)
            await asyncio.Event().wait()

        stage = Stage(handler)
        stage.connection.data_received(get("/") + b"ahead")
        await _turn()
        await stage.take(b"more")
        assert stage.written.endswith(b"upgrade: x\r\nconnection: Upgrade\r\n\r\n")
        assert stage.written.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        stage.connection.pause_writing()
        stage.connection.resume_writing()
        stage.connection.close_if_idle()
        assert steps == [b"ahead", b"more", "pause", "resume", "drain"]
        assert stage.hub.account.held == 10

    play(scenario)


def test_another_protocol_is_told_at_once_that_the_server_shuts_down():
    async def scenario() -> None:
        steps: list[Any] = []
        stage = Stage()
        reply = started(stage)
        stage.hub.draining = True
        reply.upgrade([], _upgrade(steps))
        assert steps == ["drain"]
        reply.write_raw(b"raw")
        assert stage.transport.writes[-1] == b"raw"
        reply.linger()
        assert stage.transport.writes[-1] == b"EOF"

    play(scenario)


def test_what_a_request_holds_is_counted_and_given_back():
    async def scenario() -> None:
        stage = Stage(account=ByteAccount(100))
        reply = started(stage)
        assert reply.hold(100)
        assert not reply.hold(1)
        assert stage.hub.account.held == 101
        assert reply.hold(-51)
        assert stage.hub.account.held == 50

    play(scenario)


# --- clients that read slowly


def test_what_a_slow_client_has_yet_to_take_is_counted_until_it_has_taken_it():
    async def scenario() -> None:
        steps: list[str] = []
        stage = Stage()
        account = stage.hub.account
        stage.transport.pending = 70
        stage.connection.write(b"x")
        assert account.owed == 0
        stage.connection.pause_writing()
        assert (account.owed, account.held, stage.connection.pressed) == (70, 70, True)
        stage.transport.pending = 90
        stage.connection.write(b"x")
        assert account.owed == 90
        reply = started(stage)
        reply.start(200, [])
        stage.transport.pending = 95
        reply.write(b"x")
        assert account.owed == 95
        stage.connection.resume_writing()
        assert (account.owed, account.held, stage.connection.pressed) == (0, 0, False)
        stage.connection.pause_writing()
        reply.on_pressure(lambda: steps.append("pause"), lambda: steps.append("resume"))
        assert steps == ["pause"], "it is under pressure already"
        stage.connection.connection_lost(None)
        assert (account.owed, account.held) == (0, 0)

    play(scenario)


def test_the_next_request_of_a_slow_client_waits_until_it_has_read():
    async def scenario() -> None:
        stage = Stage(_answer)
        stage.connection.pause_writing()
        await stage.take(get("/"))
        assert stage.written == b""
        stage.connection.resume_writing()
        stage.connection.resume_writing()
        await _turn()
        await _turn()
        assert stage.written.count(b"HTTP/1.1 200") == 1

    play(scenario)


# --- ends


def test_a_client_that_leaves_takes_its_request_along():
    async def scenario() -> None:
        for leave in (ServerConnection.eof_received, lambda each: each.connection_lost(None)):
            stage = Stage()
            await stage.take(post("/", b"body"))
            assert stage.hub.account.held == 4
            leave(stage.connection)
            await _turn()
            await _turn()
            assert stage.app.cancelled == ["the client has disconnected"]
            assert stage.hub.account.held == 0
            assert not stage.hub.tasks

    play(scenario)


def test_a_connection_that_lingers_throws_away_a_megabyte():
    async def scenario() -> None:
        stage = Stage()
        await stage.take(b"hello\r\n\r\n", b"x" * (1 << 20))
        assert not stage.transport.closed
        await stage.take(b"x")
        assert stage.transport.closed

    play(scenario)


def test_an_answer_that_is_cut_off_shows_as_cut_off():
    async def scenario() -> None:
        for minor, closed, aborted in ((1, True, False), (0, False, True)):
            stage = Stage()
            reply = started(stage, minor=minor)
            reply.start(200, [])
            reply.abort()
            assert b"HTTP/1.1 200" in stage.written, "as far as it came"
            assert (stage.transport.closed, stage.transport.aborted) == (closed, aborted)
            assert not stage.written.endswith(b"0\r\n\r\n")

    play(scenario)


def test_only_what_is_idle_is_closed_when_the_server_shuts_down():
    async def scenario() -> None:
        for pieces, closes in (
            ([], True),
            ([b"GET /"], False),
            ([get("/")], False),
            ([post("/", b"body")[:-1]], False),
            ([post("/no", b"body")[:-1]], True),
        ):
            stage = Stage()
            stage.app.refusals["/no"] = Refusal(404, PLAIN, b"")
            await stage.take(*pieces)
            stage.connection.close_if_idle()
            assert stage.transport.closed is closes, pieces

    play(scenario)


def test_a_body_for_which_there_is_no_room_is_refused():
    async def scenario() -> None:
        for size, refused in ((100, False), (101, True)):
            stage = Stage(account=ByteAccount(100))
            await stage.take(post("/", b"x" * size)[:-size])
            assert (b"server_is_overloaded" in stage.written) is refused
            assert (stage.hub.refused["server_is_overloaded"], stage.hub.account.shed) == (refused, refused)
            assert stage.hub.account.held == 0

    play(scenario)


def test_admission_that_fails_and_too_large_bodies_are_answered():
    async def scenario() -> None:
        stage = Stage()
        stage.app.limit = 3
        for data, status in ((post("/", b"body"), b"413"), (post("/", b"bod"), b"")):
            each = Stage()
            each.app.limit = 3
            await each.take(data)
            assert each.written[9:12] == status
            assert (b"over 3" in each.written) is bool(status)
            assert (b"connection: close" in each.written) is bool(status)

    play(scenario)


def test_new_limits_hold_for_open_connections():
    async def scenario() -> None:
        stage = Stage()
        stage.hub.limits = replace(LIMITS, keep_alive=5.0)
        stage.sweep(5.0)
        assert not stage.is_over
        stage.sweep(5.1)
        assert stage.transport.closed
        stage.sweep(500)

    play(scenario)


def test_a_body_in_pieces_is_counted_once_and_what_follows_it_is_the_next_request():
    async def scenario() -> None:
        stage = Stage(_answer)
        for _ in range(3):
            data = post("/", b"body")
            await stage.take(data[:-2], data[-2:-1])
            assert stage.hub.account.held == 3
            await stage.take(data[-1:] + get("/next"))
            assert stage.hub.account.held == 0
        assert stage.written.count(b"HTTP/1.1 200") == 6
        assert [head.path for head in stage.app.heads] == ["/", "/next"] * 3
        assert stage.app.bodies == [b"body", b""] * 3

    play(scenario)


def _noting(said: list[Any]) -> Callable[[Any, dict[str, Any]], None]:
    return lambda _, context: said.append(context["message"])


def test_what_a_handler_leaves_unanswered_is_answered_for_it():
    async def fail(head: Head, body: bytes, reply: Reply) -> None:
        raise LookupError("a bug")

    async def leave(head: Head, body: bytes, reply: Reply) -> None: ...

    async def scenario() -> None:
        for handler, status, code in (
            (fail, b"500", b'"internal_error"'),
            (leave, b"500", b'"internal_error"'),
            (_wait_for_ever, b"503", b'"server_is_overloaded"'),
        ):
            stage = Stage(handler)
            reported: list[Any] = []
            stage.loop.real.set_exception_handler(_noting(reported))
            stage.connection.data_received(get("/"))
            await _turn()
            for task in list(stage.hub.tasks):
                task.cancel()
            await _turn()
            await _turn()
            assert stage.written[9:12] == status
            assert code in stage.written
            assert b"connection: close" in stage.written
            assert reported == (["a request handler failed"] if handler is fail else [])
            assert not stage.hub.tasks

    play(scenario)


def test_an_admission_that_fails_is_answered_and_reported():
    async def scenario() -> None:
        stage = Stage()

        def broken(head: Head) -> Refusal | None:
            raise LookupError("a bug")

        reported: list[Any] = []
        stage.loop.real.set_exception_handler(_noting(reported))
        stage.app.admit = broken  # type: ignore[method-assign]  # it fails
        await stage.take(get("/"))
        assert stage.written[9:12] == b"500"
        assert b'"internal_error"' in stage.written
        assert reported == ["admission failed"]

    play(scenario)


def test_a_hundred_refusals_in_a_row_end_a_connection():
    async def scenario() -> None:
        stage = Stage(_answer)
        stage.app.refusals["/no"] = Refusal(404, PLAIN, b"")
        for _ in range(99):
            await stage.take(get("/no"))
        assert not stage.is_over
        await stage.take(get("/"))
        for _ in range(99):
            await stage.take(get("/no"))
        assert not stage.is_over, "one that was let in makes up for them"
        await stage.take(get("/no"))
        assert stage.is_over

    play(scenario)
