"""A network, a log and a clock for calls to Kimi that never leave the test."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable, Callable, Coroutine
from functools import wraps
from typing import Any

from wireglot import kimi

KEY = "sk-test-0123456789abcdef"
TOOL = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string", "description": "Where."}},
        "required": ["city"],
    },
}
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}


def message(
    content: str | None = "Hello.",
    calls: list[dict[str, Any]] | None = None,
    finish: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A whole answer of Kimi's."""
    said: dict[str, Any] = {"role": "assistant", "content": content, **more}
    if calls:
        said["tool_calls"] = calls
    choice = {"index": 0, "message": said, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "kimi-k3",
        "choices": [choice],
        "usage": USAGE,
    }


def call(
    name: str = "get_weather", arguments: str = '{"city":"Rome"}', identifier: str = ""
) -> dict[str, Any]:
    return {
        "id": identifier or f"functions.{name}:0",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def error(type_name: str, text: str = "no") -> dict[str, Any]:
    return {"error": {"type": type_name, "message": text}}


class Http:
    """An HTTP function that gives scripted answers in their order, and keeps what it was asked.

    An answer is a document (status 200), `(status, document)`, `(status, headers, body)` or an exception; the
    last one is given again and again.
    """

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers) or [message()]
        self.requests: list[tuple[str, str, dict[str, str], bytes]] = []

    async def __call__(
        self, method: str, url: str, headers: dict[str, str], body: bytes, /
    ) -> tuple[int, dict[str, str], bytes | AsyncIterable[bytes]]:
        self.requests.append((method, url, headers, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, dict):
            answer = (200, answer)
        if len(answer) == 2:
            answer = (answer[0], {"content-type": "application/json"}, json.dumps(answer[1]).encode())
        status, reported, content = answer
        return status, reported, content

    @property
    def body(self) -> dict[str, Any]:
        """The latest request's document."""
        document: dict[str, Any] = json.loads(self.requests[-1][3])
        return document

    @property
    def url(self) -> str:
        return self.requests[-1][1]

    @property
    def headers(self) -> dict[str, str]:
        return self.requests[-1][2]


class Lines(list[str]):
    """A log that only listens."""

    def __call__(self, line: str) -> None:
        self.append(line)


class Sleeps(list[float]):
    """A clock whose waits take no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def ask(http: Http, prompt: str | None = "Hi", **options: Any) -> kimi.CompletionResult:
    return asyncio.run(kimi.complete(prompt, **quiet(http, options)))


def ask_with_tools(
    http: Http, tools: Any, prompt: str | None = "Hi", **options: Any
) -> kimi.CompletionResult:
    return asyncio.run(kimi.complete_with_tools(prompt, tools, **quiet(http, options)))


def quiet(http: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {"api_key": KEY, "transport": http, "log": Lines(), "sleep": Sleeps(), **options}


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def sse(*chunks: dict[str, Any], done: bool = True) -> list[bytes]:
    frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
    return [*frames, b"data: [DONE]\n\n"] if done else frames


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "kimi-k3",
        "choices": [choice],
    }


def streamed(*pieces: bytes) -> tuple[int, dict[str, str], Any]:
    async def body() -> Any:
        for piece in pieces:
            yield piece

    return 200, {"content-type": "text/event-stream"}, body()
