"""Somebody sets the clock while bodies are recorded for some minutes."""

from __future__ import annotations

import time

import pytest

from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.settings import Settings
from wireglot.gateway.trace.traces import Traces
from wireglot.stores.seal import Sealer

HOUR = 3600.0


@pytest.mark.parametrize("moved", [-HOUR, HOUR], ids=["back", "on"])
def test_so_many_minutes_are_recorded_whatever_the_clock_is_set_to(
    monkeypatch: pytest.MonkeyPatch, moved: float
) -> None:
    wall, since = time.time(), time.monotonic()
    shift, passed = 0.0, 0.0
    monkeypatch.setattr(time, "time", lambda: wall + shift + passed)
    monkeypatch.setattr(time, "monotonic", lambda: since + passed)
    settings = Settings()
    traces = Traces(settings, Observer(settings), Sealer(b"s" * 32), None)
    traces.record_until(time.time() + 15 * 60)
    assert traces.active
    shift = moved
    traces.adopt(settings)
    assert traces.active
    passed = 14 * 60
    traces.adopt(settings)
    assert traces.active
    passed = 16 * 60
    traces.adopt(settings)
    assert not traces.active
