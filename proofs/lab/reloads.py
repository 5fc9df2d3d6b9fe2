"""Reload a loaded gateway again and again, half of the times from a file that must not be taken up.

    python -m proofs.lab.reloads [--reloads 100] [--clients 8] [--pause 0] [--workers 1] [--seed 1]

It listens on all addresses and asks for keys. Clients with a key ask, whole and streamed; strangers (without
a key, with a wrong one, with one that was taken back) ask too. Every other file is broken, empty, cut off,
gone, or has dropped its keys; files are exchanged at once or written in pieces, with SIGHUP in the middle, or
without any. No request of a client may fail, and no stranger be let in.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proofs.lab.link import Link
from proofs.lab.result import Run, add_options
from proofs.served import Served

_KEY: Final = "wg-key-of-a-client-0123456789"
_TAKEN_BACK: Final = "wg-key-that-was-taken-back-0123456789"
_HEAD: Final = '[server]\nhost = "0.0.0.0"\nlog = "json"\n[providers.demo]\n'
_UNAUTHORIZED: Final = 401
_TOO_MANY: Final = 429
_OK: Final = 200
_WAIT_SECONDS: Final = 20.0
_LOOK_SECONDS: Final = 0.02


def _keys(*keys: str) -> str:
    hashes = (hashlib.sha256(key.encode()).hexdigest() for key in keys)
    return "[keys]\n" + "".join(f'k{n} = "sha256:{found}"\n' for n, found in enumerate(hashes))


def good(number: int) -> str:
    return f'{_HEAD}[models]\n"alias-{number}" = "demo/demo"\n{_keys(_KEY)}# {number}\n'


BAD: Final[dict[str, Callable[[random.Random, int], str | None]]] = {
    "empty": lambda chance, number: "",
    "comments only": lambda chance, number: f"# {number}\n",
    "no keys": lambda chance, number: f"{_HEAD}# {number}\n",
    "no keys, another host": lambda chance, number: f"{_HEAD}# {number}\n".replace("0.0.0.0", "127.0.0.1"),
    "keys switched off": lambda chance, number: (
        f"[server]\nrequire_key = false\n[providers.demo]\n[keys]\n# {number}\n"
    ),
    "no TOML": lambda chance, number: f"[server\n# {number}\n",
    "unknown setting": lambda chance, number: f"{good(number)}[servr]\nport = 1\n",
    "cut off": lambda chance, number: good(number)[: chance.randrange(1, good(number).index("[keys]"))],
    "gone": lambda chance, number: None,
}
"""What a file may come to hold (None: there is none), none of it to be taken up."""


class Traffic:
    """Clients and strangers, until they are asked to stop."""

    def __init__(self, port: int, chance: random.Random, pause: float) -> None:
        self._port = port
        self._chance = chance
        self._pause = pause
        self.stopped = asyncio.Event()
        self.asked = 0
        self.refused = 0
        self.failed: list[str] = []
        self.let_in: list[str] = []
        self.unreported: list[str] = []
        """Files that were neither refused nor taken up as they should."""

    async def client(self) -> None:
        link = Link(self._port, _KEY)
        while not self.stopped.is_set():
            stream = self._chance.random() < 0.5
            body = {"model": "demo", "stream": stream, "messages": [{"role": "user", "content": "hello"}]}
            try:
                reply = await link.ask("POST", "/v1/chat/completions", body)
            except (OSError, asyncio.IncompleteReadError) as fault:
                self.failed.append(type(fault).__name__)
                continue
            self.asked += 1
            if reply.status != _OK or (stream and b"[DONE]" not in reply.body):
                self.failed.append(f"{reply.status} {reply.body[:200]!r}")
            await asyncio.sleep(self._pause)
        link.close()

    async def stranger(self, key: str) -> None:
        link = Link(self._port, key)
        while not self.stopped.is_set():
            reply = await link.ask("GET", "/v1/models")
            if reply.status in (_UNAUTHORIZED, _TOO_MANY):
                self.refused += 1
            else:
                self.let_in.append(f"{reply.status} with {key or 'no key'}")
            await asyncio.sleep(_LOOK_SECONDS)
        link.close()


class Writer:
    """Changes the file, in any of the ways in which people do, and tells the gateway or leaves it to look."""

    def __init__(self, served: Served, chance: random.Random) -> None:
        self._served = served
        self._path = served.folder / "wireglot.toml"
        self._chance = chance

    async def write(self, text: str | None) -> str:
        if text is None:
            self._path.unlink(missing_ok=True)
            self._tell()
            return "removed"
        way = self._chance.choice(("exchanged", "in pieces", "in pieces, unasked"))
        if way == "exchanged":
            new = self._path.with_suffix(".new")
            new.write_text(text, encoding="utf-8")
            new.replace(self._path)
            self._tell()
            return way
        with self._path.open("w", encoding="utf-8") as file:
            middle = self._chance.randrange(len(text) + 1)
            for piece in (text[:middle], text[middle:]):
                file.write(piece)
                file.flush()
                if way == "in pieces":
                    self._tell()
                await asyncio.sleep(_LOOK_SECONDS)
        return way

    def _tell(self) -> None:
        os.kill(self._served.pid, signal.SIGHUP)


class Log:
    """Counts the lines of the gateway's log."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def count(self, event: str) -> int:
        return self._path.read_bytes().count(b'"event":"%s"' % event.encode())

    async def wait(self, event: str, count: int) -> bool:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                while self.count(event) < count:
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            return False
        return True


async def _reloads(served: Served, run: Run, arguments: argparse.Namespace, chance: random.Random) -> Traffic:
    traffic = Traffic(served.port, chance, arguments.pause)
    log = Log(served.folder / "log")
    writer = Writer(served, chance)
    # One key is there at the start and taken back by the first reload.
    await writer.write(good(0))
    await log.wait("reloaded", arguments.workers)
    tasks = [asyncio.create_task(traffic.client()) for _ in range(arguments.clients)]
    tasks += [asyncio.create_task(traffic.stranger(key)) for key in ("", "wrong", _TAKEN_BACK)]
    names = list(BAD)
    ways: Counter[str] = Counter()
    for number in range(1, arguments.reloads + 1):
        is_bad = number % 2 == 0
        name = names[(number // 2 - 1) % len(names)] if is_bad else "good"
        text = BAD[name](chance, number) if is_bad else good(number)
        event = "reload refused" if is_bad else "reloaded"
        before = log.count(event)
        ways[await writer.write(text)] += 1
        ways[name] += 1
        if not await log.wait(event, before + arguments.workers):
            traffic.unreported.append(f"{name}: no {event!r} was reported")
    traffic.stopped.set()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, BaseException):
            traffic.failed.append(type(outcome).__name__)
    run.counts.update(
        {
            "reloads": arguments.reloads,
            "requests": traffic.asked,
            "requests without a valid key refused": traffic.refused,
            "lines of refused reloads": log.count("reload refused"),
            **{f"file: {name}": count for name, count in sorted(ways.items())},
        }
    )
    return traffic


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--reloads", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests of a client")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    add_options(parser)
    arguments = parser.parse_args(argv)
    run = Run(
        "reloads" if arguments.workers == 1 else "reloads-workers",
        f"{arguments.reloads} reloads under load, half of them broken, empty or without keys",
        seed=arguments.seed,
    )
    with tempfile.TemporaryDirectory(prefix="wireglot-lab-") as folder:
        toml = good(0).replace(_keys(_KEY), _keys(_KEY, _TAKEN_BACK))
        served = Served(Path(folder), toml, workers=arguments.workers)
        served.start()
        try:
            traffic = asyncio.run(_reloads(served, run, arguments, random.Random(arguments.seed)))
        finally:
            ended = served.stop()
    for problem in (traffic.unreported + traffic.failed + traffic.let_in)[:20]:
        print(problem, file=sys.stderr)
    failed, let_in, unreported = len(traffic.failed), len(traffic.let_in), len(traffic.unreported)
    run.figure("failed requests", demanded="0", measured=failed, holds=failed == 0 and traffic.asked > 0)
    run.figure(
        "requests without a valid key that were admitted",
        demanded="0",
        measured=let_in,
        holds=let_in == 0 and traffic.refused > 0,
    )
    run.figure("files applied or refused wrongly", demanded="0", measured=unreported, holds=unreported == 0)
    run.figure("exit status", demanded="0", measured=ended, holds=ended == 0)
    return run.write(arguments.out)


if __name__ == "__main__":
    sys.exit(main())
