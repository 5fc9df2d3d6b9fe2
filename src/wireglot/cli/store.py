"""The commands of `wireglot store`: figures, pruning, export, import, and removal of one caller's data."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

import msgspec

from wireglot.cli.remote_gateway import (
    ADMIN_SECRET,
    StoreNote,
    address_of,
    admin_secret,
    ask,
    operated_gateway,
    reachable,
)
from wireglot.cli.terminal import OK, Failed, Paint, Unusable, at_home, count, fitted, say
from wireglot.cli.trust import settings_of
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.ledger.sweeper import prune
from wireglot.stores import open_counters, open_engine
from wireglot.stores.base import Engine
from wireglot.stores.records import KindStats, Stats
from wireglot.stores.transfer import BadTransfer, export_lines, import_lines


async def wiped(settings: Settings, engine: Engine, caller: str) -> dict[str, int]:
    """How much was removed, in the engine and in a separate vault next to it."""
    removed = dict(await engine.wipe(caller))
    if settings.store.shared.value:
        counters, vault = await open_counters(settings.store.shared.value)
        try:
            if vault is not None:
                removed["vault"] = removed.get("vault", 0) + await vault.forget(caller)
        finally:
            await counters.close()
    return removed


_DONE: Final = 200
_UNAUTHORIZED: Final = 401
_AT_GATEWAY: Final = {
    "stats": ("GET", "/v1/admin/store"),
    "wipe": ("DELETE", "/v1/admin/callers/{caller}/data"),
}
"""Commands that a gateway runs itself. The others need the store, which it may use meanwhile."""


def run(arguments: argparse.Namespace) -> int:
    if arguments.url is not None:
        if arguments.config is not None:
            raise Unusable("--url and --config exclude each other")
        return _at_gateway(arguments.url, admin_secret(), arguments)
    running = operated_gateway(arguments.config) if arguments.action in _AT_GATEWAY else None
    if running is not None:
        return _at_gateway(reachable(running.url), running.key, arguments)
    try:
        return asyncio.run(_run(settings_of(arguments.config), arguments))
    except BadTransfer as problem:
        raise Unusable(f"{arguments.file or 'standard input'}: {problem}") from None


def _at_gateway(url: str, key: str, arguments: argparse.Namespace) -> int:
    method, path = _AT_GATEWAY[arguments.action]
    address = address_of(url)
    caller = quote(getattr(arguments, "caller", ""), safe="")
    answer = ask(address, method, path.format(caller=caller), key=key)
    if answer.status != _DONE:
        refused = f" rejects the admin secret in {ADMIN_SECRET}"
        raise Failed(address.url + (refused if answer.status == _UNAUTHORIZED else f": {answer.complaint()}"))
    if arguments.action == "stats":
        _print_stats(msgspec.json.decode(answer.body, type=Stats), arguments.json)
    else:
        _print_removed(arguments.caller, answer.document().get("removed", {}))
    return OK


async def _run(settings: Settings, arguments: argparse.Namespace) -> int:
    if settings.store.url.value.startswith("memory:"):
        raise Unusable("the store is in the gateway's memory and cannot be read from here")
    note = StoreNote(settings)
    async with _opened(settings) as engine:
        match arguments.action:
            case "stats":
                _print_stats(await engine.stats(), arguments.json)
            case "prune":
                swept = await prune(engine, settings)
                removed = swept.expired | {f"{kind} (over limit)": n for kind, n in swept.evicted.items()}
                rows = {kind: n for kind, n in removed.items() if n}
                rows |= {"usage": swept.usage} if swept.usage else {}
                print("nothing to remove" if not rows else "removed " + _listed(rows))
                if swept.crashed:
                    print(f"closed {count(swept.crashed, 'request')} of processes that no longer run")
            case "export":
                await _export(engine, arguments.file)
            case "import":
                await _import(engine, arguments.file)
            case _:
                await _wipe(settings, engine, arguments.caller)
    note.say()
    return OK


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Engine]:
    engine = await open_engine(settings.store.url.value)
    try:
        yield engine
    finally:
        await engine.close()


async def _wipe(settings: Settings, engine: Engine, caller: str) -> None:
    _print_removed(caller, await wiped(settings, engine, caller))


def _print_removed(caller: str, removed: dict[str, int]) -> None:
    rows = {kind: number for kind, number in removed.items() if number}
    print(f"no data of {caller!r}" if not rows else "removed " + _listed(rows))


async def _export(engine: Engine, file: str | None) -> None:
    """Written to a temporary file next to the target first: half an export must not look like one."""
    if file is None:
        async for line in export_lines(engine):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    place = Path(file)
    lines = 0
    try:
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        draft = place.with_name(f".{place.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as out:
                async for line in export_lines(engine):
                    out.write(line)
                    lines += 1
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as fault:  # the user knows nothing of the temporary file
        raise OSError(fault.errno, fault.strerror, file) from None
    say(f"wrote {count(lines - 2, 'record')} to {place}")


async def _import(engine: Engine, file: str | None) -> None:
    if file is None:
        records = await import_lines(engine, _lines(sys.stdin.buffer))
    else:
        with open(file, "rb") as source:
            records = await import_lines(engine, _lines(source))
    say(f"read {count(records, 'record')}")


def _lines(source: BinaryIO) -> Iterator[bytes]:
    yield from source


def _print_stats(stats: Stats, as_json: bool) -> None:
    if as_json:
        print(msgspec.json.encode(stats).decode())
        return
    paint = Paint(sys.stdout)
    size = f", {_size(stats.size)} on disk" if stats.size else ""
    print(fitted(f"{at_home(stats.engine)}, schema {stats.version}{size}", sys.stdout))
    if not stats.kinds:
        return
    width = max(len(kind) for kind in stats.kinds)
    for kind, about in sorted(stats.kinds.items()):
        print(f"  {paint(kind.ljust(width), 'bold')}  {_row(about)}")


def _row(about: KindStats) -> str:
    return f"{about.count:>10,}  {_size(about.bytes):>10}" if about.bytes else f"{about.count:>10,}"


def _size(number: int) -> str:
    value, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _listed(rows: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(rows.items()))
