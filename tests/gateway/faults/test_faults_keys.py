"""FAULTS 54, 56, 59, 32: which key is used, which is left out for a while, and what `strict` keeps from being sent."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import Client, ask, every_dialect, is_of, provider, reported
from tests.gateway.faults.faults_stages import (
    KEYS,
    PAIRED,
    SOON,
    A,
    C,
    G,
    R,
    Stage,
    behind,
    digest_of,
    keys_of,
    one,
    stage_behind,
)
from tests.tiers import rows
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode


def test_keys_take_turns_when_one_is_asked_to_wait() -> None:
    """FAULTS 59: at once, and the one that must rest does so for this model only."""
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(Behaviour(error=429, retry_after=60))
        answered = ask(gateway, A, "mine/m1")
        assert answered.status == 200
        used, other = keys_of(upstream.requests)
        assert used != other
        for _ in range(5):
            ask(gateway, A, "mine/m1")
        assert used not in keys_of(upstream.requests[1:])
        upstream.reset()
        for number in range(12):
            ask(gateway, A, "mine/m2", f"another conversation {number}")
        assert used in keys_of(upstream.requests), "another model is no concern of it"


def test_when_all_keys_must_rest_the_client_learns_how_long() -> None:
    """FAULTS 59: the shortest of all, and no upstream is asked meanwhile."""
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(*(Behaviour(error=429, retry_after=wait) for wait in (90, 60, 75)))
        answered = ask(gateway, A, "mine/m1")
        is_of("rate", A, answered)
        assert len(upstream.requests) == 3
        assert len(set(keys_of(upstream.requests))) == 3
        answered = ask(gateway, A, "mine/m1")
        assert 55 <= int(answered.headers["retry-after"]) <= 60
        assert len(upstream.requests) == 3


def test_a_short_wait_is_waited_for() -> None:
    """FAULTS 59"""
    with one("retry = { retries = 1, wait_max = 1 }\n") as (gateway, upstream):
        upstream.next(Behaviour(error=429, headers=(("retry-after-ms", "30"),)))
        assert ask(gateway, A, "mine/m1").status == 200
        upstream.next(Behaviour(error=429, retry_after=2))
        answered = ask(gateway, A, "mine/m1")
        assert (answered.status, answered.headers["retry-after"]) == (429, "2")
        assert len(upstream.requests) == 3


def test_a_key_that_is_refused_is_set_aside() -> None:
    """FAULTS 54: the next one is tried, and the key stands in no answer and no log."""
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(Behaviour(error=401))
        assert ask(gateway, A, "mine/m1").status == 200
        refused = keys_of(upstream.requests)[0]
        for number in range(12):
            ask(gateway, A, "mine/m2", f"any model, conversation {number}")
        assert refused not in keys_of(upstream.requests[1:])
        upstream.otherwise = Behaviour(error=401)
        answered = ask(gateway, A, "mine/m1")
        is_of("upstream_auth", A, answered)
        assert answered.headers["x-should-retry"] == "false"
        count = len(upstream.requests)
        is_of("upstream_auth", A, ask(gateway, A, "mine/m1"))
        assert len(upstream.requests) == count, "all are set aside: nobody is asked"
        log = (gateway.folder / "log").read_text()
        assert not any(key in log for key in ("first-key", "second-key", "third-key"))


def test_what_one_key_may_not_do_another_may() -> None:
    """FAULTS 54: a key without permission rests for that model, and is good for others."""
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(Behaviour(error=403))
        assert ask(gateway, A, "mine/m1").status == 200
        refused = keys_of(upstream.requests)[0]
        for number in range(12):
            ask(gateway, A, "mine/m1", f"conversation {number}")
        assert refused not in keys_of(upstream.requests[1:])
        upstream.reset()
        for number in range(12):
            ask(gateway, A, "mine/m2", f"conversation {number}")
        assert refused in keys_of(upstream.requests)
        upstream.reset()
        upstream.otherwise = Behaviour(error=403)
        answered = ask(gateway, A, "mine/m3")
        is_of("upstream_auth", A, answered)
        assert answered.headers["x-should-retry"] == "false"
        assert len(set(keys_of(upstream.requests))) == 3, "each was tried"


def test_an_empty_account_is_left_for_the_next_key() -> None:
    """FAULTS 56"""
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(Behaviour(error=402))
        assert ask(gateway, A, "mine/m1").status == 200
        upstream.otherwise = Behaviour(error=402)
        answered = ask(gateway, A, "mine/m1")
        assert (answered.status, reported(A, answered).type) == (402, "billing_error")
        assert answered.headers["x-should-retry"] == "false"


empty_accounts = stage_behind(every_dialect)


@PAIRED
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_empty_account_never_looks_busy(
    empty_accounts: Stage, stream: bool, client: Client, source: str
) -> None:
    """FAULTS 56: clients repeat what a busy provider refuses, so the last words come again."""
    gateway, upstream = empty_accounts
    upstream.reset()
    upstream.next(Behaviour(error=402))
    model = f"{source}-up/{client.name}-{stream}"
    first, again = (ask(gateway, client, model, text, stream=stream) for text in ("hi", "another"))
    assert len(upstream.requests) == 1, "the account is left alone meanwhile"
    assert first.headers["x-should-retry"] == "false"
    for name in ("content-type", "x-should-retry", "retry-after"):
        assert again.headers.get(name) == first.headers.get(name), name
    bodies = [re.sub(rb"req_\w+", b"req", answered.body) for answered in (first, again)]
    assert (again.status, bodies[1]) == (first.status, bodies[0])
    assert b"was instructed to fail" in again.body


@PAIRED
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_last_words_come_in_the_form_of_the_client_that_gets_them(
    empty_accounts: Stage, stream: bool, client: Client, source: str
) -> None:
    """Also if a client of another dialect got them first."""
    gateway, upstream = empty_accounts

    def said(by: Client, model: str) -> tuple[int, dict[str, str], bytes]:
        answered = ask(gateway, by, model, stream=stream and by is client)
        names = ("content-type", "x-should-retry", "retry-after")
        headers = {name: answered.headers.get(name, "") for name in names}
        return answered.status, headers, re.sub(rb"req_\w+", b"req", answered.body)

    for other in (A, C, R, G):
        models = [f"{source}-up/{client.name}-{stream}-{place}-{other.name}" for place in ("own", "next")]
        upstream.reset()
        upstream.next(Behaviour(error=402), Behaviour(error=402))
        said(other, models[1])
        assert said(client, models[1]) == said(client, models[0]), other.name
        assert len(upstream.requests) == 2, "each account was tried once"


def test_what_an_empty_account_said_to_one_client_has_no_id_for_the_next() -> None:
    with one(SOON, dialect="anthropic") as (gateway, upstream):
        body = {"type": "error", "error": {"type": "billing_error", "message": "none left"}}
        spent = encode({**body, "request_id": "req_of_the_first"})
        upstream.next(Behaviour(status=402, body=spent))
        assert b"req_of_the_first" in ask(gateway, A, "mine/m1").body
        again = ask(gateway, A, "mine/m1")
        assert (again.status, reported(A, again).message) == (402, "none left")


def test_an_empty_account_is_tried_again_after_the_wait_that_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with one(SOON) as (gateway, upstream):
        upstream.next(Behaviour(error=402, retry_after=30), Behaviour(error=402, retry_after=3600))
        assert ask(gateway, A, "mine/m1").headers["retry-after"] == "30"
        assert 1 <= int(ask(gateway, A, "mine/m1").headers["retry-after"]) <= 30
        health: Any = gateway.process.gateway.health
        (rest,) = health._cool.values()
        assert ask(gateway, C, "mine/m2").status == 402
        assert max(health._cool.values()) >= rest + 29, "60 s at most"
        assert len(upstream.requests) == 2


def test_an_account_that_was_paid_answers_again() -> None:
    with one(SOON) as (gateway, upstream):
        health: Any = gateway.process.gateway.health
        upstream.otherwise = Behaviour(error=402)
        for _ in range(30):
            assert ask(gateway, A, "mine/m1").status == 402
            health._cool = dict.fromkeys(health._cool, 1e-9)  # its rest is over
        assert len(upstream.requests) == 30
        assert not health.open_breakers()
        upstream.otherwise = Behaviour()
        assert ask(gateway, A, "mine/m1").status == 200


def test_an_empty_account_beside_a_busy_one_leaves_the_wait_of_the_busy_one() -> None:
    with one(SOON + KEYS) as (gateway, upstream):
        upstream.next(Behaviour(error=402), Behaviour(error=402), Behaviour(error=429, retry_after=90))
        ask(gateway, A, "mine/m1")
        answered = ask(gateway, A, "mine/m1")
        is_of("rate", A, answered)
        assert 80 <= int(answered.headers["retry-after"]) <= 90
        assert len(upstream.requests) == 3


def test_a_conversation_stays_with_its_key() -> None:
    """FAULTS 59: caches live with the key, so it is changed only where it must be."""
    with one(KEYS) as (gateway, upstream):
        for _ in range(6):
            ask(gateway, A, "mine/m1", "the same words")
        assert len(set(keys_of(upstream.requests))) == 1


LOSSY: dict[str, Any] = {"top_k": 5}
"""Chat has no word for it."""


@rows("where", ["settings", "provider", "rule", "key", "header"])
def test_strict_asks_no_upstream(where: str) -> None:
    """FAULTS 32: wherever it is said, the client's own wish first."""
    lines = 'losses = "strict"\n' if where == "provider" else ""
    rule = ', losses = "strict"' if where == "rule" else ""
    key = ', losses = "strict"' if where == "key" else ""
    more = f'[models]\n"m" = {{ to = "mine/m1"{rule} }}\n[keys]\nteam = {{ hash = "{digest_of("client-key")}"{key} }}\n'

    def toml(upstream: ScriptedUpstream) -> str:
        first = 'losses = "strict"\n' if where == "settings" else ""
        return first + provider("mine", upstream, "openai-chat", lines) + more

    headers = {"x-api-key": "client-key"}
    with behind(toml) as (gateway, upstream):
        wish = {"x-wireglot-loss-policy": "strict"} if where == "header" else {}
        answered = ask(gateway, A, "m", headers={**headers, **wish}, **LOSSY)
        assert answered.status == 400
        assert "top_k" in reported(A, answered).message
        assert not upstream.requests
        lenient = {**headers, "x-wireglot-loss-policy": "warn"}
        answered = ask(gateway, A, "m", headers=lenient, **LOSSY)
        assert answered.status == 200
        assert answered.headers["x-wireglot-losses"]
        silent = {**headers, "x-wireglot-loss-policy": "silent"}
        assert "x-wireglot-losses" not in ask(gateway, A, "m", headers=silent, **LOSSY).headers
        assert ask(gateway, A, "m", headers={**headers, "x-wireglot-loss-policy": "maybe"}).status == 400


def test_a_strict_refusal_is_no_reason_to_ask_the_next_provider() -> None:
    """FAULTS 32, 53"""

    def toml(upstream: ScriptedUpstream) -> str:
        chain = '[models]\n"m" = ["one/a", "two/b"]\n'
        return provider("one", upstream, "openai-chat") + provider("two", upstream, "anthropic") + chain

    with behind(toml) as (gateway, upstream):
        answered = ask(gateway, A, "m", headers={"x-wireglot-loss-policy": "strict"}, **LOSSY)
        assert answered.status in (200, 400)
        assert all(request.path == "/v1/messages" for request in upstream.requests), "nothing was lost"
