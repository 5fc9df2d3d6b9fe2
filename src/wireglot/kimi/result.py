"""What came back, in the shape that all adapters of the contract share."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.content import Reasoning, Text, ToolCall
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Response
from wireglot.wire.json import encode_text

Block = dict[str, Any]


class CompletionResult(msgspec.Struct, frozen=True):
    """An answer.

    `content` is the contract's string: the text, or, where tools were called, the JSON of the blocks (text
    first, then every call). `blocks` is the whole answer in Anthropic's form, thinking included: append it to
    the conversation as it is. `raw` is Kimi's own document.
    """

    content: str
    model: str
    prompt_tokens: int
    completion_tokens: int
    latency_ms: int
    stop_reason: str
    blocks: list[Block]
    text: str
    reasoning: str
    raw: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    """What of the request Kimi could not be told as it was said."""


def result_of(
    response: Response, raw: dict[str, Any], latency_ms: int, losses: tuple[Loss, ...], context: Context
) -> CompletionResult:
    message = dialect("anthropic").render_response(response, context).value
    calls = [part for part in response.content if isinstance(part, ToolCall)]
    blocks = _with_own_ids(message["content"], calls)
    text = "".join(part.text for part in response.content if isinstance(part, Text))
    usage = response.usage
    return CompletionResult(
        content=encode_text([block for block in blocks if block["type"] != "thinking"]) if calls else text,
        model=response.model,
        prompt_tokens=usage.total_input if usage is not None else 0,
        completion_tokens=usage.total_output if usage is not None else 0,
        latency_ms=latency_ms,
        stop_reason=_stop_reason(response, message["stop_reason"]),
        blocks=blocks,
        text=text,
        reasoning="".join(part.text for part in response.content if isinstance(part, Reasoning)),
        raw=raw,
        losses=losses,
    )


def _with_own_ids(blocks: list[Block], calls: list[ToolCall]) -> list[Block]:
    """Kimi's ids hold letters (`functions.name:0`) that Anthropic's API refuses, and the dialect replaces
    them. These blocks go back to Kimi, which knows its own. The contract's blocks have no null fields."""
    left = iter(calls)
    said = [
        {key: block[key] for key in block if key != "caller" and block[key] is not None} for block in blocks
    ]
    return [{**block, "id": next(left).id} if block["type"] == "tool_use" else block for block in said]


def _stop_reason(response: Response, told: str) -> str:
    """Anthropic's word; one that nobody knows is passed on as it is."""
    stop = response.stop
    return stop.raw if stop.reason == "other" and stop.raw else told
