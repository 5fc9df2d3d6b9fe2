"""The published list of the probe's cases, for docs/probe.md."""

from __future__ import annotations

from tools.blocks import table
from wireglot.probe.case import DIALECTS
from wireglot.probe.cases.listed import CASES, THEMES

_LETTERS = {"anthropic": "A", "openai-chat": "C", "openai-responses": "R", "gemini": "G"}


def blocks() -> dict[str, str]:
    return {"cases": _cases(), "counts": _counts()}


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
