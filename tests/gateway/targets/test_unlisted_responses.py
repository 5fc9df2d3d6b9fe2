"""A server of Responses that no catalog file lists is not OpenAI: Codex's own kinds of tools reach it as functions."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.providers.spec import limits_for, limits_of, provider

FUNCTION = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
TOOLS: list[dict[str, Any]] = [
    {"type": "custom", "name": "patch", "description": "Applies a patch"},
    {"type": "namespace", "name": "files", "description": "Files", "tools": [FUNCTION]},
]


@rows("tool", TOOLS, ids=lambda tool: tool["type"])
def test_codexs_tools_are_fitted_for_it(tool: dict[str, Any]) -> None:
    body = {"model": "mine/m", "input": "hi", "tools": [tool, {**FUNCTION, "name": "g"}]}
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-responses") as gateway:
        answer = httpx2.post(f"{gateway.url}/v1/responses", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        sent = upstream.requests[-1].json
    assert {each["type"] for each in sent["tools"]} == {"function"}
    assert answer.headers["x-wireglot-losses"]


def test_openai_itself_gets_them_unchanged() -> None:
    limits = limits_for("openai-responses", "gpt-5.5", "openai", own=True)
    assert (limits.custom_tools, limits.namespaces, limits.hosted_tools) == (True, True, True)


@pytest.mark.parametrize("own", [True, False])
def test_an_unlisted_server_may_be_said_to_have_them(own: bool) -> None:
    """`limits` of a configuration."""
    unlisted = replace(provider("openai"), name="mine", catalog="", home=False, models=(), limits={})
    assert not limits_of(unlisted, "openai-responses", "m", own).custom_tools
    stated = replace(unlisted, limits={"custom_tools": True})
    assert limits_of(stated, "openai-responses", "m", own).custom_tools
