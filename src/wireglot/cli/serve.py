"""`wireglot serve`: the gateway, until it is told to stop."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from wireglot.gateway import config
from wireglot.gateway.run import Place, Process, run_loop
from wireglot.gateway.settings import Settings

FAILED = 1
UNUSABLE = 2


def run(arguments: argparse.Namespace) -> int:
    path = Path(arguments.config) if arguments.config else config.find()
    overrides = _overrides(arguments)
    try:
        settings = config.load(path, overrides=overrides)
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    if settings.server.workers > 1:
        return _supervised(settings, path, overrides)
    return _serve(settings, path, overrides, None)


def _supervised(settings: Settings, path: Path | None, overrides: dict[str, Any]) -> int:
    from wireglot.gateway.supervisor import Supervisor

    supervisor = Supervisor(settings, lambda shared, place: _serve(shared, path, overrides, place))
    try:
        return supervisor.run()
    except OSError as fault:
        return _cannot_listen(settings, fault)


def _serve(settings: Settings, path: Path | None, overrides: dict[str, Any], place: Place | None) -> int:
    async def work() -> None:
        process = Process(settings, path=path, overrides=overrides, place=place)
        await process.serve()

    try:
        run_loop(work())
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    except OSError as fault:
        return _cannot_listen(settings, fault)
    return 0


def _cannot_listen(settings: Settings, fault: OSError) -> int:
    server = settings.server
    # uvloop and asyncio put the address and more into strerror.
    reason = os.strerror(fault.errno) if fault.errno else str(fault)
    print(f"wireglot: cannot listen on {server.host}:{server.port}: {reason}", file=sys.stderr)
    return FAILED


def _overrides(arguments: argparse.Namespace) -> dict[str, Any]:
    server = {
        name: value
        for name in ("host", "port", "workers", "log")
        if (value := getattr(arguments, name)) is not None
    }
    return {"server": server} if server else {}
