"""The end of an answer: durable before asking; kept, completed once, and only then the last bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.gateway.kit import Nobody, catalogued, exchange, own, settings
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.targets.routing import Target, route
from wireglot.http.application import Headers
from wireglot.ir.outcome import Response, Stop

ANSWER = Response("r", "m", (), Stop("end"))
TARGET = route(settings(own("mine", "openai-chat")), "mine/m", "openai-chat")[0]


class Steps(list[str]):
    """Account, meter, keeper and client in one: whatever happens is written down in its order."""

    started = False

    def durable(self) -> Awaitable[None]:
        return self._durable()

    async def _durable(self) -> None:
        self.append("durable")

    def complete(self) -> None:
        self.append("completed")

    def heard(self, data: bytes) -> None:
        self.append(f"heard {data.decode()}")

    def estimate(self) -> None:
        self.append("estimated")

    def needs(self, target: Target) -> bool:
        return True

    async def keep(self, response: Response) -> None:
        self.append("kept")

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.append(f"sent {body.decode()}")

    def start(self, status: int, headers: Headers) -> None:
        self.append("started")

    def write(self, data: bytes) -> None:
        self.append(f"written {data.decode()}")

    def end(self) -> None:
        self.append("ended")

    def abort(self) -> None: ...

    def on_pressure(self, pause: Any, resume: Any) -> None: ...


def arranged(steps: Steps) -> Ending:
    ending = Ending()
    ending.keep_account(steps)
    ending.count_with(steps)
    ending.keep_with(steps)
    return ending


def test_the_intent_is_durable_before_the_first_provider_is_asked_and_not_again() -> None:
    async def work() -> None:
        steps = Steps()
        ending = arranged(steps)
        durable = ending.before_asking()
        assert durable is not None
        await durable
        assert ending.before_asking() is None
        assert steps == ["durable"]

    asyncio.run(work())


def test_without_an_account_nothing_is_waited_for() -> None:
    assert Ending().before_asking() is None


def test_an_account_is_completed_once_and_after_the_estimate_of_what_it_came_to() -> None:
    steps = Steps()
    ending = arranged(steps)
    ending.complete()
    ending.complete()
    assert steps == ["estimated", "completed"]


def test_a_whole_answer_is_heard_and_accounted_for_before_it_is_sent() -> None:
    steps = Steps()
    made = exchange(settings(own("mine", "openai-chat")), {"model": "mine/m"}, reply=steps)
    made.ending.keep_account(steps)
    made.ending.count_with(steps)
    made.send(200, [], b"all")
    made.close()
    assert steps == ["heard all", "estimated", "completed", "sent all"]


def test_the_last_bytes_of_a_stream_wait_for_its_account_and_the_others_do_not() -> None:
    async def work() -> None:
        steps = Steps()
        made = exchange(settings(own("mine", "openai-chat")), {"model": "mine/m"}, reply=steps)
        made.ending.keep_account(steps)
        client = ClientStream(
            steps,
            made.ending,
            made.record,
            dialect="openai-chat",
            framing="sse",
            ping_seconds=60.0,
            headers=list,
        )
        client.write(b"first")
        client.write(b"last", last=True)
        client.end()
        assert steps == ["started", "written first", "completed", "written last", "ended"]

    asyncio.run(work())


def test_the_first_keeper_that_cannot_keep_is_what_the_client_is_told() -> None:
    class Full(Steps):
        async def keep(self, response: Response) -> None:
            raise RequestError("upstream_down", "the store is full")

    async def work() -> None:
        ending, after = Ending(), Steps()
        ending.keep_with(Full())
        ending.keep_with(after)
        with pytest.raises(RequestError, match="the store is full"):
            await ending.keep(ANSWER)
        assert after == []

    asyncio.run(work())


def test_an_end_is_held_only_where_a_keeper_needs_the_answer_of_this_target() -> None:
    class Elsewhere(Steps):
        def needs(self, target: Target) -> bool:
            return target.model == "other"

    ending = Ending()
    assert not ending.holds(TARGET)
    ending.keep_with(Elsewhere())
    assert not ending.holds(TARGET)
    ending.keep_with(Steps())
    assert ending.holds(TARGET)


def test_what_was_asked_of_an_exchange_never_changes() -> None:
    made = exchange(settings(catalogued("demo")), {"model": "demo"}, reply=Nobody())
    with pytest.raises(AttributeError):
        made.job.model = "another"  # type: ignore[misc]  # that is the point
