"""A provider with several endpoints: which of them a request goes to."""

from __future__ import annotations

from typing import Any

from tests.gateway.relay.as_is_kit import ASKED, CONFIG, Stage
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.wire.json import decode, encode

# One provider, both forms


def test_claude_clients_are_forwarded_and_others_translated_by_one_provider() -> None:
    """[K8] `kimi` takes Messages as they are at its Anthropic endpoint, and Chat at its own."""
    with ScriptedUpstream() as upstream, LiveGateway(CONFIG.format(url=upstream.url)) as gateway:
        stage = Stage(gateway, upstream)
        messages = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
        body = b'{"max_tokens": 64, "model": "kimi-k3",  "messages": ' + encode(messages) + b"}"
        status, _, _ = stage.post("/v1/messages", body)
        assert status == 200
        assert stage.upstream.requests[-1].path == "/v1/messages"
        assert stage.arrived() == body
        body = encode({"model": "kimi-k3", "messages": [ASKED]})
        assert stage.post("/v1/chat/completions", body)[0] == 200
        assert stage.upstream.requests[-1].path == "/v1/chat/completions"
        assert stage.arrived() == body
        gemini = encode({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]})
        assert stage.post("/v1beta/models/kimi-k3:generateContent", gemini)[0] == 200
        assert stage.upstream.requests[-1].path == "/v1/chat/completions"


# The dialect with the fewest losses

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
LOCAL = """
[providers.{name}]
base_url = "{url}/v1"
base_urls = {{ anthropic = "{url}" }}

[models]
"*" = "{name}/*"
"""


@rows("name", ["ollama", "llama-cpp", "vllm", "kimi"])
@rows("policy", ["warn", "strict"])
def test_a_schema_goes_where_it_is_enforced(name: str, policy: str) -> None:
    """[L13] Ollama and llama.cpp lose a JSON schema on Messages and enforce it on Chat: there it goes. What
    loses nothing stays in the client's own dialect."""
    key = 'api_key = "upstream-key-0123456789"\n' if name == "kimi" else ""
    config = LOCAL.format(name=name, url="URL").replace("]\nbase", f"]\n{key}base", 1)
    with ScriptedUpstream() as upstream, LiveGateway(config.replace("URL", upstream.url)) as gateway:
        stage = Stage(gateway, upstream)
        plain: dict[str, Any] = {
            "model": "kimi-k3",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": "hi"}],
        }
        assert stage.post("/v1/messages", encode(plain), x_wireglot_loss_policy=policy)[0] == 200
        assert upstream.requests[-1].path == "/v1/messages"
        asked = {**plain, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
        status, headers, answer = stage.post("/v1/messages", encode(asked), x_wireglot_loss_policy=policy)
        assert status == 200
        assert decode(answer)["type"] == "message"
        assert upstream.requests[-1].path == "/v1/chat/completions"
        sent = decode(stage.arrived())
        assert sent["response_format"]["json_schema"]["schema"] == SCHEMA
        assert "output_format" not in headers.get("x-wireglot-losses", "")


def test_a_loss_that_is_the_same_everywhere_changes_nothing() -> None:
    """[L13] Where no other dialect does better, the client's own stays."""
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(LOCAL.format(name="ollama", url=upstream.url)) as gateway,
    ):
        stage = Stage(gateway, upstream)
        document = {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
        }
        body = {
            "model": "m",
            "max_tokens": 64,
            "messages": [{"role": "user", "content": [document, {"type": "text", "text": "hi"}]}],
        }
        status, headers, _ = stage.post("/v1/messages", encode(body))
        assert status == 200
        assert "document" in headers["x-wireglot-losses"]
        assert upstream.requests[-1].path == "/v1/messages"
