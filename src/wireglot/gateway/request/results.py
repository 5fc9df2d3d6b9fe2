"""Results whose calls are not in the request: the gateway stores the history, or it is lost.

A dialect may not identify the call (Gemini pairs by name): such a result belongs to the first open call of
its name. Every provider refuses a result without its call. If the call is unknown, it is restored from the
result (its name and id), and that is reported as a loss: the model's arguments are not known.
"""

from __future__ import annotations

import msgspec

from wireglot_core.ir.content import Message, Part, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request


def with_calls(request: Request) -> tuple[Request, tuple[Loss, ...]]:
    """The request with a call for every result."""
    messages: list[Message] = []
    losses: list[Loss] = []
    known: set[str] = set()
    for index, message in enumerate(request.messages):
        known.update(part.id for part in message.content if type(part) is ToolCall)
        loose = [part for part in message.content if type(part) is ToolResult and part.call_id not in known]
        if loose:
            calls = tuple(ToolCall(part.call_id, part.name or "tool", "{}") for part in loose)
            messages.append(Message("assistant", calls))
            known.update(part.call_id for part in loose)
            detail = "the call is not in the request: restored without its arguments"
            losses.append(Loss(f"$.messages[{index}]", "tool_result.pairing", "invented", detail))
        messages.append(message)
    if not losses:
        return request, ()
    return msgspec.structs.replace(request, messages=tuple(messages)), tuple(losses)


def paired(history: list[Message], messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """New messages whose results name the calls of the history that they answer."""
    waiting: dict[str, ToolCall] = {}
    for message in history:
        for part in message.content:
            if type(part) is ToolCall:
                waiting[part.id] = part
            elif type(part) is ToolResult:
                waiting.pop(part.call_id, None)
    if not waiting:
        return messages
    return tuple(
        msgspec.structs.replace(message, content=tuple(_paired(part, waiting) for part in message.content))
        for message in messages
    )


def _paired(part: Part, waiting: dict[str, ToolCall]) -> Part:
    if type(part) is not ToolResult or waiting.pop(part.call_id, None) is not None:
        return part
    call = next((call for call in waiting.values() if call.name == part.name), None)
    if call is None:
        return part
    del waiting[call.id]
    return msgspec.structs.replace(part, call_id=call.id)
