"""What lives beside a client and ends with it, however that ends: its gateway, a folder of its files.

The command turns into the client by exec, so that the terminal, signals and the exit status are the client's
alone. What must outlast it for a moment is a process that no terminal reaches and nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.cli.event_loop import run_loop
from wireglot.cli.serve.allocator import give_large_blocks_back
from wireglot.cli.serve.descriptors import raise_limit
from wireglot.cli.serve.privileges import give_up
from wireglot.gateway import config
from wireglot.gateway.run import Process
from wireglot.stores import StoreDown, StoreUnusable

_LOOK_SECONDS: Final = 1.0


class DidNotStart(Exception):
    """In words for people."""


class Own(msgspec.Struct, frozen=True):
    """The gateway to start."""

    path: Path | None
    environ: Mapping[str, str]
    overrides: Mapping[str, Any]
    log: str | None = None


class _Told(msgspec.Struct):
    url: str = ""
    problem: str = ""


def start_gateway(own: Own, folder: Path | None) -> str:
    """Its URL. It ends when this process does, or the program that this process turns into."""
    client = os.getpid()
    told = _in_background(lambda tell: _serve(own, client, folder, tell))
    if not told.url:
        raise DidNotStart(told.problem or "its gateway ended at once")
    return told.url


def remove_afterwards(folder: Path) -> None:
    """The folder goes when this process ends, or the program that this process turns into."""
    client = os.getpid()

    def work(tell: Callable[[_Told], None]) -> None:
        tell(_Told())
        _wait_for_end(client)
        shutil.rmtree(folder, ignore_errors=True)

    _in_background(work)


def _serve(own: Own, client: int, folder: Path | None, tell: Callable[[_Told], None]) -> None:
    log = -1
    try:
        if own.log is not None:
            log = os.open(own.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        give_up(own.environ)
        give_large_blocks_back()
        raise_limit()
        settings = config.load(own.path, environ=own.environ, overrides=own.overrides)

        async def work() -> None:
            process = Process(
                settings,
                path=own.path,
                environ=own.environ,
                overrides=own.overrides,
                log_fd=log if log >= 0 else 2,
            )
            await process.start()
            ended = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, ended.set)

            def wait() -> None:
                _wait_for_end(client)
                with contextlib.suppress(RuntimeError):  # the loop has gone
                    loop.call_soon_threadsafe(ended.set)

            threading.Thread(target=wait, daemon=True).start()
            tell(_Told(process.url))
            await ended.wait()
            await process.close()

        run_loop(work())
    except (config.ConfigError, StoreUnusable, StoreDown) as problem:
        tell(_Told(problem=str(problem)))
    except OSError as fault:
        tell(_Told(problem=f"{own.log or 'its gateway'}: {fault.strerror or fault}"))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _in_background(work: Callable[[Callable[[_Told], None]], None]) -> _Told:
    """Run it in a process of its own, and wait for the first that it tells."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            os.setsid()  # Ctrl-C is the client's
            if os.fork() == 0:  # the client has no child that it does not know of
                _let_go_of_standard_streams()
                work(lambda told: _tell(writing, told))
            status = 0
        finally:
            os._exit(status)  # nothing of the command is this process's to run
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    return msgspec.json.decode(said, type=_Told) if said else _Told()


def _let_go_of_standard_streams() -> None:
    """Who reads what the client writes must not wait for this process."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


def _tell(writing: int, told: _Told) -> None:
    with contextlib.suppress(OSError):  # nobody is there to hear it
        os.write(writing, msgspec.json.encode(told))
        os.close(writing)


def _wait_for_end(pid: int) -> None:
    """Also while nobody has taken note of its end: a descriptor of the process is ready then."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # another system, or an old one
        with contextlib.suppress(OSError):
            while True:
                os.kill(pid, 0)
                time.sleep(_LOOK_SECONDS)
        return
    select.select([descriptor], [], [])
    os.close(descriptor)
