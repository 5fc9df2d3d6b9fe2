"""A connection goes from phase to phase as the table says, and each row of the table happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from tests.http.limits_kit import Limits
from tests.http.server_kit import PLAIN, FakeApp, Recorder, get, post
from tests.tiers import rows
from wireglot.http.application import Head, Refusal, Reply, UpgradableReply, Upgrade
from wireglot.http.server import phases
from wireglot.http.server.connection import Hub, ServerConnection

NAMES = {value: name for name, value in vars(phases).items() if type(value) is int}


class Watched(ServerConnection):
    """Notes each change of its phase."""

    def __init__(self, hub: Hub) -> None:
        self.steps: list[tuple[str, str]] = []
        super().__init__(hub)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_phase" and hasattr(self, "_phase"):
            self.steps.append((NAMES[self._phase], NAMES[value]))
        super().__setattr__(name, value)


async def _handler(head: Head, body: bytes, reply: Reply) -> None:
    if head.path == "/endless":
        await asyncio.Event().wait()
    if head.path == "/other":
        upgradable = cast(UpgradableReply, reply)
        ended = asyncio.Event()
        upgrade = Upgrade(
            receive=lambda data: ended.set(), drain=ended.set, pause=ended.clear, resume=ended.clear
        )
        upgradable.upgrade([("upgrade", "other")], upgrade)
        await ended.wait()
        upgradable.linger()
        return
    reply.send(200, PLAIN, b"")


async def _turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Stage:
    def __init__(self) -> None:
        app = FakeApp(_handler, limit=2_000_000)
        app.refusals["/no"] = Refusal(404, PLAIN, b"")
        self.limits = Limits()
        self.hub = Hub(app, self.limits)
        self.hub.open()
        self.connection = Watched(self.hub)
        self.connection.connection_made(Recorder())

    async def take(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.data_received(piece)
            await _turns()

    def let_time_pass(self) -> None:
        self.connection.sweep(self.hub.loop.time() + 1000, self.limits)


Script = Callable[[Stage], Any]


async def _leave(stage: Stage) -> None:
    stage.connection.eof_received()


async def _answer_and_go_on(stage: Stage) -> None:
    await stage.take(get("/"), post("/", b"in two pieces")[:-5], b"ieces", get("/") * 3)


async def _leave_within_a_body(stage: Stage) -> None:
    await stage.take(post("/", b"body")[:-1])
    stage.connection.eof_received()
    stage.connection.connection_lost(None)


async def _leave_before_the_answer(stage: Stage) -> None:
    await stage.take(get("/endless"))
    stage.connection.connection_lost(None)


async def _stall_within_a_body(stage: Stage) -> None:
    await stage.take(post("/", b"body")[:-1])
    stage.let_time_pass()


async def _send_no_http(stage: Stage) -> None:
    await stage.take(b"hello\r\n\r\n", b"thrown away")
    stage.let_time_pass()


async def _skip_a_refused_body(stage: Stage) -> None:
    await stage.take(post("/no", b"body")[:-1], b"y" + get("/"))


async def _stall_within_a_refused_body(stage: Stage) -> None:
    await stage.take(post("/no", b"body")[:-1])
    stage.let_time_pass()


async def _be_refused_with_more_behind(stage: Stage) -> None:
    await stage.take(get("/no") + get("/"))


async def _drain_while_more_waits(stage: Stage) -> None:
    stage.connection.pause_writing()
    await stage.take(get("/"))
    stage.connection.close_if_idle()


async def _speak_another_protocol_and_end(stage: Stage) -> None:
    await stage.take(get("/other"), b"\x00 is no HTTP")


async def _drain_another_protocol(stage: Stage) -> None:
    await stage.take(get("/other"))
    stage.connection.close_if_idle()


async def _leave_another_protocol(stage: Stage) -> None:
    await stage.take(get("/other"))
    stage.connection.connection_lost(None)


SCRIPTS: list[Script] = [
    _speak_another_protocol_and_end,
    _drain_another_protocol,
    _leave_another_protocol,
    _leave,
    _answer_and_go_on,
    _leave_within_a_body,
    _leave_before_the_answer,
    _stall_within_a_body,
    _send_no_http,
    _skip_a_refused_body,
    _stall_within_a_refused_body,
    _be_refused_with_more_behind,
    _drain_while_more_waits,
]


def _steps(script: Script) -> list[tuple[str, str]]:
    async def scenario() -> list[tuple[str, str]]:
        stage = Stage()
        await script(stage)
        await _turns()
        return stage.connection.steps

    return asyncio.run(scenario())


def test_every_phase_has_its_row():
    assert phases.FOLLOWS.keys() == NAMES.keys()


@rows("script", SCRIPTS, ids=lambda script: script.__name__.strip("_"))
def test_only_what_the_table_allows_follows(script: Script):
    steps = _steps(script)
    assert steps
    by_name = {NAMES[phase]: {NAMES[following] for following in row} for phase, row in phases.FOLLOWS.items()}
    assert [(before, after) for before, after in steps if after not in by_name[before]] == []


def test_whatever_the_table_allows_happens():
    seen = {step for script in SCRIPTS for step in _steps(script)}
    allowed = {(NAMES[phase], NAMES[following]) for phase, row in phases.FOLLOWS.items() for following in row}
    assert seen == allowed
