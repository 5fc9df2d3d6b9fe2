"""The table of requirements: what it finds, what it refuses, and that nothing asked for was forgotten."""

import pytest

from tests.tiers import rows
from tools import requirements_table
from tools.requirements_table import Group, Requirement, asked, citations, cited, groups, held, problems

HELD = {"R-A-01": ["tests/test_x.py::test_a"]}
ASKED = {"R-A-01": "All of it"}


def stated(*entries: Requirement) -> tuple[Group, ...]:
    return (Group("A", "Some", entries),)


def test_every_requirement_has_a_test_or_a_reason():
    assert list(problems(groups(), held(), asked())) == []


def test_no_requirement_was_taken_out():
    """Their number is that of what was asked for; one that no longer holds gets a reason and stays."""
    *asked, corrections = groups()
    assert sum(len(group.requirements) for group in asked) == 535
    assert len(corrections.requirements) == 50


@rows(
    ("text", "ids"),
    [
        ("R-B-07: every block", ["R-B-07"]),
        ("R-AJ-01..03, C14", ["R-AJ-01", "R-AJ-02", "R-AJ-03", "C14"]),
        ("R-AD-14 to R-AD-15", ["R-AD-14", "R-AD-15"]),
        ("R-AD-14 to R-AE-15", ["R-AD-14", "R-AE-15"]),
        ("PAINS A5, FAULTS 12, C, C0 controls, ABC12, R-A-1", []),
    ],
)
def test_ids_are_found_in_words(text, ids):
    assert list(cited(text)) == ids


def test_a_mention_belongs_to_the_test_around_it():
    source = (
        '"""Group A. R-A-01"""\n'
        'X = "R-A-09"\n'
        "@mark(  # R-A-02\n"
        ")\n"
        "def test_one():\n"
        '    """R-A-03"""\n'
        '    assert "R-A-09"  # R-A-04\n'
        "\n"
        "async def test_two():\n"
        '    """R-A-05"""\n'
    )
    assert sorted(citations(source)) == [
        ("R-A-01", ""),
        ("R-A-02", "test_one"),
        ("R-A-03", "test_one"),
        ("R-A-04", "test_one"),
        ("R-A-05", "test_two"),
    ]


def test_only_tests_hold_anything(tmp_path):
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    (tmp_path / "tests" / "kit.py").write_text('"""R-A-01"""\n')
    (tmp_path / "tests" / "deep" / "test_x.py").write_text(
        '"""R-A-02, R-A-03"""\ndef test_a():\n    """R-A-03, R-A-03"""\n'
    )
    assert held(tmp_path / "tests") == {
        "R-A-02": ["tests/deep/test_x.py"],
        "R-A-03": ["tests/deep/test_x.py::test_a"],
    }


@rows(
    ("entry", "reported"),
    [
        (Requirement("R-A-01", "x"), "no test names it"),
        (Requirement("R-A-01", "", reason="y"), "a statement has"),
        (Requirement("R-A-01", "x" * 101, reason="y"), "a statement has"),
        (Requirement("R-A-01", "x", correction="C99"), "no such correction"),
        (Requirement("R-A-01", "x", decision="docs/decisions/0000-none.md"), "no such decision"),
        (Requirement("R-A-02", "x", reason="y"), "R-A-01 is expected"),
    ],
)
def test_what_is_wrong_with_a_statement_is_reported(entry, reported):
    (problem,) = problems(stated(entry), {}, {entry.id: "All of it"})
    assert reported in problem


def test_a_reason_beside_a_test_is_reported():
    (problem,) = problems(stated(Requirement("R-A-01", "x", reason="not yet")), HELD, ASKED)
    assert "there is one" in problem


def test_a_statement_stands_beside_the_sentence_that_was_asked_for():
    """[D] A statement in our words may not replace the original."""
    (problem,) = problems(stated(Requirement("R-A-01", "x")), HELD, {})
    assert problem == "R-A-01: stands in only one of asked.toml and statements.toml"


def test_less_than_was_asked_for_is_reported_with_its_reason(monkeypatch):
    """[D]"""
    entry = Requirement("R-A-01", "Some of it", weaker="the rest has no place | yet")
    monkeypatch.setattr(requirements_table, "groups", lambda: stated(entry))
    monkeypatch.setattr(requirements_table, "held", lambda: HELD)
    monkeypatch.setattr(requirements_table, "asked", lambda: {"R-A-01": "All | of it"})
    (page,) = requirements_table.page()
    (item,) = [line for line in page.splitlines() if line.startswith("- `R-A-01`")]
    assert item.startswith("- `R-A-01` Some of it: [`test_a`](../../tests/test_x.py)")
    assert "“All | of it”: the rest has no place" in item


def test_a_test_that_names_no_requirement_is_reported():
    (problem,) = problems(stated(Requirement("R-A-01", "x")), {**HELD, "R-A-02": ["tests/test_x.py"]}, ASKED)
    assert problem == "R-A-02: no such requirement, cited by tests/test_x.py"


@pytest.mark.parametrize(
    "entry",
    [
        Requirement("R-A-01", "x", reason="later"),
        Requirement("R-A-01", "x", decision="docs/decisions/0003-call-ids.md"),
    ],
)
def test_what_is_not_tested_may_have_a_reason(entry):
    assert list(problems(stated(entry), {}, ASKED)) == []


def test_an_unknown_field_is_reported(tmp_path):
    file = tmp_path / "statements.toml"
    file.write_text('[A]\ntitle = "t"\nR-A-01 = { says = "x", reasn = "y" }\n')
    with pytest.raises(requirements_table.Forgotten, match="reasn"):
        groups(file)


def test_the_page_is_not_written_while_something_is_missing(monkeypatch):
    monkeypatch.setattr(requirements_table, "held", dict)
    with pytest.raises(requirements_table.Forgotten, match="R-A-01: no test names it"):
        requirements_table.page()
