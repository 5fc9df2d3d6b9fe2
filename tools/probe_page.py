"""The published list of the probe's cases, and how other gateways do, for docs/probe.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.blocks import table
from wireglot.probe.run import CASES, THEMES
from wireglot.probe.talk import DIALECTS

_FIGURES: Final = Path(__file__).parents[1] / "docs" / "figures" / "probe-peers.json"
_NAMED: Final = 8
_SHOWN: Final = 160
_NOT_WORKING: Final = ("reported", "neither", "causes", "not counted")
_PLACE: Final = re.compile(r"^(?:frame \d+\S*(?: \([^)]*\)\S*)?|\$\S*): |\d+")
_LETTERS = {
    "anthropic": "A",
    "openai-chat": "C",
    "openai-responses": "R",
    "gemini": "G",
    "ollama": "O",
    "gemini-interactions": "I",
}


def blocks() -> dict[str, str]:
    figures = json.loads(_FIGURES.read_text(encoding="utf-8"))
    return {
        "counts": _counts(),
        "peers": peers_table(figures),
        "better": to_do_better(figures),
    }


def _counts() -> str:
    each = ", ".join(f"{sum(name in case.dialects for case in CASES)} of `{name}`" for name in DIALECTS)
    return f"{len(CASES)} cases: {each}."


def cases_page() -> Iterator[str]:
    """docs/reference/probe-cases.md."""
    yield "# Cases of the probe"
    yield ""
    yield "What [`wireglot probe`](../probe.md) sends to an endpoint and expects of it."
    yield ", ".join(f"{letter} is `{name}`" for name, letter in _LETTERS.items()) + "."
    yield "Cost: `free` spends no tokens at a good endpoint, `small` one short answer or two, `medium`"
    yield "several; `large` is run only if it is requested."
    yield ""
    yield _cases()


def _cases() -> str:
    parts = []
    for theme in THEMES:
        rows = [
            (
                f"`{case.id}`",
                "".join(_LETTERS[name] for name in case.dialects),
                f"{case.level}, {case.cost}",
                f"{_cell(case.title)}: {_cell(case.why)}",
                _cell(case.sends),
                _cell(case.expects),
            )
            for case in theme.cases
        ]
        heads = ("case", "in", "level, cost", "what holds, and why", "sends", "expects")
        parts += [f"## {theme.title}", "", table(heads, rows), ""]
    return "\n".join(parts).rstrip()


def _cell(text: str) -> str:
    return text.replace("<", "&lt;")


def peers_table(figures: dict[str, Any]) -> str:
    """The last run of `make probe-peers`."""
    rows = [
        (
            f"{peer['name']} {peer['version']}",
            run["client"],
            run["upstream"],
            f"{run['works']} of {run['cases']}",
            f"{100 * run['works'] / run['cases']:.1f} %",
            str(len(run["reported"])),
            _named([*run["failed"], *run["warned"]]),
            str(len(_causes(run))),
            str(len(run["none"]) + len(run["undecided"]) + len(run["apart"])),
        )
        for peer in figures["peers"]
        for run in peer["runs"]
    ]
    heads = ("gateway", "client", "upstream", "works", "share", *_NOT_WORKING)
    return f"On {figures['date']}:\n\n{table(heads, rows)}"


def _causes(run: dict[str, Any]) -> set[str]:
    """What was said about the cases that do not work and that nothing reports, each once. Where it was said,
    and what was found instead, are left out: they differ from case to case."""
    said = [*run["failed"].values(), *run["warned"].values()]
    return {_PLACE.sub("", words).partition(", found ")[0] for words in said}


def to_do_better(figures: dict[str, Any]) -> str:
    """For each gateway the cases that do not work in most of its runs, with what was said of one of them."""
    titles = {case.id: case.title for case in CASES}
    parts: list[str] = []
    for peer in figures["peers"]:
        runs = peer["runs"]
        said: dict[str, list[tuple[str, str]]] = {}
        for run in runs:
            for id, words in {**run["failed"], **run["warned"]}.items():
                said.setdefault(id, []).append((f"{run['client']} over {run['upstream']}", words))
        often = sorted(said.items(), key=lambda each: (-len(each[1]), each[0]))
        rows = [
            (f"`{id}`", f"{len(found)} of {len(runs)}", _cell(titles.get(id, "")), _said(*found[0]))
            for id, found in often[:_NAMED]
        ]
        parts += [f"#### {peer['name']} {peer['version']}", ""]
        parts += [table(("case", "runs", "what does not hold", "for example"), rows) if rows else "Nothing."]
        if more := len(often) - _NAMED:
            parts += ["", f"And {more} more."] if more > 0 else []
        parts.append("")
    return "\n".join(parts).rstrip()


def _said(where: str, words: str) -> str:
    shown = " ".join(words.split())
    shown = shown[: _SHOWN - 3] + "..." if len(shown) > _SHOWN else shown
    return f"{where}: " + _cell(shown)


def _named(ids: Iterable[str]) -> str:
    names = [f"`{name}`" for name in ids]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more or "none"
