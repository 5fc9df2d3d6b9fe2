"""Hostile clients: idle, slow, not reading, and bombs. Are well-behaved clients affected?

    python -m proofs.lab.slow [--idle 5000] [--slow 500] [--seconds 60] [--good 16] [--bombs 50]

Thousands of connections that say nothing, hundreds that send their head or their body a byte at a time,
hundreds that ask for long streams and never read, and requests made to blow up: compressed a thousandfold,
nested a hundred thousand deep, with a million members, a number of a million digits, endless heads. Good
clients ask before, during and after. None of theirs may fail; memory stays bounded; what the others hold is
taken from them; nothing ends in a 5xx but the refusals of an overload.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import random
import resource
import secrets
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from proofs.bench import processes
from proofs.lab.link import Link
from proofs.lab.paced_upstream import PacedUpstream, config, model
from proofs.lab.questions import CLIENTS, answer, question
from proofs.lab.result import Run, add_options
from proofs.served import Served

_MEMORY_MIB: Final = 600
_SHED: Final = frozenset({503, 529})
_CONFIG: Final = """\
[server]
log = "json"
[limits]
header_time = 10
body_idle = 15
write_stall = 20
requests_per_key = 0
[providers.demo]
"""


class Seen:
    def __init__(self) -> None:
        self.tally: Counter[str] = Counter()
        self.problems: list[str] = []
        self.waits: dict[str, list[float]] = {"before": [], "during": [], "after": []}
        self.phase = "before"
        self.rss: list[float] = []
        self.running = True


async def good(port: int, number: int, seen: Seen) -> None:
    chance = random.Random(number)
    link = Link(port)
    while seen.running:
        nonce = f"nonce-{secrets.token_hex(6)}"
        client = chance.choice(CLIENTS)
        path, body = question(client, "demo-openai-chat", f"[[demo:echo]] {nonce}")
        phase, began = seen.phase, time.monotonic()
        try:
            reply = await link.ask("POST", path, body)
        except OSError as fault:
            seen.problems.append(f"a good client ({phase}): {fault!r}")
            link = Link(port)
            continue
        seen.waits[phase].append(time.monotonic() - began)
        seen.tally[f"good, {phase}"] += 1
        if reply.status != 200 or nonce not in answer(client, reply.body)[1]:
            seen.problems.append(f"a good client ({phase}): {reply.status} {reply.body[:200]!r}")
        await asyncio.sleep(0.05)
    link.close()


async def held(port: int, kind: str, seconds: float, seen: Seen) -> None:
    """A connection that is kept as long as it can be."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    except OSError:
        seen.tally[f"{kind}: not let in"] += 1
        return
    seen.tally[kind] += 1
    end = time.monotonic() + seconds
    try:
        if kind == "slow head":
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ")
        elif kind == "slow body":
            writer.write(_head(port, "/v1/chat/completions", 100_000) + b'{"model":"demo","messages":[')
        elif kind == "not reading":
            path, body = question("openai-chat", f"paced/{model(2000, 5)}", "x" * 1000)
            raw = msgspec.json.encode(body)
            writer.write(_head(port, path, len(raw)) + raw)
        while time.monotonic() < end:
            await asyncio.sleep(1.0)
            if kind in ("slow head", "slow body"):
                writer.write(b" ")
            if writer.transport.is_closing() or reader.at_eof():
                seen.tally[f"{kind}: closed by the gateway"] += 1
                return
    except OSError:
        seen.tally[f"{kind}: closed by the gateway"] += 1
    finally:
        writer.transport.abort()


def _head(port: int, path: str, length: int, more: str = "") -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n{more}"
        f"content-length: {length}\r\n\r\n"
    ).encode()


def bombs(port: int) -> dict[str, bytes]:
    def asked(body: bytes, more: str = "") -> bytes:
        return _head(port, "/v1/chat/completions", len(body), more) + body

    prompt = b'{"model":"demo-openai-chat","messages":[{"role":"user","content":"hi"}],"x":'
    return {
        "compressed": asked(gzip.compress(b" " * 60_000_000), "content-encoding: gzip\r\n"),
        "deep": asked(prompt + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        "deep objects": asked(prompt + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}"),
        "members": asked(prompt + b"[" + b"0," * 1_000_000 + b"0]}"),
        "digits": asked(prompt + b"9" * 1_000_000 + b"}"),
        "exponent": asked(prompt + b"1e999999999}"),
        "heads": b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 200_000 + b"\r\n",
        "line": b"POST /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        "large": asked(prompt + b'"' + b"y" * 40_000_000 + b'"}'),
    }


async def bomb(port: int, name: str, data: bytes, seen: Seen) -> None:
    status = b""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(60):
                writer.write(data)
                got = await reader.read(4096)
                status = got[9:12]
        finally:
            writer.transport.abort()
    except TimeoutError:
        seen.problems.append(f"{name}: hangs")
        return
    except OSError:
        status = b"closed"
    reported = status.decode() or "closed"
    seen.tally[f"bomb {name}: {reported}"] += 1
    if reported.isdigit() and int(reported) >= 500 and int(reported) not in _SHED:
        seen.problems.append(f"{name}: {reported}")


async def trial(arguments: argparse.Namespace, folder: Path, seen: Seen) -> None:
    upstream = PacedUpstream()
    served = Served(folder, _CONFIG + config(await upstream.start()))
    await asyncio.to_thread(served.start)
    clients = [asyncio.create_task(good(served.port, number, seen)) for number in range(arguments.good)]
    watch = asyncio.create_task(_watch(served, seen))
    await asyncio.sleep(10)
    seen.phase = "during"
    kinds = ["idle"] * arguments.idle + [
        kind for kind in ("slow head", "slow body", "not reading") for _ in range(arguments.slow)
    ]
    random.Random(1).shuffle(kinds)
    attackers = []
    for number, kind in enumerate(kinds):
        attackers.append(asyncio.create_task(held(served.port, kind, arguments.seconds, seen)))
        if number % 100 == 0:
            await asyncio.sleep(0.05)
    for name, data in bombs(served.port).items():
        for _ in range(max(arguments.bombs // 10, 1)):
            await asyncio.gather(
                *(bomb(served.port, name, data, seen) for _ in range(min(arguments.bombs, 10)))
            )
    await asyncio.gather(*attackers)
    seen.phase = "after"
    await asyncio.sleep(10)
    seen.running = False
    await asyncio.gather(*clients)
    watch.cancel()
    if served.ended() is not None:
        seen.problems.append(f"it ended:\n{served.log_tail()}")
    await asyncio.to_thread(served.stop)
    await upstream.stop()


async def _watch(served: Served, seen: Seen) -> None:
    while True:
        seen.rss.append(processes.memory([served.pid]).rss)
        await asyncio.sleep(0.5)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.slow", description=__doc__)
    parser.add_argument("--idle", type=int, default=5000)
    parser.add_argument("--slow", type=int, default=500, help="of each kind")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--good", type=int, default=16)
    parser.add_argument("--bombs", type=int, default=50, help="of each kind")
    add_options(parser)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run = Run("slow", "idle and slow clients, clients that do not read, and bombs, next to good ones")
    seen = Seen()
    with tempfile.TemporaryDirectory(prefix="slow-") as work:
        asyncio.run(trial(arguments, Path(work), seen))
    run.tell(seen.problems)
    run.counts.update(sorted(seen.tally.items()))
    for phase, waits in seen.waits.items():
        run.counts[f"good, {phase}: median wait in ms"] = round(1000 * median(waits or [0]))
    harmed = sum(problem.startswith("a good") for problem in seen.problems)
    run.figure("good requests that failed", demanded="0", measured=harmed, holds=harmed == 0)
    wrong = len(seen.problems) - harmed
    run.figure("bombs that hang or end in 5xx, crashes", demanded="0", measured=wrong, holds=wrong == 0)
    most = round(max(seen.rss, default=0.0) - (seen.rss[0] if seen.rss else 0.0))
    run.figure(
        "most memory on top, in MiB",
        demanded=f"at most {_MEMORY_MIB}",
        measured=most,
        holds=most <= _MEMORY_MIB,
    )
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
