"""Tests that go through a table: no row is left out, and each that fails is named."""

import os
import sys

import pytest

from tests.tiers import rows

PAIRS = [pytest.param(1, 1, id="alike"), pytest.param(1, 2, id="unlike"), (3, 4)]


def failure(test, **fixtures):
    with pytest.raises(pytest.fail.Exception) as failed:
        test(**fixtures)
    return str(failed.value)


def test_every_row_that_fails_is_named_with_what_it_raised():
    seen = []

    @rows("name", ["a", "b"])
    @rows(("left", "right"), PAIRS)
    def alike(name, left, right):
        seen.append((name, left, right))
        assert left == right

    said = failure(alike)
    assert seen == [(name, *pair) for name in "ab" for pair in ((1, 1), (1, 2), (3, 4))]
    assert "4 of 6 rows fail" in said
    for row in ("a-unlike", "a-3-4", "b-unlike", "b-3-4"):
        assert f"--- {row}\n" in said
    assert "assert 3 == 4" in said
    assert "-alike" not in said


def test_a_table_is_made_when_it_is_needed_and_has_rows():
    @rows("number", list)
    def nothing(number):
        raise NotImplementedError

    with pytest.raises(AssertionError, match="without rows"):
        nothing()


def test_rows_are_skipped_one_by_one():
    @rows("number", [1, 2])
    def odd(number):
        if number % 2:
            pytest.skip("odd")
        raise ValueError

    assert "1 of 2 rows fail:\n  2: ValueError" in failure(odd)


def test_a_row_leaves_nothing_to_the_next(tmp_path, monkeypatch, capsys):
    @rows("number", range(3))
    def clean(number, tmp_path, monkeypatch, capsys):
        assert "A_ROW" not in os.environ
        assert not list(tmp_path.iterdir())
        assert not capsys.readouterr().out
        monkeypatch.setenv("A_ROW", "1")
        (tmp_path / "file").touch()
        sys.stdout.write(str(number))

    clean(tmp_path=tmp_path, monkeypatch=monkeypatch, capsys=capsys)


def test_of_the_rows_some_of_each_kind_are_taken(monkeypatch):
    seen = []

    @pytest.mark.sampled("kind", each=2)
    @rows("kind", ["a", "b"])
    @rows("number", range(9))
    def some(kind, number):
        seen.append((kind, number))

    monkeypatch.setattr("tests.tiers.WHOLE", False)
    some()
    assert [kind for kind, _ in seen] == ["a", "a", "b", "b"]
    assert len(set(seen)) == 4
    monkeypatch.setattr("tests.tiers.WHOLE", True)
    seen.clear()
    some()
    assert len(set(seen)) == 18


def test_the_parts_of_a_table_are_all_of_it():
    seen = []

    @rows("number", range(7), parts=3)
    def some(number):
        seen.append(number)

    assert [mark.args for mark in vars(some)["pytestmark"]] == [("rows_from", range(3))]
    for part in range(3):
        some(rows_from=part)
    assert sorted(seen) == list(range(7))
