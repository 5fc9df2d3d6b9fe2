"""Reasoning that was kept goes back to the family that it came from, and no other request hears of it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import every_dialect, model_at
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

UPSTREAMS = ("anthropic", "openai-chat", "openai-responses", "gemini")
Stage = tuple[LiveGateway, ScriptedUpstream]
_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        yield gateway, upstream


def post(gateway: LiveGateway, body: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The answer, and the features that are lost."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    headers = {"content-type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    lost = response.getheader("x-wireglot-losses") or ""
    return json.loads(response.read()), {each for each in lost.split(",") if each.startswith("reasoning.")}


def conversation(gateway: LiveGateway, source: str, target: str) -> tuple[dict[str, Any], set[str]]:
    """One model thinks and calls a tool, another is asked to go on, by a client that carries no reasoning."""
    tool = {"type": "function", "function": {"name": "look", "parameters": _NOTHING}}
    question = {"role": "user", "content": f"[[demo:think]] [[demo:tool look {{}}]] {source} {target}"}
    common = {"tools": [tool], "reasoning_effort": "high"}
    first, _ = post(gateway, {"model": model_at(source), "messages": [question], **common})
    said = first["choices"][0]["message"]
    calls = [{key: call[key] for key in ("id", "type", "function")} for call in said["tool_calls"]]
    turn = {"role": "assistant", "content": said["content"], "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in calls]
    return post(gateway, {"model": model_at(target), "messages": [question, turn, *results], **common})


def test_kept_reasoning_is_put_back_only_where_it_came_from(stage: Stage) -> None:
    gateway, upstream = stage
    wrong = []
    for source in UPSTREAMS:
        for target in UPSTREAMS:
            answered, lost = conversation(gateway, source, target)
            asked = upstream.requests[-1].body.decode()
            carried = any(mark in asked for mark in ("The user writes", "d2lyZWdsb3Q"))
            own = source == target
            # Gemini demands a signature with every call: without one of its own, a bypass is invented.
            expected = {"reasoning.signature"} if target == "gemini" and not own else set()
            keeps = own and source != "openai-chat"  # which the client speaks itself: it carries its own
            if "error" in answered or (carried and not own) or (keeps and not carried) or lost != expected:
                wrong.append((source, target, carried, lost, answered.get("error")))
    assert not wrong
