"""A run played with the embedded demo model: what would be sent, and how much at most. Nobody is asked."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from wireglot.demo.service import refused, serve, target_of
from wireglot.ir.errors import ApiError
from wireglot.probe.case import Case
from wireglot.probe.endpoint import Ask, Got, root_of
from wireglot.probe.run import Finding, run_cases
from wireglot.probe.talk import Ledger
from wireglot.probe.wires.wire import Wire

_BYTES_OF_A_TOKEN = 2
"""Of the JSON of a request, at least: English has four, and half of a request is braces and quotes."""


class DemoEndpoint:
    """Stands in for the endpoint: no sockets."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def ask(self, ask: Ask) -> Got:
        path, _, query = (
            root_of("http://demo", self._dialect).removeprefix("http://demo") + ask.path
        ).partition("?")
        target = target_of(path, query, dict(ask.headers))
        if target is None:
            served = refused(self._dialect, ApiError("not_found", f"nothing at {path}", 404))
        else:
            served = serve(target, ask.body)
        return Got(served.status, dict(served.headers), served.body)


class Part(msgspec.Struct, frozen=True):
    """What one case comes to at most, beyond what those before it have asked already."""

    case: str
    requests: int
    input: int
    output: int


class Rehearsal(msgspec.Struct, frozen=True):
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]

    @property
    def requests(self) -> int:
        return sum(part.requests for part in self.parts)

    @property
    def input(self) -> int:
        return sum(part.input for part in self.parts)

    @property
    def output(self) -> int:
        return sum(part.output for part in self.parts)


def rehearse(cases: Iterable[Case], wire: Wire, model: str) -> Rehearsal:
    ledger = Ledger()
    findings: list[Finding] = []
    parts: list[Part] = []
    for case in cases:
        before = ledger.requests, ledger.bytes_sent, ledger.most_output
        findings += run_cases((case,), DemoEndpoint(wire.name), wire, model, ledger, wait=lambda _: None)
        sent = ledger.bytes_sent - before[1]
        parts.append(
            Part(
                case.id,
                ledger.requests - before[0],
                -(-sent // _BYTES_OF_A_TOKEN),
                ledger.most_output - before[2],
            )
        )
    return Rehearsal(tuple(findings), tuple(parts))
