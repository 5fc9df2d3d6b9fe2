"""What a request costs at least: the gateway's HTTP server, HTTP client and event loop, and nothing between.

    python -m proofs.guard.floor

It counts a bare proxy made of these parts in the way of `proofs/guard/gateway.py`: once forwarding the body
unread, once decoding and encoding it and the answer, as every translation has to. No goal for a request can
be below the first figure, none for a translated one below the second.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from proofs.bench import processes, targets
from proofs.guard import callgrind, gateway, serve
from proofs.guard.gateway import Case, Figure
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.application import Head, Refusal, Reply
from wireglot.http.client.client import HttpTransport
from wireglot.http.server.server import HttpServer
from wireglot.http.transport import Outbound, Timeouts

_MAX_BYTES: Final = 1 << 24
_HEADERS: Final = [("content-type", "application/json")]
_REFUSED: Final = Refusal(503, [], b"")
_DECODES: Final = "decodes"


class BareProxy:
    """Forwards every request to one upstream. `decodes`: as JSON that is read and written again."""

    def __init__(self, upstream: str, *, decodes: bool) -> None:
        self._upstream = upstream
        self._decodes = decodes
        self._transport = HttpTransport(ProcessLimits())
        self._timeouts = Timeouts()

    def admit(self, head: Head) -> Refusal | None:
        return None

    def body_limit(self, head: Head) -> int:
        return _MAX_BYTES

    def too_large(self, head: Head, limit: int) -> Refusal:
        return _REFUSED

    def overloaded(self, head: Head) -> Refusal:
        return _REFUSED

    def stalled(self, head: Head) -> Refusal:
        return _REFUSED

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None:
        if self._decodes:
            body = msgspec.json.encode(msgspec.json.decode(body))
        request = Outbound("POST", self._upstream + head.target, _HEADERS, body)
        answer = await self._transport.send(request, self._timeouts)
        content = await answer.read(_MAX_BYTES)
        if self._decodes:
            content = msgspec.json.encode(msgspec.json.decode(content))
        reply.send(answer.status, _HEADERS, content)


async def _serve(port: int, upstream: str, decodes: bool) -> None:
    await HttpServer(BareProxy(upstream, decodes=decodes), ProcessLimits()).listen("127.0.0.1", port)
    await asyncio.Event().wait()


def figures() -> Iterator[Figure]:
    for size, content, warm, times in (
        ("2 KB", gateway.same("cc", "mock"), gateway.WARM, 6),
        ("100 KB", gateway.first_seen("cc"), 2, 4),
    ):
        case = Case("cc", "mock", content, warm, times)
        yield Figure(f"{size} forwarded", (case,))
        yield Figure(f"{size} decoded and encoded", (case._replace(cached=False),))


def count() -> dict[str, int]:
    def proxy(upstream: int, directory: Path, forwards: bool) -> targets.Target:
        own = directory / ("on" if forwards else "off")
        own.mkdir()
        port = processes.free_port()
        program = [sys.executable, "-m", "proofs.guard.floor", str(port), f"http://127.0.0.1:{upstream}"]
        command = callgrind.under_callgrind(own, program + [_DECODES] * (not forwards), "--instr-atstart=no")
        return targets.Target("bare proxy", command, port, own / "proxy.log")

    wanted = list(figures())
    with tempfile.TemporaryDirectory(prefix="wireglot-guard-") as name:
        cases = [case for figure in wanted for case in figure.cases]
        spent = gateway.spent(cases, Path(name), proxy)
    return {figure.name: round(spent[figure.cases[0]]) for figure in wanted}


def main() -> int:
    if len(sys.argv) > 1:
        port, upstream, *decodes = sys.argv[1:]
        serve.hold_timers()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(int(port), upstream, decodes == [_DECODES]))
        return 0
    for name, number in count().items():
        print(f"{number:>14,}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
