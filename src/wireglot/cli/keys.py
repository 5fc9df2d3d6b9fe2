"""`wireglot keys`: who may use the gateway, and how much."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from wireglot.cli.paint import Paint, one_line
from wireglot.cli.parser_keys import LIMITS
from wireglot.gateway import config
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring, told
from wireglot.stores import StoreDown, StoreUnusable, open_engine

FAILED = 1
UNUSABLE = 2
_SECRET: Final = "WIREGLOT_ADMIN_SECRET"
_PATIENCE: Final = 30.0
_WORDS: Final = {
    "requests_per_minute": "{} requests/min",
    "tokens_per_minute": "{} tokens/min",
    "concurrent": "{} at once",
    "tokens_per_day": "{} tokens/day",
    "tokens_per_month": "{} tokens/month",
    "cost_per_day": "{:.2f}/day",
    "cost_per_month": "{:.2f}/month",
}


class _Failed(Exception):
    """In words for people."""


class _Keys(Protocol):
    """Keys as documents; a new key stands in its document as `key`."""

    async def list(self) -> list[dict[str, Any]]: ...

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def revoke(self, name: str) -> dict[str, Any]: ...

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]: ...


def run(arguments: argparse.Namespace) -> int:
    try:
        if arguments.url is not None:
            asyncio.run(_run(_There(arguments.url), arguments))
            return 0
        path = Path(arguments.config) if arguments.config else config.find()
        return asyncio.run(_on_the_store(config.load(path), arguments))
    except config.ConfigError as error:
        print(f"wireglot: {error}", file=sys.stderr)
        return UNUSABLE
    except KeyRefused as refused:
        print(f"wireglot: {refused}", file=sys.stderr)
        return FAILED
    except (_Failed, StoreDown, StoreUnusable) as problem:
        print(f"wireglot: {problem}", file=sys.stderr)
        return FAILED


async def _on_the_store(settings: Settings, arguments: argparse.Namespace) -> int:
    if settings.store.url.value.startswith("memory:"):
        print(
            "wireglot: the store is in the gateway's memory: set store.url, or name a gateway with --url",
            file=sys.stderr,
        )
        return UNUSABLE
    engine = await open_engine(settings.store.url.value)
    try:
        await _run(_Here(Keyring(engine.keys, {key.name for key in settings.keys})), arguments)
    finally:
        await engine.close()
    return 0


async def _run(keys: _Keys, arguments: argparse.Namespace) -> None:
    match arguments.action:
        case "create":
            first = not await keys.list()
            _show_key(await keys.create(arguments.name, _fields(arguments)), arguments.json)
            _say(f"This is the key of {arguments.name}. It is shown this once: only its hash is kept.")
            if first:
                _say("From now on every request to the gateway needs a key.")
        case "update":
            fields = _fields(arguments)
            if not fields:
                raise _Failed("nothing to change: name at least one option (see wireglot keys update --help)")
            _show(await keys.update(arguments.name, fields), arguments.json)
        case "revoke":
            _show(await keys.revoke(arguments.name), arguments.json)
            _say("It opens nothing any more, in every process within seconds. What runs may end.")
        case "rotate":
            document = await keys.rotate(arguments.name, arguments.overlap)
            _show_key(document, arguments.json)
            until = document.get("old_key_until")
            _say(f"The old key works until {until}." if until else "The old key opens nothing any more.")
        case _:
            _show_all(await keys.list(), arguments.json)


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """What was named on the command line, as the admin API spells it."""
    fields = {name: value for name in LIMITS if (value := getattr(arguments, name)) is not None}
    if arguments.models is not None:
        fields["models"] = arguments.models
    if arguments.expires is not None:
        expires = arguments.expires
        if isinstance(expires, int):
            expires = (datetime.now(UTC) + timedelta(seconds=expires)).isoformat(timespec="seconds")
        fields["expires"] = expires
    return fields


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _show_key(document: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(document) if as_json else document["key"])


def _show(document: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(document) if as_json else _line(document))


def _show_all(documents: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(documents))
        return
    if not documents:
        _say("There are no stored keys. Make one: wireglot keys create NAME")
        return
    paint = Paint(sys.stdout)
    rows = [(d["name"], f"{d['prefix']}…", _state(d), _created(d), _may(d)) for d in documents]
    heads = ("name", "key", "state", "created", "may")
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    print(paint("  ".join(map(str.ljust, heads, widths)).rstrip(), "bold"))
    for row in rows:
        print(one_line("  ".join(map(str.ljust, row, widths)).rstrip()))


def _line(document: dict[str, Any]) -> str:
    return one_line(f"{document['name']}  {document['prefix']}…  {_state(document)}  {_may(document)}")


def _state(document: dict[str, Any]) -> str:
    if document["state"] == "active" and document["expires"]:
        return f"until {document['expires'][:10]}"
    return str(document["state"])


def _created(document: dict[str, Any]) -> str:
    return str(document["created"] or "")[:10]


def _may(document: dict[str, Any]) -> str:
    said = [", ".join(document["models"]) or "all models"]
    said += [words.format(document[name]) for name, words in _WORDS.items() if document.get(name)]
    return "; ".join(said)


class _Here:
    """On the store itself."""

    def __init__(self, ring: Keyring) -> None:
        self._ring = ring

    async def list(self) -> list[dict[str, Any]]:
        return [told(row, time.time()) for row in await self._ring.all()]

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        row, key = await self._ring.create(name, fields)
        return {**told(row, time.time()), "key": key}

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return told(await self._ring.update(name, fields), time.time())

    async def revoke(self, name: str) -> dict[str, Any]:
        return told(await self._ring.revoke(name), time.time())

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        row, key = await self._ring.rotate(name, overlap)
        return {**told(row, time.time()), "key": key}


class _There:
    """Through the admin API of a gateway that runs."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._secret = os.environ.get(_SECRET, "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _Failed(f"--url: expected http://... or https://..., got {one_line(url)}")
        if not self._secret:
            raise _Failed(f"--url needs the admin secret of that gateway in {_SECRET}")
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=_PATIENCE)
        self._root = f"{parts.path.rstrip('/')}/v1/admin/keys"

    async def list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "")["data"]
        return found

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", "", {"name": name, **fields})

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("PATCH", _path(name), fields)

    async def revoke(self, name: str) -> dict[str, Any]:
        return self._ask("DELETE", _path(name))

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        return self._ask("POST", f"{_path(name)}/rotate", {"overlap": overlap})

    def _ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self._secret}"}
        body = None
        if document is not None:
            body, headers["content-type"] = json.dumps(document), "application/json"
        try:
            self._connection.request(method, self._root + path, body, headers)
            answer = self._connection.getresponse()
            data = answer.read()
            found = json.loads(data)
        except (OSError, HTTPException, ValueError) as problem:
            raise _Failed(
                f"{self._connection.host}: {one_line(str(problem)) or type(problem).__name__}"
            ) from None
        if answer.status >= 400:
            error = found.get("error") if isinstance(found, dict) else None
            message = error.get("message") if isinstance(error, dict) else None
            raise _Failed(one_line(str(message or f"the gateway answered with status {answer.status}")))
        if not isinstance(found, dict):
            raise _Failed("the gateway's answer is no JSON object")
        return found


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"
