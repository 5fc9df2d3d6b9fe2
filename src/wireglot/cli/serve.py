"""Runs the gateway in this process, or in several under a supervisor, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from wireglot.cli.process_setup import (
    give_large_blocks_back,
    give_up,
    holes_given_back,
    raise_limit,
    run_loop,
)
from wireglot.cli.terminal import FAILED, OK, UNUSABLE, complain
from wireglot.cli.trust import approve, refusal_of_changes, trusted_config
from wireglot.gateway import config
from wireglot.gateway.observe.running import find_running
from wireglot.gateway.run import Process, WorkerPlace
from wireglot.gateway.settings import Settings
from wireglot.stores import StoreDown, StoreUnusable, open_counters, open_engine
from wireglot_core.dialects.paths import Paths
from wireglot_core.dialects.registry import surfaces

_KEY_BYTES: Final = 32


_MODELS: Final = "WIREGLOT_MODELS"
_SERVER: Final = ("host", "port", "workers", "log")
"""Options that override the settings of the same name in the section [server]."""


def run(arguments: argparse.Namespace) -> int:
    options = {}
    if arguments.model:
        if not os.environ.get(_MODELS):
            options[_MODELS] = "--model"
        # The variable reaches every worker, and its entries come before the file's.
        rules = [*arguments.model, os.environ.get(_MODELS, "")]
        os.environ[_MODELS] = ";".join(filter(None, rules))
    given = {name: getattr(arguments, name) for name in _SERVER}
    server: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    until = time.time() + arguments.trace * 60 if arguments.trace else 0.0
    return _start(arguments.config, {"server": server} if server else {}, options, record_until=until)


def _start(
    named: str | None,
    overrides: dict[str, Any],
    options: Mapping[str, str] = {},
    *,
    record_until: float = 0.0,
) -> int:
    """Run with the named configuration, or the one that is found, and the overrides of the command line.
    `options`: the given ones, by the variables that pass them to the workers. `record_until`: a time (unix
    seconds) until which all bodies are recorded."""
    try:
        file = trusted_config(named)
        path, why_not = file.path, refusal_of_changes(file)
        settings = config.load(path, overrides=overrides, content=file.content)
    except config.ConfigError as error:
        complain(_in_words_of(options, error))
        return UNUSABLE
    give_up()
    give_large_blocks_back()
    raise_limit()
    Paths(surfaces())  # two dialects at one path stop the start here, and not in each worker
    if settings.server.workers > 1:
        return _supervised(settings, path, overrides, why_not, record_until)
    return _serve(settings, path, overrides, why_not, None, record_until, _new_key())


def _new_key() -> str:
    """For `wireglot keys` and similar commands, which find it together with the gateway."""
    return secrets.token_urlsafe(_KEY_BYTES)


def _in_words_of(options: Mapping[str, str], error: config.ConfigError) -> config.ConfigError:
    """A problem with a value from the command line is reported by its option."""
    problems = [
        msgspec.structs.replace(problem, path=options.get(problem.path, problem.path))
        for problem in error.problems
    ]
    only = all(problem.path in options.values() for problem in problems)
    return config.ConfigError(problems, problems[0].path if only and len(problems) == 1 else error.source)


async def _try_store(settings: Settings) -> None:
    """Once for all workers: each of them would only report that it cannot start."""
    for url, opened in (
        (settings.store.url.value, open_engine),
        (settings.store.shared.value, open_counters),
    ):
        with contextlib.suppress(StoreDown):  # they wait for it, and serve what needs no state
            if url:
                found: Any = await opened(url)
                await (found[0] if isinstance(found, tuple) else found).close()


def _supervised(
    settings: Settings,
    path: Path | None,
    overrides: dict[str, Any],
    why_not: Callable[[bytes], str] | None,
    record_until: float,
) -> int:
    from wireglot.gateway.supervisor import Supervisor

    key = _new_key()

    def work(shared: Settings, place: WorkerPlace) -> int:
        return _serve(shared, path, overrides, why_not, place, record_until, key)

    supervisor = Supervisor(settings, work)
    try:
        asyncio.run(_try_store(settings))
        return supervisor.run()
    except StoreUnusable as problem:
        return _cannot_store(problem)
    except (OSError, UnicodeError) as fault:
        return _cannot_listen(settings, fault)


def _serve(
    settings: Settings,
    path: Path | None,
    overrides: dict[str, Any],
    why_not: Callable[[bytes], str] | None,
    place: WorkerPlace | None,
    record_until: float,
    operator_key: str,
) -> int:
    async def work() -> None:
        process = Process(
            settings,
            path=path,
            overrides=overrides,
            place=place,
            why_not=why_not,
            approve=approve if why_not is not None else None,
            record_until=record_until,
            operator_key=operator_key,
            guarded=True,
        )
        async with holes_given_back():
            await process.serve()

    try:
        run_loop(work())
    except config.ConfigError as error:
        complain(error)
        return UNUSABLE
    except StoreUnusable as problem:
        return _cannot_store(problem)
    except (OSError, UnicodeError) as fault:
        return _cannot_listen(settings, fault)
    return OK


def _cannot_store(problem: StoreUnusable) -> int:
    complain(problem)
    return FAILED


def _cannot_listen(settings: Settings, fault: OSError | UnicodeError) -> int:
    if isinstance(fault, OSError) and isinstance(fault.filename, str):  # it is about a file
        raise fault
    server = settings.server
    host = f"[{server.host}]" if ":" in server.host else server.host
    complain(f"cannot listen on {host}:{server.port}: {_why(fault, server.port, server.host)}")
    return FAILED


def _why(fault: OSError | UnicodeError, port: int, host: str = "127.0.0.1") -> str:
    if isinstance(fault, socket.gaierror | UnicodeError):  # UnicodeError: an invalid host name
        return "the host name cannot be resolved"
    # uvloop and asyncio put the address and more into strerror.
    reason = os.strerror(fault.errno) if fault.errno else str(fault)
    match fault.errno:
        case errno.EADDRINUSE:
            if pid := _own_gateway_at(port):
                return f"{reason} by your gateway with process id {pid} (`wireglot run` uses it)"
            from wireglot.cli.remote_gateway import is_gateway, listening  # few starts need it

            if is_gateway(listening(host, port)):
                return (
                    f"{reason} by a Wireglot gateway of another user or data folder; "
                    "--port N selects another port, --port 0 any free one"
                )
            return f"{reason} by another program; --port N selects another port, --port 0 any free one"
        case errno.EACCES:
            return f"{reason}: ports below 1024 may be reserved for the system; --port N selects another"
        case errno.EADDRNOTAVAIL:
            return f"{reason}: not an address of this machine"
        case _:
            return reason


def _own_gateway_at(port: int) -> int:
    """The process id of this user's gateway that listens on a port, or 0."""
    found = (running.pid for running in find_running(os.environ) if running.url.endswith(f":{port}"))
    return next(found, 0)
