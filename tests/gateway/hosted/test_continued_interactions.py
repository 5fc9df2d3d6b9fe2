"""Interactions that Google ends with a continuation token: the gateway has them continued, as Google's SDK does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from wireglot.gateway.hosted.loop import MAX_ROUNDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode

OWN = "gemini-interactions"
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def said(text: str, status: str, token: str, *, stream: bool) -> Behaviour:
    interaction: dict[str, Any] = {
        "id": "v1_1",
        "object": "interaction",
        "model": "m1",
        "status": status,
        "steps": [
            {"type": "thought", "signature": "U0lH"},
            {"type": "model_output", "content": [{"type": "text", "text": text}]},
        ],
        "usage": {"total_input_tokens": 10, "total_output_tokens": 3},
    }
    if token:
        interaction["continuation_token"] = token
    if not stream:
        return Behaviour(body=encode(interaction))
    codec = dialect(OWN)
    events = [*unfold(codec.parse_response(interaction, Context()))]
    return Behaviour(pieces=(codec.stream_writer(Context()).write(events),))


class Google:
    """An upstream that gives a token for each of its `tokens` before it completes an answer."""

    def __init__(self) -> None:
        self.tokens: list[str] = []
        self.upstream = ScriptedUpstream(decide=self._decide)

    def reset(self, *tokens: str) -> None:
        self.upstream.reset()
        self.tokens = [*tokens]

    def _decide(self, request: Recorded) -> Behaviour:
        stream = request.json.get("stream", False)
        if self.tokens:
            return said("More. ", "requires_continuation", self.tokens.pop(0), stream=stream)
        return said("Done.", "completed", "", stream=stream)

    @property
    def asked(self) -> list[Any]:
        return [request.json for request in self.upstream.requests]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[LiveGateway, Google]]:
    google = Google()
    with google.upstream as upstream, LiveGateway.before(upstream, OWN) as gateway:
        yield gateway, google


@pytest.fixture
def google(running: tuple[LiveGateway, Google]) -> Google:
    running[1].reset()
    return running[1]


@pytest.fixture
def gateway(running: tuple[LiveGateway, Google], google: Google) -> LiveGateway:
    return running[0]


def claude(gateway: LiveGateway, *, stream: bool) -> tuple[str, str | None, int, int]:
    client = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
    body: Any = {"model": "m1", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    if stream:
        with client.messages.stream(**body) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**body)
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, message.stop_reason, message.usage.input_tokens, message.usage.output_tokens


def chat(gateway: LiveGateway, *, stream: bool) -> tuple[str, str | None, int, int]:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    body: Any = {"model": "m1", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}
    if stream:
        with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as events:
            answer: Any = events.get_final_completion()
    else:
        answer = client.chat.completions.create(**body)
    (choice,) = answer.choices
    usage = answer.usage
    return choice.message.content, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens


def gemini(gateway: LiveGateway, *, stream: bool) -> tuple[str, str | None, int, int]:
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    body: Any = {"model": "m1", "contents": "hi", "config": {"max_output_tokens": 100}}
    models = client.models
    answers = [*models.generate_content_stream(**body)] if stream else [models.generate_content(**body)]
    last = answers[-1]
    assert last.candidates
    assert last.candidates[0].finish_reason
    assert last.usage_metadata
    text = "".join(answer.text or "" for answer in answers)
    usage = last.usage_metadata
    reason = last.candidates[0].finish_reason.value
    return text, reason, usage.prompt_token_count or 0, usage.candidates_token_count or 0


CLIENTS = {
    "anthropic": (claude, "end_turn"),
    "openai-chat": (chat, "stop"),
    "gemini": (gemini, "STOP"),
}


@EITHER
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_one_whole_answer(
    gateway: LiveGateway, google: Google, client: str, stream: bool
) -> None:
    google.reset("dG9rZW4x", "dG9rZW4y")
    ask, ended = CLIENTS[client]
    assert ask(gateway, stream=stream) == ("More. More. Done.", ended, 30, 9)
    first, second, third = google.asked
    assert "continuation_token" not in first
    assert second == {**first, "continuation_token": "dG9rZW4x"}, (
        "all else as Google's SDK sends it: the same"
    )
    assert third == {**first, "continuation_token": "dG9rZW4y"}


@EITHER
def test_an_answer_without_a_pause_is_asked_for_once(
    gateway: LiveGateway, google: Google, stream: bool
) -> None:
    assert chat(gateway, stream=stream) == ("Done.", "stop", 10, 3)
    assert len(google.asked) == 1


def test_the_same_token_twice_is_the_end(gateway: LiveGateway, google: Google) -> None:
    google.reset("c2FtZQ==", "c2FtZQ==", "c2FtZQ==")
    assert chat(gateway, stream=False) == ("More. More. ", "length", 20, 6)
    assert len(google.asked) == 2


def test_tokens_without_end_end_at_the_maximum_of_rounds(gateway: LiveGateway, google: Google) -> None:
    google.reset(*(f"dG9r{n:04}" for n in range(100)))
    text, reason, _, _ = chat(gateway, stream=False)
    assert (text, reason) == ("More. " * (MAX_ROUNDS + 1), "length")


@EITHER
@pytest.mark.parametrize("stored", [False, True], ids=["not_stored", "stored"])
def test_a_client_of_the_dialect_continues_by_itself(
    gateway: LiveGateway, google: Google, stream: bool, stored: bool
) -> None:
    """Of a stored interaction its SDK sends the id and the token alone. Google keeps nothing of it: it gets
    the input again, without the words that it continues."""
    google.reset("dG9rZW4x", "dG9rZW4y")
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    asked: Any = {"model": "m1", "input": "hi", "store": stored, "automatic_continuation": True}
    if stream:
        events: Any = client.interactions.create(**asked, stream=True)
        text = "".join(
            event.delta.text
            for event in events
            if event.event_type == "step.delta" and event.delta.type == "text"
        )
    else:
        text = client.interactions.create(**asked).output_text
    assert text == "More. More. Done." if stream else text.endswith("Done.")
    first, second, third = google.asked
    assert second == {**first, "continuation_token": "dG9rZW4x"}
    assert third == {**first, "continuation_token": "dG9rZW4y"}
