"""The parts of an answer as output items with their ids, the same in a stream and in the whole response."""

from __future__ import annotations

import re
from typing import Any

from wireglot.dialects.base import Context
from wireglot.dialects.envelope import Holder, seal
from wireglot.dialects.fields import own_form
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra, Media, Reasoning, Signature, Text, ToolCall
from wireglot.ir.loss import Loss

PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
}

_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]+")


def response_id(identifier: str, model: str, context: Context, native: bool) -> str:
    if identifier.startswith("resp_") or (native and identifier):
        return identifier
    clean = _NOT_IN_IDS.sub("_", identifier)
    return f"resp_{clean}" if clean else context.new_id("resp", model)


class ItemIds:
    """Ids of output items: the provider's own, else one derived from the response and the position."""

    def __init__(self, response: str, context: Context) -> None:
        self._response = response
        self._context = context
        self._used: set[str] = set()

    def take(self, kind: str, position: int, native: Any = None) -> str:
        """The id of the item at `position`. Two items must not share one: clients tell them apart by it."""
        if type(native) is str and native and native not in self._used:
            self._used.add(native)
            return native
        identifier = self._context.new_id(PREFIXES.get(kind, "item"), self._response, str(position))
        self._used.add(identifier)
        return identifier


def native_id(extra: Extra | None) -> Any:
    return own_form(extra, NAME).get("id")


def reasoning_id(part: Reasoning, signature: Signature | None) -> Any:
    if signature is not None and signature.origin.dialect == NAME and signature.id:
        return signature.id
    return native_id(part.extra)


def encrypted_content(part: Reasoning, signature: Signature | None, context: Context) -> str | None:
    """The state of a reasoning item: raw if OpenAI minted it, else in our envelope."""
    if signature is None:
        return None
    if part.redacted:
        return seal(signature, "redacted", context.secret)
    if signature.origin.dialect == NAME:
        return signature.data
    return seal(signature, "reasoning", context.secret)


def carrier(
    part: Text | Media | ToolCall, signature: Signature, identifier: str, context: Context
) -> dict[str, Any]:
    """A reasoning item that shows nothing and carries the signature of its neighbour."""
    holder: Holder = "call" if type(part) is ToolCall else "text" if type(part) is Text else "media"
    return {
        "type": "reasoning",
        "id": identifier,
        "summary": [],
        "encrypted_content": seal(signature, holder, context.secret),
    }


def declare_id(native: Any, taken: str, path: str, losses: list[Loss]) -> None:
    """An id that binds a signature was taken already, or came when the item had another."""
    if type(native) is str and native and native != taken:
        losses.append(
            Loss(
                f"{path}.signature",
                "reasoning.signature",
                "approximated",
                "bound to an item id that could not be used",
            )
        )
