"""Rows of tables and items of lists in the Markdown pages that are torn, so that no renderer shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_NOT_OURS: Final = frozenset({"node_modules", "dist", "build", "site"})
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_RULER: Final = re.compile(r"\|(\s*:?-+:?\s*\|)+")
_BAR: Final = re.compile(r"(?<!\\)\|")
_CODE: Final = re.compile(r"(`+)[^`].*?\1")
_ITEM: Final = re.compile(r"\s*([-*+]|\d+[.)]) ")
# After the end of a phrase, or at the end of a line: a hyphen between two words is text.
_INNER_ITEM: Final = re.compile(r"(?<=[.,;:!?)*`]) [-*+] (?=\S)|\S [-*+]$")
_INNER_NUMBER: Final = re.compile(r"(?<=[.;:!?)]) \d{1,2}\. (?=\S)")
_INNER_HEADING: Final = re.compile(r"(?<=[.;:!?)]) #{1,6} (?=\S)")


def all_pages(root: Path = ROOT) -> Iterator[Path]:
    """Every Markdown file of the project; hidden folders are those of tools, except `.github`."""
    for path in sorted(root.rglob("*.md")):
        folders = path.relative_to(root).parts[:-1]
        if not any((name.startswith(".") and name != ".github") or name in _NOT_OURS for name in folders):
            yield path


def torn_places(page: str) -> Iterator[str]:
    """One line for each row of a table and each item of a list that is not rendered as one."""
    fence = ""
    columns = 0
    lines = page.splitlines()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif text.startswith(fence):
                fence = ""
            columns = 0
        elif fence:
            continue
        elif columns and text and not text.startswith("<!--"):
            if not (text.startswith("|") and text.endswith("|")):
                yield f"{number}: a row of a table is torn: {text[:60]}"
            elif _cells(text) != columns:
                yield f"{number}: a row has {_cells(text)} cells, its table has {columns}: {text[:60]}"
        elif text.startswith("|"):
            ruler = lines[number].strip() if number < len(lines) else ""
            if not _RULER.fullmatch(ruler):
                yield f"{number}: a row stands outside a table: {text[:60]}"
            elif not text.endswith("|") or _cells(text) != _cells(ruler):
                yield f"{number}: the head of a table does not fit the line below it: {text[:60]}"
            columns = _cells(ruler)
        else:
            columns = 0
            prose = _CODE.sub("`code`", text)
            if "<table" in prose:
                yield f"{number}: a table in HTML is wider than the page with code in it: {text[:60]}"
            if _ITEM.match(line):
                prose = _ITEM.sub("", prose, count=1)
            if prose.startswith("#"):
                continue
            for pattern, what in (
                (_INNER_ITEM, "an item of a list"),
                (_INNER_NUMBER, "a numbered item"),
                (_INNER_HEADING, "a heading"),
            ):
                if pattern.search(prose):
                    yield f"{number}: {what} is inside a paragraph: {text[:60]}"


def _cells(row: str) -> int:
    return len(_BAR.findall(row)) - 1
