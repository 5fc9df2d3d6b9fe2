"""When the record of a request is on the disk: before its provider is asked, or before its client has anything of
the answer, or whenever the system likes. FAULTS rule L, rows 93, 98."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.state.ledger_kit import (
    ORDERS,
    Ledger,
    answering,
    asking,
    begin,
    job_of,
    ledger_settings,
    target,
    usage_ledger,
)
from tests.gateway.state.usage_kit import fetch, usage
from tests.waiting import wait_until
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.settings import SyncOrder
from wireglot.gateway.state import state
from wireglot.gateway.state.ledger.usage_ledger import UsageLedger
from wireglot.stores.journal.disk import Disk
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode


class Unsyncable(Disk):
    def sync(self, fd: int) -> None:
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize("required", [True, False])
def test_a_required_row_that_does_not_reach_the_disk_stops_the_request_before_it_is_asked(
    tmp_path: Path, required: bool
) -> None:
    async def work() -> None:
        settings = ledger_settings(tmp_path, sync="before", ledger_required=required)
        kept = usage_ledger(Ledger(), settings, disk=Unsyncable())
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        if required:
            with pytest.raises(RequestError):
                await asking(job)
        else:
            await asking(job)
        await kept.close()

    asyncio.run(work())


@pytest.mark.parametrize("required", [True, False])
def test_a_row_that_does_not_reach_the_disk_costs_no_answer_that_was_bought(
    tmp_path: Path, required: bool
) -> None:
    """[A7] What is known by then is that the next one would not be recorded: that one is refused."""

    async def work() -> None:
        settings = ledger_settings(tmp_path, sync="during", ledger_required=required)
        kept = usage_ledger(Ledger(), settings, disk=Unsyncable())
        metrics = Metrics()
        kept.publish(metrics)
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        await answering(job)
        assert kept.journal.trouble == "Input/output error"
        assert "wireglot_usage_unsynced_total 1\n" in metrics.render().decode()
        if required:
            with pytest.raises(RequestError):
                begin(kept, job_of(2, settings), target(settings))
        await kept.close()

    asyncio.run(work())


class HeldDisk(Disk):
    """Finishes no sync before it is let go."""

    def __init__(self) -> None:
        self.syncs = 0
        self.free = threading.Event()

    def sync(self, fd: int) -> None:
        self.syncs += 1
        self.free.wait()
        super().sync(fd)


@contextmanager
def gateway_on(
    disk: HeldDisk, monkeypatch: pytest.MonkeyPatch, toml: str, order: SyncOrder
) -> Iterator[LiveGateway]:
    def made(*given: Any, **more: Any) -> UsageLedger:
        return UsageLedger(*given, **more, disk=disk)

    monkeypatch.setattr(state, "UsageLedger", made)
    with LiveGateway(f'{toml}[store]\nsync = "{order}"\n') as gateway:
        try:
            yield gateway
        finally:
            disk.free.set()


class Client:
    """Has asked, and looks what has come so far."""

    def __init__(self, port: int, *, stream: bool = False, path: str = "/v1/chat/completions") -> None:
        message = {"role": "user", "content": "hi"}
        given = (
            {"input": [message], "store": False} if path.endswith("responses") else {"messages": [message]}
        )
        body = encode({"model": "m", "stream": stream, **given})
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(
            f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode()
            + body
        )

    def has_anything(self) -> bool:
        return bool(select.select([self._socket], [], [], 0)[0])

    def answer(self) -> bytes:
        pieces = []
        while piece := self._socket.recv(65536):
            pieces.append(piece)
        self._socket.close()
        return b"".join(pieces)

    def leave(self) -> None:
        self._socket.close()


def waiting(gateway: LiveGateway) -> int:
    """How many wait for the disk."""
    return len(gateway.process.state.ledger.journal.syncer.waiting)


def provider(name: str, url: str) -> str:
    return f'[providers.{name}]\ndialect = "openai-chat"\nbase_url = "{url}/v1"\napi_key = "k"\n'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_the_provider_works_while_the_disk_does_and_no_byte_of_its_answer_goes_out_before(
    monkeypatch: pytest.MonkeyPatch, stream: bool, path: str
) -> None:
    """FAULTS L, 98: passed through and translated, whole and streamed, its head included."""
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            client = Client(gateway.port, stream=stream, path=path)
            wait_until(lambda: waiting(gateway))
            assert len(upstream.requests) == 1
            assert not client.has_anything()
            disk.free.set()
            assert client.answer().startswith(b"HTTP/1.1 200")
            assert waiting(gateway) == 0
            assert gateway.wait_log(1)[0]["outcome"] == "ok"


def test_in_the_strict_order_no_provider_is_asked_before_the_disk_has_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "before") as gateway:
            client = Client(gateway.port)
            wait_until(lambda: waiting(gateway) and disk.syncs)
            assert upstream.requests == []
            disk.free.set()
            assert client.answer().startswith(b"HTTP/1.1 200")
            assert len(upstream.requests) == 1


def test_without_syncs_nobody_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "off") as gateway:
            assert Client(gateway.port).answer().startswith(b"HTTP/1.1 200")
        assert disk.syncs == 0


@pytest.mark.parametrize("first", ["gone", "error"])
def test_another_providers_answer_waits_for_the_same_record(
    monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """A first that cannot be reached has waited for nothing; one that answered with an error has."""
    disk = HeldDisk()
    with ScriptedUpstream() as upstream, ScriptedUpstream() as other:
        url = other.url if first == "error" else "http://127.0.0.1:1"
        other.otherwise = Behaviour(error=500)
        retry = "[providers.first.retry]\nretries = 0\n"
        toml = provider("first", url) + retry + provider("mine", upstream.url)
        toml += '[models]\n"*" = ["first/m", "mine/m"]\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            client = Client(gateway.port)
            wait_until(lambda: waiting(gateway))
            assert not client.has_anything()
            disk.free.set()
            assert client.answer().startswith(b"HTTP/1.1 200")
            assert len(upstream.requests) == 1


def test_an_error_of_the_provider_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been paid for: what it says is an answer like any other."""
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        upstream.otherwise = Behaviour(error=400)
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            client = Client(gateway.port)
            wait_until(lambda: waiting(gateway))
            assert not client.has_anything()
            disk.free.set()
            assert client.answer().startswith(b"HTTP/1.1 400")


def test_a_client_that_leaves_while_the_disk_is_waited_for_is_in_the_books(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            client = Client(gateway.port, stream=True)
            wait_until(lambda: waiting(gateway))
            client.leave()
            assert gateway.wait_log(1)[0]["outcome"] == "client_abort"
            disk.free.set()
            assert usage(gateway, "group_by=outcome")["data"][0]["outcome"] == "client_abort"


def test_a_background_response_stores_nothing_of_an_answer_before_the_disk_has_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            asked = {"model": "m", "input": "hi", "background": True}
            made = decode(fetch(f"{gateway.url}/v1/responses", asked))
            assert made["status"] == "queued"
            wait_until(lambda: waiting(gateway))

            def now() -> Any:
                return decode(fetch(f"{gateway.url}/v1/responses/{made['id']}"))

            assert now()["status"] in ("queued", "in_progress")
            assert now()["output"] == []
            disk.free.set()
            assert wait_until(lambda: (found := now())["status"] == "completed" and found)["output"]


def test_a_disk_that_does_not_answer_costs_a_bought_answer_a_wait_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """[A7] FAULTS 93: as with a store that hangs, what was bought is delivered."""
    disk = HeldDisk()
    with ScriptedUpstream() as upstream:
        toml = provider("mine", upstream.url) + '[models]\n"*" = "mine/*"\n'
        with gateway_on(disk, monkeypatch, toml, "during") as gateway:
            syncer = gateway.process.state.ledger.journal.syncer
            syncer._timing = syncer._timing._replace(patience=0.01)
            assert Client(gateway.port).answer().startswith(b"HTTP/1.1 200")
            assert b"wireglot_usage_unsynced_total 1\n" in fetch(f"{gateway.url}/metrics")
            disk.free.set()


def test_an_answer_that_comes_after_the_disk_has_failed_is_counted_once(tmp_path: Path) -> None:
    """Most come then: a sync takes a moment, a model seconds."""

    async def work() -> None:
        settings = ledger_settings(tmp_path, sync="during")
        kept = usage_ledger(Ledger(), settings, disk=Unsyncable())
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        while not kept.journal.trouble:
            await asyncio.sleep(0)
        for _ in range(2):  # attempts
            await answering(job)
        assert kept.journal.unsynced == 1
        await kept.close()

    asyncio.run(work())


def test_a_disk_that_does_not_answer_is_waited_for_once_by_a_request(tmp_path: Path) -> None:
    """Keep-alives and other attempts are of the same one."""

    async def work() -> None:
        settings = ledger_settings(tmp_path, sync="during")
        disk = HeldDisk()
        kept = usage_ledger(Ledger(), settings, disk=disk)
        syncer = kept.journal.syncer
        syncer._timing = syncer._timing._replace(patience=0.01)
        await kept.start()
        job = job_of(1, settings)
        begin(kept, job, target(settings))
        for _ in range(3):
            assert job.ending.before_answering() is not None
        gone = asyncio.ensure_future(answering(job))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert job.ending.before_answering() is not None, "nobody else's wait ends with it"
        await answering(job)
        assert kept.journal.unsynced == 1
        assert job.ending.before_answering() is None
        disk.free.set()
        await kept.close()

    asyncio.run(work())


def test_a_slow_disk_is_waited_for_while_nothing_has_been_bought(tmp_path: Path) -> None:
    kept = {
        order: usage_ledger(Ledger(), ledger_settings(tmp_path, sync=order)).journal.syncer.patient
        for order in ORDERS
    }
    assert kept == {"during": False, "before": True, "off": False}
