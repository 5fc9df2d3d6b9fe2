"""Cut the provider's connection at every byte: what does the client get?

    python -m proofs.lab.cuts [--every 1] [--clients 48] [--seed 1] [--only openai-chat]

Sixteen streams, four of each dialect, are cut after every byte, in three ways: the end of the connection
without the last chunk, a reset, and a last chunk as if all were said. A real gateway stands between, and the
client speaks each of the four dialects. The answer must be the whole one where its end had arrived, else an
error that the dialect knows: a status before the first byte, an error event after it. Where the stop reason
had arrived and only what follows it was cut off (usage, an empty end), either is right. Resumable: a stream
and a dialect are a piece.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from proofs.lab.cutting_upstream import WAYS, CuttingUpstream, Way, model
from proofs.lab.link import Link, Reply
from proofs.lab.progress import Progress
from proofs.lab.questions import CLIENTS, question
from proofs.lab.result import Run, add_options
from proofs.served import Served
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.stream import Finish, fold
from wireglot_core.testing.laws import ending, read_stream

_STREAMS: Final = (
    *product(("anthropic",), ("text", "thinking_and_tools", "stop_sequence", "length")),
    *product(("openai-chat",), ("text", "tools", "reasoning_content", "length")),
    *product(("openai-responses",), ("text", "tools", "custom_tool", "length")),
    *product(("gemini",), ("text", "tools", "signed_text", "length")),
)
_PATIENCE_SECONDS: Final = 20.0
_SERVER: Final = '[server]\nlog = "json"\n[limits]\nrequests_per_key = 0\n'


class Cut(NamedTuple):
    stream: int
    at: int
    way: Way


class Bench:
    """The gateway, the upstream, and what is expected of a cut."""

    def __init__(self, port: int, streams: list[tuple[DialectName, bytes]], progress: Progress) -> None:
        self._port = port
        self._streams = streams
        self._progress = progress
        self.wholes: dict[tuple[int, DialectName], Response] = {}

    async def piece(self, client: DialectName, cuts: list[Cut], workers: int) -> None:
        left = iter(cuts)

        async def work() -> None:
            link = Link(self._port)
            for cut in left:
                await self._one(link, client, cut)
            link.close()

        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(work())

    async def whole(self, client: DialectName, stream: int) -> Response:
        """The answer to a stream that nobody cuts."""
        known = self.wholes.get((stream, client))
        if known is None:
            data = self._streams[stream][1]
            reply = await self._asked(Link(self._port), client, Cut(stream, len(data), "proper"))
            known = self.wholes[stream, client] = _folded(client, reply)
        return known

    async def _one(self, link: Link, client: DialectName, cut: Cut) -> None:
        count, said = self._progress.counts, self._progress.problems
        count["cuts"] += 1
        name = f"stream {cut.stream} ({self._streams[cut.stream][0]}) at {cut.at} ({cut.way}) for {client}"
        try:
            reply = await self._asked(link, client, cut)
        except TimeoutError:
            said.append(f"{name}: hangs")
            link.close()
            return
        except OSError as fault:
            said.append(f"{name}: the client's connection broke: {fault!r}")
            return
        if problem := await self._judged(client, cut, reply, count):
            said.append(f"{name}: {problem}")

    async def _judged(self, client: DialectName, cut: Cut, reply: Reply, count: Counter[str]) -> str:
        arrived, may_be_whole = self._expected(cut)
        if reply.status != 200:
            count[f"status {reply.status}"] += 1
            if dialect(client).parse_error(reply.json(), reply.status) is None:
                return f"{reply.status} without an error the dialect knows: {reply.body[:200]!r}"
            return f"{reply.status} although all of it had arrived" if arrived else ""
        events = read_stream(dialect(client), [reply.body])
        if ending(events) is not Finish:
            count["error events"] += 1
            return "an error although all of it had arrived" if arrived else ""
        count["complete"] += 1
        if not may_be_whole:
            return f"an end that nobody sent: {reply.body[-200:]!r}"
        if _said(fold(events)) != _said(await self.whole(client, cut.stream)):
            return f"complete, but not the same answer: {reply.body[-300:]!r}"
        return ""

    def _expected(self, cut: Cut) -> tuple[bool, bool]:
        """Whether its last event had arrived; whether all had been said, and only what follows is missing."""
        source, data = self._streams[cut.stream]
        data = data[: cut.at]
        reader = dialect(source).stream_reader(Context())
        if any(type(event) is Finish for event in reader.read(data)):
            return True, True
        frames = data[: max(data.rfind(b"\n\n") + 2, 2)]
        return False, ending(read_stream(dialect(source), [frames])) is Finish or (
            ending(read_stream(dialect(source), [data])) is Finish
        )

    async def _asked(self, link: Link, client: DialectName, cut: Cut) -> Reply:
        source = self._streams[cut.stream][0]
        path, body = question(client, f"{source}/{model(*cut)}")
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await link.ask("POST", path, body)


def _said(answer: Response) -> list[tuple[str, ...]]:
    """What reads a person or a tool; ids are made again for each answer."""
    fields = ("text", "name", "arguments")
    parts = [
        (type(part).__name__, *(str(getattr(part, each, "")) for each in fields)) for part in answer.content
    ]
    return [*parts, (answer.stop.reason,)]


def _folded(client: DialectName, reply: Reply) -> Response:
    if reply.status != 200:
        raise RuntimeError(f"a whole stream is answered with {reply.status}: {reply.body[:300]!r}")
    return fold(read_stream(dialect(client), [reply.body]))


def _config(port: int) -> str:
    """Nothing is tried again and nobody rests: each cut is one question."""
    tables = [_SERVER]
    for name in dict.fromkeys(source for source, _ in _STREAMS):
        version = "/v1" if name.startswith("openai") else ""
        tables.append(
            f'[providers.{name}]\ndialect = "{name}"\nbase_url = "http://127.0.0.1:{port}{version}"\n'
            'api_key = "not-a-secret"\n'
            f"[providers.{name}.retry]\nretries = 0\n"
            f"[providers.{name}.breaker]\nconsecutive = 1000000000\nminimum = 1000000000\n"
        )
    return "".join(tables)


async def _run(arguments: argparse.Namespace, progress: Progress) -> None:
    folder = Path("tests/fixtures")
    streams: list[tuple[DialectName, bytes]] = []
    for source, name in _STREAMS:
        found: DialectName = next(known for known in CLIENTS if known == source)
        streams.append((found, (folder / source / "streams" / f"{name}.sse").read_bytes()))
    upstream = CuttingUpstream([data for _, data in streams])
    port = await upstream.start()
    with tempfile.TemporaryDirectory(prefix="cuts-") as work:
        served = Served(Path(work), _config(port))
        await asyncio.to_thread(served.start)
        bench = Bench(served.port, streams, progress)
        pieces = {
            f"{number} {client}": (number, client)
            for number, client in product(range(len(streams)), CLIENTS)
            if arguments.only in ("", client)
        }
        try:
            for piece in progress.left(pieces):
                number, client = pieces[piece]
                places = range(
                    random.Random(piece).randrange(arguments.every),
                    len(streams[number][1]) + 1,
                    arguments.every,
                )
                cuts = [Cut(number, at, way) for at in places for way in WAYS]
                await bench.piece(client, cuts, arguments.clients)
                print(f"{piece}: {dict(progress.counts)}, {len(progress.problems)} wrong", flush=True)
        finally:
            await asyncio.to_thread(served.stop)
            await upstream.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.cuts", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="cut at every n-th byte only")
    parser.add_argument("--clients", type=int, default=48, help="at once")
    parser.add_argument("--only", default="", help="one dialect of the client")
    add_options(parser)
    arguments = parser.parse_args()
    run = Run("cuts", "the provider's connection cut at every byte of 16 streams, in three ways, 4 clients")
    progress = Progress("cuts", f"{arguments.every} {arguments.only}", arguments.out)
    asyncio.run(_run(arguments, progress))
    run.tell(progress.problems)
    run.counts.update(progress.counts)
    run.unfinished = arguments.every > 1 or bool(arguments.only)
    for name, word in (("clients left hanging", "hangs"), ("invented ends", "an end that nobody sent")):
        found = sum(word in problem for problem in progress.problems)
        run.figure(name, demanded="0", measured=found, holds=found == 0)
    wrong = len(progress.problems)
    run.figure("cuts reported wrongly, of all kinds", demanded="0", measured=wrong, holds=wrong == 0)
    progress.end()
    return run.write(arguments.out, seconds=progress.seconds)


if __name__ == "__main__":
    sys.exit(main())
