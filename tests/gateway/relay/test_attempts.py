"""Attempts at providers: what is sent, what is tried again and when, and what becomes of failures."""

from __future__ import annotations

import asyncio
import hashlib
from itertools import pairwise
from typing import Any

import pytest

from tests.gateway.offline import (
    CHAT,
    CHAT_PATH,
    MESSAGE,
    MESSAGES_PATH,
    Got,
    Offline,
    Said,
    asked,
)
from tests.tiers import rows
from wireglot.gateway.request.ending import Ending
from wireglot.gateway.trace.recording import Recording
from wireglot.http.transport import Timeouts, TransportFault, TransportProblem
from wireglot_core.wire.json import encode

CHAT_URL, CLAUDE_URL = "https://chat.example/v1", "https://claude.example"
KEY = "sk-of-the-client-0123456789"
DIGEST = f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"


def chat(**more: Any) -> dict[str, Any]:
    keys = {} if "api_keys" in more else {"api_key": "key-one"}
    return {"dialect": "openai-chat", "base_url": CHAT_URL, **keys, **more}


def claude(**more: Any) -> dict[str, Any]:
    return {"dialect": "anthropic", "base_url": CLAUDE_URL, "api_key": "key-claude", **more}


def refusal(status: int, message: str = "no", **headers: str) -> Said:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(status, {"error": {"message": message, "type": "some_error"}}, headers=named)


def errors(offline: Offline) -> dict[tuple[str, ...], float]:
    return {key: cell.value for key, cell in offline.observer.metrics.upstream_errors._cells.items()}


def test_a_request_passes_with_the_models_own_name_and_its_answer_unchanged() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        said = Said(body=CHAT)
        offline.upstream.say(said)
        got = offline.ask(CHAT_PATH, asked(), user_agent="my-agent/1")
    (sent,) = offline.upstream.sent
    assert (sent.method, sent.url) == ("POST", f"{CHAT_URL}/chat/completions")
    assert offline.upstream.json == asked("m")
    assert offline.upstream.headers == {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        "user-agent": "my-agent/1",
        "authorization": "Bearer key-one",
    }
    assert (got.status, got.json, got.headers["x-wireglot-route"]) == (200, CHAT, "mine/m")
    assert (said.limit, said.aborted) == (offline.settings.limits.response, False)
    assert got.record is not None
    assert (got.record.attempts, got.record.passthrough, got.record.upstream_url) == (1, True, sent.url)
    assert (got.record.usage_source, got.record.stop) == ("provider", "end")
    assert not errors(offline)


@rows(
    ("timeout", "first_byte", "total"),
    [("", 300.0, 3600.0), ("7", 7.0, 7.0), ("1000", 300.0, 1000.0), ("3600", 300.0, 3600.0)],
)
def test_a_caller_can_shorten_the_timeouts_of_a_provider(
    timeout: str, first_byte: float, total: float
) -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(body=CHAT))
        headers = {"x_wireglot_timeout": timeout} if timeout else {}
        assert offline.ask(CHAT_PATH, asked(), **headers).status == 200
    assert offline.upstream.timeouts == [Timeouts(first_byte=first_byte, total=total)]


RETURNED = {
    "x-ratelimit-remaining-tokens": "7",
    "openai-processing-ms": "12",
    "anthropic-ratelimit-requests-limit": "4",
    "x-request-id": "upstream-1",
    "msh-request-id": "upstream-2",
    "set-cookie": "a=b",
    "server": "nginx",
}


def test_some_headers_of_a_provider_go_on_to_the_client() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(Said(body=CHAT, headers=RETURNED))
        got = offline.ask(CHAT_PATH, asked())
    passed = {name: got.headers[name] for name in RETURNED if name in got.headers}
    assert passed.pop("x-request-id") == got.headers["x-wireglot-request-id"]
    assert set(passed) == {
        "x-ratelimit-remaining-tokens",
        "openai-processing-ms",
        "anthropic-ratelimit-requests-limit",
    }
    assert got.record is not None
    assert got.record.upstream_request_id == "upstream-1"


def test_callers_with_a_key_do_not_see_the_quota_of_the_gateways_account() -> None:
    with Offline(providers={"mine": chat()}, keys={"team": DIGEST}) as offline:
        offline.upstream.say(Said(body=CHAT, headers={**RETURNED, "x-request-id": ""}))
        got = offline.ask(CHAT_PATH, asked(), authorization=f"Bearer {KEY}")
    assert got.headers["openai-processing-ms"] == "12"
    assert "anthropic-ratelimit-requests-limit" not in got.headers


def test_a_secret_in_a_header_of_the_provider_is_hidden() -> None:
    with Offline(providers={"mine": chat(api_key="a-secret-key-0123456789")}) as offline:
        offline.upstream.say(Said(body=CHAT, headers={"x-ratelimit-of": "a-secret-key-0123456789"}))
        got = offline.ask(CHAT_PATH, asked())
    assert "0123456789" not in got.headers["x-ratelimit-of"]


# What is tried again, and when.


def times(offline: Offline) -> list[float]:
    """Between attempts."""
    at = offline.upstream.times
    return [later - earlier for earlier, later in pairwise(at)]


def test_a_failing_provider_is_called_three_times_with_growing_waits() -> None:
    with Offline(providers={"mine": chat(retry={"base": 4.0})}) as offline:
        offline.upstream.say(*(refusal(502, f"request {number} failed") for number in range(9)))
        got = offline.ask(CHAT_PATH, asked())
    assert (got.status, got.json["error"]["message"]) == (502, "request 2 failed")
    first, second = times(offline)
    assert 0 <= first <= 8
    assert 0 <= second <= 8  # the cap
    assert errors(offline) == {("mine", "server"): 3}
    assert got.record is not None
    assert (got.record.attempts, got.record.error_message) == (3, "mine: request 2 failed")


def test_a_wait_that_the_provider_asks_for_is_kept() -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(refusal(429, retry_after="5"), Said(body=CHAT))
        got = offline.ask(CHAT_PATH, asked())
    (waited,) = times(offline)
    assert got.status == 200
    assert 5 <= waited <= 5.25
    assert errors(offline) == {("mine", "rate_limit"): 1}


@rows(("wait", "reported"), [("21", "21"), ("3600", "120")])
def test_a_longer_wait_is_reported_at_once(wait: str, reported: str) -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(refusal(429, retry_after=wait))
        got = offline.ask(CHAT_PATH, asked())
        assert (got.status, got.headers["retry-after"]) == (429, reported)
        assert (len(offline.upstream.sent), offline.seconds) == (1, 0.0)
        # The next request finds the only key cooling down, and no one is called.
        again = offline.ask(CHAT_PATH, asked())
        assert (again.status, len(offline.upstream.sent)) == (429, 1)
        assert "mine requested a wait" in again.json["error"]["message"]
        assert again.headers["retry-after"] == reported


def test_the_only_key_is_waited_for_where_its_wait_is_short() -> None:
    with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
        offline.upstream.say(refusal(429, retry_after="9"), Said(body=CHAT))
        assert offline.ask(CHAT_PATH, asked()).status == 429
        assert offline.ask(CHAT_PATH, asked()).status == 200
    (waited,) = times(offline)
    assert 9 <= waited < 9.1


def test_another_target_is_called_instead_of_waiting_for_a_key() -> None:
    tables = {"providers": {"mine": chat(), "other": chat(base_url="https://o.example/v1")}}
    with Offline(**tables, models={"m": ["mine/m", "other/m"]}) as offline:
        offline.upstream.say(refusal(429, retry_after="30"), Said(body=CHAT), Said(body=CHAT))
        first, second = (offline.ask(CHAT_PATH, asked("m")) for _ in range(2))
    assert [sent.url for sent in offline.upstream.sent] == [
        f"{CHAT_URL}/chat/completions",
        "https://o.example/v1/chat/completions",
        "https://o.example/v1/chat/completions",
    ]
    for got in (first, second):
        assert got.status == 200
        assert got.record is not None
        assert got.record.fallbacks == ["mine/m"]
    assert offline.seconds == 0


@rows(
    ("status", "calls", "falls_back"),
    [
        (400, 1, False),
        (413, 1, False),
        (401, 1, True),
        (402, 1, True),
        (403, 1, True),
        (404, 1, True),
        (500, 2, True),
        (501, 1, True),
        (503, 3, True),
    ],
)
def test_which_refusals_are_tried_again_and_elsewhere(status: int, calls: int, falls_back: bool) -> None:
    tables = {"providers": {"mine": chat(), "other": claude()}}
    with Offline(**tables, models={"m": ["mine/m", "other/m"]}) as offline:
        offline.upstream.say(*[refusal(status)] * calls, Said(body=MESSAGE))
        got = offline.ask(CHAT_PATH, asked("m"))
    hosts = [sent.url.split("/")[2] for sent in offline.upstream.sent]
    assert hosts == ["chat.example"] * calls + ["claude.example"] * falls_back
    assert got.status == (200 if falls_back else status)


def test_the_error_of_the_last_target_is_reported() -> None:
    tables = {"providers": {"mine": chat(), "other": chat()}}
    with Offline(**tables, models={"m": ["mine/m", "other/m"]}) as offline:
        offline.upstream.say(refusal(404, "first"), refusal(404, "second"))
        got = offline.ask(CHAT_PATH, asked("m"))
    assert got.record is not None
    assert (got.status, got.record.fallbacks, got.record.provider) == (404, ["mine/m"], "other")
    assert got.record.error_message == "other: second (a list of models: GET /v1/models)"


def test_the_same_internal_error_twice_is_taken_for_a_refusal_of_the_request() -> None:
    """It is not tried a third time, and does not count against the provider."""
    with Offline(providers={"mine": chat(breaker={"consecutive": 1})}) as offline:
        offline.upstream.say(refusal(500, "boom"))
        for number in range(1, 4):
            assert offline.ask(CHAT_PATH, asked()).status == 500
            assert len(offline.upstream.sent) == 2 * number


# Keys.


def used(offline: Offline) -> list[str]:
    return [dict(sent.headers)["authorization"].removeprefix("Bearer ") for sent in offline.upstream.sent]


TWO_KEYS = {"api_keys": ["key-one", "key-two"]}


@rows(("status", "headers"), [(401, {}), (402, {}), (403, {}), (429, {"retry_after": "30"})])
def test_another_key_is_used_at_once_and_by_later_requests(status: int, headers: dict[str, str]) -> None:
    with Offline(providers={"mine": chat(**TWO_KEYS)}) as offline:
        offline.upstream.say(refusal(status, **headers), Said(body=CHAT))
        for _ in range(2):
            assert offline.ask(CHAT_PATH, asked()).status == 200
        first, *others = used(offline)
        assert len(others) == 2
        assert {first, *others} == {"key-one", "key-two"}
        assert others[0] == others[1] != first
        assert offline.seconds == 0


def test_a_provider_whose_keys_are_all_rejected_is_not_called_for_a_minute() -> None:
    with Offline(providers={"mine": chat(**TWO_KEYS)}) as offline:
        offline.upstream.say(refusal(401, "bad key"))
        for _ in range(2):
            got = offline.ask(CHAT_PATH, asked())
            assert (got.status, got.json["error"]["code"]) == (502, "upstream_auth_failed")
            assert "bad key" in got.json["error"]["message"]
            assert len(offline.upstream.sent) == 2
        offline.call(asyncio.sleep(60.1))
        offline.upstream.say(Said(body=CHAT))
        assert offline.ask(CHAT_PATH, asked()).status == 200


def test_a_conversation_stays_with_its_key() -> None:
    """Its cache is there."""
    with Offline(providers={"mine": chat(api_keys=[f"key-{n}" for n in range(4)])}) as offline:
        offline.upstream.say(Said(body=CHAT))
        for text in "abcdefgh":
            offline.ask(CHAT_PATH, asked(text=text), x_session_id=text)
            offline.ask(CHAT_PATH, asked(text=text), x_session_id=text)
    keys = used(offline)
    assert keys[::2] == keys[1::2]
    assert len(set(keys)) > 1


# The circuit breaker.


def test_a_provider_that_fails_is_not_called_until_one_request_has_succeeded() -> None:
    table = chat(breaker={"consecutive": 2, "probe_after": 5.0, "probe_cap": 8.0}, retry={"retries": 0})
    with Offline(providers={"mine": table}) as offline:
        sent = offline.upstream.sent
        offline.upstream.say(refusal(503))
        assert [offline.ask(CHAT_PATH, asked()).status for _ in range(2)] == [503, 503]
        resting = offline.ask(CHAT_PATH, asked())
        assert (resting.status, resting.json["error"]["code"]) == (503, "upstream_unavailable")
        assert "circuit breaker open for mine/m" in resting.json["error"]["message"]
        assert (resting.headers["retry-after"], len(sent)) == ("5", 2)
        offline.call(asyncio.sleep(5.0))
        offline.ask(CHAT_PATH, asked())  # a probe, which fails: the pause is longer
        assert len(sent) == 3
        assert offline.ask(CHAT_PATH, asked()).headers["retry-after"] == "8"
        offline.call(asyncio.sleep(8.0))
        offline.upstream.say(Said(body=CHAT))
        assert [offline.ask(CHAT_PATH, asked()).status for _ in range(2)] == [200, 200]
        assert offline.ask(CHAT_PATH, asked("mine/other")).status == 200


def test_a_probe_is_not_tried_again() -> None:
    table = chat(breaker={"consecutive": 1, "probe_after": 5.0}, retry={"retries": 2, "base": 0.0})
    with Offline(providers={"mine": table}) as offline:
        offline.upstream.say(refusal(503))
        offline.ask(CHAT_PATH, asked())
        assert len(offline.upstream.sent) == 3
        offline.call(asyncio.sleep(5.0))
        offline.ask(CHAT_PATH, asked())
        assert len(offline.upstream.sent) == 4


def test_one_probe_at_a_time() -> None:
    table = chat(breaker={"consecutive": 1, "probe_after": 5.0}, retry={"retries": 0})
    with Offline(providers={"mine": table}) as offline:
        offline.upstream.say(refusal(503), Said(body=CHAT))
        offline.ask(CHAT_PATH, asked())
        offline.call(asyncio.sleep(5.0))

        async def both() -> list[Got]:
            return await asyncio.gather(*(offline.asking(CHAT_PATH, asked()) for _ in range(2)))

        assert sorted(got.status for got in offline.call(both())) == [200, 503]


@rows(
    ("status", "opens"),
    [(400, False), (401, False), (404, False), (429, False), (501, False), (502, True), (503, True)],
)
def test_only_failures_of_the_provider_open_the_breaker(status: int, opens: bool) -> None:
    table = chat(breaker={"consecutive": 1}, retry={"retries": 0})
    with Offline(providers={"mine": table}) as offline:
        offline.upstream.say(refusal(status))
        offline.ask(CHAT_PATH, asked())
        assert offline.gateway.health.breakers["mine/m"].is_open is opens


def test_a_timeout_that_the_caller_chose_says_nothing_about_the_provider() -> None:
    late = TransportFault("first_byte_timeout", "the upstream did not answer in time")
    for given, opens in (("9", False), ("300", True), ("400", True)):
        with Offline(providers={"mine": chat(breaker={"consecutive": 1})}) as offline:
            offline.upstream.say(late)
            got = offline.ask(CHAT_PATH, asked(), x_wireglot_timeout=given)
            assert got.status == 504
            assert offline.gateway.health.breakers["mine/m"].is_open is opens, given


def test_clients_of_a_failing_provider_are_asked_to_wait_about_as_long_as_it_has_failed() -> None:
    table = chat(breaker={"consecutive": 9}, retry={"retries": 0})
    with Offline(providers={"mine": table}) as offline:
        offline.upstream.say(refusal(503))
        waits = []
        for _ in range(2):
            waits.append(float(offline.ask(CHAT_PATH, asked()).headers["retry-after"]))
            offline.call(asyncio.sleep(20))
    assert 1 <= waits[0] <= 2
    assert 20 <= waits[1] <= 30


# Places at a provider.


def test_requests_beyond_the_concurrency_of_a_provider_wait_for_a_place() -> None:
    seen: list[tuple[int, int]] = []
    with Offline(providers={"mine": chat(concurrency=1)}, limits={"queue_time": 9}) as offline:
        offline.upstream.say(Said(body=CHAT))
        relay = offline.gateway.relay

        async def slow(*_: object) -> Any:
            await asyncio.sleep(1)
            seen.append((relay.inside, relay.waiting))
            return Said(body=CHAT)

        offline.upstream.respond = slow

        async def all_of_them() -> list[Got]:
            return await asyncio.gather(*(offline.asking(CHAT_PATH, asked()) for _ in range(3)))

        assert [got.status for got in offline.call(all_of_them())] == [200, 200, 200]
        assert seen[0] == (1, 2)
        assert (relay.inside, relay.waiting, seen[-1]) == (0, 0, (1, 0))


def test_a_full_queue_is_reported_and_sends_to_the_next_target() -> None:
    tables = {
        "providers": {"mine": chat(concurrency=1), "other": chat(base_url="https://o.example/v1")},
        "limits": {"queue": 0},
        "models": {"both": ["mine/m", "other/m"]},
    }
    with Offline(**tables) as offline:
        offline.upstream.say(Said(body=CHAT))

        async def all_of_them() -> list[Got]:
            models = ("mine/m", "mine/m", "both")
            return await asyncio.gather(*(offline.asking(CHAT_PATH, asked(model)) for model in models))

        first, second, third = offline.call(all_of_them())
    assert (first.status, second.status, third.status) == (200, 503, 200)
    assert third.record is not None
    assert third.record.fallbacks == ["mine/m"]


# What answers that are none mean.


@rows(
    ("said", "status", "message"),
    [
        (Said(302, b""), 502, "the upstream answered with status 302"),
        (Said(399, b""), 502, "the upstream answered with status 399"),
        (Said(400, {"error": {"message": "bad field"}}), 400, "bad field"),
        (Said(500, b"<html>"), 500, ""),
        (Said(503, b"x" * 70_000), 503, ""),
        (Said(200, b"<html>"), 502, "mine: the upstream's answer is not JSON"),
        (Said(200, b"[]"), 502, "mine: the upstream's answer is not JSON"),
        (Said(200, b'{"a":' * 200 + b"1" + b"}" * 200), 502, "mine: the upstream's answer is "),
        (Said(200, b'{"error":{"message":"overloaded","code":503}}'), 503, "mine: overloaded"),
    ],
)
def test_an_answer_that_is_none_is_an_error(said: Said, status: int, message: str) -> None:
    with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
        offline.upstream.say(said)
        got = offline.ask(CHAT_PATH, asked())
        assert (got.status, len(offline.upstream.sent)) == (status, 1)
        assert message in got.json["error"]["message"]


@rows(
    ("problem", "status", "code", "calls", "retry_after"),
    [
        ("dns", 503, "upstream_unavailable", 3, True),
        ("connect", 503, "upstream_unavailable", 3, True),
        ("tls", 503, "upstream_unavailable", 1, True),
        ("broken", 502, "upstream_error", 3, False),
        ("protocol", 502, "upstream_error", 3, False),
        ("first_byte_timeout", 504, "upstream_timeout", 1, False),
        ("total_timeout", 504, "upstream_timeout", 1, False),
        ("busy", 503, "server_is_overloaded", 1, True),
    ],
)
def test_what_a_connection_that_fails_is_to_the_client(
    problem: TransportProblem, status: int, code: str, calls: int, retry_after: bool
) -> None:
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(TransportFault(problem, "it failed"))
        got = offline.ask(CHAT_PATH, asked())
    assert (got.status, got.json["error"]["code"]) == (status, code)
    assert (len(offline.upstream.sent), "retry-after" in got.headers) == (calls, retry_after)


def test_an_answer_that_breaks_off_is_called_again_and_its_connection_closed() -> None:
    broken = Said(pieces=(b'{"id":', TransportFault("broken", "the connection ended")))
    with Offline(providers={"mine": chat()}) as offline:
        offline.upstream.say(broken, Said(body=CHAT))
        assert offline.ask(CHAT_PATH, asked()).status == 200
    assert len(offline.upstream.sent) == 2


def test_the_connection_of_an_answer_that_cannot_be_used_is_closed() -> None:
    for said in (Said(302, b""), Said(200, b"<html>")):
        with Offline(providers={"mine": chat(retry={"retries": 0})}) as offline:
            offline.upstream.say(said)
            offline.ask(CHAT_PATH, asked())
        assert said.aborted


def test_an_error_in_the_form_of_another_vendor_is_translated() -> None:
    """A server that speaks Messages and reports errors as OpenAI does."""
    own = {"type": "error", "error": {"type": "invalid_request_error", "message": "no such field"}}
    other = {"error": {"message": "no such field", "type": "invalid_request_error", "code": None}}
    for said in (own, other):
        with Offline(providers={"mine": claude()}) as offline:
            offline.upstream.say(Said(400, said))
            got = offline.ask(MESSAGES_PATH, asked())
            assert got.status == 400
            assert got.json["type"] == "error"
            assert got.json["error"]["type"] == "invalid_request_error"
            assert "no such field" in got.json["error"]["message"]
            assert (got.body == encode(own)) is (said is own)


def test_the_gateway_is_not_kept_waiting_by_retries_that_nothing_earned() -> None:
    """Three retries are saved up for each provider; then only a fifth of the answers earn one."""
    with Offline(providers={"mine": chat(breaker={"consecutive": 99}, retry={"base": 0.0})}) as offline:
        offline.upstream.say(*(refusal(503, str(n)) for n in range(99)))
        for calls in (3, 5, 6, 7):
            offline.ask(CHAT_PATH, asked())
            assert len(offline.upstream.sent) == calls
        offline.upstream.say(Said(body=CHAT))
        for _ in range(5):
            offline.ask(CHAT_PATH, asked())
        offline.upstream.say(*(refusal(503, str(n)) for n in range(99)))
        offline.ask(CHAT_PATH, asked())
        assert len(offline.upstream.sent) == 7 + 5 + 2


# What a recording is told on the way.


def stretches(
    monkeypatch: pytest.MonkeyPatch, answers: list[Said | TransportFault], **table: Any
) -> list[str]:
    named: list[str] = []
    monkeypatch.setattr(Recording, "passed", lambda self, stretch: named.append(stretch))
    monkeypatch.setattr(Recording, "attempt_failed", lambda self, message: named.append(f"failed: {message}"))
    with Offline(providers={"mine": chat(**table)}, trace={"mode": "all"}) as offline:
        for answer in answers[:-2]:
            offline.upstream.say(answer)
            offline.ask(CHAT_PATH, asked())
        named.clear()
        offline.upstream.say(*answers[-2:])
        offline.ask(CHAT_PATH, asked())
    return [name for name in named if name not in ("translation", "first byte")]


def test_the_stretches_of_a_request_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    good, slow = Said(body=CHAT), refusal(429, "slow", retry_after="3")
    assert stretches(monkeypatch, [good, good]) == ["store"]
    assert stretches(monkeypatch, [slow, good]) == ["store", "failed: slow", "retry wait"]
    assert stretches(monkeypatch, [good, good], concurrency=1) == ["store", "provider queue"]
    waiting = stretches(monkeypatch, [slow, good, good], retry={"retries": 0})
    assert waiting == ["store", "key wait"]


def test_a_provider_is_asked_once_the_request_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str] = []

    async def written() -> None:
        named.append(f"written, {len(offline.upstream.sent)} sent")

    monkeypatch.setattr(Recording, "passed", lambda self, stretch: named.append(stretch))
    monkeypatch.setattr(Ending, "before_asking", lambda self: written())
    with Offline(providers={"mine": chat()}, trace={"mode": "all"}) as offline:
        offline.upstream.say(Said(body=CHAT))
        assert offline.ask(CHAT_PATH, asked()).status == 200
    assert named == ["store", "translation", "written, 0 sent", "store"]
