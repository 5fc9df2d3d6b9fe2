"""The vendors' schemas: each document that we write is what its vendor's OpenAPI document says.

The schemas are no part of this project; where `make judges ARGS=schemas` has not installed them, these are skipped.
The judge of the same name goes through recorded traffic, mutated inputs and a running gateway as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest

from proofs.judges.environments import Missing
from proofs.judges.oracle import Kind, Oracle, events, oracle
from proofs.judges.schemas import VENDORS, Written, kind_of, of_fixtures, translated
from tests.core.laws import neutral
from tests.core.laws.cases import MAIN
from tests.core.laws.strange_answers import STRANGE
from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.errors import Unsupported
from wireglot_core.ir.stream import check
from wireglot_core.testing.check_dialect import Case
from wireglot_core.translate import plan
from wireglot_core.wire.json import decode

CONTEXT = Context(model="m", now=1700000001)
MODELS = {
    "anthropic": "claude-sonnet-5",
    "openai-chat": "gpt-5.5",
    "openai-responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
}
MADE_UP = re.compile(r"annotation|citation")
"""Citations that the material says are the vendor's own, and that go back as they came."""


@pytest.fixture(scope="module")
def vendors() -> Oracle:
    try:
        return oracle()
    except Missing as reason:
        pytest.skip(str(reason))


def hold(vendors: Oracle, documents: Iterable[Written], but: re.Pattern[str] | None = None) -> None:
    """Every document is as its vendor says, `but` for some problems; all that are not are named."""
    broken: dict[str, str] = {}
    count = 0
    for written in documents:
        count += 1
        for problem in vendors.problems(written.dialect, written.kind, written.document):
            if but is not None and but.search(problem.text):
                continue
            broken.setdefault(problem.name, f"{problem.name} ({written.origin}): {problem.detail}")
    assert not broken, "\n".join(broken.values())
    assert count


def test_what_the_fixtures_become(vendors: Oracle) -> None:
    hold(vendors, of_fixtures())


@rows("target", MAIN)
def test_everything_the_neutral_form_can_say(vendors: Oracle, target: DialectName) -> None:
    hold(vendors, said_in(target), MADE_UP)


def said_in(target: DialectName) -> Iterator[Written]:
    codec = dialect(target)
    for title, request in neutral.requests(neutral.ELSEWHERE):
        try:
            planned = plan(
                request,
                source=None,
                target=target,
                model=MODELS[target],
                provider=VENDORS[target],
                context=CONTEXT,
            )
            yield Written(
                title, target, "request", codec.render_request(planned.upstream, planned.context).value
            )
        except Unsupported:
            continue
    for title, answer in neutral.answers(neutral.ELSEWHERE):
        body = codec.render_response(answer, CONTEXT, neutral.ASKED).value
        yield Written(title, target, kind_of(target, body), body)
    for title, told in neutral.streams(neutral.ELSEWHERE):
        writer = codec.stream_writer(CONTEXT, neutral.ASKED)
        for event in events(b"".join(writer.write([event]) for event in check(told))):
            yield Written(title, target, "event", event)
    for error in neutral.errors():
        yield Written(error.kind, target, "error", codec.render_error(error, CONTEXT).value)


@rows("target", MAIN)
def test_what_strange_answers_become(vendors: Oracle, target: DialectName) -> None:
    hold(vendors, told_of_strange(target))


def told_of_strange(target: DialectName) -> Iterator[Written]:
    for source in MAIN:
        for strange in STRANGE[source] if source != target else ():
            whole = Case(f"{source} {strange.name}", source, body=decode(strange.whole))
            yield from translated(whole, "responses", target)
            yield from translated(Case(whole.id, source, data=strange.stream), "streams", target)


@rows(
    ("name", "kind", "document", "problem"),
    [
        ("anthropic", "answer", {"type": "message"}, "anthropic answer $: content is missing"),
        ("openai-chat", "error", {"error": {"message": "x", "code": None, "param": None, "type": 1}},
         "openai-chat error error.type: type: int"),
        ("openai-responses", "event", {"type": "response.output_text.delta", "delta": "x"},
         "openai-responses event response.output_text.delta $: item_id is missing"),
        ("openai-responses", "request", {"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "f"}]},
         "openai-responses request input[]: arguments is missing"),
        ("gemini", "request", {"contents": [{"parts": [{"txt": "x"}]}]}, "gemini request contents[].parts[]: unknown txt"),
        ("gemini", "answer", {"candidates": [{"finishReason": "stop"}]}, 'gemini answer candidates[].finishReason: enum: "stop"'),
    ],
)  # fmt: skip
def test_the_oracle_names_what_is_wrong_by_its_place(
    vendors: Oracle, name: str, kind: Kind, document: object, problem: str
) -> None:
    assert problem in [found.name for found in vendors.problems(name, kind, document)]
