"""A torn table row or list item is still text, so no reader of the source misses it; a renderer does."""

from itertools import pairwise

import pytest

from tests.tiers import rows
from tools import generate_docs, page_shape

PAGES = {
    str(path.relative_to(page_shape.ROOT)): path.read_text(encoding="utf-8")
    for path in page_shape.all_pages()
}

TABLE = "| key | value |\n|---|---|\n| `a` | one |\n"

WHOLE = {
    "a table": TABLE,
    "a table and the text after it": f"{TABLE}\nText | with a bar.\n",
    "a bar in a cell": TABLE + "| `a\\|b` | two |\n",
    "a generated table": f"<!-- generated: x -->\n{TABLE}<!-- end -->\n",
    "rows inside a block of code": "```\n| a |\nword | - b\n```\n",
    "an item that goes on": "- one\n  of them, or two.\n- two\n",
    "a hyphen between words": "The value of Auto - a default - is one.\n",
    "a tag in code": "It is `<table>`.\n",
    "a hyphen in code": "Run `import -; - b` of it.\n",
    "a version": "## 0.2.0 - 2026-11-19\n",
    "a number that ends a sentence": "It takes 2, not 1. Another sentence.\n",
}

TORN = {
    "a row over two lines": ("| key | value |\n|---|---|\n| `a` |\none |\n", "3: a row has 1 cells"),
    "the rest of a row": (
        "| key | value |\n|---|---|\n| `a` | one\nand two |\n",
        "4: a row of a table is torn",
    ),
    "two rows in one line": (TABLE + "| b | two | | c | three |\n", "4: a row has 5 cells"),
    "a row without its table": ("Text.\n\n| a | b |\n", "3: a row stands outside a table"),
    "a head with too few cells": ("| a | b |\n|---|---|---|\n", "1: the head of a table"),
    "an item after a sentence": ("- One. - Two.\n", "1: an item of a list"),
    "an item after a comma": ("- when it is called, - what it was\n", "1: an item of a list"),
    "an item that begins at the end of a line": ("- One of them. -\n  Two.\n", "1: an item of a list"),
    "a numbered item": ("2. One. 3. Two.\n", "1: a numbered item"),
    "a table in HTML": ("Text.\n\n<table>\n<tr><td>\n", "3: a table in HTML"),
    "a heading": ("One sentence. ## The next part\n", "1: a heading"),
}


@rows("name", PAGES)
def test_no_row_and_no_item_of_a_page_is_torn(name: str) -> None:
    assert list(page_shape.torn_places(PAGES[name])) == []


def test_every_page_of_the_project_is_looked_at() -> None:
    assert {
        "README.md",
        "CHANGELOG.md",
        "docs/state.md",
        "docs/reference/errors.md",
        "examples/README.md",
    } <= set(PAGES)


@rows("name", WHOLE)
def test_a_whole_page_is_accepted(name: str) -> None:
    assert list(page_shape.torn_places(WHOLE[name])) == []


@rows("name", TORN)
def test_what_is_torn_is_reported_with_its_line(name: str) -> None:
    page, place = TORN[name]
    assert any(found.startswith(place) for found in page_shape.torn_places(page))


@rows("name", {name: name for name in ("docs/security.md", "docs/state.md", "CONTRIBUTING.md")})
def test_any_row_that_is_split_or_joined_is_found(name: str) -> None:
    """Where a real page has two rows in a table: joined, and each cut at each of its bars."""
    lines = PAGES[name].splitlines()
    for at, (first, second) in enumerate(pairwise(lines)):
        if not (first.startswith("| ") and second.startswith("| ")):
            continue
        joined = [*lines[:at], f"{first} {second}", *lines[at + 2 :]]
        assert list(page_shape.torn_places("\n".join(joined)))
        for cut in [bar for bar, letter in enumerate(second) if letter == "|"][1:-1]:
            split = [*lines[: at + 1], second[: cut + 1], second[cut + 1 :].strip(), *lines[at + 2 :]]
            assert list(page_shape.torn_places("\n".join(split)))


def test_docs_check_refuses_a_torn_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate_docs, "stale", lambda check: [])
    monkeypatch.setattr(generate_docs, "torn", lambda: ["docs/state.md:9: a row of a table is torn"])
    monkeypatch.setattr("sys.argv", ["generate_docs", "--check"])
    assert generate_docs.main() == 1
    assert "docs/state.md:9: a row of a table is torn" in capsys.readouterr().out
