"""A gateway before a scripted upstream, asked over plain HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m1:generateContent",
}
STREAMS = {**PATHS, "gemini": "/v1beta/models/m1:streamGenerateContent?alt=sse"}


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def stage(dialect: str, more: str = "", **provider: str) -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, dialect, more, **provider) as gateway:
        yield gateway, upstream


def question(client: str, text: str = "hi", model: str = "m1", **more: Any) -> dict[str, Any]:
    match client:
        case "anthropic":
            return {"model": model, "max_tokens": 99, "messages": [{"role": "user", "content": text}], **more}
        case "openai-chat":
            return {"model": model, "messages": [{"role": "user", "content": text}], **more}
        case "openai-responses":
            return {"model": model, "input": text, **more}
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def words(client: str, body: Any) -> str:
    """The text of a whole answer."""
    match client:
        case "anthropic":
            return "".join(block.get("text", "") for block in body["content"])
        case "openai-chat":
            return str(body["choices"][0]["message"]["content"])
        case "openai-responses":
            items = [item for item in body["output"] if item["type"] == "message"]
            return "".join(part["text"] for item in items for part in item["content"])
    return "".join(part.get("text", "") for part in body["candidates"][0]["content"]["parts"])


def ask(
    gateway: LiveGateway, path: str, body: Any, method: str = "POST", headers: dict[str, str] | None = None
) -> Answered:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(
            method,
            path,
            data if method == "POST" else None,
            {"content-type": "application/json", **(headers or {})},
        )
        answer = connection.getresponse()
        return Answered(
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            answer.read(),
        )
    finally:
        connection.close()
