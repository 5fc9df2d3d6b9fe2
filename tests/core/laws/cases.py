"""The material every law runs over: own fixtures, and recorded traffic where it is at hand."""

import os
from collections.abc import Callable, Iterable
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.recordings import recordings
from tests.tiers import WHOLE
from wireglot_core.dialects.registry import NAMES, DialectName, dialect_name, surface
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.wire.json import encode

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures"
RECORDINGS = ROOT.parent / "shared" / "corpus" / "dev"
DEEP = bool(os.environ.get("WIREGLOT_DEEP"))
"""Run over all recordings instead of a sample."""

MAIN: tuple[DialectName, ...] = ("anthropic", "openai-chat", "openai-responses", "gemini")
ONE_TURN = ("gemini-simple", "ollama-generate")
"""Whose requests hold the last turn only."""
MAIN_PAIRS = tuple(permutations(MAIN, 2))


def partners(name: str, whole: bool = WHOLE) -> tuple[DialectName, ...]:
    """The dialects that a law tries this one with, in both directions, where it goes through much: recorded or
    made-up traffic, or cuts fixtures in many ways. In `make full` all the others. In `make test` the main ones
    meet each other, and each further one meets two of them: that of its own family, then those that take turns.
    Where each fixture is translated once, a law tries it with all."""
    if whole:
        return tuple(other for other in NAMES if other != name)
    if name in MAIN:
        further = (other for other in NAMES if other not in MAIN and name in partners(other, whole=False))
        return (*(other for other in MAIN if other != name), *further)
    number = NAMES.index(dialect_name(name))
    family = [other for other in MAIN if surface(other).family == surface(name).family]
    others = [other for other in MAIN if other not in family]
    turns = [others[(number + at) % len(others)] for at in range(len(others))]
    return tuple([*family, *turns][:2])


PAIRS = tuple((source, target) for source in NAMES for target in partners(source))
ALL_PAIRS = tuple(permutations(NAMES, 2))
"""For laws over a few bodies of their own, which take milliseconds."""

every_dialect = pytest.mark.parametrize("name", NAMES)
every_pair = pytest.mark.parametrize(("source", "target"), PAIRS)


def of_kind(kind: str) -> list[Any]:
    """Every own fixture of a kind, as parameters."""
    return [pytest.param(case, id=case.id) for name in NAMES for case in fixtures(FIXTURES, name, kind)]


def crossings(kind: str) -> list[Any]:
    """Every own fixture of a kind, to its own dialect and to the partners of that: parameters `case` and `target`."""
    return [
        pytest.param(case, target, id=f"{case.id}-{target}")
        for name in NAMES
        for case in fixtures(FIXTURES, name, kind)
        for target in (name, *partners(name))
    ]


@cache
def recorded(name: str, kind: str, limit: int = 150) -> tuple[Case, ...]:
    """Recorded requests, responses, streams or errors of a dialect; none where there are no recordings. At every
    change a fifth of those that `make full` reads."""
    cases: list[Case] = []
    family = {"code-assist": "gemini"}.get(name, name).replace("-", "_")
    for file in (f"{family}.unary.jsonl.gz", f"{family}.stream.jsonl.gz"):
        path = RECORDINGS / file
        if not path.exists():
            continue
        for row in recordings(path, None if DEEP or name == "code-assist" else limit):
            wrapped = "code_assist" in row["tags"]
            if wrapped is (name == "code-assist"):
                cases.extend(_case(row, name, kind))
    return tuple(cases if WHOLE or DEEP else cases[::5])


def _case(row: dict[str, Any], name: str, kind: str) -> Iterable[Case]:
    request, response, status = row["request"], row["response"], row["status"]
    if any(other in row["endpoint"] for other in ("count_tokens", "compact")):
        return
    if kind == "requests":
        if isinstance(request, dict) and status < 400:  # the refused ones are not all well formed
            yield Case(row["id"], name, body=request)
    elif kind == "errors":
        if status >= 400:
            yield Case(row["id"], name, body=response, status=status, request=request)
    elif status >= 400 or isinstance(response, dict) is row["streaming"]:
        return
    elif kind == "responses":
        if isinstance(response, dict):
            yield Case(row["id"], name, body=response, request=request)
    elif kind == "streams":
        if isinstance(response, str):
            yield Case(row["id"], name, data=response.encode(), request=request)
        elif isinstance(response, list) and name == "gemini":
            yield Case(row["id"], name, data=encode(response), request=request)


def all_hold(cases: Iterable[Case], law: Callable[[Case], object]) -> None:
    """Try a law on many cases and report all that break it, not just the first."""
    broken: list[str] = []
    for case in cases:
        try:
            law(case)
        except Exception as problem:
            broken.append(f"{case.id}: {type(problem).__name__}: {str(problem)[:400]}")
    assert not broken, f"{len(broken)} broken:\n" + "\n".join(broken)
