"""A SIGHUP that comes while a gateway starts neither ends it nor is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from wireglot.cli import entry
from wireglot.cli.terminal import HUNG_UP

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")


@pytest.fixture(autouse=True)
def _as_in_a_terminal() -> Iterator[None]:
    """The tests may run under nohup, which ignores this signal for all its programs."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_reload_before_a_gateway_can_reload_is_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    came: list[int] = []

    def start(*_: Any) -> int:
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        assert came == []
        before = signal.signal(signal.SIGHUP, lambda number, _: came.append(number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})  # as a gateway does once it can reload
        assert came == [signal.SIGHUP]
        signal.signal(signal.SIGHUP, before)
        return 0

    monkeypatch.setattr(entry, "_status", start)
    assert entry.main(["serve"]) == 0


def test_one_that_is_still_pending_does_not_change_how_a_failed_start_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> int:
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        return 2

    mask, handler = signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGHUP)
    monkeypatch.setattr(entry, "_status", fail)
    assert entry.main(["serve", "--port", "1"]) == 2
    assert (signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGHUP)) == (mask, handler)


def test_other_commands_end_when_their_terminal_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_: Any) -> int:
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        raise AssertionError("it went on")

    monkeypatch.setattr(entry, "_status", wait)
    assert entry.main(["usage"]) == HUNG_UP
