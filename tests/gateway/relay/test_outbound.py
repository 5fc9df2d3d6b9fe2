"""What goes out to a provider beside the body."""

from __future__ import annotations

from typing import get_args

import openai
import pytest

from tests.tiers import rows
from wireglot.gateway.config import load
from wireglot.gateway.relay.outbound import list_outbound, own_outbound
from wireglot.gateway.settings import Provider
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.providers.spec import Auth

CLAUDE = (
    '[providers.anthropic]\nbase_url = "{url}"\napi_key = "upstream-key-0123456789"\n'
    '[models]\n"*" = "anthropic/claude-opus-4-6"\n'
)


def test_a_body_that_takes_a_header_to_be_read_goes_with_it() -> None:
    """[X17] Anthropic reads `mcp_servers` under a beta header, which an OpenAI client does not send."""
    with ScriptedUpstream() as upstream, LiveGateway(CLAUDE.format(url=upstream.url)) as gateway:
        gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
        gpt.responses.create(model="m1", input="Hi", store=False)
        assert "anthropic-beta" not in upstream.requests[-1].headers
        gpt.responses.create(
            model="m1",
            input="Hi",
            store=False,
            tools=[
                {
                    "type": "mcp",
                    "server_label": "github",
                    "server_url": "https://mcp.example.com/sse",
                    "require_approval": "never",
                }
            ],
        )
        asked = upstream.requests[-1]
        assert asked.headers["anthropic-beta"] == "mcp-client-2025-11-20"
        assert asked.json["mcp_servers"][0]["name"] == "github"


def test_a_fast_tier_goes_with_the_header_that_opens_it() -> None:
    """Fast mode is refused without its beta header, which an OpenAI client does not send."""
    config = CLAUDE.format(url="{url}").replace("claude-opus-4-6", "claude-opus-4-8")
    with ScriptedUpstream() as upstream, LiveGateway(config.format(url=upstream.url)) as gateway:
        gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="wg", max_retries=0)
        gpt.responses.create(model="m1", input="Hi", store=False, extra_body={"service_tier": "fast"})
        asked = upstream.requests[-1]
        assert asked.headers["anthropic-beta"] == "fast-mode-2026-02-01"
        assert asked.json["speed"] == "fast"


def provider(auth: str = "bearer", dialect: str = "openai-chat") -> Provider:
    table = {"dialect": dialect, "base_url": "https://h.example/v1", "auth": auth}
    if auth != "none":
        table["api_key"] = "the-key"
    settings = load(None, environ={}, overrides={"providers": {"it": table}}, create_secret=False)
    return settings.providers["it"]


KEY_HEADERS = {
    "bearer": {"authorization": "Bearer the-key"},
    "x-api-key": {"x-api-key": "the-key"},  # https://docs.anthropic.com/en/api/overview#authentication
    "x-goog-api-key": {"x-goog-api-key": "the-key"},  # https://ai.google.dev/api
    "api-key": {"api-key": "the-key"},  # https://learn.microsoft.com/azure/ai-foundry/openai/reference
    "none": {},
}


@pytest.mark.parametrize("auth", get_args(Auth))
def test_a_key_goes_in_the_header_of_its_vendor_and_in_no_other(auth: str) -> None:
    asked = provider(auth)
    sent = list_outbound(asked, next(iter(asked.credentials), None))
    assert sent is not None
    others = {name for headers in KEY_HEADERS.values() for name in headers}
    assert {name: value for name, value in sent.headers if name in others} == KEY_HEADERS[auth]


def test_a_key_that_the_provider_does_not_take_is_not_sent() -> None:
    (credential,) = provider().credentials
    sent = list_outbound(provider("none"), credential)
    assert sent is not None
    assert "the-key" not in str(sent.headers)


@rows(("body", "method"), [(b"", "GET"), (b"{}", "POST")])
def test_a_question_of_our_own_says_who_asks_and_what_it_can_read(body: bytes, method: str) -> None:
    asked = provider()
    sent = own_outbound(asked, None, "openai-chat", "https://h.example/v1/x", body=body)
    headers = dict(sent.headers)
    assert (sent.method, sent.url, sent.body) == (method, "https://h.example/v1/x", body)
    assert headers["user-agent"] == "wireglot"
    assert (headers["accept"], headers["accept-encoding"]) == ("application/json", "identity")
    assert ("content-type" in headers) is bool(body)


def test_connections_are_shared_by_requests_with_one_key_and_by_no_others() -> None:
    asked = provider()
    (credential,) = asked.credentials
    with_key, without = (list_outbound(asked, each) for each in (credential, None))
    assert with_key is not None
    assert without is not None
    assert with_key.pool.startswith("it\x1f")
    assert with_key.pool != without.pool == "it\x1f"
