"""Whether a page shows what is printed. What differs from run to run is not compared; `...` is anything."""

from __future__ import annotations

import json
import re
from typing import Any, Final

_VARYING: Final = (
    # what it looks like on a page, and what may be printed there
    (
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?",
        r"\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z?",
    ),
    (r"\d{4}-\d\d-\d\d", r"\\d{4}-\\d\\d-\\d\\d"),
    (r"\b\d\d:\d\d(?::\d\d)?\b", r"\\d\\d:\\d\\d(?::\\d\\d)?"),
    (r"\b([a-z]{2,9}[_-])(?=[A-Za-z]*\d)[0-9A-Za-z]{8,}\b", r"\1[0-9A-Za-z_-]+"),  # req_..., wg_...
    (r"\b(?=[a-f]*\d)[0-9a-f]{12,}\b", r"[0-9a-f]+"),
    (r"\b1[67]\d{8}\b", r"\\d{10}"),  # seconds since 1970
    (r"\b\d[\d,.]*( ?)(ms|s|µs|MB|GiB|MiB|KiB)\b", r"[\\d,.]+\1\2"),
    (r"(127\.0\.0\.1|localhost):\d{2,5}\b", r"\1:\\d+"),
    (r"\b\d+\.\d+\.\d+\b", r"\\d+\\.\\d+\\.\\d+"),  # versions
)
_TOKENS: Final = re.compile("|".join(f"(?:{seen})" for seen, _ in _VARYING) + r"|\.\.\.|…| {2,}")
_NUMBER: Final = r"\d[\d,.]*"
_TOKENS_AND_NUMBERS: Final = re.compile(f"{_TOKENS.pattern}|{_NUMBER}")
_ANSI: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")
_TIMELY: Final = re.compile(r"(^|_)(created|at|ts|ms|first|last|start|end|expires|date|cost|after)$")
"""Names of numbers that are another one at each run."""


def plain(text: str) -> str:
    """Without colours and what is at the ends of lines."""
    return "\n".join(line.rstrip() for line in _ANSI.sub("", text).splitlines()).strip("\n")


def difference(shown: str, printed: str, *, about: bool = False) -> str:
    """What the page shows and nobody printed, or what it does not show; empty where they agree."""
    wanted, there = plain(shown).splitlines(), plain(printed).splitlines()
    if _agree([_pattern(line, about) for line in wanted], there):
        return ""
    return "the page shows\n" + _indented(wanted) + "\nbut printed was\n" + _indented(there)


def missing(shown: str, printed: str, *, about: bool = False) -> str:
    """The first shown line that was not printed, each after the one before it; empty where all were."""
    there = plain(printed).splitlines()
    at = 0
    for line in plain(shown).splitlines():
        pattern = _pattern(line, about)
        if pattern is None:
            continue
        found = next((n for n, one in enumerate(there[at:], start=at) if pattern.fullmatch(one)), None)
        if found is None:
            return f"the page shows\n{_indented([line])}\nbut printed was\n{_indented(there[at:])}"
        at = found + 1
    return ""


def json_difference(shown: str, printed: str) -> str:
    """The same for documents: layout does not count."""
    try:
        there = json.loads(printed)
    except ValueError:
        return f"not JSON, but\n{_indented(printed.splitlines())}"
    place = _unlike(json.loads(shown), there, "$", "")
    return f"{place}; printed was\n{_indented([json.dumps(there)])}" if place else ""


def _indented(lines: list[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _pattern(line: str, about: bool) -> re.Pattern[str] | None:
    """None for a line that stands for any number of lines. `about`: a number stands for any number."""
    if line.strip() in ("...", "…"):
        return None
    made, at = "", 0
    for token in (_TOKENS_AND_NUMBERS if about else _TOKENS).finditer(line):
        made += re.escape(line[at : token.start()]) + _any(token[0])
        at = token.end()
    return re.compile(made + re.escape(line[at:]))


def _any(token: str) -> str:
    """What may be printed where the page shows this."""
    if token in ("...", "…"):
        return ".*"
    if token.isspace():
        return " +"
    for seen, printed in _VARYING:
        # A token begins and ends at the ends of a word, so it is found without its neighbours, too.
        if (match := re.fullmatch(seen, token)) is not None:
            return match.expand(printed)
    return _NUMBER


def _agree(patterns: list[re.Pattern[str] | None], lines: list[str]) -> bool:
    if not patterns:
        return not lines
    first, rest = patterns[0], patterns[1:]
    if first is None:
        return any(_agree(rest, lines[skipped:]) for skipped in range(len(lines) + 1))
    return bool(lines) and first.fullmatch(lines[0]) is not None and _agree(rest, lines[1:])


def _unlike(shown: Any, there: Any, path: str, name: str) -> str:
    """The first place where they differ."""
    match shown:
        case "..." | "…":
            return ""
        case dict() if isinstance(there, dict):
            keys = shown.keys() - {"..."}
            if "..." not in shown and keys != there.keys():
                return f"{path}: shown are {sorted(keys)}, printed {sorted(there)}"
            found = (
                _unlike(shown[key], there.get(key), f"{path}.{key}", key) for key in shown if key in keys
            )
        case list() if isinstance(there, list):
            if shown and shown[-1] == "...":
                shown = shown[:-1]
                there = there[: len(shown)]
            if len(shown) != len(there):
                return f"{path}: shown are {len(shown)} entries, printed {len(there)}"
            found = (
                _unlike(one, other, f"{path}[{n}]", "")
                for n, (one, other) in enumerate(zip(shown, there, strict=True))
            )
        case str() if isinstance(there, str):
            return difference(shown, there) and f"{path}: shown is {shown!r}, printed {there!r}"
        case int() | float() if isinstance(there, int | float) and _TIMELY.search(name):
            return ""
        case _:
            return "" if shown == there else f"{path}: shown is {shown!r}, printed {there!r}"
    return next((place for place in found if place), "")
