"""Structured output of upstreams without output formats, as the vendors' SDKs parse it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway.faults.faults_kit import BY_NAME, ONCE, UPSTREAMS, every_dialect, start
from tests.gateway.sdk.sdk_kit import Place
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

LINES = ONCE + "limits = { output_formats = [] }\n"
USER: Any = [{"role": "user", "content": "Where is Rome?"}]
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
UPSTREAM = pytest.mark.parametrize("source", UPSTREAMS)
SCHEMA = Place.model_json_schema()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as made:
        yield made


@pytest.fixture(scope="module")
def running(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    with LiveGateway(every_dialect(upstream, LINES)) as gateway:
        yield gateway


@pytest.fixture
def gateway(running: LiveGateway, upstream: ScriptedUpstream) -> LiveGateway:
    upstream.reset()
    return running


def chat(gateway: LiveGateway, model: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    if stream:
        with client.chat.completions.stream(model=model, messages=USER, response_format=Place) as events:
            completion = events.get_final_completion()
    else:
        completion = client.chat.completions.parse(model=model, messages=USER, response_format=Place)
    (choice,) = completion.choices
    assert choice.finish_reason == "stop"
    assert not choice.message.tool_calls
    return choice.message.parsed


def responses(gateway: LiveGateway, model: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    if stream:
        with client.responses.stream(model=model, input=USER, text_format=Place, store=False) as events:
            answer: Any = events.get_final_response()
    else:
        answer = client.responses.parse(model=model, input=USER, text_format=Place, store=False)
    assert not [item for item in answer.output if item.type == "function_call"]
    return answer.output_parsed


def claude(gateway: LiveGateway, model: str, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
    asked: Any = {
        "model": model,
        "max_tokens": 500,
        "messages": USER,
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
    if stream:
        with client.messages.stream(**asked) as events:
            message: Any = events.get_final_message()
    else:
        message = client.messages.create(**asked)
    assert message.stop_reason == "end_turn"
    (block,) = [block for block in message.content if block.type != "thinking"]
    return Place.model_validate_json(block.text)


def gemini(gateway: LiveGateway, model: str, stream: bool) -> Any:
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    asked: Any = {"model": model, "contents": "Where is Rome?", "config": config}
    if not stream:
        return client.models.generate_content(**asked).parsed
    text = "".join(chunk.text or "" for chunk in client.models.generate_content_stream(**asked))
    return Place.model_validate_json(text)


CLIENTS: dict[str, Callable[[LiveGateway, str, bool], Any]] = {
    "anthropic": claude,
    "openai-chat": chat,
    "openai-responses": responses,
    "gemini": gemini,
}


@pytest.mark.sampled("client", "source")
@EITHER
@UPSTREAM
@pytest.mark.parametrize("client", CLIENTS)
def test_an_answer_has_the_form_that_was_asked_for(
    gateway: LiveGateway, upstream: ScriptedUpstream, client: str, source: str, stream: bool
) -> None:
    place = CLIENTS[client](gateway, f"{source}-up/m1", stream)
    assert isinstance(place, Place)
    assert len(upstream.requests) == 1
    sent = upstream.requests[-1].body.decode()
    assert "population" in sent
    assert "response_format" not in sent
    assert "Answer with one JSON object" not in sent
    assert "tool_choice" in sent or "functionCallingConfig" in sent


@EITHER
def test_a_client_may_refuse_it(gateway: LiveGateway, upstream: ScriptedUpstream, stream: bool) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}}
    client, model = BY_NAME["openai-chat"], "anthropic-up/m1"
    answered = start(gateway, client, model, stream=stream, response_format=wanted).rest()
    assert "output_format" in answered.headers["x-wireglot-losses"]
    assert upstream.requests[-1].json["tool_choice"] == {"type": "tool", "name": "place"}
    off = {"x-wireglot-emulate": "off"}
    start(gateway, client, model, stream=stream, response_format=wanted, headers=off).rest()
    assert "tools" not in upstream.requests[-1].json
    assert "Answer with one JSON object" in upstream.requests[-1].body.decode()
