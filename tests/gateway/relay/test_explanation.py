"""Errors of providers in words that people can act on."""

from __future__ import annotations

import pytest

from tests.gateway.faults.faults_kit import ask, logged, provider, reported
from tests.gateway.faults.faults_stages import (
    BEARER,
    NEVER_OPEN,
    SECRET,
    A,
    C,
    G,
    R,
    behind,
    closed_port,
    digest_of,
)
from tests.gateway.kit import catalogued, settings
from tests.tiers import rows
from wireglot.gateway.relay.explanation import explained
from wireglot.gateway.settings import Credential, Provider, Secret
from wireglot.gateway.targets.routing import route
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed, Blame
from wireglot_core.providers.spec import provider as known
from wireglot_core.wire.json import encode

KIMI = Provider(
    "kimi",
    known("kimi"),
    (Credential(Secret("s3cret", "env:MOONSHOT_API_KEY"), "a"),),
    stated="wireglot.toml:7",
)
(TARGET,) = route(settings(KIMI), "kimi-k3", "anthropic")


def of(blame: Blame, error: ApiError) -> AttemptFailed:
    return explained(AttemptFailed(error, blame), TARGET, "https://api.moonshot.ai/v1/chat/completions")


def test_a_rejected_key_names_the_provider_its_words_and_the_fix() -> None:
    """[M4]"""
    failed = of("credential", ApiError("auth", "Incorrect API key provided: sk-ab***********yz."))
    said = failed.error.message
    assert said.startswith("upstream credential rejected: kimi does not accept this gateway's key")
    assert "Incorrect API key provided: [redacted]" in said
    assert "must set a valid one" in said
    assert "sk-ab" not in said
    assert failed.fix == (
        "key from MOONSHOT_API_KEY ([providers.kimi] at wireglot.toml:7, api_key); called at api.moonshot.ai"
    )
    assert (failed.error.status, failed.error.code) == (502, "upstream_auth_failed")


@rows(
    ("blame", "error", "said", "fix"),
    [
        ("connection", ApiError("server", "could not connect", status=503, code="upstream_unavailable"),
         "kimi: could not connect (try again later, or a model of another provider)", "base_url"),
        ("timeout", ApiError("timeout", "the upstream did not answer in time", status=504),
         "kimi: the upstream did not answer in time", "timeouts"),
        ("quota", ApiError("billing", "no credit"), "kimi: no credit (the operator", "MOONSHOT_API_KEY"),
        ("model", ApiError("not_found", "no such model"), "kimi: no such model (a list of models: GET /v1/models)", ""),
        ("rate", ApiError("rate_limit", "slow down"), "kimi: slow down", "api.moonshot.ai"),
        ("upstream", ApiError("server", "oops"), "kimi: oops", "api.moonshot.ai"),
        ("request", ApiError("invalid_request", "temperature: too hot"), "kimi: temperature: too hot", ""),
        ("request", ApiError("context_overflow", "prompt is too long"), "prompt is too long", ""),
        ("gateway", ApiError("overloaded", "no room"), "no room", ""),
        ("timeout", ApiError("server", "kimi/kimi-k3 has failed repeatedly"), "kimi/kimi-k3 has failed", ""),
    ],
)  # fmt: skip
def test_every_failure_names_the_provider_and_what_to_do(
    blame: Blame, error: ApiError, said: str, fix: str
) -> None:
    """[M4]"""
    failed = of(blame, error)
    assert failed.error.message.startswith(said)
    assert fix in failed.fix


def test_a_key_that_stands_in_the_configuration_is_reported_by_its_line() -> None:
    """[M4]"""
    plain = Provider("kimi", known("kimi"), (Credential(Secret("s3cret"), "a"),), stated="wireglot.toml:7")
    (target,) = route(settings(plain), "kimi-k3", "anthropic")
    failed = explained(AttemptFailed(ApiError("auth", ""), "credential"), target)
    assert failed.fix.startswith(
        "key of [providers.kimi] at wireglot.toml:7, api_key; called at api.moonshot"
    )
    assert "s3cret" not in failed.fix
    unstated = route(settings(catalogued("kimi", "k")), "kimi-k3", "anthropic")[0]
    assert (
        "[providers.kimi], api_key"
        in explained(AttemptFailed(ApiError("auth", ""), "credential"), unstated).fix
    )


REFUSED = Behaviour(status=401, body=encode({"error": {"message": "Invalid Authentication", "type": "invalid_authentication_error"}}))  # fmt: skip


@pytest.mark.parametrize("client", [A, C, R, G], ids=lambda client: client.name)
def test_the_operators_part_is_reported_to_callers_on_the_same_machine_and_to_the_log(client: object) -> None:
    """[M4] Host, variable and line of the configuration: not to anyone who has but a key, nor through a proxy."""
    assert isinstance(client, type(A))

    def toml(upstream: ScriptedUpstream) -> str:
        dead = f'[providers.dead]\ndialect = "gemini"\nbase_url = "http://127.0.0.1:{closed_port()}"\napi_key = "k-0123456789"\n'
        return provider("mine", upstream, "openai-chat", NEVER_OPEN) + dead + "retry = { retries = 0 }\n"

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = REFUSED
        for _ in range(2):  # the second time the key is set aside, and nobody is asked
            answered = ask(gateway, client, "mine/m1")
            said = reported(client, answered).message
            assert "mine does not accept this gateway's key (it says: Invalid Authentication)" in said
            assert "[providers.mine] at " in said
            assert f"127.0.0.1:{upstream.port}" in said or "called at 127.0.0.1" in said
            assert "[providers.mine]" in logged(gateway, answered)["error"]["fix"]
        for header in ("x-forwarded-for", "cf-connecting-ip"):
            proxied = ask(gateway, client, "mine/m1", headers={header: "192.0.2.1"})
            assert "[providers.mine]" not in reported(client, proxied).message
        gone = ask(gateway, client, "dead/m")
        said = reported(client, gone).message
        assert said.startswith("dead: could not connect")
        assert "base_url" in said
    keys = f'[keys]\nteam = "{digest_of(SECRET)}"\n'
    with behind(lambda upstream: toml(upstream) + keys) as (gateway, upstream):
        upstream.otherwise = REFUSED
        answered = ask(gateway, client, "mine/m1", headers=BEARER)
        said = reported(client, answered).message
        assert "mine does not accept this gateway's key: its operator must set a valid one" in said
        assert "127.0.0.1" not in said
        assert "[providers" not in said
        assert "[providers.mine]" in logged(gateway, answered)["error"]["fix"]


def test_the_operators_part_is_reported_to_the_admin_too() -> None:
    """[M4] The admin secret beside the caller's key. A wrong one opens nothing, and no provider sees it."""

    def toml(upstream: ScriptedUpstream) -> str:
        server = '[server]\nadmin_secret = "the-secret-of-the-admin"\n'
        keys = f'[keys]\nteam = "{digest_of(SECRET)}"\n'
        return server + provider("mine", upstream, "openai-chat", NEVER_OPEN) + keys

    with behind(toml) as (gateway, upstream):
        upstream.otherwise = REFUSED
        beside = {"x-wireglot-admin": "the-secret-of-the-admin"}
        answered = ask(gateway, C, "mine/m1", headers={**BEARER, **beside})
        assert "[providers.mine] at " in reported(C, answered).message
        assert "x-wireglot-admin" not in upstream.requests[-1].headers
        asked = len(upstream.requests)
        wrong = ask(gateway, C, "mine/m1", headers={**BEARER, "x-wireglot-admin": "guessed"})
        assert (wrong.status, len(upstream.requests)) == (401, asked)
        without_key = ask(gateway, C, "mine/m1", headers=beside)
        assert without_key.status == 401
