"""Cut streams anywhere between the provider and us: the client must not be able to tell.

    python -m proofs.lab.splits [--random 10000] [--seed 1] [--folder tests/fixtures]
        [--only anthropic-gemini]

Every stream of the fixtures, from every dialect to every dialect: whole, at every byte in two, in single
bytes, and at random places in any number of pieces. The bytes for the client are compared with those of the
whole stream. Resumable: a pair of dialects is a piece.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from proofs.lab.progress import Progress
from proofs.lab.result import Run, add_options
from wireglot_core import StreamTranslator
from wireglot_core.dialects.registry import NAMES, DialectName
from wireglot_core.testing.check_dialect import Case, fixtures

_SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.lab.splits", description=__doc__)
    parser.add_argument("--random", type=int, default=10_000, help="random splits for each pair")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("tests/fixtures"))
    parser.add_argument("--only", default="", help="one pair")
    add_options(parser)
    arguments = parser.parse_args()
    run = Run(
        "splits", "every 2-way split and 10,000 random splits of streams, all pairs", seed=arguments.seed
    )
    progress = Progress(
        "splits", f"{arguments.random} {arguments.seed} {arguments.folder} {arguments.only}", arguments.out
    )
    pairs = {f"{source}-{target}": (source, target) for source, target in product(NAMES, NAMES)}
    for piece in progress.left([name for name in pairs if arguments.only in ("", name)]):
        source, target = pairs[piece]
        chance = random.Random(f"{arguments.seed} {piece}")
        cases = fixtures(arguments.folder, source, "streams")
        whole = {case.id: _translated([case.data], source, target) for case in cases}
        for kind, case, pieces in _cuts(cases, chance, arguments.random):
            progress.counts[kind] += 1
            if _translated(pieces, source, target) != whole[case.id]:
                progress.problems.append(
                    f"{case.id} to {target}, {kind}: {[len(each) for each in pieces][:20]}"
                )
        print(f"{piece}: {progress.counts.total():,} splits, {len(progress.problems)} differ", flush=True)
    run.counts.update(progress.counts)
    run.tell(progress.problems)
    differ = len(progress.problems)
    run.figure("streams that differ by how they were cut", demanded="0", measured=differ, holds=differ == 0)
    progress.end()
    return run.write(arguments.out, seconds=progress.seconds)


def _cuts(
    cases: list[Case], chance: random.Random, at_random: int
) -> Iterator[tuple[str, Case, list[bytes]]]:
    for case in cases:
        data = case.data
        for at in range(1, len(data)):
            yield "in two", case, [data[:at], data[at:]]
        yield "single bytes", case, [data[at : at + 1] for at in range(len(data))]
    for _ in range(at_random):
        case = chance.choice(cases)
        length = len(case.data)
        places = sorted(chance.sample(range(1, length), min(chance.randint(2, 40), length - 1)))
        yield "at random", case, list(_pieces(case.data, places))


def _pieces(data: bytes, places: Iterable[int]) -> Iterator[bytes]:
    begin = 0
    for place in places:
        yield data[begin:place]
        begin = place
    yield data[begin:]


def _translated(pieces: list[bytes], source: DialectName, target: DialectName) -> bytes:
    translator = StreamTranslator(source=source, target=target)
    written = bytearray()
    for piece in pieces:
        written += translator.feed(piece)
    written += translator.close()
    return bytes(written)


if __name__ == "__main__":
    sys.exit(main())
