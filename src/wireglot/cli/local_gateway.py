"""Whose data a command is about: those of the gateway that runs on this machine, or of a store without one.

A gateway is found by the file that it holds while it runs. That file has a key for its admin API, so that a
command reaches the data which the gateway itself uses, wherever its environment puts them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from wireglot.cli.paint import one_line
from wireglot.cli.remote_gateway import Address, NoAnswer, UnusableUrl, address_of, ask
from wireglot.cli.telling import complain
from wireglot.cli.trust import find_config
from wireglot.gateway.observe.running import SYSTEM_DATA, RunningGateway, find_running
from wireglot.gateway.settings import Settings
from wireglot.stores import described

ADMIN_SECRET: Final = "WIREGLOT_ADMIN_SECRET"
_ANSWER_SECONDS: Final = 5.0
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def running_url(config: Path | None, environ: Mapping[str, str]) -> str:
    """Where a gateway of this user runs with this configuration, or any if there is none; else nothing."""
    found = _running(config, find_running(environ))
    return reachable(found.url) if found is not None else ""


def operated_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> RunningGateway | None:
    """The gateway whose data a command is about: of this user, or for root that of the system's service.
    `named`: the configuration that was asked for."""
    running = find_running(environ, system=SYSTEM_DATA)
    return _running(find_config(named, environ).path, [each for each in running if each.key])


class StoreNote:
    """Which store a command used, and which gateway may use another one. Made before the store is opened,
    said when the command is done: what went wrong is one line."""

    def __init__(
        self,
        settings: Settings,
        options: str = "",
        folder: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`options`: what the command needs beside --url. `folder`: which folder beside the store it used."""
        url = settings.store.url.value
        self._place = described(url)
        self._is_new = url.startswith("sqlite:") and not os.path.exists(self._place)
        self._server = settings.server
        self._options = options
        self._folder = folder
        self._is_said = False
        self._environ = environ

    def say(self) -> None:
        if self._is_said:
            return
        self._is_said = True
        new = ", which is new and was empty" if self._is_new and not self._folder else ""
        complain(f"no gateway was asked: this is the store {one_line(self._folder or self._place)}{new}")
        known = find_running(self._environ, system=SYSTEM_DATA)
        for each in known:
            if each.store != self._place:
                store = f" with the store {one_line(each.store)}" if each.store else ""
                complain(f"another gateway runs at {reachable(each.url)}{store}: {_how(each)}")
        host, port = self._server.host, self._server.port
        there = Address("http", _EVERYWHERE.get(host, host), port)
        if port and not any(each.url.endswith(f":{port}") for each in known) and is_gateway(there):
            complain(
                f"a gateway with no record in your data folder runs at {there.url}, perhaps with another "
                "store: run this command as its user with its HOME and XDG_DATA_HOME, or with "
                f"--url {there.url}{self._options} and its admin secret in {ADMIN_SECRET}"
            )


def _how(running: RunningGateway) -> str:
    config = f"--config {running.config}" if running.config else f"--url {reachable(running.url)}"
    return f"{one_line(config)} is for that one"


def _running(config: Path | None, known: list[RunningGateway]) -> RunningGateway | None:
    wanted = str(config.absolute()) if config is not None else ""
    return next((each for each in known if wanted in ("", each.config) and _answers(each)), None)


def _answers(running: RunningGateway) -> bool:
    try:
        return is_gateway(address_of(reachable(running.url)))
    except UnusableUrl:
        return False


def is_gateway(address: Address) -> bool:
    try:
        answer = ask(address, "GET", "/", seconds=_ANSWER_SECONDS)
    except NoAnswer:
        return False
    return answer.status == 200 and answer.document().get("name") == "wireglot"


def reachable(url: str) -> str:
    """The address at which a gateway that listens everywhere is called on this machine."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
