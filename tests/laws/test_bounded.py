"""Bounded work: what meets text of a client, a provider, a page or a file is linear in it. See `bounded.py`."""

from pathlib import Path

import pytest

from proofs.guard.callgrind import find_valgrind
from tests.laws import bounded, bounded_areas, bounded_refused
from tests.laws.bounded import Row
from tests.laws.bounded_areas import refused_by_instructions, refused_by_lines_and_bytes
from tests.laws.entry_points import entry_points

AREAS = sorted(path.stem for path in Path(__file__).with_name("bounded_rows").glob("*.py"))

needs_valgrind = pytest.mark.skipif(find_valgrind() is None, reason="valgrind is not installed")


def told(refused: dict[str, str]) -> str:
    return "\n".join(f"{name}: {why}" for name, why in refused.items())


def test_each_entry_point_has_a_row_whose_input_grows() -> None:
    covering = [row for area in AREAS for row in bounded.rows_of(area) if row.entry]
    assert {row.entry for row in covering} == entry_points()
    for row in covering:
        small, large = (bounded.size_of(row.make(n)) for n in (row.n, bounded.GROWTH * row.n))
        assert large > bounded.GROWTH / 2 * small, row.name


@pytest.mark.parametrize("area", AREAS)
def test_the_lines_and_the_memory_of_each_row_grow_with_its_input(area: str) -> None:
    refused = refused_by_lines_and_bytes(area)
    assert not refused, told(refused)


@pytest.mark.whole
@needs_valgrind
@pytest.mark.parametrize("area", AREAS)
def test_the_instructions_of_each_row_grow_with_its_input(area: str) -> None:
    refused = refused_by_instructions(area)
    assert not refused, told(refused)


def test_the_law_refuses_quadratic_and_exponential_work_and_memory_that_an_input_names() -> None:
    refused = refused_by_lines_and_bytes(f"{bounded_refused.__name__}:SEEN_BY_ANY")
    assert set(refused) == {row.name for row in (*bounded_refused.LINES, *bounded_refused.MEMORY)}, told(
        refused
    )


@needs_valgrind
def test_the_law_refuses_work_in_c_that_no_line_shows() -> None:
    refused = refused_by_instructions(f"{bounded_refused.__name__}:SEEN_IN_C")
    assert set(refused) == {row.name for row in bounded_refused.IN_C}, told(refused)


def test_a_row_that_does_not_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_areas, "HUNG_SECONDS", 0)
    refused = refused_by_lines_and_bytes(f"{bounded_refused.__name__}:ADMITTED")
    assert refused == {row.name: "did not end" for row in bounded_refused.ADMITTED}


def test_an_error_of_ours_is_an_answer_and_another_is_not() -> None:
    def refuse(text: str) -> None:
        raise KeyError(text)

    row = Row("refuses", str, refuse, refuses=(KeyError,))
    assert bounded.too_many_lines(row) == ""
    with pytest.raises(KeyError):
        bounded.too_many_lines(Row("raises", str, refuse))
