"""Where the gateway remembers: can it be reached, written, read through; is its schema one that we know."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, note, ok, problem, warning
from wireglot.gateway.settings import Secret
from wireglot.stores import StoreDown, StoreUnusable, open_counters
from wireglot.stores.open import sqlite_path


def look_at_store(case: Case) -> Iterator[Finding]:
    store = case.loaded.store
    scheme, _, rest = store.url.value.partition(":")
    if case.foreign and (scheme not in ("memory", "sqlite") or store.shared.value):
        yield ok(f"no database was called: {case.file} is not approved")
        return
    match scheme:
        case "memory":
            yield _of_memory(case, store.url)
        case "sqlite":
            yield from _of_file(case, Path(sqlite_path(rest)))
        case _:
            yield _of_postgres(case, store.url.value)
    if store.shared.value:
        yield _of_redis(case, store.shared.value)


def _of_memory(case: Case, url: Secret) -> Finding:
    text = "the store is in memory: responses, keys and usage end with the gateway"
    if url.source == "default":
        return warning(f"{text}, since the environment names no home", f"[store] in {case.file}: url")
    return note(text, f'[store] in {case.file}: url = "sqlite:///PATH"')


def _of_file(case: Case, path: Path) -> Iterator[Finding]:
    if not path.parent.is_dir():
        above = next(folder for folder in path.parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            yield problem(
                f"{path.parent} is not there, and cannot be made in {above}",
                f"make it for the gateway's user, or [store] in {case.file}: url",
            )
            return
        make = partial(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        yield note(
            f"{path.parent} is not there yet: the first start makes it",
            f"mkdir -m 700 -p {path.parent}",
            make,
        )
        return
    if not path.exists():
        if os.access(path.parent, os.W_OK):
            yield ok(f"{path} is made at the first start")
        else:
            yield _unwritable(path.parent)
        return
    seen = case.store_file
    if isinstance(seen, StoreDown):
        yield problem(str(seen), f"see which process that is: fuser -v {path}")
        return
    if isinstance(seen, StoreUnusable):
        yield problem(str(seen), f"move {path} aside, or [store] in {case.file}: url")
        return
    assert seen is not None, "the file is there"
    if not os.access(path.parent, os.W_OK):
        yield _unwritable(path.parent)
        return
    whole = "sound" if seen.is_read_through else "sound as far as it was read"
    later = f", brought to {seen.known} at the next start" if seen.version < seen.known else ""
    yield ok(f"{path}: {whole}, schema {seen.version}{later}, {_size(seen.size)}")


def _size(number: int) -> str:
    return f"{number / 2**20:.1f} MiB" if number >= 2**20 else f"{number / 2**10:.0f} KiB"


def _unwritable(folder: Path) -> Finding:
    return problem(
        f"{folder} cannot be written by this user, and the store needs files in it",
        f"chown and chmod 700 {folder}",
    )


def _of_postgres(case: Case, url: str) -> Finding:
    try:
        from wireglot.stores.postgres.look import look_at_database
    except ImportError:
        return problem("store.url: PostgreSQL needs an extra", "pip install 'wireglot[fleet]'")
    try:
        seen = asyncio.run(look_at_database(url))
    except (StoreUnusable, StoreDown) as told:
        return problem(
            str(told), f"see whether the database runs and lets this machine in; [store] in {case.file}: url"
        )
    if seen.read_only:
        return problem(
            f"{seen.server} takes no writes: it is a standby",
            f"name the primary: [store] in {case.file}: url",
        )
    if seen.version > seen.known:
        return problem(
            f"the schema {seen.schema} has version {seen.version}, this program knows up to {seen.known}",
            "pip install -U wireglot",
        )
    if not seen.version:
        return ok(f"{seen.server} answers; the schema {seen.schema} is made at the first start")
    return ok(f"{seen.server} answers; schema {seen.schema}, version {seen.version}")


def _of_redis(case: Case, url: str) -> Finding:
    async def meet() -> None:
        counters, _ = await open_counters(url)
        await counters.close()

    try:
        asyncio.run(meet())
    except (StoreUnusable, StoreDown) as told:
        return problem(
            str(told), f"see whether Redis runs and lets this machine in; [store] in {case.file}: shared"
        )
    return ok("Redis answers, and is new enough")
