"""The process of a gateway: what is set in it, and why it cannot listen. Nothing is started."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import errno
import gc
import os
import resource
import socket
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from wireglot.cli import entry, process_setup, serve
from wireglot.gateway.config.problems import ConfigError, ConfigProblem
from wireglot.stores import StoreUnusable
from wireglot.testing.live_gateway import LiveGateway


class Library:
    """In the place of the C library: notes what is called."""

    def __init__(self) -> None:
        self.called: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *given: self.called.append((name, *given))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: found)
    monkeypatch.setattr(sys, "platform", "linux")
    return found


def test_large_blocks_go_back_to_the_system(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    process_setup.give_large_blocks_back()
    assert library.called == [("mallopt", -3, 2 << 20), ("mallopt", -1, 16 << 20), ("mallopt", -8, 2)]
    monkeypatch.setattr(sys, "platform", "darwin")
    process_setup.give_large_blocks_back()
    assert len(library.called) == 3


def test_holes_are_given_back_again_and_again(library: Library) -> None:
    async def work() -> None:
        async with process_setup.holes_given_back(0.0):
            while len(library.called) < 2:
                await asyncio.sleep(0)
        seen = len(library.called)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(library.called) <= seen + 1, "not after the end"

    asyncio.run(work())
    assert set(library.called) == {("malloc_trim", 0)}


@rows(
    ("debuggable", "calls", "core"),
    [
        ("", [("prctl", 38, 1, 0, 0, 0), ("prctl", 4, 0, 0, 0, 0)], True),
        ("1", [("prctl", 38, 1, 0, 0, 0)], False),
    ],
)
def test_rights_that_are_given_up(debuggable: str, calls: Any, core: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        found = Library()
        patch.setattr(ctypes, "CDLL", lambda name: found)
        patch.setattr(sys, "platform", "linux")
        masks: list[int] = []
        limits: list[Any] = []
        patch.setattr(os, "umask", masks.append)
        patch.setattr(resource, "getrlimit", lambda what: (5, 7))
        patch.setattr(resource, "setrlimit", lambda *given: limits.append(given))
        process_setup.give_up({"WIREGLOT_DEBUGGABLE": debuggable})
    assert (masks, found.called) == ([0o077], calls)
    assert limits == ([(resource.RLIMIT_CORE, (0, 7))] if core else [])


@rows(("soft", "hard", "raised"), [(1024, 4096, True), (4096, 4096, False)])
def test_as_many_descriptors_as_the_system_allows(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, raised: bool
) -> None:
    limits: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *given: limits.append(given))
    process_setup.raise_limit()
    assert limits == ([(resource.RLIMIT_NOFILE, (hard, hard))] if raised else [])


def test_the_collector_looks_seldom_and_spares_what_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    now, frozen, done = [100.0], [1000], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen[0])
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: done.append(name))
    before, callbacks = gc.get_threshold(), list(gc.callbacks)
    with process_setup.calm_collector():
        assert gc.get_threshold() == (10_000, 3, 10)
        (spare,) = [each for each in gc.callbacks if each not in callbacks]

        def look(phase: Any, generation: int) -> list[str]:
            done.clear()
            spare(phase, {"generation": generation})
            return list(done)

        assert (look("start", 0), look("stop", 0)) == ([], [])
        assert (look("start", 1), look("stop", 1)) == ([], ["freeze"])
        now[0], frozen[0] = 3699.9, 300_000
        assert look("start", 2) == [], "not before an hour"
        now[0] = 3700.0
        assert look("start", 1) == [], "not of the middle generation"
        assert look("start", 2) == ["unfreeze"]
        frozen[0] = 400_000
        assert look("stop", 2) == ["freeze"]
        now[0], frozen[0] = 7299.0, 900_000
        assert look("start", 2) == [], "once an hour"
        now[0], frozen[0] = 7300.0, 650_000
        assert look("start", 2) == [], "not where little more is spared"
        now[0], frozen[0] = 10_900.0, 650_001
        assert look("start", 2) == ["unfreeze"]
        done.clear()
    assert done == ["unfreeze"]
    assert (gc.get_threshold(), list(gc.callbacks)) == (before, callbacks)


# Serving.


@rows(
    ("fault", "words"),
    [
        (socket.gaierror(), "the host name cannot be resolved"),
        (UnicodeError(), "the host name cannot be resolved"),
        (
            OSError(errno.EADDRINUSE, "x"),
            " by another program; --port N selects another port, --port 0 any free one",
        ),
        (
            OSError(errno.EACCES, "x"),
            ": ports below 1024 may be reserved for the system; --port N selects another",
        ),
        (OSError(errno.EADDRNOTAVAIL, "x"), ": not an address of this machine"),
        (OSError(errno.ENOMEM, "x"), os.strerror(errno.ENOMEM)),
        (OSError("odd"), "odd"),
    ],
)
def test_why_it_cannot_listen(monkeypatch: pytest.MonkeyPatch, fault: Any, words: str) -> None:
    running = [SimpleNamespace(url="http://h:18484", pid=3), SimpleNamespace(url="http://h:8485", pid=4)]
    monkeypatch.setattr(serve, "find_running", lambda environ: running)
    assert serve._why(fault, 8484).endswith(words)
    assert serve._own_gateway_at(8485) == 4
    assert serve._own_gateway_at(8484) == 0
    with LiveGateway("[providers.demo]\n") as other:
        used = serve._why(OSError(errno.EADDRINUSE, "x"), other.port)
        assert " by a Wireglot gateway of another user or data folder; --port N" in used
    used = serve._why(OSError(errno.EADDRINUSE, "x"), 8485)
    assert used.endswith(" by your gateway with process id 4 (`wireglot run` uses it)")


@rows(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_where_it_cannot_listen(capsys: pytest.CaptureFixture[str], host: str, shown: str) -> None:
    settings: Any = SimpleNamespace(server=SimpleNamespace(host=host, port=1))
    assert serve._cannot_listen(settings, OSError(errno.ENOMEM, "x")) == 1
    assert capsys.readouterr().err.startswith(f"wireglot: cannot listen on {shown}:1: ")
    with pytest.raises(FileNotFoundError):
        serve._cannot_listen(settings, FileNotFoundError(2, "x", "file"))


@rows(
    ("options", "variable", "overrides", "named", "minutes"),
    [
        ({}, "", {}, {}, 0),
        ({"port": 1, "log": "off"}, "", {"server": {"port": 1, "log": "off"}}, {}, 0),
        ({"model": ["a=b"]}, "a=b", {}, {"WIREGLOT_MODELS": "--model"}, 0),
        ({"model": ["a=b", "c=d"], "before": "e=f"}, "a=b;c=d;e=f", {}, {}, 0),
        ({"trace": 5}, "", {}, {}, 5),
    ],
)
def test_what_the_command_line_puts_in_place_of_settings(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    variable: str,
    overrides: Any,
    named: Any,
    minutes: int,
) -> None:
    given = {
        "model": None,
        "host": None,
        "port": None,
        "workers": None,
        "log": None,
        "trace": None,
        **options,
    }
    environ = {"WIREGLOT_MODELS": given.pop("before")} if "before" in given else {}
    started: list[Any] = []
    monkeypatch.setattr(os, "environ", environ)
    monkeypatch.setattr(time, "time", lambda: 1000.0)

    def start(*given: Any, **more: Any) -> int:
        started.append((given, more))
        return 0

    monkeypatch.setattr(serve, "_start", start)
    assert serve.run(argparse.Namespace(config="c", **given)) == 0
    until = 1000.0 + 60 * minutes if minutes else 0.0
    assert started == [(("c", overrides, named), {"record_until": until})]
    assert environ.get("WIREGLOT_MODELS", "") == variable


def test_a_problem_of_an_option_is_reported_by_it() -> None:
    def found(*paths: str) -> ConfigError:
        error = ConfigError([ConfigProblem(path, "x", "y") for path in paths], "wireglot.toml")
        return serve._in_words_of({"WIREGLOT_MODELS": "--model"}, error)

    one = found("WIREGLOT_MODELS")
    assert ([each.path for each in one.problems], one.source) == (["--model"], "--model")
    two = found("WIREGLOT_MODELS", "server.port")
    assert ([each.path for each in two.problems], two.source) == (["--model", "server.port"], "wireglot.toml")
    assert found("server.port").source == "wireglot.toml"


@rows(
    ("problem", "status"),
    [
        (ConfigError([ConfigProblem("a", "b", "c")], "f"), 2),
        (StoreUnusable("no"), 1),
        (OSError(errno.ENOMEM, "x"), 1),
        (None, 0),
    ],
    ids=["configuration", "store", "port", "none"],
)
def test_the_status_of_a_gateway_that_ends(
    monkeypatch: pytest.MonkeyPatch, problem: Any, status: int
) -> None:
    def run(work: Any) -> None:
        work.close()
        if problem is not None:
            raise problem

    monkeypatch.setattr(serve, "run_loop", run)
    settings: Any = SimpleNamespace(server=SimpleNamespace(host="h", port=1))
    assert serve._serve(settings, None, {}, None, None, 0.0, "k") == status
    assert len(serve._new_key()) == 43


def test_the_collector_rarely_looks_at_what_a_command_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gc.get_threshold()
    monkeypatch.setattr(entry, "_status", lambda argv, mute: gc.get_threshold()[0])
    assert entry.main(["dialects"]) == 50_000
    assert gc.get_threshold() == before
