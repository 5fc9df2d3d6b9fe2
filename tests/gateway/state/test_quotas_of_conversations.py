"""What a held conversation puts before a request counts, too: for budgets, and for numbers of any size."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from proofs.lab.link import Link, Reply
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway

KEY = "a-client-key-with-a-budget"
BUDGET = 60_000
WORDS = "word " * 20_000  # about 25,000 tokens


def gateway(more: str = "") -> LiveGateway:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    return LiveGateway(
        f'[providers.demo]\n[keys.ada]\nhash = "sha256:{digest}"\ntokens_per_day = {BUDGET}\n{more}'
    )


@pytest.fixture
def live() -> Iterator[LiveGateway]:
    with gateway() as running:
        yield running


def ask(
    live: LiveGateway, *requests: tuple[str, str, Any], headers: dict[str, str] | None = None
) -> list[Reply]:
    """All of them at once."""

    async def one(method: str, path: str, body: Any) -> Reply:
        link = Link(live.port, KEY)
        try:
            return await link.ask(method, path, body, headers)
        finally:
            link.close()

    async def all_of_them() -> list[Reply]:
        return await asyncio.gather(*(one(*request) for request in requests))

    return asyncio.run(all_of_them())


def stored(live: LiveGateway) -> str:
    (reply,) = ask(live, ("POST", "/v1/conversations", {}))
    conversation: str = reply.json()["id"]
    item = {"type": "message", "role": "user", "content": WORDS}
    (reply,) = ask(live, ("POST", f"/v1/conversations/{conversation}/items", {"items": [item]}))
    assert reply.status == 200
    return conversation


def test_requests_side_by_side_with_a_held_history_are_answered_until_it_is_spent(live: LiveGateway) -> None:
    """T20: three of them use the budget, and those that run at the same moment."""
    conversation = stored(live)
    body = {"model": "demo-gemini", "input": "[[demo:echo]] go on", "conversation": conversation}
    replies = ask(live, *[("POST", "/v1/responses", body)] * 12)
    assert sum(reply.status == 200 for reply in replies) >= 3
    quotas = live.process.state.quotas
    wait_until(lambda: not live.process.gateway.in_flight and not quotas.settlements.work)
    (reply,) = ask(live, ("POST", "/v1/responses", body))
    assert (reply.status, reply.json()["error"]["code"]) == (429, "insufficient_quota")


def test_a_client_that_leaves_is_charged_for_the_history_that_was_read(live: LiveGateway) -> None:
    """T20: the disconnect bypass"""
    conversation = stored(live)
    body = {
        "model": "demo-gemini",
        "input": "[[demo:slow 200ms]] go on",
        "conversation": conversation,
        "stream": True,
    }

    async def leave() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        content = msgspec.json.encode(body)
        head = (
            f"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        writer.write(head.encode() + content)
        await reader.readuntil(b"response.created")
        writer.close()

    asyncio.run(leave())
    live.wait_log(3)
    (reply,) = ask(live, ("GET", "/v1/usage", None))
    assert reply.json()["total"]["input_tokens"] > 15_000


@pytest.mark.parametrize("number", [2**70, 1e308, -(2**70)])
def test_numbers_of_any_size_are_kept_as_they_are(live: LiveGateway, number: float) -> None:
    body = {"model": "demo-gemini", "input": "[[demo:echo]] hi", "truncation": number}
    (reply,) = ask(live, ("POST", "/v1/responses", body))
    assert reply.status == 200
    (again,) = ask(live, ("GET", f"/v1/responses/{reply.json()['id']}", None))
    assert again.json() == reply.json()


@pytest.mark.parametrize("path", ["/v1/sessions", "/v1/responses/none/input_items"])
def test_a_limit_of_five_thousand_digits_is_reported(live: LiveGateway, path: str) -> None:
    (reply,) = ask(live, ("GET", f"{path}?limit={'9' * 5000}", None))
    assert reply.status in (400, 404)


def test_the_same_key_for_another_session_is_another_request(live: LiveGateway) -> None:
    """FAULTS 40"""
    body = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}
    request = ("POST", "/v1/chat/completions", body)
    key = {"idempotency-key": "k"}
    assert ask(live, request, headers={**key, "x-wireglot-session": "one"})[0].status == 200
    assert ask(live, request, headers={**key, "x-wireglot-session": "two"})[0].status == 409
    again = ask(live, request, headers={**key, "x-wireglot-session": "one"})[0]
    assert again.headers["idempotent-replayed"] == "true"


def test_changes_of_one_key_at_the_same_moment_all_hold() -> None:
    """FAULTS 90: a revocation among them least of all may be lost."""
    secret = "an-admin-secret-0123"

    async def change(live: LiveGateway, method: str, path: str, fields: Any = None) -> Reply:
        link = Link(live.port, secret)
        try:
            return await link.ask(method, path, fields)
        finally:
            link.close()

    async def trial(live: LiveGateway) -> None:
        path = "/v1/admin/keys/team"
        assert (await change(live, "POST", "/v1/admin/keys", {"name": "team"})).status in (200, 201)
        for turn in range(1, 6):
            names = ("concurrent", "requests_per_minute", "tokens_per_day")
            replies = await asyncio.gather(*(change(live, "PATCH", path, {name: turn}) for name in names))
            assert {reply.status for reply in replies} == {200}
            found = (await change(live, "GET", path)).json()
            assert [found[name] for name in names] == [turn] * 3
        await asyncio.gather(
            change(live, "DELETE", path), *(change(live, "PATCH", path, {"concurrent": n}) for n in (7, 8, 9))
        )
        assert (await change(live, "GET", path)).json()["state"] == "revoked"

    with gateway(f'[server]\nadmin_secret = "{secret}"\n') as live:
        asyncio.run(trial(live))
