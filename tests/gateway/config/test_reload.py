"""A running gateway takes up no settings that open a shut door; and what a new worker takes over."""

from __future__ import annotations

import os
import sys

import msgspec
import pytest

from wireglot.gateway.config import ConfigError
from wireglot.gateway.config.watch import HandedDown, check_reload
from wireglot.gateway.settings import ClientKey, ServerSettings, Settings

OPEN = Settings()
KEYED = Settings(keys=(ClientKey("a", "0" * 64),))
SHUT = Settings(server=ServerSettings(require_key=True))


@pytest.mark.parametrize("before", [KEYED, SHUT])
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
def test_keys_that_were_asked_for_are_asked_for_as_long_as_it_runs(before: Settings, bound: str) -> None:
    """[A1]"""
    with pytest.raises(ConfigError, match="only a restart"):
        check_reload(before, OPEN, [bound])


def test_the_address_that_counts_is_the_bound_one() -> None:
    """[A1] Whatever the new settings say of the host: the socket stays where it is."""
    assert OPEN.server.host == "127.0.0.1"
    with pytest.raises(ConfigError, match="listens on"):
        check_reload(OPEN, OPEN, ["127.0.0.1", "192.0.2.7"])
    check_reload(OPEN, OPEN, ["127.0.0.1", "::1"])


@pytest.mark.parametrize("after", [KEYED, SHUT])
def test_a_door_may_be_shut_and_keys_exchanged(after: Settings) -> None:
    for before in (OPEN, KEYED, SHUT):
        check_reload(before, after, ["0.0.0.0"])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no workers")
def test_the_last_settings_are_handed_down_whole_whatever_their_size() -> None:
    """[A1]"""
    handed = HandedDown()
    assert handed.read() is None
    for size in (1, 50, 2, 3, 80, 4, 4):
        keys = tuple(ClientKey(f"k{n}", f"{n:064}") for n in range(size))
        handed.write(msgspec.structs.replace(OPEN, keys=keys))
        found = handed.read()
        assert found is not None
        assert found.keys == keys
    handed.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no workers")
def test_a_writer_that_is_killed_leaves_the_settings_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """[A1]"""
    handed = HandedDown()
    handed.write(KEYED)
    write, calls = os.pwrite, []

    def killed(fd: int, data: bytes, offset: int) -> int:
        calls.append(offset)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", killed)
    with pytest.raises(KeyboardInterrupt):
        handed.write(SHUT)
    assert handed.read() == KEYED
    handed.close()
