"""The entry points. All arguments are checked, and errors in them raised, when the call is made."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

from wireglot.kimi.options import CallArguments, Options, SendingTransport, Tools, spelled_out
from wireglot.kimi.question import CompletionResult, question
from wireglot.kimi.setup import set_up
from wireglot_core.ir.stream import Event

if TYPE_CHECKING:
    import asyncio

    from wireglot.kimi.call import KimiCall

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
    """The blocking twin of a function that returns an async generator. It reads only on demand."""

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
    """An event loop that runs only while a caller waits for it."""

    def __init__(self) -> None:
        import asyncio  # loads sockets and TLS, which only calls need

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
            except BaseException as problem:  # whatever it is, it is raised in the caller
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


@spelled_out
async def complete(prompt: str | None = None, **options: Unpack[Options]) -> CompletionResult:
    """Ask Kimi, without tools.

    `prompt` is the user's next turn; `messages` is the conversation before it (or all of it), in Anthropic's
    form or the neutral one. `fields` are other fields of a Messages request: `thinking`, `stop_sequences`.
    """
    return await _call(CallArguments(prompt=prompt, tools=(), stream=False, **options)).whole()


@spelled_out
async def complete_with_tools(
    prompt: str | None = None, tools: Tools = (), **options: Unpack[Options]
) -> CompletionResult:
    """Ask Kimi, with tools in Anthropic's form (`name`, `description`, `input_schema`).

    `fields` may contain a `tool_choice`; see `complete` for the rest.
    """
    return await _call(CallArguments(prompt=prompt, tools=tools, stream=False, **options)).whole()


@spelled_out
def stream(prompt: str | None = None, **options: Unpack[Options]) -> AsyncGenerator[Event, None]:
    """The events (`wireglot_core.ir.stream`) of an answer as it arrives, up to `Finish`.

    Nothing is sent before the first event is requested. A stream that breaks off raises `KimiApiError`.
    """
    return _call(CallArguments(prompt=prompt, tools=(), stream=True, **options)).events()


@spelled_out
def stream_with_tools(
    prompt: str | None = None, tools: Tools = (), **options: Unpack[Options]
) -> AsyncGenerator[Event, None]:
    """`stream`, with tools in Anthropic's form."""
    return _call(CallArguments(prompt=prompt, tools=tools, stream=True, **options)).events()


complete_sync = blocking(complete)
complete_with_tools_sync = blocking(complete_with_tools)
stream_sync = iterating(stream)
stream_with_tools_sync = iterating(stream_with_tools)


def connections() -> AbstractAsyncContextManager[SendingTransport]:
    """Connections that several calls of one event loop share: pass the value as their `transport`.

    Without it every call opens a separate connection and closes it.
    """
    from wireglot.kimi.carrier import pooled

    return pooled()


def _call(asked: CallArguments) -> KimiCall:
    setup = set_up(asked.model, asked.api_key, asked.base_url)
    # The network code is loaded by the first call, not by the import.
    from wireglot.kimi.call import KimiCall

    return KimiCall(asked, setup, question(asked, setup.model))
