"""Searches that the gateway runs are counted, priced and limited per key, and a crash loses none of them."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.gateway.hosted.hosted_kit import HostedStage, chat_answer, chat_calls
from tests.gateway.state.usage_kit import Refused, fetch, usage
from tests.waiting import wait_until
from wireglot.web.contract import WebFailed
from wireglot_core.wire.json import decode

QUERY = {"query": "tower"}
KEYS = {
    "poor": "cost_per_day = 0.012",
    "few": "searches_per_day = 1",
    "slow": "tokens_per_minute = 150",
    "free": "",
}
PRICES = '[prices."openai-chat-up/m1"]\ninput = 0\noutput = 0\n'


def _hash(name: str) -> str:
    return f"sha256:{hashlib.sha256(f'key-{name}'.encode()).hexdigest()}"


def _keyed(name: str, limit: str) -> str:
    return f'[keys.{name}]\nhash = "{_hash(name)}"\n{limit}\n'


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage(PRICES + "".join(_keyed(name, limit) for name, limit in KEYS.items())) as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def search(stage: HostedStage, key: str, times: int = 1) -> list[Any]:
    """The results that the client is shown, one for each search."""
    stage.upstream.next(*[chat_calls(("web_search", QUERY))] * times, chat_answer({"content": "Done."}))
    body = {
        "model": "openai-chat-up/m1",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    }
    answer = decode(fetch(f"{stage.gateway.url}/v1/messages", body, authorization=f"Bearer key-{key}"))
    return [block["content"] for block in answer["content"] if block["type"] == "web_search_tool_result"]


def rows(stage: HostedStage, key: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer key-{key}"}
    return {row["operation"]: row for row in usage(stage.gateway, "group_by=operation", **headers)["data"]}


def test_each_search_is_a_row_with_its_price(stage: HostedStage) -> None:
    before = rows(stage, "free").get("web_search", {"requests": 0, "cost": 0.0})
    search(stage, "free", times=2)
    after = rows(stage, "free")["web_search"]
    assert after["requests"] - before["requests"] == 2
    assert float(after["cost"]) - float(before["cost"]) == pytest.approx(2 * stage.web.price)


def test_a_search_that_fails_costs_nothing(stage: HostedStage) -> None:
    before = rows(stage, "free").get("web_search", {"requests": 0, "cost": 0.0})
    stage.web.problem = WebFailed("unavailable", "down")
    search(stage, "free")
    after = rows(stage, "free")["web_search"]
    assert (after["requests"] - before["requests"], after["cost"]) == (1, before["cost"])


def test_a_search_that_the_client_leaves_is_paid(stage: HostedStage) -> None:
    """The backend was asked, and bills it."""
    before = rows(stage, "free").get("web_search", {"requests": 0, "cost": 0.0})
    stage.upstream.next(chat_calls(("web_search", QUERY), stream=True))
    stage.web.gate = asyncio.Event()
    client = anthropic.Anthropic(
        base_url=stage.gateway.url, auth_token="key-free", api_key=None, max_retries=0
    )
    with client.messages.stream(
        model="openai-chat-up/m1",
        max_tokens=100,
        messages=[{"role": "user", "content": "?"}],
        tools=[{"type": "web_search_20250305", "name": "web_search"}],
    ) as stream:
        next(event for event in stream if event.type == "content_block_start")
    wait_until(lambda: stage.web.cancelled == 1)
    wait_until(lambda: rows(stage, "free")["web_search"]["requests"] > before["requests"])
    after = rows(stage, "free")["web_search"]
    assert after["requests"] - before["requests"] == 1
    assert float(after["cost"]) - float(before["cost"]) == pytest.approx(stage.web.price)


def test_a_key_may_search_as_often_as_its_limit_says(stage: HostedStage) -> None:
    found, refused = search(stage, "few", times=2)
    assert isinstance(found, list)
    assert refused["error_code"] == "too_many_requests"
    assert len(stage.web.queries) == 1


def test_searches_are_paid_from_the_budget_of_the_key(stage: HostedStage) -> None:
    """0.012 dollars are two searches at 0.005 and a third one that begins while there is something left. Then no
    round follows."""
    with pytest.raises(Refused) as refused:
        search(stage, "poor", times=4)
    assert refused.value.status == 429
    assert len(stage.web.queries) == 3
    assert float(rows(stage, "poor")["web_search"]["cost"]) == pytest.approx(0.015)


def test_the_tokens_of_every_round_count_toward_the_minute(stage: HostedStage) -> None:
    """An answer that has begun is not refused. Of 150 tokens its 11 rounds use 165."""
    assert len(search(stage, "slow", times=10)) == 10
    stage.reset()
    with pytest.raises(Refused) as refused:
        search(stage, "slow")
    assert refused.value.status == 429
    assert not stage.upstream.requests


def test_searches_count_on_budgets_of_another_currency() -> None:
    """Their price is in that currency, as all amounts are."""
    with HostedStage(PRICES + _keyed("poor", KEYS["poor"]), currency="EUR") as other:
        with pytest.raises(Refused) as refused:
            search(other, "poor", times=4)
        assert refused.value.status == 429
        assert len(other.web.queries) == 3
        assert float(rows(other, "poor")["web_search"]["cost"]) == pytest.approx(0.015)


def test_calls_are_counted_by_tool_backend_and_outcome(stage: HostedStage) -> None:
    calls = stage.gateway.process.observer.metrics.hosted_calls

    def counted(outcome: str) -> float:
        return calls.value(("web_search", stage.web.name, outcome))

    before = counted("ok"), counted("unavailable")
    search(stage, "free", times=2)
    stage.web.problem = WebFailed("unavailable", "down")
    search(stage, "free")
    assert (counted("ok") - before[0], counted("unavailable") - before[1]) == (2, 1)
