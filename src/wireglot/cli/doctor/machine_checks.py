"""Checks of this machine: the port, the disk, the store."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from wireglot import __version__
from wireglot.cli.doctor.case import DoctorCase, DoctorFinding, note, ok, problem, warning
from wireglot.cli.terminal import count
from wireglot.gateway.observe.running import RunningGateway, left_over
from wireglot.gateway.settings import Secret
from wireglot.stores import StoreDown, StoreUnusable, open_counters
from wireglot.stores.open import sqlite_path
from wireglot_core.extras import install_hint, upgrade_hint

_COMFORTABLE_BYTES: Final = 512 * 2**20
_MIB: Final = 2**20


def look_at_disk(case: DoctorCase) -> Iterator[DoctorFinding]:
    store = case.loaded.store
    if not store.folder:
        return  # a journal of files without a name, created when they are needed
    folder = Path(store.folder)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    wanted = store.journal * case.loaded.server.workers
    text = f"{_disk_size(free)} free for {store.folder}; the journal reserves {_disk_size(wanted)}"
    where = f"free disk space, or [store] in {case.file}: folder = another disk, or a smaller journal"
    if free < wanted:
        yield problem(text, where)
    elif free < wanted + _COMFORTABLE_BYTES:
        yield warning(text, where)
    else:
        yield ok(text)


def _disk_size(number: int) -> str:
    return f"{number / _MIB / 1024:.0f} GiB" if number >= 10 * 1024 * _MIB else f"{number / _MIB:.0f} MiB"


_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_STATE, _INODE = 3, 9
"""Columns of /proc/net/tcp (proc_net_tcp in the kernel's documents)."""


def holder_of(port: int) -> str:
    """`nginx (process 4711)`; "" where it is unknown."""
    sockets = {f"socket:[{inode}]" for inode in _listeners(port)}
    if not sockets:
        return ""
    for process in _PROC.iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and _holds(process, sockets):
                name = (process / "comm").read_text(errors="replace").strip()
                return f"{name} (process {process.name})"
    return ""


def _listeners(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
                columns = line.split()
                if columns[_STATE] == _LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                    yield columns[_INODE]


def _holds(process: Path, sockets: set[str]) -> bool:
    return any(os.readlink(descriptor) in sockets for descriptor in (process / "fd").iterdir())


_ANSWER_SECONDS: Final = 2.0
_ANSWER_BYTES: Final = 65536
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def look_at_port(case: DoctorCase) -> Iterator[DoctorFinding]:
    server = case.loaded.server
    place = f"{server.host}:{server.port}"
    if server.port == 0:
        yield ok("port 0: any free port is used")
    else:
        fault = _fault(server.host, server.port)
        if fault is None:
            yield ok(f"{place} is free")
        elif fault.errno == errno.EADDRINUSE:
            yield _in_use(case, place)
        elif fault.errno in (errno.EACCES, errno.EPERM):
            fix = f"a port from 1024: [server] in {case.file}: port = 8484"
            yield problem(f"this user may not listen on {place}", fix)
        else:
            reason = os.strerror(fault.errno) if fault.errno else str(fault)
            fix = f'[server] in {case.file}: host = "127.0.0.1", or an address of this machine'
            yield problem(f"cannot listen on {place}: {reason}", fix)
    gone = left_over(case.environ)
    if gone:

        def remove() -> None:
            for file in left_over(case.environ):
                file.unlink(missing_ok=True)

        yield note(
            f"{count(len(gone), 'file')} of stopped gateways in {gone[0].parent}",
            f"rm {' '.join(map(str, gone))}",
            remove,
        )


def _fault(host: str, port: int) -> OSError | None:
    """Why no process can listen there now."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            if os.name == "posix":  # elsewhere it would share the port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as fault:
        return fault
    return None


def _in_use(case: DoctorCase, place: str) -> DoctorFinding:
    server = case.loaded.server
    other = f"another port: [server] in {case.file}: port = {server.port + 1}"
    mine = next((each for each in case.running if each.url.endswith(f":{server.port}")), None)
    if mine is not None:
        return _mine(mine)
    if _is_gateway(_EVERYWHERE.get(server.host, server.host), server.port):
        return warning(
            f"another user's gateway listens on {place}",
            f"wireglot run claude --url http://{place}, or {other}",
        )
    held = holder_of(server.port)
    return problem(f"{place} is in use by {held or 'another program'}", f"stop it, or {other}")


def _mine(running: RunningGateway) -> DoctorFinding:
    text = f"your gateway runs at {running.url} (process {running.pid})"
    if running.version != __version__:
        return note(
            f"{text} with version {running.version}, this program is {__version__}", "restart the gateway"
        )
    return ok(text)


def _is_gateway(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/")
        found = json.loads(connection.getresponse().read(_ANSWER_BYTES))
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
    return isinstance(found, dict) and found.get("name") == "wireglot"


def look_at_store(case: DoctorCase) -> Iterator[DoctorFinding]:
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


def _of_memory(case: DoctorCase, url: Secret) -> DoctorFinding:
    text = "the store is in memory: responses, keys and usage are lost when the gateway stops"
    if url.source == "default":
        return warning(f"{text}; the environment contains no home folder", f"[store] in {case.file}: url")
    return note(text, f'[store] in {case.file}: url = "sqlite:///PATH"')


def _of_file(case: DoctorCase, path: Path) -> Iterator[DoctorFinding]:
    if not path.parent.is_dir():
        above = next(folder for folder in path.parents if folder.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            yield problem(
                f"{path.parent} does not exist, and cannot be created in {above}",
                f"create it for the gateway's user, or [store] in {case.file}: url",
            )
            return
        make = partial(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
        yield note(
            f"{path.parent} does not exist yet: the first start creates it",
            f"mkdir -m 700 -p {path.parent}",
            make,
        )
        return
    if not path.exists():
        if os.access(path.parent, os.W_OK):
            yield ok(f"{path} is created at the first start")
        else:
            yield _unwritable(path.parent)
        return
    seen = case.store_file
    if isinstance(seen, StoreDown):
        yield problem(str(seen), f"find the process: fuser -v {path}")
        return
    if isinstance(seen, StoreUnusable):
        yield problem(str(seen), f"move {path} aside, or [store] in {case.file}: url")
        return
    assert seen is not None, "the file is there"
    if not os.access(path.parent, os.W_OK):
        yield _unwritable(path.parent)
        return
    whole = "sound" if seen.is_read_through else "sound as far as it was checked"
    later = f", upgraded to {seen.known} at the next start" if seen.version < seen.known else ""
    yield ok(f"{path}: {whole}, schema {seen.version}{later}, {_store_size(seen.size)}")


def _store_size(number: int) -> str:
    return f"{number / 2**20:.1f} MiB" if number >= 2**20 else f"{number / 2**10:.0f} KiB"


def _unwritable(folder: Path) -> DoctorFinding:
    return problem(
        f"this user cannot write to {folder}, where the store needs files",
        f"chown and chmod 700 {folder}",
    )


def _of_postgres(case: DoctorCase, url: str) -> DoctorFinding:
    try:
        from wireglot.stores.postgres.schema import look_at_database
    except ImportError:
        return problem("store.url: PostgreSQL needs an extra", install_hint("fleet"))
    try:
        seen = asyncio.run(look_at_database(url))
    except (StoreUnusable, StoreDown) as fault:
        return problem(
            str(fault), f"check that the database runs and accepts this machine; [store] in {case.file}: url"
        )
    if seen.read_only:
        return problem(
            f"{seen.server} is read-only: it is a standby",
            f"use the primary: [store] in {case.file}: url",
        )
    if seen.version > seen.known:
        return problem(
            f"the schema {seen.schema} has version {seen.version}, this program supports up to {seen.known}",
            upgrade_hint(),
        )
    if not seen.version:
        return ok(f"{seen.server} answers; the schema {seen.schema} is created at the first start")
    return ok(f"{seen.server} answers; schema {seen.schema}, version {seen.version}")


def _of_redis(case: DoctorCase, url: str) -> DoctorFinding:
    async def meet() -> None:
        counters, _ = await open_counters(url)
        await counters.close()

    try:
        asyncio.run(meet())
    except (StoreUnusable, StoreDown) as fault:
        return problem(
            str(fault), f"check that Redis runs and accepts this machine; [store] in {case.file}: shared"
        )
    return ok("Redis answers, its version is supported")
