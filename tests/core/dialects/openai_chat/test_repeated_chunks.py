"""Chunks that repeat the one before but for their text say what they would say read in full."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.openai_chat.stream_reader import ChatChunks, ChatReader
from wireglot_core.ir.stream import Delta, Event, Failure


class _Forgetful(ChatChunks):
    """Learns nothing: every chunk is read in full."""

    def learn(self, block: bytes, said: list[Event]) -> None:
        pass


def _in_full() -> ChatReader:
    reader = ChatReader(Context(seed="s"))
    reader._repeated = _Forgetful(1 << 20, reader._parts)
    return reader


def _events(reader: ChatReader, pieces: list[bytes]) -> list[Event]:
    return [event for piece in pieces for event in reader.read(piece)] + reader.end()


def _chunk(delta: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m",
        "choices": [choice],
    } | more


def _line(value: Any, compact: bool = True) -> bytes:
    separators = (",", ":") if compact else None
    return b"data: %b\n\n" % json.dumps(value, separators=separators, ensure_ascii=False).encode()


_texts = st.sampled_from(
    [
        "",
        "a",
        'say "hi"',
        "back\\slash",
        "\\",
        "line\nbreak",
        "\U0001f600",
        '"content":"x"',
        "data: ",
        "[DONE]",
    ]
)
_arguments = st.sampled_from(["", '{"a": "', "b", " c", '\\"d', '"}', "{}", ' {"a": 1}', '{"a": 1}', "\n"])
_pads = st.sampled_from(["", "a", "bcd", 'e"f'])
_deltas = st.one_of(
    st.builds(lambda text: {"content": text}, _texts),
    st.builds(lambda text: {"role": "assistant", "content": text}, _texts),
    st.builds(lambda text: {"content": None, "reasoning_content": text}, _texts),
    st.builds(lambda text: {"content": text, "refusal": None, "annotations": [{"type": "x"}]}, _texts),
    st.builds(lambda text: {"content": text, "custom": "kept"}, _texts),
    st.builds(
        lambda text: {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": text}}]},
        _texts,
    ),
    st.builds(
        lambda index, more, name, text: {
            "tool_calls": [{"index": index, **more, "function": {**name, "arguments": text}}]
        },
        st.sampled_from([0, 0, 1, None]),
        st.sampled_from(
            [{}, {}, {"id": "t"}, {"id": None, "type": "function"}, {"type": "custom"}, {"x": 1}]
        ),
        st.sampled_from([{}, {}, {"name": None}, {"name": "g"}]),
        _arguments,
    ),
    st.builds(lambda text: {"content": "", "reasoning": text, "refusal": None, "tool_calls": None}, _texts),
    st.builds(lambda text, pad: {"content": text, "obfuscation": pad}, _texts, _pads),
)
_more = st.sampled_from(
    [
        {},
        {"system_fingerprint": "one"},
        {"system_fingerprint": "two"},
        {"service_tier": "flex"},
        {"usage": None},
        {"usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    ]
)
_chunks = st.builds(lambda delta, more: _chunk(delta, **more), _deltas, _more)
_streams = st.lists(
    st.tuples(_chunks, st.lists(st.one_of(_texts, _arguments), max_size=3), _pads, st.booleans()), max_size=8
).map(lambda drawn: [line for each in drawn for line in _alike(*each)])


def _alike(chunk: dict[str, Any], texts: list[str], pad: str, compact: bool) -> list[bytes]:
    """A chunk, and others that differ from it only in their text, and in their padding."""
    line = _line({**chunk, "obfuscation": "?"} if pad else chunk, compact)
    (delta,) = (choice["delta"] for choice in chunk["choices"])
    held = delta["tool_calls"][0]["function"] if delta.get("tool_calls") else delta
    key = next(
        key for key in ("arguments", "reasoning", "reasoning_content", "content") if held.get(key, 0) != 0
    )
    before = json.dumps(held[key], ensure_ascii=False).encode()
    others = [line.replace(before, json.dumps(text, ensure_ascii=False).encode()) for text in texts]
    return [
        line,
        *(other.replace(b'"?"', json.dumps(pad * number).encode()) for number, other in enumerate(others)),
    ]


_ENDS = [_line(_chunk({}, "stop")), b"data: [DONE]\n\n"]


@given(_streams, st.integers(1, 400))
def test_a_stream_says_the_same_as_read_in_full(lines, size):
    data = b"".join([*lines, *_ENDS])
    whole = _events(_in_full(), [data])
    assert _events(ChatReader(Context(seed="s")), [data]) == whole
    assert _events(ChatReader(Context(seed="s")), [*lines, *_ENDS]) == whole
    cut = [data[at : at + size] for at in range(0, len(data), size)]
    assert _events(ChatReader(Context(seed="s")), cut) == whole


_SHAPE = b'data: {"id":"c","choices":[{"delta":{"content":%b}}]}\n\n'


@rows(
    "odd",
    [
        b'"\\ud83d"',  # half a character
        b'"a"}}],"x":[{"y":{"z":"b"',  # fits before and behind, and is another chunk
        b'"a\\"',  # the quote behind it is the text's
        b"null",
        b'"',
        b"",
    ],
)
def test_a_chunk_that_only_looks_alike_is_read_in_full(odd):
    data = b"".join(_SHAPE % text for text in (b'"one"', b'"two"', b'"three"', odd, b'"four"')) + _ENDS[1]
    assert _events(ChatReader(Context(seed="s")), [data]) == _events(_in_full(), [data])


def test_a_text_under_a_name_that_stands_twice_is_not_mistaken():
    line = b'data: {"content":"outer","choices":[{"delta":{"content":"%d"}}]}\n\n'
    data = b"".join(line % number for number in range(5)) + _ENDS[1]
    said = _events(ChatReader(Context(seed="s")), [data])
    assert said == _events(_in_full(), [data])
    assert [event.text for event in said if type(event) is Delta] == ["0", "1", "2", "3", "4"]


def test_a_text_in_a_message_beside_a_delta_of_an_odd_shape_is_read_in_full():
    line = b'data: {"id":"c","choices":[{"delta":"odd","message":{"content":"%d"}}]}\n\n'
    data = b"".join(line % number for number in range(3)) + _ENDS[1]
    assert _events(ChatReader(Context(seed="s")), [data]) == _events(_in_full(), [data])


@pytest.fixture
def read_in_full(monkeypatch):
    """One for each frame that a reader looks at as a whole."""
    read = []
    frame = ChatReader._frame

    def counted(self, *rest):
        read.append(1)
        return frame(self, *rest)

    monkeypatch.setattr(ChatReader, "_frame", counted)
    return read


def test_most_of_a_stream_is_not_read_in_full(read_in_full):
    lines = [_line(_chunk({"content": f"word {number}"})) for number in range(100)]
    events = _events(ChatReader(Context()), [*lines, *_ENDS])
    assert sum(type(event) is Delta for event in events) == 100
    assert len(read_in_full) < 10


@pytest.mark.parametrize("more", [{}, {"id": None, "type": "function"}])
def test_most_of_a_call_is_not_read_in_full(read_in_full, more):
    pieces = ['{"a": "', *(f' \\"word\\" {number}' for number in range(100)), '"}']
    opening = {"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}
    calls = [opening, *({"index": 0, **more, "function": {"arguments": piece}} for piece in pieces)]
    lines = [
        _line(_chunk({"tool_calls": [call]}, obfuscation="x" * (number % 7)))
        for number, call in enumerate(calls)
    ]
    events = _events(ChatReader(Context()), [*lines, *_ENDS])
    assert "".join(event.text for event in events if type(event) is Delta) == "".join(pieces)
    assert len(read_in_full) < 30


def test_a_call_that_is_reported_twice_is_heard_once_among_chunks_that_repeat():
    said = ['{"a"', ": ", "1", "}", '{"a": 1}', ' {"a": 1} ']
    opening = {"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}
    calls = [opening, *({"index": 0, "function": {"arguments": piece}} for piece in said)]
    lines = [_line(_chunk({"tool_calls": [call]})) for call in calls]
    events = _events(ChatReader(Context()), [*lines, *_ENDS])
    assert "".join(event.text for event in events if type(event) is Delta) == '{"a": 1}'


def test_a_frame_that_is_too_large_is_refused_among_frames_that_repeat():
    lines = [_line(_chunk({"content": "x" * (size * 100)})) for size in (1, 1, 1, 30, 1)]
    events = _events(ChatReader(Context(max_frame=1000)), lines)
    assert type(events[-1]) is Failure
    assert sum(type(event) is Delta for event in events) == 3
