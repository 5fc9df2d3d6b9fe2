"""The contract of the cache: what all values come to, and a gateway without any cache."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from wireglot_core.wire.cache import NoCaches, fold


class Row:
    """The first turns, and what was found out about them."""

    def __init__(self, values: tuple[Any, ...], reached: tuple[int, Any] | None = None) -> None:
        self.values = values
        self.known = reached
        self.settled: list[tuple[Hashable, Any, int | None]] = []

    def reached(self, key: Hashable) -> tuple[int, Any] | None:
        return self.known

    def settle(self, key: Hashable, found: Any, count: int | None = None) -> None:
        self.settled.append((key, found, count))


def test_values_that_came_before_are_gone_through_once() -> None:
    values = ("a", "b", "c", "d")
    for row, cut, steps, settled in (
        (None, None, ["abcd"], []),
        (Row(values[:3]), None, ["abc", "d"], [("k", "|abc", 3)]),
        (Row(values[:3], (2, "|ab")), None, ["c", "d"], [("k", "|abc", 3)]),
        (Row(values[:3], (3, "|abc")), None, ["d"], []),
        (Row(values[:3]), 1, ["a", "bcd"], [("k", "|a", 1)]),
        (Row(values[:3], (2, "|ab")), 1, ["cd"], []),
    ):
        taken: list[str] = []

        def step(before: str, more: tuple[str, ...], taken: list[str] = taken) -> str:
            taken.append("".join(more))
            return before + taken[-1]

        assert fold(row, values, "k", "|", step, cut) == "|abcd"
        assert taken == steps
        assert row is None or row.settled == settled


def test_without_a_cache_nothing_is_found() -> None:
    caches = NoCaches("whatever", 1)
    assert caches.least_bytes == 0
    assert caches.for_next_turn("one", b"{}") is None
    assert caches.finder("one")(b"{}") is None
    caches.clear()
