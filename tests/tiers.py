"""What runs at every change and what only in `make full`: there every combination, here some of each kind; and tests
that go through a table.

    @pytest.mark.sampled("case.dialect", "target", each=2)

Of all the parameters' combinations two run for each dialect with each target, the same each time.

    @pytest.mark.whole

It takes long, and runs in `make full` alone. WIREGLOT_WHOLE=1 runs all of them; so does naming a combination by its
id.

    @rows("case", CASES)

One test goes through all rows and reports each that fails; WIREGLOT_ROW=text takes those whose name has it. Several
tables are combined, and `sampled` takes some of the combinations. Parameters are as those of
`pytest.mark.parametrize`, or a function that makes the table when it is needed; what takes long is divided into
`parts`, that workers share. Each row has a `tmp_path`, a
`monkeypatch` and a `capsys` of its own; other fixtures are shared by all.
"""

from __future__ import annotations

import inspect
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial, wraps
from itertools import product
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")
_PARAM: Final = type(pytest.param())

WHOLE: Final = bool(os.environ.get("WIREGLOT_WHOLE"))

MARKERS: Final = (
    "sampled(*names, each=1): so many for each combination of these parameters, and all in `make full`",
    "whole: only in `make full`",
)


_SHOWN: Final = 10
"""So many failures with their traceback; of the others the name and what was raised."""


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Those which only `make full` runs."""
    by_test: dict[object, list[pytest.Function]] = defaultdict(list)
    without = set[pytest.Item]()
    for item in items:
        if item.get_closest_marker("whole"):
            without.add(item)
        elif hasattr(item, "callspec") and item.get_closest_marker("sampled"):
            assert isinstance(item, pytest.Function)
            if not hasattr(item.obj, "tables"):  # which samples its rows
                by_test[item.parent, item.originalname].append(item)
    return without.union(*(set(group) - set(_sampled_items(group)) for group in by_test.values()))


def _sampled_items(items: list[pytest.Function]) -> Iterable[pytest.Function]:
    marker = items[0].get_closest_marker("sampled")
    assert marker is not None
    # Without names all are of one kind, and tests beside each other are to take others.
    start = 0 if marker.args else crc32(items[0].name.partition("[")[0].encode())
    return _sample(marker, items, lambda item: item.callspec.params, start)


def _sample(
    marker: pytest.Mark, of: Sequence[T], parameters: Callable[[T], Mapping[str, Any]], start: int = 0
) -> Iterator[T]:
    each: int = marker.kwargs.get("each", 1)
    kinds: dict[tuple[str, ...], list[T]] = defaultdict(list)
    for one in of:
        kinds[tuple(_value(parameters(one), name) for name in marker.args)].append(one)
    for number, alike in enumerate(kinds.values(), start):
        # Each kind begins elsewhere: parameters that are not named take turns.
        taken = min(each, len(alike))
        for at in range(taken):
            yield alike[(number + at * len(alike) // taken) % len(alike)]


def _value(parameters: Mapping[str, Any], name: str) -> str:
    parameter, _, attribute = name.partition(".")
    value = parameters[parameter]
    return str(attrgetter(attribute)(value) if attribute else value)


class Row(NamedTuple):
    name: str
    values: dict[str, Any]


def rows(
    names: str | Sequence[str],
    table: Iterable[Any] | Callable[[], Iterable[Any]],
    *,
    ids: Callable[[Any], object] | Iterable[object] | None = None,
    parts: int = 1,
) -> Callable[[Callable[..., object]], Callable[..., None]]:
    """A test that goes through the rows of a table, and reports all that fail."""
    columns = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else tuple(names)

    def decorate(test: Callable[..., object]) -> Callable[..., None]:
        row: Callable[..., object] = getattr(test, "row", test)
        assert not inspect.iscoroutinefunction(row), "what a row does must be over when it returns"
        tables = [(columns, table, ids), *getattr(test, "tables", ())]

        @wraps(test)
        def whole(*args: Any, rows_from: int = 0, **fixtures: Any) -> None:
            chosen = _chosen(whole, tables, fixtures)[rows_from::parts]
            _go_through(chosen, partial(row, *args), fixtures)

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in columns]
        if parts > 1:
            kept.append(inspect.Parameter("rows_from", inspect.Parameter.KEYWORD_ONLY))
        whole.__dict__.update(row=row, tables=tables, __signature__=signature.replace(parameters=kept))
        return pytest.mark.parametrize("rows_from", range(parts))(whole) if parts > 1 else whole

    return decorate


def _chosen(whole: Callable[..., None], tables: list[Any], fixtures: Mapping[str, Any]) -> list[Row]:
    combined = [
        Row("-".join(row.name for row in several), {k: v for row in several for k, v in row.values.items()})
        for several in product(*(_named(*table) for table in tables))
    ]
    assert combined, "a table without rows"
    if wanted := os.environ.get("WIREGLOT_ROW"):
        return [row for row in combined if wanted in row.name]
    marks: list[pytest.Mark] = getattr(whole, "pytestmark", [])
    marker = next((mark for mark in marks if mark.name == "sampled"), None)
    if WHOLE or marker is None:
        return combined
    return list(_sample(marker, combined, lambda row: {**fixtures, **row.values}))


def _named(columns: tuple[str, ...], table: Any, ids: Any) -> Iterator[Row]:
    given = list(table() if callable(table) else table)
    named = list(ids) if ids is not None and not callable(ids) else [None] * len(given)
    for number, (one, name) in enumerate(zip(given, named, strict=True)):
        values: tuple[Any, ...] = (one,) if len(columns) == 1 else one
        if isinstance(one, _PARAM):
            assert not one.marks, "rows have no marks"
            values, name = tuple(one.values), name if one.id is None else one.id
        if name is None:
            said = zip(columns, values, strict=True)
            name = "-".join(_word(ids(value) if ids else value, f"{key}{number}") for key, value in said)
        yield Row(str(name), dict(zip(columns, values, strict=True)))


def _word(value: object, otherwise: str) -> str:
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return str(value)
    return str(getattr(value, "__name__", otherwise))


def _go_through(chosen: Sequence[Row], check: Callable[..., object], fixtures: Mapping[str, Any]) -> None:
    __tracebackhide__ = True
    failed: list[tuple[str, BaseException]] = []
    skipped: list[str] = []
    for number, row in enumerate(chosen):
        try:
            with pytest.MonkeyPatch.context() as monkeypatch:
                check(**_own(fixtures, monkeypatch, number), **row.values)
        except pytest.skip.Exception as reason:
            skipped.append(f"{row.name}: {reason}")
        except (Exception, pytest.fail.Exception) as problem:
            failed.append((row.name, problem))
    if failed:
        pytest.fail(_report(failed, len(chosen)), pytrace=False)
    if len(skipped) == len(chosen):
        pytest.skip("; ".join(skipped) or "no row of that name")


def _own(fixtures: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch, number: int) -> dict[str, Any]:
    """What of the fixtures no row shares with another."""
    own = dict(fixtures)
    if "monkeypatch" in own:
        own["monkeypatch"] = monkeypatch
    if "tmp_path" in own:
        own["tmp_path"] /= str(number)
        own["tmp_path"].mkdir()
    if "capsys" in own:
        own["capsys"].readouterr()
    return own


def _report(failed: Sequence[tuple[str, BaseException]], of: int) -> str:
    lines = [f"{len(failed)} of {of} rows fail:"]
    lines += [f"  {name}: {type(problem).__name__}: {_first_line(problem)}" for name, problem in failed]
    for name, problem in failed[:_SHOWN]:
        shown = pytest.ExceptionInfo.from_exception(problem).getrepr(style="short")
        lines += ["", f"--- {name}", str(shown)]
    return "\n".join(lines)


def _first_line(problem: BaseException) -> str:
    return (str(problem).splitlines() or [""])[0][:200]
