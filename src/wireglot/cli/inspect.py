"""Opens the page of a running gateway, or of one exported exchange, in a browser."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from wireglot.cli.menu import pick
from wireglot.cli.own_gateway import ask_own_gateway
from wireglot.cli.remote_gateway import (
    GatewayAddress,
    address_of,
    ask,
    is_gateway,
    reachable,
)
from wireglot.cli.run.asking import can_ask
from wireglot.cli.terminal import OK, Failed, Unusable, one_line, say
from wireglot.cli.trace import from_file
from wireglot.cli.trust import find_config, settings_of
from wireglot.gateway.inspector.access import sign_in_ticket
from wireglot.gateway.observe.running import SYSTEM_DATA, RunningGateway, find_private, find_running
from wireglot.gateway.trace.shelf import FOLDER, TraceShelf
from wireglot.stores.seal import Sealer
from wireglot_core.traces.trace import Trace

_PAGE: Final = "/inspector"
_DONE: Final = 200
_FOREVER_HOURS: Final = 1_000_000.0
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_DISPLAYS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")


def run(arguments: argparse.Namespace) -> int:
    if arguments.file is not None:
        if arguments.url is not None or arguments.config is not None or arguments.admin:
            raise Unusable("FILE: an exported exchange cannot be combined with --url, --config or --admin")
        if arguments.file.startswith(("http://", "https://")):
            raise Unusable("FILE: expected an exported exchange; the address of a gateway follows --url")
        return _show_file(from_file(arguments.file), open_it=not arguments.no_browser)
    address, key = _running(arguments)
    return _open_page(address, key, open_it=not arguments.no_browser, as_admin=arguments.admin)


def _running(arguments: argparse.Namespace) -> tuple[GatewayAddress, str]:
    """The gateway, and the key of its own user if that is this user."""
    known = [
        each
        for each in (*find_running(os.environ, system=SYSTEM_DATA), *find_private(os.environ))
        if each.key
    ]
    if arguments.url is not None:
        address = address_of(arguments.url)
        return address, next((each.key for each in known if reachable(each.url) == address.url), "")
    config = find_config(arguments.config).path
    wanted = str(config.absolute()) if config is not None and arguments.config is not None else ""
    found = [
        each for each in known if wanted in ("", each.config) and is_gateway(address_of(reachable(each.url)))
    ]
    if not found:
        server = settings_of(arguments.config).server
        return GatewayAddress("http", _ANYWHERE.get(server.host, server.host), server.port), ""
    chosen = found[0] if len(found) == 1 else _one_of(found)
    return address_of(reachable(chosen.url)), chosen.key


def _one_of(found: Sequence[RunningGateway]) -> RunningGateway:
    rows = [f"{reachable(each.url)}  {one_line(_whose(each))}" for each in found]
    if not can_ask():
        listed = "".join(
            f"\n  {one_line(_whose(each))}:\n    wireglot inspect --url {one_line(reachable(each.url))}"
            for each in found
        )
        raise Unusable(f"{len(found)} of your gateways are running, choose one:{listed}")
    chosen = pick("Gateway:", rows)
    if chosen is None:
        raise Unusable("no gateway was chosen")
    return found[chosen]


def _whose(running: RunningGateway) -> str:
    if running.client:
        where = f" in {_tilde(running.folder)}" if running.folder else ""
        at = time.strftime(", since %H:%M", time.localtime(running.since)) if running.since else ""
        return f"private, for {running.client}{where}{at}"
    return f"configuration {running.config}" if running.config else "without a configuration"


def _tilde(folder: str) -> str:
    """A folder in the home, abbreviated with ~."""
    home = os.environ.get("HOME", "").rstrip("/")
    return f"~{folder.removeprefix(home)}" if home and f"{folder}/".startswith(f"{home}/") else folder


def _open_page(address: GatewayAddress, key: str, *, open_it: bool, as_admin: bool = False) -> int:
    link = page_link(address, key, as_admin=as_admin)
    browses = open_it and has_browser()
    # Others can read a browser's arguments, but the link is useless after its first use.
    print(f"{address.url}{_PAGE}" if browses else link, flush=True)
    if browses:
        webbrowser.open(link)
    return OK


def page_link(address: GatewayAddress, key: str, *, as_admin: bool = False) -> str:
    """The page's URL, with a one-time sign-in if it needs one, or as the administrator. Raises NoAnswer and
    Failed. `key`: of the gateway's own user; "": unknown."""
    answer = ask(address, "GET", f"{_PAGE}/api/session")
    reported = answer.document()
    if answer.status != _DONE or "access" not in reported:
        raise Failed(f"{address.url}: {answer.complaint()}")
    if as_admin and not key:
        raise Failed(f"{address.url}: not your own gateway: sign in on the page with its admin secret")
    page = f"{address.url}{_PAGE}"
    signs_in = key and (as_admin or reported["access"] == "none")
    return f"{page}/enter/{sign_in_ticket(key, time.time())}" if signs_in else page


def _show_file(trace: Trace, *, open_it: bool) -> int:
    """A separate gateway, with the demo model as its only provider, that has recorded this one exchange."""
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
            with suppress(KeyboardInterrupt):  # the normal way to end it
                _show(f"{GatewayAddress('http', host, port).url}{place}", open_it=open_it)
                say("Served to this machine only, until Ctrl-C.")
                threading.Event().wait()
            return OK

        return ask_own_gateway(show, environ={}, create_secret=False, more=more)


def _show(url: str, *, open_it: bool) -> None:
    print(url, flush=True)
    if open_it and has_browser():
        webbrowser.open(url)


def has_browser() -> bool:
    """A browser in the terminal would take it over."""
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DISPLAYS)


def _silent(*_: object, **__: object) -> None:
    """A parse error is ignored: the data was written a moment ago."""
