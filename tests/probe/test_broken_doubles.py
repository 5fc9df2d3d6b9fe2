"""No case is one that cannot fail: each passes on a good server, and fails on one that breaks just its rule."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.probe.breakages import BREAKAGES
from tests.probe.broken_server import KEY, MODEL, Breakage, Served, server
from tests.tiers import rows
from wireglot.probe.endpoint import HttpEndpoint, root_of
from wireglot.probe.run import CASES, WIRES, ProbeFinding, cases_for, run_cases
from wireglot.probe.talk import ProbeCase, ProbeLedger
from wireglot.testing.scripted_upstream import ScriptedUpstream

ALL = [(case, dialect) for case in CASES for dialect in case.dialects]
WHOLE = bool(os.environ.get("WIREGLOT_WHOLE"))  # `make full`
PAIRS = [(case, dialect) for case, dialect in ALL if WHOLE or case.cost != "large"]


def probed(case: ProbeCase, dialect: str, breakage: Breakage) -> ProbeFinding:
    wire = WIRES[dialect]
    with (
        ScriptedUpstream(decide=server(dialect, breakage)) as upstream,
        HttpEndpoint(root_of(upstream.url, dialect), wire.key_header, KEY) as endpoint,
    ):
        return next(run_cases([case], endpoint, wire, MODEL, ProbeLedger(), wait=lambda _: None))


def test_every_case_has_a_server_that_breaks_it() -> None:
    assert {(case.id, dialect) for case, dialect in ALL} <= {
        (name, dialect) for name, by in BREAKAGES.items() for dialect in by
    }
    assert BREAKAGES.keys() == {case.id for case in CASES}


@pytest.mark.sampled(each=3)
@rows(("case", "dialect"), PAIRS, ids=[f"{case.id}-{dialect}" for case, dialect in PAIRS], parts=6)
def test_a_case_passes_on_a_good_server_and_fails_on_one_that_breaks_its_rule(
    case: ProbeCase, dialect: str
) -> None:
    good = probed(case, dialect, Breakage())
    assert good.verdict == "pass", good.words
    broken = probed(case, dialect, BREAKAGES[case.id][dialect])
    assert broken.verdict == ("fail" if case.level == "must" else "warn"), (broken.verdict, broken.words)


def no_stream(served: Served) -> Served:
    kind = WIRES[served.dialect].stream_type
    return replace(served, headers={"content-type": kind}, body=b"<h1>Welcome</h1>")


@pytest.mark.parametrize("dialect", WIRES)
def test_no_case_of_streams_passes_where_no_event_comes(dialect: str) -> None:
    """Rules about what is in a stream hold of an empty one, if nobody takes care."""
    wire = WIRES[dialect]
    breakage = Breakage(answer=lambda served: no_stream(served) if served.streams else served)
    cases = [case for case in cases_for(dialect) if case.theme == "streams" and case.id != "streams.refusal"]
    with (
        ScriptedUpstream(decide=server(dialect, breakage)) as upstream,
        HttpEndpoint(root_of(upstream.url, dialect), wire.key_header, KEY) as endpoint,
    ):
        findings = list(run_cases(cases, endpoint, wire, MODEL, ProbeLedger(), wait=lambda _: None))
    assert {finding.verdict for finding in findings} <= {"fail", "warn"}, findings
