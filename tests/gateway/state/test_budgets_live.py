"""Budgets as Claude Code is informed of them. The users and figures are those of the recorded answers of
`claude gateway` 2.1.326: a monthly budget of $10 with 10, 81, 96 and 120 % used, and so on."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, Answered, ask, post, provider, start
from tests.gateway.state.quotas_kit import Down
from tests.waiting import DEADLINE_SECONDS
from wireglot.stores.records import UsageRow
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import decode, encode

NOON: Final = 1_794_744_000.0
"""Sunday 2026-11-15 12:00 UTC"""
TOMORROW: Final = "1794787200"
DECEMBER: Final = "1796083200"
CLAUDE: Final = BY_NAME["anthropic"]
UNIFIED: Final = "anthropic-ratelimit-unified-"

KEYS: Final = {
    "free": "",
    "light": "cost_per_month = 10",
    "warned": "cost_per_month = 10",
    "edge": "cost_per_month = 10",
    "nearly": "cost_per_month = 10",
    "full": "cost_per_month = 10",
    "spent": "cost_per_month = 10",
    "twice": "cost_per_month = 50\ncost_per_day = 10",
    "daily": "cost_per_month = 50\ncost_per_day = 10",
    "words": "tokens_per_day = 1000000",
    "pooled": 'cost_per_month = 50\ngroup = "pool"',
    "sharing": 'group = "open"',
}
USED: Final = {
    "light:cost:2026-11": 1.00,
    "warned:cost:2026-11": 8.10,
    "edge:cost:2026-11": 7.50,
    "nearly:cost:2026-11": 9.60,
    "full:cost:2026-11": 9.9999,
    "spent:cost:2026-11": 12.00,
    "twice:cost:2026-11": 8.10,
    "twice:cost:2026-11-15": 8.10,
    "daily:cost:2026-11": 12.00,
    "daily:cost:2026-11-15": 12.00,
    "words:tokens:2026-11-15": 0.90,
    "pooled:cost:2026-11": 12.00,
    "group:pool:cost:2026-11": 12.00,
    "group:open:cost:2026-11": 5.00,
}
"""In units of the currency."""


def toml(upstream: ScriptedUpstream) -> str:
    text = provider("claude", upstream, "anthropic") + provider("mine", upstream, "openai-chat")
    text += '[models]\n"m*" = "claude/m*"\n"o*" = "mine/o*"\ndear = "claude/dear"\n'
    text += '[prices]\n"claude/m*" = { input = 0.001, output = 0.001 }\n'
    text += '"claude/dear" = { input = 0, output = 1000 }\n"mine/o*" = { input = 0.001, output = 0.001 }\n'
    text += "[groups.pool.shared]\ncost_per_month = 10\n[groups.open.shared]\ncost_per_month = 10\n"
    for name, limits in KEYS.items():
        text += f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(name.encode()).hexdigest()}"\n{limits}\n'
    return text


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[LiveGateway, ScriptedUpstream, Down]]:
    with ScriptedUpstream() as upstream, LiveGateway(toml(upstream)) as gateway:
        state = gateway.process.state
        counters = Down(wall=lambda: NOON)
        state.quotas.wall = lambda: NOON
        for reader in (state.quotas, state.quotas.watch, state.quotas.budgets):
            reader._counters = counters
        yield gateway, upstream, counters


@pytest.fixture(autouse=True)
def _fresh(stage: Any) -> None:
    """Every key has used what it has used, whichever test ran before."""
    gateway, upstream, counters = stage
    upstream.reset()
    gateway.call(_wait(gateway))
    counters.down = False
    gateway.process.state.quotas._rest_until = float("-inf")
    for name, used in USED.items():
        until = int(DECEMBER) if name.endswith("2026-11") else int(TOMORROW)
        counters._budgets[f"budget:{name}"] = (round(used * 1_000_000), until * 1000)


async def _wait(gateway: LiveGateway) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while gateway.process.state.quotas.settlements.work or gateway.process.gateway.in_flight:
            await asyncio.sleep(0)


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}"}


def asked(stage: Any, name: str, **more: Any) -> Answered:
    return ask(stage[0], CLAUDE, more.pop("model", "m1"), headers=bearer(name), **more)


def unified(answered: Answered) -> dict[str, str]:
    return {
        name.removeprefix(UNIFIED): value
        for name, value in answered.headers.items()
        if name.startswith("anthropic-ratelimit-")
    }


def allowed(status: str, utilization: str, reset: str, threshold: str = "") -> dict[str, str]:
    found = {
        "status": status,
        "representative-claim": "overage",
        "overage-status": status,
        "overage-utilization": utilization,
        "reset": reset,
        "overage-reset": reset,
    }
    return {**found, "overage-surpassed-threshold": threshold} if threshold else found


ALLOWED: Final = {
    "free": {},
    "light": allowed("allowed", "0.1", DECEMBER),
    "edge": allowed("allowed", "0.75", DECEMBER),
    "warned": allowed("allowed_warning", "0.81", DECEMBER, "0.75"),
    "nearly": allowed("allowed_warning", "0.96", DECEMBER, "0.95"),
    "full": allowed("allowed_warning", "0.99", DECEMBER, "0.95"),
    "twice": allowed("allowed_warning", "0.81", TOMORROW, "0.75"),
    "words": allowed("allowed_warning", "0.9", TOMORROW, "0.75"),
    "sharing": allowed("allowed", "0.5", DECEMBER),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["m1", "o1"])
def test_a_good_answer_reports_the_fullest_budget(stage: Any, stream: bool, model: str) -> None:
    """Passed through, translated, whole and streamed."""
    found = {}
    for name in ALLOWED:
        answered = asked(stage, name, stream=stream, model=model)
        assert answered.status == 200, answered
        found[name] = unified(answered)
    assert found == ALLOWED


def test_requests_under_way_are_not_shown_as_used(stage: Any) -> None:
    """What they have reserved of the budget is most of it."""
    gateway, upstream, _ = stage
    opened = threading.Event()
    upstream.next(Behaviour(gate=opened))
    first = start(gateway, CLAUDE, "dear", headers=bearer("light"), max_tokens=5000)
    try:
        upstream.wait_for(1)
        assert unified(asked(stage, "light")) == ALLOWED["light"]
    finally:
        opened.set()
        assert first.rest().status == 200


def test_the_quota_of_the_operators_account_is_not_the_users(stage: Any) -> None:
    gateway, upstream, _ = stage
    theirs = (
        ("anthropic-ratelimit-requests-remaining", "3"),
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-5h-utilization", "0.9"),
        ("content-type", "application/json"),
    )
    answer = ask(gateway, CLAUDE, "m1", headers=bearer("free")).body
    for name, expected in (("free", {}), ("light", ALLOWED["light"])):
        upstream.next(Behaviour(body=answer, headers=theirs))
        assert unified(asked(stage, name)) == expected


def test_nothing_else_reports_a_budget(stage: Any) -> None:
    """Neither a count nor an error, nor an answer in another dialect."""
    gateway, upstream, _ = stage
    counted = post(
        gateway.port, "/v1/messages/count_tokens", encode(CLAUDE.body("o1", "hi", False)), bearer("warned")
    )
    assert (counted.status, unified(counted)) == (200, {})
    upstream.next(Behaviour(error=400))
    failed = asked(stage, "warned")
    assert (failed.status, unified(failed)) == (400, {})
    chat = ask(gateway, BY_NAME["openai-chat"], "o1", headers=bearer("warned"))
    assert (chat.status, unified(chat)) == (200, {})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "reset", "period", "scope"),
    [
        ("spent", DECEMBER, "monthly", ""),
        ("daily", TOMORROW, "daily", ""),
        ("pooled", DECEMBER, "monthly", "group_pool"),
    ],
)
def test_a_spent_budget_is_refused_as_the_contract_says(
    stage: Any, name: str, reset: str, period: str, scope: str, stream: bool
) -> None:
    refused = asked(stage, name, stream=stream)
    assert refused.status == 429
    expected = {
        "status": "rejected",
        "reset": reset,
        "overage-reset": reset,
        "overage-utilization": "1",
        "overage-surpassed-threshold": "1",
        "overage-period": period,
        "overage-disabled-reason": "org_spend_cap_reached",
    }
    assert unified(refused) == ({**expected, "overage-scope": scope} if scope else expected)
    assert refused.headers["retry-after"] == str(int(reset) - int(NOON))
    assert refused.headers["x-should-retry"] == "false"
    assert refused.json["type"] == "error"
    error = refused.json["error"]
    assert error["type"] == "billing_error"
    whose, span = "group pool" if scope else "this key", {"daily": "day", "monthly": "month"}[period]
    assert error["message"].startswith(
        f"{whose} has used its budget of 10.00 USD a {span}; it resets at 2026-1"
    )
    assert not stage[1].requests, "nobody was asked"


def test_a_spent_budget_lets_counts_and_lists_through(stage: Any) -> None:
    gateway = stage[0]
    body = encode(CLAUDE.body("o1", "hi", False))
    assert post(gateway.port, "/v1/messages/count_tokens", body, bearer("spent")).status == 200
    assert page(gateway, "/v1/models", "spent")[0] == 200


def test_counters_that_cannot_be_read_refuse_without_a_retry(stage: Any) -> None:
    gateway, _, counters = stage
    counters.down = True
    refused = asked(stage, "light")
    assert refused.status == 429
    assert unified(refused) == {"overage-disabled-reason": "fetch_error"}
    assert refused.headers["x-should-retry"] == "false"
    assert refused.json["error"]["message"] == "the budget of this key cannot be checked at the moment"
    assert asked(stage, "free").status == 200, "who has no budget is not affected"
    chat = ask(gateway, BY_NAME["openai-chat"], "o1", headers=bearer("light"))
    assert (chat.status, chat.headers["retry-after"]) == (429, "2")
    assert "x-should-retry" not in chat.headers


def page(gateway: LiveGateway, path: str, name: str) -> tuple[int, dict[str, str], Any]:
    request = urllib.request.Request(f"{gateway.url}{path}", headers=bearer(name) if name else {})
    try:
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, decode(answer.read())
    except urllib.error.HTTPError as refused:
        return refused.code, {k.lower(): v for k, v in refused.headers.items()}, decode(refused.read())


def usage(limit: int, used: int, percent: int) -> dict[str, Any]:
    return {
        "is_enabled": True,
        "monthly_limit": limit,
        "used_credits": used,
        "utilization": percent,
        "currency": "USD",
    }


def row(period: str, percent: int, severity: str, *, active: bool = True) -> dict[str, Any]:
    ends = {"daily": "2026-11-16T00:00:00.000Z", "monthly": "2026-12-01T00:00:00.000Z"}
    return {
        "kind": "spend",
        "group": period,
        "percent": percent,
        "resets_at": ends[period],
        "severity": severity,
        "is_active": active,
    }


USAGE: Final = {
    "light": (usage(1000, 100, 10), [row("monthly", 10, "normal")]),
    "warned": (usage(1000, 810, 81), [row("monthly", 81, "warning")]),
    "nearly": (usage(1000, 960, 96), [row("monthly", 96, "critical")]),
    "spent": (usage(1000, 1200, 120), [row("monthly", 120, "critical")]),
    "twice": (
        usage(1000, 810, 81),
        [row("daily", 81, "warning"), row("monthly", 16, "normal", active=False)],
    ),
    "daily": (
        usage(1000, 1200, 120),
        [row("daily", 120, "critical"), row("monthly", 24, "normal", active=False)],
    ),
    # Its own budget, as in the reference, although the group's is what blocks it.
    "pooled": (usage(5000, 1200, 24), [row("monthly", 24, "normal")]),
    "sharing": (usage(1000, 500, 50), [row("monthly", 50, "normal")]),
}


def test_the_usage_page_has_the_amounts(stage: Any) -> None:
    found = {}
    for name in USAGE:
        status, headers, document = page(stage[0], "/api/oauth/usage", name)
        assert (status, headers["cache-control"]) == (200, "no-store")
        found[name] = (document["extra_usage"], document["limits"])
        assert set(document) == {"extra_usage", "limits"}
    assert found == USAGE


def test_the_usage_page_without_a_budget_has_what_was_spent(stage: Any) -> None:
    gateway = stage[0]
    day = 86400

    def spent(id: str, ago: float, cost: int, caller: str = "free") -> UsageRow:
        return UsageRow(id, caller, int((NOON - ago) * 1000), outcome="ok", finished=1, cost=cost)

    rows = [
        spent("a", 60, 129_999),
        spent("b", 1 * day, 100_000),
        spent("c", 7 * day, 1_000_000),
        spent("d", 20 * day, 10_000_000),
        spent("e", 60, 10_000_000, "light"),
    ]
    gateway.call(gateway.process.state.engine.ledger.apply(rows))
    _, _, document = page(gateway, "/api/oauth/usage", "free")

    def open_end(cents: int) -> dict[str, Any]:
        return {"limit": None, "used_credits": cents, "utilization": None}

    assert document == {
        "extra_usage": {
            "is_enabled": True,
            "monthly_limit": None,
            "used_credits": 122,
            "utilization": None,
            "currency": "USD",
            "daily": open_end(12),
            "weekly": open_end(22),
        },
        "limits": [],
    }
    _, _, tokens = page(gateway, "/api/oauth/usage", "words")
    assert tokens["limits"] == [row("daily", 90, "warning", active=False)]
    assert tokens["extra_usage"]["monthly_limit"] is None


def test_the_usage_page_needs_a_key_and_the_counters(stage: Any) -> None:
    gateway, _, counters = stage
    for name in ("", "wrong"):
        status, headers, document = page(gateway, "/api/oauth/usage", name)
        assert (status, headers["x-should-retry"]) == (401, "false")
        assert document["error"]["type"] == "authentication_error"
    counters.down = True
    assert page(gateway, "/api/oauth/usage", "light")[0] == 503
    assert page(gateway, "/api/oauth/usage", "free")[0] == 200
