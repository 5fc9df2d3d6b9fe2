"""Results of the simplified form: it names no history, so the calls they answer are not in the request.

Every provider refuses a result without its call. The call is put back as far as the result tells it (its name
and id), and that is declared: what the model had asked for is not known here.
"""

from __future__ import annotations

import msgspec

from wireglot.ir.content import Message, ToolCall, ToolResult
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request


def with_calls(request: Request) -> tuple[Request, tuple[Loss, ...]]:
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
            detail = "the call is not in the request: put back without its arguments"
            losses.append(Loss(f"$.messages[{index}]", "tool_result.pairing", "invented", detail))
        messages.append(message)
    if not losses:
        return request, ()
    return msgspec.structs.replace(request, messages=tuple(messages)), tuple(losses)
