"""Two gateways on one store: limits, cool-downs and revoked keys hold over both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask, provider, reported, start
from tests.gateway.state.test_admin import SECRET, admin, bearer
from tests.waiting import wait_until
from wireglot.stores import bounded
from wireglot.stores.memory import MemoryCounters
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

try:
    from tests.stores import servers
except ImportError:  # the fleet's clients are not installed
    HAVE_FLEET = False
else:
    HAVE_FLEET = servers.HAVE_POSTGRES and servers.HAVE_REDIS

CHAT = BY_NAME["openai-chat"]
POOL = 'api_keys = ["first-key-0001", "second-key-0002"]\nretry = { retries = 1, base = 0.001 }\n'
Pair = tuple[LiveGateway, LiveGateway, ScriptedUpstream]


def toml(upstream: ScriptedUpstream, store: str) -> str:
    """`workers`: so their counters are in a file beside the store, as those of two workers are."""
    text = f'{store}[server]\nworkers = 2\nadmin_secret = "{SECRET}"\n[limits]\nauth_failures = 1000000\n'
    text += provider("mine", upstream, "openai-chat", POOL) + '[models]\n"m*" = "mine/m*"\n'
    limits = {
        "all": "",
        "minute": "requests_per_minute = 3",
        "two": "concurrent = 2",
        "day": "tokens_per_day = 40",
    }
    for name, line in limits.items():
        digest = hashlib.sha256(name.encode()).hexdigest()
        text += f'[keys.{name}]\nhash = "sha256:{digest}"\n{line}\n'
    return text


@contextmanager
def two(folder: Path, store: str = "") -> Iterator[Pair]:
    with ExitStack() as stack:
        upstream = stack.enter_context(ScriptedUpstream())
        one, other = (
            stack.enter_context(LiveGateway(toml(upstream, store), folder=folder)) for _ in range(2)
        )
        assert not isinstance(one.process.state.counters, MemoryCounters)
        yield one, other, upstream


@pytest.fixture(
    scope="module",
    params=[
        "workers",
        pytest.param(
            "fleet", marks=pytest.mark.skipif(not HAVE_FLEET, reason="no Redis and PostgreSQL here")
        ),
    ],
)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    store = ""
    if request.param == "fleet":
        store = f'[store]\nurl = "{servers.postgres_url()}"\nshared = "{servers.redis_url()}"\n'
    with pytest.MonkeyPatch.context() as patch, two(tmp_path_factory.mktemp("fleet"), store) as both:
        # On a busy machine a server can take longer than requests wait for it, and each gateway then counts for itself.
        patch.setattr(bounded, "SHORT_SECONDS", 5.0)
        yield both


def test_a_rate_holds_over_both(pair: Pair) -> None:
    one, other, _ = pair
    statuses = [ask((one, other)[turn % 2], CHAT, "m1", headers=bearer("minute")).status for turn in range(6)]
    assert statuses == [200, 200, 200, 429, 429, 429]


def test_places_are_shared_by_both(pair: Pair) -> None:
    one, other, upstream = pair
    upstream.reset()
    upstream.otherwise = Behaviour(fault="stall")
    calls = [start(gateway, CHAT, "m1", headers=bearer("two")) for gateway in (one, other)]
    upstream.wait_for(2)
    for gateway in (one, other):
        refused = ask(gateway, CHAT, "m1", headers=bearer("two"))
        assert refused.status == 429
        assert "maximum of concurrent requests (2)" in reported(CHAT, refused).message
    calls[0].leave(reset=True)
    upstream.reset()
    wait_until(lambda: ask(other, CHAT, "m1", headers=bearer("two")).status == 200)
    calls[1].leave(reset=True)


def test_a_budget_is_spent_by_both_together(pair: Pair) -> None:
    one, other, upstream = pair
    upstream.reset()
    assert ask(one, CHAT, "m1", headers=bearer("day"), max_tokens=5).status == 200
    wait_until(lambda: ask(other, CHAT, "m1", headers=bearer("day"), max_tokens=5).status == 429)
    assert ask(one, CHAT, "m1", headers=bearer("day"), max_tokens=5).status == 429


def test_a_key_made_at_one_opens_at_the_other_and_a_revoked_one_does_not(pair: Pair) -> None:
    """FAULTS 90, THREATS T6"""
    one, other, upstream = pair
    upstream.reset()
    key = admin(one, "POST", "/keys", {"name": "wanderer"}).document["key"]
    wait_until(lambda: ask(other, CHAT, "m1", headers=bearer(key)).status == 200)
    admin(other, "DELETE", "/keys/wanderer")
    wait_until(lambda: ask(one, CHAT, "m1", headers=bearer(key)).status == 401)


def test_a_providers_key_that_one_found_exhausted_rests_at_the_other(pair: Pair) -> None:
    """R-DD-07"""
    one, other, upstream = pair
    upstream.reset()
    upstream.next(Behaviour(error=429, retry_after=60))
    assert ask(one, CHAT, "m7", headers=bearer("all")).status == 200
    tired, fresh = (request.headers["authorization"] for request in upstream.requests)
    health: Any = other.process.gateway.health
    wait_until(lambda: any(model == "m7" for _, _, model in health._cool))
    upstream.reset()
    for number in range(12):
        assert ask(other, CHAT, "m7", f"conversation {number}", headers=bearer("all")).status == 200
    assert {request.headers["authorization"] for request in upstream.requests} == {fresh}
    assert tired != fresh


def test_an_account_that_one_found_empty_does_not_look_busy_at_the_other(pair: Pair) -> None:
    one, other, upstream = pair
    upstream.reset()
    upstream.next(Behaviour(error=402), Behaviour(error=402))
    assert ask(one, CHAT, "m8", headers=bearer("all")).status == 402
    health: Any = other.process.gateway.health
    wait_until(lambda: sum(model == "m8" for _, _, model in health._spent) == 2)
    refused = ask(other, CHAT, "m8", headers=bearer("all"))
    assert (refused.status, reported(CHAT, refused).type) == (402, "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"
    assert len(upstream.requests) == 2


def test_both_know_that_they_are_two(pair: Pair) -> None:
    one, other, _ = pair
    wait_until(lambda: one.process.state.sharing.peers == other.process.state.sharing.peers == 2)
    assert admin(one, "GET", "/store").document["processes"] == 2


def test_a_gateway_that_starts_again_goes_on_from_what_was_spent(tmp_path: Path) -> None:
    """Its keys, too."""
    with two(tmp_path) as (one, _, _upstream):
        key = admin(one, "POST", "/keys", {"name": "lasting", "requests_per_minute": 1}).document["key"]
        assert [ask(one, CHAT, "m1", headers=bearer(key)).status for _ in range(2)] == [200, 429]
    with two(tmp_path) as (one, other, _upstream):
        assert {ask(gateway, CHAT, "m1", headers=bearer(key)).status for gateway in (one, other)} == {429}


def test_wiping_a_caller_reaches_the_vault_wherever_it_is(pair: Pair) -> None:
    one, other, _ = pair
    vault = one.process.state.vault
    for caller in ("gone", "stays"):
        one.call(vault.keep(caller, {"name": b"value"}, 60))
    removed = admin(other, "DELETE", "/callers/gone/data").document["removed"]
    assert removed["vault"] == 1
    assert one.call(vault.recall("gone", ["name"])) == {}
    assert one.call(vault.recall("stays", ["name"])) == {"name": b"value"}
