"""Python calls in our own code, and files they are in, of four warm requests: the same on every machine.

    python -m proofs.guard.calls FILE serve --config FILE

serves, and writes the calls between two SIGUSR2 of the main thread into the first file.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import wireglot
import wireglot_core
from proofs.bench import processes, targets
from proofs.bench.bodies import body
from proofs.bench.scenarios import DIALECTS, PROVIDERS, path_of
from proofs.guard import callgrind, serve
from proofs.guard.client import Client, wait_until_quiet
from wireglot_core.wire.json import encode

SWITCH = signal.SIGUSR2
EVENTS, GAP = 4, 50
_WARM = 4
_PATIENCE_SECONDS = 30.0


class Request(NamedTuple):
    name: str
    pair: str
    events: int = 0
    chained: bool = False
    """It goes on from a stored response."""

    @property
    def model(self) -> str:
        return f"{PROVIDERS[self.pair[1]]}/mock-c{self.events}-g{GAP}"


REQUESTS = (
    Request("anthropic > gemini, streamed", "ag", EVENTS),
    Request("openai-chat > openai-chat", "cc"),
    Request("openai-chat > openai-chat, streamed", "cc", EVENTS),
    Request("openai-responses > openai-chat, chained", "rc", chained=True),
)


def names() -> Iterator[str]:
    for request in REQUESTS:
        yield f"calls, {request.name}"
        yield f"files, {request.name}"


def count() -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="wireglot-guard-") as name:
        directory = Path(name)
        written = directory / "calls.json"
        upstream = processes.free_port()
        double = processes.start(
            [sys.executable, "-m", "proofs.bench.upstream", str(upstream)], directory / "upstream.log"
        )
        command = [sys.executable, "-m", "proofs.guard.calls", str(written)]
        gateway = targets.wireglot(command, upstream, directory)
        try:
            gateway.start(None)
            found: dict[str, int] = {}
            for request in REQUESTS:
                calls = _calls(request, gateway, written)
                found[f"calls, {request.name}"] = len(calls)
                found[f"files, {request.name}"] = len(set(calls))
            return found
        except targets.NotStarted as fault:
            raise callgrind.NotCounted(str(fault)) from None
        finally:
            gateway.stop()
            processes.stop(double)


def _calls(request: Request, gateway: targets.Target, written: Path) -> list[str]:
    """The file of each call of one request."""
    dialect, stream = DIALECTS[request.pair[0]], bool(request.events)
    path = path_of(dialect, request.model, stream=stream)
    content = body(dialect, "2k", request.model, stream=stream)
    client = Client(gateway.port)
    if request.chained:
        turn = {"model": request.model, "input": "Go on.", "store": True}
        first = json.loads(client.ask(path, encode(turn)))["id"]
        content = encode({**turn, "previous_response_id": first})
    for _ in range(_WARM):
        client.ask(path, content)
    wait_until_quiet(gateway.pid)
    os.kill(gateway.pid, SWITCH)
    wait_until_quiet(gateway.pid)
    client.ask(path, content)
    wait_until_quiet(gateway.pid)
    os.kill(gateway.pid, SWITCH)
    client.close()
    return _read(written)


def _read(written: Path) -> list[str]:
    end = time.monotonic() + _PATIENCE_SECONDS
    while not written.exists():
        if time.monotonic() > end:
            raise callgrind.NotCounted("the gateway wrote no calls")
        time.sleep(0.05)
    calls: list[str] = json.loads(written.read_bytes())
    written.unlink()
    return calls


def main() -> int:
    written = Path(sys.argv.pop(1))
    roots = tuple(package.__path__[0] + os.sep for package in (wireglot, wireglot_core))
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(roots):
            seen.append(frame.f_code.co_filename)

    def switch(*_: object) -> None:
        if sys.getprofile() is None:
            seen.clear()
            sys.setprofile(note)
            return
        sys.setprofile(None)
        unfinished = written.with_suffix(".new")
        unfinished.write_text(json.dumps(seen))
        unfinished.replace(written)

    signal.signal(SWITCH, switch)
    return serve.main()


if __name__ == "__main__":
    sys.exit(main())
