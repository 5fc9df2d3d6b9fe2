"""A gateway as a process, the provider behind it that keeps all it was sent, and an address where nobody has
any business."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from proofs.lab.marking_upstream import SPEAKERS, MarkingUpstream, Seen, provider_table
from proofs.served import Served

ANN: Final = "door-ann"
BOB: Final = "door-bob"
KEYS: Final = {ANN: "wg-3b1f0c9e5a7d2468-0a1b2c3d", BOB: "wg-9d8c7b6a5f4e3210-4d5e6f70"}
ADMIN: Final = "wg-door-admin-secret-0123456789"
METRICS: Final = "wg-door-metrics-key-0123456789"
AT_ONCE: Final = "retries = 1\nbase = 0.001\ncap = 0.001\n"
"""How a provider is asked again."""
_HEAD: Final = 'log = "off"\n'
_LIMITS: Final = "[limits]\nauth_failures = 1000000000\nrequests_per_key = 0\n[providers]\ndiscover = false\n"


class Canary:
    """Where the gateway must never call. It hears all that is said to it, and says nothing."""

    def __init__(self) -> None:
        self.calls = 0
        self.heard = bytearray()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._hear, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(1):
                self.heard += await reader.read(1 << 16)
        writer.close()


class Stage:
    """`server`: more lines of [server]; `tables`: more tables."""

    def __init__(self, folder: Path, upstream: MarkingUpstream, canary: Canary) -> None:
        self.folder = folder
        self.upstream = upstream
        self.canary = canary
        self.upstream_port = 0
        self.canary_port = 0
        self.port = 0

    @property
    def seen(self) -> list[Seen]:
        assert self.upstream.seen is not None
        return self.upstream.seen

    def saw(self, text: str, since: int = 0) -> list[Seen]:
        """The requests with this in them. `since`: how many there were before, to be passed over."""
        raw = text.encode()
        return [each for each in self.seen[since:] if raw in each.body or raw in each.head]


@asynccontextmanager
async def staged(
    folder: Path,
    *,
    server: str = "",
    tables: str = "",
    environ: dict[str, str] | None = None,
) -> AsyncIterator[Stage]:
    """The four providers are named after their dialects. `{canary}` in the environment is its port."""
    stage = Stage(folder, MarkingUpstream(record=True), Canary())
    stage.upstream_port = await stage.upstream.start()
    stage.canary_port = await stage.canary.start()
    url = f"http://127.0.0.1:{stage.upstream_port}"
    toml = (
        f"[server]\n{_HEAD}{server}{_LIMITS}"
        + "".join(provider_table(name, name, url, AT_ONCE) for name in SPEAKERS)
        + tables
    )
    said = {name: text.format(canary=stage.canary_port) for name, text in (environ or {}).items()}
    served = Served(folder, toml, environ=said)
    stage.port = served.port
    try:
        await asyncio.to_thread(served.start)
        yield stage
    finally:
        await asyncio.to_thread(served.stop)
        await stage.upstream.stop()
        await stage.canary.stop()
