"""docs/reliability.md: what was demanded, what was measured, and the command that repeats it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from proofs.lab.proofs import PROOFS, Age, Proof, age, kept
from proofs.lab.result import Result

_INTRODUCTION = """\
Each row below is a fault-injection test that was run, with the requirement set beforehand and the result. The
command repeats it; the raw file has seed, counts, machine and commit. If a requirement was not met, the page
says so, and what happens instead.

**A proof applies to the commit it ran on.** "Holds" means that none of the packages it depends on, by its
imports and by the programs it starts, has changed since. Otherwise the row says "held", how many commits
ago, and which packages changed: it says nothing about the newer code. A release repeats outdated proofs.
`make test` runs small versions of them at every change."""
_SHOWN_FIGURES: Final = 3
_SHOWN_PACKAGES: Final = 5
_SHOWN_COUNTS: Final = 6
_SAID: Final = {"held": "holds", "failed": "**does not hold**", "unfinished": "holds for what was run"}
_SAID_THEN: Final = {"held": "held", "failed": "**did not hold**", "unfinished": "held for what was run"}
_FIGURE: Final = {False: "holds", True: "held"}
_COMMITS: Final = re.compile(r"[\d,]+ commits? ago")


def current(written: str, page: str) -> str:
    """The page to keep: every commit makes the counts one older, which alone is no reason to write it again.
    Where the history is not here (a shallow clone, an archive) the page cannot be written."""
    if any(result is not None and age(proof, result) is None for proof, result in _results()):
        return written
    return written if _COMMITS.sub("", written) == _COMMITS.sub("", page) else page


def page() -> Iterator[str]:
    yield from (
        "# Reliability: the proofs",
        "",
        _INTRODUCTION,
        "",
        "`make lab` runs all but the long ones, `make soak` the long ones; both continue where they ended.",
        "",
        "| test | required | result | measured |",
        "|---|---|---|---|",
    )
    for proof, result in _results():
        anchor = proof.name.replace("_", "-")
        since = None if result is None else age(proof, result)
        verdict = _verdict(result, since)
        yield f"| [{proof.title}](#{anchor}) | {proof.demanded} | {verdict} | {_when(result, since)} |"
    for proof, result in _results():
        yield from _section(proof, result)


def _results() -> list[tuple[Proof, Result | None]]:
    return [(proof, kept(proof)) for proof in PROOFS]


def _verdict(result: Result | None, since: Age | None) -> str:
    """The verdict, and the figures behind it: those that were missed, else all where they are few."""
    if result is None:
        return "not measured yet"
    word = (_SAID_THEN if since is None or since.changed else _SAID)[result.verdict]
    missed = [figure for figure in result.figures if not figure.holds]
    shown = missed or result.figures
    if len(shown) > _SHOWN_FIGURES:
        return f"{word}: {len(shown)} figures, below"
    return f"{word}: " + "; ".join(f"{figure.name}: {_number(figure.measured)}" for figure in shown)


def _when(result: Result | None, since: Age | None) -> str:
    if result is None:
        return ""
    commit = f"`{result.commit}`"
    if since is None:
        return f"{commit}, which is not in this history"
    ago = f"{since.commits:,} commit{'' if since.commits == 1 else 's'} ago"
    if not since.changed:
        return f"{commit}, {ago}"
    if len(since.changed) > _SHOWN_PACKAGES:
        return f"{commit}, {ago}; **before changes** in {len(since.changed)} packages"
    return f"{commit}, {ago}; **before changes** in {', '.join(since.changed)}"


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
    since = age(proof, result)
    yield from (f"Depends on {_covered(proof)}.", "")
    yield from ("| figure | demanded | measured | |", "|---|---|---|---|")
    for figure in result.figures:
        mark = (
            _FIGURE[since is None or bool(since.changed)]
            if figure.holds
            else f"**missed**{': ' if figure.note else ''}{figure.note}"
        )
        yield f"| {figure.name} | {figure.demanded} | {_number(figure.measured)} | {mark} |"
    seed = "" if result.seed is None else f", seed {result.seed}"
    counts = [f"{name} {_number(count)}" for name, count in result.counts.items()]
    shown = ", ".join(counts[:_SHOWN_COUNTS]) + (", and others" if len(counts) > _SHOWN_COUNTS else "")
    yield from (
        "",
        *([f"Counted: {shown}.", ""] if counts else []),
        f"`{result.command}`{seed}; {result.started[:10]}, {_span(result.seconds)}, "
        f"commit `{result.commit}`; {result.machine} ([raw](results/{proof.name}.json)).",
    )


def _covered(proof: Proof) -> str:
    """The packages that it depends on, or the fewer ones that it does not."""
    others = sorted({name for each in PROOFS for name in each.covers} - set(proof.covers))
    if not others:
        return "all packages"
    if len(others) < len(proof.covers):
        return f"all packages except {_names(others)}"
    return _names(proof.covers)


def _names(packages: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in packages)


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
