"""Runs cases one after another: inconclusive ones are repeated once, and the run ends with the budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from wireglot.demo.service import refused, serve, target_of
from wireglot.probe.cases.answers import ANSWERS, STOPS, TEXTS, USAGE
from wireglot.probe.cases.errors import ERRORS, FIELDS, LISTS
from wireglot.probe.cases.reasoning import REASONING
from wireglot.probe.cases.schemas import SCHEMAS
from wireglot.probe.cases.state import STATE
from wireglot.probe.cases.streams import STREAMS
from wireglot.probe.cases.tools import RESULTS, TOOLS
from wireglot.probe.endpoint import Endpoint, EndpointRequest, Got, root_of
from wireglot.probe.reply import Broken, Inconclusive, NotApplicable, Verdict
from wireglot.probe.talk import ProbeCase, ProbeExchange, ProbeLedger, Talk
from wireglot.probe.wires.anthropic import AnthropicWire
from wireglot.probe.wires.gemini import GeminiWire
from wireglot.probe.wires.gemini_interactions import InteractionsWire
from wireglot.probe.wires.ollama import OllamaWire
from wireglot.probe.wires.openai_chat import ChatWire
from wireglot.probe.wires.openai_responses import ResponsesWire
from wireglot.probe.wires.wire import Wire
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import BadJson

_PAUSE_SECONDS: Final = 2.0
"""Before a case is repeated: usually the endpoint was busy, or the model chose otherwise."""


class ProbeFinding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one case, with all its exchanges."""

    id: str
    verdict: Verdict
    words: str = ""
    seconds: float = 0.0
    tries: int = 1
    exchanges: tuple[ProbeExchange, ...] = ()


def run_cases(
    cases: Iterable[ProbeCase],
    endpoint: Endpoint,
    wire: Wire,
    model: str,
    ledger: ProbeLedger,
    *,
    affordable: Callable[[ProbeCase], str] = lambda _: "",
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[ProbeFinding]:
    """Yields each finding as soon as it is available. `affordable` returns why a case must not be run any
    more, or ""."""
    for case in cases:
        if why := case.lacking.get(wire.name, ""):
            yield ProbeFinding(id=case.id, verdict="not applicable", words=why, tries=0)
            continue
        if why := affordable(case):
            yield ProbeFinding(id=case.id, verdict="not run", words=why, tries=0)
            continue
        began = clock()
        finding = _once(case, Talk(endpoint, wire, model, ledger, case=case.id))
        if finding.verdict == "inconclusive":
            if any(exchange.status not in (200,) for exchange in finding.exchanges):
                wait(_PAUSE_SECONDS)
            again = _once(case, Talk(endpoint, wire, model, ledger, case=case.id, fresh=True))
            finding = msgspec.structs.replace(again, tries=2)
        yield msgspec.structs.replace(finding, seconds=round(clock() - began, 3))


def _once(case: ProbeCase, talk: Talk) -> ProbeFinding:
    verdict: Verdict = "pass"
    words = ""
    try:
        case.check(talk)
    except NotApplicable as why:
        verdict, words = "not applicable", str(why)
    except Inconclusive as why:
        verdict, words = "inconclusive", str(why)
    except (Broken, BadJson) as broken:
        verdict, words = ("fail" if case.level == "must" else "warn"), str(broken)
        reported = {name for exchange in talk.exchanges for name in exchange.left_out}
        if excuse := reported.intersection(case.excuses):
            verdict, words = (
                "not applicable",
                f"the answer says that it left out {', '.join(sorted(excuse))}",
            )
        talk.unlearn(words)
    return ProbeFinding(id=case.id, verdict=verdict, words=words, exchanges=tuple(talk.exchanges))


_BYTES_OF_A_TOKEN = 2
"""Minimum for a request's JSON: English has four, and half of a request is braces and quotes."""


class DemoEndpoint:
    """Replaces the endpoint, without sockets."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect

    def ask(self, ask: EndpointRequest) -> Got:
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
    """The maximum cost of one case, beyond the requests that earlier cases share with it."""

    case: str
    requests: int
    input: int
    output: int


class Rehearsal(msgspec.Struct, frozen=True):
    findings: tuple[ProbeFinding, ...]
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


def rehearse(cases: Iterable[ProbeCase], wire: Wire, model: str) -> Rehearsal:
    ledger = ProbeLedger()
    findings: list[ProbeFinding] = []
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


WIRES: Final[dict[str, Wire]] = {
    wire.name: wire
    for wire in (
        AnthropicWire(),
        ChatWire(),
        ResponsesWire(),
        GeminiWire(),
        OllamaWire(),
        InteractionsWire(),
    )
}


THEMES: Final = (
    ANSWERS,
    STREAMS,
    TOOLS,
    RESULTS,
    STOPS,
    USAGE,
    REASONING,
    SCHEMAS,
    TEXTS,
    FIELDS,
    ERRORS,
    LISTS,
    STATE,
)
CASES: Final[tuple[ProbeCase, ...]] = tuple(case for theme in THEMES for case in theme.cases)


def cases_for(dialect: str) -> tuple[ProbeCase, ...]:
    """Cases that apply to it, and those about a feature that it lacks."""
    return tuple(case for case in CASES if dialect in case.dialects or dialect in case.lacking)
