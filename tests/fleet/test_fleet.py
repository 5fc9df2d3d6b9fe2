"""N gateways behind any load balancer behave as one: with real servers, real processes, and some of them killed.

FAULTS 100, 101, 102; the issue's fleet: a conversation begun on one goes on at another, limits and cool-downs
are shared, a process is lost, Redis restarts.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleet_kit import ADMIN, Caller, Fleet, chat, fleet, progress, run
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

pytestmark = [needs_own_postgres, needs_own_redis]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fleet")) as running:
        running.create_key("first")  # from now on every caller needs one, on both
        wait_until(lambda: all(running.ask(at, "GET", "/v1/models").status == 401 for at in (0, 1)))
        yield running


@pytest.mark.whole
def test_a_chain_of_responses_goes_on_at_the_other_machine(two: Fleet) -> None:
    key = two.create_key("chain")
    _usable(two, key)
    last, said = "", []
    for turn in range(6):
        word = f"word-{turn}-{secrets.token_hex(4)}"
        said.append(word)
        body: dict[str, Any] = {"model": "demo-gemini", "input": f"[[demo:echo]] {word}"}
        if last:
            body["previous_response_id"] = last
        reply = two.ask(turn % 2, "POST", "/v1/responses", body, key=key)
        assert reply.status == 200, reply.body
        last = reply.json()["id"]
    for machine in (0, 1):
        reply = two.ask(machine, "GET", f"/v1/responses/{last}", key=key)
        assert said[-1] in reply.body.decode()


def test_a_session_begun_in_one_dialect_on_one_machine_goes_on_in_another_on_the_other(two: Fleet) -> None:
    key = two.create_key("session")
    _usable(two, key)
    headers = {"x-wireglot-session": "trip"}
    first = two.ask(
        0, "POST", "/v1/chat/completions", chat("demo-gemini", "my name is Ada"), key=key, headers=headers
    )
    assert first.status == 200
    body = {**chat("demo-anthropic", "and again"), "max_tokens": 100}
    second = two.ask(
        1, "POST", "/v1/messages", body, key=key, headers={**headers, "anthropic-version": "2023-06-01"}
    )
    assert second.status == 200
    held = two.ask(0, "GET", "/v1/sessions/trip", key=key).body.decode()
    assert "my name is Ada" in held
    assert "and again" in held


def test_a_limit_holds_over_both_machines(two: Fleet) -> None:
    key = two.create_key("limited", requests_per_minute=10)
    _usable(two, key)
    statuses = [
        two.ask(number % 2, "POST", "/v1/chat/completions", chat("demo", "hi"), key=key).status
        for number in range(20)
    ]
    # A bucket gives back one place every six seconds: a slow machine may see one more.
    assert 10 <= statuses.count(200) <= 12, statuses
    assert set(statuses) == {200, 429}


def test_a_key_revoked_on_one_machine_is_refused_on_the_other(two: Fleet) -> None:
    key = two.create_key("leaver")
    _usable(two, key)
    assert two.admin(0, "DELETE", "/v1/admin/keys/leaver").status == 200
    wait_until(lambda: two.ask(1, "GET", "/v1/models", key=key).status == 401)


def test_usage_of_both_machines_is_in_one_account(two: Fleet) -> None:
    key = two.create_key("account")
    _usable(two, key)
    for number in range(6):
        assert two.ask(number % 2, "POST", "/v1/chat/completions", chat("demo", "hi"), key=key).status == 200
    wait_until(lambda: two.ask(1, "GET", "/v1/usage?group_by=key", key=key).json()["total"]["requests"] == 6)


def test_what_a_machine_answered_before_it_was_killed_goes_on_at_the_other(two: Fleet) -> None:
    key = two.create_key("survivor")
    _usable(two, key)
    first = two.ask(
        0, "POST", "/v1/responses", {"model": "demo", "input": "remember this word: quince"}, key=key
    )
    assert first.status == 200
    two.machines[0].kill()
    body = {"model": "demo", "input": "[[demo:echo]] go on", "previous_response_id": first.json()["id"]}
    second = two.ask(1, "POST", "/v1/responses", body, key=key)
    assert second.status == 200
    two.machines[0].start()
    for id in (first.json()["id"], second.json()["id"]):
        assert two.ask(0, "GET", f"/v1/responses/{id}", key=key).status == 200
    asked = two.ask(0, "GET", f"/v1/responses/{first.json()['id']}/input_items", key=key)
    assert b"quince" in asked.body


def test_a_key_that_one_machine_found_exhausted_rests_on_the_other(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream:
        provider = (
            f'[providers.mine]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\n'
            'api_key = "an-upstream-key-0123456789"\nretry = { retries = 0, wait_max = 0.0 }\n'
        )
        with fleet(tmp_path, provider) as two:
            upstream.next(Behaviour(error=429, retry_after=60))
            assert two.ask(0, "POST", "/v1/chat/completions", chat("mine/m", "hi")).status == 429
            wait_until(
                lambda: (
                    two.ask(1, "POST", "/v1/chat/completions", chat("mine/other", "hi")).status == 200
                    and two.ask(1, "POST", "/v1/chat/completions", chat("mine/m", "hi")).status == 429
                )
            )
            seen = len(upstream.requests)
            assert two.ask(1, "POST", "/v1/chat/completions", chat("mine/m", "hi")).status == 429
            assert len(upstream.requests) == seen


@pytest.mark.whole  # tests/gateway/state kills a gateway at every change
def test_nothing_acknowledged_is_lost_when_a_machine_dies_and_redis_restarts(tmp_path: Path) -> None:
    with fleet(tmp_path) as two:
        callers = [Caller(two, number) for number in range(4)]

        async def trial() -> None:
            stopped = asyncio.Event()
            tasks = [asyncio.create_task(caller.run(stopped)) for caller in callers]
            await progress(callers)
            await asyncio.to_thread(two.machines[0].kill)
            await progress(callers)
            await asyncio.to_thread(two.machines[0].start)
            await progress(callers)
            await asyncio.to_thread(two.redis.restart)
            await progress(callers)
            stopped.set()
            await asyncio.gather(*tasks)

        run(trial())
        acknowledged = {key: word for caller in callers for key, word in caller.acknowledged.items()}
        assert len(acknowledged) > 20
        assert not [reply for caller in callers for reply in caller.odd]
        for number, (identifier, word) in enumerate(acknowledged.items()):
            reply = two.ask(number % 2, "GET", f"/v1/responses/{identifier}")
            assert reply.status == 200, reply.body
            assert word in reply.body.decode()
        wait_until(lambda: _rows(two)["ok"] >= len(acknowledged))  # journals reach the store a moment later
        wait_until(lambda: not _rows(two).get(""))  # what was open when it died is closed as a crash


def _rows(two: Fleet) -> dict[str, int]:
    found = two.ask(1, "GET", "/v1/admin/usage?group_by=outcome", key=ADMIN).json()
    return {entry["outcome"]: entry["requests"] for entry in found["data"]}


def _usable(two: Fleet, key: str) -> None:
    """A new key is known to every machine within a second or two."""
    wait_until(lambda: all(two.ask(at, "GET", "/v1/models", key=key).status == 200 for at in (0, 1)))
