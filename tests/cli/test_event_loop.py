"""What the garbage collector looks at, and what it does not miss."""

import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from wireglot.cli import process_setup
from wireglot.cli.process_setup import calm_collector


class Node:
    def __init__(self) -> None:
        self.other: object = None


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    gc.unfreeze()
    before = gc.get_threshold(), list(gc.callbacks)
    yield
    assert (gc.get_threshold(), gc.callbacks) == before
    assert gc.get_freeze_count() == 0


def test_what_has_been_looked_at_is_spared_and_still_goes_with_its_last_reference() -> None:
    with calm_collector():
        kept = Node()
        gone = weakref.ref(kept)
        gc.collect(1)
        assert not any(each is kept for each in gc.get_objects())
        del kept
        assert gone() is None


def test_what_is_young_is_not_spared() -> None:
    with calm_collector():
        kept = Node()
        gc.collect(0)
        assert any(each is kept for each in gc.get_objects())


def test_a_circle_that_was_never_spared_is_found() -> None:
    with calm_collector():
        circle = Node()
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        gc.collect(1)
        assert gone() is None


@pytest.mark.parametrize(
    ("hours", "much", "found"),
    [pytest.param(0, 1, False, marks=pytest.mark.whole), (1, 0, False), (1, 1, True)],
)
def test_a_circle_of_what_was_spared_is_found_where_much_is_spared_and_an_hour_has_passed(
    monkeypatch: pytest.MonkeyPatch, hours: int, much: int, found: bool
) -> None:
    now = 0.0
    monkeypatch.setattr(process_setup, "time", SimpleNamespace(monotonic=lambda: now))
    with calm_collector():
        more = [Node() for _ in range(much * 250_001)]
        circle = Node()
        gc.collect(1)
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        now += hours * 3600
        gc.collect()
        assert (gone() is None) is found
        del more


@pytest.mark.whole
def test_what_is_left_after_a_look_that_spares_nothing_is_the_measure_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(process_setup, "time", SimpleNamespace(monotonic=lambda: now))
    with calm_collector():
        more = [Node() for _ in range(250_001)]
        gc.collect(1)
        now += 3600
        gc.collect()
        circle = Node()
        gc.collect(1)
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        now += 3600
        gc.collect()
        assert gone() is not None
        del more
