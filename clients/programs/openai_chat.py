"""Two tool loops with chat.completions of the openai SDK, one whole and one streamed."""

from __future__ import annotations

import json
from typing import Any, cast

from openai import OpenAI
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionMessage,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)

from clients.programs.marker import ABOUT, KEY, NAME, PROMPT, SCHEMA, URL, get_marker

MODEL = "gpt-4.1-mini"
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {"name": NAME, "description": ABOUT, "parameters": SCHEMA, "strict": True},
    }
]
client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=60)


def whole(messages: list[ChatCompletionMessageParam]) -> ChatCompletionMessage:
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0
    return answer.choices[0].message


def streamed(messages: list[ChatCompletionMessageParam]) -> ChatCompletionMessage:
    with client.chat.completions.stream(
        model=MODEL, messages=messages, tools=TOOLS, stream_options={"include_usage": True}
    ) as stream:
        for _ in stream:
            pass
        answer = stream.get_final_completion()
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0
    return ChatCompletionMessage.model_validate(answer.choices[0].message.model_dump())


for turn in (whole, streamed):
    history: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": PROMPT},
    ]
    message = turn(history)
    assert message.tool_calls, message
    calls = [call for call in message.tool_calls if call.type == "function"]
    answered: ChatCompletionAssistantMessageParam = {
        "role": "assistant",
        "content": message.content,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in calls
        ],
    }
    # No field of OpenAI's own: servers that send their reasoning want it back beside the calls.
    kept: dict[str, Any] = {"reasoning_content": (message.model_extra or {}).get("reasoning_content")}
    history.append(cast(ChatCompletionAssistantMessageParam, {**answered, **kept}))
    for call in calls:
        output = get_marker(**json.loads(call.function.arguments))
        history.append({"role": "tool", "tool_call_id": call.id, "content": output})
    print(turn(history).content)
