"""What the garbage collector looks at, and what it does not miss."""

import gc
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from wireglot.cli import event_loop
from wireglot.cli.event_loop import calm_collector


class Node:
    def __init__(self) -> None:
        self.other: object = None


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = gc.get_threshold(), list(gc.callbacks)
    yield
    assert (gc.get_threshold(), gc.callbacks) == before
    assert gc.get_freeze_count() == 0


def test_what_has_been_looked_at_is_spared_and_still_goes_with_its_last_reference() -> None:
    with calm_collector():
        kept = Node()
        gone = weakref.ref(kept)
        gc.collect()
        assert not any(each is kept for each in gc.get_objects())
        del kept
        assert gone() is None


def test_a_circle_that_was_never_looked_at_is_found() -> None:
    with calm_collector():
        circle = Node()
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        gc.collect()
        assert gone() is None


def test_a_circle_of_what_was_spared_is_found_by_the_look_that_spares_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(event_loop, "time", SimpleNamespace(monotonic=lambda: now))
    with calm_collector():
        circle = Node()
        gc.collect()
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        gc.collect()
        assert gone() is not None
        now += 3600
        gc.collect()
        assert gone() is None
