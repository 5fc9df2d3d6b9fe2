"""Runs cases one after another: asked again once where nothing could be said, ended where the money ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from wireglot.probe.case import Case
from wireglot.probe.endpoint import Endpoint
from wireglot.probe.talk import Exchange, Ledger, Talk
from wireglot.probe.verdict import Broken, Inconclusive, NotApplicable, Verdict
from wireglot.probe.wires.wire import Wire
from wireglot.wire.json import BadJson

_PAUSE_SECONDS: Final = 2.0
"""Before a case is tried again: mostly the endpoint was busy, or the model chose otherwise."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """How one case ended, with all that was said in it."""

    id: str
    verdict: Verdict
    words: str = ""
    seconds: float = 0.0
    tries: int = 1
    exchanges: tuple[Exchange, ...] = ()


def run_cases(
    cases: Iterable[Case],
    endpoint: Endpoint,
    wire: Wire,
    model: str,
    ledger: Ledger,
    *,
    affordable: Callable[[Case], str] = lambda _: "",
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Finding]:
    """Each finding as soon as it is there. `affordable` gives why a case may not be run any more, or ""."""
    for case in cases:
        if why := affordable(case):
            yield Finding(id=case.id, verdict="not run", words=why, tries=0)
            continue
        began = clock()
        finding = _once(case, Talk(endpoint, wire, model, ledger, case=case.id))
        if finding.verdict == "inconclusive":
            if any(exchange.status not in (200,) for exchange in finding.exchanges):
                wait(_PAUSE_SECONDS)
            again = _once(case, Talk(endpoint, wire, model, ledger, case=case.id, fresh=True))
            finding = msgspec.structs.replace(again, tries=2)
        yield msgspec.structs.replace(finding, seconds=round(clock() - began, 3))


def _once(case: Case, talk: Talk) -> Finding:
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
        told = {name for exchange in talk.exchanges for name in exchange.left_out}
        if excuse := told.intersection(case.excuses):
            verdict, words = "not applicable", f"the answer says that it left out {', '.join(sorted(excuse))}"
        talk.unlearn(words)
    return Finding(id=case.id, verdict=verdict, words=words, exchanges=tuple(talk.exchanges))
