"""Limits of client keys as the vendors' SDKs meet them, in every dialect, over a real gateway."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types

from tests.gateway.faults.faults_kit import BY_NAME, Call, ask, provider, reported, start
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.stores.memory import MemoryCounters
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini")
NOON = 1_794_744_000.0
"""2026-11-15 12:00 UTC"""

LIMITS = {
    **{f"minute-{dialect}": "requests_per_minute = 1" for dialect in DIALECTS},
    **{f"day-{dialect}": "tokens_per_day = 1" for dialect in DIALECTS},
    "five": "concurrent = 5",
    "leaver": "tokens_per_day = 2000",
    "counted": "tokens_per_month = 1000000",
    "money": "cost_per_month = 0.01",
    "poor": "cost_per_day = 1",
    "agent": "cost_per_day = 1",
}


def key_of(name: str) -> str:
    return f"the-key-of-{name}"


def toml(upstream: ScriptedUpstream) -> str:
    text = provider("mine", upstream, "openai-chat") + provider("claude", upstream, "anthropic")
    text += '[models]\n"m*" = "mine/m*"\nfalls = ["mine/m-cheap", "mine/m2"]\ndearer = ["mine/m-cheap", "mine/m-dear"]\n[prices]\n"mine/m1" = { input = 1000, output = 1000 }\n"mine/m-dear" = { input = 5, output = 50 }\n"mine/m-cheap" = { input = 1, output = 1 }\n'
    for name, limits in LIMITS.items():
        digest = hashlib.sha256(key_of(name).encode()).hexdigest()
        text += f'[keys.{name}]\nhash = "sha256:{digest}"\n{limits}\n'
    return text


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, LiveGateway(toml(upstream)) as gateway:
        gateway.process.state.quotas.wall = lambda: NOON
        counters = gateway.process.state.counters
        assert isinstance(counters, MemoryCounters)
        counters.wall = lambda: NOON
        yield gateway, upstream


@pytest.fixture(autouse=True)
def _fresh(stage: tuple[LiveGateway, ScriptedUpstream]) -> None:
    gateway, upstream = stage
    wait_until(
        lambda: not gateway.process.gateway.in_flight and not gateway.process.state.quotas.settlements.work
    )
    upstream.reset()


def spent(gateway: LiveGateway, name: str) -> int:
    counters = gateway.process.state.counters
    assert isinstance(counters, MemoryCounters)
    found: int = counters._budgets.get(name, (0, 0))[0]
    return found


def raised(gateway: LiveGateway, dialect: str, key: str) -> tuple[int, dict[str, str], str]:
    """Ask until the vendor's SDK raises its error for a limit; what the answer was."""
    for _ in range(3):
        try:
            _ask(gateway, dialect, key)
        except (anthropic.RateLimitError, openai.RateLimitError) as limited:
            return limited.status_code, dict(limited.response.headers), limited.response.text
        except errors.ClientError as limited:
            answer: Any = limited.response
            return limited.code, dict(answer.headers), str(limited)
    raise AssertionError("the limit was never reached")


def _ask(gateway: LiveGateway, dialect: str, key: str) -> None:
    match dialect:
        case "anthropic":
            anthropic.Anthropic(
                base_url=gateway.url,
                api_key=key,
                max_retries=0,
                http_client=anthropic.DefaultHttpxClient(verify=False),
            ).messages.create(model="m1", max_tokens=50, messages=[{"role": "user", "content": "hi"}])
        case "gemini":
            options = types.HttpOptions(
                base_url=gateway.url, client_args={"verify": False}, async_client_args={"verify": False}
            )
            client = genai.Client(api_key=key, http_options=options)
            client.models.generate_content(model="m1", contents="hi")
        case _:
            gpt = openai.OpenAI(
                base_url=f"{gateway.url}/v1",
                api_key=key,
                max_retries=0,
                http_client=openai.DefaultHttpxClient(verify=False),
            )
            if dialect == "openai-chat":
                gpt.chat.completions.create(model="m1", messages=[{"role": "user", "content": "hi"}])
            else:
                gpt.responses.create(model="m1", input="hi")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_vendors_sdk_raises_its_rate_limit_error(stage: Any, dialect: str) -> None:
    """Over a rate, with the seconds until the next request passes."""
    gateway, _ = stage
    status, headers, message = raised(gateway, dialect, key_of(f"minute-{dialect}"))
    assert status == 429
    assert 50 <= int(headers["retry-after"]) <= 60
    assert "x-should-retry" not in headers
    assert "1 requests a minute" in message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_spent_budget_says_when_the_day_ends(stage: Any, dialect: str) -> None:
    """The true time, however long, and that trying again is no use."""
    gateway, _ = stage
    status, headers, message = raised(gateway, dialect, key_of(f"day-{dialect}"))
    assert status == 429
    assert headers["retry-after"] == str(12 * 3600)
    assert headers["x-should-retry"] == "false"
    assert "2026-11-16T00:00:00Z" in message
    if dialect.startswith("openai"):
        assert "insufficient_quota" in message


def test_of_fifty_at_once_five_are_answered(stage: Any) -> None:
    """The others are reported at once, and the places of those that left are free again."""
    gateway, upstream = stage
    upstream.reset()
    upstream.otherwise = Behaviour(fault="stall")
    headers = {"authorization": f"Bearer {key_of('five')}"}
    calls: list[Call] = []
    try:
        calls = [start(gateway, BY_NAME["openai-chat"], "m1", headers=headers) for _ in range(5)]
        upstream.wait_for(5)
        with ThreadPoolExecutor(15) as pool:
            more = [
                pool.submit(ask, gateway, BY_NAME["openai-chat"], "m1", headers=headers) for _ in range(45)
            ]
            refused = [future.result() for future in more]
        assert {answered.status for answered in refused} == {429}
        assert {answered.headers["retry-after"] for answered in refused} == {"1"}
        assert "maximum of concurrent requests (5)" in reported(BY_NAME["openai-chat"], refused[0]).message
        assert len(upstream.requests) == 5
    finally:
        for call in calls:
            call.leave(reset=True)
        upstream.reset()
    wait_until(lambda: ask(gateway, BY_NAME["openai-chat"], "m1", headers=headers).status == 200)


def test_fifty_at_once_never_are_more_than_five_upstream(stage: Any) -> None:
    gateway, upstream = stage
    upstream.reset()
    upstream.otherwise = Behaviour(delay=0.02)
    headers = {"authorization": f"Bearer {key_of('five')}"}
    with ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(ask, gateway, BY_NAME["anthropic"], "m1", headers=headers) for _ in range(50)]
        statuses = [future.result().status for future in asked]
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= 5
    assert statuses.count(200) == len(upstream.requests)
    upstream.reset()


def in_the_ledger(gateway: LiveGateway) -> int:
    state = gateway.process.state
    assert gateway.call(state.ledger.flush(DEADLINE_SECONDS))
    tokens: int = gateway.call(state.engine.ledger.spent("counted", 0))[0]
    return tokens


def lines_of(gateway: LiveGateway, model: str) -> list[dict[str, Any]]:
    """By a model that no other test asks for: lines of other requests may be written late."""
    return [line for line in gateway.log() if line.get("model") == model]


@pytest.mark.parametrize("client", ["openai-chat", "anthropic", "gemini", "openai-responses"])
def test_anyone_who_leaves_its_streams_pays_for_them(stage: Any, client: str) -> None:
    """THREATS T20: the disconnect bypass."""
    gateway, upstream = stage
    upstream.reset()
    upstream.otherwise = Behaviour(fault="stall-midstream")
    headers = {"authorization": f"Bearer {key_of('counted')}"}
    budget = "budget:counted:tokens:2026-11"
    before, written = spent(gateway, budget), in_the_ledger(gateway)
    model, text = f"m-left-{client}", "word " * 200
    for _ in range(5):
        call = start(gateway, BY_NAME[client], model, text, stream=True, headers=headers)
        call.until(b"data: ")
        call.leave(reset=True)
    wait_until(lambda: len(lines_of(gateway, model)) == 5)
    assert {line["outcome"] for line in lines_of(gateway, model)} == {"client_abort"}
    wait_until(lambda: not gateway.process.state.quotas.settlements.work)
    charged = spent(gateway, budget) - before
    assert in_the_ledger(gateway) - written == charged, "a budget that begins again from it forgets nothing"
    assert 5 * 200 <= charged <= 5 * 2000, "what went in at least, and not all that was reserved"
    upstream.reset()


def in_chunks(text: str) -> tuple[bytes, ...]:
    words = [{"delta": {"content": text}, "index": 0, "finish_reason": None}]
    end = [{"delta": {}, "index": 0, "finish_reason": "stop"}]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    events = [encode({**head, "choices": choices}) for choices in (words, end)]
    return (*(b"data: " + event + b"\n\n" for event in events), b"data: [DONE]\n\n")


@pytest.mark.parametrize("client", ["openai-chat", "anthropic", "gemini", "openai-responses"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_without_usage_is_in_the_ledger_as_it_was_charged(
    stage: Any, client: str, streamed: bool
) -> None:
    """THREATS T20: budgets begin from the ledger, so a restart must not give any back."""
    gateway, upstream = stage
    upstream.reset()
    said = "word " * 100
    message = {"role": "assistant", "content": said}
    whole = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    sse = (("content-type", "text/event-stream"),)
    json = (("content-type", "application/json"),)
    upstream.next(
        Behaviour(pieces=in_chunks(said), headers=sse)
        if streamed
        else Behaviour(body=encode(whole), headers=json)
    )
    headers = {"authorization": f"Bearer {key_of('counted')}"}
    budget = "budget:counted:tokens:2026-11"
    before, written = spent(gateway, budget), in_the_ledger(gateway)
    model = f"m-without-{client}-{streamed}"
    assert ask(gateway, BY_NAME[client], model, "word " * 80, stream=streamed, headers=headers).status == 200
    wait_until(lambda: lines_of(gateway, model))
    wait_until(lambda: not gateway.process.state.quotas.settlements.work)
    charged = spent(gateway, budget) - before
    assert 200 <= charged <= 2000
    assert in_the_ledger(gateway) - written == charged
    upstream.reset()


def test_a_provider_that_nobody_waited_for_has_read_the_request(stage: Any) -> None:
    """THREATS T20: a short x-wireglot-timeout is no way around a budget."""
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(fault="stall"))
    headers = {"authorization": f"Bearer {key_of('counted')}", "x-wireglot-timeout": "1"}
    budget = "budget:counted:tokens:2026-11"
    before, written = spent(gateway, budget), in_the_ledger(gateway)
    assert ask(gateway, BY_NAME["openai-chat"], "m-late", "word " * 400, headers=headers).status == 504
    wait_until(lambda: lines_of(gateway, "m-late"))
    wait_until(lambda: not gateway.process.state.quotas.settlements.work)
    charged = spent(gateway, budget) - before
    assert 400 <= charged <= 1000
    assert in_the_ledger(gateway) - written == charged
    upstream.reset()


def test_leaving_again_and_again_runs_into_the_budget(stage: Any) -> None:
    """THREATS T20: twenty streams that nobody reads to their end are not free."""
    gateway, upstream = stage
    upstream.reset()
    upstream.otherwise = Behaviour(fault="stall-midstream")
    headers = {"authorization": f"Bearer {key_of('leaver')}"}
    statuses = []
    for _ in range(20):
        call = start(gateway, BY_NAME["openai-chat"], "m1", "word " * 200, stream=True, headers=headers)
        statuses.append(call.response.status)
        if call.response.status == 200:
            call.until(b"data: ")
        call.leave(reset=True)
        wait_until(
            lambda: (
                not gateway.process.gateway.in_flight and not gateway.process.state.quotas.settlements.work
            )
        )
    assert statuses[0] == 200
    assert statuses[-1] == 429
    upstream.reset()


def test_what_was_used_is_what_counts(stage: Any) -> None:
    gateway, upstream = stage
    upstream.reset()
    before = spent(gateway, "budget:counted:tokens:2026-11")
    headers = {"authorization": f"Bearer {key_of('counted')}"}
    answered = ask(gateway, BY_NAME["openai-chat"], "m1", headers=headers, max_tokens=5000)
    assert answered.status == 200
    used = answered.json["usage"]["total_tokens"]
    wait_until(lambda: spent(gateway, "budget:counted:tokens:2026-11") == before + used)


def test_money_is_counted_at_the_models_price(stage: Any) -> None:
    gateway, _ = stage
    headers = {"authorization": f"Bearer {key_of('money')}"}
    answered = ask(gateway, BY_NAME["openai-chat"], "m1", headers=headers)
    price = answered.json["usage"]["total_tokens"] * 1000
    wait_until(lambda: spent(gateway, "budget:money:cost:2026-11") == price)
    refused = ask(gateway, BY_NAME["anthropic"], "m1", headers=headers)
    assert refused.status == 429
    assert "0.01 USD a month" in reported(BY_NAME["anthropic"], refused).message


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "gemini", "openai-responses"])
def test_an_agents_parallel_requests_are_answered_at_half_of_its_budget(stage: Any, client: str) -> None:
    """A title beside every turn, sub-agents: each may cost more than what is left, none does."""
    gateway, upstream = stage
    counters = gateway.process.state.counters
    budget = "budget:agent:cost:2026-11-15"
    counters._budgets[budget] = (500_000, int(NOON + 43_200) * 1000)
    opened = threading.Event()
    upstream.otherwise = Behaviour(gate=opened)
    headers = {"authorization": f"Bearer {key_of('agent')}"}
    most: dict[str, Any] = {"max_tokens": 128_000} if client == "anthropic" else {}
    calls = [start(gateway, BY_NAME[client], "m-dear", headers=headers, **most) for _ in range(20)]
    try:
        upstream.wait_for(20)
    finally:
        opened.set()
    assert [call.rest().status for call in calls] == [200] * 20
    wait_until(lambda: not gateway.process.state.quotas.settlements.work)
    assert 500_000 < spent(gateway, budget) < 600_000
    upstream.reset()


def test_a_model_without_a_price_is_refused_to_a_key_with_a_budget_of_money(stage: Any) -> None:
    gateway, upstream = stage
    upstream.reset()
    headers = {"authorization": f"Bearer {key_of('poor')}"}
    for client in ("anthropic", "openai-chat", "gemini"):
        refused = ask(gateway, BY_NAME[client], "m2", headers=headers)
        assert refused.status == 403
        assert "[prices]" in reported(BY_NAME[client], refused).message
    assert not upstream.requests


@pytest.mark.parametrize("name", ["poor", "counted"])
def test_a_route_falls_back_to_a_model_without_a_price_only_without_a_budget_of_money(
    stage: Any, name: str
) -> None:
    """What it costs could not be charged."""
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(error=404))
    headers = {"authorization": f"Bearer {key_of(name)}"}
    answered = ask(gateway, BY_NAME["openai-chat"], "falls", headers=headers)
    assert answered.status == (404 if name == "poor" else 200)
    assert len(upstream.requests) == (1 if name == "poor" else 2)


@pytest.mark.parametrize("name", ["poor", "counted"])
def test_a_fallback_that_is_dearer_is_charged_at_its_own_price(stage: Any, name: str) -> None:
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(error=404))
    before = spent(gateway, "budget:poor:cost:2026-11-15")
    headers = {"authorization": f"Bearer {key_of(name)}"}
    answered = ask(gateway, BY_NAME["openai-chat"], "dearer", headers=headers)
    usage = answered.json["usage"]
    price = 5 * usage["prompt_tokens"] + 50 * usage["completion_tokens"] if name == "poor" else 0
    wait_until(lambda: spent(gateway, "budget:poor:cost:2026-11-15") == before + price)
