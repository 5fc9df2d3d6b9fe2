"""`make guard`: count, and fail where something takes more than was recorded. `make guard-update`: record."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proofs.guard import baseline, callgrind, calls, gateway
from proofs.guard.hot_paths import hot_paths

QUICK: Final = (
    "calls, ",
    "files, ",
    "gateway, 2 KB: openai-chat > openai-chat",
    "gateway, 2 KB: anthropic > openai-chat",
    "gateway, 100 KB, first seen: openai-chat > openai-chat",
    "gateway, a turn of a conversation, 100 KB: ",
    "gateway, a stream without its events: anthropic > gemini",
    "gateway, an event: anthropic > gemini",
    "core, a text event: anthropic > openai-chat",
)
"""What `.ci/run` counts: a request, a stream or an event of each path through the gateway."""


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="guard",
        description="Count the instructions and calls of requests, streams and events, and compare them.",
    )
    parser.add_argument("--update", action="store_true", help="record what is counted")
    parser.add_argument("--required", action="store_true", help="fail where valgrind is missing")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="figures with it in the name"
    )
    parser.add_argument("--quick", action="store_true", help="some figures of each kind, as .ci/run does")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="counts of --json, instead of the recorded"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts there, too")
    parser.add_argument("--tolerance", type=float, default=baseline.TOLERANCE, help="0.05 is five percent")
    options = parser.parse_args(argv)
    if options.quick:
        options.only += QUICK
    if options.update and (options.only or options.against):
        parser.error("--update records all figures: it goes with none of --only, --quick and --against")
    return options


def main(argv: list[str] | None = None) -> int:
    options = _options(argv)
    if callgrind.find_valgrind() is None:
        print("guard: valgrind is not installed: nothing was counted (apt-get install valgrind)")
        return 1 if options.required else 0
    recorded: Mapping[str, int] = {}
    if options.against:
        recorded = json.loads(options.against.read_text(encoding="utf-8"))
    elif not options.update:
        found = baseline.nearest(baseline.key())
        if found is None:
            print("guard: nothing is recorded for such a machine and Python: `make guard-update` records")
            return 0
        recorded = found.counts
        if other := baseline.differences(baseline.key(), found.key):
            print(f"guard: nothing is recorded for this machine; the nearest one has {', '.join(other)}")
    try:
        counts = count(options.only)
    except callgrind.NotCounted as fault:
        print(f"guard: {fault}")
        return 1
    if not counts:
        print(f"guard: nothing has {' or '.join(options.only)} in its name")
        return 2
    if options.json:
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    if options.update:
        path = baseline.path_of(baseline.key())
        baseline.write(path, baseline.key(), counts)
        print(f"guard: {len(counts)} figures are now recorded in {path.name}")
        return 0
    return judge(counts, recorded, options)


def count(only: list[str]) -> dict[str, int]:
    """Calls, whole requests, and the core alone; those with one of the texts in their name."""

    def is_wanted(name: str) -> bool:
        return not only or any(text in name for text in only)

    counts: dict[str, int] = {}
    if any(map(is_wanted, calls.names())):
        counts |= {name: number for name, number in calls.count().items() if is_wanted(name)}
    if figures := [figure for figure in gateway.figures() if is_wanted(figure.name)]:
        counts |= gateway.count(figures)
    if paths := [path for path in hot_paths() if is_wanted(path.name)]:
        counts |= callgrind.count(paths, only)
    return counts


def judge(counts: Mapping[str, int], recorded: Mapping[str, int], options: argparse.Namespace) -> int:
    for name, number in counts.items():
        beside = f"{number / recorded[name]:8.3f}" if name in recorded else " " * 8
        print(f"{number:>14,}{beside}  {name}")
    verdict = baseline.compare(counts, recorded, options.tolerance, whole=not options.only)
    for line in (*verdict.unknown, *verdict.faster):
        print(f"guard: {line}")
    if verdict.faster or verdict.unknown:
        print("guard: what is recorded is out of date: renew it with `make guard-update` and commit it")
    for line in verdict.slower:
        print(f"guard: MORE {line}")
    if verdict.slower:
        print(
            "guard: if this is the price of something worth it, `make guard-update` and say so in the commit"
        )
        return 1
    allowed = f"{options.tolerance:.0%}"
    print(f"guard: {len(counts)} figures counted, none is more than {allowed} over what is recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
