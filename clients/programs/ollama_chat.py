"""Two tool loops with the ollama SDK, one whole and one streamed with thinking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ollama import ChatResponse, Client, Message

from clients.programs.marker import ABOUT, KEY, NAME, PROMPT, SCHEMA, URL, get_marker

MODEL = "qwen3"
TOOLS: Sequence[Any] = [
    {"type": "function", "function": {"name": NAME, "description": ABOUT, "parameters": SCHEMA}}
]
client = Client(host=URL, headers={"Authorization": f"Bearer {KEY}"}, timeout=60)


def whole(messages: list[Any]) -> Message:
    answer: ChatResponse = client.chat(model=MODEL, messages=messages, tools=TOOLS)
    assert answer.done
    assert answer.eval_count
    return answer.message


def streamed(messages: list[Any]) -> Message:
    said = Message(role="assistant", content="", thinking="")
    for chunk in client.chat(model=MODEL, messages=messages, tools=TOOLS, stream=True, think=True):
        said.content = (said.content or "") + (chunk.message.content or "")
        said.thinking = (said.thinking or "") + (chunk.message.thinking or "")
        said.tool_calls = [*(said.tool_calls or []), *(chunk.message.tool_calls or [])] or None
    assert chunk.done
    assert chunk.eval_count
    return said


for turn in (whole, streamed):
    history: list[Any] = [{"role": "user", "content": PROMPT}]
    message = turn(history)
    assert message.tool_calls, message
    history.append(message)
    for call in message.tool_calls:
        output = get_marker(path=str(call.function.arguments["path"]))
        history.append({"role": "tool", "tool_name": call.function.name, "content": output})
    print(turn(history).content)
