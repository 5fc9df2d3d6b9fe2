"""Where the arguments of a streamed call stand (requirements AJ): what joins to one object passes, the rest fails."""

from __future__ import annotations

import json
import re
from typing import Final

from tests.probe.breakages import frames, sent
from tests.probe.broken_server import MODEL
from tests.probe.test_exact_breakages import BrokenEndpoint
from tests.tiers import rows
from wireglot.probe.run import CASES, WIRES, run_cases
from wireglot.probe.talk import ProbeLedger

CITY: Final = '{"city":"Paris"}'
SHAPES: Final = {
    "in the start alone": (CITY, (), "pass"),
    "in deltas alone": ("{}", ('{"city"', ':"Paris"}'), "pass"),
    "in one delta": ("{}", (CITY,), "pass"),
    "null, then in deltas": ("null", (CITY,), "fail"),
    "in both": (CITY, (CITY,), "fail"),
    "in the start, and goes on": ('{"city":"Pa"}', ('ris"}',), "fail"),
    "in deltas that are cut": ("{}", ('{"city"',), "fail"),
    "in deltas, twice": ("{}", (CITY, CITY), "fail"),
    "not an object": ("{}", ('["Paris"]',), "fail"),
}


def shaped(begun: str, deltas: tuple[str, ...]) -> list[str]:
    """The frames of one call between its start and its stop."""
    pieces = [
        json.dumps(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
        )
        for piece in deltas
    ]
    return [begun, *(f"event: content_block_delta\ndata: {piece}" for piece in pieces)]


@rows("shape", SHAPES)
def test_arguments_pass_in_the_shapes_that_clients_can_join(shape: str) -> None:
    begun, deltas, verdict = SHAPES[shape]

    def rewritten(found: list[str]) -> list[str]:
        out: list[str] = []
        for frame in found:
            if "input_json_delta" in frame:
                continue
            if '"tool_use"' in frame and "content_block_start" in frame:
                out += shaped(re.sub(r'"input":\{\}', f'"input":{begun}', frame), deltas)
            else:
                out.append(frame)
        return out

    (case,) = (each for each in CASES if each.id == "streams.call")
    endpoint = BrokenEndpoint("anthropic", sent(frames(rewritten)))
    (finding,) = run_cases([case], endpoint, WIRES["anthropic"], MODEL, ProbeLedger(), wait=lambda _: None)
    assert finding.verdict == verdict, finding.words
