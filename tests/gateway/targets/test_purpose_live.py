"""Requests with the headers of real agents through a live gateway: where they go, and what is known of them."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.dialects.test_purpose import (
    CLAUDE_AGENT,
    CLAUDE_COMPACTION,
    CLAUDE_MAIN,
    CLAUDE_TITLE,
    CODEX_AGENT,
    CODEX_MAIN,
)
from tests.gateway.trace.trace_kit import Stage, stage
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until

MODELS = """
[models]
m = [
  { to = "openai-chat-up/cheap", purpose = ["background", "compaction"] },
  { to = "openai-chat-up/explorer", agent = "explore" },
  { to = "openai-chat-up/agent", purpose = "subagent" },
  { to = "openai-chat-up/eyes", images = true },
  { to = "openai-chat-up/long", prompt_over = 60000 },
  { to = "openai-chat-up/main" },
]
"""
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


@pytest.fixture(scope="module")
def routed() -> Iterator[Stage]:
    with stage('mode = "off"', lambda upstream: MODELS) as made:
        yield made


def claude(content: Any = "Hi") -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": content}]}


SHOWN = claude() | {
    "messages": [
        {"role": "user", "content": "Take a screenshot."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_1", "name": "shot", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [PICTURE]}],
        },
    ]
}


def ask(stage: Stage, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
    """The row of the exchange."""
    connection = http.client.HTTPConnection("127.0.0.1", stage.gateway.port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 200, said
        id = answer.headers["x-request-id"]
    finally:
        connection.close()
    return stage.look.over(id)


@rows(
    ("body", "headers", "target"),
    [
        (claude(), {}, "main"),
        (claude(), CLAUDE_MAIN, "main"),
        (claude(), CLAUDE_COMPACTION, "cheap"),
        (claude(), CLAUDE_TITLE, "cheap"),
        (claude(), CLAUDE_MAIN | {"x-claude-code-request-class": "auxiliary"}, "main"),
        (claude(), CLAUDE_AGENT, "explorer"),
        (claude(), CLAUDE_AGENT | {"x-claude-code-agent-type": "general-purpose"}, "agent"),
        (claude([PICTURE, {"type": "text", "text": "What is it?"}]), CLAUDE_MAIN, "eyes"),
        (SHOWN, CLAUDE_MAIN, "eyes"),
        (claude("word " * 30_000), CLAUDE_MAIN, "main"),
        (claude("word " * 45_000), CLAUDE_MAIN, "long"),
        (claude("word " * 45_000), CLAUDE_TITLE, "cheap"),
    ],
)
def test_a_request_goes_where_its_first_rule_leads(
    routed: Stage, body: dict[str, Any], headers: dict[str, str], target: str
) -> None:
    row = ask(routed, "/v1/messages", body, headers)
    assert (row["asked"], row["provider"], row["model"]) == ("m", "openai-chat-up", target)


def test_codex_is_known_by_its_own_headers(routed: Stage) -> None:
    body = {"model": "m", "input": "Hi", "store": False}
    main = ask(routed, "/v1/responses", body, CODEX_MAIN)
    agent = ask(routed, "/v1/responses", body, CODEX_AGENT)
    assert (main["model"], main["purpose"], main["purpose_word"]) == ("main", "main", "turn")
    assert (agent["model"], agent["purpose"], agent["agent_name"]) == ("agent", "subagent", "collab_spawn")
    assert agent["session"] == main["session"], "its agents belong to the same conversation"
    assert agent["parent_agent_id"] == CODEX_MAIN["thread-id"]


def test_what_a_request_is_for_is_in_row_log_and_ledger(routed: Stage) -> None:
    nested = CLAUDE_AGENT | {"x-claude-code-parent-agent-id": "a1", "user-agent": "claude-cli/2.1.326"}
    nested["x-claude-code-session-id"] = "session-of-nested"
    row = ask(routed, "/v1/messages", claude(), nested)
    reported = {
        name: row[name]
        for name in ("client", "purpose", "purpose_word", "agent_name", "agent_id", "parent_agent_id")
    }
    assert reported == {
        "client": "claude-code",
        "purpose": "subagent",
        "purpose_word": "subagent",
        "agent_name": "Explore",
        "agent_id": "a5d6b22b3c037095f",
        "parent_agent_id": "a1",
    }
    for query in ("purpose=subagent", "agent=Explore", "agent=a5d6b22b3c037095f"):
        assert row["id"] in [each["id"] for each in routed.look.rows(query)]
    assert row["id"] not in [each["id"] for each in routed.look.rows("purpose=main")]
    line = wait_until(lambda: next((e for e in routed.gateway.log() if e["id"] == row["id"]), None))
    assert (line["purpose"], line["agent_name"]) == ("subagent", "Explore")

    def used() -> dict[str, Any] | None:
        connection = http.client.HTTPConnection("127.0.0.1", routed.gateway.port, timeout=DEADLINE_SECONDS)
        connection.request("GET", "/v1/usage?group_by=purpose,agent&session=session-of-nested")
        document: dict[str, Any] = json.loads(connection.getresponse().read())
        connection.close()
        return document if document.get("data") else None

    (group,) = wait_until(used)["data"]
    assert (group["purpose"], group["agent"], group["requests"]) == ("subagent", "Explore", 1)


def test_a_request_that_says_nothing_has_no_purpose(routed: Stage) -> None:
    row = ask(
        routed, "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, {}
    )
    assert not {"purpose", "purpose_word", "agent_name", "agent_id", "parent_agent_id"} & row.keys()
    line = wait_until(lambda: next((e for e in routed.gateway.log() if e["id"] == row["id"]), None))
    assert not {"purpose", "agent_name"} & line.keys()
