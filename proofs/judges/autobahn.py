"""The Autobahn test suite for WebSockets: its client sends hundreds of good and broken frames to ours.

The application behind the server sends every message back, as the suite wants. Cases with binary messages and
with compression are not run: the one is refused with the code for it, the other is never agreed on. The suite
(`autobahntestsuite`) needs Python 2.7: its program `wstest` must be on PATH.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Final, cast

from proofs.judges import environments
from proofs.judges.results import Case, Verdict
from wireglot.gateway.process_limits import ProcessLimits
from wireglot.http.application import Head, Refusal, Reply, UpgradableReply
from wireglot.http.server.server import HttpServer
from wireglot.http.server.websocket import SocketClosed, WebSocket

_BINARY: Final = ("1.2.*", "9.2.*", "9.4.*", "9.6.*", "9.8.*")
_COMPRESSED: Final = ("12.*", "13.*")
_GOOD: Final = frozenset({"OK", "NON-STRICT", "INFORMATIONAL"})
_SECONDS: Final = 1800


class _Limits:
    message = 64 * 1024 * 1024
    ping = 3600.0


class _Echo:
    """Implements `Application`."""

    def admit(self, head: Head) -> Refusal | None:
        return None

    def body_limit(self, head: Head) -> int:
        return 0

    def too_large(self, head: Head, limit: int) -> Refusal:
        return Refusal(413, [], b"")

    def overloaded(self, head: Head) -> Refusal:
        return Refusal(503, [], b"")

    def stalled(self, head: Head) -> Refusal:
        return Refusal(408, [], b"")

    async def handle(self, head: Head, body: bytes, reply: Reply) -> None:
        socket = WebSocket(head, cast(UpgradableReply, reply), _Limits())
        try:
            with contextlib.suppress(SocketClosed):
                while (message := await socket.receive(_SECONDS)) is not None:
                    socket.send(message.decode())
                    socket.done(message)
        finally:
            socket.close()
            socket.release()


def judge() -> Verdict:
    program = shutil.which("wstest")
    if program is None:
        raise environments.Missing("`wstest` of autobahntestsuite on PATH; it needs Python 2.7")
    asked = subprocess.run([program, "-a"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"AutobahnTestSuite ([\d.]+)", asked)
    with tempfile.TemporaryDirectory(prefix="autobahn-") as folder, _served() as port:
        found = _run(Path(program), Path(folder), port)
    failed = [Case(name, case["behavior"]) for name, case in found.items() if case["behavior"] not in _GOOD]
    failed += [
        Case(name, f"close: {case['behaviorClose']}")
        for name, case in found.items()
        if case["behavior"] in _GOOD and case["behaviorClose"] not in _GOOD
    ]
    not_run = [
        *(Case(name, "binary messages, which are refused with 1003") for name in _BINARY),
        *(Case(name, "compression, which is never agreed on") for name in _COMPRESSED),
    ]
    return Verdict(
        "autobahn",
        version[1] if version is not None else asked.strip(),
        "the WebSocket protocol: framing, fragments, pings, UTF-8, closing, limits",
        len(found) - len({case.name for case in failed}),
        tuple(failed),
        tuple(not_run),
    )


def _run(program: Path, folder: Path, port: int) -> dict[str, dict[str, Any]]:
    spec = {
        "outdir": str(folder / "reports"),
        "servers": [{"agent": "wireglot", "url": f"ws://127.0.0.1:{port}"}],
        "cases": ["*"],
        "exclude-cases": [*_BINARY, *_COMPRESSED],
        "exclude-agent-cases": {},
    }
    (folder / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
    command = [str(program), "-m", "fuzzingclient", "-s", str(folder / "spec.json")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    report = folder / "reports" / "index.json"
    if not report.is_file():
        raise environments.Missing(f"{' '.join(command)}: {(done.stdout + done.stderr).strip()[-2000:]}")
    found: dict[str, dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))
    if not found:
        raise environments.Missing(f"{program}: no case was run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return next(iter(found.values()))


@contextlib.contextmanager
def _served() -> Any:
    loop = asyncio.new_event_loop()
    server = HttpServer(_Echo(), ProcessLimits())
    port = loop.run_until_complete(server.listen("127.0.0.1", 0))[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(server.drain(0), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
