"""A WebSocket by itself: what waits, what is held, when a client counts as gone."""

from __future__ import annotations

import asyncio
import base64
import tracemalloc
from collections.abc import Callable
from typing import cast

import msgspec
import pytest
from wsproto.events import Ping, TextMessage

from tests.tiers import rows
from wireglot.http.application import Head, Headers, UpgradableReply, Upgrade
from wireglot.http.frames import MAX_FRAMES_AT_ONCE, MAX_IDLE_FRAMES, IdleFrames
from wireglot.http.server.websocket import SocketClosed, WebSocket, handshake_problem

_HEAD = Head("GET", "/", "/", "", {"sec-websocket-key": base64.b64encode(bytes(16)).decode()}, "127.0.0.1")
_FIN, _TEXT, _CLOSE = 0x80, 1, 8
_LONG = 3600.0


class _Limits(msgspec.Struct, frozen=True):
    message: int = 1 << 20
    ping: float = _LONG


class _Reply:
    """The connection, as far as a WebSocket knows it."""

    upgraded: Upgrade
    headers: Headers

    def __init__(self) -> None:
        self.held = 0
        self.room = 1 << 30
        self.written: list[bytes] = []
        self.lingers = 0
        self.is_paused = False

    def upgrade(self, headers: Headers, upgrade: Upgrade) -> None:
        self.headers, self.upgraded = headers, upgrade

    def write_raw(self, data: bytes) -> None:
        self.written.append(data)

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def linger(self) -> None:
        self.lingers += 1

    def hold(self, size: int) -> bool:
        self.held += size
        return self.held <= self.room


def frame(opcode: int, payload: bytes = b"", fin: int = _FIN) -> bytes:
    assert len(payload) < 126
    return bytes([fin | opcode, 0x80 | len(payload)]) + bytes(4) + payload


def opened(limits: _Limits | None = None) -> tuple[WebSocket, _Reply]:
    reply = _Reply()
    return WebSocket(_HEAD, cast(UpgradableReply, reply), limits or _Limits()), reply


def within(check: Callable[[], object]) -> None:
    async def run() -> None:
        result = check()
        if asyncio.iscoroutine(result):
            await result

    asyncio.run(run())


def test_the_handshake_is_answered_as_the_standard_wants_it() -> None:
    """RFC 6455, 1.3: its own example."""

    async def check() -> None:
        reply = _Reply()
        head = msgspec.structs.replace(_HEAD, headers={"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
        WebSocket(head, cast(UpgradableReply, reply), _Limits()).release()
        assert dict(reply.headers) == {
            "upgrade": "websocket",
            "sec-websocket-accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        }

    within(check)


def test_a_message_is_held_until_it_is_done() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"one") + frame(_TEXT, b"three"))
        assert reply.held == 8
        message = await socket.receive(_LONG)
        assert message == b"one"
        assert reply.held == 8
        socket.done(message)
        assert reply.held == 5
        socket.release()
        assert reply.held == 0

    within(check)


def test_messages_are_dropped_once_the_client_has_closed() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}") * 2 + frame(_CLOSE))
        with pytest.raises(SocketClosed):
            await socket.receive(_LONG)
        socket.release()
        assert reply.held == 0

    within(check)


def test_no_message_is_taken_while_the_client_does_not_read() -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}"))
        reply.upgraded.pause()
        taking = asyncio.ensure_future(socket.receive(_LONG))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not taking.done()
        reply.upgraded.resume()
        assert await taking == b"{}"
        socket.release()

    within(check)


@pytest.mark.parametrize("why", ["the server drains", "its time is over"])
def test_what_waits_does_not_lengthen_a_connection(why: str) -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"{}"))
        if why == "the server drains":
            reply.upgraded.drain()
        assert await socket.receive(_LONG if socket.draining else 0) is None
        socket.release()

    within(check)


def test_a_client_that_reads_slowly_is_not_taken_for_gone() -> None:
    async def check() -> None:
        socket, reply = opened(_Limits(ping=0))
        reply.upgraded.pause()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not socket.closed
        reply.upgraded.resume()
        for _ in range(20):
            await asyncio.sleep(0)
        assert socket.closed

    within(check)


def test_tiny_pieces_take_little_more_than_their_bytes() -> None:
    async def check() -> None:
        socket, reply = opened()
        pieces = frame(_TEXT, "é".encode(), fin=0) + frame(0, "é".encode(), fin=0) * (MAX_IDLE_FRAMES - 1)
        tracemalloc.start()
        reply.upgraded.receive(pieces)
        await read_out(reply)
        grown, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert not socket.closed
        assert reply.held == 2 * MAX_IDLE_FRAMES
        assert grown < 16 * reply.held
        socket.release()

    within(check)


async def read_out(reply: _Reply) -> int:
    """Wait until all frames are read. Returns in how many more steps of the loop."""
    steps = 0
    while reply.is_paused:
        await asyncio.sleep(0)
        steps += 1
    return steps


def test_frames_are_read_a_number_at_a_time_and_meanwhile_no_more_is_received() -> None:
    async def check() -> None:
        socket, reply = opened()
        text, pieces = b"x" * 64, 10 * MAX_FRAMES_AT_ONCE
        reply.upgraded.receive(frame(_TEXT, text, fin=0) + frame(0, text, fin=0) * (pieces - 1))
        held = 0
        while reply.is_paused:
            assert reply.held - held <= MAX_FRAMES_AT_ONCE * len(text)
            held = reply.held
            await asyncio.sleep(0)
        assert reply.held == pieces * len(text)
        reply.upgraded.receive(frame(0, b"end"))
        assert await socket.receive(_LONG) == text * pieces + b"end"
        socket.release()

    within(check)


def test_one_answer_is_enough_for_all_pings_of_a_step() -> None:
    async def check() -> None:
        socket, reply = opened()
        pings = 5 * MAX_FRAMES_AT_ONCE
        reply.upgraded.receive(b"".join(frame(9, b"%d" % number) for number in range(pings)))
        await read_out(reply)
        assert len(reply.written) == 5
        assert reply.written[-1].endswith(b"%d" % (pings - 1))
        socket.release()

    within(check)


@pytest.mark.parametrize(
    "flood",
    [
        frame(9),
        frame(10, b"x" * 125),
        frame(0, fin=0),
        frame(0, b"x", fin=0),
        frame(0, b"x" * 64, fin=0) + frame(9) * 8,
    ],
    ids=["pings", "pongs", "empty fragments", "tiny fragments", "pings within a text"],
)
def test_a_flood_of_frames_without_content_closes_it(flood: bytes) -> None:
    async def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(_TEXT, b"begun", fin=0))
        reply.upgraded.receive(flood * 40_000)
        steps = await read_out(reply)
        assert socket.fault == (1008, "too many frames without content")
        assert reply.written[-1] == goodbye(*socket.fault)
        assert steps <= 2 * MAX_IDLE_FRAMES // MAX_FRAMES_AT_ONCE
        assert not reply.is_paused, "what the client still sends is skipped"
        socket.release()

    within(check)


def test_frames_without_content_are_no_flood_when_they_are_spread() -> None:
    now = 0.0
    frames = IdleFrames(lambda: now)
    ping, tiny = Ping(), TextMessage("x", message_finished=False)
    for _ in range(50):
        now += 30
        assert not any(frames.exceed(event) for event in [ping, tiny] * (MAX_IDLE_FRAMES // 2))
    assert frames.exceed(ping)
    now += 30
    text = TextMessage("{}"), TextMessage("x" * 64, message_finished=False), TextMessage("", False, False)
    assert not any(frames.exceed(event) for event in text * MAX_IDLE_FRAMES)


def goodbye(code: int, reason: str = "") -> bytes:
    return bytes([_FIN | _CLOSE, 2 + len(reason)]) + code.to_bytes(2, "big") + reason.encode()


_GOOD = {
    "upgrade": " WebSocket ",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-version": " 13 ",
    "sec-websocket-key": base64.b64encode(bytes(16)).decode(),
}


@rows(
    ("changed", "problem"),
    [
        ({}, ""),
        ({"upgrade": "h2c"}, "upgrade: expected websocket"),
        ({"upgrade": ""}, "upgrade: expected websocket"),
        ({"connection": "keep-alive"}, "connection: expected Upgrade"),
        ({"connection": "upgraded"}, "connection: expected Upgrade"),
        ({"sec-websocket-version": "8"}, "sec-websocket-version: expected 13"),
        ({"sec-websocket-key": "short"}, "sec-websocket-key: expected 16 bytes in base64"),
        ({"sec-websocket-key": "!"}, "sec-websocket-key: expected 16 bytes in base64"),
        (
            {"sec-websocket-key": base64.b64encode(bytes(17)).decode()},
            "sec-websocket-key: expected 16 bytes in base64",
        ),
    ],
)
def test_a_handshake_has_its_headers(changed: dict[str, str], problem: str) -> None:
    assert handshake_problem(msgspec.structs.replace(_HEAD, headers=_GOOD | changed)) == problem
    for name in _GOOD:
        headers = {key: value for key, value in _GOOD.items() if key != name}
        assert handshake_problem(msgspec.structs.replace(_HEAD, headers=headers)).startswith(name)


@rows(
    ("data", "said"),
    [
        (frame(2, b"x"), goodbye(1003, "expected text")),
        (frame(_CLOSE), goodbye(1000)),
        (frame(_CLOSE, (1001).to_bytes(2, "big") + b"bye"), goodbye(1001, "bye")),
        (frame(_TEXT, b"x" * 11), goodbye(1009, "a message is larger than 10 bytes")),
        (frame(_TEXT, b"x" * 10) * 3, goodbye(1008, "too many messages are waiting")),
        (frame(_TEXT, b"") * 33, goodbye(1008, "too many messages are waiting")),
        (
            frame(_TEXT, b"x" * 6, fin=0) + frame(0, b"x" * 5),
            goodbye(1009, "a message is larger than 10 bytes"),
        ),
    ],
)
def test_a_client_is_told_why_it_is_let_go(data: bytes, said: bytes) -> None:
    def check() -> None:
        gone: list[bool] = []
        socket, reply = opened(_Limits(message=10))
        socket.on_gone = lambda: gone.append(socket.closed)
        reply.upgraded.receive(data)
        assert (reply.written, gone, reply.lingers) == ([said], [True], 1)
        reply.upgraded.receive(frame(_TEXT, b"x"))
        socket.send("nothing")
        socket.close()
        assert len(reply.written) == 1

    within(check)


def test_as_many_messages_wait_as_there_is_room_for() -> None:
    async def check() -> None:
        for data, count in ((frame(_TEXT, b"x" * 10) * 2, 2), (frame(_TEXT, b"") * 32, 32)):
            socket, reply = opened(_Limits(message=10))
            reply.upgraded.receive(data)
            assert not socket.closed
            for _ in range(count):
                assert await socket.receive(_LONG) is not None
            reply.upgraded.receive(frame(_TEXT, b"x" * 10))
            assert not socket.closed, "what was taken does not wait"
            socket.release()
        full, reply = opened()
        reply.room = 3
        reply.upgraded.receive(frame(_TEXT, b"1234"))
        assert reply.written == [goodbye(1008, "the gateway is at its memory limit")]
        full.release()
        assert reply.held == 0

    within(check)


def test_pings_of_a_client_are_answered_unless_it_does_not_read() -> None:
    def check() -> None:
        socket, reply = opened()
        reply.upgraded.receive(frame(9, b"hi"))
        assert reply.written == [bytes([_FIN | 10, 2]) + b"hi"]
        reply.upgraded.pause()
        reply.upgraded.receive(frame(9, b"hi"))
        assert len(reply.written) == 1
        socket.release()

    within(check)


def test_a_client_that_answers_no_ping_is_let_go_after_two() -> None:
    async def check() -> None:
        socket, reply = opened()
        ping = bytes([_FIN | 9, 0])
        for sent in (1, 2):
            socket._ping()
            assert reply.written == [ping] * sent
        reply.upgraded.receive(frame(10))
        socket._ping()
        socket._ping()
        assert reply.written == [ping] * 4
        socket._ping()
        assert reply.written[4:] == [goodbye(1001, "no answer to pings")]

    within(check)


def test_texts_are_sent_and_goodbye_is_said_once() -> None:
    def check() -> None:
        socket, reply = opened()
        socket.send("hi")
        socket.close(1011, "r" * 101)
        socket.close()
        assert reply.written == [bytes([_FIN | _TEXT, 2]) + b"hi", goodbye(1011, "r" * 100)]
        assert reply.lingers == 1
        quiet, reply = opened()
        quiet.release()
        assert reply.written == [goodbye(1011)]

    within(check)


def test_pressure_is_passed_on_to_what_is_being_answered() -> None:
    def check() -> None:
        steps: list[str] = []
        socket, reply = opened()
        reply.upgraded.pause()
        socket.on_pressure("r1", lambda: steps.append("pause"), lambda: steps.append("resume"))
        reply.upgraded.resume()
        reply.upgraded.pause()
        socket.answered("r1")
        reply.upgraded.resume()
        assert steps == ["pause", "resume", "pause"]
        socket.release()

    within(check)
