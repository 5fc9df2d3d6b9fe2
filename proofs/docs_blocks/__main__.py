"""`python -m proofs.docs_blocks`: run the blocks of all pages, or list those that are not run."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from proofs.docs_blocks.blocks import ROOT, BadPage, Block, blocks_of, pages
from proofs.docs_blocks.page import Page, needs_network
from proofs.docs_blocks.result import Result
from proofs.docs_blocks.vendors import alone_command, can_be_alone


class Runner:
    """A process and a network of their own, in which the programs of one page after the other run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            alone_command("proofs.docs_blocks.page", []),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.__exit__(None, None, None)

    def results(self, page: str, *, whole: bool) -> Iterator[Result]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its status is reported below
            self._process.stdin.write(json.dumps([page, "whole" if whole else "quick"]) + "\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line == "\n":
                return
            yield Result(**json.loads(line))
        yield Result(page, 0, "", "failed", f"the runner ended with status {self._process.wait()}")


def results_of(page: str, *, whole: bool, runner: Runner | None = None) -> Iterator[Result]:
    """Of one page, by a runner where it has programs: by one of its own if none is given."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = blocks_of(page, text)
    if not any(needs_network(block, whole=whole) for block in blocks):
        with tempfile.TemporaryDirectory(prefix="wireglot-page-") as folder:
            yield from Page(blocks, whole, Path(folder), {}).results()
    elif runner is not None:
        yield from runner.results(page, whole=whole)
    else:
        with Runner() as own:
            yield from own.results(page, whole=whole)


def not_run(found: list[Block]) -> dict[str, list[str]]:
    """Where the blocks are that no test runs, by the reason that their pages give."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for block in found:
        if block.not_run:
            reasons[block.not_run].append(block.place)
    return dict(sorted(reasons.items()))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.docs_blocks", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="docs/usage.md and the like; none: all")
    parser.add_argument(
        "--quick", action="store_true", help="without what is marked `whole`, as in `make test`"
    )
    parser.add_argument("--list", action="store_true", help="only tell which blocks are not run, and why")
    arguments = parser.parse_args()
    texts = pages()
    unknown = set(arguments.pages) - texts.keys()
    if unknown:
        parser.error(f"no such page: {', '.join(sorted(unknown))}")
    try:
        found = {page: blocks_of(page, texts[page]) for page in arguments.pages or texts}
    except BadPage as problem:
        print(problem, file=sys.stderr)
        return 1
    if arguments.list:
        _list([block for blocks in found.values() for block in blocks])
        return 0
    if not can_be_alone():
        print(
            "pages run in namespaces of their own: Linux, as root or where users may have them",
            file=sys.stderr,
        )
        return 2
    return _run({page: blocks for page, blocks in found.items() if blocks}, whole=not arguments.quick)


def _list(found: list[Block]) -> None:
    reasons = not_run(found)
    print(f"{len(found)} blocks, {sum(map(len, reasons.values()))} not run:")
    for reason, places in reasons.items():
        print(f"\n{reason}")
        for place in places:
            print(f"    {place}")


def _run(found: dict[str, list[Block]], *, whole: bool) -> int:
    counts: Counter[str] = Counter()
    for page in found:
        begun = time.monotonic()
        here: Counter[str] = Counter()
        for result in results_of(page, whole=whole):
            here[result.state] += 1
            if result.state == "failed":
                print(f"{result.page}:{result.line}: {result.language or 'plain'} block\n{result.detail}\n")
            elif result.state == "left out" and result.detail != "whole":
                print(f"{result.page}:{result.line}: left out: {result.detail}")
        text = ", ".join(f"{count} {state}" for state, count in sorted(here.items()))
        print(f"{page}: {text} ({time.monotonic() - begun:.1f} s)", flush=True)
        counts += here
    print(
        f"{counts.total()} blocks: "
        + ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    )
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
