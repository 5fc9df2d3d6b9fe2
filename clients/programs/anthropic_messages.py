"""Two tool loops with the anthropic SDK, one whole and one streamed with thinking."""

from __future__ import annotations

from anthropic import Anthropic
from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam

from clients.programs.marker import ABOUT, KEY, NAME, PROMPT, SCHEMA, URL, get_marker

MODEL = "claude-sonnet-4-5"
TOOLS: list[ToolParam] = [{"name": NAME, "description": ABOUT, "input_schema": SCHEMA}]
client = Anthropic(base_url=URL, api_key=KEY, max_retries=0, timeout=60)


def whole(messages: list[MessageParam]) -> Message:
    return client.messages.create(model=MODEL, max_tokens=500, messages=messages, tools=TOOLS)


def streamed(messages: list[MessageParam]) -> Message:
    with client.messages.stream(
        model=MODEL,
        max_tokens=4000,
        messages=messages,
        tools=TOOLS,
        thinking={"type": "enabled", "budget_tokens": 1024},
    ) as stream:
        return stream.get_final_message()


def results(message: Message) -> list[ToolResultBlockParam]:
    return [
        {
            "type": "tool_result",
            "tool_use_id": block.id,
            "content": get_marker(path=str(block.input["path"])),
        }
        for block in message.content
        if block.type == "tool_use"
    ]


for turn in (whole, streamed):
    history: list[MessageParam] = [{"role": "user", "content": PROMPT}]
    message = turn(history)
    assert message.stop_reason == "tool_use", message
    history.append({"role": "assistant", "content": message.content})
    history.append({"role": "user", "content": results(message)})
    message = turn(history)
    assert message.stop_reason == "end_turn", message
    assert message.usage.output_tokens > 0
    print("".join(block.text for block in message.content if block.type == "text"))
