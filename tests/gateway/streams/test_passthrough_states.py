"""The states of a stream that passes through: held, going out, over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.streams.fed import SeenClient, passthrough
from tests.laws.cases import MAIN
from tests.repeated_frames_kit import frames_of
from wireglot.gateway.streams.passthrough import FRAMES, OPENING, OVER, Passthrough
from wireglot.ir.content import Text
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Stop
from wireglot.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start

EVENTS: list[Event] = [
    Start("id_1", "m"), PartStart(0, Text("")), Delta(0, "Good"), Delta(0, " day"), PartEnd(0), Finish(Stop("end")),
]  # fmt: skip


def fed(
    name: str, *, keeps: bool = False, expects: bool = True
) -> tuple[Passthrough, SeenClient, list[bytes]]:
    """One that has been fed a whole answer, its client, and the answer."""
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=keeps, own_usage=False)
    ending: Any = feeder._exchange.ending
    ending.expects = lambda data, whole: expects
    frames = frames_of(name, EVENTS)
    for frame in frames:
        feeder.feed(frame)
    feeder.finish()
    return feeder, client, frames


def written(client: SeenClient) -> bytes:
    return b"".join(each[0] for each in client.seen if each != "end")


@pytest.mark.parametrize("name", MAIN)
def test_nothing_goes_out_before_a_part_of_an_answer(name: str) -> None:
    client = SeenClient()
    feeder = passthrough(name, client, judged=True, keeps=False, own_usage=False)
    frames = frames_of(name, EVENTS)
    first = next(place for place, frame in enumerate(frames) if b"Good" in frame)
    for frame in frames[:first]:
        feeder.feed(frame)
    assert (feeder._state, client.seen) == (OPENING, [])
    feeder.feed(frames[first])
    assert (feeder._state, written(client)) == (FRAMES, b"".join(frames[: first + 1]))


@pytest.mark.parametrize("name", MAIN)
def test_after_its_end_nothing_more_goes_out(name: str) -> None:
    feeder, client, frames = fed(name)
    assert (feeder._state, feeder.ended, written(client)) == (OVER, True, b"".join(frames))
    seen = list(client.seen)
    assert seen.count("end") == 1
    feeder.feed(frames[-1])
    feeder.fail(ApiError("server", "too late"))
    feeder.abandon()
    feeder.finish()
    feeder.release()
    assert (client.seen, feeder.failure) == (seen, None)


@pytest.mark.parametrize("name", MAIN)
def test_the_end_waits_where_the_answer_is_kept(name: str) -> None:
    feeder, client, frames = fed(name, keeps=True)
    assert feeder.holds_end
    assert "end" not in client.seen
    assert len(written(client)) < len(b"".join(frames))
    response = feeder.response()
    assert response is not None
    assert [part.text for part in response.content if type(part) is Text] == ["Good day"]
    feeder.release()
    assert (written(client), client.seen[-1]) == (b"".join(frames), "end")


@pytest.mark.parametrize("name", MAIN)
def test_the_end_does_not_wait_where_there_is_nothing_to_keep(name: str) -> None:
    feeder, client, frames = fed(name, keeps=True, expects=False)
    assert not feeder.holds_end
    assert (written(client), client.seen[-1]) == (b"".join(frames), "end")
