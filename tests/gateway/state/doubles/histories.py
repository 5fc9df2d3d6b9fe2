"""Conversations with the doubles without any SDK, for tests that spoil a history and send it again."""

from __future__ import annotations

import http.client
from typing import Any
from urllib.parse import urlsplit

from tests.gateway.state.doubles import Claude, Double, Gemini, Kimi, OpenAi
from tests.gateway.state.doubles.script import asked, result_of
from wireglot_core.wire.json import decode, encode

Body = dict[str, Any]
KEYS: dict[type[Double], str] = {
    Gemini: "x-goog-api-key",
    Claude: "x-api-key",
    OpenAi: "authorization",
    Kimi: "authorization",
}
PATHS: dict[type[Double], str] = {
    Gemini: "/v1beta/models/gemini-3.5-flash:generateContent",
    Claude: "/v1/messages",
    OpenAi: "/v1/responses",
    Kimi: "/v1/chat/completions",
}


def post(double: Double, body: Body, key: str = "one") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(double.url).netloc, timeout=10)
    try:
        kind = type(double)
        connection.request("POST", PATHS[kind], encode(body), {KEYS[kind]: key})
        answer = connection.getresponse()
        return answer.status, decode(answer.read())
    finally:
        connection.close()


def refused(double: Double, body: Body, key: str = "one") -> str:
    """The words it is refused with. Every refusal is noted."""
    status, answer = post(double, body, key)
    assert status in (400, 404), answer
    message = str(answer["error"]["message"])
    assert double.violations[-1] == message
    return message


def taken(double: Double, body: Body) -> Any:
    status, answer = post(double, body)
    assert status == 200, answer
    return answer


def gemini_step(double: Gemini, contents: list[Body]) -> list[Body]:
    """One answer, and the results of its calls behind it."""
    thinking = {"thinkingConfig": {"includeThoughts": True}}
    content = taken(double, {"contents": contents, "generationConfig": thinking})["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [
        {
            "functionResponse": {
                "id": call["id"],
                "name": call["name"],
                "response": {"output": result_of(call["args"])},
            }
        }
        for call in calls
    ]
    user: list[Body] = [*results] or [{"text": asked("a", 2)}]
    return [*contents, content, {"role": "user", "parts": user}]


def gemini_history(double: Gemini, steps: int) -> list[Body]:
    contents: list[Body] = [{"role": "user", "parts": [{"text": asked("a", 1)}]}]
    for _ in range(steps):
        contents = gemini_step(double, contents)
    return contents


def signed(contents: list[Body]) -> list[Body]:
    return [part for content in contents for part in content["parts"] if "thoughtSignature" in part]


THINKING = {"type": "enabled", "budget_tokens": 2048}


def claude_history(double: Claude, steps: int) -> list[Body]:
    messages: list[Body] = [{"role": "user", "content": asked("a", 1)}]
    for _ in range(steps):
        answer = taken(double, claude(messages))
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": result_of(call["input"])}
            for call in calls
        ]
        messages.append({"role": "assistant", "content": answer["content"]})
        messages.append({"role": "user", "content": results or asked("a", 2)})
    return messages


def claude(messages: list[Body], thinking: Body = THINKING) -> Body:
    return {"model": "claude-sonnet-4-5", "max_tokens": 9000, "thinking": thinking, "messages": messages}


def openai_history(double: OpenAi, steps: int) -> list[Body]:
    items: list[Body] = [{"role": "user", "content": asked("a", 1)}]
    for _ in range(steps):
        output = taken(double, responses(items))["output"]
        items += output
        calls = [item for item in output if item["type"] == "function_call"]
        items += [
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": result_of(decode(call["arguments"])),
            }
            for call in calls
        ]
        if not calls:
            items.append({"role": "user", "content": asked("a", 2)})
    return items


def responses(items: list[Body], **more: Any) -> Body:
    include = ["reasoning.encrypted_content"]
    return {"model": "gpt-5.5", "store": False, "include": include, "input": items, **more}


def kimi_history(double: Kimi, steps: int, conversation: str = "a") -> list[Body]:
    messages: list[Body] = [{"role": "user", "content": asked(conversation, 1)}]
    for _ in range(steps):
        message = taken(double, {"model": "kimi-k2.6", "messages": messages})["choices"][0]["message"]
        messages.append(message)
        calls = message.get("tool_calls", [])
        messages += [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "content": result_of(decode(call["function"]["arguments"])),
            }
            for call in calls
        ]
        if not calls:
            messages.append({"role": "user", "content": asked(conversation, 2)})
    return messages
