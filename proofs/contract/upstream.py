"""The Anthropic API behind both gateways: it answers what a case sets and keeps what it received."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from proofs.http_double import DoubleHandler, HttpDouble

API_KEY: Final = "sk-ant-upstream-0123456789"


class UpstreamAnswer(NamedTuple):
    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


def document(value: Any, status: int = 200, /, **headers: str) -> UpstreamAnswer:
    """A JSON answer; underscores of header names are hyphens."""
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    return UpstreamAnswer(json.dumps(value).encode(), status, (("content-type", "application/json"), *named))


def error(status: int, kind: str, message: str, **headers: str) -> UpstreamAnswer:
    envelope = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_upstream"}
    return document(envelope, status, **headers)


def events(*values: dict[str, Any]) -> UpstreamAnswer:
    """The values as server-sent events."""
    text = "".join(f"event: {value['type']}\ndata: {json.dumps(value)}\n\n" for value in values)
    return UpstreamAnswer(text.encode(), headers=(("content-type", "text/event-stream; charset=utf-8"),))


class ScriptedAnthropic(HttpDouble):
    def __init__(self) -> None:
        super().__init__()
        self.answer = document({})
        self.received: list[Received] = []

    class Handler(DoubleHandler):
        owner: ScriptedAnthropic

        def answer(self, headers: dict[str, str], body: bytes) -> None:
            self.owner.received.append(Received(self.path, headers, body))
            answer = self.owner.answer
            self.send(answer.status, answer.body, *answer.headers)
