"""Work that the law must refuse, and work that it must admit: the test of the kit itself."""

from __future__ import annotations

import re

from tests.laws.bounded import Row


def pairs(items: list[int]) -> int:
    return sum(1 for one in items for other in items if one == other)


def rebuilt(text: str) -> str:
    for _ in text:
        text = text.swapcase()
    return text


def doubled(depth: int) -> int:
    return 1 if depth <= 0 else doubled(depth - 1) + doubled(depth - 1)


def named(text: str) -> list[None]:
    return [None] * (int(text.rpartition("=")[2]) * 1000)


def bounded(items: list[int]) -> int:
    return pairs(items[:64]) + len(items)


def looked_up(items: list[int]) -> int:
    return sum(1 for each in items if items.index(each) >= 0)


PATTERN = re.compile(r'"(?:[^"\\]|\\.)*"')

ADMITTED = [
    Row("linear", lambda n: list(range(n)), sorted, n=2000),
    Row("a bound", lambda n: list(range(n)), bounded),
]
LINES = [
    Row("all pairs", lambda n: list(range(n)), pairs),
    Row("each call calls twice", lambda n: n, doubled, n=30),
]
MEMORY = [
    Row("a size that the input names", lambda n: f"size={n}", named),
]
IN_C = [
    Row("a list searched for each item", lambda n: list(range(n)), looked_up, n=200),
    Row("a text rebuilt for each character", lambda n: "a" * n, rebuilt, n=200),
    Row("a pattern that starts again at each place", lambda n: '"\\' * n, PATTERN.findall, n=100),
]
SEEN_BY_ANY = [*ADMITTED, *LINES, *MEMORY]
SEEN_IN_C = [*ADMITTED, *IN_C]
