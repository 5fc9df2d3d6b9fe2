"""What a user text tells the demo model to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

WORDS_MAX = 20_000
CALLS_MAX = 16
GAP_MAX = 10.0

_OPEN: Final = "[[demo:"
_END: Final = "]]"
_NAME: Final = re.compile(r"[a-z-]+")
_FAIL: Final = re.compile(r"(\d{3})\b")
_WAIT: Final = re.compile(r"retry-after(-ms)?=(\d{1,6})")
_GAP: Final = re.compile(r"(\d{1,6})\s*(ms|s)\b")
_COUNT: Final = re.compile(r"\d{1,6}")
_TOOL: Final = re.compile(r"(\S+)\s*(.*)", re.DOTALL)


class Directives(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`fail` is a status, `gap` in seconds, `tool` a name with the arguments as they were written,
    `calls` how many calls to make; 0: nothing was said of it."""

    echo: bool = False
    think: bool = False
    refuse: bool = False
    strict: bool = False
    hang: bool = False
    hang_midstream: bool = False
    fail_midstream: bool = False
    cut: bool = False
    words: int = 0
    calls: int = 0
    tool: str = ""
    arguments: str = ""
    fail: int = 0
    retry_after: float | None = None
    gap: float = 0.0


_FLAGS: Final = {
    "echo": "echo",
    "think": "think",
    "refuse": "refuse",
    "strict": "strict",
    "hang": "hang",
    "hang-midstream": "hang_midstream",
    "fail-midstream": "fail_midstream",
    "cut": "cut",
}


def parse_directives(text: str) -> Directives:
    """The later of two that contradict wins; one that cannot be understood is left alone."""
    found: dict[str, object] = {}
    for _, _, inside in _spans(text):
        name = _NAME.match(inside)
        if name is not None:
            found |= _meaning(name[0], inside[name.end() :].strip())
    return msgspec.convert(found, Directives)


def without_directives(text: str) -> str:
    kept: list[str] = []
    at = 0
    for start, end, _ in _spans(text):
        kept.append(text[at:start])
        at = end
    kept.append(text[at:])
    return "".join(kept).strip()


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and inside of each. Arguments may hold `]]` themselves: what counts is where JSON ends."""
    at = text.find(_OPEN)
    while at >= 0:
        start = at + len(_OPEN)
        end = text.find(_END, start)
        brace = text.find("{", start)
        if text.startswith("tool ", start) and 0 <= brace < end:
            end = text.find("}" + _END, start) + 1
        if end <= 0:
            return
        yield at, end + len(_END), text[start:end]
        at = text.find(_OPEN, end)


def _meaning(name: str, rest: str) -> dict[str, object]:
    if name in _FLAGS:
        return {_FLAGS[name]: True}
    if name == "fail" and (status := _FAIL.match(rest)) and 400 <= int(status[1]) <= 599:
        wait = _WAIT.search(rest)
        after = int(wait[2]) / (1000 if wait[1] else 1) if wait else None
        return {"fail": int(status[1]), "retry_after": after}
    if name == "slow" and (gap := _GAP.match(rest)):
        return {"gap": min(GAP_MAX, int(gap[1]) / (1000 if gap[2] == "ms" else 1))}
    if name == "text" and (count := _COUNT.match(rest)):
        return {"words": max(1, min(WORDS_MAX, int(count[0])))}
    if name == "tools" and (count := _COUNT.match(rest)):
        return {"calls": max(1, min(CALLS_MAX, int(count[0])))}
    if name == "tool" and (tool := _TOOL.match(rest)):
        return {"tool": tool[1], "arguments": tool[2].strip()}
    return {}
