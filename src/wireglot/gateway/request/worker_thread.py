"""Large bodies in worker threads: while one is parsed, fitted or written, other requests are served.

A few threads are enough, although only one runs Python at a time: a thread that waits for the interpreter
gets it within a millisecond, whatever the others do. Only single calls into C keep it longer (decision 16).

The threads are shared by all callers: each gets its turn, and none may have all of them. Work ends when its
caller has left or its time is up: Python raises an exception in its thread, wherever it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import sys
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from types import FrameType
from typing import Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from wireglot.gateway.errors import RequestError
from wireglot_core.wire.cache import Cache, KnownBody

T = TypeVar("T")
P = ParamSpec("P")

LARGE_BYTES: Final = 128 * 1024
"""Smaller bodies are handled on the loop: even 650 turns of a conversation take only some 30 milliseconds,
and most bodies of this size one or two."""

_MAX_KNOWN_BYTES: Final = 2 * 1024 * 1024
"""Bytes of a body, mostly cached, that is parsed without a thread: up to this size, comparing and rewriting
the cached part takes a fraction of a millisecond."""

THREAD_NAME: Final = "large-body"
_MAX_THREADS: Final = 4
"""Threads in which large bodies are worked on; any more bodies wait. With one thread, all would wait for the
largest."""
_SHARED: Final = ("wireglot_core.cache", "wireglot.gateway.observe", "wireglot.gateway.trace", "importlib")
"""Modules that keep state which several threads use."""
_AGAIN_SECONDS: Final = 0.005
_JUMPS: Final = 8
_OWN: Final = "the gateway"
_SWITCH_SECONDS: Final = 0.001
"""Python's own 5 ms would be felt in each round of the loop, and a request takes about ten of those."""


def weight(body: bytes, grown: KnownBody | None) -> int:
    """The amount of work for a body, in bytes that are not cached."""
    if grown is None or len(body) > _MAX_KNOWN_BYTES:
        return len(body)
    return min(len(body), grown.work)


def known_of(body: bytes, memory: Cache | None, turns: str) -> KnownBody | None:
    """The cached part of a large body, if so little of it is new that it is parsed on the loop."""
    if memory is None or not turns or len(body) > _MAX_KNOWN_BYTES:
        return None
    grown = memory.compare(body, turns, LARGE_BYTES)
    return grown if weight(body, grown) <= LARGE_BYTES else None


# Threads for large bodies that the requests of one client key may use at once: the others serve other keys,
# however long this one's work takes.
MAX_THREADS_OF_A_KEY: Final = 2

# Seconds that one step of the work on a large body may take in its thread. The largest body takes a few; with
# all threads busy on a slow machine a tenth of this.
MAX_WORK_SECONDS: Final = 120.0


class Threads(ThreadPoolExecutor):
    """Worker threads of an event loop. A future refuses StopIteration: the caller of work that
    raises it would wait for ever. It becomes another error."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Future[T]:
        return super().submit(_without_stop_iteration, partial(work, *args, **options))


def _without_stop_iteration(work: Callable[[], T]) -> T:
    try:
        return work()
    except StopIteration as problem:
        raise RuntimeError("work in a thread raised StopIteration") from problem


_threads: Final = Threads(_MAX_THREADS, thread_name_prefix=THREAD_NAME)  # each starts when needed

worker: Final[ContextVar[str]] = ContextVar("worker", default="")
"""For whom the current task works: the name of its client key, or the address of its client."""


class _Abandoned(BaseException):
    """The caller has left: raised in the thread that works for it. Not an Exception, which work may catch."""


class _Work(Generic[T]):
    """A piece of work on its way through a thread."""

    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._lock = threading.RLock()
        self._thread = 0
        self._is_broken_off = False
        self.is_abandoned = False

    def run(self) -> T | None:
        """In a thread. None if it was abandoned."""
        try:
            try:
                return self._run()
            finally:
                self._leave()
        except _Abandoned:
            return None

    def _run(self) -> T | None:
        with self._lock:
            if self.is_abandoned:
                return None
            self._thread = threading.get_ident()
            _at_work[self._thread] = self
        return self._work()

    def _leave(self) -> None:
        with self._lock:
            self._thread = 0
        _at_work.pop(threading.get_ident(), None)
        if self._is_broken_off:
            # If the exception has not reached the thread yet, it does at a jump back, and not in its next
            # work. Taking it back would leave a flag set, which makes all Python code slower from then on.
            for _ in range(_JUMPS):
                pass

    def abandon(self) -> None:
        """Break it off as soon as it changes nothing that others use."""
        with self._lock:
            self.is_abandoned = True
            thread = self._thread
            # Only once: the next time, the thread may work for another.
            if not thread or thread == threading.get_ident() or self._is_broken_off:
                return
            self._is_broken_off = _break_off(thread)
            if not self._is_broken_off:
                self._loop.call_later(_AGAIN_SECONDS, self.abandon)

    def go_on(self) -> None:
        """In the thread: it was not broken off after all, and will be soon."""
        with self._lock:
            self._is_broken_off = False
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.abandon)


_at_work: Final[dict[int, _Work[Any]]] = {}
"""By thread."""


class _Unraisable:
    """Receives the exceptions that Python cannot raise, in place of `before`. One that breaks work off is
    lost in a finalizer, or in a callback of the garbage collector."""

    def __init__(self, before: Callable[[sys.UnraisableHookArgs], object]) -> None:
        self._before = before

    def __call__(self, lost: sys.UnraisableHookArgs) -> None:
        work = _at_work.get(threading.get_ident())
        if work is not None and lost.exc_type is _Abandoned:
            work.go_on()
        else:
            self._before(lost)


_LOST: Final = _Unraisable.__call__.__code__


def _break_off(thread: int) -> bool:
    """Raise in a thread, unless it is within code that keeps state for all, or has moved while that was
    looked up."""
    ident, raised = ctypes.c_ulong(thread), ctypes.py_object(_Abandoned)
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    top = sys._current_frames().get(thread)
    at = top.f_lasti if top is not None else 0
    if _changes_shared(top):
        return False
    if sys._current_frames().get(thread) is top and (top is None or top.f_lasti == at):
        # Python switches threads after calls and at jumps back: the thread cannot move in between.
        raise_in(ident, raised)
        return True
    return False


def _changes_shared(frame: FrameType | None) -> bool:
    """Whether a thread is within code that keeps state for all, or that receives a lost exception. Entering
    it is a step that would raise."""
    while frame is not None:
        if frame.f_code is _LOST or frame.f_globals.get("__name__", "").startswith(_SHARED):
            return True
        frame = frame.f_back
    return False


class _Shares:
    """Who may use the threads next, in one event loop."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By client key, the one whose turn is next first."""

    async def enter(self, key: str) -> None:
        if not self._waiting and self._has_room(key):
            self._running[key] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._remove(key, turn)
            else:
                self.leave(key)
            raise

    def leave(self, key: str) -> None:
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        self._next()

    def _has_room(self, key: str) -> bool:
        return self._running.total() < _MAX_THREADS and self._running[key] < MAX_THREADS_OF_A_KEY

    def _next(self) -> None:
        """Let those work for whom there is a thread, one of each key after the other."""
        while key := next(filter(self._has_room, self._waiting), ""):
            turn = self._waiting[key].popleft()
            self._waiting.move_to_end(key)
            if not self._waiting[key]:
                del self._waiting[key]
            if not turn.cancelled():  # its caller has left in this step of the loop, and does not know yet
                self._running[key] += 1
                turn.set_result(None)

    def _remove(self, key: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(key)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[key]


_shares: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Shares]] = WeakKeyDictionary()


async def run_in_thread(work: Callable[[], T]) -> T:
    """The result of `work`, or its exception. It may change nothing that other code reads meanwhile: if the
    caller is cancelled, or the work takes too long, it is broken off at any place."""
    if sys.getswitchinterval() > _SWITCH_SECONDS:
        sys.setswitchinterval(_SWITCH_SECONDS)
    if not isinstance(sys.unraisablehook, _Unraisable):
        sys.unraisablehook = _Unraisable(sys.unraisablehook)
    loop = asyncio.get_running_loop()
    shares = _shares.get(loop)
    if shares is None:
        shares = _shares[loop] = _Shares()
    key = worker.get() or _OWN
    await shares.enter(key)
    piece = _Work(work, loop)
    future: asyncio.Future[T | None] = loop.run_in_executor(_threads, piece.run)

    def ended(future: asyncio.Future[T | None]) -> None:
        shares.leave(key)  # only now: work that is to be broken off may still be in one call into C
        if not future.cancelled():
            future.exception()  # seen: its caller may have left

    future.add_done_callback(ended)
    timer = loop.call_later(MAX_WORK_SECONDS, piece.abandon)
    try:
        done: Any = await asyncio.shield(future)
    except asyncio.CancelledError:
        piece.abandon()
        raise
    finally:
        timer.cancel()
        del future  # its exception refers to this frame: together they would wait for the garbage collector
    if piece.is_abandoned:
        raise RequestError(
            "too_large", f"the work on this body took more than {MAX_WORK_SECONDS:g} s", final=True
        )
    return done  # type: ignore[no-any-return]  # not None, since it was not abandoned
