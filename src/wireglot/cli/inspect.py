"""The page of a gateway that runs, or of one exported exchange, opened in a browser."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from wireglot.cli.own_gateway import ask_own_gateway
from wireglot.cli.remote_gateway import (
    GatewayAddress,
    address_of,
    ask,
    operated_gateway,
    reachable,
)
from wireglot.cli.terminal import OK, Failed, Unusable, say
from wireglot.cli.trace import from_file
from wireglot.cli.trust import settings_of
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf
from wireglot.stores.seal import Sealer
from wireglot.traces.trace import Trace

_PAGE: Final = "/inspector"
_DONE: Final = 200
_FOREVER_HOURS: Final = 1_000_000.0
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_DISPLAYS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def run(arguments: argparse.Namespace) -> int:
    if arguments.file is not None:
        if arguments.url is not None or arguments.config is not None:
            raise Unusable("FILE: an exported exchange needs neither --url nor --config")
        return _show_file(from_file(arguments.file), open_it=not arguments.no_browser)
    return _open_page(_address(arguments), open_it=not arguments.no_browser)


def _address(arguments: argparse.Namespace) -> GatewayAddress:
    if arguments.url is not None:
        return address_of(arguments.url)
    running = operated_gateway(arguments.config)
    if running is not None:
        return address_of(reachable(running.url))
    server = settings_of(arguments.config).server
    return GatewayAddress("http", _ANYWHERE.get(server.host, server.host), server.port)


def _open_page(address: GatewayAddress, *, open_it: bool) -> int:
    answer = ask(address, "GET", f"{_PAGE}/api/session")
    if answer.status != _DONE or "access" not in answer.document():
        raise Failed(f"{address.url}: {answer.complaint()}")
    _show(f"{address.url}{_PAGE}", open_it=open_it)
    return OK


def _show_file(trace: Trace, *, open_it: bool) -> int:
    """A gateway of its own, with nobody behind it but the demo model, that has recorded this one exchange."""
    secret = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="wireglot-inspect-") as folder:
        TraceShelf(Path(folder) / FOLDER, Sealer(secret.encode()), _silent).put(trace)
        more: dict[str, Any] = {
            "server": {"host": "127.0.0.1", "port": 0, "workers": 1, "log": "off", "secret": secret},
            "store": {"url": "memory:", "folder": folder},
            "trace": {"keep_hours": _FOREVER_HOURS},
        }

        def show(host: str, port: int) -> int:
            place = f"{_PAGE}/x/{quote(trace.row.id, safe='')}"
            with suppress(KeyboardInterrupt):  # it is the way out
                _show(f"{GatewayAddress('http', host, port).url}{place}", open_it=open_it)
                say("It is shown to this machine alone, until Ctrl-C.")
                threading.Event().wait()
            return OK

        return ask_own_gateway(show, environ={}, create_secret=False, more=more)


def _show(url: str, *, open_it: bool) -> None:
    print(url, flush=True)
    if open_it and _has_browser():
        webbrowser.open(url)


def _has_browser() -> bool:
    """A browser of the terminal would take it over."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DISPLAYS)


def _silent(*_: object, **__: object) -> None:
    """What cannot be read here was written a moment ago."""
