"""What runs at every change and what only in `make full`: there every combination, here some of each kind.

    @pytest.mark.sampled("case.dialect", "target", each=2)

Of all the parameters' combinations two run for each dialect with each target, the same each time.

    @pytest.mark.whole

It takes long, and runs in `make full` alone. WIREGLOT_WHOLE=1 runs all of them; so does naming a combination by its
id.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

import pytest

WHOLE: Final = bool(os.environ.get("WIREGLOT_WHOLE"))

MARKERS: Final = (
    "sampled(*names, each=1): so many for each combination of these parameters, and all in `make full`",
    "whole: only in `make full`",
)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Those which only `make full` runs."""
    by_test: dict[object, list[pytest.Function]] = defaultdict(list)
    without = set[pytest.Item]()
    for item in items:
        if item.get_closest_marker("whole"):
            without.add(item)
        elif isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            by_test[item.parent, item.originalname].append(item)
    return without.union(*(set(group) - set(_sample(group)) for group in by_test.values()))


def _sample(items: list[pytest.Function]) -> Iterator[pytest.Function]:
    marker = items[0].get_closest_marker("sampled")
    assert marker is not None
    each: int = marker.kwargs.get("each", 1)
    kinds: dict[tuple[str, ...], list[pytest.Function]] = defaultdict(list)
    for item in items:
        kinds[tuple(_value(item, name) for name in marker.args)].append(item)
    for number, alike in enumerate(kinds.values()):
        # Each kind begins elsewhere: parameters that are not named take turns.
        for at in range(min(each, len(alike))):
            yield alike[(number + at * len(alike) // each) % len(alike)]


def _value(item: pytest.Function, name: str) -> str:
    parameter, _, attribute = name.partition(".")
    value = item.callspec.params[parameter]
    return str(attrgetter(attribute)(value) if attribute else value)
