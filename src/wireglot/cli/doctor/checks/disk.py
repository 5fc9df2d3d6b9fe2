"""Room for the journal that usage is written to first, and for the store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wireglot.cli.doctor.case import Case
from wireglot.cli.doctor.finding import Finding, ok, problem, warning

_COMFORTABLE_BYTES: Final = 512 * 2**20
_MIB: Final = 2**20


def look_at_disk(case: Case) -> Iterator[Finding]:
    store = case.loaded.store
    if not store.folder:
        return  # a journal of files without a name, made as they are needed
    folder = Path(store.folder)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return
    wanted = store.journal * case.loaded.server.workers
    told = f"{_size(free)} are free for {store.folder}, of which the journal reserves {_size(wanted)}"
    where = f"make room, or [store] in {case.file}: folder = another disk, or a smaller journal"
    if free < wanted:
        yield problem(told, where)
    elif free < wanted + _COMFORTABLE_BYTES:
        yield warning(told, where)
    else:
        yield ok(told)


def _size(number: int) -> str:
    return f"{number / _MIB / 1024:.0f} GiB" if number >= 10 * 1024 * _MIB else f"{number / _MIB:.0f} MiB"
