"""A WebSocket to an upstream: its handshake, what it waits for, and what is left of it."""

import asyncio
import sys
from collections.abc import Callable
from typing import cast

import pytest
import trustme
from wsproto import WSConnection
from wsproto.connection import ConnectionType
from wsproto.events import AcceptConnection, CloseConnection, Event, Ping, Request, TextMessage

from tests.http.transport_dial_kit import KEY, serving, trusting
from tests.http.transport_kit import PATIENT, Peer, Serve, Server, always, answer, opened, post, scenario
from tests.waiting import until
from wireglot.http.client.answer import HttpAnswer
from wireglot.http.client.client import HttpTransport
from wireglot.http.client.websocket import ReadMessage, SocketRefused, UpstreamSocket, text_frame
from wireglot.http.frames import MAX_FRAMES_AT_ONCE, MAX_IDLE_FRAMES
from wireglot.http.transport import Timeouts, TransportFault

LIMIT = 100_000
Heard = list[Event]


def echoing(heard: Heard, reply: Callable[[WSConnection, TextMessage], bytes] | None = None) -> Serve:
    """Answers each message with itself, or as `reply` says."""

    async def serve(peer: Peer) -> None:
        protocol = WSConnection(ConnectionType.SERVER)
        while data := await peer.reader.read(65536):
            protocol.receive_data(data)
            for event in protocol.events():
                heard.append(event)
                if isinstance(event, Request):
                    await peer.send(protocol.send(AcceptConnection()))
                elif isinstance(event, TextMessage) and event.message_finished:
                    sent = protocol.send(TextMessage(event.data)) if reply is None else reply(protocol, event)
                    await peer.send(sent)
                elif isinstance(event, CloseConnection):
                    await peer.send(protocol.send(event.response()))

    return serve


def one(message: bytes, reply: HttpAnswer) -> bool:
    """An answer of one message."""
    reply.status = 200
    reply.take(message)
    return True


async def exchanged(socket: UpstreamSocket, message: bytes, timeouts: Timeouts = PATIENT) -> bytes:
    reply = socket.start(text_frame(message), timeouts, 1 << 16, one)
    await reply.waiter
    if not reply.status:
        raise reply.given_up()
    return await reply.read(1 << 20)


async def open_socket(transport: HttpTransport, server: Server | str, proxy: str = "") -> UpstreamSocket:
    return await transport.open_socket(post(server, headers=KEY, proxy=proxy), PATIENT, LIMIT)


@scenario
async def test_messages_go_both_ways_in_turn_and_a_close_says_goodbye():
    heard: Heard = []
    async with Server(echoing(heard)) as server, opened() as transport:
        socket = await open_socket(transport, server)
        assert [await exchanged(socket, text) for text in (b"one", b"two")] == [b"one", b"two"]
        request = heard[0]
        assert isinstance(request, Request)
        assert (request.target, request.extensions) == ("/v1/x", [])
        sent = {name.lower(): value for name, value in request.extra_headers}
        assert sent[KEY[0][0].encode()] == KEY[0][1].encode()
        assert transport.open_sockets == 1
        socket.close()
        assert transport.open_sockets == 0
        await until(lambda: isinstance(heard[-1], CloseConnection))
        assert heard[-1] == CloseConnection(code=1000, reason="")


@pytest.mark.parametrize("case", ["verified", "wrong name", "unknown authority"])
@scenario
async def test_tls_holds_before_the_upgrade_is_asked_for(case: str):
    context = {
        "verified": lambda: serving("127.0.0.1"),
        "wrong name": lambda: serving("example.org"),
        "unknown authority": lambda: serving("127.0.0.1", authority=trustme.CA()),
    }[case]()
    heard: Heard = []
    async with Server(echoing(heard), context) as server, opened(ssl_context=trusting()) as transport:
        if case == "verified":
            socket = await open_socket(transport, server)
            assert await exchanged(socket, b"hi") == b"hi"
            socket.close()
        else:
            with pytest.raises(TransportFault) as refused:
                await open_socket(transport, server)
            assert (refused.value.problem, refused.value.sent) == ("tls", False)
            assert heard == []
        assert transport.open_sockets == 0


@scenario
async def test_a_proxy_is_asked_as_for_any_other_request():
    async with Server(always(answer(status="403 Forbidden"))) as proxy, opened() as transport:
        url = f"http://user:pass@127.0.0.1:{proxy.port}"
        with pytest.raises(SocketRefused):
            await open_socket(transport, "http://upstream.example/v1/x", proxy=url)
        head = proxy.requests[0].lower()
        assert head.startswith(b"get http://upstream.example/v1/x http/1.1\r\nhost: upstream.example\r\n")
        assert b"proxy-authorization: basic dxnlcjpwyxnz\r\n" in head


@scenario
async def test_addresses_are_screened_as_for_any_other_request():
    def screen(*_: object) -> None:
        raise TransportFault("connect", "not there", sent=False)

    async with Server(echoing([])) as server, opened(screen=screen) as transport:
        with pytest.raises(TransportFault, match="not there"):
            await open_socket(transport, server)
        assert server.peers == []


_BAD_TOKEN = (
    b"HTTP/1.1 101 x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: AAAA\r\n\r\n"
)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (answer(status="426 Upgrade Required"), 426),
        (answer(status="404 Not Found"), 404),
        (answer(), 200),
        (b"HTTP/1.1 301 Moved\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n", 301),
        (b"\x16\x03\x01 no HTTP\r\n\r\n", 0),
        (_BAD_TOKEN, 0),
        (b"HTTP/1.1 101 x\r\n\r\n", 0),
        (b"HTTP/1.1 101 x\r\nx: " + b"y" * 100_000, 0),
        (b"", 0),
    ],
    ids=["426", "404", "200", "redirect", "garbage", "bad token", "no headers", "huge head", "close"],
)
@scenario
async def test_an_upgrade_that_is_none_is_refused(reply: bytes, status: int):
    async with Server(always(reply, close=not reply)) as server, opened() as transport:
        with pytest.raises(SocketRefused) as refused:
            await open_socket(transport, server)
        assert refused.value.status == status
        assert transport.open_sockets == 0


@scenario
async def test_an_upgrade_without_an_answer_is_not_waited_for():
    async def silent(peer: Peer) -> None:
        await peer.gone()

    async with Server(silent) as server, opened() as transport:
        short = Timeouts(connect=0.05)
        with pytest.raises(SocketRefused):
            await transport.open_socket(post(server), short, LIMIT)
        waiting = asyncio.create_task(open_socket(transport, server))
        await until(lambda: len(server.peers) == 2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert transport.open_sockets == 0


@pytest.mark.parametrize(
    ("timeouts", "problem"),
    [({"first_byte": 0.05}, "first_byte_timeout"), ({"total": 0.05}, "total_timeout")],
)
@scenario
async def test_an_answer_is_waited_for_as_long_as_the_timeouts_say(timeouts: dict[str, float], problem: str):
    async with Server(echoing([], lambda protocol, _: b"")) as server, opened() as transport:
        socket = await open_socket(transport, server)
        with pytest.raises(TransportFault) as fault:
            await exchanged(socket, b"hi", Timeouts(**timeouts))
        assert fault.value.problem == problem
        assert not socket.usable


@scenario
async def test_the_end_of_the_transport_ends_an_answer_on_its_way():
    async with Server(echoing([], lambda protocol, _: b"")) as server, opened() as transport:
        socket = await open_socket(transport, server)
        reply = socket.start(text_frame(b"hi"), PATIENT, 1 << 16, one)
        await transport.close()
        await reply.waiter
        assert not reply.status
        with pytest.raises(TransportFault, match="shutting down"):
            await open_socket(transport, server)


@scenario
async def test_a_reader_that_pauses_is_not_sent_more_than_it_has_room_for():
    size, count = 1000, 2000

    def many(protocol: WSConnection, _: TextMessage) -> bytes:
        return b"".join(protocol.send(TextMessage("x" * size)) for _ in range(count))

    got = 0

    def read(message: bytes, reply: HttpAnswer) -> bool:
        nonlocal got
        got += 1
        reply.status = 200
        reply.take(message)
        return got == count

    async with Server(echoing([], many)) as server, opened() as transport:
        socket = await open_socket(transport, server)
        reply = socket.start(text_frame(b"hi"), PATIENT, 10 * size, read)
        await reply.waiter
        await until(lambda: reply.full)
        held = got
        assert held < count
        taken: list[bytes] = []
        await reply.pump(taken.append)
        assert sum(map(len, taken)) == size * count
        socket.close()


def test_messages_of_every_size_arrive_as_they_were():
    for size in (0, 1, 3, 4, 5, 125, 126, 127, 65_535, 65_536, 300_001):
        message = ("né" * size)[:size].encode()
        protocol = WSConnection(ConnectionType.SERVER)
        handshake = WSConnection(ConnectionType.CLIENT)
        protocol.receive_data(handshake.send(Request("x", "/")))
        list(protocol.events())
        protocol.send(AcceptConnection())
        protocol.receive_data(text_frame(message))
        heard = [event for event in protocol.events() if isinstance(event, TextMessage)]
        assert "".join(event.data for event in heard).encode() == message
        assert heard[-1].message_finished


@scenario
async def test_a_header_that_cannot_be_sent_is_refused_before_anything_is():
    async with Server(echoing([])) as server, opened() as transport:
        with pytest.raises(TransportFault) as fault:
            await transport.open_socket(post(server, headers=[("x", "a\r\nb: c")]), PATIENT, LIMIT)
        assert (fault.value.problem, fault.value.sent) == ("protocol", False)
        assert transport.open_sockets == 0


class _Wire:
    """The transport of a socket whose steps are counted."""

    def __init__(self) -> None:
        self.written = b""
        self.is_paused = self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written += data

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    abort = close


async def on_a_wire() -> tuple[UpstreamSocket, _Wire, WSConnection]:
    """An open socket, its transport, and the upstream's end."""
    wire, upstream = _Wire(), WSConnection(ConnectionType.SERVER)
    socket = UpstreamSocket(asyncio.get_running_loop(), LIMIT, lambda _: None)
    socket.connection_made(cast(asyncio.Transport, wire))
    opening = asyncio.ensure_future(socket.open(Request("x", "/"), 60))
    await asyncio.sleep(0)
    upstream.receive_data(wire.written)
    list(upstream.events())
    socket.data_received(upstream.send(AcceptConnection()))
    await opening
    wire.written = b""
    return socket, wire, upstream


def counted(messages: list[bytes]) -> ReadMessage:
    """Keeps the messages of an answer, whose last is "end"."""

    def read(message: bytes, reply: HttpAnswer) -> bool:
        messages.append(message)
        reply.status = 200
        reply.take(message)
        return message == b"end"

    return read


def test_frames_are_read_a_number_at_a_time_and_meanwhile_no_more_is_received():
    async def check() -> None:
        socket, wire, upstream = await on_a_wire()
        messages: list[bytes] = []
        reply = socket.start(text_frame(b"hi"), PATIENT, 1 << 20, counted(messages))
        sent = [b"%d" % number for number in range(10 * MAX_FRAMES_AT_ONCE)] + [b"end"]
        socket.data_received(b"".join(upstream.send(TextMessage(text.decode())) for text in sent))
        seen = 0
        while wire.is_paused:
            assert 0 < len(messages) - seen <= MAX_FRAMES_AT_ONCE
            seen = len(messages)
            await asyncio.sleep(0)
        assert messages == sent
        assert await reply.read(1 << 20) == b"".join(sent)
        socket.sever()

    asyncio.run(check())


def test_a_reader_without_room_pauses_what_has_arrived_too():
    async def check() -> None:
        socket, wire, upstream = await on_a_wire()
        messages: list[bytes] = []
        reply = socket.start(text_frame(b"hi"), PATIENT, 10, counted(messages))
        sent = [b"message"] * (5 * MAX_FRAMES_AT_ONCE) + [b"end"]
        socket.data_received(b"".join(upstream.send(TextMessage(text.decode())) for text in sent))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(messages) == MAX_FRAMES_AT_ONCE
        socket.eof_received()  # TLS reports it although reading is paused
        wire.close()
        assert await reply.read(1 << 20) == b"".join(sent)

    asyncio.run(check())


@pytest.mark.parametrize("flood", ["pings", "empty fragments", "tiny fragments"])
def test_a_flood_of_frames_without_content_closes_it(flood: str):
    async def check() -> None:
        socket, wire, upstream = await on_a_wire()
        reply = socket.start(text_frame(b"hi"), PATIENT, 1 << 20, one)
        wire.written = b""
        frame = {
            "pings": lambda: upstream.send(Ping()),
            "empty fragments": lambda: upstream.send(TextMessage("", message_finished=False)),
            "tiny fragments": lambda: upstream.send(TextMessage("x", message_finished=False)),
        }[flood]
        first = frame()
        socket.data_received(first + frame() * 40_000)
        steps = 0
        while not wire.is_closed:
            await asyncio.sleep(0)
            steps += 1
        assert steps <= 2 * MAX_IDLE_FRAMES // MAX_FRAMES_AT_ONCE
        upstream.receive_data(wire.written)
        closed = [event for event in upstream.events() if isinstance(event, CloseConnection)]
        assert closed == [CloseConnection(code=1008, reason="too many frames without content")]
        await reply.waiter
        assert "too many frames" in str(reply.given_up())

    asyncio.run(check())


def test_of_an_answer_that_refuses_the_upgrade_only_the_head_is_read():
    async def check() -> None:
        wire = _Wire()
        socket = UpstreamSocket(asyncio.get_running_loop(), LIMIT, lambda _: None)
        socket.connection_made(cast(asyncio.Transport, wire))
        opening = asyncio.ensure_future(socket.open(Request("x", "/"), 60))
        await asyncio.sleep(0)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        calls = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        socket.data_received(head + b"1\r\nx\r\n" * 40_000)
        sys.setprofile(None)
        assert calls < 40_000
        with pytest.raises(SocketRefused):
            await opening

    asyncio.run(check())
