"""The item that replaces a conversation, and the answer that contains it: of `POST /v1/responses/compact`, or
of an ordinary request whose input has a `compaction_trigger` (how Codex asks its built-in provider)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.body import Body
from wireglot_core.dialects.capabilities import Compaction
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_responses.render_request import render_request
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.ir.content import Extra, Foreign, Message, Part
from wireglot_core.ir.request import Request

KIND: Final = "compaction"
TRIGGER: Final = "compaction_trigger"
_TRIGGER_SIGN: Final = TRIGGER.encode()

_NO_USAGE: Final[dict[str, Any]] = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def is_asked(body: Body) -> bool:
    if body.body.find(_TRIGGER_SIGN) < 0:
        return False
    items = body.document().get("input")
    return isinstance(items, list) and any(
        isinstance(item, dict) and item.get("type") == TRIGGER for item in items
    )


def is_item(part: Part) -> bool:
    return isinstance(part, Foreign) and part.type == KIND and part.dialect == NAME


def render_item(id: str, sealed: str) -> dict[str, Any]:
    return {"type": KIND, "id": id, "encrypted_content": sealed}


def sealed_text(part: Part) -> str:
    value = part.value.get("encrypted_content") if isinstance(part, Foreign) else None
    return value if isinstance(value, str) else ""


def render_kept(messages: list[Message], new_id: Callable[[], str], context: Context) -> list[dict[str, Any]]:
    """Rendered as output items, which have ids and no shorthand."""
    alone = Request("", tuple(messages), extra=Extra(NAME))
    rendered = render_request(alone, replace(context, memory=None)).value["input"]  # objects, to get ids
    if isinstance(rendered, str):  # one message of a user may be only its text
        rendered = [{"role": "user", "content": rendered}]
    return [_named(item, new_id()) for item in rendered]


def _named(item: dict[str, Any], id: str) -> dict[str, Any]:
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    return {"type": "message", "id": id, "status": "completed", **item, "content": content}


def render_answer(
    id: str, output: list[dict[str, Any]], usage: dict[str, Any] | None, context: Context
) -> dict[str, Any]:
    return {
        "id": id,
        "object": "response.compaction",
        "created_at": context.now,
        "output": output,
        "usage": usage or _NO_USAGE,
    }


def put_in(answer: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "output": [item]}


def texts(answer: dict[str, Any]) -> Iterator[str]:
    for item in answer.get("output", ()):
        if item.get("type") == "message":
            for part in item.get("content", ()):
                if part.get("type") == "output_text":
                    yield part.get("text", "")


COMPACTION: Final = Compaction(
    kind=KIND,
    is_asked=is_asked,
    is_item=is_item,
    render_item=render_item,
    sealed_text=sealed_text,
    render_kept=render_kept,
    render_answer=render_answer,
    texts=texts,
    put_in=put_in,
)
