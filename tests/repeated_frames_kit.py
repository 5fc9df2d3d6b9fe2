"""Streams of which many frames repeat one before but for their words, and some only look so."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start


def frames_of(name: str, events: list[Event]) -> list[bytes]:
    data = dialect(name).stream_writer(Context(seed="s"), None).write(events)
    return [frame + b"\n\n" for frame in data.split(b"\n\n") if frame]


WORDS = (
    *("a", " word", "", "\n", "\\", 'say "hi"', "ü\U0001f600", "\u2028", "x" * 300),
    *("<", "<|", "a <b", "<|tool_call_begin|>", "|tool_call_begin|>", "<tool_call>", "</tool_call>"),
    *("tool_use", "tool", "function_call", "message_start", "response.created", "content_block_start"),
    *("[DONE]", "MALFORMED_FUNCTION_CALL", '"finish_reason":"stop"', "usage", "error", "data: [DONE]"),
)
ODD = (
    b'","finish_reason":"stop', b'"},"finish_reason":"length","x":{"y":"', b"\\", b"\\u003c|tool_call_begin|>",
    b'a","text":"b', b"\\u003C", b"\\ud83d", b"\xff", b'"', b"", b"\\\\", b'","stop_reason":"end_turn',
)  # fmt: skip
"""What no encoder writes between two quotes, or not so."""
MARK = "PLACE"

_words = st.lists(st.sampled_from(WORDS), max_size=6)


@st.composite
def _answers(draw: Any) -> list[Event]:
    events: list[Event] = [Start("id_1", "m")]
    kinds = draw(st.lists(st.sampled_from(["thoughts", "text", "text", "call"]), max_size=4))
    for index, kind in enumerate(kinds):
        if kind == "call":
            part: Any = ToolCall(f"call_{index}", "f", "")
            pieces = draw(st.sampled_from([['{"a": ', "1}"], ["{}"], ['{"a": "', "b", "c", '"}'], ['{"a']]))
        else:
            part = Text("") if kind == "text" else Reasoning("")
            pieces = [*draw(_words), MARK, *draw(_words)]
        events += [PartStart(index, part), *(Delta(index, piece) for piece in pieces), PartEnd(index)]
    stop = Stop(draw(st.sampled_from(["end", "length", "tool_calls"])))
    return [*events, Finish(stop, Usage(input=3, output=4))]


@st.composite
def streams_of(draw: Any, name: str) -> list[bytes]:
    """Frames, some of them reported again, padded, or with bytes in them that do not belong there."""
    frames: list[bytes] = []
    for frame in frames_of(name, draw(_answers())):
        frames += [frame] * draw(st.sampled_from([1, 1, 1, 1, 2, 3]))
        if MARK.encode() in frame:
            frames += [frame.replace(MARK.encode(), odd) for odd in draw(st.lists(st.sampled_from(ODD)))]
    if draw(st.booleans()):
        frames = [padded_frame(frame, draw(st.integers(0, 5))) for frame in frames]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(frames)))
        frames.insert(at, draw(st.sampled_from([b": ping\n\n", b"event: ping\ndata: {}\n\n", b"\n\n"])))
    gap = draw(st.sampled_from([b"\n\n", b"\n\n", b"\r\n\r\n"]))
    return [frame[:-2] + gap for frame in frames[: draw(st.sampled_from([len(frames), 3, 7]))]]


def padded_frame(frame: bytes, size: int) -> bytes:
    """As OpenAI pads its events, so that their size tells nothing."""
    return frame.replace(b"}\n\n", b',"obfuscation":"%b"}\n\n' % (b"abcdef"[:size],))
