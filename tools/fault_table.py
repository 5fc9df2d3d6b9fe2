"""Write docs/reference/faults.md: what can go wrong, and the tests that hold the gateway to its answer.

Tests name the rows they cover in their docstrings (`FAULTS 68, 69`); 1 and 2 there are the two sections on
the form of errors. With --check nothing is written: a page out of date or a row without test is a failure.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wireglot.gateway.errors import ErrorClass, RequestError, refusal
from wireglot_core.wire.json import decode

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"

_NAMED = re.compile(r"FAULTS ((?:\d+(?:, )?)+)")
_SECTIONS = (1, 2)
_CLASSES: tuple[ErrorClass, ...] = (
    "bad", "auth", "permission", "not_found", "conflict", "too_large", "media", "rate", "shed", "internal",
    "upstream_bad", "upstream_down", "upstream_timeout", "upstream_auth",
)  # fmt: skip

Tests = dict[int, list[tuple[str, str]]]
"""Row -> file (below tests/) and name of each test."""

_TABLE: Final = tomllib.loads((Path(__file__).parent / "fault_rows.toml").read_text("utf-8"))
ROWS: Final[dict[int, tuple[str, str]]] = {int(row): tuple(texts) for row, texts in _TABLE["rows"].items()}
"""What happens, and what the gateway answers."""
REASONS: Final[dict[int, str]] = {int(row): reason for row, reason in _TABLE["reasons"].items()}
ELSEWHERE: Final[Tests] = {
    int(row): [tuple(test.split("::")) for test in tests] for row, tests in _TABLE["tests"].items()
}


def found_tests() -> tuple[Tests, set[tuple[str, str]]]:
    """The rows that docstrings name, and all tests of those files and of the files that the table names."""
    rows: Tests = {}
    known = set()
    pointed_at = {file for tests in ELSEWHERE.values() for file, _ in tests}
    for path in sorted(TESTS.rglob("test_*.py")):
        file = path.relative_to(TESTS).as_posix()
        source = path.read_text(encoding="utf-8")
        if file not in pointed_at and not _NAMED.search(source):
            continue
        for name, text in _tests_of(source):
            known.add((file, name))
            for numbers in _NAMED.findall(text):
                for number in re.findall(r"\d+", numbers):
                    rows.setdefault(int(number), []).append((file, name))
    return rows, known


def _tests_of(source: str) -> Iterator[tuple[str, str]]:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def covered() -> tuple[Tests, Tests, list[str]]:
    """Tests of each row, those of the two sections, and what is wrong with the table itself."""
    rows, known = found_tests()
    problems = []
    sections = {number: rows.pop(number, []) for number in _SECTIONS}
    for number, tests in ELSEWHERE.items():
        for test in tests:
            if test not in known:
                problems.append(f"row {number}: there is no test {test[0]}::{test[1]}")
        rows[number] = [*tests, *rows.get(number, [])]
    for number in ROWS:
        if not rows.get(number) and number not in REASONS:
            problems.append(f"row {number}: neither a test nor a reason")
    for number, tests_of_it in rows.items():
        if number not in ROWS:
            problems.append(f"row {number}: unknown, named by {tests_of_it[0][1]}")
    return rows, sections, problems


def _lines(rows: Tests, sections: Tests) -> Iterator[str]:
    yield from (
        "# Faults",
        "",
        "What can go wrong, what the gateway answers, and the tests that hold it to that.",
        "",
        "## Errors before the stream has begun",
        "",
        "A true HTTP status and a body in the client's own dialect.",
        "",
        "| class | Anthropic | OpenAI | Gemini |",
        "|---|---|---|---|",
        *map(_class_row, _CLASSES),
        "",
        f"Tests: {_links(sections[1])}.",
        "",
        "## Errors after it has begun",
        "",
        "The status is out, so the stream says it: exactly one error, the last thing in it, and never an end",
        "that the upstream did not send. Until the first part of an answer is out, keep-alives aside,",
        "another key or provider is still asked.",
        "",
        "| dialect | form |",
        "|---|---|",
        '| Anthropic | `event: error`, `data: {"type":"error","error":{...},"request_id":...}` |',
        '| Chat | `data: {"error":{...}}`, no `[DONE]` |',
        "| Responses | `event: error`, then `event: response.failed` |",
        '| Gemini | `data: {"error":{"code":...}}`; in an array one more element and `]` |',
        "",
        f"Tests: {_links(sections[2])}.",
        "",
        "## Rows",
        "",
        "What happens, the answer, and the tests or why there are none.",
        "",
    )
    for number, (fault, answer) in ROWS.items():
        reason = [REASONS[number]] if number in REASONS else []
        held = "; ".join([*([_links(rows[number])] if rows.get(number) else []), *reason])
        yield f"- **{number}** {fault}: {answer} ({held})"


def _class_row(kind: ErrorClass) -> str:
    cells = []
    for dialect in ("anthropic", "openai-chat", "gemini"):
        answer = refusal(RequestError(kind, "m").error, dialect)
        error = decode(answer.body)["error"]
        words = [error.get("status") or error["type"], error["code"] if dialect == "openai-chat" else None]
        cells.append(f"{answer.status} " + ", ".join(f"`{word}`" for word in words if word))
    return f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |"


def _links(tests: list[tuple[str, str]]) -> str:
    return ", ".join(f"[`{name}`](../../tests/{file})" for file, name in tests)


class Uncovered(Exception):
    """A row without a test or a reason, or a pointer to a test that is not there."""


def page() -> Iterator[str]:
    rows, sections, problems = covered()
    if problems:
        raise Uncovered("\n".join(problems))
    return _lines(rows, sections)
