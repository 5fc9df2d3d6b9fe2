"""The small changes that can be made to a file."""

import ast

import pytest

from proofs.mutants.changes import changes


def made(text: str) -> list[str]:
    return [change.of(text) for change in changes(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f(a == b)", ["pass", "f((a != b))"]),
        ("f(a < 3)", ["pass", "f((a <= 3))", "f(a < 4)"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = not a", ["x = (a)"]),
        ("x = a - b", ["x = (a + b)"]),
        ("x = a if b else c", ["x = (c if b else a)"]),
        ("x = True", ["x = False"]),
        ("x = 'é' == 'b'", ["x = ('é' != 'b')", "x = 'éx' == 'b'", "x = 'é' == 'bx'"]),
        ("def f():\n    return g", ["def f():\n    return None"]),
    ],
)
def test_each_place_is_changed_alone(text: str, wanted: list[str]) -> None:
    assert made(text) == wanted
    for changed in wanted:
        ast.parse(changed)


@pytest.mark.parametrize(
    "text",
    [
        "import a",
        "assert a == 1",
        "raise Fault('x', 1)",
        "'''A sentence.'''",
        "log.warning('x', 1)",
        "f = cast('int', x)",
        "x = 'the request is too large'",
        "x = 'Requests answered.'",
        "if TYPE_CHECKING:\n    x = 1",
    ],
)
def test_what_is_for_people_or_type_checkers_stays(text: str) -> None:
    assert made(text) == []


@pytest.mark.parametrize(
    "text",
    ["DELETE FROM rows WHERE id = ?", "data: ", "x-api-key", "text/html; charset=utf-8", "<b>an old tag</b>"],
)
def test_what_a_program_reads_is_changed(text: str) -> None:
    assert made(f"x = {text!r}") == [f"x = {text + 'x'!r}"]
