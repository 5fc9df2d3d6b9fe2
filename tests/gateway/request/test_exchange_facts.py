"""What routes ask about a request: its images, its effort, its length, its conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway import kit
from wireglot.gateway.request.exchange import Exchange

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [IMAGE]}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}


def asked(messages: Any, **more: Any) -> Exchange:
    body = {"model": "m", "max_tokens": 10, "messages": messages, **more}
    return kit.exchange(kit.settings(), body, path="/v1/messages")


def user(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(content)}]


@pytest.mark.parametrize(
    ("messages", "has"),
    [
        (user({"type": "text", "text": "hi"}), False),
        (user({"type": "text", "text": "hi"}, IMAGE), True),
        ([*user({"type": "text", "text": "go"}), CALL, *user(RESULT)], True),
        ([*user(IMAGE), {"role": "assistant", "content": "a cat"}, {"role": "user", "content": "so"}], True),
        ("unreadable", False),
    ],
)
def test_an_image_counts_wherever_it_is(messages: Any, has: bool) -> None:
    assert asked(messages).has_images() is has


def test_a_longer_prompt_has_more_tokens_and_an_unreadable_one_none() -> None:
    short, long = (
        asked(user({"type": "text", "text": "word " * count})).prompt_tokens() for count in (1, 1000)
    )
    assert 0 < short < 50
    assert 500 < long < 2000
    assert asked("unreadable").prompt_tokens() == 0


def test_what_is_to_be_embedded_is_read_as_such() -> None:
    def embedding(path: str, body: Any) -> Exchange:
        return kit.exchange(kit.settings(), body, path=path)

    short, long = (
        embedding("/v1/embeddings", {"model": "m", "input": ["word " * count] * 2}) for count in (1, 1000)
    )
    assert 0 < short.prompt_tokens() < 50
    assert 1000 < long.prompt_tokens() < 4000
    assert not long.has_images()
    assert long.effort() == ""
    assert embedding("/v1/embeddings", {"model": "m", "input": 1}).prompt_tokens() == 0
    picture = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    one = embedding("/v1beta/models/m:embedContent", {"content": {"parts": [{"text": "a"}, picture]}})
    assert one.has_images()
    assert short.affinity() != long.affinity()


def test_the_effort_is_the_one_that_was_asked_for() -> None:
    hello = user({"type": "text", "text": "hi"})
    assert asked(hello, output_config={"effort": "high"}).effort() == "high"
    assert asked(hello).effort() == ""
    for budget, effort in ((1024, "low"), (8000, "medium"), (20_000, "high"), (60_000, "max")):
        thinking = {"type": "enabled", "budget_tokens": budget}
        assert asked(hello, max_tokens=64_000, thinking=thinking).effort() == effort
    assert asked(hello, thinking={"type": "disabled"}).effort() == "none"
    assert asked("unreadable").effort() == ""


def test_a_conversation_that_cannot_be_read_is_known_by_how_its_body_begins() -> None:
    one, same, other = asked("unreadable"), asked("unreadable"), asked("unlike")
    assert one.affinity() == same.affinity() != other.affinity()
    grown = [
        *user({"type": "text", "text": "hi"}),
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "so"},
    ]
    assert asked(grown[:1]).affinity() == asked(grown).affinity()
    assert asked(grown[2:]).affinity() != asked(grown).affinity()
