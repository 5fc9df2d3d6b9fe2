"""Turns in which the gateway has searched, brought back by the client: to the same provider, or to another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import DIALECTS, OTHER, TOWER, HostedStage, chat_answer, chat_calls
from tests.gateway.state.usage_kit import fetch
from wireglot_core.wire.json import decode, encode_text

QUERY = {"query": "height of the tower"}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
KEYS = "".join(
    f'[keys.{name}]\nhash = "sha256:{hashlib.sha256(f"key-{name}".encode()).hexdigest()}"\n'
    for name in ("one", "other")
)


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage(KEYS) as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def post(stage: HostedStage, body: dict[str, Any], path: str = "/v1/messages", key: str = "one") -> Any:
    return decode(fetch(f"{stage.gateway.url}{path}", body, authorization=f"Bearer key-{key}"))


def asked(model: str, *turns: Any, **more: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": 100, "messages": list(turns), **more}


SAID = f"It is 324 metres high: {TOWER.url}"


def first_turn(stage: HostedStage) -> list[Any]:
    """A question, and an answer with two searches before and behind a text."""
    stage.upstream.next(
        chat_calls(("web_search", QUERY), text="I look it up."),
        chat_answer({"content": SAID}),
    )
    question = {"role": "user", "content": "How high is the tower?"}
    answer = post(stage, asked("openai-chat-up/m1", question, tools=[SEARCH]))
    assert [block["type"] for block in answer["content"]] == [
        "text", "server_tool_use", "web_search_tool_result", "text", "text",
    ]  # fmt: skip
    stage.upstream.reset()
    return [question, {"role": "assistant", "content": answer["content"]}]


@pytest.mark.parametrize("tools", [[], [SEARCH]], ids=["without-the-tool", "with-the-tool"])
@pytest.mark.parametrize("upstream", [*(f"{each}-up" for each in DIALECTS), "native"])
def test_any_provider_reads_what_was_found(stage: HostedStage, upstream: str, tools: list[Any]) -> None:
    turns = first_turn(stage)
    more = {"tools": tools} if tools else {}
    post(stage, asked(f"{upstream}/m1", *turns, {"role": "user", "content": "And in feet?"}, **more))
    sent = stage.upstream.requests[-1].json
    text = encode_text(sent)
    assert TOWER.text in text
    assert OTHER.text in text
    for word in ("server_tool_use", "web_search_tool_result", '"V0cx', "srvtoolu_"):
        assert word not in text, word


def test_the_turn_is_cut_into_call_result_and_answer(stage: HostedStage) -> None:
    turns = first_turn(stage)
    post(stage, asked("openai-chat-up/m1", *turns, {"role": "user", "content": "And in feet?"}))
    question, call, result, answer, last = stage.upstream.requests[-1].json["messages"]
    assert [message["role"] for message in (question, call, result, answer, last)] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert call["content"] == "I look it up."
    (called,) = call["tool_calls"]
    assert called["function"] == {"name": "web_search", "arguments": encode_text(QUERY)}
    assert result["tool_call_id"] == called["id"]
    assert answer["content"] == SAID


def test_the_same_turn_is_the_same_prompt_every_time(stage: HostedStage) -> None:
    """Or no prompt cache would know it."""
    turns = first_turn(stage)
    bodies = []
    for _ in range(2):
        post(stage, asked("openai-chat-up/m1", *turns, {"role": "user", "content": "And in feet?"}))
        bodies.append(stage.upstream.requests[-1].json["messages"])
    assert bodies[0] == bodies[1]


def test_what_was_sealed_for_one_key_opens_for_no_other(stage: HostedStage) -> None:
    turns = first_turn(stage)
    last = {"role": "user", "content": "And in feet?"}
    post(stage, asked("openai-chat-up/m1", *turns, last), key="other")
    text = encode_text(stage.upstream.requests[-1].json)
    assert TOWER.text not in text
    assert TOWER.url in text
    assert TOWER.title in text


def test_a_sealed_text_belongs_to_its_address(stage: HostedStage) -> None:
    """It cannot be moved to another result."""
    turns = first_turn(stage)
    results = turns[1]["content"][2]["content"]
    results[0]["encrypted_content"] = results[1]["encrypted_content"]
    post(stage, asked("openai-chat-up/m1", *turns, {"role": "user", "content": "And in feet?"}))
    assert encode_text(stage.upstream.requests[-1].json).count(OTHER.text) == 1


@pytest.mark.parametrize("sealed", ["V0cx", "V0cx=", "V0cxAAAA", "V0cx\u00e9", "V0cx AA"])
def test_a_sealed_text_that_is_none_opens_as_nothing(stage: HostedStage, sealed: str) -> None:
    turns = first_turn(stage)
    turns[1]["content"][2]["content"][0]["encrypted_content"] = sealed
    post(stage, asked("openai-chat-up/m1", *turns, {"role": "user", "content": "And in feet?"}))
    text = encode_text(stage.upstream.requests[-1].json)
    assert TOWER.url in text
    assert TOWER.text not in text


def test_tokens_are_counted_with_what_was_found(stage: HostedStage) -> None:
    turns = first_turn(stage)
    last = {"role": "user", "content": "And in feet?"}
    with_results = post(
        stage, {"model": "openai-chat-up/m1", "messages": [*turns, last]}, "/v1/messages/count_tokens"
    )
    turns[1]["content"] = turns[1]["content"][::3]
    without = post(
        stage, {"model": "openai-chat-up/m1", "messages": [*turns, last]}, "/v1/messages/count_tokens"
    )
    assert with_results["input_tokens"] > without["input_tokens"]


@pytest.mark.parametrize("stored", [False, True], ids=["echoed", "stored"])
def test_a_responses_client_brings_back_where_it_was_found(stage: HostedStage, stored: bool) -> None:
    stage.upstream.next(chat_calls(("web_search", QUERY)), chat_answer({"content": "324 metres."}))
    ask = {"model": "openai-chat-up/m1", "tools": [{"type": "web_search"}], "store": stored}
    answer = post(stage, {**ask, "input": "How high?"}, "/v1/responses")
    stage.upstream.reset()
    if stored:
        more: dict[str, Any] = {"previous_response_id": answer["id"], "input": "And in feet?"}
    else:
        history = [{"role": "user", "content": "How high?"}, *answer["output"]]
        more = {"input": [*history, {"role": "user", "content": "And in feet?"}]}
    post(stage, {**ask, **more}, "/v1/responses")
    messages = stage.upstream.requests[-1].json["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert TOWER.url in messages[2]["content"]
    assert messages[3]["content"] == "324 metres."


def test_what_another_provider_found_is_sent_by_its_titles(stage: HostedStage) -> None:
    """Only its own vendor can read the rest."""
    turns = first_turn(stage)
    text = encode_text(turns[1]).replace("srvtoolu_wg", "srvtoolu_01")
    answer: Any = decode(text)
    for hit in answer["content"][2]["content"]:
        hit["encrypted_content"] = "EqgfCioIARgB"
    last = {"role": "user", "content": "And in feet?"}
    post(stage, asked("openai-chat-up/m1", turns[0], answer, last))
    call, result = stage.upstream.requests[-1].json["messages"][1:3]
    assert [each["function"]["arguments"] for each in call["tool_calls"]] == [encode_text(QUERY)]
    assert TOWER.url in result["content"]
    assert TOWER.title in result["content"]
    assert "EqgfCioIARgB" not in encode_text(stage.upstream.requests[-1].json)


def test_its_own_vendor_gets_them_back_unchanged(stage: HostedStage) -> None:
    turns = first_turn(stage)
    answer: Any = decode(encode_text(turns[1]).replace("srvtoolu_wg", "srvtoolu_01"))
    for hit in answer["content"][2]["content"]:
        hit["encrypted_content"] = "EqgfCioIARgB"
    body = asked("native/m1", turns[0], answer, {"role": "user", "content": "And in feet?"}, tools=[SEARCH])
    post(stage, body)
    assert stage.upstream.requests[-1].json["messages"] == body["messages"]
