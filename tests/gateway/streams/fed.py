"""What anybody learns of a stream that is fed to a feeder, read by read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec

from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.streams.feeder import StreamRefused
from wireglot.gateway.streams.passthrough import Passthrough
from wireglot.gateway.streams.translation import Translation
from wireglot.gateway.targets.prepared import Prepared
from wireglot.http.transport import TransportFault
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.ir.errors import ApiError, UpstreamFault
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.verdict import NoAnswer
from wireglot_core.wire.json import BadJson
from wireglot_core.wire.sse import FrameTooLarge

EVENT_BYTES = 5000
_FAULTS = (StreamRefused, NoAnswer, BadJson, FrameTooLarge, TransportFault, UpstreamFault)


class SeenClient:
    """Stands for the client's end of a stream."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def write(self, data: bytes, *, last: bool = False, answers: bool = True) -> None:
        self.seen.append((bytes(data), last))

    def end(self) -> None:
        self.seen.append("end")


def passthrough(name: str, client: SeenClient, *, judged: bool, keeps: bool, own_usage: bool) -> Passthrough:
    """One that is not part of a gateway."""
    limits = SimpleNamespace(event=EVENT_BYTES, response=1 << 20)
    job = SimpleNamespace(
        dialect=name,
        framing="sse",
        surface=surface(name),
        settings=SimpleNamespace(limits=limits),
        caller=LOCAL,
        head=SimpleNamespace(headers={}, peer="127.0.0.1"),
        context=Context(seed="s"),
        model="m",
    )
    request = Request("m", (), tools=(Tool("f"),))
    exchange = SimpleNamespace(
        withholds_reasoning=False,
        expected_input=lambda: 7,
        job=job,
        codec=dialect(name),
        record=ExchangeRecord("req_1", 0.0),
        redactor=SimpleNamespace(data=lambda data: data, text=lambda text: text),
        request=lambda: request,
        ending=SimpleNamespace(expects=lambda data, whole: True),
        safeguard_results=(),
        further=(),
    )
    prepared = Prepared(
        outbound=cast(Any, None),
        stream=True,
        raw=True,
        context=Context(seed="s"),
        own_usage=own_usage,
        request=request,
    )
    return Passthrough(cast(Any, exchange), prepared, cast(Any, client), keeps=keeps, judged=judged)


def reported(
    feeder: Passthrough | Translation,
    client: SeenClient,
    reads: list[bytes],
    end: str,
    *,
    past_end: bool = False,
) -> list[Any]:
    """`end`: how it ends after these reads: "ends", "fails" or "is left". `past_end`: it is fed on after it
    has said that it ended."""
    seen = client.seen
    try:
        for data in reads:
            feeder.feed(data)
            seen.append(("read", feeder.ended, feeder.moved, feeder.failure))
            feeder.moved = False
            if feeder.ended and not past_end:
                break
        match end:
            case "fails":
                feeder.fail(ApiError("server", "broken"))
            case "is left":
                feeder.abandon()
            case _:
                feeder.finish()
        seen.append(feeder.response())
        feeder.release()
    except _FAULTS as problem:
        seen.append(repr(problem))
    return [*seen, feeder.failure, msgspec.to_builtins(feeder._exchange.record)]
