"""The same calls for code that does not await: with or without a running loop around it.

Without one the loop runs right here, so that Ctrl-C ends a call as it ends any other. Inside one (a notebook,
a callback) it runs in a thread of its own, and this one waits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio

P = ParamSpec("P")
T = TypeVar("T")


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The blocking twin of a coroutine function."""

    @wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        loop = _Loop()
        try:
            return loop.run(function(*args, **kwargs))
        finally:
            loop.close()

    return _renamed(twin, function)


def iterating(function: Callable[P, AsyncGenerator[T, None]]) -> Callable[P, Generator[T, None, None]]:
    """The blocking twin of a function that returns an async generator. It reads only when asked for more."""

    @wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return _iterate(function(*args, **kwargs))

    return _renamed(twin, function)


def _renamed(twin: Callable[P, T], function: Callable[..., Any]) -> Callable[P, T]:
    twin.__name__ = twin.__qualname__ = f"{function.__name__}_sync"
    twin.__doc__ = f"`{function.__name__}`, blocking.\n\n{function.__doc__}"
    return twin


def _iterate(values: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    loop = _Loop()
    try:
        while True:
            value = loop.run(_next(values))
            if value is _END:
                return
            yield value
    finally:
        loop.run(values.aclose())
        loop.close()


_END: Any = object()


async def _next(values: AsyncGenerator[T, None]) -> T:
    value: T = await anext(values, _END)
    return value


class _Loop:
    """An event loop that runs only while somebody waits for it."""

    def __init__(self) -> None:
        import asyncio  # brings sockets and TLS with it: loaded by those who call

        self._runner: asyncio.Runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._here_or_beside(lambda: self._runner.run(work))

    def close(self) -> None:
        self._here_or_beside(self._runner.close)

    def _here_or_beside(self, work: Callable[[], T]) -> T:
        return self._beside(work) if _is_inside_a_loop() else work()

    def _beside(self, work: Callable[[], T]) -> T:
        import contextvars
        import threading
        from concurrent.futures import Future, wait

        outcome: Future[T] = Future()

        def carry_out() -> None:
            try:
                outcome.set_result(work())
            except BaseException as problem:  # whatever it is, it belongs to the one who waits
                outcome.set_exception(problem)

        threading.Thread(
            target=contextvars.copy_context().run, args=(carry_out,), name="kimi", daemon=True
        ).start()
        try:
            return outcome.result()
        except KeyboardInterrupt:
            if not outcome.done():  # ours, not the work's own: it must stop too
                loop = self._runner.get_loop()
                loop.call_soon_threadsafe(_cancel_all, loop)
                wait((outcome,))
            raise


def _is_inside_a_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    for task in asyncio.all_tasks(loop):
        task.cancel()
