"""One scrape for several worker processes.

Each worker counts separately and serves its numbers on a socket in a directory that only the supervisor's
user may enter. The worker that is scraped requests the numbers of the others and adds them up: counters,
histograms and gauges are sums, except for a few gauges, of which the maximum is taken. A worker that does not
answer in time is left out and reported (`wireglot_workers{state="missing"}`); when one is restarted its
counters begin at 0 again, which Prometheus handles as a reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

from wireglot.gateway.observe.metrics import number_text

TIMEOUT_SECONDS: Final = 1.0
# Bytes of the metrics of one worker.
_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_END: Final = b"# END\n"
_DIRECTORY_MOST_BYTES: Final = 84
"""Bytes of the path of the folder for the workers' sockets. With a socket's name after it, it is the address
of a socket, which may have 104 bytes, on Linux 108."""
_SHORT_PLACE: Final = "/tmp"
_LARGEST: Final = frozenset(
    {
        "wireglot_start_time_seconds",
        "wireglot_breaker_open",
        "wireglot_store_breaker_open",
        "wireglot_build_info",
        "wireglot_config_refused",
        "wireglot_store_down",
        "wireglot_key_budget_used_ratio",
    }
)
"""Gauges of which the maximum is taken: a breaker is open if it is open anywhere; two workers of version 1
are not version 2; a budget is shared by all of them."""


def shared_directory() -> str:
    """A new directory for one supervisor's workers; the supervisor removes it at the end."""
    made = tempfile.mkdtemp(prefix="wireglot-")
    if len(os.fsencode(made)) <= _DIRECTORY_MOST_BYTES:
        return made
    os.rmdir(made)
    return tempfile.mkdtemp(prefix="wireglot-", dir=_SHORT_PLACE)


class Siblings:
    """One worker's access to all of them. `index` is its place, which its replacement takes over."""

    def __init__(
        self, directory: str, index: int, render: Callable[[], bytes], timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._directory = Path(directory)
        self._own = self._directory / f"worker-{index}.sock"
        self._render = render
        self._timeout = timeout
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        _check_private(self._directory)
        loop = asyncio.get_running_loop()  # removes the socket of a predecessor that died
        self._server = await loop.create_unix_server(lambda: _MetricsReply(self._render), str(self._own))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            self._own.unlink(missing_ok=True)

    async def gather(self) -> bytes:
        """The numbers of all workers, as one text."""
        others = [path for path in sorted(self._directory.glob("worker-*.sock")) if path != self._own]
        answers = await asyncio.gather(*(self._ask(path) for path in others))
        texts = [self._render(), *(answer for answer in answers if answer is not None)]
        return merge(texts) + _census(len(texts), 1 + len(others) - len(texts))

    async def _ask(self, path: Path) -> bytes | None:
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await asyncio.open_unix_connection(str(path), limit=_MAX_ANSWER_BYTES)
                try:
                    text = await reader.readuntil(_END)
                finally:
                    writer.close()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return None
        return text.removesuffix(_END)


class _MetricsReply(asyncio.Protocol):
    def __init__(self, render: Callable[[], bytes]) -> None:
        self._render = render

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        writable = cast(asyncio.WriteTransport, transport)  # uvloop's are no subclasses of asyncio's
        with contextlib.closing(writable):
            writable.write(self._render() + _END)


def _check_private(directory: Path) -> None:
    """Other users must not be able to read our numbers or pose as a worker."""
    status = os.stat(directory)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f"{directory} must belong to this user alone (mode 0700)")


def _census(answered: int, missing: int) -> bytes:
    return (
        "# HELP wireglot_workers Worker processes in this scrape.\n"
        "# TYPE wireglot_workers gauge\n"
        f'wireglot_workers{{state="answered"}} {answered}\n'
        f'wireglot_workers{{state="missing"}} {missing}\n'
    ).encode()


class _Family:
    def __init__(self) -> None:
        self.head: list[str] = []
        self.samples: dict[str, float] = {}


def merge(texts: Sequence[bytes]) -> bytes:
    """Merge several texts written by `Metrics.render` into one."""
    families: dict[str, _Family] = {}
    for text in texts:
        _read(text.decode("utf-8", "replace"), families)
    out: list[str] = []
    for family in families.values():
        out += family.head
        out += [f"{series} {number_text(value)}" for series, value in family.samples.items()]
    return ("\n".join(out) + "\n").encode() if out else b""


def _read(text: str, families: dict[str, _Family]) -> None:
    family, fresh, largest = _Family(), True, False
    for line in text.split("\n"):  # a label may contain other line ends of splitlines
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            fresh, largest = name not in families, name in _LARGEST
            family = families.setdefault(name, _Family())
        if line.startswith("#"):
            if fresh:
                family.head.append(line)
        elif line:
            series, _, number = line.rpartition(" ")
            before, value = family.samples.get(series, 0.0), float(number)
            family.samples[series] = max(before, value) if largest else before + value
