"""Runs one command of the command line and returns its exit status.

It imports little at its top, so that an early interrupt ends in one line, too.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from types import FrameType
from typing import TYPE_CHECKING, Final, TextIO

from wireglot.cli.terminal import (
    FAILED,
    HUNG_UP,
    INTERRUPTED,
    PIPE_CLOSED,
    TERMINATED,
    UNUSABLE,
    CommandError,
    complain,
    say,
)

if TYPE_CHECKING:
    import argparse

__all__ = ["main"]

PURE: Final = "WIREGLOT_PURE"
"""If set, runs without the native module."""

_COLLECTOR_OBJECTS: Final = 50_000
"""New objects between two runs of the garbage collector. A gateway loads some 100,000 long-lived objects at
its start: scanning them every 700 would take a twelfth of the start-up time."""

_ENDINGS: Final = {
    "SIGINT": (INTERRUPTED, "interrupted"),
    "SIGTERM": (TERMINATED, "terminated"),
    "SIGHUP": (HUNG_UP, "the terminal was closed"),
}
"""Signals that end a command in order: temporary files are removed."""
_END_SECONDS: Final = 5.0
"""After a second such signal a command has this long to end: what hangs may be a thread, for which Python
waits at its exit."""


_SHORT: Final = """\
usage: wireglot COMMAND ...

  wireglot run claude     start Claude Code (codex, gemini, ...) with a gateway
  wireglot demo           see one request in every dialect, without an account
  wireglot init           find your providers and write a configuration
  wireglot serve          run the gateway
  wireglot inspect        open the inspector of a running gateway
  wireglot doctor         diagnose problems and suggest fixes

`wireglot --help` lists all commands, `wireglot COMMAND --help` explains one."""
"""For those who call it without a command."""


class _Ended(KeyboardInterrupt):
    """A signal. Code that cleans up after Ctrl-C cleans up after any of them."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. No user error ends in a traceback."""
    looks = gc.get_threshold()
    gc.set_threshold(_COLLECTOR_OBJECTS, *looks[1:])
    mute = _keep_descriptors()
    if os.environ.get(PURE):  # see wire/scan.py: importing this fails from here on
        sys.modules["wireglot_core.wire._scan"] = None  # type: ignore[assignment]  # None makes its import fail
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character must not make it fail
    given = sys.argv[1:] if argv is None else argv
    try:
        with _reload_delayed(bool(given) and given[0] == "serve"), _ended_by_signals():
            return _status(argv, mute)
    except KeyboardInterrupt as interrupt:
        _flush_or_forget(sys.stdout)
        if sys.stderr.isatty():
            say("")  # after the ^C that the terminal shows
        ended = interrupt if isinstance(interrupt, _Ended) else _Ended(*_ENDINGS["SIGINT"])
        complain(ended)
        return ended.status
    finally:
        gc.set_threshold(*looks)
        _flush_or_forget(sys.stderr)


def _status(argv: Sequence[str] | None, mute: bool) -> int:
    from wireglot.cli.parser import build_parser

    try:
        given = sys.argv[1:] if argv is None else argv
        status = _run(build_parser(given[0] if given else ""), given, mute)
        sys.stdout.flush()
    except ModuleNotFoundError as missing:
        if (package := _package_of_others(missing)) is None:
            raise
        from wireglot_core.extras import install_hint

        complain(f"this command needs {package}, which is not installed: {install_hint()}")
        return UNUSABLE
    except BrokenPipeError:
        _forget(sys.stdout)
        return PIPE_CLOSED
    except OSError as fault:  # a full disk, an unusable file, a device that fails
        _forget(sys.stdout)
        reason = fault.strerror or str(fault)
        complain(f"{fault.filename}: {reason}" if isinstance(fault.filename, str) else reason)
        return UNUSABLE
    except KeyboardInterrupt:
        raise
    except CommandError as problem:
        complain(problem)
        return problem.status
    except _known_faults() as problem:
        from wireglot.stores import StoreDown, StoreUnusable

        # If a store does not answer, its address is the first thing to check.
        complain(f"store.url: {problem}" if isinstance(problem, StoreDown) else problem)
        return FAILED if isinstance(problem, StoreDown | StoreUnusable) else UNUSABLE
    return status


def _run(parser: argparse.ArgumentParser, argv: Sequence[str] | None, mute: bool) -> int:
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as leaving:  # argparse has printed the message
        return leaving.code if isinstance(leaving.code, int) else UNUSABLE
    if mute and arguments.command != "serve":  # which prints nothing there
        complain("standard output is closed")
        return UNUSABLE
    if arguments.command is None:
        print(_SHORT)
        return UNUSABLE
    status: int = arguments.run(arguments)
    return status


@contextlib.contextmanager
def _reload_delayed(is_gateway: bool) -> Iterator[None]:
    """To a gateway SIGHUP says that its configuration has changed. One that comes before it can reload is
    delayed until then (`gateway/run.py`), since it would end the process."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_gateway or not is_main or not hasattr(signal, "SIGHUP"):  # Windows has none
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        handler = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # one that is pending is dropped
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(signal.SIGHUP, handler)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within this context, signals that would kill the process end the command, wherever it is. Signals that
    others handle or ignore (nohup) are not changed.

    asyncio's own handler for SIGINT waits for the loop: a coroutine that waits for a user's answer or a
    silent host would never be interrupted.
    """
    before = {}
    signals = count(1)

    def ender(status: int, words: str) -> Callable[[int, FrameType | None], None]:
        def end(number: int, frame: FrameType | None) -> None:
            if next(signals) == 2:
                faulthandler.dump_traceback_later(_END_SECONDS, file=2, exit=True)
            raise _Ended(status, words)

        return end

    if threading.current_thread() is threading.main_thread():
        for name, (status, words) in _ENDINGS.items():
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) in (
                signal.SIG_DFL,
                signal.default_int_handler,
            ):
                before[number] = signal.signal(number, ender(status, words))
    try:
        yield
    finally:
        for number, handler in before.items():
            if (
                signal.getsignal(number) != signal.SIG_IGN
            ):  # a command that has ended well ignores it to the end
                signal.signal(number, handler)


def _known_faults() -> tuple[type[Exception], ...]:
    """Errors of a configuration, a store, or a dialect of another package. Imported only after an error:
    these modules load most others."""
    from wireglot.gateway.config import ConfigError
    from wireglot.stores import StoreDown, StoreUnusable
    from wireglot_core.dialects.paths import PathTaken
    from wireglot_core.dialects.registry import BadPlugin

    return BadPlugin, PathTaken, ConfigError, StoreDown, StoreUnusable


def _package_of_others(missing: ModuleNotFoundError) -> str | None:
    """The library alone may be installed (docs/decisions/0020); a missing module of Python or of ours is a
    bug."""
    package = (missing.name or "").partition(".")[0]
    if package in ("", "wireglot", "wireglot_core") or package in sys.stdlib_module_names:
        return None
    return package


def _keep_descriptors() -> bool:
    """Replace closed standard descriptors by a sink; returns whether standard output was closed.

    Otherwise the next file or socket would get the number, and printed or logged text would be written there.
    """
    closed = [number for number in (0, 1, 2) if _is_closed(number)]
    for number in closed:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != number:
            os.dup2(nowhere, number)
            os.close(nowhere)
    mute = sys.stdout is None or (1 in closed and sys.stdout is sys.__stdout__)
    if sys.stdout is None:
        sys.stdout = _sink(1)
    if sys.stderr is None:
        sys.stderr = _sink(2)
    return mute


def _is_closed(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return True
    return False


def _sink(number: int) -> io.TextIOWrapper:
    return open(number, "w", encoding="utf-8", errors="replace", closefd=False)


def _flush_or_forget(stream: TextIO) -> None:
    try:
        stream.flush()
    except (OSError, ValueError, KeyboardInterrupt):  # it may wait for a reader that does not read
        _forget(stream)


def _forget(stream: TextIO) -> None:
    """Nothing more can or needs to be written: keep the interpreter from flushing the rest at exit, which
    would change the status."""
    try:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, stream.fileno())
        os.close(sink)
    except (OSError, ValueError):
        pass
