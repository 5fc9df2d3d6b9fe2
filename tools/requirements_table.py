"""docs/reference/requirements.md: every requirement, and the test that holds it or why there is none.

The statements stand in tests/requirements/statements.toml, the sentences asked for in asked.toml. A test
holds a requirement by naming its id in a docstring or a comment:
`R-B-07`, a range `R-AJ-01..06`, or the number of a correction, `C14`.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tools.structure import nodes_of

ROOT = Path(__file__).parents[1]
STATEMENTS = ROOT / "tests" / "requirements" / "statements.toml"
ASKED = ROOT / "tests" / "requirements" / "asked.toml"
LONGEST = 100
"""Characters of a statement: it says what must hold, not how."""

_CITED = re.compile(r"\bR-([A-Z]{1,2})-(\d\d)(?:(?:\.\.| to R-\1-)(\d\d))?|\bC([1-9]\d?)\b")
_FIELDS = frozenset({"says", "correction", "decision", "reason", "note", "weaker"})
_ABOUT = """\
# Requirements

What is implemented of each requirement, and the tests that verify it. The original wording is in
[asked.toml](../../tests/requirements/asked.toml). A test verifies a requirement by naming it in a docstring
or a comment. A requirement without a test has a correction (it was changed later), a decision or a reason;
one without any of these fails `make docs-check`. **less** marks those that implement less than was required,
with the original wording and the reason.
"""


class Forgotten(Exception):
    """Requirements without test or reason, ids that are none, or statements that are none."""


class Requirement(NamedTuple):
    id: str
    says: str
    correction: str = ""
    """The correction that changed it."""
    decision: str = ""
    """The page that says why it is done otherwise."""
    reason: str = ""
    """Why no test holds it."""
    note: str = ""
    """What must be known beside its tests."""
    weaker: str = ""
    """What of the sentence does not hold, and why."""


class Group(NamedTuple):
    letter: str
    title: str
    requirements: tuple[Requirement, ...]


def groups(path: Path = STATEMENTS) -> tuple[Group, ...]:
    """The statements, in the order of their file; the corrections are the last group."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(_group(letter, table) for letter, table in document.items())


def _group(letter: str, entries: Mapping[str, Any]) -> Group:
    found = tuple(_requirement(id, entry) for id, entry in entries.items() if id != "title")
    return Group(letter, entries["title"], found)


def _requirement(id: str, entry: str | dict[str, str]) -> Requirement:
    fields = {"says": entry} if isinstance(entry, str) else entry
    if unknown := set(fields) - _FIELDS:
        raise Forgotten(f"{id}: unknown fields {sorted(unknown)}")
    return Requirement(id, **fields)


def asked(path: Path = ASKED) -> dict[str, str]:
    """The sentences as they were asked for, by id."""
    document: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))
    return document


# Citations.


def cited(text: str) -> Iterator[str]:
    """The ids that a docstring or a comment names, ranges written out."""
    for group, first, last, correction in _CITED.findall(text):
        if correction:
            yield f"C{correction}"
        else:
            for number in range(int(first), int(last or first) + 1):
                yield f"R-{group}-{number:02}"


def citations(source: str) -> Iterator[tuple[str, str]]:
    """(id, test) for each mention in a file; the test is "" where the file as a whole is meant."""
    if not _CITED.search(source):
        return
    nodes = nodes_of(source)
    tests = [
        (min([node.lineno, *(mark.lineno for mark in node.decorator_list)]), node.end_lineno or 0, node.name)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    for line, text in _remarks(source, nodes):
        name = next((name for first, last, name in tests if first <= line <= last), "")
        yield from ((id, name) for id in cited(text))


def _remarks(source: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Docstrings, and comments that may cite something, each with its line."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text is not None:
                yield node.body[0].lineno, text
    if any("#" in line and _CITED.search(line) for line in source.splitlines()):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


@cache
def held(folder: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Each cited id with its tests, as `path::name` or the path of a whole file, from the root."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder.parent).as_posix()
        for id, test in citations(path.read_text(encoding="utf-8")):
            place = f"{name}::{test}" if test else name
            if place not in found.setdefault(id, []):
                found[id].append(place)
    return {id: _without_whole_files(places) for id, places in found.items()}


def _without_whole_files(places: list[str]) -> list[str]:
    """A file that names an id at its top and at one of its tests has said where it is held."""
    exact = {place.partition("::")[0] for place in places if "::" in place}
    return [place for place in places if "::" in place or place not in exact]


# What is wrong.


def problems(
    stated: Iterable[Group], tests: Mapping[str, list[str]], sentences: Mapping[str, str]
) -> Iterator[str]:
    known = {each.id: each for group in stated for each in group.requirements}
    for group in stated:
        yield from _numbering(group)
        for each in group.requirements:
            yield from _faults(each, known, tests.get(each.id, []))
    for id in sorted(set(known) ^ set(sentences)):
        yield f"{id}: stands in only one of asked.toml and statements.toml"
    for id in sorted(set(tests) - set(known)):
        yield f"{id}: no such requirement, cited by {', '.join(tests[id])}"


def _numbering(group: Group) -> Iterator[str]:
    corrections = all(each.id.startswith("C") for each in group.requirements)
    for number, each in enumerate(group.requirements, 1):
        expected = f"C{number}" if corrections else f"R-{group.letter}-{number:02}"
        if each.id != expected:
            yield f"{each.id}: stands where {expected} is expected"
            return


def _faults(each: Requirement, known: Mapping[str, Requirement], tests: list[str]) -> Iterator[str]:
    if not 0 < len(each.says) <= LONGEST:
        yield f"{each.id}: a statement has 1 to {LONGEST} characters, this one {len(each.says)}"
    if each.correction and each.correction not in known:
        yield f"{each.id}: no such correction: {each.correction}"
    if each.decision and not (ROOT / each.decision).is_file():
        yield f"{each.id}: no such decision: {each.decision}"
    if tests and each.reason:
        yield f"{each.id}: a reason why no test holds it, but there is one: {tests[0]}"
    if not (tests or each.correction or each.decision or each.reason):
        yield f"{each.id}: no test names it, and no reason is given"


# The page.


def page() -> list[str]:
    stated, tests, sentences = groups(), held(), asked()
    wrong = list(problems(stated, tests, sentences))
    if wrong:
        raise Forgotten("\n".join(wrong))
    return ["\n\n".join([_ABOUT.rstrip(), *(_section(group, tests, sentences) for group in stated)])]


def _section(group: Group, tests: Mapping[str, list[str]], sentences: Mapping[str, str]) -> str:
    items = [_item(each, tests.get(each.id, []), sentences[each.id]) for each in group.requirements]
    heading = group.title if len(group.letter) > 2 else f"{group.letter}. {group.title}"
    return f"## {heading}\n\n" + "\n".join(items)


def _item(each: Requirement, tests: list[str], sentence: str) -> str:
    places = [_link(test) for test in tests]
    if each.correction:
        places.append(f"changed by `{each.correction}`")
    if each.decision:
        number = int(Path(each.decision).name[:4])
        places.append(f"[decision {number}](../../{each.decision})")
    places.extend(text for text in (each.reason, each.note) if text)
    if each.weaker:
        places.append(f"**less** than “{sentence}”: {each.weaker}")
    return f"- `{each.id}` {each.says}: {'; '.join(places)}"


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[`{name or file.removeprefix('tests/')}`](../../{file})"
