"""The vendors' SDKs, against the demo model over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors
from google.genai import types

from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture
def upstream(server: ScriptedUpstream) -> ScriptedUpstream:
    server.reset()
    return server


@pytest.fixture(scope="module")
def claude(server: ScriptedUpstream) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def gpt(server: ScriptedUpstream) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def gemini(server: ScriptedUpstream) -> genai.Client:
    return genai.Client(api_key="x", http_options=types.HttpOptions(base_url=server.url))


class TestAnthropic:
    TOOLS: list[anthropic.types.ToolParam] = [{"name": "get_weather", "input_schema": SCHEMA}]

    def test_a_streamed_tool_loop_with_thinking(
        self, upstream: ScriptedUpstream, claude: anthropic.Anthropic
    ) -> None:
        messages: list[anthropic.types.MessageParam] = [
            {"role": "user", "content": "[[demo:strict]] Weather in Rome?"}
        ]
        with claude.messages.stream(
            model="demo",
            max_tokens=2000,
            tools=self.TOOLS,
            messages=messages,
            thinking={"type": "enabled", "budget_tokens": 1024},
        ) as stream:
            first = stream.get_final_message()
        assert first.stop_reason == "tool_use"
        assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
        call = first.content[-1]
        assert isinstance(call, anthropic.types.ToolUseBlock)
        assert call.input == {"city": "Rome"}
        messages += [
            {"role": "assistant", "content": first.content},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "18 degrees"}],
            },
        ]
        second = claude.messages.create(model="demo", max_tokens=2000, tools=self.TOOLS, messages=messages)
        assert second.stop_reason == "end_turn"
        (block,) = second.content
        assert isinstance(block, anthropic.types.TextBlock)
        assert "18 degrees" in block.text
        assert second.usage.cache_read_input_tokens

    def test_errors_are_raised(self, upstream: ScriptedUpstream, claude: anthropic.Anthropic) -> None:
        upstream.next(Behaviour(error=429, retry_after=3), Behaviour(error=529))
        with pytest.raises(anthropic.RateLimitError) as caught:
            claude.messages.create(model="demo", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        assert caught.value.response.headers["retry-after"] == "3"
        with pytest.raises(anthropic.APIStatusError) as overloaded:
            claude.messages.create(model="demo", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        assert overloaded.value.status_code == 529

    def test_an_error_half_way_is_raised(
        self, upstream: ScriptedUpstream, claude: anthropic.Anthropic
    ) -> None:
        upstream.next(Behaviour(fault="error-midstream"))
        with (
            pytest.raises(anthropic.APIStatusError),
            claude.messages.stream(
                model="demo", max_tokens=99, messages=[{"role": "user", "content": "x"}]
            ) as stream,
        ):
            stream.until_done()

    def test_counting_and_listing(self, upstream: ScriptedUpstream, claude: anthropic.Anthropic) -> None:
        counted = claude.messages.count_tokens(model="demo", messages=[{"role": "user", "content": "hello"}])
        assert counted.input_tokens > 0
        assert [model.id for model in claude.models.list()] == ["demo"]
        assert claude.models.retrieve("demo").id == "demo"


class TestChat:
    TOOLS: list[openai.types.chat.ChatCompletionToolUnionParam] = [
        {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
    ]

    def test_a_streamed_tool_loop(self, upstream: ScriptedUpstream, gpt: openai.OpenAI) -> None:
        messages: list[openai.types.chat.ChatCompletionMessageParam] = [
            {"role": "user", "content": "Weather in Rome?"}
        ]
        with gpt.chat.completions.stream(
            model="demo", messages=messages, tools=self.TOOLS, stream_options={"include_usage": True}
        ) as stream:
            first = stream.get_final_completion()
        (call,) = first.choices[0].message.tool_calls or []
        assert call.function.arguments == '{"city":"Rome"}'
        assert first.usage is not None
        assert first.usage.total_tokens > 0
        messages += [
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": call.id,
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": call.id, "content": "18 degrees"},
        ]
        second = gpt.chat.completions.create(model="demo", messages=messages, tools=self.TOOLS)
        assert "18 degrees" in (second.choices[0].message.content or "")

    def test_errors_are_raised(self, upstream: ScriptedUpstream, gpt: openai.OpenAI) -> None:
        upstream.next(Behaviour(error=500), Behaviour(fault="close"), Behaviour(fault="error-midstream"))
        with pytest.raises(openai.InternalServerError):
            gpt.chat.completions.create(model="demo", messages=[{"role": "user", "content": "x"}])
        with pytest.raises(openai.APIConnectionError):
            gpt.chat.completions.create(model="demo", messages=[{"role": "user", "content": "x"}])
        with pytest.raises(openai.APIError):
            list(
                gpt.chat.completions.create(
                    model="demo", messages=[{"role": "user", "content": "x"}], stream=True
                )
            )

    def test_models_are_listed(self, upstream: ScriptedUpstream, gpt: openai.OpenAI) -> None:
        assert [model.id for model in gpt.models.list()] == ["demo"]


class TestResponses:
    TOOLS: list[openai.types.responses.ToolParam] = [
        {"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}
    ]

    def test_a_streamed_tool_loop_with_reasoning(
        self, upstream: ScriptedUpstream, gpt: openai.OpenAI
    ) -> None:
        with gpt.responses.stream(
            model="demo",
            input="[[demo:strict]] Weather in Rome?",
            tools=self.TOOLS,
            reasoning={"effort": "high", "summary": "auto"},
            include=["reasoning.encrypted_content"],
            store=False,
        ) as stream:
            first = stream.get_final_response()
        reasoning, _, call = first.output
        assert reasoning.type == "reasoning"
        assert reasoning.encrypted_content
        assert call.type == "function_call"
        replayed = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
        later: Any = [
            {"role": "user", "content": "[[demo:strict]] Weather in Rome?"},
            *replayed,
            {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"},
        ]
        second = gpt.responses.create(model="demo", input=later, tools=self.TOOLS)
        assert "18 degrees" in second.output_text
        replayed[0]["encrypted_content"] = "forged"
        with pytest.raises(openai.BadRequestError, match="signature"):
            gpt.responses.create(model="demo", input=later, tools=self.TOOLS)

    def test_counting(self, upstream: ScriptedUpstream, gpt: openai.OpenAI) -> None:
        assert gpt.responses.input_tokens.count(model="demo", input="hello").input_tokens > 0


class TestGemini:
    TOOLS: list[types.Tool | object] = [
        types.Tool(
            function_declarations=[
                types.FunctionDeclaration(name="get_weather", parameters_json_schema=SCHEMA)
            ]
        )
    ]

    def config(self, **more: object) -> types.GenerateContentConfig:
        return types.GenerateContentConfig.model_validate(
            {"tools": self.TOOLS, "automatic_function_calling": {"disable": True}, **more}
        )

    def test_a_streamed_tool_loop_with_thoughts(
        self, upstream: ScriptedUpstream, gemini: genai.Client
    ) -> None:
        config = self.config(thinking_config={"include_thoughts": True})
        question = types.Content(role="user", parts=[types.Part(text="[[demo:strict]] Weather in Rome?")])
        parts: list[types.Part] = []
        for chunk in gemini.models.generate_content_stream(model="demo", contents=[question], config=config):
            assert chunk.candidates is not None
            content = chunk.candidates[0].content
            parts += (content.parts or []) if content is not None else []
        assert any(part.thought for part in parts)
        (call,) = [part for part in parts if part.function_call is not None]
        assert call.function_call is not None
        assert call.function_call.args == {"city": "Rome"}
        assert call.thought_signature
        result = types.Part.from_function_response(name="get_weather", response={"output": "18 degrees"})
        turns = [
            question,
            types.Content(role="model", parts=[call]),
            types.Content(role="user", parts=[result]),
        ]
        second = gemini.models.generate_content(model="demo", contents=turns, config=config)
        assert "18 degrees" in (second.text or "")

    def test_errors_are_raised(self, upstream: ScriptedUpstream, gemini: genai.Client) -> None:
        upstream.next(Behaviour(error=503), Behaviour(fault="error-midstream"))
        with pytest.raises(genai_errors.ServerError):
            gemini.models.generate_content(model="demo", contents="x")
        with pytest.raises(genai_errors.APIError):
            list(gemini.models.generate_content_stream(model="demo", contents="x"))

    def test_structured_output_and_counting(self, upstream: ScriptedUpstream, gemini: genai.Client) -> None:
        config = types.GenerateContentConfig(
            response_mime_type="application/json", response_json_schema=SCHEMA
        )
        answered = gemini.models.generate_content(model="demo", contents="Where is Rome?", config=config)
        assert answered.text == '{"city":"Paris"}'
        assert (gemini.models.count_tokens(model="demo", contents="hello").total_tokens or 0) > 0
