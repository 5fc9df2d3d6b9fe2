"""Asking a live gateway over plain HTTP, and reading what each dialect tells of its usage."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import Any, NamedTuple

from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.wire.json import decode, encode

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist", "gemini-simple")


class Reported(NamedTuple):
    """What a client reads in its own dialect: totals, and how much of them was cached or thought."""

    input: int
    cached: int
    output: int
    reasoning: int


class Refused(Exception):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status, self.body = status, body


def fetch(url: str, body: Any = None, **headers: str) -> bytes:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else encode(body)
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json", **named})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as refused:
        raise Refused(refused.code, refused.read()) from None


def usage(gateway: LiveGateway, query: str = "", path: str = "/v1/usage", **headers: str) -> dict[str, Any]:
    found: dict[str, Any] = decode(fetch(f"{gateway.url}{path}?{query}", **headers))
    return found


def ask(
    gateway: LiveGateway, dialect: str, model: str, stream: bool, text: str = "hi", **headers: str
) -> bytes:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    contents = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    turn = [{"role": "user", "content": text}]
    path, body = {
        "anthropic": (
            "/v1/messages",
            {
                "model": model,
                "max_tokens": 4096,
                "stream": stream,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "messages": turn,
            },
        ),
        "openai-chat": (
            "/v1/chat/completions",
            {"model": model, "stream": stream, "reasoning_effort": "high", "messages": turn}
            | ({"stream_options": {"include_usage": True}} if stream else {}),
        ),
        "openai-responses": (
            "/v1/responses",
            {"model": model, "stream": stream, "reasoning": {"effort": "high"}, "input": text},
        ),
        "gemini": (f"/v1beta/models/{model}:{verb}", contents),
        "code-assist": (f"/v1internal:{verb}", {"model": model, "request": contents}),
        "gemini-simple": ("/v1/gemini", {"model": model, "stream": stream, "input": text}),
    }[dialect]
    return fetch(gateway.url + path, body, **headers)


def reported(dialect: str, data: bytes, stream: bool) -> Reported:
    """The last account in an answer."""
    if not stream:
        return _account(dialect, decode(data))
    found = None
    for line in data.splitlines():
        if line.startswith(b"data: {"):
            document = decode(line[6:])
            found = _account(dialect, document) if _has_account(dialect, document) else found
    assert found is not None
    return found


def _has_account(dialect: str, document: dict[str, Any]) -> bool:
    match dialect:
        case "anthropic":
            return bool(document["type"] == "message_delta")
        case "openai-chat":
            return document.get("usage") is not None
        case "openai-responses":
            return bool(document["type"] == "response.completed")
        case _:
            return "usageMetadata" in document.get("response", document)


def _account(dialect: str, document: dict[str, Any]) -> Reported:
    document = document.get("response", document)
    match dialect:
        case "anthropic":
            it = document["usage"]
            read = it.get("cache_read_input_tokens") or 0
            written = it.get("cache_creation_input_tokens") or 0
            thought = (it.get("output_tokens_details") or {}).get("thinking_tokens", 0)
            return Reported(it["input_tokens"] + read + written, read, it["output_tokens"], thought)
        case "openai-chat":
            it = document["usage"]
            return Reported(
                it["prompt_tokens"],
                it["prompt_tokens_details"]["cached_tokens"],
                it["completion_tokens"],
                it["completion_tokens_details"]["reasoning_tokens"],
            )
        case "openai-responses":
            it = document["usage"]
            return Reported(
                it["input_tokens"],
                it["input_tokens_details"]["cached_tokens"],
                it["output_tokens"],
                it["output_tokens_details"]["reasoning_tokens"],
            )
        case _:
            it = document["usageMetadata"]
            thought = it.get("thoughtsTokenCount", 0)
            return Reported(
                it["promptTokenCount"] + it.get("toolUsePromptTokenCount", 0),
                it.get("cachedContentTokenCount", 0),
                it["candidatesTokenCount"] + thought,
                thought,
            )
