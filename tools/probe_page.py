"""The published list of the probe's cases, for docs/probe.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tools.blocks import table
from wireglot.probe.run import CASES, THEMES
from wireglot.probe.talk import DIALECTS

_FIGURES: Final = Path(__file__).parents[1] / "docs" / "figures" / "probe-peers.json"
_NAMED: Final = 8
_LETTERS = {"anthropic": "A", "openai-chat": "C", "openai-responses": "R", "gemini": "G"}


def blocks() -> dict[str, str]:
    figures = json.loads(_FIGURES.read_text(encoding="utf-8"))
    return {"cases": _cases(), "counts": _counts(), "peers": peers_table(figures)}


def _counts() -> str:
    each = ", ".join(f"{sum(name in case.dialects for case in CASES)} of `{name}`" for name in DIALECTS)
    return f"{len(CASES)} cases: {each}."


def _cases() -> str:
    parts = []
    for theme in THEMES:
        rows = [
            (
                f"`{case.id}`",
                "".join(_LETTERS[name] for name in case.dialects),
                case.level,
                case.cost,
                _cell(case.title),
                _cell(case.sends),
                _cell(case.expects),
                _cell(case.why),
            )
            for case in theme.cases
        ]
        heads = ("case", "in", "level", "cost", "what holds", "sends", "expects", "why")
        parts += [f"### {theme.title}", "", table(heads, rows), ""]
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
            str(len(run["none"]) + len(run["undecided"]) + len(run["apart"])),
        )
        for peer in figures["peers"]
        for run in peer["runs"]
    ]
    heads = ("gateway", "client", "upstream", "works", "share", "reported", "neither", "not counted")
    return f"On {figures['date']}:\n\n{table(heads, rows)}"


def _named(ids: Iterable[str]) -> str:
    names = [f"`{name}`" for name in ids]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more or "none"
