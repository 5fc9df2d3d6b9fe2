"""Somebody sets the clock while bodies are recorded for some minutes."""

from __future__ import annotations

import time

import pytest

from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.trace.policy import RecordingPolicy

HOUR = 3600.0


@pytest.mark.parametrize("moved", [-HOUR, HOUR], ids=["back", "on"])
def test_so_many_minutes_are_recorded_whatever_the_clock_is_set_to(
    monkeypatch: pytest.MonkeyPatch, moved: float
) -> None:
    wall, since = time.time(), time.monotonic()
    shift, passed = 0.0, 0.0
    monkeypatch.setattr(time, "time", lambda: wall + shift + passed)
    monkeypatch.setattr(time, "monotonic", lambda: since + passed)
    settings = TraceSettings()
    policy = RecordingPolicy(settings)
    policy.record_until(time.time() + 15 * 60)
    assert policy.active
    shift = moved
    policy.adopt(settings)
    assert policy.active
    passed = 14 * 60
    policy.adopt(settings)
    assert policy.active
    passed = 16 * 60
    policy.adopt(settings)
    assert not policy.active
