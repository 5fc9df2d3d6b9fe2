"""The gateway in this process, or in several under a supervisor, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from wireglot.cli.event_loop import run_loop
from wireglot.cli.exit_status import FAILED, OK, UNUSABLE
from wireglot.cli.serve.allocator import give_large_blocks_back, holes_given_back
from wireglot.cli.serve.descriptors import raise_limit
from wireglot.cli.serve.privileges import give_up
from wireglot.dialects.paths import Paths
from wireglot.dialects.registry import surfaces
from wireglot.gateway import config
from wireglot.gateway.run import Place, Process
from wireglot.gateway.settings import Settings
from wireglot.stores import StoreDown, StoreUnusable, open_counters, open_engine


def serve(named: str | None, overrides: dict[str, Any]) -> int:
    """With the configuration named, or the one that is found, and what the command line puts in its place."""
    path = Path(named) if named else config.find()
    try:
        settings = config.load(path, overrides=overrides)
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    give_up()
    give_large_blocks_back()
    raise_limit()
    Paths(surfaces())  # two dialects at one path stop the start here, and not each worker
    if settings.server.workers > 1:
        return _supervised(settings, path, overrides)
    return _serve(settings, path, overrides, None)


async def _try_store(settings: Settings) -> None:
    """Once for all workers: each of them would only say that it cannot start."""
    for url, opened in (
        (settings.store.url.value, open_engine),
        (settings.store.shared.value, open_counters),
    ):
        with contextlib.suppress(StoreDown):  # they wait for it, and serve what needs no state
            if url:
                found: Any = await opened(url)
                await (found[0] if isinstance(found, tuple) else found).close()


def _supervised(settings: Settings, path: Path | None, overrides: dict[str, Any]) -> int:
    from wireglot.gateway.supervisor import Supervisor

    supervisor = Supervisor(settings, lambda shared, place: _serve(shared, path, overrides, place))
    try:
        asyncio.run(_try_store(settings))
        return supervisor.run()
    except StoreUnusable as problem:
        return _cannot_store(problem)
    except OSError as fault:
        return _cannot_listen(settings, fault)


def _serve(settings: Settings, path: Path | None, overrides: dict[str, Any], place: Place | None) -> int:
    async def work() -> None:
        process = Process(settings, path=path, overrides=overrides, place=place)
        async with holes_given_back():
            await process.serve()

    try:
        run_loop(work())
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    except StoreUnusable as problem:
        return _cannot_store(problem)
    except OSError as fault:
        return _cannot_listen(settings, fault)
    return OK


def _cannot_store(problem: StoreUnusable) -> int:
    print(f"wireglot: {problem}", file=sys.stderr)
    return FAILED


def _cannot_listen(settings: Settings, fault: OSError) -> int:
    server = settings.server
    # uvloop and asyncio put the address and more into strerror.
    reason = os.strerror(fault.errno) if fault.errno else str(fault)
    print(f"wireglot: cannot listen on {server.host}:{server.port}: {reason}", file=sys.stderr)
    return FAILED
