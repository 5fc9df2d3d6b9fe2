"""The end of an answer: recorded before asking, durable before the first byte; kept, completed once, and only then the last bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.gateway.kit import Nobody, catalogued, exchange, own, settings
from tests.waiting import until
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.client_stream import ClientStream
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.targets.routing import Target, route
from wireglot.http.application import Headers
from wireglot_core.ir.outcome import Response, Stop

ANSWER = Response("r", "m", (), Stop("end"))
TARGET = route(settings(own("mine", "openai-chat")), "mine/m", "openai-chat")[0]


class Steps(list[str]):
    """Account, meter, keeper and client in one: whatever happens is written down in its order."""

    started = False

    durable = False

    def before_asking(self) -> Awaitable[None] | None:
        return self._waited("recorded")

    def before_answering(self) -> Awaitable[None] | None:
        return None if self.durable else self._waited("durable")

    def _waited(self, what: str) -> asyncio.Future[None]:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        over.add_done_callback(lambda _: self.append(what))
        over.set_result(None)
        return over

    def complete(self) -> None:
        self.append("completed")

    def heard(self, data: bytes) -> None:
        self.append(f"heard {data.decode()}")

    def estimate(self) -> None:
        self.append("estimated")

    def needs(self, target: Target) -> bool:
        return True

    def expects(self, data: bytes, *, whole: bool) -> bool:
        return bool(data)

    def wants(self, response: Response) -> bool:
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
    ending.account = steps
    ending.count_with(steps)
    ending.keepers.append(steps)
    return ending


def test_the_intent_is_recorded_before_the_first_provider_is_asked_and_not_again() -> None:
    async def work() -> None:
        steps = Steps()
        ending = arranged(steps)
        recorded = ending.before_asking()
        assert recorded is not None
        await recorded
        assert ending.before_asking() is None
        await asyncio.sleep(0)
        assert steps == ["recorded"]

    asyncio.run(work())


def test_every_attempt_waits_for_the_disk_until_it_has_the_intent() -> None:
    async def work() -> None:
        steps = Steps()
        ending = arranged(steps)
        for _ in range(2):
            assert ending.before_answering() is not None
        steps.durable = True
        assert ending.before_answering() is None

    asyncio.run(work())


def test_without_an_account_nothing_is_waited_for() -> None:
    assert Ending().before_asking() is None
    assert Ending().before_answering() is None


def test_a_connection_is_not_kept_alive_with_bytes_that_must_wait_for_the_disk() -> None:
    """The head of an answer stands before the first keep-alive."""

    async def work() -> None:
        steps = Steps()
        made = exchange(settings(own("mine", "openai-chat")), {"model": "mine/m"}, reply=steps)
        made.ending.account = steps
        client = ClientStream(
            steps,
            made.ending,
            made.record,
            surface=made.job.surface,
            framing="sse",
            ping_seconds=0.001,
            headers=list,
        )
        await until(lambda: steps.count("durable") >= 3)  # as often as it was time
        assert (set(steps), client.opened) == ({"durable"}, False)
        steps.durable = True
        await until(lambda: client.opened)
        client.close()
        assert next(step for step in steps if step != "durable") == "started"

    asyncio.run(work())


def test_an_account_is_completed_once_and_after_the_estimate_of_what_it_came_to() -> None:
    steps = Steps()
    ending = arranged(steps)
    ending.complete()
    ending.complete()
    assert steps == ["estimated", "completed"]


def test_a_whole_answer_is_heard_and_accounted_for_before_it_is_sent() -> None:
    steps = Steps()
    made = exchange(settings(own("mine", "openai-chat")), {"model": "mine/m"}, reply=steps)
    made.ending.account = steps
    made.ending.count_with(steps)
    made.send(200, [], b"all")
    made.close()
    assert steps == ["heard all", "estimated", "completed", "sent all"]


def test_the_last_bytes_of_a_stream_wait_for_its_account_and_the_others_do_not() -> None:
    async def work() -> None:
        steps = Steps()
        made = exchange(settings(own("mine", "openai-chat")), {"model": "mine/m"}, reply=steps)
        made.ending.account = steps
        client = ClientStream(
            steps,
            made.ending,
            made.record,
            surface=made.job.surface,
            framing="sse",
            ping_seconds=60.0,
            headers=list,
        )
        client.write(b"first")
        client.write(b"last", last=True)
        client.end()
        assert steps == ["started", "written first", "completed", "written last", "ended"]

    asyncio.run(work())


def test_the_first_keeper_that_cannot_keep_is_what_the_client_is_sent() -> None:
    class Full(Steps):
        async def keep(self, response: Response) -> None:
            raise RequestError("upstream_down", "the store is full")

    async def work() -> None:
        ending, after = Ending(), Steps()
        ending.keepers.append(Full())
        ending.keepers.append(after)
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
    ending.keepers.append(Elsewhere())
    assert not ending.holds(TARGET)
    ending.keepers.append(Steps())
    assert ending.holds(TARGET)


def test_an_answer_is_read_on_only_where_a_keeper_expects_anything_of_its_beginning() -> None:
    ending = Ending()
    assert not ending.expects(b"begun", whole=False)
    ending.keepers.append(Steps())
    assert not ending.expects(b"", whole=False)
    assert ending.expects(b"begun", whole=False)


def test_what_was_asked_of_an_exchange_never_changes() -> None:
    made = exchange(settings(catalogued("demo")), {"model": "demo"}, reply=Nobody())
    with pytest.raises(AttributeError):
        made.job.model = "another"  # type: ignore[misc]  # that is the point
