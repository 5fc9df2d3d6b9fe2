"""A temporary gateway of a command: in this process, on a free port, for as long as a function uses it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from wireglot.cli.process_setup import run_loop
from wireglot.cli.trust import NO_FILE, ConfigFile
from wireglot.gateway import config
from wireglot.gateway.run import Process

_OVERRIDES: Final = {"server": {"host": "127.0.0.1", "port": 0, "workers": 1, "log": "off"}}
_KEY_BYTES: Final = 24


def key_of_its_own(caller: str) -> tuple[str, dict[str, Any]]:
    """A random client key, and the settings that make a gateway accept it in addition to its configured
    keys."""
    key = secrets.token_urlsafe(_KEY_BYTES)
    digest = hashlib.sha256(key.encode()).hexdigest()
    return key, {"keys": {caller: {"hash": f"sha256:{digest}", "full_errors": True}}}


def ask_own_gateway(
    ask: Callable[[str, int], int],
    *,
    file: ConfigFile = NO_FILE,
    environ: Mapping[str, str] = os.environ,
    create_secret: bool = True,
    more: Mapping[str, Any] = {},
) -> int:
    """The result of `ask` for the host and port of a gateway with this configuration, or a ConfigError.
    `more`: settings applied over it."""
    overrides = {**_OVERRIDES, **more}
    settings = config.load(
        file.path, environ=environ, overrides=overrides, create_secret=create_secret, content=file.content
    )
    with _running(lambda: Process(settings, environ=environ, overrides=overrides, watches=False)) as address:
        return ask(*address)


@contextmanager
def _running(made: Callable[[], Process]) -> Iterator[tuple[str, int]]:
    """In a separate thread: signals and output errors belong to the caller."""
    started: Future[tuple[str, int]] = Future()
    stop: list[Callable[[], object]] = []

    async def work() -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        stop.append(lambda: loop.call_soon_threadsafe(ended.set))
        process = made()
        try:
            await process.start()
        except BaseException as problem:  # raised in the caller
            started.set_exception(problem)
            return
        started.set_result(process.address)
        await ended.wait()
        await process.close()

    thread = threading.Thread(target=lambda: run_loop(work()), daemon=True)
    thread.start()
    address = started.result()
    try:
        yield address
    finally:
        stop[0]()
        thread.join()
