"""`POST /inspector/api/ask`: a question as any client would ask it, to see one exchange."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final, Protocol

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import COMMON, dialect, surface
from wireglot.gateway.config.providers import DEMO
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector.fields import text_field, wrong_field
from wireglot.gateway.process_limits import KIB
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.job import Incoming
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import Settings
from wireglot.http.application import Head, Reply
from wireglot.ir.content import Message, Text
from wireglot.ir.request import Request
from wireglot.wire.json import BadJson, decode, encode

AGENT: Final = "wireglot-inspector"
_LETTERS_MOST: Final = 100_000
_ERROR_BYTES_MOST: Final = 16 * KIB
_GREETING: Final = "Hello from the inspector. What can you do?"


class Submit(Protocol):
    def __call__(self, incoming: Incoming, body: bytes, reply: Reply) -> Awaitable[str]:
        """Have a request answered as if it had come from outside. Gives its id."""
        ...


class AskPage:
    def __init__(self, submit: Submit) -> None:
        self._submit = submit

    async def ask(self, page: PageRequest, viewer: Viewer) -> None:
        fields = page.document()
        model = text_field(fields, "model", _LETTERS_MOST) or _demo_model(page.settings)
        text = text_field(fields, "text", _LETTERS_MOST) or _GREETING
        stream = fields.pop("stream", True)
        if type(stream) is not bool:
            raise wrong_field("stream", "true or false")
        for name in fields:
            raise wrong_field(name, "nothing but model, text and stream")
        asked = Request(model=model, messages=(Message("user", (Text(text),)),), stream=stream)
        body = encode(dialect(COMMON).render_request(asked, Context()).value)
        reply = CollectedReply(_ERROR_BYTES_MOST)
        id = await self._submit(_incoming(page), body, reply)
        told: dict[str, Any] = {"id": id, "model": model, "status": reply.status}
        if reply.status >= 400:
            told["error"] = {"message": _message(bytes(reply.body))}
        page.send(told)


def _incoming(page: PageRequest) -> Incoming:
    route = next(each for each in surface(COMMON).client.routes if each.operation == "generate")
    host = page.head.headers.get("host", "")
    headers = {"host": host, "user-agent": AGENT, "content-type": "application/json"}
    head = Head("POST", target=route.path, path=route.path, query="", headers=headers, peer=page.head.peer)
    return Incoming(page.settings, head, Asked(COMMON, route.operation), page.caller)


def _demo_model(settings: Settings) -> str:
    demo = settings.providers.get(DEMO)
    if demo is None:
        raise RequestError(
            "bad", "model: expected one, since the demo model is off", code="invalid_value", param="model"
        )
    return f"{demo.name}/{demo.spec.models[0].match}"


def _message(body: bytes) -> str:
    try:
        return str(msgspec.convert(decode(body), dict[str, dict[str, Any]])["error"]["message"])
    except (BadJson, msgspec.MsgspecError, KeyError):
        return "it failed"
