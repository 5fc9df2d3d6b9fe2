"""Upstreams that do not tell what an answer came to: clients that go by it get an estimate, marked as one."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.wire.json import encode

WORDS = "The answer is forty-two, and it always was."
USAGE = {"prompt_tokens": 1234, "completion_tokens": 9, "total_tokens": 1243}
UNTOLD: list[Any] = [None, {}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}]


def gateway(upstream: ScriptedUpstream) -> LiveGateway:
    return LiveGateway(
        f'[providers.host]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "a-key-012345"\n'
        '[models]\n"*" = "host/*"\n'
    )


def whole(usage: Any = None) -> Behaviour:
    message = {"role": "assistant", "content": WORDS}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return Behaviour(body=encode(body if usage is None else {**body, "usage": usage}))


def stream(usage: Any = None) -> Behaviour:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"content": word + " "}}]} for word in WORDS.split(" ")
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    if usage is not None:
        chunks.append({**head, "choices": [], "usage": usage})
    pieces = tuple(b"data: " + encode(chunk) + b"\n\n" for chunk in chunks)
    return Behaviour(pieces=(*pieces, b"data: [DONE]\n\n"))


def ask_messages(url: str, streamed: bool) -> tuple[Any, Any]:
    client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "What is the answer?" * 20}],
    }
    if streamed:
        with client.messages.stream(**asked) as events:
            return events.get_final_message().usage, {}
    raw = client.messages.with_raw_response.create(**asked)
    return raw.parse().usage, raw.headers


def ask_responses(url: str, streamed: bool) -> tuple[Any, Any]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    asked: dict[str, Any] = {"model": "m", "input": "What is the answer?" * 20, "store": False}
    if streamed:
        with client.responses.stream(**asked) as events:
            return events.get_final_response().usage, {}
    raw = client.responses.with_raw_response.create(**asked)
    return raw.parse().usage, raw.headers


CLIENTS = {"messages": ask_messages, "responses": ask_responses}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_without_a_usage_is_estimated_and_marked(client: str, streamed: bool) -> None:
    """[X19] Told 0, agents would never compact."""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        for usage in UNTOLD:
            upstream.next(stream(usage) if streamed else whole(usage))
            told, headers = CLIENTS[client](live.url, streamed)
            assert 80 < told.input_tokens < 250
            assert 8 < told.output_tokens < 30
            line = live.wait_log()[-1]
            assert line["tokens_source"] == "estimated"
            assert line["tokens"]["input"] == told.input_tokens
            assert "usage.detail" in str(line["losses"])
            assert streamed or headers["x-wireglot-estimate"] == "true"


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_provider_once_told_calibrates_the_estimate(client: str, streamed: bool) -> None:
    """[X19] The same conversation again: what was reported for it holds."""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        answers = [stream(), stream(USAGE), stream()] if streamed else [whole(), whole(USAGE), whole()]
        for answer in answers:
            upstream.next(answer)
        counts = [CLIENTS[client](live.url, streamed)[0].input_tokens for _ in answers]
        assert counts[0] < 250
        assert counts[1:] == [1234, 1234]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_usage_that_is_told_is_no_estimate(streamed: bool) -> None:
    """[X19]"""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        upstream.next(stream(USAGE) if streamed else whole(USAGE))
        told, headers = ask_messages(live.url, streamed)
        assert (told.input_tokens, told.output_tokens) == (1234, 9)
        assert "x-wireglot-estimate" not in headers
        assert "tokens_source" not in live.wait_log()[-1]
