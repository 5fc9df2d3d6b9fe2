"""The commands of `wireglot keys`: create, change, list, revoke, rotate and show keys."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol
from urllib.parse import quote

from wireglot.cli.remote_gateway import (
    ADMIN_SECRET,
    StoreNote,
    address_of,
    admin_secret,
    ask,
    operated_gateway,
    reachable,
)
from wireglot.cli.store import wiped
from wireglot.cli.terminal import (
    OK,
    Failed,
    Paint,
    Unusable,
    complain,
    count,
    one_line,
    say,
)
from wireglot.cli.trust import trusted_config
from wireglot.gateway import config
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.keys.ring import KeyRefused, Keyring, described
from wireglot.stores import open_engine

_ROOT: Final = "/v1/admin/keys"
_REFUSED: Final = 400
_UNAUTHORIZED: Final = 401


class KeyAccess(Protocol):
    """Keys as documents; a new key is in its document as `key`."""

    async def list(self) -> list[dict[str, Any]]: ...

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]: ...

    async def revoke(self, name: str) -> dict[str, Any]: ...

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]: ...

    async def delete(self, name: str) -> dict[str, Any]: ...


class InStore:
    """In the store itself."""

    def __init__(self, ring: Keyring, wipe: Callable[[str], Awaitable[object]]) -> None:
        self._ring = ring
        self._wipe = wipe

    async def list(self) -> list[dict[str, Any]]:
        return [described(row, time.time()) for row in await self._ring.all()]

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        row, key = await self._ring.create(name, fields)
        return {**described(row, time.time()), "key": key}

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return described(await self._ring.update(name, fields), time.time())

    async def revoke(self, name: str) -> dict[str, Any]:
        return described(await self._ring.revoke(name), time.time())

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        row, key = await self._ring.rotate(name, overlap)
        return {**described(row, time.time()), "key": key}

    async def delete(self, name: str) -> dict[str, Any]:
        return described(await self._ring.delete(name, self._wipe), time.time())


class KeysAtGateway:
    """Through the admin API of a running gateway."""

    def __init__(self, url: str, key: str = "") -> None:
        """Raises Unusable. `key`: if it is not the admin secret of the environment."""
        self._address = address_of(url)
        self._secret = key or admin_secret()

    async def list(self) -> list[dict[str, Any]]:
        found = self._ask("GET", "").get("data")
        if not isinstance(found, list):
            raise Failed(f"{self._address.url}: the server is not the admin API of a Wireglot gateway")
        return found

    async def create(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", "", {"name": name, **fields})

    async def update(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return self._ask("PATCH", _path(name), fields)

    async def revoke(self, name: str) -> dict[str, Any]:
        return self._ask("DELETE", _path(name))

    async def rotate(self, name: str, overlap: int) -> dict[str, Any]:
        return self._ask("POST", f"{_path(name)}/rotate", {"overlap": overlap})

    async def delete(self, name: str) -> dict[str, Any]:
        return self._ask("POST", f"{_path(name)}/delete")

    def _ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = ask(self._address, method, f"{_ROOT}{path}", key=self._secret, body=document)
        if answer.status == _UNAUTHORIZED:
            raise Failed(f"{self._address.url} rejects the admin secret in {ADMIN_SECRET}")
        found = answer.document()
        if "error" in found or answer.status >= _REFUSED or not found:
            where = "" if "error" in found else f"{self._address.url}: "
            raise Failed(f"{where}{answer.complaint()}")
        return found


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"


_CENT: Final = Decimal("0.01")
_WORDS: Final = {
    "requests_per_minute": "{} requests/min",
    "tokens_per_minute": "{} tokens/min",
    "concurrent": "{} concurrent",
    "tokens_per_day": "{} tokens/day",
    "tokens_per_month": "{} tokens/month",
    "cost_per_day": "{}/day",
    "cost_per_month": "{}/month",
    "searches_per_day": "{} searches/day",
}


_OPEN: Final = (
    "No key is stored: a gateway on loopback requires none, unless its configuration sets [keys] or "
    "require_key."
)


def run(arguments: argparse.Namespace) -> int:
    """At the gateway of --url, or the one that runs here; else in the store of the configuration."""
    if arguments.url is not None:
        asyncio.run(_do(arguments, KeysAtGateway(arguments.url)))
        return OK
    running = operated_gateway(arguments.config)
    if running is not None:
        asyncio.run(_do(arguments, KeysAtGateway(reachable(running.url), running.key)))
        return OK
    file = trusted_config(arguments.config)
    settings = config.load(file.path, content=file.content, keys_needed=False)
    try:
        return asyncio.run(_in_the_store(settings, arguments))
    except KeyRefused as problem:
        raise Failed(str(problem)) from None


async def _in_the_store(settings: Settings, arguments: argparse.Namespace) -> int:
    if settings.store.url.value.startswith("memory:"):
        raise Unusable("the store is in the gateway's memory: set store.url, or use a gateway with --url")
    note = StoreNote(settings)
    engine = await open_engine(settings.store.url.value)
    try:
        ring = Keyring(engine.keys, {key.name for key in settings.keys}, settings.groups)
        await _do(arguments, InStore(ring, lambda caller: wiped(settings, engine, caller)))
    finally:
        await engine.close()
    note.say()
    return OK


async def _do(task: argparse.Namespace, keys: KeyAccess) -> None:
    match task.action:
        case "create":
            first = not await keys.list()
            _show_key(await keys.create(task.name, _fields(task)), task.json)
            say(f"This is the key of {task.name}. It is shown only once: only its hash is stored.")
            if first:
                say("Every request to the gateway now requires a key (`wireglot keys off` reverts this).")
        case "update":
            fields = _fields(task)
            if not fields:
                raise Unusable(
                    "nothing to change: name at least one option (see wireglot keys update --help)"
                )
            _show(await keys.update(task.name, fields), task.json)
        case "revoke":
            _show(await keys.revoke(task.name), task.json)
            say("All gateway processes reject it within seconds. Running requests may finish.")
        case "delete":
            _check_sure(task, f"the key {task.name}")
            await keys.delete(task.name)
            say(f"Deleted {task.name} and stored data of its caller; the name can be used again.")
            if not await keys.list():
                say(_OPEN)
        case "off":
            # Sign-ins first: those of a stored key are deleted with it.
            documents = sorted(await keys.list(), key=lambda document: not document.get("sign_in_of"))
            names = [document["name"] for document in documents]
            if names:
                _check_sure(task, f"all stored keys ({', '.join(names)})")
            for name in names:
                await keys.delete(name)
            say(f"{count(len(names), 'key')} deleted. {_OPEN}" if names else _OPEN)
        case "rotate":
            document = await keys.rotate(task.name, task.overlap)
            _show_key(document, task.json)
            until = document.get("old_key_until")
            say(f"The old key works until {until}." if until else "The old key is rejected.")
        case _:
            _show_all(await keys.list(), task.json)


def _amount(value: object) -> object:
    """Money with two digits after the point, and more only for what is below a cent."""
    if not isinstance(value, float):
        return value
    amount = Decimal(str(value))
    cents = amount.quantize(_CENT)
    return cents if cents == amount else f"{amount.normalize():f}"


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the command line, with the names of the admin API."""
    fields = {
        name: value
        for name in (*_WORDS, "models", "group", "owner")
        if (value := getattr(arguments, name)) is not None
    }
    expires = arguments.expires
    if isinstance(expires, int):
        expires = (datetime.now(UTC) + timedelta(seconds=expires)).isoformat(timespec="seconds")
    return fields if expires is None else {**fields, "expires": expires}


def _check_sure(task: argparse.Namespace, what: str) -> None:
    """Deleted data cannot be restored: the user or the command line must confirm it."""
    if task.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Unusable(f"this deletes {one_line(what)} and stored data of the callers: confirm with --yes")
    question = f"Delete {one_line(what)} and stored data of the callers? [y/N] "
    print(question, end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Unusable("nothing was deleted")


def _show_key(document: dict[str, Any], as_json: bool) -> None:
    """The key is shown only this once: a failure to show it must not go unnoticed."""
    try:
        print(json.dumps(document) if as_json else document["key"], flush=True)
    except OSError as fault:
        name = document["name"]
        text = f"the key was created but could not be shown: replace it with `wireglot keys rotate {name}`"
        if isinstance(fault, BrokenPipeError):  # nothing else is reported for those
            complain(text)
        raise OSError(fault.errno, f"{fault.strerror}; {text}") from None


def _show(document: dict[str, Any], as_json: bool) -> None:
    print(json.dumps(document) if as_json else _line(document))


def _show_all(documents: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(documents))
        return
    if not documents:
        say("There are no stored keys. Create one: wireglot keys create NAME")
        return
    paint = Paint(sys.stdout)
    rows = [(d["name"], f"{d['prefix']}…", _state(d), _created(d), _may(d)) for d in documents]
    heads = ("name", "key", "state", "created", "limits")
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
    if document.get("sign_in_of"):
        return f"same as {document['sign_in_of']}"
    said = [", ".join(document["models"]) or "all models"]
    if document.get("group"):
        said.append(f"group {document['group']}")
    said += [words.format(_amount(document[name])) for name, words in _WORDS.items() if document.get(name)]
    return "; ".join(said)
