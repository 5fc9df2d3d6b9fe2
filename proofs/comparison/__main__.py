"""`make same BASE=COMMIT`: send the same requests to the gateway of a commit and to that of the working tree.

One line for each request that differs, and what differs of it. `--show NAME` prints the differences, and
`--expect PATTERN` (or a file of patterns, `--expect-file`) names those that are wanted.
"""

from __future__ import annotations

import argparse
import difflib
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import msgspec

from proofs.comparison.record import Facets, Recording, Setup, record
from proofs.comparison.scenarios import setups
from proofs.served import Tree

_ROOT: Final = Path(__file__).parents[2]
_SHOWN_LINES: Final = 400
_PIECES: Final = re.compile(r'(?<=[,{\[])(?=["{\[])')
"""Where a line of JSON is cut to be shown: its text stays as it is."""


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="same", description="Compare what two trees do, seen from outside.")
    parser.add_argument("base", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="scenarios with it in SETUP/SCENARIO"
    )
    parser.add_argument(
        "--show",
        action="append",
        default=[],
        metavar="NAME",
        help="print the differences of requests with it in their names",
    )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="PATTERN",
        help="NAME:FACET that may differ; * matches anything",
    )
    parser.add_argument(
        "--expect-file", type=Path, metavar="FILE", help="such patterns, one a line; # begins a comment"
    )
    parser.add_argument("--record", type=Path, metavar="TREE", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    with tempfile.TemporaryDirectory(prefix="same-") as name:
        folder = Path(name)
        if options.record:
            recorded = record(_chosen(options.only), Tree(options.record), folder)
            options.out.write_bytes(msgspec.json.encode(recorded))
            return 0
        check_out(options.base, folder / "base")
        before, after = _record_both(folder, options.only)
    expected = [*options.expect, *(_patterns(options.expect_file) if options.expect_file else ())]
    return report(before, after, expected, options.show)


def check_out(commit: str, folder: Path) -> None:
    """The package as it is in a commit. An archive and no worktree: nothing is left in the repository."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=_ROOT, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")


def _record_both(folder: Path, only: Sequence[str]) -> tuple[Recording, Recording]:
    """Side by side, each by a process of its own; the requests and the upstream are the working tree's."""
    only_words = [word for text in only for word in ("--only", text)]
    sides = {"base": folder / "base", "here": _ROOT}
    running = {
        side: subprocess.Popen(
            [
                sys.executable,
                "-m",
                "proofs.comparison",
                "--record",
                tree,
                "--out",
                folder / f"{side}.json",
                *only_words,
            ],
            cwd=_ROOT,
        )
        for side, tree in sides.items()
    }
    try:
        failed = [side for side, process in running.items() if process.wait()]
    finally:
        for process in running.values():
            process.terminate()
    if failed:
        raise SystemExit(f"same: {' and '.join(failed)} could not be recorded")
    before, after = (
        msgspec.json.decode((folder / f"{side}.json").read_bytes(), type=Recording) for side in sides
    )
    return before, after


def _chosen(only: Sequence[str]) -> list[Setup]:
    chosen = []
    for setup in setups():
        kept = {
            name: play
            for name, play in setup.scenarios.items()
            if not only or any(text in f"{setup.name}/{name}" for text in only)
        }
        if kept:
            chosen.append(msgspec.structs.replace(setup, scenarios=kept))
    if not chosen:
        raise SystemExit(f"same: no scenario has {' or '.join(only)} in its name")
    return chosen


def _patterns(file: Path) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def differences(before: Recording, after: Recording) -> Iterator[tuple[str, str, str, str]]:
    """Name, facet, and both texts."""
    for name in dict.fromkeys([*before, *after]):
        old: Facets = before.get(name, {})
        new: Facets = after.get(name, {})
        for facet in dict.fromkeys([*old, *new]):
            if old.get(facet, "") != new.get(facet, ""):
                yield name, facet, old.get(facet, ""), new.get(facet, "")


def report(before: Recording, after: Recording, expected: Sequence[str], shown: Sequence[str]) -> int:
    unexpected: dict[str, list[str]] = {}
    wanted = 0
    for name, facet, old, new in differences(before, after):
        if any(fnmatchcase(f"{name}:{facet}", pattern) for pattern in expected):
            wanted += 1
            continue
        unexpected.setdefault(name, []).append(facet)
        if any(text in name for text in shown):
            print("\n".join(_difference(name, facet, old, new)))
    for name, facets in unexpected.items():
        print(f"{name}: {', '.join(facets)}")
    print(f"same: {len(after)} requests and states, {len(unexpected)} differ, {wanted} expected differences")
    return 1 if unexpected else 0


def _difference(name: str, facet: str, old: str, new: str) -> list[str]:
    lines = difflib.unified_diff(
        _lines(old), _lines(new), f"{name} {facet} before", "after", n=2, lineterm=""
    )
    return list(lines)[:_SHOWN_LINES]


def _lines(text: str) -> list[str]:
    return [piece for line in text.splitlines() for piece in _PIECES.split(line)]


if __name__ == "__main__":
    raise SystemExit(main())
