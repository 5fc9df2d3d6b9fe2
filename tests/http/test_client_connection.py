"""One connection to an upstream without a socket, on a clock of the tests' own."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.http.transport_kit import answer, chunked
from tests.tiers import rows
from wireglot.http.client import connection as module
from wireglot.http.client.answer import Decoder, HttpAnswer, decoder_for
from wireglot.http.client.connection import ClientConnection
from wireglot.http.transport import Timeouts, TransportFault

TIMEOUTS = Timeouts(connect=1.0, tls=1.0, first_byte=10.0, idle=5.0, total=60.0)
KIB = 1024


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.steps: list[str] = []
        self.pending = 0
        self.aborted = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def pause_reading(self) -> None:
        self.steps.append("pause")

    def resume_reading(self) -> None:
        self.steps.append("resume")

    def get_write_buffer_size(self) -> int:
        return self.pending

    def set_write_buffer_limits(self, high: Any = None, low: Any = None) -> None:
        self.high = high


class Stage:
    """A connection, what holds it, and the timer that it has set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.released = self.forgotten = 0
        self.timers: list[tuple[float, Callable[[], None], bool]] = []
        self.transport = Transport()
        loop: Any = self
        home: Any = self
        self.connection = ClientConnection(home, loop, lambda: self.now)
        self.connection.connection_made(self.transport)

    # What the connection calls

    def release(self, connection: ClientConnection) -> None:
        self.released += 1

    def forget(self, connection: ClientConnection) -> None:
        self.forgotten += 1

    def create_future(self) -> Any:
        return asyncio.get_running_loop().create_future()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Any:
        stage, at = self, len(self.timers)
        self.timers.append((self.now + delay, callback, True))

        class Handle:
            def cancel(self) -> None:
                due, work, _ = stage.timers[at]
                stage.timers[at] = (due, work, False)

        return Handle()

    # What a test calls

    def ask(self, body: bytes = b"", *, bodiless: bool = False, timeouts: Timeouts = TIMEOUTS) -> HttpAnswer:
        return self.connection.start(b"HEAD ", body, timeouts, 10, bodiless=bodiless)

    def take(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.data_received(piece)

    def pass_time(self, until: float) -> None:
        """Timers fire as they are due."""
        while due := [each for each in self.timers if each[2] and each[0] <= until]:
            first = min(due, key=lambda each: each[0])
            self.timers[self.timers.index(first)] = (first[0], first[1], False)
            self.now = max(self.now, first[0])
            first[1]()
        self.now = until


def play(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def problem(given: HttpAnswer) -> str:
    error = given.given_up()
    assert isinstance(error, TransportFault), error
    return error.problem


def scene(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        play(test)

    run.__name__ = test.__name__
    return run


# --- time


@scene
async def test_silence_is_given_up_after_the_first_byte_time():
    stage = Stage()
    given = stage.ask()
    stage.pass_time(109.9)
    assert not given.waiter.done()
    stage.pass_time(110.1)
    assert given.waiter.done()
    assert problem(given) == "first_byte_timeout"
    assert (stage.transport.aborted, stage.forgotten) == (True, 1)


@scene
async def test_a_stream_that_stops_is_given_up_after_the_idle_time():
    stage = Stage()
    given = stage.ask()
    stage.take(chunked(b"a", end=b""))
    for moment in (104.0, 108.0, 112.0):
        stage.pass_time(moment)
        stage.take(b"1\r\nb\r\n")
    stage.pass_time(116.9)
    assert given.line is not None
    stage.pass_time(117.1)
    assert problem(given) == "idle_timeout"


@scene
async def test_an_answer_has_a_limit_for_all_of_it():
    stage = Stage()
    given = stage.ask()
    stage.take(chunked(b"a", end=b""))
    for moment in range(101, 160):
        stage.pass_time(float(moment))
        stage.take(b"1\r\nb\r\n")
    assert given.line is not None
    stage.pass_time(160.1)
    assert problem(given) == "total_timeout"
    short = Stage()
    given = short.ask(timeouts=Timeouts(first_byte=10.0, idle=5.0, total=3.0))
    short.pass_time(103.1)
    assert problem(given) == "total_timeout"


@scene
async def test_a_byte_of_a_head_does_not_lengthen_the_wait_for_it():
    stage = Stage()
    given = stage.ask()
    for moment, byte in ((104.0, b"H"), (108.0, b"T")):
        stage.pass_time(moment)
        stage.take(byte)
    stage.pass_time(110.1)
    assert problem(given) == "first_byte_timeout"


@scene
async def test_the_wait_for_an_answer_begins_when_the_request_is_sent():
    stage = Stage()
    given = stage.ask(b"x")
    stage.transport.pending = 1000
    stage.connection.pause_writing()
    for moment, left in ((104.0, 900), (108.0, 800), (112.0, 700)):
        stage.pass_time(moment)
        stage.transport.pending = left
    stage.pass_time(113.0)
    stage.transport.pending = 0
    stage.connection.resume_writing()
    stage.pass_time(122.9)
    assert not given.waiter.done()
    stage.pass_time(123.1)
    error = given.given_up()
    assert str(error) == "the upstream did not answer in time"
    stuck = Stage()
    given = stuck.ask(b"x")
    stuck.transport.pending = 1000
    stuck.connection.pause_writing()
    stuck.pass_time(104.9)
    assert not given.waiter.done()
    stuck.pass_time(110.5)
    error = given.given_up()
    assert str(error) == "the upstream did not read the request in time"


@scene
async def test_an_answer_that_is_paused_is_not_idle():
    stage = Stage()
    given = stage.ask()
    stage.take(chunked(b"a", end=b""))
    given.pause()
    given.pause()
    stage.pass_time(150.0)
    assert given.line is not None
    given.resume()
    given.resume()
    assert stage.transport.steps == ["pause", "resume"]
    stage.pass_time(154.9)
    assert given.line is not None
    stage.pass_time(155.1)
    assert problem(given) == "idle_timeout"
    held = Stage()
    given = held.ask()
    held.take(chunked(b"a", end=b""))
    given.pause()
    held.pass_time(160.1)
    assert problem(given) == "total_timeout"


@rows(
    "offered, seconds",
    [("", 15.0), ("timeout=5", 4.0), ("max=9, timeout = \"7\"", 6.0), ("timeout=1", 0.0), ("timeout=0", 0.0),
     ("timeout=99", 15.0), ("nothing", 15.0)],
)  # fmt: skip
def test_a_connection_rests_as_long_as_both_sides_want(offered, seconds):
    async def scenario() -> None:
        stage = Stage()
        stage.ask()
        stage.take(answer(b"ok", headers=f"keep-alive: {offered}\r\n" if offered else ""))
        assert stage.released == 1
        stage.connection.rest(15.0)
        assert stage.connection.reused
        assert stage.connection.fit is (seconds > 0)
        if seconds:
            stage.pass_time(100 + seconds - 0.1)
            assert stage.connection.fit
        stage.pass_time(100 + seconds + 0.1)
        assert not stage.connection.usable
        assert stage.forgotten == 1

    play(scenario)


@scene
async def test_a_connection_that_ends_at_once_was_closed_while_it_waited():
    for reused, heard, seconds, stale in (
        (True, False, 4.9, True),
        (True, False, 5.0, False),
        (False, False, 1.0, False),
        (True, True, 1.0, False),
    ):
        stage = Stage()
        stage.connection.reused = reused
        given = stage.ask()
        stage.pass_time(100 + seconds)
        if heard:
            stage.take(b"H")
        stage.connection.connection_lost(None)
        assert problem(given) == "broken"
        assert stage.connection.stale is stale


# --- what is written


@scene
async def test_a_request_is_one_write_up_to_64_kib():
    for size, writes in ((64 * KIB, 1), (64 * KIB + 1, 2)):
        stage = Stage()
        assert stage.transport.high == 0
        stage.ask(b"x" * size)
        assert len(stage.transport.writes) == writes
        assert b"".join(stage.transport.writes) == b"HEAD " + b"x" * size


# --- heads


@scene
async def test_a_head_is_read_with_its_headers():
    stage = Stage()
    given = stage.ask()
    stage.take(b"HTTP/1.1 201 Made\r\nX-A: 1 \r\nx-a:2\r\nContent-Length: 2\r\n\r\n")
    assert (given.status, given.headers) == (201, {"x-a": "1, 2", "content-length": "2"})
    assert given.waiter.done()
    stage.take(b"ok")
    assert (given.pieces, given.line, stage.released) == ([b"ok"], None, 1)


def head(size: int) -> bytes:
    start, end = b"HTTP/1.1 200 OK\r\nA: ", b"\r\ncontent-length: 2\r\n\r\n"
    return start + b"x" * (size - len(start) - len(end)) + end


@scene
async def test_a_head_may_have_64_kib_and_200_fields():
    for data, fine in (
        (head(64 * KIB), True),
        (head(64 * KIB + 1), False),
        (answer(headers="".join(f"x-{n}: y\r\n" for n in range(199))), True),
        (answer(headers="".join(f"x-{n}: y\r\n" for n in range(200))), False),
    ):
        for pieces in ([data], [data[:1000], data[1000:]]):
            stage = Stage()
            given = stage.ask()
            stage.take(*pieces)
            if fine:
                assert given.status == 200
            else:
                assert str(given.given_up()) == "the upstream's answer has too many or too large headers"
                break


@scene
async def test_chunks_without_a_body_have_an_end():
    stage = Stage()
    given = stage.ask()
    stage.take(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    stage.take(b"1;" + b"x" * (32 * KIB))
    stage.take(b"x" * (31 * KIB))
    assert given.line is not None
    stage.take(b"x" * (2 * KIB))
    assert problem(given) == "protocol"


@scene
async def test_eight_interim_answers_may_come_and_their_headers_are_not_kept():
    interim = b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n"
    stage = Stage()
    given = stage.ask()
    stage.take(interim * 8 + answer())
    assert (given.status, given.headers) == (200, {"content-length": "2"})
    for data in (interim * 9, b"HTTP/1.1 101 Switching\r\n\r\n"):
        refused = Stage()
        given = refused.ask()
        refused.take(data)
        assert problem(given) == "protocol"


@scene
async def test_an_answer_in_another_framing_is_refused():
    for headers, words in (
        ("transfer-encoding: gzip, chunked\r\n", "unknown transfer encoding"),
        ("content-encoding: br\r\n", "an encoding that was not requested"),
    ):
        stage = Stage()
        given = stage.ask()
        stage.take(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode())
        error = given.given_up()
        assert words in str(error)
    stage = Stage()
    given = stage.ask()
    stage.take(chunked(b"ab").replace(b"chunked", b"Chunked"))
    assert given.pieces == [b"ab"]


@scene
async def test_an_answer_to_head_has_no_body():
    stage = Stage()
    given = stage.ask(bodiless=True)
    stage.take(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
    assert (given.status, given.line, given.error) == (200, None, None)
    assert (stage.released, stage.transport.aborted) == (0, True)


# --- ends


@scene
async def test_a_body_without_a_length_ends_with_the_connection():
    for headers, clean, whole in (
        ("", True, True),
        ("", False, False),
        ("content-length: 9\r\n", True, False),
        ("transfer-encoding: chunked\r\n", True, False),
    ):
        stage = Stage()
        given = stage.ask()
        stage.take(f"HTTP/1.1 200 OK\r\n{headers}\r\n".encode())
        if not headers:
            stage.take(b"ab")
        stage.connection.connection_lost(None if clean else OSError())
        assert (given.error is None) is whole
        assert (given.line, stage.released) == (None, 0)


@scene
async def test_a_connection_is_kept_only_where_nothing_is_left_of_the_exchange():
    for data, pending, kept in (
        (answer(), 0, True),
        (answer(), 1, False),
        (answer(headers="connection: close\r\n"), 0, False),
        (answer() + b"HTTP/1.1 200 OK\r\n\r\n", 0, False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", 0, False),
    ):
        stage = Stage()
        given = stage.ask()
        stage.transport.pending = pending
        stage.take(data)
        assert given.pieces == [b"ok"]
        assert (stage.released, stage.transport.aborted) == (kept, not kept)


@scene
async def test_the_first_whole_answer_is_announced_once():
    stage = Stage()
    seen: list[Any] = []
    stage.connection.on_answered = seen.append
    for _ in range(2):
        stage.ask()
        stage.take(answer())
    assert seen == [stage.transport]


@scene
async def test_an_answer_that_was_paused_at_its_end_is_read_again():
    stage = Stage()
    given = stage.ask()
    stage.take(answer()[:-1])
    given.pause()
    stage.take(answer()[-1:])
    assert stage.transport.steps == ["pause", "resume"]
    assert stage.released == 1


@scene
async def test_bytes_without_a_request_close_the_connection():
    stage = Stage()
    stage.take(b"x")
    assert (stage.transport.aborted, stage.forgotten) == (True, 1)
    stage.connection.drop()
    assert stage.forgotten == 1
    severed = Stage()
    given = severed.ask()
    severed.connection.sever()
    assert str(given.given_up()) == "the gateway is shutting down"


@scene
async def test_what_a_consumer_raises_is_its_own_error():
    stage = Stage()
    given = stage.ask()
    stage.take(chunked(b"a", end=b""))

    def feed(data: bytes) -> None:
        if data == b"b":
            raise LookupError("mine")

    pumped = asyncio.ensure_future(given.pump(feed))
    await asyncio.sleep(0)
    stage.take(b"1\r\nb\r\n")
    with pytest.raises(LookupError):
        await pumped
    assert stage.transport.aborted


def test_only_so_many_names_of_headers_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_NAMES_MAX", len(module._NAMES) + 1)
    assert module._known(b"X-New-One") == "x-new-one"
    assert module._known(b"X-New-Two") == "x-new-two"
    assert b"X-New-One" in module._NAMES
    assert b"X-New-Two" not in module._NAMES
    del module._NAMES[b"X-New-One"]


# --- bodies


class Line:
    def __init__(self) -> None:
        self.steps: list[str] = []

    def hold(self) -> None:
        self.steps.append("hold")

    def unhold(self) -> None:
        self.steps.append("unhold")

    def drop(self) -> None:
        self.steps.append("drop")


def coming(room: int = 10) -> tuple[HttpAnswer, Line]:
    line = Line()
    loop = asyncio.get_running_loop()
    return HttpAnswer(line, loop, room, loop.create_future()), line


@scene
async def test_what_is_not_consumed_is_held_up_to_its_room():
    given, line = coming(10)
    given.take(b"x" * 10)
    assert line.steps == []
    given.take(b"y")
    assert line.steps == ["hold"]
    given.resume()
    assert line.steps == ["hold"], "it is full"
    fed: list[bytes] = []
    pumped = asyncio.ensure_future(given.pump(fed.append))
    await asyncio.sleep(0)
    assert line.steps == ["hold", "unhold"]
    assert fed == [b"x" * 10 + b"y"]
    given.pause()
    given.resume()
    given.end(None)
    await pumped
    assert line.steps == ["hold", "unhold", "hold", "unhold"]


@scene
async def test_a_body_is_read_up_to_its_limit():
    for size, fine in ((10, True), (11, False)):
        given, line = coming(100)
        held: list[int] = []
        given.take(b"x" * 4)
        reading = asyncio.ensure_future(given.read(10, held.append))
        await asyncio.sleep(0)
        if fine:
            given.take(b"y" * (size - 4))
            given.end(None)
            assert await reading == b"x" * 4 + b"y" * 6
            assert held == [4, 6]
        else:
            with pytest.raises(TransportFault, match="too large"):
                given.take(b"y" * (size - 4))
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            assert line.steps == ["drop"]
    for headers, kept in (({"content-length": "11"}, b""), ({}, b"x" * 11)):
        given, line = coming(100)
        given.headers = headers
        if kept:
            given.take(kept)
        with pytest.raises(TransportFault) as caught:
            await given.read(10)
        assert caught.value.problem == "too_large"
        assert line.steps == ["drop"]


@scene
async def test_a_body_that_is_there_is_returned_at_once():
    for pieces in ([b"ab"], [b"a", b"b"], []):
        given, _ = coming(100)
        for piece in pieces:
            given.take(piece)
        given.end(None)
        assert await given.read(10) == b"".join(pieces)
    given, _ = coming()
    given.end(TransportFault("broken", "gone"))
    for work in (given.read(10),):
        with pytest.raises(TransportFault, match="gone"):
            await work


@scene
async def test_what_is_aborted_ends_once():
    given, line = coming()
    given.abort()
    given.abort()
    assert line.steps == ["drop"]
    assert str(given.given_up()) == "the exchange was aborted"


# --- codings


@rows(
    "coding, kind", [("", None), ("identity", None), (" GZIP ", True), ("x-gzip", True), ("Deflate", False)]
)
def test_a_coding_is_known_by_its_name(coding, kind):
    decoder = decoder_for(coding)
    assert (decoder is None) is (kind is None)
    if decoder is not None:
        assert decoder._gzip is kind


def packed(data: bytes, bits: int) -> bytes:
    made = zlib.compressobj(wbits=bits)
    return made.compress(data) + made.flush()


@rows("gzip, bits", [(True, 31), (False, 15), (False, -15)])
def test_each_coding_is_undone_piece_by_piece(gzip, bits):
    coded = packed(b"words " * 1000, bits)
    decoder = Decoder(gzip=gzip)
    assert b"".join(decoder.decode(coded[at : at + 7]) for at in range(0, len(coded), 7)) == b"words " * 1000
    decoder.finish()
    cut = Decoder(gzip=gzip)
    cut.decode(coded[:-1])
    with pytest.raises(TransportFault) as caught:
        cut.finish()
    assert caught.value.problem == "broken"
    Decoder(gzip=gzip).finish()
    more = Decoder(gzip=gzip)
    if gzip:
        assert more.decode(coded * 2) == b"words " * 2000
        more.finish()
    else:
        with pytest.raises(TransportFault, match="could not be decompressed"):
            more.decode(coded + b"x")


def test_a_body_may_grow_a_hundredfold_beyond_a_megabyte():
    for size, fine in ((1024 * KIB, True), (1024 * KIB + 1, False)):
        coded = packed(b"x" * size, 31)
        assert size > 100 * len(coded)
        decoder = Decoder(gzip=True)
        if fine:
            assert len(decoder.decode(coded)) == size
        else:
            with pytest.raises(TransportFault) as caught:
                decoder.decode(coded)
            assert caught.value.problem == "too_large"
    decoder = Decoder(gzip=True)
    decoder._consumed, decoder._produced = 20_000, 1_999_999
    decoder._count(1)
    with pytest.raises(TransportFault):
        decoder._count(1)
