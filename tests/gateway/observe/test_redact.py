"""Every secret that a configuration holds is known to the one that scrubs."""

from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import Credential, Provider, Secret, ServerSettings, Settings, StoreSettings
from wireglot.http.redaction import Redactor
from wireglot_core.providers.spec import ProviderSpec


def test_every_secret_of_a_configuration_is_known():
    """R-DE-18"""
    spec = ProviderSpec("mine", "Mine", ("openai-chat",), "http://127.0.0.1:1/v1")
    provider = Provider(
        "mine",
        spec,
        credentials=(
            Credential(Secret("credential-value-1"), "a"),
            Credential(Secret("credential-value-2"), "b"),
        ),
        headers=(("Authorization", "Bearer header-token-value"), ("x-title", "a public title")),
        proxy="http://user:proxy-password@127.0.0.1:3128",
    )
    settings = Settings(
        server=ServerSettings(secret=Secret("sealing-secret-value")), providers={"mine": provider}
    )
    assert secrets_of(settings) == {
        "credential-value-1", "credential-value-2", "Bearer header-token-value", "header-token-value",
        "proxy-password", "sealing-secret-value",
    }  # fmt: skip
    reported = Redactor(secrets_of(settings), settings.providers).text(
        "a public title; credential-value-2; proxy-password; sealing-secret-value"
    )
    assert reported == "a public title; [redacted]; [redacted]; [redacted]"


def test_a_header_that_looks_drawn_by_chance_is_a_secret_whatever_its_name():
    spec = ProviderSpec("mine", "Mine", ("openai-chat",), "http://127.0.0.1:1/v1")
    headers = (
        ("x-extra", "R0b3MtAVWlMk9CZzU9skMGwa"),
        ("x-team", "Team 5f1d7e84a2b3c4d5e6f708192a3b4c5d"),
        ("anthropic-beta", "context-1m-2025-08-07"),
        ("http-referer", "https://app.example.com/A1"),
    )
    settings = Settings(providers={"mine": Provider("mine", spec, headers=headers)})
    hidden = secrets_of(settings) - secrets_of(Settings())
    assert hidden == {
        "R0b3MtAVWlMk9CZzU9skMGwa",
        "Team 5f1d7e84a2b3c4d5e6f708192a3b4c5d",
        "5f1d7e84a2b3c4d5e6f708192a3b4c5d",
    }


def test_the_password_of_a_store_is_a_secret_however_it_is_spelled():
    store = StoreSettings(
        url=Secret("postgresql://wireglot:p%40ssword-1@db.example/wireglot"),
        shared=Secret("rediss://:redis-password@cache.example:6379/0"),
    )
    hidden = secrets_of(Settings(store=store)) - secrets_of(Settings())
    assert hidden == {"p%40ssword-1", "p@ssword-1", "redis-password"}
