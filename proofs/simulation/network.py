"""TCP in memory: latency, pieces of any size, windows that fill, resets, half-open connections, names that do
not resolve. Bytes of one connection stay in order, as TCP promises; those of several do not."""

from __future__ import annotations

import asyncio
import contextvars
import math
import random
import socket
import zlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from proofs.simulation.clock import CLOCK
from proofs.simulation.loop import OWNER, Owner, SimLoop

Cut = Literal["reset", "silence"]
"""reset: both sides learn of it. silence: neither does, until it has waited for long."""

_GIVE_UP_SECONDS = 30.0
"""After which TCP's keep-alive reports that a peer is silent."""
Address = tuple[Any, int]


class Weather(NamedTuple):
    """How good the network is."""

    latency: float = 0.001
    jitter: float = 0.002
    pieces: float = 0.2
    """How often a write arrives in several pieces."""
    window: int = 65_536
    """Bytes that may be under way or unread."""
    cuts: float = 0.0
    """How often a connection is to be cut, as a part of all."""
    lost_names: float = 0.0
    """How often a name does not resolve."""


class SimSocket:
    """What a program holds of a connection before and beside its transport."""

    family = socket.AF_INET

    def __init__(self, *_: Any) -> None:
        self.endpoint: Endpoint | None = None
        self.linger = False
        self.name: Address = ("127.0.0.1", 0)

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        self.linger = self.linger or (level == socket.SOL_SOCKET and option == socket.SO_LINGER)

    def setblocking(self, flag: bool) -> None:
        pass

    def getsockname(self) -> Address:
        return self.name

    def close(self) -> None:
        if self.endpoint is not None and self.endpoint.protocol is None:
            self.endpoint.abort()


class SimServer:
    """A listener, as `asyncio.Server` looks."""

    def __init__(self, network: Network, factory: Callable[[], Any], address: Address) -> None:
        self.network = network
        self.factory = factory
        self.address = address
        self.context = contextvars.copy_context()
        self.owner = OWNER.get()
        sock = SimSocket()
        sock.name = address
        self.sockets: tuple[SimSocket, ...] = (sock,)

    def close(self) -> None:
        self.sockets = ()
        listeners = self.network.listeners.get(self.address, [])
        if self in listeners:
            listeners.remove(self)

    def is_serving(self) -> bool:
        return bool(self.sockets)

    async def wait_closed(self) -> None:
        pass


class Endpoint(asyncio.Transport):
    """One side of a connection, as asyncio's transports behave."""

    def __init__(self, network: Network, number: str, sock: SimSocket) -> None:
        super().__init__()
        self.network = network
        self.number = number
        self.sock = sock
        self.context = contextvars.copy_context()
        self.owner: Owner | None = OWNER.get()
        self.protocol: Any = None
        self.peer: Endpoint
        self.names: tuple[Address, Address] = (("127.0.0.1", 1), ("127.0.0.1", 2))
        self._buffer = bytearray()
        self._inbox = bytearray()
        self._high, self._low = 65_536, 16_384
        self._under_way = 0
        self._last_arrival = 0.0
        self._paused = False
        self._pressed = False
        self._closing = False
        self._eof_due = False
        """The last bytes are to be followed by the end."""
        self._eof_sent = False
        self._eof_came = False
        self._eof_told = False
        self.lost = False
        self.silent = False
        """Nothing that is sent from here arrives."""

    # What a program calls.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":
            return self.sock
        return {"sockname": self.names[0], "peername": self.names[1]}.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def get_protocol(self) -> Any:
        return self.protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return not self._paused and not self._closing

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            self.network.loop.call_soon(self._deliver, context=self.context.copy())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 65_536 if high is None else high
        self._low = self._high // 4 if low is None else low
        self._press()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def write(self, data: Any) -> None:
        if self.lost or self._eof_due or not data:
            return
        if self._closing:
            return
        self._buffer += data
        self._send()
        self._press()

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._eof_due = True
        self._send()

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if not self._buffer:
                self._leave(None)

    def abort(self) -> None:
        self._buffer.clear()
        self._closing = True
        self._leave(None, reset=self.sock.linger or bool(self._inbox))

    # What the network does.

    def attach(self, protocol: Any) -> None:
        self.protocol = protocol
        protocol.connection_made(self)
        self._deliver()

    def fail(self, problem: OSError) -> None:
        """The connection is gone, and this side learns of it."""
        if not self.lost:
            self._buffer.clear()
            self._closing = True
            self._leave(problem, tell=False)

    def vanish(self) -> None:
        """Its process has died: the system closes the socket."""
        if not self.lost:
            self.lost = self._closing = True
            self._emit("reset" if self._inbox else "end")

    def _send(self) -> None:
        window = self.network.weather.window
        room = window - self._under_way
        while self._buffer and room > 0:
            size = self.network.piece(min(len(self._buffer), room))
            piece = bytes(self._buffer[:size])
            del self._buffer[:size]
            self._under_way += size
            room -= size
            self._emit("data", piece)
        if not self._buffer:
            if self._closing and not self.lost:
                self._leave(None)
            elif self._eof_due and not self._eof_sent:
                self._eof_sent = True
                self._emit("end")

    def _emit(self, what: str, data: bytes = b"") -> None:
        """Send something to the other side, behind all that was sent before."""
        if self.silent:
            return
        network = self.network
        # Later than all before it: of events at one moment chance decides the order.
        arrival = max(math.nextafter(self._last_arrival, math.inf), CLOCK.now + network.delay())
        self._last_arrival = arrival
        network.loop.at(arrival, self.peer.arrive, what, data, context=self.peer.context.copy())

    def arrive(self, what: str, data: bytes) -> None:
        if self.peer.silent:
            return
        self.network.loop.trace.note(f"net {self.number} {what} {len(data)} {hash_of(data)}")
        if self.lost:
            if what == "data":
                self._emit_reset()
            return
        if what == "data":
            if self._closing:  # nobody will read it
                self.fail(ConnectionResetError(104, "Connection reset by peer"))
                self._emit_reset()
                return
            self._inbox += data
            self._deliver()
        elif what == "end":
            self._eof_came = True
            self._deliver()
        elif what == "reset":
            self.fail(ConnectionResetError(104, "Connection reset by peer"))

    def _emit_reset(self) -> None:
        peer = self.peer
        if not peer.lost and not self.silent:
            self.network.loop.at(
                CLOCK.now + self.network.delay(), peer.arrive, "reset", b"", context=peer.context.copy()
            )

    def _deliver(self) -> None:
        if self._paused or self.protocol is None or self.lost or self._closing:
            return
        if self._inbox:
            data = bytes(self._inbox)
            self._inbox.clear()
            self.network.loop.at(
                CLOCK.now + self.network.delay(),
                self.peer._taken,
                len(data),
                context=self.peer.context.copy(),
            )
            self.protocol.data_received(data)
        self._deliver_end()

    def _deliver_end(self) -> None:
        """Behind all data, unless the program has paused or left meanwhile."""
        if self._eof_came and not self._eof_told and not (self._paused or self.lost or self._closing):
            self._eof_told = True
            if not self.protocol.eof_received():
                self.close()

    def _taken(self, size: int) -> None:
        """The other side has read so much."""
        if self.peer.silent:
            return
        self._under_way -= size
        if not self.lost:
            self._send()
            self._press()

    def _press(self) -> None:
        size = len(self._buffer)
        if self.protocol is None or self.lost:
            return
        if not self._pressed and size > self._high:
            self._pressed = True
            self.protocol.pause_writing()
        elif self._pressed and size <= self._low:
            self._pressed = False
            self.protocol.resume_writing()

    def _leave(self, problem: OSError | None, *, reset: bool = False, tell: bool = True) -> None:
        if self.lost:
            return
        self.lost = True
        if tell and not (self._eof_sent and not reset):
            self._emit("reset" if reset else "end")
        self.network.open.pop(self, None)
        if self.protocol is not None:
            self.network.loop.call_soon(self.protocol.connection_lost, problem, context=self.context.copy())


class Network:
    def __init__(self, loop: SimLoop, chance: random.Random, weather: Weather) -> None:
        self.loop = loop
        self.chance = chance
        self.weather = weather
        self.listeners: dict[Address, list[SimServer]] = {}
        self.unreachable: set[Address] = set()
        """Where nothing answers, not even with a refusal."""
        self.names: dict[str, str] = {}
        self.open: dict[Endpoint, None] = {}
        self.made = 0
        self.cut = 0
        loop.network = self

    def socket(self) -> SimSocket:
        return SimSocket()

    def delay(self) -> float:
        return self.weather.latency + self.weather.jitter * self.chance.random() ** 3

    def piece(self, size: int) -> int:
        if size > 1 and self.chance.random() < self.weather.pieces:
            return self.chance.randint(1, size)
        return size

    async def look_up(self, host: str, port: int) -> list[Any]:
        await asyncio.sleep(self.delay())
        if host not in self.names or self.chance.random() < self.weather.lost_names:
            raise socket.gaierror(-2, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.names[host], port))]

    def listen(self, factory: Callable[[], Any], address: Address, *, shared: bool) -> SimServer:
        there = self.listeners.setdefault(address, [])
        if there and not shared:
            raise OSError(98, "Address already in use")
        server = SimServer(self, factory, address)
        there.append(server)
        return server

    async def connect(self, sock: SimSocket, address: Address) -> None:
        await asyncio.sleep(self.delay())
        if address in self.unreachable:
            await self.loop.create_future()
        servers = [
            server for server in self.listeners.get(address, []) if server.owner is None or server.owner.alive
        ]
        if not servers:
            raise ConnectionRefusedError(111, "Connection refused")
        server = self.chance.choice(servers)
        self.made += 1
        near = sock.endpoint = Endpoint(self, f"{self.made}a", sock)
        far = server.context.copy().run(Endpoint, self, f"{self.made}b", SimSocket())
        near.peer, far.peer = far, near
        near.names = (("127.0.0.1", 20_000 + self.made), address)
        far.names = (address, near.names[0])
        self.open[near] = self.open[far] = None
        self.loop.at(CLOCK.now + self.delay(), self._accept, server, far, context=far.context.copy())
        if self.chance.random() < self.weather.cuts:
            kind: Cut = self.chance.choice(("reset", "reset", "silence"))
            self.loop.at(CLOCK.now + self.chance.random() ** 2 * 5, self.sever, near, kind)

    def _accept(self, server: SimServer, far: Endpoint) -> None:
        if not server.sockets:
            far.lost = True
            far._emit_reset()
            return
        far.attach(server.factory())

    async def attach(self, factory: Callable[[], Any], sock: SimSocket) -> Any:
        endpoint = sock.endpoint
        assert endpoint is not None
        protocol = factory()
        made = self.loop.create_future()

        def begin() -> None:
            if endpoint.lost:
                if not made.done():
                    made.set_exception(ConnectionResetError(104, "Connection reset by peer"))
                return
            endpoint.context = contextvars.copy_context()
            endpoint.attach(protocol)
            if not made.done():
                made.set_result(None)

        self.loop.call_soon(begin)
        try:
            await made
        except BaseException:
            endpoint.abort()
            raise
        return endpoint, protocol

    def sever(self, endpoint: Endpoint, kind: Cut) -> None:
        sides = (endpoint, endpoint.peer)
        if all(side.lost for side in sides):
            return
        self.cut += 1
        self.loop.trace.note(f"net {endpoint.number} cut: {kind}")
        for side in sides:
            if kind == "silence":
                side.silent = True
            else:
                side.network.loop.at(
                    CLOCK.now + self.delay(),
                    side.fail,
                    ConnectionResetError(104, "Connection reset by peer"),
                    context=side.context.copy(),
                )
        if kind == "silence":
            for side in sides:
                self.loop.at(
                    CLOCK.now + _GIVE_UP_SECONDS + self.chance.random() * 10,
                    side.fail,
                    TimeoutError(110, "Connection timed out"),
                    context=side.context.copy(),
                )

    def drop(self, owner: Owner, *, silently: bool) -> None:
        """A process has died: its listeners go, and its connections; silently where its machine went too."""
        for servers in self.listeners.values():
            servers[:] = [server for server in servers if server.owner is not owner]
        for endpoint in list(self.open):
            if endpoint.owner is owner:
                del self.open[endpoint]
                if silently:
                    self.sever(endpoint, "silence")
                else:
                    endpoint.vanish()


def hash_of(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"
