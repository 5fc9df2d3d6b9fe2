"""The published list of the probe's cases, and how other gateways do, for docs/probe.md."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tools.blocks import table
from wireglot.probe.run import CASES, THEMES
from wireglot.probe.talk import DIALECTS, ProbeCase

_FIGURES: Final = Path(__file__).parents[1] / "docs" / "figures" / "probe-peers.json"
_NAMED: Final = 4
_WORST: Final = 4
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
    yield "`must`: clients depend on it; `should`: they can do without. Cost: `free` spends no tokens at a"
    yield "good endpoint, `small` one short answer or two, `medium` several; `large` is run only on request."
    yield ""
    yield _cases()


def _cases() -> str:
    parts = []
    for theme in THEMES:
        parts += [f"## {theme.title}", "", *map(_item, theme.cases), ""]
    return "\n".join(parts).rstrip()


def _item(case: ProbeCase) -> str:
    dialects = "".join(_LETTERS[name] for name in case.dialects)
    expects = f"Sends {_cell(case.sends)}; expects {_cell(case.expects)}."
    about = f"{_cell(case.title)}: {_cell(case.why)}"
    return f"- `{case.id}` ({dialects}; {case.level}, {case.cost}): {about}. {expects}"


def _cell(text: str) -> str:
    return text.replace("<", "&lt;")


def peers_table(figures: dict[str, Any]) -> str:
    """The last runs of `make probe-peers`: each gateway, then each of its pairs."""
    heads = ("gateway", "tested on", "pairs", "core", "all")
    summary = table(heads, [_summary(peer) for peer in figures["peers"]])
    rows = [
        (
            f"{peer['name']} {peer['version']}",
            run["client"],
            run["upstream"],
            f"{run['works']} of {run['cases']}",
            _percent(*_weights(run, core=True)),
            _percent(*_weights(run)),
            str(len(run["reported"])),
            _named([*run["failed"], *run["warned"]]),
            str(len(_causes(run))),
            str(len(run["none"]) + len(run["undecided"]) + len(run["apart"])),
        )
        for peer in figures["peers"]
        for run in peer["runs"]
    ]
    columns = ("gateway", "client", "upstream", "works", "core", "all", *_NOT_WORKING)
    return f"{summary}\n\n{table(columns, rows)}"


_BY_ID: Final = {case.id: case for case in CASES}


def _weights(run: dict[str, Any], *, core: bool | None = None) -> tuple[float, float]:
    """Of the cases that work and of all that count, as the probe weighs them; `core`: of those, or of the
    others."""
    reached = counted = 0.0
    for id in (*run["passed"], *run["reported"], *run["failed"], *run["warned"]):
        case = _BY_ID.get(id)
        if case is None or (core is not None and case.core is not core):
            continue  # a case that has been removed since
        counted += case.weight
        reached += case.weight if id in run["passed"] else 0
    return reached, counted


def _summary(peer: dict[str, Any]) -> tuple[str, ...]:
    """What a gateway says of itself does not depend on the upstream: it counts once for each of its client
    dialects, as the mean of that dialect's pairs."""
    core = [_weights(run, core=True) for run in peer["runs"]]
    pairs = Counter(run["client"] for run in peer["runs"])
    rest = [[each / pairs[run["client"]] for each in _weights(run, core=False)] for run in peer["runs"]]
    reached, counted = (sum(each) for each in zip(*core, strict=True))
    more, all_more = (sum(each) for each in zip(*rest, strict=True))
    name = f"{peer['name']} {peer['version']}"
    whole = _percent(reached + more, counted + all_more)
    return name, peer["date"], str(len(peer["runs"])), _percent(reached, counted), whole


def _percent(reached: float, counted: float) -> str:
    return f"{100 * reached / counted:.1f} %" if counted else "-"


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
        often = sorted(said.items(), key=lambda each: (-len(each[1]) * _weight(each[0]), each[0]))
        items = [
            f"- {_cell(titles.get(id, ''))} (`{id}`, {len(found)} of {len(runs)} runs): {_said(*found[0])}"
            for id, found in often[:_WORST]
        ]
        more = len(often) - _WORST
        items += [f"- {more} more cases"] if more > 0 else []
        parts += [f"#### {peer['name']} {peer['version']}", "", *(items or ["Nothing."]), ""]
    return "\n".join(parts).rstrip()


def _weight(id: str) -> int:
    return _BY_ID[id].weight if id in _BY_ID else 0


def _said(where: str, words: str) -> str:
    shown = " ".join(words.split())
    shown = shown[: _SHOWN - 3] + "..." if len(shown) > _SHOWN else shown
    return f"{where}: " + _cell(shown)


def _named(ids: Iterable[str]) -> str:
    names = [f"`{name}`" for name in ids]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more or "none"
