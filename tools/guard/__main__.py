"""`make guard`: count, and fail where a path takes more than was recorded. `make guard-update`: record."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.guard import baseline, callgrind
from tools.guard.hot_paths import hot_paths


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="guard", description="Count the instructions of the core's hot paths and compare them."
    )
    parser.add_argument("--update", action="store_true", help="record what is counted")
    parser.add_argument("--required", action="store_true", help="fail where valgrind is missing")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="count nothing where nothing is recorded for this machine, Python and libraries",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="paths with it in the name"
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="counts of --json, instead of the recorded"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts there, too")
    parser.add_argument("--tolerance", type=float, default=baseline.TOLERANCE, help="0.03 is three percent")
    told = parser.parse_args(argv)
    if told.update and (told.only or told.against):
        parser.error("--update records all paths: it goes with neither --only nor --against")
    return told


def main(argv: list[str] | None = None) -> int:
    told = _options(argv)
    if callgrind.find_valgrind() is None:
        print("guard: valgrind is not installed: nothing was counted (apt-get install valgrind)")
        return 1 if told.required else 0
    if told.compare and not told.against and baseline.read(baseline.path_of(baseline.key())) is None:
        print("guard: nothing is recorded for this machine, Python and libraries: nothing to compare with")
        return 0
    paths = [path for path in hot_paths() if not told.only or any(text in path.name for text in told.only)]
    if not paths:
        print(f"guard: no path has {' or '.join(told.only)} in its name")
        return 2
    try:
        counts = callgrind.count(paths, told.only)
    except callgrind.NotCounted as fault:
        print(f"guard: {fault}")
        return 1
    if told.json:
        told.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    if told.against:
        return judge(counts, json.loads(told.against.read_text(encoding="utf-8")), told)
    return _against_recorded(counts, told)


def _against_recorded(counts: Mapping[str, int], told: argparse.Namespace) -> int:
    key = baseline.key()
    path = baseline.path_of(key)
    recorded = baseline.read(path)
    if told.update or (recorded is None and not told.only):
        baseline.write(path, key, counts)
        why = "" if told.update else "nothing was recorded for this machine, Python and libraries: "
        print(f"guard: {why}{len(counts)} paths are now recorded in {path.name}")
        return 0
    return judge(counts, recorded or {}, told)


def judge(counts: Mapping[str, int], recorded: Mapping[str, int], told: argparse.Namespace) -> int:
    verdict = baseline.compare(counts, recorded, told.tolerance, whole=not told.only)
    if told.only or told.against:
        for name, count in counts.items():
            beside = f"{count / recorded[name]:8.3f}" if name in recorded else " " * 8
            print(f"{count:>14,}{beside}  {name}")
    for line in verdict.unknown:
        print(f"guard: {line}")
    for line in verdict.faster:
        print(f"guard: {line}")
    if verdict.faster or verdict.unknown:
        print("guard: what is recorded is out of date: renew it with `make guard-update` and commit it")
    for line in verdict.slower:
        print(f"guard: SLOWER {line}")
    if verdict.slower:
        print(
            "guard: if this is the price of something worth it, `make guard-update` and say so in the commit"
        )
        return 1
    print(
        f"guard: {len(counts)} paths counted, none takes more than {told.tolerance:.0%} over what is recorded"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
