"""A gateway before Kimi's endpoints, and what it passes on."""

from __future__ import annotations

import http.client

from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.wire.json import encode

ASKED = {"role": "user", "content": "What is the weather in Rome?"}

_CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi-k3"}
_WHOLE = {
    **_CHUNK,
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Sunny."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
_PIECES = (
    {**_CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Sunny."}}]},
    {**_CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)


def always_sunny(asked: Recorded) -> Behaviour | None:
    """The same answer on Chat, whatever was asked: bodies that nobody should send are sent too."""
    if not asked.path.endswith("/chat/completions"):
        return None
    if b'"stream":true' in asked.body:
        frames = tuple(b"data: " + encode(piece) + b"\n\n" for piece in _PIECES)
        events = (("content-type", "text/event-stream"),)
        return Behaviour(pieces=(*frames, b"data: [DONE]\n\n"), headers=events)
    return Behaviour(body=encode(_WHOLE), headers=(("content-type", "application/json"),))


CONFIG = """
[providers.kimi]
api_key = "upstream-key-0123456789"
base_url = "{url}/v1"
base_urls = {{ anthropic = "{url}" }}

[models]
"verified" = {{ to = "kimi/kimi-k3", losses = "as-is" }}
"gpt" = "mine/m"
"kimi-*" = "kimi/kimi-*"

[providers.mine]
dialect = "gemini"
base_url = "{url}/v1beta"
"""


class Stage:
    def __init__(self, gateway: LiveGateway, upstream: ScriptedUpstream) -> None:
        self.gateway, self.upstream = gateway, upstream

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=DEADLINE_SECONDS)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("POST", path, body, {"content-type": "application/json", **named})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def arrived(self) -> bytes:
        return self.upstream.requests[-1].body
