"""Pinned: what becomes of two parts that stand side by side, in a turn of the past, a whole answer and a stream.

Most wires have one place for each kind of part. What is moved, joined or left out depends on what stood before.
`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_neighbours.py` writes the files again.
"""

import json
from itertools import product
from typing import Any

import pytest

from tests.core.laws.test_table_goldens import pinned
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Media,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
)
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import unfold
from wireglot_core.testing.laws import write_stream

CONTEXT = Context(now=1700000001)
PARTS: dict[str, Part] = {
    "text": Text("Words."),
    "cited text": Text("Cited.", citations=(Citation("https://example.org", "Title", start=0, end=5),)),
    "signed text": Text("Signed.", signature=Signature("c2ln", Origin("gemini"))),
    "scored text": Text("Yes", logprobs=(TokenLogprob("Yes", -0.5),), cache=CacheMark("long")),
    "empty text": Text(""),
    "refusal": Text("No.", refusal=True),
    "reasoning": Reasoning("Hm."),
    "signed reasoning": Reasoning("So.", Signature("c2ln", Origin("anthropic"))),
    "redacted": Reasoning("", Signature("c2Vj", Origin("anthropic")), redacted=True),
    "call": ToolCall("call_1", "f", '{"a":1}'),
    "signed call": ToolCall("call_2", "g", "", signature=Signature("c2ln", Origin("gemini"))),
    "custom call": ToolCall("call_3", "h", "in", kind="custom", extra=Extra("acme", {"more": 1})),
    "picture": Media("image", "image/png", "iVBORw0KGgo="),
    "sound": Media("audio", "audio/wav", "UklGRg=="),
}


def lines_of(losses: Any) -> str:
    return "; ".join(f"{loss.path} {loss.feature} {loss.action}" for loss in losses)


def pieces(data: bytes) -> list[str]:
    """What the events say of the parts, without heads and tails that are always the same."""
    reported = []
    for line in data.decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {}
        for choice in event.get("choices", ())[:1]:
            reported.append([choice["delta"], choice["logprobs"], choice["finish_reason"]])
        if event.get("type") in ("content_block_start", "content_block_delta"):
            reported.append([event["index"], event.get("content_block") or event["delta"]])
        if event.get("type") == "message_delta":
            reported.append(event["delta"]["stop_reason"])
    return [f"  {json.dumps(each)}" for each in reported]


@pytest.mark.parametrize("name", ["anthropic", "openai-chat"])
def test_two_parts_side_by_side_become_this(name):
    spoken = dialect(name)
    lines: list[str] = []
    for (one, first), (other, second) in product(PARTS.items(), PARTS.items()):
        content = (first, second)
        lines.append(f"# {one}, {other}")
        asked = Request("m", (Message("user", (Text("?"),)), Message("assistant", content)), max_tokens=9)
        sent = spoken.render_request(asked, CONTEXT)
        lines.append(f"turn: {json.dumps(sent.value['messages'][1:])} | {lines_of(sent.losses)}")
        answer = Response("r", "m", content, Stop("end"))
        whole = spoken.render_response(answer, CONTEXT, None)
        reported = whole.value.get("choices", [whole.value])[0]
        kept = {
            key: reported[key]
            for key in ("message", "content", "logprobs", "finish_reason", "stop_reason")
            if key in reported
        }
        lines.append(f"answer: {json.dumps(kept)} | {lines_of(whole.losses)}")
        streamed = write_stream(spoken, list(unfold(answer)), CONTEXT)
        lines.append(f"stream: | {lines_of(streamed.losses)}")
        lines += pieces(streamed.value)
    pinned(name, "neighbours", lines)
