"""Streams to measure with: made of one Anthropic stream, so that those of all dialects say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from wireglot_core import StreamTranslator
from wireglot_core.dialects.registry import DialectName
from wireglot_core.wire.json import encode

MODELS: Final[dict[DialectName, str]] = {
    "anthropic": "claude-sonnet-4-5",
    "openai-chat": "gpt-5.1",
    "openai-responses": "gpt-5.1-codex",
    "gemini": "gemini-2.5-pro",
}
EMPTY_MESSAGE: Final[dict[str, Any]] = {
    "id": "msg_bench",
    "type": "message",
    "role": "assistant",
    "model": MODELS["anthropic"],
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1000, "output_tokens": 1},
}


def stream(
    dialect: DialectName, block: dict[str, Any], deltas: Sequence[dict[str, Any]], *, stop: str, tokens: int
) -> list[bytes]:
    """The frames of an answer with one block, a frame for each of its deltas."""
    end = {"stop_reason": stop, "stop_sequence": None}
    frames = [
        _frame("message_start", message=EMPTY_MESSAGE),
        _frame("content_block_start", index=0, content_block=block),
        *(_frame("content_block_delta", index=0, delta=delta) for delta in deltas),
        _frame("content_block_stop", index=0),
        _frame("message_delta", delta=end, usage={"output_tokens": tokens}),
        _frame("message_stop"),
    ]
    if dialect == "anthropic":
        return frames
    translator = StreamTranslator(source="anthropic", target=dialect)
    whole = b"".join(translator.feed(frame) for frame in frames) + translator.close()
    return [frame + b"\n\n" for frame in whole.split(b"\n\n") if frame]


def _frame(kind: str, **fields: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))
