"""The process around a gateway: what it announces, logs and measures, how it reloads and ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wireglot import __version__
from wireglot.gateway import config, run
from wireglot.gateway.config import ConfigError
from wireglot.gateway.config.problems import ConfigProblem, NotApproved
from wireglot.gateway.run import Process, WorkerPlace
from wireglot.gateway.settings import Settings
from wireglot_core.wire.json import decode

TOML = """
[server]
port = 0
log = "json"
secret = "a-secret-of-the-gateway-0123456789"
[store]
url = "memory:"
[providers.mine]
dialect = "openai-chat"
base_url = "https://h.example/v1"
api_key = "key-one"
"""


class Served:
    """A process that serves until `stop`, in this one."""

    def __init__(self, folder: Path, toml: str = TOML, **more: Any) -> None:
        self.path = folder / "wireglot.toml"
        self.path.write_text(toml)
        self._environ = {"XDG_DATA_HOME": str(folder), "HOME": str(folder)}
        self._log = os.open(folder / "log", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self.process = Process(
            self.settings(), path=self.path, environ=self._environ, log_fd=self._log, watches=False, **more
        )

    def settings(self, more: str = "", **changed: str) -> Any:
        text = self.path.read_text()
        for old, new in changed.items():
            text = text.replace(old, new)
        self.path.write_text(text + more)
        return config.load(self.path, environ=self._environ)

    def close(self) -> None:
        os.close(self._log)

    def notes(self, event: str) -> list[dict[str, Any]]:
        lines = (self.path.parent / "log").read_bytes().splitlines()
        return [line for line in map(decode, lines) if line["event"] == event]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    with contextlib.closing(made):
        yield made


def values(process: Process) -> dict[str, float]:
    lines = process.observer.metrics.render().decode().splitlines()
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


def test_what_it_says_when_it_listens_and_when_it_ends(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: list[float] = []
    handlers: dict[int, Any] = {}
    monkeypatch.setattr(run, "_exit_after", lambda seconds, fd: exits.append(seconds))
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    process = served.process

    async def work() -> None:
        serving = asyncio.create_task(process.serve())
        while not served.notes("note") and not serving.done():
            await asyncio.sleep(0.001)
        handlers[signal.SIGTERM]()
        handlers[signal.SIGINT]()
        handlers[signal.SIGTERM]()
        await serving

    asyncio.run(work())
    (listening,) = served.notes("listening")
    host, port = process.address
    assert (host, process.url, listening["url"]) == ("127.0.0.1", f"http://127.0.0.1:{port}", process.url)
    assert (listening["version"], listening["providers"], listening["keys"]) == (__version__, ["mine"], 0)
    assert (listening["config"], listening["asks_for_keys"]) == (str(served.path), False)
    said = [note["text"] for note in served.notes("note")]
    assert said[:3] == [
        f"point your client at {process.url}: `wireglot run CLIENT` does, see docs/clients.md",
        f"see the traffic at {process.url}/inspector",
        "no client key required: any local process can use this gateway",
    ]
    # Asked once, again, and a third time, which puts the end off no further.
    assert exits == [302.0, 2.0, 0.0]
    first, second, *_ = served.notes("draining")
    assert (first["seconds"], first["requests"], second["seconds"]) == (300.0, 0, 2.0)
    assert first["detail"] == "requests may finish within 300 s; interrupted again: within 2 s"
    assert second["detail"] == "requests may finish within 2 s"
    (stopped,) = served.notes("stopped")
    assert {each["level"] for each in (listening, first, second, stopped, *served.notes("note"))} == {"info"}
    assert set(handlers) >= {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


@pytest.mark.parametrize(
    ("mode", "warns"), [(0o700, False), (0o755, False), (0o777, True), (0o770, True), (0o1777, False)]
)
def test_a_data_folder_that_others_can_write_to_is_reported(tmp_path: Path, mode: int, warns: bool) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    made = Served(tmp_path, TOML.replace("memory:", f"sqlite:{folder}/store.db"))
    with contextlib.closing(made):

        async def work() -> None:
            await made.process.start()
            made.process._announce()
            await made.process.close()

        asyncio.run(work())
        found = made.notes("data folder")
    assert [each["level"] for each in found] == ["warn"] * warns
    assert [each["path"] for each in found] == [str(folder)] * warns


def test_what_it_measures(served: Served) -> None:
    process = served.process

    async def work() -> tuple[dict[str, float], str]:
        await process.start()
        try:
            process.gateway.account.shed = 4
            process.server._hub.refused["bad_http"] = 5
            return values(process), process.observer.metrics.render().decode()
        finally:
            await process.close()

    found, text = asyncio.run(work())
    assert found["wireglot_connections"] == 0
    assert found["wireglot_tasks"] > 0
    assert found["wireglot_requests_waiting"] == found["wireglot_permits"] == 0
    assert found["wireglot_buffered_bytes"] == found["wireglot_remembered_bytes"] == 0
    assert (found["wireglot_buffered_waiting"], found["wireglot_buffered_shed_total"]) == (0, 4)
    assert found['wireglot_http_refused_total{code="bad_http"}'] == 5
    assert found['wireglot_upstream_connections{state="open"}'] == 0
    assert found['wireglot_upstream_connections{state="idle"}'] == 0
    kinds = dict(line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE"))
    assert {name for name, kind in kinds.items() if kind == "counter"} == {
        name for name in kinds if name.endswith("_total")
    }
    assert kinds["wireglot_connections"] == kinds["wireglot_upstream_connections"] == "gauge"
    assert found["wireglot_config_refused"] == 0
    assert found["wireglot_start_time_seconds"] > 1_700_000_000


def test_what_a_reload_changes_and_what_it_keeps(served: Served) -> None:
    process = served.process

    async def work() -> None:
        await process.start()
        try:
            before = process.gateway.settings
            process.gateway.config_refused = True
            new = served.settings(
                "\n[providers.other]\ndialect = 'anthropic'\nbase_url = 'https://o.example'\napi_key = 'k'\n",
                **{"a-secret-of-the-gateway": "another-secret-entirely"},
            )
            process._changed(new)
            now = process.gateway.settings
            assert list(now.providers) == ["mine", "other"]
            assert now.server.secret == before.server.secret != new.server.secret
            assert not process.gateway.config_refused
            process._changed(served.settings(**{"port = 0": "port = 9999"}))
            process._changed(served.settings(**{"memory:": "sqlite:///elsewhere.db"}))
            kept = process.gateway.settings
            assert (kept.server.port, kept.store) == (0, before.store)
        finally:
            await process.close()

    asyncio.run(work())
    assert [note["providers"] for note in served.notes("reloaded")] == [["mine", "other"]] * 3
    assert {note["level"] for note in served.notes("reloaded")} == {"info"}
    assert {note["level"] for note in served.notes("reload")} == {"warn"}
    assert [note["detail"] for note in served.notes("reload")] == [
        "server.host and server.port need a restart",
        "server.host and server.port need a restart",
        "store.url and store.shared need a restart",
    ]


def test_a_configuration_that_is_refused_is_logged_and_counted(served: Served) -> None:
    process = served.process

    async def work() -> None:
        await process.start()
        try:
            process._refused(ConfigError([ConfigProblem("server.port", "a number", "text")], "wireglot.toml"))
            assert process.gateway.config_refused
            found = values(process)
            assert (found["wireglot_config_refused"], found["wireglot_config_reload_failures_total"]) == (
                1,
                1,
            )
            process._refused(NotApproved("it is not approved", "wireglot.toml"))
        finally:
            await process.close()

    asyncio.run(work())
    invalid, unapproved = served.notes("reload refused")
    assert (invalid["path"], invalid["expected"], invalid["found"]) == ("server.port", "a number", "text")
    assert (unapproved["path"], unapproved["detail"]) == ("wireglot.toml", "it is not approved")
    assert (invalid["level"], unapproved["level"]) == ("error", "warn")


def test_only_the_first_worker_speaks_for_all(tmp_path: Path) -> None:
    for index, is_first in ((0, True), (1, False)):
        folder = tmp_path / str(index)
        folder.mkdir()
        with contextlib.closing(Served(folder, place=WorkerPlace(index, str(folder)))) as served:
            assert served.process._is_first is is_first
            with served.process._found_by_others() if not is_first else contextlib.nullcontext():
                pass
    assert Served(tmp_path).process._is_first


def test_a_worker_without_its_parent_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    lifeline, life = os.pipe()
    place = WorkerPlace(1, str(shared), lifeline)
    exits: list[float] = []
    monkeypatch.setattr(run, "_exit_after", lambda seconds, fd: exits.append(seconds))
    monkeypatch.setattr(signal, "signal", lambda name, handler: None)
    with contextlib.closing(Served(tmp_path, place=place)) as served:
        process = served.process

        async def work() -> None:
            serving = asyncio.create_task(process.serve())
            while process.address == ("", 0) and not serving.done():
                await asyncio.sleep(0.001)
            os.close(life)
            await serving

        asyncio.run(work())
        os.close(lifeline)
        (orphaned,) = served.notes("orphaned")
        assert (orphaned["level"], orphaned["detail"]) == ("warn", "the supervisor process has exited")
        assert served.notes("listening") == []
        assert len(served.notes("draining")) == 1
        assert not shared.exists()


def test_an_address_of_ipv6_is_in_brackets(served: Served) -> None:
    served.process.address = ("::1", 8)
    assert served.process.url == "http://[::1]:8"


def test_what_hangs_is_ended_after_the_close_the_drain_and_a_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda *args, **more: asked.append((args, more)))
    run._exit_after(7.0, 9)
    assert asked == [((7.0 + 20.0 + 5.0,), {"file": 9, "exit": True})]


def test_a_close_that_hangs_is_reported(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    process = served.process
    monkeypatch.setattr(run, "CLOSE_SECONDS", 0.01)

    async def work() -> None:
        await process.start()
        with monkeypatch.context() as patched:
            patched.setattr(process, "_close", _never)
            await process.close()
        await process._close()

    async def _never() -> None:
        await asyncio.sleep(0.2)

    asyncio.run(work())
    (note,) = served.notes("not closed")
    assert (note["level"], note["detail"]) == ("error", "still closing after 0.01 s")
    assert served.notes("stopped") == []


def test_a_stop_while_it_closes_does_nothing(served: Served) -> None:
    process = served.process

    async def work() -> None:
        await process.start()
        await process.close()
        process.stop()

    asyncio.run(work())
    assert served.notes("draining") == []


def test_a_worker_that_replaces_another_has_its_settings(tmp_path: Path) -> None:
    newer = Settings()

    class HandedDown:
        def read(self) -> Settings:
            return newer

    handed: Any = HandedDown()
    assert WorkerPlace(0, "", -1, True, handed).inherited() is newer
    assert WorkerPlace(0, "", -1, False, handed).inherited() is None
    assert WorkerPlace(0, "", -1, True, None).inherited() is None
