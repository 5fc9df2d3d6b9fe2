"""How `wireglot serve` begins and ends, without a process: one worker or several, and what keeps it from starting."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import settings
from tests.tiers import rows
from wireglot.cli import serve
from wireglot.cli.trust import ConfigFile
from wireglot.gateway import supervisor
from wireglot.gateway.config import ConfigError
from wireglot.gateway.config.problems import ConfigProblem
from wireglot.gateway.settings import Secret, ServerSettings, StoreSettings
from wireglot.stores import StoreDown, StoreUnusable

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_one_worker_serves_itself_and_several_are_supervised(monkeypatch: Patch, capsys: Capture) -> None:
    done: list[Any] = []
    workers = [1]
    file = ConfigFile(Path("/w.toml"), b"text")

    def trusted(named: str | None) -> ConfigFile:
        done.append(named)
        return file

    monkeypatch.setattr(serve, "trusted_config", trusted)
    monkeypatch.setattr(serve, "refusal_of_changes", lambda file: "why not")

    def load(path: Path, *, overrides: Any, content: bytes) -> Any:
        done.append((path, overrides, content))
        return settings(server=ServerSettings(workers=workers[0]))

    monkeypatch.setattr("wireglot.gateway.config.load", load)
    for name in ("give_up", "give_large_blocks_back", "raise_limit"):
        monkeypatch.setattr(serve, name, lambda name=name: done.append(name))
    monkeypatch.setattr(serve, "Paths", lambda surfaces: done.append("paths"))
    monkeypatch.setattr(serve, "_new_key", lambda: "key")
    monkeypatch.setattr(serve, "_serve", lambda now, *given: ("alone", *given))
    monkeypatch.setattr(serve, "_supervised", lambda now, *given: ("supervised", *given))
    given: dict[str, Any] = {"server": {"port": 1}}
    alone: Any = serve._start("named", given, record_until=5.0)
    assert alone == ("alone", Path("/w.toml"), given, "why not", None, 5.0, "key")
    assert done == [
        "named", (Path("/w.toml"), given, b"text"), "give_up", "give_large_blocks_back", "raise_limit", "paths",
    ]  # fmt: skip
    workers[0] = 2
    several: Any = serve._start(None, given)
    assert several == ("supervised", Path("/w.toml"), given, "why not", 0.0)

    def refuse(*_: Any, **__: Any) -> Any:
        raise ConfigError([ConfigProblem("WIREGLOT_MODELS", "a rule", '"x"')], "w.toml")

    monkeypatch.setattr("wireglot.gateway.config.load", refuse)
    assert serve._start(None, {}, {"WIREGLOT_MODELS": "--model"}) == 2
    assert capsys.readouterr().err == 'wireglot: --model: expected a rule, found "x"\n'


@rows(
    ("problem", "status", "said"),
    [
        (None, 7, ""),
        (StoreUnusable("the store is damaged"), 1, "wireglot: the store is damaged\n"),
        (OSError(errno.ENOMEM, "x"), 1, "wireglot: cannot listen on h:1: "),
    ],
    ids=["none", "store", "port"],
)
def test_workers_are_supervised_with_one_key_for_all(
    problem: Exception | None, status: int, said: str, monkeypatch: Patch, capsys: Capture
) -> None:
    workers: list[Any] = []

    class Supervisor:
        def __init__(self, now: Any, work: Any) -> None:
            self._work = work

        def run(self) -> int:
            workers.extend([self._work("shared", place) for place in (1, 2)])
            return 7

    async def try_store(now: Any) -> None:
        if problem is not None:
            raise problem

    monkeypatch.setattr(supervisor, "Supervisor", Supervisor)
    monkeypatch.setattr(serve, "_try_store", try_store)
    monkeypatch.setattr(serve, "_serve", lambda *given: given)
    now = settings(server=ServerSettings(host="h", port=1, workers=2))
    assert serve._supervised(now, Path("/w.toml"), {"a": 1}, None, 5.0) == status
    assert capsys.readouterr().err.startswith(said)
    assert [given[:-1] for given in workers] == [
        ("shared", Path("/w.toml"), {"a": 1}, None, place, 5.0)
        for place in ((1, 2) if problem is None else ())
    ]
    assert len({given[-1] for given in workers}) == (problem is None)


@rows(
    ("problem", "status", "said"),
    [
        (StoreUnusable("the store is damaged"), 1, "wireglot: the store is damaged\n"),
        (ConfigError([ConfigProblem("a", "b", "c")], "f"), 2, "wireglot: f: a: expected b, found c\n"),
    ],
)
def test_what_keeps_a_worker_from_starting_is_reported(
    problem: Exception, status: int, said: str, monkeypatch: Patch, capsys: Capture
) -> None:
    def run(work: Any) -> None:
        work.close()
        raise problem

    monkeypatch.setattr(serve, "run_loop", run)
    assert serve._serve(settings(), None, {}, None, None, 0.0, "k") == status
    assert capsys.readouterr().err == said


def test_a_store_is_opened_once_before_the_workers(monkeypatch: Patch) -> None:
    done: list[str] = []

    def store(name: str) -> Any:
        async def close() -> None:
            done.append(f"closed {name}")

        return SimpleNamespace(close=close)

    async def engine(url: str) -> Any:
        done.append(url)
        if url == "down:":
            raise StoreDown("away")
        return store("engine")

    async def counters(url: str) -> Any:
        done.append(url)
        return store("counters"), None

    monkeypatch.setattr(serve, "open_engine", engine)
    monkeypatch.setattr(serve, "open_counters", counters)
    for url, shared, seen in (
        ("memory:", "redis://h", ["memory:", "closed engine", "redis://h", "closed counters"]),
        ("down:", "redis://h", ["down:", "redis://h", "closed counters"]),
        ("memory:", "", ["memory:", "closed engine"]),
    ):
        done.clear()
        now = settings(store=StoreSettings(url=Secret(url), shared=Secret(shared)))
        asyncio.run(serve._try_store(now))
        assert done == seen
