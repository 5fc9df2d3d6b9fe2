"""A gateway of the command's own: in this process, on a free port, for as long as a function asks it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from wireglot.cli.event_loop import run_loop
from wireglot.gateway import config
from wireglot.gateway.run import Process

_OVERRIDES: Final = {"server": {"host": "127.0.0.1", "port": 0, "workers": 1, "log": "off"}}
_KEY_BYTES: Final = 24


def key_of_its_own(caller: str) -> tuple[str, dict[str, Any]]:
    """A client key that nobody else knows, and what makes a gateway take it beside those that it knows."""
    key = secrets.token_urlsafe(_KEY_BYTES)
    return key, {"keys": {caller: f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"}}


def ask_own_gateway(
    ask: Callable[[str, int], int],
    *,
    path: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    create_secret: bool = True,
    more: Mapping[str, Any] = {},
) -> int:
    """What `ask` gives for the host and port of a gateway with this configuration, or a ConfigError.
    `more`: what is laid over it."""
    overrides = {**_OVERRIDES, **more}
    settings = config.load(path, environ=environ, overrides=overrides, create_secret=create_secret)

    async def work() -> int:
        process = Process(settings, path=path, environ=environ, overrides=overrides)
        await process.start()
        try:
            return await asyncio.to_thread(ask, *process.address)
        finally:
            await process.close()

    return run_loop(work())
