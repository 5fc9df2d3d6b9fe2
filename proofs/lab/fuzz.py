"""Fuzz, guided by coverage: does anything that arrives crash it, hang it, or get an error that is ours?

    python -m proofs.lab.fuzz [--inputs 1000000] [--seed 1] [--only http,json] [--processes 2]

Inputs are made of the fixtures and of what reached new lines of our package since (one input in five is
watched, one in 25 once new lines have become rare), for six targets:

    http      bytes into the server, with the whole gateway behind it; one in 200 over a real socket
    json      bodies of every dialect: requests, answers, errors; read, fitted, written in any dialect
    sse       streams of every dialect for every client: a legal end; cut anywhere, the same bytes
    config    configurations: read, or refused with a place
    envelope  sealed reasoning state, changed, cut, joined, brought by another: as it was sealed or not at all
    ids       ids of what is remembered, in every place that takes one, asked by another caller

Only errors of our own types, no 5xx but 505, nothing over two seconds of the processor, no endless memory.
Resumable: so many inputs of one target are a piece; the corpus lies beside the result.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

from proofs.lab.fuzz_codecs import Configurations, Envelopes, JsonBodies, Streams
from proofs.lab.fuzz_entry import HttpBytes, Ids
from proofs.lab.fuzz_target import Fuzzer, Target, guard
from proofs.lab.progress import Progress
from proofs.lab.result import FOLDER, Run, add_options

_TARGETS: Final[dict[str, Callable[[], Target]]] = {
    "http": HttpBytes,
    "json": JsonBodies,
    "sse": Streams,
    "config": Configurations,
    "envelope": Envelopes,
    "ids": Ids,
}
_PIECE: Final = 20_000

_fuzzers: Final[dict[str, Fuzzer]] = {}
"""Of this process: what it has learnt stays from piece to piece."""


def _share(name: str, folder: Path, count: int, seed: str) -> tuple[Counter[str], list[str]]:
    fuzzer = _fuzzers.get(name)
    if fuzzer is None:
        fuzzer = _fuzzers[name] = Fuzzer(_TARGETS[name](), folder / name)
    return fuzzer.run(count, seed)


def _pieces(names: list[str], inputs: int) -> dict[str, tuple[str, int]]:
    """Each with its target and how many inputs. The targets take turns, so that a run that ends early has
    something of all."""
    return {
        f"{name} {begin}": (name, min(_PIECE, inputs - begin))
        for begin in range(0, inputs, _PIECE)
        for name in names
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help=f"of {', '.join(_TARGETS)}")
    parser.add_argument("--processes", type=int, default=min(4, os.cpu_count() or 1))
    add_options(parser)
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(_TARGETS)
    if unknown := set(names) - set(_TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    run = Run("fuzz", f"{arguments.inputs:,} inputs for each of {', '.join(names)}", seed=arguments.seed)
    progress = Progress(
        "fuzz", f"{arguments.inputs} {arguments.seed} {arguments.only} {arguments.processes}", arguments.out
    )
    folder = Path(arguments.out) if arguments.out and Path(arguments.out).suffix != ".json" else FOLDER
    corpus = folder / "fuzz.corpus"
    _run(arguments, names, corpus, progress)
    run.counts.update(sorted(progress.counts.items()))
    run.tell(progress.problems)
    for name in names:
        tried = progress.counts[f"{name}: inputs"]
        run.figure(
            f"{name}: inputs", demanded=f"{arguments.inputs}", measured=tried, holds=tried >= arguments.inputs
        )
    hangs = sum("Hang:" in problem for problem in progress.problems)
    run.figure("hangs", demanded="0", measured=hangs, holds=hangs == 0)
    wrong = sum(progress.counts[f"{name}: wrong"] for name in names)
    run.figure(
        "crashes, errors of no type, 5xx, opened or seen by another",
        demanded="0",
        measured=wrong,
        holds=wrong == 0 and not progress.problems,
    )
    progress.end()
    return run.write(arguments.out, seconds=progress.seconds)


def _run(arguments: argparse.Namespace, names: list[str], corpus: Path, progress: Progress) -> None:
    pieces = _pieces(names, arguments.inputs)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context, initializer=guard) as pool:
        for piece in progress.left(pieces):
            name, count = pieces[piece]
            shares = [
                (
                    name,
                    corpus,
                    count // arguments.processes + (number < count % arguments.processes),
                    f"{arguments.seed} {piece} {number}",
                )
                for number in range(arguments.processes)
            ]
            for counts, problems in pool.map(_share, *zip(*shares, strict=True)):
                progress.counts.update({f"{name}: {outcome}": many for outcome, many in counts.items()})
                progress.counts[f"{name}: inputs"] += counts.total()
                progress.problems += [f"{name}: {problem}" for problem in problems]
            print(
                f"{piece}: {progress.counts[f'{name}: inputs']:,} inputs, {len(progress.problems)} wrong",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
