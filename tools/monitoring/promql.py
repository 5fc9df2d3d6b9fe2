"""What an expression of PromQL names: metrics, labels that are matched, labels that it is added up by.

As much of a parser as our own expressions need, and one that refuses what it does not understand. The real
one is promtool's, which `make full` asks too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
      | (?P<range>\[[^\]]+\])
      | (?P<text>"(?:[^"\\]|\\.)*")
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<sign>=~|!~|!=|==|>=|<=|[-+*/=<>(){},])
    )""",
    re.VERBOSE,
)
_AGGREGATIONS: Final = frozenset({"sum", "max", "min", "avg", "count", "topk"})
_FUNCTIONS: Final = frozenset(
    {"rate", "increase", "histogram_quantile", "time", "scalar", "vector", "label_values"}
)
_WORDS: Final = frozenset({"and", "unless", "or"})
_MATCHINGS: Final = frozenset({"on", "group_left"})


class Named(NamedTuple):
    """What was found in one expression."""

    metrics: dict[str, set[str]]
    """By each metric the labels that it is matched or added up by."""
    labels: set[str] | None
    """Those that its outermost aggregation leaves; None: all there are."""


def named(expression: str) -> Named:
    tokens = list(_tokens(expression))
    found: dict[str, set[str]] = {}
    _read(tokens, 0, len(tokens), frozenset(), found)
    return Named(found, _outermost(tokens))


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at = 0
    text = expression.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"not understood from {text[at:]!r} on: {expression}")
        yield match.lastgroup, match[match.lastgroup]
        at = match.end()


def _read(
    tokens: list[tuple[str, str]], at: int, end: int, by: frozenset[str], found: dict[str, set[str]]
) -> None:
    while at < end:
        kind, word = tokens[at]
        if kind != "name":
            at += 1
            continue
        if word in _AGGREGATIONS and at + 1 < end and tokens[at + 1][1] in ("by", "("):
            inner = frozenset[str]()
            at += 1
            if tokens[at][1] == "by":
                close = _closing(tokens, at + 1)
                inner = frozenset(name for kind, name in tokens[at + 2 : close] if kind == "name")
                at = close + 1
            close = _closing(tokens, at)
            _read(tokens, at + 1, close, by | inner, found)
            at = close + 1
        elif word in _MATCHINGS:
            at = _closing(tokens, at + 1) + 1
        elif word in _FUNCTIONS | _WORDS:
            at += 1
        else:
            labels = found.setdefault(word, set())
            labels |= by
            at += 1
            if at < end and tokens[at][1] == "{":
                close = next(place for place in range(at, end) if tokens[place][1] == "}")
                labels |= {name for kind, name in tokens[at:close] if kind == "name"}
                at = close + 1


def _outermost(tokens: list[tuple[str, str]]) -> set[str] | None:
    """Of `sum by (a, b) (...)` a and b, whatever it is multiplied with or chosen from."""
    for at, (_, word) in enumerate(tokens):
        if word in _AGGREGATIONS - {"topk"} and tokens[at + 1][1] == "by":
            close = _closing(tokens, at + 1 + 1)
            return {name for kind, name in tokens[at + 2 : close] if kind == "name"}
        if word in _AGGREGATIONS - {"topk"}:
            return set()
    return None


def _closing(tokens: list[tuple[str, str]], at: int) -> int:
    """Where the bracket closes that opens at `at`."""
    depth = 0
    opening = next(place for place in range(at, len(tokens)) if tokens[place][1] == "(")
    for place in range(opening, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[place][1], 0)
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")
