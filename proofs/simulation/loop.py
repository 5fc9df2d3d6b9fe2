"""The event loop of a run: virtual time, and an order of events that the seed decides.

Callbacks run in the order in which they were scheduled, as asyncio promises. What asyncio does not promise is
decided by the seed: when bytes arrive and threads get on, which of several comes first, how long a callback
takes (sometimes so long that timers and bytes fall due together), and so which of them meet in one turn.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from proofs.simulation.clock import CLOCK


class Owner(Protocol):
    """A simulated process: what belongs to one that has died never runs again."""

    name: str
    alive: bool


OWNER: contextvars.ContextVar[Owner | None] = contextvars.ContextVar("owner", default=None)
"""The simulated process that the running code belongs to. Tasks and callbacks inherit it."""

_Entry = tuple[float, float, int, asyncio.Handle]


class Stuck(Exception):
    """Nothing will ever happen again, and yet somebody waits."""


class Trace:
    """The events of a run, as one digest; kept or printed where somebody wants to read them."""

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self.count = 0
        self._digest = hashlib.blake2b(digest_size=16)
        self._show = show

    def note(self, what: str) -> None:
        self.count += 1
        line = f"{CLOCK.now - 1000:12.6f} {what}"
        self._digest.update(line.encode())
        if self._show is not None:
            self._show(line)

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


class LoopPace(NamedTuple):
    """How often a callback takes long (as a part of all), and how long. Meanwhile other things fall due."""

    slow: float
    seconds: tuple[float, ...] = (0.0,)


PACES = (
    LoopPace(0.0),
    LoopPace(0.001, (0.01, 0.1, 0.4, 1.5)),
    LoopPace(0.01, (0.01, 0.1, 0.4)),
    LoopPace(0.2, (0.001, 0.005, 0.02)),
)


class SimTask(asyncio.Task[Any]):
    """Its hash is its number: sets of tasks have the same order in every run."""

    count = 0

    def __init__(self, *args: Any, **more: Any) -> None:
        SimTask.count += 1
        self.number = SimTask.count  # before it is registered, by its hash
        context = more.get("context")
        self.owner = OWNER.get() if context is None else context.get(OWNER)
        super().__init__(*args, **more)

    def __hash__(self) -> int:
        return self.number


class SimLoop(asyncio.BaseEventLoop):
    """`network` and `threads` are set by whoever makes the world."""

    # As `BaseEventLoop` has them, unnamed in its types.
    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]
    _timer_cancelled_count: int

    def __init__(self, chance: random.Random, trace: Trace, pace: LoopPace) -> None:
        super().__init__()
        self.chance = chance
        self.trace = trace
        self._pace = pace
        self._events: list[_Entry] = []
        self._thread_events: list[_Entry] = []
        self._number = 0
        self.readers: dict[int, asyncio.Handle] = {}
        self.dead: list[Any] = []
        """What belonged to processes that have died: kept, so that nothing of it is finalized."""
        self.steps = 0
        self.network: Any = None
        self.threads: Any = None
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return CLOCK.now

    # Events of the world.

    def at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
        thread: bool = False,
    ) -> asyncio.Handle:
        """Call back at a moment; of several at one moment the seed decides the order."""
        handle = asyncio.Handle(callback, args, self, context)
        self._number += 1
        heap = self._thread_events if thread else self._events
        heapq.heappush(heap, (when, self.chance.random(), self._number, handle))
        return handle

    def _run_once(self) -> None:
        self._drop_cancelled()
        ready = self._ready
        timers = self._scheduled
        events, threads = self._events, self._thread_events
        if not ready:
            moments = [heap[0][0] for heap in (events, threads) if heap]
            if timers:
                moments.append(timers[0]._when)
            if not moments:
                raise Stuck("nothing is scheduled any more")
            CLOCK.now = max(CLOCK.now, min(moments))
        now = CLOCK.now
        came: list[_Entry] = []
        for heap in (events, threads):
            while heap and heap[0][0] <= now:
                came.append(heapq.heappop(heap))
        came.sort()
        ready.extend(entry[3] for entry in came)
        while timers and timers[0]._when <= now:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            self.run_handle(ready.popleft())

    def run_handle(self, handle: Any) -> None:
        if handle._cancelled:
            return
        owner = handle._context.get(OWNER)
        if owner is not None and not owner.alive:
            self.dead.append(handle)
            return
        self.steps += 1
        roll = self.chance.random()
        slow, seconds = self._pace
        CLOCK.now += roll * 0.0001 if roll > slow else self.chance.choice(seconds)
        handle._run()

    def block(self, is_over: Callable[[], bool], deadline: float | None) -> bool:
        """The loop itself waits for a thread: nothing but threads gets on."""
        threads = self._thread_events
        while not is_over():
            if threads and (deadline is None or threads[0][0] <= deadline):
                when, _, _, handle = heapq.heappop(threads)
                CLOCK.now = max(CLOCK.now, when)
                self.run_handle(handle)
            elif deadline is not None:
                CLOCK.now = max(CLOCK.now, deadline)
                return is_over()
            else:
                raise Stuck("the loop waits for a thread that will never come")
        return True

    def _drop_cancelled(self) -> None:
        timers = self._scheduled
        while timers and timers[0]._cancelled:
            self._timer_cancelled_count -= 1
            timer = heapq.heappop(timers)
            timer._scheduled = False

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    def _process_events(self, event_list: object) -> None:
        raise AssertionError("there is no selector")

    # Descriptors: those of kernel syncs, and of nobody else.

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]  # any
        self.readers[fd] = asyncio.Handle(callback, args, self)

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    def readable(self, fd: int) -> None:
        """Something can be read from a descriptor."""
        handle = self.readers.get(fd)
        if handle is not None:
            self._ready.append(handle)

    # Threads.

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]  # any
        return self.threads.run(func, *args)

    # The network.

    async def getaddrinfo(self, host: Any, port: Any, **more: Any) -> Any:
        return await self.network.look_up(host, port)

    async def sock_connect(self, sock: Any, address: Any) -> None:
        await self.network.connect(sock, address)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **more: Any
    ) -> Any:
        if sock is None:
            sock = self.network.socket()
            await self.network.connect(sock, (host, port))
        return await self.network.attach(protocol_factory, sock)

    async def create_server(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **more: Any
    ) -> Any:
        return self.network.listen(protocol_factory, (host, port), shared=bool(more.get("reuse_port")))

    async def create_unix_server(self, protocol_factory: Any, path: Any = None, **more: Any) -> Any:
        return self.network.listen(protocol_factory, (path, 0), shared=True)

    async def create_unix_connection(self, protocol_factory: Any, path: Any = None, **more: Any) -> Any:
        sock = self.network.socket()
        await self.network.connect(sock, (path, 0))
        return await self.network.attach(protocol_factory, sock)


def _make_task(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
    return SimTask(work, loop=loop, **more)
