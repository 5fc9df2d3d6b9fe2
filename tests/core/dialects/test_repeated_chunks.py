"""Frames that repeat the one before but for their text say what they would say read in full."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.laws.cases import MAIN, all_hold, of_kind, recorded
from tests.repeated_frames_kit import frames_of, padded_frame, streams_of
from tests.tiers import rows
from wireglot_core.dialects.base import StreamReader
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.stream import Delta, Event, Failure, Finish, PartEnd, PartStart, Start
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import cut_at, every_cut

_COUNTS = b',"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d}}\n\n'


def _reader(name: str, *, in_full: bool) -> StreamReader:
    reader = dialect(name).stream_reader(Context(seed="s", max_frame=4000))
    if in_full:
        _inside(reader)._repeated._tries = 0  # it learns nothing
    return reader


def _inside(reader: StreamReader) -> Any:
    """Gemini's may open envelopes first."""
    return getattr(reader, "_reader", reader)


def _events(name: str, reads: list[bytes], *, in_full: bool) -> list[Event]:
    reader = _reader(name, in_full=in_full)
    return [event for data in reads for event in reader.read(data)] + reader.end()


def _same(name: str, reads: list[bytes]) -> None:
    assert _events(name, reads, in_full=False) == _events(name, reads, in_full=True)


@pytest.mark.parametrize("name", MAIN)
@given(st.data())
def test_a_stream_says_what_it_says_read_in_full(name, data):
    frames = data.draw(streams_of(name))
    if name == "gemini" and data.draw(st.booleans()):
        frames = [frame.replace(b"}\n\n", _COUNTS % number) for number, frame in enumerate(frames)]
    _same(name, frames)
    whole = b"".join(frames)
    _same(name, cut_at(whole, data.draw(st.lists(st.integers(0, len(whole)), max_size=6))))
    size = data.draw(st.integers(2, 5))
    several = [b"".join(frames[at : at + size]) for at in range(0, len(frames), size)]
    _same(name, [*frames[:4], *several])


@rows("case", of_kind("streams"))
def test_a_known_stream_says_what_it_says_read_in_full(case):
    _law(case)


@pytest.mark.parametrize("name", MAIN)
def test_a_recorded_stream_says_what_it_says_read_in_full(name):
    all_hold(recorded(name, "streams", 40), _law)


def _law(case: Case) -> None:
    if case.dialect not in MAIN:
        return
    _same(case.dialect, [frame + b"\n\n" for frame in case.data.split(b"\n\n") if frame])
    for reads in list(every_cut(case.data, 2))[-2:]:
        _same(case.dialect, reads)


def _reported(name: str, part: Any, pieces: list[str]) -> list[bytes]:
    deltas: list[Event] = [Delta(0, piece) for piece in pieces]
    usage = Usage(input=3, output=4)
    return frames_of(
        name, [Start("i", "m"), PartStart(0, part), *deltas, PartEnd(0), Finish(Stop("end"), usage)]
    )


_PARTS = {"text": Text(""), "thoughts": Reasoning(""), "call": ToolCall("t", "f", "")}


@rows("padded", [False, True])
@rows("kind", _PARTS)
@rows("name", MAIN)
def test_most_of_a_stream_is_not_read_in_full(name, kind, padded, monkeypatch):
    if kind == "call" and name == "gemini":
        pytest.skip("its calls come whole")
    if padded and name in ("anthropic", "gemini"):
        pytest.skip("nobody pads them")
    pieces = [f' word \\"{number}\\" ü' for number in range(60)]
    if kind == "call":
        pieces = ['{"a": "', *pieces, '"}']
    read: list[Any] = []
    kind_of_reader = type(_inside(_reader(name, in_full=False)))
    frame = kind_of_reader._frame

    def counted(self: Any, *rest: Any) -> None:
        read.append(rest)
        frame(self, *rest)

    monkeypatch.setattr(kind_of_reader, "_frame", counted)
    reader = _reader(name, in_full=False)
    frames = _reported(name, _PARTS[kind], pieces)
    if padded:
        frames = [padded_frame(each, number % 6 + 1) for number, each in enumerate(frames)]
    events = [event for each in frames for event in reader.read(each)] + reader.end()
    assert "".join(event.text for event in events if type(event) is Delta) == "".join(pieces)
    assert type(events[-1]) is Finish
    assert len(read) < 20


def test_the_usage_of_a_gemini_stream_is_that_of_its_last_chunk():
    chunk = (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"%d"}]},"index":0}],'
        b'"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d,"totalTokenCount":%d}}\n\n'
    )
    reader = _reader("gemini", in_full=False)
    for number in range(1, 20):
        reader.read(chunk % (number, number, number + 5))
    assert _inside(reader)._repeated.last
    last = reader.read(b'data: {"candidates":[{"finishReason":"STOP"}]}\n\n') + reader.end()
    assert type(last[-1]) is Finish
    assert last[-1].usage is not None
    assert last[-1].usage.output == 19


@pytest.mark.parametrize("name", MAIN)
def test_a_frame_larger_than_allowed_is_refused_among_frames_that_repeat(name):
    frames = _reported(name, Text(""), ["one", "two", "three", "four", "x" * 5000, "five"])
    events = _events(name, frames, in_full=False)
    assert type(events[-1]) is Failure
    assert events == _events(name, frames, in_full=True)
    assert sum(type(event) is Delta for event in events) == 4


@pytest.mark.parametrize("name", MAIN)
def test_a_frame_that_comes_behind_half_a_frame_is_not_taken_for_one_that_repeats(name):
    frames = _reported(name, Text(""), [f"word {number}" for number in range(8)])
    half = frames[5][:20]
    _same(name, [*frames[:6], half, *frames[6:]])


_PADDED = (
    b'data: {"id":"i","model":"m","choices":[{"index":0,"delta":{"content":"%b"}}],"obfuscation":"%b"}\n\n'
)
_NUMBERED = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"i",'
    b'"output_index":0,"content_index":0,"delta":"%b","sequence_number":%b}\n\n'
)


@rows("odd", [b"a\n\ndata: [DONE]\n\ndata: x", b"a\nb", b"a\rb", b"\xff", b"\x01", b"\x7f", b""])
def test_padding_that_is_no_text_is_reported_however_the_stream_is_cut(odd):
    frames = [
        _PADDED % pair for pair in ((b"a", b"q"), (b"b", b"r"), (b"c", b"s"), (b"d", odd), (b"e", b"t"))
    ]
    _same("openai-chat", frames)
    _same("openai-chat", [b"".join(frames)])
    whole, cut = (_events("openai-chat", reads, in_full=False) for reads in ([b"".join(frames)], frames))
    assert whole == cut


@rows("odd", [b"007", b"00", b"-1", b"+1", b"1.0", b"0", b"1e3", b" 1"])
def test_numbers_that_are_none_are_reported_however_the_stream_is_cut(odd):
    frames = [
        _NUMBERED % pair for pair in ((b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", odd), (b"e", b"5"))
    ]
    _same("openai-responses", frames)
    _same("openai-responses", [b"".join(frames)])
