"""What a model has thought goes back to it with each round, and with later turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import TOWER, HostedStage, chat_answer, chat_calls
from tests.gateway.sdk.sdk_kit import reasoning_state
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.wire.json import decode, encode, encode_text

STRICT = '[[demo:strict]][[demo:think]][[demo:tool web_search {"query": "tower"}]] How high is it?'
"""Has the demo model think, search, and refuse a conversation in which a signature came back changed."""


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage() as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("thinks", [False, True], ids=["unasked", "asked"])
@pytest.mark.parametrize("upstream", ["anthropic", "openai-responses", "gemini"])
def test_signed_state_goes_back_unchanged(
    stage: HostedStage, upstream: str, thinks: bool, streamed: bool
) -> None:
    more = _asks_for(thinks)
    model = f"{upstream}-up/m1"
    turns: list[Any] = [{"role": "user", "content": STRICT}]
    message = stage.ask_claude(model, streamed, turns, **more)
    assert message.stop_reason == "end_turn"
    assert "web_search_tool_result" in [block.type for block in message.content]
    assert reasoning_state(upstream, stage.upstream.requests[1].json)
    turns += [
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": "Thanks."},
    ]
    assert stage.ask_claude(model, streamed, turns, **more).stop_reason == "end_turn"
    assert TOWER.text in encode_text(stage.upstream.requests[-1].json)


def _thinking(behaviour: Behaviour, thought: str) -> Behaviour:
    body = decode(behaviour.body or b"")
    body["choices"][0]["message"]["reasoning_content"] = thought
    return Behaviour(body=encode(body))


def _asks_for(thinks: bool) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("thinks", [False, True], ids=["unasked", "asked"])
def test_reasoning_is_shown_of_every_round_or_of_none(
    stage: HostedStage, thinks: bool, streamed: bool
) -> None:
    stage.upstream.next(
        _thinking(chat_calls(("web_search", {"query": "tower"})), "I must search."),
        _thinking(chat_answer({"content": "324 metres."}), "Now I know."),
    )
    turns: list[Any] = [{"role": "user", "content": "How high?"}]
    message = stage.ask_claude("openai-chat-up/m1", streamed, turns, **_asks_for(thinks))
    shown = [block.thinking for block in message.content if block.type == "thinking"]
    assert shown == (["I must search.", "Now I know."] if thinks else [])


@pytest.mark.parametrize("thinks", [False, True], ids=["unasked", "asked"])
def test_plain_reasoning_goes_back_in_the_next_round(stage: HostedStage, thinks: bool) -> None:
    """Kimi and DeepSeek refuse calls without the reasoning that led to them."""
    more = _asks_for(thinks)
    stage.upstream.next(
        _thinking(chat_calls(("web_search", {"query": "tower"})), "I must search."),
        _thinking(chat_answer({"content": "324 metres."}), "Now I know."),
    )
    turns: list[Any] = [{"role": "user", "content": "How high?"}]
    message = stage.ask_claude("openai-chat-up/m1", False, turns, **more)
    assert message.content[-1].text == "324 metres."
    call = stage.upstream.requests[1].json["messages"][1]
    assert call["reasoning_content"] == "I must search."
    turns += [
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": "Thanks."},
    ]
    stage.ask_claude("openai-chat-up/m1", False, turns, **more)
    sent = stage.upstream.requests[-1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
