"""Reasoning state in a client's hands is its caller's own: a rotated key keeps it, another caller cannot use it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from proofs.lab.forms import open_envelope
from tests.gateway.faults.faults_kit import BY_NAME, Answered, Client, post, provider
from tests.gateway.faults.faults_stages import digest_of
from tests.waiting import wait_until
from wireglot.gateway.entry.callers import LOCAL, Caller, sealing
from wireglot.gateway.settings import Secret, ServerSettings
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import seal
from wireglot_core.ir.content import Origin, Signature
from wireglot_core.wire.json import decode, encode

SIGNATURE = Signature("EqQBCg==", Origin("anthropic"))
THINK = "[[demo:think]] hi"
PAIRS = [
    ("anthropic", "openai-responses"),
    ("openai-chat", "anthropic"),
    ("openai-responses", "anthropic"),
    ("gemini", "anthropic"),
]
MINTED = b"d2lyZWdsb3QtZGVtby0x"
"""How the demo model's signatures begin."""
Stage = tuple[LiveGateway, ScriptedUpstream]


def keys(**keys: str) -> str:
    return "[keys]\n" + "".join(f'{name} = "{digest_of(key)}"\n' for name, key in keys.items())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(config(upstream, ann="key-of-ann", bob="key-of-bob")) as gateway,
    ):
        yield gateway, upstream


def config(upstream: ScriptedUpstream, **owners: str) -> str:
    providers = (provider(f"{name}-up", upstream, name) for name in {source for _, source in PAIRS})
    return (
        '[server]\nsecret = "the secret of this gateway"\n'
        + "".join(providers)
        + (keys(**owners) if owners else "")
    )


def first(client: Client, model: str) -> dict[str, Any]:
    body = client.body(model, THINK, False)
    match client.name:
        case "anthropic":
            return {**body, "thinking": {"type": "enabled", "budget_tokens": 2000}}
        case "openai-responses":
            return {**body, "include": ["reasoning.encrypted_content"], "reasoning": {"effort": "high"}}
        case "openai-chat":
            return {**body, "reasoning_effort": "high"}
        case _:
            return {
                **body,
                "generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 2000}},
            }


def then(client: Client, asked: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The next turn, with all that the client was sent."""
    more = {"role": "user", "content": "and now?"}
    match client.name:
        case "anthropic":
            said = {"role": "assistant", "content": answer["content"]}
            return {**asked, "messages": [*asked["messages"], said, more]}
        case "openai-chat":
            return {**asked, "messages": [*asked["messages"], answer["choices"][0]["message"], more]}
        case "openai-responses":
            return {**asked, "input": [{"role": "user", "content": THINK}, *answer["output"], more]}
        case _:
            turn = {"role": "user", "parts": [{"text": "and now?"}]}
            return {**asked, "contents": [*asked["contents"], answer["candidates"][0]["content"], turn]}


def ask(stage: Stage, client: Client, model: str, body: dict[str, Any], key: str) -> Answered:
    return post(stage[0].port, client.path(model, False), encode(body), {"x-api-key": key} if key else {})


def replayed(stage: Stage) -> bool:
    return MINTED in stage[1].requests[-1].body


@pytest.mark.parametrize(("name", "source"), PAIRS)
def test_another_callers_state_is_dropped_and_reported_and_a_rotated_key_keeps_its_own(
    stage: Stage, name: str, source: str
) -> None:
    """[A8]"""
    gateway, upstream = stage
    client, model = BY_NAME[name], f"{source}-up/m1"
    asked = first(client, model)
    answered = ask(stage, client, model, asked, "key-of-ann")
    assert answered.status == 200, answered.body
    following = then(client, asked, decode(answered.body))

    assert ask(stage, client, model, following, "key-of-ann").status == 200
    assert replayed(stage), "it is her own"

    transplanted = ask(stage, client, model, following, "key-of-bob")
    assert transplanted.status == 200, transplanted.body
    assert not replayed(stage)
    assert "reasoning" in transplanted.headers["x-wireglot-losses"]

    before = gateway.process.gateway.settings
    gateway.reconfigure(config(upstream, ann="new-key-of-ann", bob="key-of-bob"))
    wait_until(partial(lambda old: gateway.process.gateway.settings is not old, before))
    assert ask(stage, client, model, following, "new-key-of-ann").status == 200
    assert replayed(stage), "the caller is the same"


def context_of(name: str, *secrets: str) -> Context:
    now, *old = (Secret(each) for each in secrets)
    caller = LOCAL if name == LOCAL.name else Caller(name)
    sealed = sealing(ServerSettings(secret=now, old_secrets=tuple(old)), caller)
    return Context(secret=sealed.secret, old_secrets=sealed.old_secrets, owner=sealed.owner)


def opens(sealed: str, context: Context) -> bool:
    opened = context.unseal(sealed)
    assert opened is not None
    assert context.unseal_all(sealed) in ([opened], [])
    return opened.signature == SIGNATURE


@pytest.mark.parametrize("secret", ["now", "then"])
def test_what_an_older_gateway_or_an_old_secret_sealed_still_opens(secret: str) -> None:
    """[A8] Older versions named no owner."""
    ann = context_of("ann", "now", "then")
    assert opens(seal(SIGNATURE, "reasoning", secret.encode()), ann)
    assert opens(context_of("ann", secret).seal(SIGNATURE, "reasoning"), ann)
    assert not opens(context_of("bob", secret).seal(SIGNATURE, "reasoning"), ann)


def test_without_keys_everyone_is_one_caller_and_keeps_the_state_when_keys_come() -> None:
    """[A8] As the library seals, which knows no callers."""
    local = context_of(LOCAL.name, "now")
    sealed = local.seal(SIGNATURE, "reasoning")
    assert sealed == seal(SIGNATURE, "reasoning", b"now")
    assert opens(sealed, context_of("ann", "now"))
    assert not opens(context_of("ann", "now").seal(SIGNATURE, "reasoning"), local)


def test_older_versions_read_what_is_sealed_for_an_owner() -> None:
    """[A8] A fleet that is being upgraded loses no state: what is new stands behind all that they read."""
    sealed = context_of("ann", "now").seal(SIGNATURE, "reasoning")
    reported = open_envelope(sealed)
    assert reported is not None
    assert reported[:8] == ["reasoning", "anthropic", "", "", "", "", SIGNATURE.data, -1]
    assert "ann" not in reported[8]


def test_settings_without_a_secret_seal_as_the_library_does() -> None:
    assert sealing(ServerSettings(), LOCAL).secret == Context().secret
