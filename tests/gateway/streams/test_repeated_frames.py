"""Frames that repeat one before but for their words pass as they would if all of them were looked at."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.dialects import acme
from tests.core.laws.cases import MAIN, all_hold, of_kind, recorded
from tests.gateway.streams.fed import EVENT_BYTES, SeenClient, passthrough, reported
from tests.repeated_frames_kit import frames_of, padded_frame, streams_of
from tests.tiers import rows
from wireglot_core.dialects.passthrough import RepeatedFrames
from wireglot_core.dialects.registry import register, unregister
from wireglot_core.ir.content import Text
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Stop
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start
from wireglot_core.testing.check_dialect import Case
from wireglot_core.testing.laws import cut_at, every_cut
from wireglot_core.wire.sse import FrameTooLarge


class _Forgetful(RepeatedFrames):
    """Learns nothing: every frame is looked at."""

    def learn(self, data: bytes) -> None: ...


def _reported(name: str, reads: list[bytes], end: str, *, forgetful: bool, **how: bool) -> list[Any]:
    """All that anybody learns of a stream in these reads."""
    client = SeenClient()
    feeder = passthrough(name, client, **how)
    if forgetful:
        feeder._repeated = _Forgetful(EVENT_BYTES)
    return reported(feeder, client, reads, end)


def _same(name: str, reads: list[bytes], end: str = "ends", **how: bool) -> None:
    how = {"judged": True, "keeps": False, "own_usage": False, **how}
    assert _reported(name, reads, end, forgetful=False, **how) == _reported(
        name, reads, end, forgetful=True, **how
    )


@pytest.mark.parametrize("name", MAIN)
@given(st.data())
def test_a_stream_passes_as_if_every_frame_were_looked_at(name, data):
    frames = data.draw(streams_of(name))
    end = data.draw(st.sampled_from(["ends", "ends", "fails", "is left"]))
    how = {key: data.draw(st.booleans()) for key in ("judged", "keeps", "own_usage")}
    _same(name, frames, end, **how)
    whole = b"".join(frames)
    places = data.draw(st.lists(st.integers(0, len(whole)), max_size=6))
    _same(name, cut_at(whole, places), end, **how)
    size = data.draw(st.integers(2, 5))
    several = [b"".join(frames[at : at + size]) for at in range(0, len(frames), size)]
    _same(name, [*frames[:4], *several], end, **how)


@rows("case", of_kind("streams"))
def test_a_known_stream_passes_as_if_every_frame_were_looked_at(case):
    _law(case)


@pytest.mark.parametrize("name", MAIN)
def test_a_recorded_stream_passes_as_if_every_frame_were_looked_at(name):
    all_hold(recorded(name, "streams", 20), _law)


def _law(case: Case) -> None:
    if case.data[:1] == b"[":
        return  # no frames
    frames = [frame + b"\n\n" for frame in case.data.split(b"\n\n") if frame]
    for judged in (True, False):
        _same(case.dialect, frames, judged=judged)
    for reads in list(every_cut(case.data, 2))[-2:]:
        _same(case.dialect, reads)


def _reported_words(name: str, count: int) -> list[bytes]:
    deltas: list[Event] = [Delta(0, f" word {number}\n") for number in range(count)]
    events = [Start("id_1", "m"), PartStart(0, Text("")), *deltas, PartEnd(0), Finish(Stop("end"))]
    return frames_of(name, events)


@rows("padded", [False, True])
@rows("name", MAIN)
def test_most_of_a_stream_is_not_looked_at(name, padded, monkeypatch):
    looked: list[bytes] = []
    feeder = passthrough(name, SeenClient(), judged=True, keeps=False, own_usage=False)
    take = feeder._hear

    def counted(data: bytes) -> bool:
        looked.append(data)
        return take(data)

    monkeypatch.setattr(feeder, "_hear", counted)
    frames = _reported_words(name, 60)
    for number, frame in enumerate(frames):
        feeder.feed(padded_frame(frame, number % 6 + 1) if padded else frame)
    assert len(looked) < 12
    assert feeder.ended or name == "gemini"


def test_every_frame_of_a_dialect_without_marks_is_listened_to(monkeypatch):
    """The keys under which words stand elsewhere may name something there."""
    register(acme.DIALECT)
    try:
        feeder = passthrough(acme.NAME, SeenClient(), judged=False, keeps=False, own_usage=False)
        heard: list[bytes] = []
        monkeypatch.setattr(feeder._tap, "feed", heard.append)
        frames = _reported_words(acme.NAME, 20)[:15]
        for frame in frames:
            feeder.feed(frame)
    finally:
        unregister(acme.NAME)
    assert b"".join(heard) == b"".join(frames)


def test_a_frame_larger_than_allowed_is_refused_among_frames_that_repeat():
    words = [f"word {number}" for number in range(5)]
    frames = frames_of(
        "openai-chat",
        [Start("c", "m"), PartStart(0, Text("")), *(Delta(0, text) for text in [*words, "x" * EVENT_BYTES])],
    )
    client = SeenClient()
    feeder = passthrough("openai-chat", client, judged=True, keeps=False, own_usage=False)
    for frame in frames[:-1]:
        feeder.feed(frame)
    with pytest.raises(FrameTooLarge):
        feeder.feed(frames[-1])
    assert json.loads(client.seen[-1][0][6:])["choices"][0]["delta"]["content"] == words[-1]


def test_the_next_number_of_a_stream_that_fails_is_known():
    frames = _reported_words("openai-responses", 20)[:15]
    client = SeenClient()
    feeder = passthrough("openai-responses", client, judged=True, keeps=False, own_usage=False)
    for frame in frames:
        feeder.feed(frame)
    feeder.fail(ApiError("server", "broken"))
    reported = client.seen[-2][0]
    numbers = [
        json.loads(frame.split(b"data: ")[1].split(b"\n")[0])["sequence_number"]
        for frame in (frames[-1], reported)
    ]
    assert numbers[1] == numbers[0] + 1


def test_the_account_of_a_gemini_stream_is_of_its_last_chunk():
    chunk = (
        b'data: {"candidates":[{"content":{"role":"model","parts":[{"text":"%d"}]},"index":0}],'
        b'"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d,"totalTokenCount":%d}}\r\n\r\n'
    )
    feeder = passthrough("gemini", SeenClient(), judged=True, keeps=False, own_usage=False)
    for number in range(1, 20):
        feeder.feed(chunk % (number, number, number + 5))
    assert feeder._unheard
    feeder.abandon()
    assert feeder._exchange.record.usage is not None
    assert feeder._exchange.record.usage.output == 19
