"""Every secret that a configuration holds is known to whoever scrubs."""

from wireglot.gateway.observe.redact import secrets_of
from wireglot.gateway.settings import Credential, Provider, Secret, ServerSettings, Settings
from wireglot.http.redaction import Redactor
from wireglot.providers.spec import ProviderSpec


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
    told = Redactor(secrets_of(settings), settings.providers).text(
        "a public title; credential-value-2; proxy-password; sealing-secret-value"
    )
    assert told == "a public title; [redacted]; [redacted]; [redacted]"
