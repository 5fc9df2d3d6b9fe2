"""What goes out to a provider beside the body."""

from __future__ import annotations

import openai

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

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
