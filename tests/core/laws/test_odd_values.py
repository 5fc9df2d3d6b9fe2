"""Pinned: what becomes of a value of the wrong kind, or of none, at every place of every fixture.

Most come back as they came, to the same dialect, and nothing is lost: only what does not is written down. A
reader that refuses names the field. `WIREGLOT_UPDATE=1 pytest tests/core/laws/test_odd_values.py` writes again.
"""

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.core.laws.cases import FIXTURES, of_kind
from tests.core.laws.test_pair_goldens import UPDATE
from tests.core.laws.wires import same_spelling
from tests.tiers import rows
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.registry import NAMES, dialect
from wireglot_core.ir.errors import WireglotError
from wireglot_core.testing.check_dialect import Case, fixtures
from wireglot_core.testing.laws import differences
from wireglot_core.wire.json import decode, encode

GOLDENS = FIXTURES / "odd"
CONTEXT = Context(now=1700000001)
ODD: tuple[Any, ...] = (None, 7, "odd", "", [], {})
OPAQUE = frozenset({"input_schema", "parameters", "schema", "parametersJsonSchema", "responseSchema"})
"""Below these the client's own words begin."""

_NUMBER = re.compile(r"\[\d+\]")
_GOT = re.compile(r", (got|but) .*")

Way = Callable[[Any], Rendered[dict[str, Any]]]


def places(value: Any, path: str = "$") -> Iterator[tuple[str, Any, Any]]:
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        where = f"{path}.{key}" if isinstance(value, dict) else f"{path}[{key}]"
        yield where, value, key
        if key not in OPAQUE:
            yield from places(value[key], where)


def different(body: Any) -> Iterator[tuple[str, Any, Any]]:
    """One place of each sort: the second message of a role is read as the first is."""
    seen: set[tuple[object, ...]] = set()
    for where, holder, key in places(body):
        kinds = [str(holder.get(name)) for name in ("type", "role")] if isinstance(holder, dict) else []
        sort = (_NUMBER.sub("[]", where), *kinds)
        if sort not in seen:
            seen.add(sort)
            yield where, holder, key


def outcome(name: str, body: Any, where: str, way: Way) -> str:
    text = encode(body)
    try:
        rendered = way(decode(text))
    except WireglotError as refused:
        message = _GOT.sub("", refused.message)
        return f"refused, {message}" if refused.path == where else f"refused at {refused.path}, {message}"
    found = differences(same_spelling(name, body), same_spelling(name, rendered.value))
    reported = [f"{loss.path} {loss.feature} {loss.action}" for loss in rendered.losses]
    return "; ".join([*sorted(str(each) for each in found), *reported])


def odd_outcomes(name: str, body: Any, way: Way) -> Iterator[str]:
    body = deepcopy(body)
    for where, holder, key in list(different(body)):
        was = holder[key]
        by_outcome: dict[str, list[str]] = {}
        for odd in ODD:
            if type(odd) is not type(was) or (not odd and was):
                holder[key] = odd
                by_outcome.setdefault(outcome(name, body, where, way), []).append(json.dumps(odd))
        holder[key] = was
        if isinstance(holder, dict):
            order = list(holder.items())
            del holder[key]
            by_outcome.setdefault(outcome(name, body, where, way), []).append("nothing")
            holder.clear()
            holder.update(order)
        for reported, values in by_outcome.items():
            if reported:
                yield f"{where} = {', '.join(values)}: {reported}"


def pinned(case: Case, way: Way) -> None:
    lines = list(odd_outcomes(case.dialect, case.body, way))
    path = GOLDENS / case.id
    path = path.with_name(f"{path.name}.txt")
    text = "\n".join([*lines, ""])
    if UPDATE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.sampled("case.dialect", each=2)
@rows("case", of_kind("requests"))
def test_an_odd_value_in_a_request_comes_back_or_is_reported(case):
    spoken = dialect(case.dialect)
    pinned(case, lambda body: spoken.render_request(spoken.parse_request(body, CONTEXT), CONTEXT))


@pytest.mark.sampled("case.dialect", each=3)
@rows("case", of_kind("responses"))
def test_an_odd_value_in_an_answer_comes_back_or_is_reported(case):
    spoken = dialect(case.dialect)
    pinned(case, lambda body: spoken.render_response(spoken.parse_response(body, CONTEXT), CONTEXT, None))


def test_nothing_is_pinned_that_is_not_tried():
    kinds = ("requests", "responses")
    cases = {f"{case.id}.txt" for name in NAMES for kind in kinds for case in fixtures(FIXTURES, name, kind)}
    assert {path.relative_to(GOLDENS).as_posix() for path in GOLDENS.rglob("*.*")} == cases
