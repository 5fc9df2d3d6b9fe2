"""Which program holds a port, where the system lets us see it: on Linux, one of this user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENING: Final = "0A"
_STATE, _INODE = 3, 9
"""Columns of /proc/net/tcp (proc_net_tcp in the kernel's documents)."""


def holder_of(port: int) -> str:
    """`nginx (process 4711)`; "" where nobody can say."""
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
