"""Whose an Idempotency-Key is: of nobody who has left, and of one at a time (FAULTS 40)."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.gateway.state.test_idempotency import CHAT, HELLO, ONCE, post, until_not_in_flight
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.state.stored_forms import IDEMPOTENT
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture
def open_gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway.before(upstream, "openai-chat", **ONCE) as running:
        yield running


def test_a_client_that_leaves_while_its_claim_is_written_leaves_none(
    open_gateway: LiveGateway, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 40: its next try is not a conflict with nobody."""
    documents = open_gateway.process.state.documents
    real, written, go = documents.put, threading.Event(), asyncio.Event()

    async def slow(*values: Any, **more: Any) -> bool:
        done = await real(*values, **more)
        written.set()
        await go.wait()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(documents, "put", slow)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", open_gateway.port)) as leaving:
            headers = {"content-type": "application/json", "idempotency-key": "left"}
            leaving.request("POST", CHAT, json.dumps(HELLO), headers)
            assert written.wait(DEADLINE_SECONDS)
        wait_until(lambda: not open_gateway.process.server.requests)
    open_gateway.call(_set(go))
    assert until_not_in_flight(open_gateway, "left").status == 200
    assert len(upstream.requests) == 1


async def _set(event: asyncio.Event) -> None:
    event.set()


def test_a_claim_that_another_has_by_now_is_left_alone(
    open_gateway: LiveGateway, upstream: ScriptedUpstream
) -> None:
    """A process that stood still for long does not write over the answer of the one that went on."""
    documents = open_gateway.process.state.documents
    upstream.next(Behaviour(fault="stall"))
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", open_gateway.port)) as silent:
        headers = {"content-type": "application/json", "idempotency-key": "stood"}
        silent.request("POST", CHAT, json.dumps(HELLO), headers)
        upstream.wait_for(1)
        (claim,) = (
            each
            for each in open_gateway.call(documents.recent("local", IDEMPOTENT, limit=100))
            if not msgspec.msgpack.decode(each.body).get("status")
        )
        open_gateway.call(documents.delete("local", IDEMPOTENT, [claim.id]))
        answered = post(open_gateway, CHAT, HELLO, "stood")
        assert answered.status == 200
    wait_until(lambda: not open_gateway.process.server.requests)
    again = post(open_gateway, CHAT, HELLO, "stood")
    assert (again.status, again.body) == (200, answered.body)
    assert again.headers["idempotent-replayed"] == "true"
