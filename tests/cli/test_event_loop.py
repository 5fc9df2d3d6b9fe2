"""What the garbage collector looks at, and what it does not miss."""

import gc
import json
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from wireglot.cli import process_setup
from wireglot.cli.process_setup import calm_collector


class Node:
    def __init__(self) -> None:
        self.other: object = None


def what_has_been_looked_at_is_spared_and_still_goes_with_its_last_reference() -> None:
    with calm_collector():
        kept = Node()
        gone = weakref.ref(kept)
        gc.collect(1)
        assert not any(each is kept for each in gc.get_objects())
        del kept
        assert gone() is None


def what_is_young_is_not_spared() -> None:
    with calm_collector():
        kept = Node()
        gc.collect(0)
        assert any(each is kept for each in gc.get_objects())


def a_circle_that_was_never_spared_is_found() -> None:
    with calm_collector():
        circle = Node()
        circle.other = circle
        gone = weakref.ref(circle)
        del circle
        gc.collect(1)
        assert gone() is None


def a_circle_of_what_was_spared_is_found_where_much_is_spared_and_an_hour_has_passed() -> None:
    assert not _finds_a_spared_circle(hours=0, much=1)
    assert not _finds_a_spared_circle(hours=1, much=0)
    assert _finds_a_spared_circle(hours=1, much=1)


def _finds_a_spared_circle(hours: int, much: int) -> bool:
    now = 0.0
    with pytest.MonkeyPatch.context() as monkeypatch:
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
            del more
            return gone() is None


def what_is_left_after_a_look_that_spares_nothing_is_the_measure_for_the_next() -> None:
    now = 0.0
    with pytest.MonkeyPatch.context() as monkeypatch:
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


LAWS: Final[list[Callable[[], None]]] = [
    what_has_been_looked_at_is_spared_and_still_goes_with_its_last_reference,
    what_is_young_is_not_spared,
    a_circle_that_was_never_spared_is_found,
    a_circle_of_what_was_spared_is_found_where_much_is_spared_and_an_hour_has_passed,
    what_is_left_after_a_look_that_spares_nothing_is_the_measure_for_the_next,
]


def main() -> None:
    """Try all laws and print what broke of each."""
    broken: dict[str, str] = {}
    for law in LAWS:
        before = gc.get_threshold(), list(gc.callbacks)
        try:
            law()
            assert (gc.get_threshold(), gc.callbacks) == before
            assert gc.get_freeze_count() == 0
        except AssertionError:
            broken[law.__name__] = traceback.format_exc()
    sys.stdout.write(json.dumps(broken))


def test_the_laws_of_the_collector_hold() -> None:
    """In a process of their own: here each look would go through half a gigabyte of tests and SDKs."""
    script = "from tests.cli.test_event_loop import main; main()"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout or "null") == {}, done.stdout + done.stderr
