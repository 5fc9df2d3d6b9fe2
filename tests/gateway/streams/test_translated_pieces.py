"""Pieces of text that are written at once say what they would say if every event were looked at."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.laws.cases import MAIN
from tests.gateway.streams.fed import SeenClient, reported
from tests.repeated_frames_kit import frames_of, streams_of
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.streams.feeder import STREAM_TIMES
from wireglot.gateway.streams.translation import Translation
from wireglot.gateway.targets.prepared import Prepared
from wireglot.http.transport import TransportFault
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.content import Origin, Text
from wireglot_core.ir.outcome import Stop, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Event, Finish, PartEnd, PartStart, Start

PAIRS = [(client, upstream) for client in MAIN for upstream in MAIN]


class _Thorough(Translation):
    """Looks at every event."""

    def feed(self, data: bytes) -> None:
        self._flowing = -1
        super().feed(data)


def _translation(
    made: type[Translation],
    client: str,
    upstream: str,
    seen: SeenClient,
    keeps: bool,
    withholds: bool = False,
) -> Translation:
    job = SimpleNamespace(
        dialect=client,
        surface=surface(client),
        settings=SimpleNamespace(limits=SimpleNamespace(response=40_000)),
        caller=LOCAL,
        head=SimpleNamespace(headers={}, peer="127.0.0.1"),
        model="m",
    )
    exchange = SimpleNamespace(
        job=job,
        codec=dialect(client),
        record=ExchangeRecord("req_1", 0.0),
        redactor=SimpleNamespace(data=lambda data: data, text=lambda text: text),
        expected_input=lambda: 7,
        estimated_usage=lambda weight: Usage(input=7, output=weight),
        safeguard_results=(),
        further=(),
        withholds_reasoning=withholds,
    )
    prepared = Prepared(
        outbound=cast(Any, None),
        stream=True,
        raw=False,
        context=Context(seed="s"),
        own_usage=False,
        request=Request("m", (), tools=(Tool("f"),)),
        minter=Origin(upstream, "p", "m") if client != upstream else None,
    )
    return made(cast(Any, exchange), dialect(upstream), prepared, cast(Any, seen), keeps=keeps)


def _reported(
    made: type[Translation],
    client: str,
    upstream: str,
    reads: list[bytes],
    end: str,
    *,
    keeps: bool,
    withholds: bool,
) -> list[Any]:
    seen = SeenClient()
    feeder = _translation(made, client, upstream, seen, keeps, withholds)
    if made is _Thorough:
        reader: Any = feeder._reader
        getattr(reader, "_reader", reader)._repeated._tries = 0
    return reported(feeder, seen, reads, end, past_end=True)


@rows(("client", "upstream"), PAIRS)
@given(st.data())
def test_a_stream_is_written_as_if_every_event_were_looked_at(client, upstream, data):
    reads = data.draw(streams_of(upstream))
    end = data.draw(st.sampled_from(["ends", "ends", "fails", "is left"]))
    keeps = data.draw(st.booleans())
    withholds = data.draw(st.booleans())
    quick, thorough = (
        _reported(made, client, upstream, reads, end, keeps=keeps, withholds=withholds)
        for made in (Translation, _Thorough)
    )
    assert quick == thorough


@rows(("client", "upstream"), PAIRS)
def test_most_of_a_stream_is_not_looked_at(client, upstream, monkeypatch):
    looked: list[Any] = []
    take = Translation._take

    def counted(self: Translation, events: list[Event]) -> None:
        looked.append(events)
        take(self, events)

    monkeypatch.setattr(Translation, "_take", counted)
    words = [f" word {number}" for number in range(60)]
    deltas: list[Event] = [Delta(0, word) for word in words]
    usage = Usage(input=3, output=4)
    events = [Start("i", "m"), PartStart(0, Text("")), *deltas, PartEnd(0), Finish(Stop("end"), usage)]
    seen = SeenClient()
    feeder = _translation(Translation, client, upstream, seen, keeps=True)
    for frame in frames_of(upstream, events):
        feeder.feed(frame)
    feeder.finish()
    feeder.release()
    assert len(looked) < 12
    response = feeder.response()
    assert response is not None
    assert [part.text for part in response.content if type(part) is Text] == ["".join(words)]
    reader = dialect(client).stream_reader(Context(seed="s"))
    came = reader.read(b"".join(item[0] for item in seen.seen if type(item) is tuple)) + reader.end()
    assert "".join(event.text for event in came if type(event) is Delta) == "".join(words)
    assert type(came[-1]) is Finish


def test_a_stream_may_take_as_much_as_is_allowed_and_not_a_byte_more():
    """Comments count too: nobody else bounds what a writer and a reader keep."""
    limit = 40_000 * STREAM_TIMES
    for excess in (0, 1):
        feeder = _translation(Translation, "anthropic", "openai-chat", SeenClient(), keeps=False)
        feeder.feed(b": a comment\n\n")
        rest = b":" + b"x" * (limit - 16 + excess) + b"\n\n"
        assert len(b": a comment\n\n") + len(rest) == limit + excess
        if excess:
            with pytest.raises(TransportFault) as refused:
                feeder.feed(rest)
            assert refused.value.problem == "too_large"
        else:
            feeder.feed(rest)
        feeder.release()
