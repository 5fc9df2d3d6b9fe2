"""Speed, as ratios to what msgspec alone needs for the same bytes: `make bench-core`.

Yardstick and translation are measured in turn, in one run on one core, in rounds of about equal length; the
ratio is the median of those of the rounds. It then says something about the code and little about the machine
or who else is using it. Nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from proofs.bench.bodies import agent_request
from proofs.bench.page import write
from proofs.bench.streams import MODELS, stream
from wireglot_core import StreamTranslator, translate_request
from wireglot_core.dialects.registry import DialectName, dialect_name
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import SseDecoder

EVENTS = 2000
READ = 16 * 1024
REQUEST_GOAL = 8
STREAM_GOAL = 12

_NETWORK = ("socket", "ssl", "asyncio", "http", "urllib.request", "httpx", "aiohttp", "requests", "select")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


# The streams: an answer of many small text events, as each provider sends it.


def text_stream(dialect: DialectName) -> list[bytes]:
    deltas = [{"type": "text_delta", "text": f" word {number} of the answer"} for number in range(EVENTS)]
    return stream(dialect, {"type": "text", "text": ""}, deltas, stop="end_turn", tokens=EVENTS * 5)


# Measuring.


class Measured(NamedTuple):
    """The best time of one run of a job in seconds, and the median of its ratios to the yardstick."""

    best: float
    ratio: float


def measure(yardstick: Callable[[], object], jobs: list[Callable[[], object]], rounds: int) -> list[Measured]:
    """Each job against the yardstick, in turn. Processor time counts: waiting for the core is no work."""
    repeats = max(1, round(_seconds(jobs[0], 1) / _seconds(yardstick, 1)))
    times: list[list[float]] = [[] for _ in jobs]
    ratios: list[list[float]] = [[] for _ in jobs]
    for _ in range(rounds):
        for index, job in enumerate(jobs):
            plain = _seconds(yardstick, repeats)
            taken = _seconds(job, 1)
            times[index].append(taken)
            ratios[index].append(taken / plain)
    return [Measured(min(taken), median(ratio)) for taken, ratio in zip(times, ratios, strict=True)]


def _seconds(job: Callable[[], object], repeats: int) -> float:
    began = time.process_time()
    for _ in range(repeats):
        job()
    return (time.process_time() - began) / repeats


def request_speed(body: bytes, source: DialectName, target: DialectName, rounds: int) -> Measured:
    """A request, bytes to bytes."""
    model = MODELS[target]
    (measured,) = measure(
        lambda: _encode(_decode(body)),
        [lambda: encode(translate_request(body, source=source, target=target, model=model).value)],
        rounds,
    )
    return measured


def stream_speed(
    frames: list[bytes], source: DialectName, target: DialectName, rounds: int
) -> list[Measured]:
    """A stream, bytes to bytes: fed event by event, then in reads of 16 KB."""
    whole = b"".join(frames)
    reads = [whole[start : start + READ] for start in range(0, len(whole), READ)]
    events = [frame.data for frame in SseDecoder().feed(whole) if frame.data[:1] == b"{"]
    # One event's JSON stands for all: the commonest length, so that first and last frames do not count.
    length = sorted(map(len, events))[len(events) // 2]
    event = next(event for event in events if len(event) == length)

    def yardstick() -> None:
        for _ in range(EVENTS):
            _encode(_decode(event))

    def translate(pieces: list[bytes]) -> None:
        translator = StreamTranslator(source=source, target=target)
        feed = translator.feed
        for piece in pieces:
            feed(piece)
        translator.close()

    return measure(yardstick, [lambda: translate(frames), lambda: translate(reads)], rounds)


def import_figures(rounds: int) -> tuple[float, int, list[str]]:
    """`import wireglot` in a fresh interpreter: milliseconds, modules, and the network modules among them."""
    code = (
        "import sys, time; before = set(sys.modules); began = time.process_time(); import wireglot; "
        "took = time.process_time() - began; print(took); print(*sorted(set(sys.modules) - before))"
    )
    times = []
    modules: list[str] = []
    for _ in range(rounds):
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        first, second = out.splitlines()
        times.append(float(first))
        modules = second.split()
    return min(times) * 1000, len(modules), [name for name in modules if name in _NETWORK]


# Reporting.


def figures(rounds: int) -> str:
    lines = [
        f"Python {platform.python_version()}, {platform.machine()}, one of {os.cpu_count()} cores, "
        f"msgspec {msgspec.__version__}.",
        "",
        "### Requests",
        "",
        *_request_table(rounds),
        "",
        "### Streams",
        "",
        *_stream_table(rounds),
        "",
        "### Import",
        "",
    ]
    took, modules, network = import_figures(rounds)
    found = ", ".join(network) if network else "none"
    lines.append(
        f"`import wireglot`: {took:.0f} ms, {modules} modules; network libraries among them: {found}."
    )
    return "\n".join(lines)


def _request_table(rounds: int) -> list[str]:
    original = agent_request()
    bodies = {"anthropic": _encode(original)}
    for name in MODELS:
        if name not in bodies:
            rendered = translate_request(
                original, source="anthropic", target=dialect_name(name), model=MODELS[name]
            )
            bodies[name] = encode(rendered.value)
    rows = ["| from | to | body | time | times the yardstick |", "|---|---|---:|---:|---:|"]
    for source, body in bodies.items():
        for target in MODELS:
            best, ratio = request_speed(body, dialect_name(source), dialect_name(target), rounds)
            size = f"{len(body) / 1000:.0f} KB"
            rows.append(f"| {source} | {target} | {size} | {best * 1000:.2f} ms | {ratio:.1f} |")
    return rows


def _stream_table(rounds: int) -> list[str]:
    rows = [
        "| from | to | one event | times the yardstick, event by event | in reads of 16 KB |",
        "|---|---|---:|---:|---:|",
    ]
    for source in MODELS:
        frames = text_stream(dialect_name(source))
        for target in MODELS:
            single, bulk = stream_speed(frames, dialect_name(source), dialect_name(target), rounds)
            best = f"{single.best / EVENTS * 1e6:.1f} µs"
            rows.append(f"| {source} | {target} | {best} | {single.ratio:.1f} | {bulk.ratio:.1f} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure speed against a plain msgspec round trip.")
    parser.add_argument("--rounds", type=int, default=25, help="rounds of each measurement")
    parser.add_argument("--write", metavar="PAGE", type=Path, help="put the figures into this page, too")
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    text = figures(max(arguments.rounds, 1))
    print(text)
    print(f"\nGoals: anthropic to gemini at most {REQUEST_GOAL}, any text event at most {STREAM_GOAL}.")
    if arguments.write:
        write(arguments.write, text)


if __name__ == "__main__":
    main()
