"""Upstreams that do not tell what an answer came to: clients that go by it get an estimate, marked as one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

WORDS = "The answer is forty-two, and it always was."
USAGE = {"prompt_tokens": 1234, "completion_tokens": 9, "total_tokens": 1243}
UNREPORTED: list[Any] = [None, {}, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}]


def gateway(upstream: ScriptedUpstream, dialect: str = "openai-chat") -> LiveGateway:
    base = upstream.url if dialect == "anthropic" else f"{upstream.url}/v1"
    return LiveGateway(
        f'[providers.host]\ndialect = "{dialect}"\nbase_url = "{base}"\napi_key = "a-key-012345"\n'
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


def ask_chat(url: str, streamed: bool) -> tuple[Any, Any]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="x", max_retries=0)
    asked: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "What is the answer?" * 20}],
    }
    if streamed:
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
        chunks: list[Any] = list(client.chat.completions.create(**asked))
        return counted(chunks[-1].usage), {}
    raw = client.chat.completions.with_raw_response.create(**asked)
    return counted(raw.parse().usage), raw.headers


def ask_gemini(url: str, streamed: bool) -> tuple[Any, Any]:
    options = types.HttpOptions(base_url=url)
    contents = "What is the answer?" * 20
    with genai.Client(api_key="x", http_options=options) as client:
        if streamed:
            chunks = list(client.models.generate_content_stream(model="m", contents=contents))
            return counted(chunks[-1].usage_metadata), {}
        whole = client.models.generate_content(model="m", contents=contents)
        assert whole.sdk_http_response is not None
        return counted(whole.usage_metadata), whole.sdk_http_response.headers


def counted(usage: Any) -> Any:
    """By the names that the other SDKs have for it."""
    if hasattr(usage, "prompt_tokens"):
        return SimpleNamespace(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens)
    return SimpleNamespace(input_tokens=usage.prompt_token_count, output_tokens=usage.candidates_token_count)


CLIENTS = {
    "messages": ask_messages,
    "responses": ask_responses,
    "chat": ask_chat,
    "gemini": ask_gemini,
}
FROM_CHAT = [name for name in CLIENTS if name != "chat"]
"""Clients of another dialect than the upstream's: what passes through is not changed."""


@rows("streamed", [False, True], ids=["whole", "streamed"])
@rows("client", FROM_CHAT)
def test_an_answer_without_a_usage_is_estimated_and_marked(client: str, streamed: bool) -> None:
    """[X19] Reported 0, agents would never compact."""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        for usage in UNREPORTED:
            upstream.next(stream(usage) if streamed else whole(usage))
            reported, headers = CLIENTS[client](live.url, streamed)
            assert 80 < reported.input_tokens < 250
            assert 8 < reported.output_tokens < 30
            line = live.wait_log()[-1]
            assert line["tokens_source"] == "estimated"
            assert line["tokens"]["input"] == reported.input_tokens
            assert "usage.detail" in str(line["losses"])
            assert streamed or headers["x-wireglot-estimate"] == "true"


@rows("streamed", [False, True], ids=["whole", "streamed"])
@rows("client", FROM_CHAT)
def test_what_a_provider_once_reported_calibrates_the_estimate(client: str, streamed: bool) -> None:
    """[X19] The same conversation again: what was reported for it holds."""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        answers = [stream(), stream(USAGE), stream()] if streamed else [whole(), whole(USAGE), whole()]
        for answer in answers:
            upstream.next(answer)
        counts = [CLIENTS[client](live.url, streamed)[0].input_tokens for _ in answers]
        assert counts[0] < 250
        assert counts[1:] == [1234, 1234]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_usage_that_is_reported_is_no_estimate(streamed: bool) -> None:
    """[X19]"""
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        upstream.next(stream(USAGE) if streamed else whole(USAGE))
        reported, headers = ask_messages(live.url, streamed)
        assert (reported.input_tokens, reported.output_tokens) == (1234, 9)
        assert "x-wireglot-estimate" not in headers
        assert "tokens_source" not in live.wait_log()[-1]


def message(usage: Any) -> Behaviour:
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": WORDS}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    return Behaviour(body=encode(body))


def test_a_chat_client_gets_an_estimate_too() -> None:
    """The same rule in every dialect: `usage` is there whether a provider counts or not."""
    with ScriptedUpstream() as upstream, gateway(upstream, "anthropic") as live:
        upstream.next(message({"input_tokens": 0, "output_tokens": 0}))
        reported, headers = ask_chat(live.url, False)
        assert 80 < reported.input_tokens < 250
        assert 8 < reported.output_tokens < 30
        assert headers["x-wireglot-estimate"] == "true"
        assert live.wait_log()[-1]["tokens_source"] == "estimated"


def messages_stream() -> Behaviour:
    usage = {"input_tokens": 0, "output_tokens": 0}
    start = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": WORDS}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    lines = (f"event: {event['type']}\ndata: ".encode() + encode(event) + b"\n\n" for event in events)
    return Behaviour(pieces=tuple(lines))


def test_a_chat_stream_reports_an_estimate_where_it_is_asked_for() -> None:
    with ScriptedUpstream() as upstream, gateway(upstream, "anthropic") as live:
        upstream.next(messages_stream(), messages_stream())
        reported, _ = ask_chat(live.url, True)
        assert 80 < reported.input_tokens < 250
        assert "usage.detail" in str(live.wait_log()[-1]["losses"])
        client = openai.OpenAI(base_url=f"{live.url}/v1", api_key="x", max_retries=0)
        chunks = list(
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "hi"}], stream=True
            )
        )
        assert all(chunk.usage is None for chunk in chunks)
        assert "usage.detail" not in str(live.wait_log(2)[-1].get("losses"))


def test_a_message_begins_with_the_estimate_of_its_input() -> None:
    """Chat reports usage at the end: until then a client would take the context for empty."""
    asked: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "What is the answer?" * 20}],
    }
    with ScriptedUpstream() as upstream, gateway(upstream) as live:
        client = anthropic.Anthropic(base_url=live.url, api_key="x", max_retries=0)
        upstream.next(*[stream(USAGE)] * 3)
        for least, most in ((80, 250), (80, 250), (1234, 1234)):  # reports calibrate once one was estimated
            with client.messages.stream(**asked) as events:
                first = next(iter(events))
                assert first.type == "message_start"
                assert least <= first.message.usage.input_tokens <= most
                assert events.response.headers["x-wireglot-estimate"] == "true"
                final = events.get_final_message().usage
            assert (final.input_tokens, final.output_tokens) == (1234, 9)
        assert "tokens_source" not in live.wait_log(3)[-1], "what counts is what was reported"
