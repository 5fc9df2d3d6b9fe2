"""Background responses across processes: looked at elsewhere, cancelled from elsewhere, left by the dead."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.gateway.state.background_kit import finished
from tests.processes import ForkedCommand
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.state.responses.heartbeat import BEAT, Heartbeats
from wireglot.gateway.state.stored_forms import RESPONSE
from wireglot.gateway.state.tasks import Pace
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

QUICK = Pace(background_look_seconds=0.02, background_follow_seconds=0.02)


def configured(upstream: ScriptedUpstream, more: str = "") -> str:
    return (
        f'[providers.mine]\ndialect = "anthropic"\nbase_url = "{upstream.url}"\napi_key = "k-0123456789"\n'
        f'[models]\n"*" = "mine/*"\n{more}'
    )


def client(url: str) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{url}/v1", api_key="x", max_retries=0, http_client=openai.DefaultHttpxClient(verify=False)
    )


@contextmanager
def serving(upstream: ScriptedUpstream, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`wireglot serve` in a process of its own."""
    config, log = folder / "served.toml", folder / "served.log"
    config.write_text(configured(upstream), encoding="utf-8")
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environ = {**kept, "XDG_DATA_HOME": str(folder)}
    command = [sys.executable, "-m", "wireglot.cli", "serve", "--config", str(config), "--port", "0"]
    with log.open("wb") as sink:
        process = ForkedCommand([*command, "--log", "json"], stderr=sink, stdout=sink, env=environ)
    try:

        def listening() -> re.Match[bytes] | None:
            assert process.poll() is None, log.read_text()
            return re.search(rb'"listening".*?(http://127\.0\.0\.1:\d+)', log.read_bytes())

        found = wait_until(listening)
        yield process, found[1].decode()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(DEADLINE_SECONDS)


def test_another_process_streams_and_cancels_what_one_works_on(
    tmp_path: Path,
) -> None:
    """Whichever process a load balancer picks, the response is the same one."""
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as one,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as two,
    ):
        here, there = client(one.url), client(two.url)
        upstream.next(Behaviour(gap=0.03))
        stream = here.responses.create(model="m1", input="Hello", background=True, stream=True)
        first = next(iter(stream))
        assert first.type == "response.created"
        stream.close()
        wait_until(lambda: there.responses.retrieve(first.response.id).status != "queued")
        elsewhere = list(there.responses.retrieve(first.response.id, stream=True, starting_after=0))
        assert elsewhere[0].sequence_number == 1
        assert elsewhere[-1].type == "response.completed"
        again = list(here.responses.retrieve(first.response.id, stream=True, starting_after=0))
        assert [event.to_dict() for event in elsewhere] == [event.to_dict() for event in again]

        upstream.next(Behaviour(fault="stall-midstream"))
        promised = here.responses.create(model="m1", input="Hello", background=True)
        request = upstream.wait_for(2)[-1]
        assert there.responses.cancel(promised.id).status == "cancelled"
        assert request.abandoned.wait(DEADLINE_SECONDS)
        assert here.responses.retrieve(promised.id).status == "cancelled"


def test_nobody_is_taken_for_dead_whose_sign_of_life_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 95: no clock of another machine says anything. And a sign of life is small."""
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as one,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as two,
    ):
        written: list[str] = []
        documents = one.process.state.engine.documents
        real = documents.replace

        async def replace(document: Document) -> bool:
            written.append(document.kind)
            return await real(document)

        monkeypatch.setattr(documents, "replace", replace)
        there = two.process.state.background
        there.lease, there.grace = 0.0, 1.0
        upstream.next(Behaviour(fault="stall"))
        id = client(one.url).responses.create(model="m1", input="Hello", background=True).id
        assert client(two.url).responses.retrieve(id).status in ("queued", "in_progress")
        assert written.count(BEAT) > 1
        assert RESPONSE not in written
        assert client(one.url).responses.cancel(id).status == "cancelled"
        assert one.call(one.process.state.documents.get("local", BEAT, [id])) == []


def test_how_long_a_sign_stands_still_is_reported_by_ones_own_clock() -> None:
    now = [5.0]
    heartbeats = Heartbeats(MemoryEngine().documents, clock=lambda: now[0])
    assert heartbeats.still("me", "r", b"1") == 0
    now[0] += 29
    assert heartbeats.still("me", "r", b"1") == 29
    assert heartbeats.still("other", "r", b"1") == 0
    assert heartbeats.still("me", "r", b"2") == 0
    now[0] += 1
    assert heartbeats.still("me", "r", b"2") == 1
    heartbeats.forget("me", "r")
    assert heartbeats.still("me", "r", b"2") == 0


def test_a_sign_that_is_older_than_clocks_may_disagree_stood_still_before_it_was_looked_at() -> None:
    async def work() -> None:
        began = float(int(time.time()))
        wall = [began]
        documents = MemoryEngine().documents
        await Heartbeats(documents, wall=lambda: wall[0]).begin("me", "r")
        looking = Heartbeats(documents, clock=lambda: 5.0, wall=lambda: wall[0])
        sign = await looking.read("me", "r")
        for passed, still in ((-3600, 0), (0, 0), (299, 0), (400, 100)):
            wall[0] = began + passed
            looking.forget("me", "r")
            assert looking.still("me", "r", sign) == pytest.approx(still)
        looking.forget("me", "r")
        assert looking.still("me", "r", b"12345678") == 0, "of an older version"
        assert looking.still("me", "gone", b"", began=began) == pytest.approx(100)

    asyncio.run(work())


def test_deleting_it_elsewhere_stops_the_work(tmp_path: Path) -> None:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as one,
        LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as two,
    ):
        upstream.next(Behaviour(fault="stall-midstream"))
        promised = client(one.url).responses.create(model="m1", input="Hello", background=True)
        request = upstream.wait_for(1)[0]
        client(two.url).responses.delete(promised.id)
        assert request.abandoned.wait(DEADLINE_SECONDS)
        with pytest.raises(openai.NotFoundError):
            client(one.url).responses.retrieve(promised.id)


def test_a_gateway_that_stops_says_so_in_what_it_worked_on(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream:
        upstream.otherwise = Behaviour(fault="stall-midstream")
        with LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as gateway:
            gpt = client(gateway.url)
            stream = gpt.responses.create(model="m1", input="Hello", background=True, stream=True)
            events: list[Any] = [event for event, _ in zip(stream, range(3), strict=False)]
            stream.close()
        id = events[0].response.id
        with LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as gateway:
            gpt = client(gateway.url)
            failed = gpt.responses.retrieve(id)
            assert failed.status == "failed"
            assert failed.error is not None
            assert failed.error.code == "server_error"
            assert "the gateway stopped" in failed.error.message
            *_, last = gpt.responses.retrieve(id, stream=True, starting_after=2)
            assert last.type == "response.failed"


def test_work_may_finish_before_a_gateway_ends(tmp_path: Path) -> None:
    """FAULTS 103: what has been promised is finished within the drain time."""
    with ScriptedUpstream() as upstream:
        with serving(upstream, tmp_path) as (process, url):
            upstream.next(Behaviour(gap=0.05))
            id = client(url).responses.create(model="m1", input="Hello", background=True).id
            upstream.wait_for(1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 0
        with LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as gateway:
            assert client(gateway.url).responses.retrieve(id).status == "completed"


def test_what_a_killed_gateway_promised_is_still_there_and_has_failed(
    tmp_path: Path,
) -> None:
    """FAULTS 95: nothing acknowledged is lost, and nobody waits for ever."""
    with ScriptedUpstream() as upstream:
        with serving(upstream, tmp_path) as (process, url):
            done = client(url).responses.create(model="m1", input="Hello", background=True).id
            assert finished(client(url), done).status == "completed"
            upstream.next(Behaviour(fault="stall-midstream"), Behaviour(fault="stall"))
            stream = client(url).responses.create(model="m1", input="Hello", background=True, stream=True)
            events: list[Any] = [event for event, _ in zip(stream, range(3), strict=False)]
            queued = client(url).responses.create(model="m1", input="Hello", background=True).id
            upstream.wait_for(3)
            process.kill()
            process.wait(DEADLINE_SECONDS)
        with LiveGateway(configured(upstream), folder=tmp_path, pace=QUICK) as gateway:
            gpt = client(gateway.url)
            assert gpt.responses.retrieve(done).status == "completed"
            gateway.wait_log(2, "background")  # nobody has asked for them
            for id in (events[0].response.id, queued):
                failed = gpt.responses.retrieve(id)
                assert failed.status == "failed"
                assert failed.error is not None
                assert "the gateway stopped" in failed.error.message
            *_, last = gpt.responses.retrieve(events[0].response.id, stream=True, starting_after=50)
            assert last.type == "response.failed"
            assert last.sequence_number == 51
            assert len(upstream.requests) == 3, "nobody asks for it again"


def test_what_a_killed_gateway_promised_has_failed_for_the_first_who_asks(tmp_path: Path) -> None:
    """FAULTS 95: a process that is gone from this machine has died; no lease has to end first."""
    slow = Pace(background_look_seconds=DEADLINE_SECONDS)
    with ScriptedUpstream() as upstream:
        upstream.otherwise = Behaviour(fault="stall")
        with serving(upstream, tmp_path) as (process, url):
            id = client(url).responses.create(model="m1", input="Hello", background=True).id
            assert client(url).responses.retrieve(id).status in ("queued", "in_progress")
            process.kill()
            process.wait(DEADLINE_SECONDS)
        with LiveGateway(configured(upstream), folder=tmp_path, pace=slow) as gateway:
            assert client(gateway.url).responses.retrieve(id).status == "failed"
