"""Recorded exchanges where they are: in a file, or at a gateway that runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from wireglot.cli.local_gateway import ADMIN_SECRET, operated_gateway, reachable
from wireglot.cli.paint import one_line
from wireglot.cli.remote_gateway import Address, Answer, address_of, ask, usable_key
from wireglot.traces.file import BYTES_MOST, SUFFIX, BadTrace, read_trace
from wireglot.traces.trace import Row, Trace

_API: Final = "/inspector/api"
_KEY: Final = "WIREGLOT_KEY"
_DONE: Final = 200
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404


class NoTrace(Exception):
    """There is none, or it cannot be got; in words for people."""


class Unusable(Exception):
    """What was asked for makes no sense; in words for people."""


class Listed(msgspec.Struct, frozen=True):
    rows: list[Row] = []
    next: str | None = None


class Source(Protocol):
    def rows(self, filters: dict[str, str], limit: int) -> Listed:
        """`q` among the filters: a text that the row or its bodies hold."""
        ...

    def trace(self, id: str) -> Trace:
        """Raises NoTrace."""
        ...


def is_file(id: str) -> bool:
    """Whether an ID names a file: ids of exchanges hold neither dots nor slashes."""
    return id.endswith((SUFFIX, ".json", ".gz")) or os.sep in id or "/" in id or Path(id).is_file()


def from_file(name: str) -> Trace:
    """Raises NoTrace; an OSError where it cannot be read."""
    with Path(name).open("rb") as file:
        data = file.read(BYTES_MOST + 1)
    try:
        return read_trace(data)
    except BadTrace as fault:
        raise Unusable(f"{one_line(name)}: {one_line(str(fault))}") from None


class AtGateway:
    """Through the inspector of a gateway that runs."""

    def __init__(self, url: str, key: str = "") -> None:
        """Raises UnusableUrl, UnusableKey. `key`: where it is none of the environment's."""
        self.address: Address = address_of(url)
        self._named = ADMIN_SECRET if os.environ.get(ADMIN_SECRET) else _KEY
        self._secret = key or usable_key(os.environ.get(self._named, ""), self._named)

    def has_inspector(self) -> bool:
        return ask(self.address, "GET", f"{_API}/session", key=self._secret).status == _DONE

    def rows(self, filters: dict[str, str], limit: int) -> Listed:
        found: list[Row] = []
        before: dict[str, str] = {}
        while True:
            asked = {"limit": str(limit - len(found)), **filters, **before}
            page = self._read(self._get(f"/exchanges?{urlencode(asked, errors='replace')}"), Listed)
            found += page.rows
            # A search looks at some hundreds at a time.
            if page.next is None or len(found) >= limit or "q" not in filters:
                return Listed(found, page.next)
            before = {"before": page.next}

    def trace(self, id: str) -> Trace:
        answer = self._get(f"/exchanges/{quote(id, safe='')}")
        if "format" not in answer.document():
            raise NoTrace(
                f"the bodies of {one_line(id)} were not recorded: see [trace], or `wireglot serve --trace`"
            )
        try:
            return read_trace(answer.body)
        except BadTrace as fault:
            raise NoTrace(f"{self.address.url}: {one_line(str(fault))}") from None

    def send_again(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What the gateway says of a request that is sent again, or would be."""
        headers = {} if self._secret else {"x-wireglot-csrf": self._token()}
        path = f"{_API}/replay"
        answer = ask(self.address, "POST", path, key=self._secret, body=asked, headers=headers, seconds=600.0)
        return self._checked(answer).document()

    def _token(self) -> str:
        token = self._get("/session").document().get("csrf")
        return token if isinstance(token, str) else ""

    def _get(self, path: str) -> Answer:
        return self._checked(ask(self.address, "GET", f"{_API}{path}", key=self._secret))

    def _checked(self, answer: Answer) -> Answer:
        if answer.status == _UNAUTHORIZED:
            if self._secret:
                raise NoTrace(f"{self.address.url} does not take what {self._named} holds")
            raise Unusable(
                f"{self.address.url} wants its admin secret in {ADMIN_SECRET}, or a client key in {_KEY}"
            )
        if answer.status == _NOT_FOUND and answer.document().get("error"):
            raise NoTrace(answer.complaint())
        if answer.status != _DONE:
            raise NoTrace(f"{self.address.url}: {answer.complaint()}")
        return answer

    def _no_inspector(self) -> str:
        return f"{self.address.url}: what answers there has no inspector: is the address right?"

    def _read(self, answer: Answer, kind: type[Listed]) -> Listed:
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.DecodeError:
            raise NoTrace(self._no_inspector()) from None


def at_running_gateway(config_file: str | None) -> AtGateway | None:
    """The gateway that runs here, unless its inspector is off."""
    running = operated_gateway(config_file)
    if running is None:
        return None
    found = AtGateway(reachable(running.url), running.key)
    return found if found.has_inspector() else None
