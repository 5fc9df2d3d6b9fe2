"""The upstream behind the gateway: the demo model over HTTP, which notes what it got and what it answered."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from wireglot.demo.service import serve, target_of
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream.behaviour import Recorded


@dataclass(frozen=True)
class Exchange:
    """One request of the gateway and its answer, to the byte."""

    dialect: str
    asked: bytes
    answered: bytes


def keep(exchanges: Sequence[Exchange], file: Path) -> None:
    """For reading, one line each."""
    lines = ({"asked": e.asked.decode(), "answered": e.answered.decode()} for e in exchanges)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Upstream:
    """As `ScriptedUpstream`, with ids and signatures of its own in each answer: none is right by chance."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self._seeds = itertools.count(1)
        self._server = ScriptedUpstream(decide=self._answer)
        self.gate: threading.Event | None = None
        """Streams wait for it after their first piece, where there is one."""
        self.gap: float | None = None
        """Seconds between two pieces of a stream."""

    @property
    def url(self) -> str:
        return self._server.url

    def exchanges(self, mark: str) -> list[Exchange]:
        """Those whose request holds these words, in the order they came."""
        return [exchange for exchange in self._exchanges if mark.encode() in exchange.asked]

    def __enter__(self) -> Upstream:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    def _answer(self, request: Recorded) -> Behaviour | None:
        target = target_of(request.path, request.query, request.headers)
        if target is None or target.operation not in ("generate", "stream"):
            return None
        served = serve(target, request.body, seed=str(next(self._seeds)), now=int(time.time()))
        self._exchanges.append(Exchange(target.dialect, request.body, served.body))
        headers = tuple(served.headers)
        if served.streams:
            held = self.gate
            after = None if held is None else 1
            pieces = served.pieces
            return Behaviour(
                status=served.status, headers=headers, pieces=pieces, gate=held, after=after, gap=self.gap
            )
        return Behaviour(status=served.status, headers=headers, body=served.body)
