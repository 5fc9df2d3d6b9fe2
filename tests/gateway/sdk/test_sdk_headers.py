"""What every answer through the gateway tells about itself, and that it tells of losses only where there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import openai
import pytest
from google.genai import types

from tests.gateway.sdk.sdk_kit import MODEL, WEATHER, Stage, stage_fixtures
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

Headers = Mapping[str, str]
USER: Any = [{"role": "user", "content": "[[demo:echo]] Hello"}]
running, stage = stage_fixtures()


def from_claude(stage: Stage, stream: bool = False, **more: Any) -> Headers:
    raw = stage.claude.messages.with_raw_response.create(
        **{"model": MODEL, "max_tokens": 100, "messages": USER, "stream": stream, **more}
    )
    return finished(raw, stream)


def from_chat(stage: Stage, stream: bool = False, **more: Any) -> Headers:
    raw = stage.gpt.chat.completions.with_raw_response.create(
        **{"model": MODEL, "messages": USER, "stream": stream, "max_completion_tokens": 100, **more}
    )
    return finished(raw, stream)


def from_responses(stage: Stage, stream: bool = False, **more: Any) -> Headers:
    raw = stage.gpt.responses.with_raw_response.create(
        **{"model": MODEL, "input": USER, "stream": stream, "max_output_tokens": 100, **more}
    )
    return finished(raw, stream)


def from_genai(stage: Stage, stream: bool = False, **more: Any) -> Headers:
    config = types.GenerateContentConfig(**{"max_output_tokens": 100, **more})
    asked: Any = {"model": MODEL, "contents": "[[demo:echo]] Hello", "config": config}
    if stream:
        answer = [*stage.gemini.models.generate_content_stream(**asked)][-1]
    else:
        answer = stage.gemini.models.generate_content(**asked)
    assert answer.sdk_http_response is not None
    return answer.sdk_http_response.headers or {}


def finished(raw: Any, stream: bool) -> Headers:
    answer = raw.parse()
    if stream:
        list(answer)
    headers: Headers = raw.headers
    return headers


ASK: dict[str, Callable[..., Headers]] = {
    "anthropic": from_claude,
    "openai-chat": from_chat,
    "openai-responses": from_responses,
    "gemini": from_genai,
}


@pytest.mark.sampled("sdk", "stream", each=2)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", ASK)
def test_an_answer_tells_its_id_and_its_route(stage: Stage, sdk: str, stream: bool) -> None:
    headers = ASK[sdk](stage, stream)
    assert headers["x-wireglot-route"] == f"mine/{MODEL}"
    identifier = headers["x-wireglot-request-id"]
    assert identifier.startswith("req_")
    assert identifier == headers["x-request-id"]


@pytest.mark.sampled("sdk", "stream", each=2)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", ASK)
def test_a_plain_request_loses_nothing(stage: Stage, sdk: str, stream: bool) -> None:
    assert "x-wireglot-losses" not in ASK[sdk](stage, stream)


ONE_TOOL = [{"type": "function", "name": "f", "parameters": WEATHER, "strict": False}]
NO_TOP_K = ("openai-chat", "openai-responses", "gemini-interactions")
BENT: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    # SDK -> options of a request, what of it is reported as lost, and before which upstreams
    "anthropic": ({"extra_body": {"top_k": 5}}, "sampling.top_k", NO_TOP_K),
    "openai-chat": ({"seed": 7}, "sampling.seed", ("anthropic", "openai-responses")),
    "openai-responses": (
        {"parallel_tool_calls": False, "tools": ONE_TOOL},
        "parallel_tools",
        ("gemini", "code-assist", "gemini-interactions"),
    ),
    "gemini": ({"top_k": 5}, "sampling.top_k", NO_TOP_K),
}


@pytest.mark.sampled("sdk", "stream", each=3)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("sdk", ASK)
def test_losses_are_reported_exactly_where_something_was_bent(stage: Stage, sdk: str, stream: bool) -> None:
    options, feature, bending = BENT[sdk]
    reported = ASK[sdk](stage, stream, **options).get("x-wireglot-losses")
    assert reported == (feature if stage.dialect in bending else None)


def test_a_limit_that_had_to_be_made_up_is_reported(stage: Stage) -> None:
    """Anthropic demands one; the others have it from their model."""
    raw = stage.gpt.responses.with_raw_response.create(model=MODEL, input="x")
    assert ("max_tokens" in raw.headers.get("x-wireglot-losses", "")) is (stage.dialect == "anthropic")


@pytest.mark.parametrize("sdk", ["anthropic", "gemini"])
def test_the_strict_refuse_before_the_upstream_is_asked(stage: Stage, sdk: str) -> None:
    paths = {
        "anthropic": (
            "/v1/messages",
            b'{"model": "m1", "max_tokens": 9, "top_k": 5, "messages": [{"role": "user", "content": "x"}]}',
        ),
        "gemini": (
            f"/v1beta/models/{MODEL}:generateContent",
            b'{"contents": [{"role": "user", "parts": [{"text": "x"}]}], "generationConfig": {"topK": 5, "maxOutputTokens": 9}}',
        ),
    }
    path, body = paths[sdk]
    answer = stage.post(path, body, {"x-wireglot-loss-policy": "strict"})
    if stage.dialect in NO_TOP_K:
        assert answer.status == 400
        assert b"top_k" in answer.body
        assert not stage.upstream.requests
    else:
        assert answer.status == 200
        assert "x-wireglot-losses" not in answer.headers


SILENT = {
    # who asked for silence -> lines of the provider, further tables, headers of the request
    "nobody": ({}, "", {}),
    "the provider": ({"losses": '"silent"'}, "", {}),
    "the request": ({}, "", {"x-wireglot-loss-policy": "silent"}),
}


@pytest.mark.parametrize("who", SILENT)
def test_the_silent_are_informed_of_no_loss(who: str) -> None:
    """Not of one in the question (the seed), and not of one in the answer (which sequence stopped it)."""
    provider, more, headers = SILENT[who]
    body = {"model": MODEL, "max_completion_tokens": 100, "messages": USER, "stop": ["lo"]}
    with (
        ScriptedUpstream() as upstream,
        LiveGateway.before(upstream, "anthropic", more, **provider) as gateway,
        openai.OpenAI(
            base_url=f"{gateway.url}/v1",
            api_key="x",
            max_retries=0,
            http_client=openai.DefaultHttpxClient(verify=False),
        ) as client,
    ):
        create: Any = client.chat.completions.with_raw_response.create
        asked = create(**body, seed=7, extra_headers=headers).headers.get("x-wireglot-losses")
        plain = create(**body, extra_headers=headers).headers.get("x-wireglot-losses")
    loud = who == "nobody"
    assert plain == ("stop_reason,stop_sequence" if loud else None)
    assert asked == ("sampling.seed,stop_reason,stop_sequence" if loud else None)


def test_a_stream_is_held_up_by_no_proxy(stage: Stage) -> None:
    """nginx buffers answers unless it is told not to; a cache must not keep a stream."""
    for from_client in (from_claude, from_chat, from_responses, from_genai):
        streamed, whole = from_client(stage, stream=True), from_client(stage)
        assert (streamed["x-accel-buffering"], streamed["cache-control"]) == ("no", "no-cache")
        assert streamed["content-type"] == "text/event-stream; charset=utf-8"
        assert "x-accel-buffering" not in whole
        assert whole["content-type"] == "application/json"
