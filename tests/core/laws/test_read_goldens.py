"""Pinned readings: every fixture in the neutral form, and where a client would find each thing of it.

What a reader takes for what shows in other dialects only as far as they can say it; here it shows whole.
`WIREGLOT_UPDATE=1 pytest tests/core/laws/test_read_goldens.py` writes the files again.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from tests.core.laws.cases import FIXTURES, of_kind
from tests.core.laws.test_pair_goldens import UPDATE, by_field
from tests.tiers import rows
from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.places import Places, RequestPlaces, answer_located
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.testing.laws import read_stream

GOLDENS = FIXTURES / "read"
CONTEXT = Context(provider="p", now=1700000001)


def pinned(case: Case, lines: list[str]) -> None:
    path = golden(case)
    text = "\n".join([*lines, ""])
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def golden(case: Case) -> Path:
    path = GOLDENS / case.id
    return path.with_name(f"{path.name}.txt")


def neutral(value: object) -> list[str]:
    return by_field(msgspec.json.decode(msgspec.json.encode(value)))


@cache
def settings() -> tuple[str, ...]:
    """Whatever any dialect has a place for in its `PLACES`."""
    known = {name: None for each in NAMES for name in (dialect(each).places or Places()).settings}
    return tuple(sorted(known))


@cache
def inner() -> tuple[str, ...]:
    known = {name: None for each in NAMES for name in (dialect(each).places or Places()).fields}
    return tuple(sorted(known))


def places_of(spoken: Dialect, body: dict[str, object], request: Request) -> Iterator[str]:
    if spoken.places is None:
        return
    places = RequestPlaces(spoken.places, body, request)

    def found(path: str) -> str:
        (loss,) = places.located([Loss(path, "metadata", "dropped")])
        return loss.path

    for name in settings():
        if (path := found(f"$.{name}")) != "$":
            yield f"{name} at {path}"
    things = [f"tools[{number}]" for number in range(len(request.tools))]
    for number, message in enumerate(request.messages):
        things.append(f"messages[{number}]")
        things += [f"messages[{number}].content[{at}]" for at in range(len(message.content))]
    for thing in things:
        whole = found(f"$.{thing}")
        parts = {name: found(f"$.{thing}.{name}") for name in inner()}
        own = [f"{name} {path.removeprefix(whole)}" for name, path in parts.items() if path != whole]
        yield f"{thing} at {whole}: {', '.join(own)}".removesuffix(": ")


def answer_places_of(spoken: Dialect, body: dict[str, object], answer: Response) -> Iterator[str]:
    parts = [f"content[{number}]" for number in range(len(answer.content))]
    for thing in ("stop", "stop.sequence", "usage", "usage.detail", "service_tier", "others[0]", *parts):
        loss = Loss(f"$.{thing}", "unknown_field", "dropped")
        (whole,) = answer_located(spoken.places, [loss], body, answer.content)
        (streamed,) = answer_located(spoken.places, [loss])
        yield f"{thing} at {whole.path}, of a stream at {streamed.path}"


@rows("case", of_kind("requests"))
def test_a_request_is_read_like_this(case):
    spoken = dialect(case.dialect)
    request = spoken.parse_request(case.body, CONTEXT)
    pinned(case, [*neutral(request), "", *places_of(spoken, case.body, request)])


@rows("case", of_kind("responses"))
def test_an_answer_is_read_like_this(case):
    spoken = dialect(case.dialect)
    answer = spoken.parse_response(case.body, CONTEXT)
    pinned(case, [*neutral(answer), "", *answer_places_of(spoken, case.body, answer)])


@rows("case", of_kind("errors"))
def test_an_error_is_read_like_this(case):
    pinned(case, neutral(dialect(case.dialect).parse_error(case.body, case.status)))


@rows("case", of_kind("streams"))
def test_a_stream_is_read_like_this(case):
    events = read_stream(dialect(case.dialect), [case.data], CONTEXT)
    pinned(case, [json.dumps(msgspec.to_builtins(event), ensure_ascii=False) for event in events])


def test_nothing_is_pinned_that_is_not_read():
    kinds = ("requests", "responses", "errors", "streams")
    cases = {golden(case) for name in NAMES for kind in kinds for case in fixtures(FIXTURES, name, kind)}
    assert set(GOLDENS.rglob("*.*")) == cases
