"""docs/reliability.md: what was demanded, what was measured, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tools.lab.proofs import PROOFS, Proof, kept
from tools.lab.result import Result

_INTRODUCTION = """\
People hand this process their provider keys and their agents' work. Each line below is a trial that was run,
with the figure that was demanded beforehand and what came out. The command repeats it; the raw file beside it
has seed, counts, machine and commit. Where a figure was not reached, it says so, and what happens instead.
The same is tried in small by `make test` at every change."""
_SHOWN_FIGURES: Final = 3
_SAID: Final = {"held": "holds", "failed": "**does not hold**", "unfinished": "holds for what was run"}


def page() -> Iterator[str]:
    results = {proof.name: kept(proof) for proof in PROOFS}
    yield from (
        "# Reliability: the proofs",
        "",
        _INTRODUCTION,
        "",
        "`make lab` runs all but the long ones, `make soak` the long ones; both go on where they were ended.",
        "",
        "| what is done to it | demanded | came out |",
        "|---|---|---|",
    )
    for proof in PROOFS:
        came = _short(results[proof.name])
        yield f"| [{proof.title}](#{proof.name.replace('_', '-')}) | {proof.demanded} | {came} |"
    for proof in PROOFS:
        yield from _section(proof, results[proof.name])


def _short(result: Result | None) -> str:
    """The verdict, and what it rests on: the figures that were missed, else all where they are few."""
    if result is None:
        return "not measured yet"
    missed = [figure for figure in result.figures if not figure.holds]
    shown = missed or result.figures
    if len(shown) > _SHOWN_FIGURES:
        return f"{_SAID[result.verdict]}: {len(shown)} figures, below"
    told = "; ".join(f"{figure.name}: {_number(figure.measured)}" for figure in shown)
    return f"{_SAID[result.verdict]}: {told}"


def _section(proof: Proof, result: Result | None) -> Iterator[str]:
    yield from (
        "",
        f"## {proof.name.replace('_', '-')}",
        "",
        f"{proof.title[0].upper()}{proof.title[1:]}.",
        "",
    )
    if proof.quick:
        yield from (f"In small, at every change: `{proof.quick}`.", "")
    if result is None:
        yield f"Not measured yet; `python -m {proof.command}` will."
        return
    yield from ("| figure | demanded | measured | |", "|---|---|---|---|")
    for figure in result.figures:
        mark = "holds" if figure.holds else f"**missed**{': ' if figure.note else ''}{figure.note}"
        yield f"| {figure.name} | {figure.demanded} | {_number(figure.measured)} | {mark} |"
    seed = "" if result.seed is None else f", seed {result.seed}"
    counts = ", ".join(f"{name} {_number(count)}" for name, count in result.counts.items())
    yield from (
        "",
        *([f"Counted: {counts}.", ""] if counts else []),
        f"`{result.command}`{seed}; {result.started[:10]}, {_span(result.seconds)}, "
        f"commit `{result.commit}`; {result.machine} ([raw](results/{proof.name}.json)).",
    )


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
