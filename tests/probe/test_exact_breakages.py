"""A fault fails its own case and no other: a report that blames twenty rules for one fault helps nobody."""

from __future__ import annotations

import os
from typing import Final

from tests.probe.breakages import BREAKAGES
from tests.probe.broken_server import KEY, MODEL, Breakage, server
from tests.tiers import rows
from wireglot.probe.endpoint import EndpointRequest, Got, root_of
from wireglot.probe.run import WIRES, cases_for, run_cases
from wireglot.probe.talk import ProbeLedger
from wireglot.testing.scripted_upstream.behaviour import Recorded

WHOLE: Final = bool(os.environ.get("WIREGLOT_WHOLE"))  # `make full`
A, C, R, G = "anthropic", "openai-chat", "openai-responses", "gemini"
O, I = "ollama", "gemini-interactions"  # noqa: E741 - as the others
ALONE: Final = {
    "answers.content-type": (A, C, R, G, O, I),
    "answers.ids-differ": (G, A, C, R),
    "answers.obeys": (C, A, G, O, I),
    "answers.request-id": (R, A, C),
    "streams.content-type": (O, A, C, R, G, I),
    "streams.frames": (G, A, C, R, O, I),
    "streams.opening": (I, R, A, C, G, O),
    "streams.indexes": (I, O),
    "streams.identity": (C, R, G, O, I),
    "streams.text": (O, A, C, R, G, I),
    "streams.pieces": (C, A, O),
    "tools.names": (G, A, C, R, O, I),
    "tools.no-description": (R, A, C, G, O, I),
    "tools.parallel-off": (C, R),
    "tools.no-arguments": (O,),
    "tools.no-arguments-stream": (R, C, G, O),
    "results.several": (A, C, R, G, O, I),
    "results.error": (G, A, C, R, O, I),
    "results.empty": (I, C, A, R, G, O),
    "results.foreign-ids": (R, A, C, G, O, I),
    "results.text-and-call": (O, A, C, R, G, I),
    "stops.which-sequence": (A,),
    "usage.cached": (C, A, R, G, I),
    "usage.reasoning": (R, A, C),
    "usage.output-follows": (O,),
    "reasoning.whole": (A, C, R, G, O, I),
    "reasoning.state": (I, G, A, R),
    "reasoning.absent": (C, A, R, G, O, I),
    "schemas.output-stream": (R, A, C, G, O, I),
    "schemas.unknown-keywords": (O, A, C, R, G, I),
    "texts.system-stream": (C, A, R, O, I),
    "texts.system": (I, O),
    "texts.plain": (I,),
    "fields.unknown": (G, A, C, R, O, I),
    "fields.sampling": (R, A, C, G, O, I),
    "fields.snake-case": (G,),
    "errors.huge-limit": (O, A, C, R, G, I),
    "lists.listed": (C, A, R, G, O, I),
}
"""Cases whose rule can be broken alone, and where. Most others share one with a neighbour: what a stop sequence does
is asked whole and streamed."""
PAIRS: Final = [
    (case, dialect) for case, where in ALONE.items() for dialect in (where if WHOLE else where[:1])
]


class BrokenEndpoint:
    """The broken server without a socket between: a hundred cases take no time."""

    def __init__(self, dialect: str, breakage: Breakage) -> None:
        self._decide = server(dialect, breakage)
        self._root = root_of("http://double", dialect).removeprefix("http://double")
        self._key_header = WIRES[dialect].key_header

    def ask(self, ask: EndpointRequest) -> Got:
        path, _, query = (self._root + ask.path).partition("?")
        key = KEY if ask.key is None else ask.key
        name, before = self._key_header
        headers = dict(ask.headers) | ({name: before + key} if key else {})
        made = self._decide(Recorded(ask.method, path, query, headers, ask.body, 1))
        return Got(made.status, {name.lower(): value for name, value in made.headers}, made.body or b"")


@rows(("case", "dialect"), PAIRS, ids=[f"{case}-{dialect}" for case, dialect in PAIRS], parts=3)
def test_a_server_that_breaks_one_rule_fails_that_case_and_no_other(case: str, dialect: str) -> None:
    cases = [each for each in cases_for(dialect) if each.cost != "large"]
    endpoint = BrokenEndpoint(dialect, BREAKAGES[case][dialect])
    findings = run_cases(cases, endpoint, WIRES[dialect], MODEL, ProbeLedger(), wait=lambda _: None)
    assert {each.id: each.words for each in findings if each.verdict in ("fail", "warn")}.keys() == {case}
