"""A gateway that already runs: which one, with which key, and what it serves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from wireglot.cli.paint import one_line
from wireglot.gateway.config.kept_keys import kept_file, read_kept
from wireglot.gateway.observe.running import find_running

KEY: Final = "WIREGLOT_KEY"
ANY_KEY: Final = "none"
"""For a gateway that asks for none: most clients insist on sending one."""
_ANSWER_SECONDS: Final = 10.0
_UNAUTHORIZED: Final = 401
_VERSION: Final = "2023-06-01"
"""Of Anthropic's clients, whose lists tell how much a model takes."""


class CannotJoin(Exception):
    """In words for people."""


class Joined:
    """A gateway at a URL, asked with a key that it takes."""

    def __init__(self, url: str, key: str = ANY_KEY) -> None:
        parts = _split(url)
        self.url = url.rstrip("/")
        self.key = key
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._place = (parts.hostname or "", parts.port)
        self._root = parts.path.rstrip("/")
        self._told: dict[str, tuple[int, dict[str, Any]]] = {}
        """What it said of a model: each question is a line in its log."""

    def is_wireglot(self) -> bool:
        try:
            status, found = self._get("/")
        except (OSError, HTTPException):
            return False
        return status == 200 and found.get("name") == "wireglot"

    def wants_key(self) -> bool:
        """Whether it takes no request with the key that there is."""
        status, _ = self._get("/v1/models")
        return status == _UNAUTHORIZED

    def refusal(self, model: str) -> str:
        """What it says of a model that it does not serve; nothing if it does."""
        status, found = self._model(model)
        if status == 200:
            return ""
        error = found.get("error")
        told = error.get("message") if isinstance(error, dict) else None
        return one_line(str(told or f"status {status}"))

    def context(self, model: str) -> int:
        """Tokens that a model takes; 0 where nobody knows."""
        status, found = self._model(model)
        told = found.get("max_input_tokens") if status == 200 else None
        return told if type(told) is int else 0

    def models(self) -> tuple[str, ...]:
        status, found = self._get("/v1/models")
        listed = found.get("data") if status == 200 else None
        if not isinstance(listed, list):
            raise CannotJoin(f"{self.url} lists no models: status {status}")
        return tuple(str(each["id"]) for each in listed if isinstance(each, dict) and "id" in each)

    def _model(self, model: str) -> tuple[int, dict[str, Any]]:
        if model not in self._told:
            path = f"/v1/models/{quote(model, safe='/')}"
            self._told[model] = self._get(path, **{"anthropic-version": _VERSION})
        return self._told[model]

    def _get(self, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
        connection = self._kind(*self._place, timeout=_ANSWER_SECONDS)
        try:
            connection.request(
                "GET", self._root + path, headers={"authorization": f"Bearer {self.key}", **headers}
            )
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        try:
            found = json.loads(body)
        except ValueError:  # another server
            found = {}
        return answer.status, found if isinstance(found, dict) else {}


def join(url: str, ask_key: Callable[[str], str]) -> Joined:
    """The gateway there, with a key that it takes. `ask_key` asks a person, and gives "" if it cannot."""
    joined = Joined(url)
    try:
        if not joined.is_wireglot():
            raise CannotJoin(f"there is no gateway at {one_line(url)}: start one with `wireglot serve`")
        kept = read_kept(kept_file(os.environ), [])
        for key in (os.environ.get(KEY, ""), kept[KEY].value if KEY in kept else ""):
            if not joined.wants_key():
                return joined
            joined.key = key or joined.key
        if joined.wants_key():
            joined.key = ask_key(joined.url) or joined.key
        if joined.wants_key():
            raise CannotJoin(
                f"the gateway at {joined.url} wants a client key: set {KEY} to one that "
                "`wireglot keys create NAME` has made"
            )
    except (OSError, HTTPException) as problem:
        raise CannotJoin(f"{joined.url}: {one_line(str(problem)) or type(problem).__name__}") from None
    return joined


def running_url(config: Path | None, environ: Mapping[str, str]) -> str:
    """Where a gateway of this user runs with this configuration, or any if there is none; else nothing."""
    wanted = str(config.absolute()) if config is not None else ""
    for running in find_running(environ):
        url = _reachable(running.url)
        if wanted in ("", running.config) and Joined(url).is_wireglot():
            return url
    return ""


def _reachable(url: str) -> str:
    """One that listens everywhere is asked here."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _split(url: str) -> Any:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as fault:
        raise CannotJoin(f"--url: {fault}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CannotJoin(f"--url: expected http://HOST:PORT, got {one_line(url)!r}")
    return parts
