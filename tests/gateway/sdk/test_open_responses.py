"""What the public Open Responses suite and OpenAI's own types demand of response objects, over every upstream."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any, Final

import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseStreamEvent

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.wire.json import decode, encode

MODELS: Final = ("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini")

ALWAYS: Final[dict[str, tuple[type, ...]]] = {
    "id": (str,), "object": (str,), "created_at": (int,), "completed_at": (int, type(None)), "status": (str,),
    "incomplete_details": (dict, type(None)), "model": (str,), "previous_response_id": (str, type(None)),
    "instructions": (str, list, type(None)), "output": (list,), "error": (dict, type(None)), "tools": (list,),
    "tool_choice": (str, dict), "truncation": (str,), "parallel_tool_calls": (bool,), "text": (dict,),
    "top_p": (int, float), "presence_penalty": (int, float), "frequency_penalty": (int, float),
    "top_logprobs": (int,), "temperature": (int, float), "reasoning": (dict, type(None)),
    "user": (str, type(None)), "usage": (dict, type(None)), "max_output_tokens": (int, type(None)),
    "max_tool_calls": (int, type(None)), "store": (bool,), "background": (bool,), "service_tier": (str,),
    "metadata": (dict,), "safety_identifier": (str, type(None)), "prompt_cache_key": (str, type(None)),
}  # fmt: skip
"""The keys that the suite's schema requires of every response, and what may stand there."""

OPEN: Final = frozenset({"store", "presence_penalty", "frequency_penalty"})
"""Required by Open Responses, sent by OpenAI's servers, and not among the fields of its SDK's type."""

NAMED: Final = "response.function_call_arguments.done.name"
"""SDKs of 2025 require it there (C25), newer ones have no such field."""

PIXEL: Final = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # fmt: skip
WEATHER: Final = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}
REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "text": {"input": [{"type": "message", "role": "user", "content": "Say hello."}]},
    "system": {
        "input": [
            {"type": "message", "role": "system", "content": "You are a pirate."},
            {"type": "message", "role": "user", "content": "Say hello."},
        ]
    },
    "call": {"input": "What is the weather in San Francisco?", "tools": [WEATHER]},
    "image": {
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "?"}, {"type": "input_image", "image_url": PIXEL}],
            }
        ]
    },
    "turns": {
        "input": [
            {"type": "message", "role": "user", "content": "My name is Alice."},
            {"type": "message", "role": "assistant", "phase": "final_answer", "content": "Hello Alice!"},
            {"type": "message", "role": "user", "content": "What is my name?"},
        ]
    },
    "thoughts": {
        "input": "[[demo:think]] hi",
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    },
    "schema": {
        "input": "hi",
        "text": {
            "format": {
                "type": "json_schema",
                "name": "n",
                "schema": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            }
        },
    },
    "settings": {
        "input": "hi",
        "instructions": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.5,
        "max_output_tokens": 99,
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
        "prompt_cache_retention": "24h",
        "safety_identifier": "me",
        "store": False,
        "service_tier": "auto",
        "truncation": "disabled",
    },
    "failure": {"input": "[[demo:text 60]] [[demo:fail-midstream]]"},
    "cut": {"input": "[[demo:text 60]]", "max_output_tokens": 16},
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[LiveGateway]:
    with LiveGateway("") as running:
        yield running


def post(gateway: LiveGateway, body: dict[str, Any]) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/responses", encode(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def unknown_fields(value: Any, path: str = "$") -> list[str]:
    """What a type of OpenAI's SDK has no field for. They keep what they do not know in `model_extra`."""
    if isinstance(value, pydantic.BaseModel):
        open_ones = OPEN if isinstance(value, Response) else ()
        found = [f"{path}.{name}" for name in value.model_extra or {} if name not in open_ones]
        for name in type(value).model_fields:
            found += unknown_fields(getattr(value, name), f"{path}.{name}")
        return found
    if isinstance(value, list):
        return [each for n, item in enumerate(value) for each in unknown_fields(item, f"{path}[{n}]")]
    return []


def check(response: dict[str, Any]) -> None:
    wrong = {key: response.get(key, "absent") for key, kinds in ALWAYS.items() if type(response.get(key, ...)) not in kinds}  # fmt: skip
    assert wrong == {}
    assert unknown_fields(Response.model_validate(response)) == []
    for tool in response["tools"]:
        assert {"type", "name", "description", "parameters", "strict"} <= tool.keys()
    form = response["text"]["format"]
    if form["type"] == "json_schema":
        assert {"name", "description", "schema", "strict"} <= form.keys()
        assert type(form["strict"]) is bool


@rows("model", MODELS)
@rows("name", [name for name in REQUESTS if name != "failure"])
def test_a_response_is_what_its_schemas_say(gateway: LiveGateway, name: str, model: str) -> None:
    """[X23] Every key that Open Responses requires, and none that OpenAI's own types do not know."""
    status, body = post(gateway, {"model": model, **REQUESTS[name]})
    assert status == 200, body
    response = decode(body)
    check(response)
    assert response["status"] == ("incomplete" if name == "cut" else "completed")
    if name == "call":
        assert [item["type"] for item in response["output"]][-1] == "function_call"
        assert response["tools"][0]["strict"] is None
    if name == "settings":
        assert response["prompt_cache_retention"] == "24h"
        assert (response["temperature"], response["top_p"]) == (0.5, 0.5)


@rows("model", MODELS)
@rows("name", REQUESTS)
def test_every_event_is_what_its_schemas_say(gateway: LiveGateway, name: str, model: str) -> None:
    """[X23]"""
    status, body = post(gateway, {"model": model, "stream": True, **REQUESTS[name]})
    assert status == 200, body
    events = [decode(line[6:]) for line in body.split(b"\n") if line.startswith(b"data: {")]
    adapter = pydantic.TypeAdapter[Any](ResponseStreamEvent)
    for number, event in enumerate(events):
        assert event["sequence_number"] == number
        if event["type"] != "error":  # clients that know only the one or the other form find both there
            found = unknown_fields(adapter.validate_python(event), event["type"])
            assert [path for path in found if path != NAMED] == []
        if "response" in event:
            check(event["response"])
    last = {"failure": "response.failed", "cut": "response.incomplete"}.get(name, "response.completed")
    assert events[-1]["type"] == last


def test_a_compaction_needs_a_model(gateway: LiveGateway) -> None:
    """[X23] The last of the suite's ten."""
    gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    with pytest.raises(openai.BadRequestError, match="model"):
        gpt.post("/responses/compact", cast_to=object, body={"input": "hi"})
