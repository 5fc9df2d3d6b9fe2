"""FAULTS 1: every class of error before the stream has begun, in the exact form of every client's dialect."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    ONCE,
    UPSTREAMS,
    Answered,
    Client,
    ask,
    every_dialect,
    is_of,
    model_at,
    post,
    provider,
    reported,
    start,
)
from tests.gateway.faults.faults_stages import (
    BEARER,
    EVERY,
    NEVER_OPEN,
    SECRET,
    SOON,
    Stage,
    behind,
    closed_port,
    digest_of,
    one,
    stage_behind,
)
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

LIMIT = 4096
NUMBERS = itertools.count(2)


def _toml(upstream: ScriptedUpstream) -> str:
    return (
        every_dialect(upstream)
        + every_dialect(upstream, ONCE + "timeouts = { first_byte = 0.05 }\n").replace("-up]", "-hasty]")
        + every_dialect(upstream, ONCE + "concurrency = 1\n").replace("-up]", "-narrow]")
        + every_dialect(upstream).replace("-up]", "-locked]")
        + f'[providers.down]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:{closed_port()}/v1"\n'
        + f'api_key = "k"\n{ONCE}'
        + f"[limits]\nbody = {LIMIT}\nanthropic_body = {LIMIT}\nqueue = 0\nauth_failures = 1000\n"
        + f'[keys]\nteam = {{ hash = "{digest_of(SECRET)}", models = ["*-up/m*", "*-hasty/m1", "*-narrow/m1", '
        + '"*-locked/m*", "down/*", "nobody/*"] }\n'
    )


stage = stage_behind(_toml)


def asked(stage: Stage, client: Client, model: str, *, stream: bool, **more: Any) -> Answered:
    return ask(stage[0], client, model, stream=stream, headers=BEARER, **more)


def bad(stage: Stage, client: Client, stream: bool) -> Answered:
    path = client.path(model_at("gemini"), stream)
    return post(stage[0].port, path, b'{"model": ', BEARER)


def auth(stage: Stage, client: Client, stream: bool) -> Answered:
    return ask(stage[0], client, model_at("gemini"), stream=stream, headers={"x-api-key": "wrong"})


def permission(stage: Stage, client: Client, stream: bool) -> Answered:
    return asked(stage, client, "gemini-up/other", stream=stream)


def not_found(stage: Stage, client: Client, stream: bool) -> Answered:
    return asked(stage, client, "nobody/m1", stream=stream)


def conflict(stage: Stage, client: Client, stream: bool) -> Answered:
    stage[1].next(Behaviour(error=409))
    return asked(stage, client, foreign(client), stream=stream)


def too_large(stage: Stage, client: Client, stream: bool) -> Answered:
    return asked(stage, client, model_at("gemini"), stream=stream, text="x" * LIMIT)


def media(stage: Stage, client: Client, stream: bool) -> Answered:
    headers = {**BEARER, "content-type": "text/plain"}
    return post(stage[0].port, client.path(model_at("gemini"), stream), b"{}", headers)


def rate(stage: Stage, client: Client, stream: bool) -> Answered:
    model = foreign(client).replace("-up/m1", f"-up/m{next(NUMBERS)}")  # the breaker of each opens
    stage[1].next(Behaviour(error=429, retry_after=7))
    return asked(stage, client, model, stream=stream)


def shed(stage: Stage, client: Client, stream: bool) -> Answered:
    gateway, upstream = stage
    upstream.reset()
    upstream.next(Behaviour(fault="stall"))
    model = foreign(client).replace("-up/", "-narrow/")
    first = start(gateway, client, model, headers=BEARER)
    upstream.wait_for(1)
    try:
        return asked(stage, client, model, stream=stream)
    finally:
        first.leave()
        wait_until(lambda: gateway.process.gateway.in_flight == 0)


def internal(stage: Stage, client: Client, stream: bool) -> Answered:
    """FAULTS 109"""
    gateway = stage[0]
    relay = gateway.process.gateway.relay

    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret at 0x7f0000 in Traceback")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relay, "answer", broken)
        return asked(stage, client, model_at("gemini"), stream=stream)


def upstream_bad(stage: Stage, client: Client, stream: bool) -> Answered:
    stage[1].next(Behaviour(fault="garbage"))
    return asked(stage, client, foreign(client), stream=stream)


def upstream_down(stage: Stage, client: Client, stream: bool) -> Answered:
    return asked(stage, client, "down/m1", stream=stream)


def upstream_timeout(stage: Stage, client: Client, stream: bool) -> Answered:
    stage[1].next(Behaviour(fault="stall"))
    return asked(stage, client, foreign(client).replace("-up/", "-hasty/"), stream=stream)


def upstream_auth(stage: Stage, client: Client, stream: bool) -> Answered:
    stage[1].reset()
    stage[1].otherwise = Behaviour(error=401)  # the key is set aside with it: the next ones meet no upstream
    try:
        return asked(stage, client, foreign(client).replace("-up/", "-locked/"), stream=stream)
    finally:
        stage[1].reset()


def foreign(client: Client) -> str:
    """A model at an upstream of another dialect than the client's."""
    return model_at("openai-chat" if client.dialect != "openai-chat" else "openai-responses")


CLASSES: dict[str, Callable[[Stage, Client, bool], Answered]] = {
    "bad": bad,
    "auth": auth,
    "permission": permission,
    "not_found": not_found,
    "conflict": conflict,
    "too_large": too_large,
    "media": media,
    "rate": rate,
    "shed": shed,
    "internal": internal,
    "upstream_bad": upstream_bad,
    "upstream_down": upstream_down,
    "upstream_timeout": upstream_timeout,
    "upstream_auth": upstream_auth,
}


@pytest.mark.sampled("kind", each=3)
@EVERY
@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_has_its_status_body_and_headers(stage: Stage, kind: str, client: Client) -> None:
    """FAULTS 1, 12, 15, 31, 49, 54, 65, 88, 108, 109"""
    for stream in (False, True):
        answered = CLASSES[kind](stage, client, stream)
        is_of(kind, client, answered)
        headers = answered.headers
        assert ("www-authenticate" in headers) == (kind == "auth")
        assert headers.get("connection") == ("close" if kind == "too_large" else None)
        assert headers.get("x-should-retry") == ("false" if kind in ("auth", "upstream_auth") else None)
        match kind:
            case "auth":
                assert headers["www-authenticate"] == "Bearer"
            case "rate":
                assert headers["retry-after"] == "7"
            case "shed":
                assert 1 <= int(headers["retry-after"]) <= 5
            case "upstream_down":
                assert 1 <= int(headers["retry-after"]) <= 120
            case _:
                assert "retry-after" not in headers


GEMINI = [client for client in CLIENTS if client.family == "G"]


@pytest.mark.parametrize("client", GEMINI, ids=lambda client: client.name)
def test_gemini_is_shown_why_and_how_long_in_details(stage: Stage, client: Client) -> None:
    """FAULTS 1: AUTH carries ErrorInfo API_KEY_INVALID, RATE carries RetryInfo."""
    details = reported(client, auth(stage, client, False)).details
    assert [item["reason"] for item in details if "reason" in item] == ["API_KEY_INVALID"]
    details = reported(client, rate(stage, client, False)).details
    assert [item["retryDelay"] for item in details if "retryDelay" in item] == ["7s"]


def test_the_key_that_was_refused_upstream_is_no_reason_to_throw_away_the_clients(stage: Stage) -> None:
    """FAULTS 54"""
    for client in CLIENTS:
        answered = upstream_auth(stage, client, False)
        assert answered.status != 401
        assert "upstream credential rejected" in reported(client, answered).message


def test_a_bug_is_logged_with_its_place_and_without_its_words(stage: Stage) -> None:
    """FAULTS 109"""
    internal(stage, CLIENTS[0], False)
    line = stage[0].wait_log(1, "bug")[-1]
    assert line["type"] == "RuntimeError"
    assert "secret" not in str(line)


def test_a_wrong_key_too_often_is_asked_to_wait_while_others_go_on(stage: Stage) -> None:
    """FAULTS 89"""

    def toml(upstream: ScriptedUpstream) -> str:
        keys = f'[keys]\nteam = "{digest_of(SECRET)}"\n[limits]\nauth_failures = 2\n'
        return provider("mine", upstream, "gemini") + keys

    with behind(toml) as (gateway, _):
        answers = [ask(gateway, client, "mine/m1", headers={"x-api-key": "no"}) for client in CLIENTS[:3]]
        assert [answered.status for answered in answers] == [401, 401, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60


SHAPES: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "error", "error": {"type": "api_error", "message": "no slot"}},
    "openai": {"error": {"code": 500, "message": "no slot", "type": "server_error"}},
    "gemini": {"error": {"code": 500, "message": "no slot", "status": "INTERNAL"}},
    "fastapi": {"detail": "no slot"},
}


@rows("client", [each for each in CLIENTS if each.dialect in UPSTREAMS], ids=str)
def test_an_error_in_the_form_of_another_dialect_reaches_clients_in_their_own(client: Client) -> None:
    """llama.cpp's Anthropic endpoint answers with OpenAI's errors: what passes through untouched is only an
    error that the client can read."""
    families = {"openai-chat": "openai", "openai-responses": "openai", "code-assist": "gemini"}
    family = families.get(client.dialect, client.dialect)
    with one(SOON + NEVER_OPEN, dialect=client.dialect) as (gateway, upstream):
        for shape, body in SHAPES.items():
            gateway.process.gateway.health.budgets.clear()
            upstream.otherwise = Behaviour(status=500, body=encode(body))
            answered = ask(gateway, client, "mine/m1")
            assert answered.status == 500
            if shape == family:
                assert answered.body == encode(body)
            else:
                is_of("internal", client, answered)
                assert b"no slot" in answered.body
