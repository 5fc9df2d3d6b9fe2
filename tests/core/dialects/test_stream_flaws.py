"""A provider's stream that breaks a rule of its dialect is read as well as can be, and the rule is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.stream import FLAWS
from wireglot_core.wire.json import encode

Frame = dict[str, Any]
Frames = Sequence[Frame]


def _text(index: int, text: str) -> Frame:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "text_delta", "text": text},
    }


def _block(index: int) -> Frame:
    return {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}


def _closed(index: int) -> Frame:
    return {"type": "content_block_stop", "index": index}


_BEGIN = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
}
_STOP = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
_OVER = {"type": "message_stop"}


def _chunk(delta: Frame, finish: str | None = None, index: int = 0) -> Frame:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _call(index: int, name: str) -> Frame:
    call = {
        "index": index,
        "id": f"call_{name}",
        "type": "function",
        "function": {"name": name, "arguments": "{}"},
    }
    return _chunk({"tool_calls": [call]})


_RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}


def _life(kind: str, number: int) -> Frame:
    status = "completed" if kind == "completed" else "in_progress"
    return {
        "type": f"response.{kind}",
        "sequence_number": number,
        "response": {**_RESPONSE, "status": status},
    }


def _item(at: int, number: int) -> list[Frame]:
    item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "hi", "annotations": []}
    done = {**item, "status": "completed", "content": [part]}
    place = {"output_index": at, "content_index": 0, "item_id": item["id"]}
    return [
        {
            "type": "response.output_item.added",
            "sequence_number": number,
            "output_index": at,
            "item": {**item, "status": "in_progress"},
        },
        {
            "type": "response.content_part.added",
            "sequence_number": number + 1,
            **place,
            "part": {**part, "text": ""},
        },
        {"type": "response.output_text.delta", "sequence_number": number + 2, **place, "delta": "hi"},
        {
            "type": "response.output_item.done",
            "sequence_number": number + 3,
            "output_index": at,
            "item": done,
        },
    ]


def _piece(text: str, finish: str | None = None, index: int = 0) -> Frame:
    candidate: Frame = {"index": index, "content": {"role": "model", "parts": [{"text": text}]}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], "modelVersion": "m"}


_USAGE: Frame = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
_FOUND = {"groundingSupports": [{"segment": {"endIndex": 2, "text": "hi"}, "groundingChunkIndices": [0]}]}
_SAID = [_block(0), _text(0, "hi"), _closed(0)]
CASES: list[tuple[str, Frames, tuple[str, ...], tuple[str, ...]]] = [
    # dialect, stream, what a reader names, what a tap names
    ("anthropic", [_BEGIN, *_SAID, _STOP, _OVER], (), ()),
    ("anthropic", [_BEGIN, _BEGIN, *_SAID, _STOP, _OVER], ("second_start",), ("second_start",)),
    ("anthropic", [_BEGIN, *_SAID, _STOP, _STOP, _OVER], ("second_end",), ("second_end",)),
    ("anthropic", [_BEGIN, *_SAID, *_SAID, _STOP, _OVER], ("index_not_growing",), ("index_not_growing",)),
    (
        "anthropic",
        [_BEGIN, *_SAID, _STOP, _block(1), _text(1, "more"), _closed(1), _OVER],
        ("content_after_end",),
        ("content_after_end",),
    ),
    # A tap does not read the pieces of a text.
    ("anthropic", [_BEGIN, _text(0, "hi"), _STOP, _OVER], ("piece_without_part",), ()),
    # A reader does not look beyond the end.
    ("anthropic", [_BEGIN, *_SAID, _STOP, _OVER, _OVER], (), ("second_end",)),
    ("openai-chat", [_chunk({"content": "hi"}), _chunk({}, "stop")], (), ()),
    (
        "openai-chat",
        [_chunk({"content": "hi"}), _chunk({}, "stop"), _chunk({}, "stop")],
        ("second_end",),
        ("second_end",),
    ),
    (
        "openai-chat",
        [_chunk({"content": "hi"}), _chunk({}, "stop"), _chunk({"content": "more"})],
        ("content_after_end",),
        ("content_after_end",),
    ),
    ("openai-chat", [_call(0, "a"), _call(1, "b"), _chunk({}, "tool_calls")], (), ()),
    # Some servers write "" for none.
    ("openai-chat", [_chunk({"content": "h"}, ""), _chunk({"content": "i"}, ""), _chunk({}, "stop")], (), ()),
    # Several answers, each with its own end.
    (
        "openai-chat",
        [
            _chunk({"content": "a"}),
            _chunk({}, "stop"),
            _chunk({"content": "b"}, None, 1),
            _chunk({}, "stop", 1),
        ],
        (),
        (),
    ),
    # The usage, as OpenRouter sends it.
    (
        "openai-chat",
        [
            _chunk({"content": "a"}),
            _chunk({}, "stop"),
            {
                **_chunk({"role": "assistant", "content": ""}),
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            },
        ],
        (),
        (),
    ),
    # A tap does not read calls.
    ("openai-chat", [_call(1, "a"), _call(0, "b"), _chunk({}, "tool_calls")], ("index_not_growing",), ()),
    ("openai-responses", [_life("created", 0), *_item(0, 1), _life("completed", 5)], (), ()),
    (
        "openai-responses",
        [_life("created", 0), _life("created", 1), *_item(0, 2), _life("completed", 6)],
        ("second_start",),
        ("second_start",),
    ),
    (
        "openai-responses",
        [_life("created", 0), *_item(1, 1), *_item(0, 5), _life("completed", 9)],
        ("index_not_growing",),
        ("index_not_growing",),
    ),
    (
        "openai-responses",
        [_life("created", 0), *_item(0, 1), _life("completed", 5), _life("completed", 6)],
        (),
        ("second_end",),
    ),
    (
        "openai-responses",
        [_life("created", 7), *_item(0, 1), _life("completed", 5)],
        ("number_not_growing",),
        ("number_not_growing",),
    ),
    ("gemini", [_piece("hi"), _piece("", "STOP")], (), ()),
    ("gemini", [_piece("hi", "STOP"), {"usageMetadata": _USAGE}], (), ()),
    (
        "gemini",
        [_piece("a"), _piece("b", None, 1), _piece("", "STOP"), _piece("c", None, 1), _piece("", "STOP", 1)],
        (),
        (),
    ),
    (
        "gemini",
        [_piece("hi", "STOP"), {"candidates": [{"index": 0, "groundingMetadata": _FOUND}]}],
        (),
        (),
    ),
    ("gemini", [_piece("hi", "STOP"), _piece("", "STOP")], ("second_end",), ("second_end",)),
    (
        "gemini",
        [_piece("hi", "STOP"), _piece("more")],
        ("content_after_end",),
        ("content_after_end",),
    ),
]


def _stream(name: str, frames: Frames) -> bytes:
    named = name in ("anthropic", "openai-responses")
    data = b"".join(
        (b"event: %b\n" % str(frame["type"]).encode() if named else b"")
        + b"data: %b\n\n" % encode(dict(frame))
        for frame in frames
    )
    return data + (b"data: [DONE]\n\n" if name == "openai-chat" else b"")


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
@rows(("name", "frames", "read", "heard"), CASES)
def test_a_broken_rule_is_named_once(
    name: str, frames: Frames, read: tuple[str, ...], heard: tuple[str, ...], size: int
) -> None:
    data = _stream(name, frames)
    reader, tap = dialect(name).stream_reader(Context(seed="s")), surface(name).tap(1 << 20)
    for at in range(0, len(data), size):
        reader.read(data[at : at + size])
        tap.feed(data[at : at + size])
    reader.end()
    tap.close()
    found: list[Any] = [reader, tap]  # flaws are no part of what every reader and tap must have
    assert [tuple(each.flaws) for each in found] == [read, heard]
    assert {*read, *heard} <= FLAWS.keys()
