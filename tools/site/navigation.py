"""navigation.toml, with its patterns filled: sections of pages, and the list of them in docs/README.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
FILE: Final = Path(__file__).parent / "navigation.toml"
HOME: Final = "README.md"
"""Of docs/: the first page of the site, and what a visitor of the folder sees."""


class BadNavigation(Exception):
    """A page that is nowhere, or in two places, or is not there."""


class Page(msgspec.Struct, frozen=True):
    """`path` is within docs/."""

    path: str
    title: str
    """Of the page itself."""
    short: str = ""
    """In the navigation, where it is another."""
    about: str = ""
    below: tuple[Page, ...] = ()


class Section(msgspec.Struct, frozen=True):
    title: str
    about: str
    pages: tuple[Page, ...]


def sections(docs: Path = DOCS, file: Path = FILE) -> tuple[Section, ...]:
    """Those that have pages. A name must be there; a pattern stands for what is, and is named nowhere."""
    reported = tomllib.loads(file.read_text(encoding="utf-8"))["section"]
    entries = [entry for section in reported for entry in section["pages"]]
    reader = _Reader(docs, {name for entry in entries for name in (entry["page"], *entry.get("below", ()))})
    found = tuple(
        Section(
            section["title"],
            section["about"],
            tuple(page for entry in section["pages"] for page in reader.pages(entry)),
        )
        for section in reported
    )
    return tuple(section for section in found if section.pages)


def all_pages(found: tuple[Section, ...]) -> list[Page]:
    listed = [page for section in found for page in section.pages]
    return listed + [below for page in listed for below in page.below]


def check(found: tuple[Section, ...], docs: Path = DOCS) -> None:
    """Raises BadNavigation where a page of docs/ is nowhere, or in two places."""
    paths = [page.path for page in all_pages(found)]
    there = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {HOME}
    problems = [f"{path}: in no section of {FILE.name}" for path in sorted(there - set(paths))]
    problems += [
        f"{path}: in two places" for path in sorted({path for path in paths if paths.count(path) > 1})
    ]
    if problems:
        raise BadNavigation("\n".join(problems))


def page_list(found: tuple[Section, ...]) -> str:
    """For docs/README.md: a heading and a list for each section."""
    blocks = []
    for section in found:
        lines = [f"## {section.title}", "", section.about, ""]
        lines += [line for page in section.pages for line in _lines(page)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def title_of(text: str) -> str:
    """The first heading."""
    heading = re.search(r"^# (.+)$", text, flags=re.MULTILINE)
    if heading is None:
        raise BadNavigation("a page without a heading")
    return heading[1].strip()


def _lines(page: Page) -> Iterator[str]:
    """A page called README lists what hangs below it itself."""
    text = f": {page.about}" if page.about else ""
    yield f"- [{page.title}]({page.path}){text}"
    if Path(page.path).name != HOME:
        for below in page.below:
            yield f"  - [{below.title}]({below.path})"


class _Reader:
    """Entries of the file -> pages. `named`: names and patterns of all entries."""

    def __init__(self, docs: Path, named: set[str]) -> None:
        self._docs = docs
        self._named = named

    def pages(self, entry: dict[str, Any]) -> list[Page]:
        below = [self._page(path) for name in entry.get("below", ()) for path in self._paths(name)]
        return [
            self._page(path, entry.get("title", ""), entry.get("about", ""), tuple(below))
            for path in self._paths(entry["page"])
        ]

    def _paths(self, name: str) -> list[str]:
        if "*" in name:
            there = (str(path.relative_to(self._docs)) for path in self._docs.glob(name))
            return sorted(path for path in there if path not in self._named)
        if not (self._docs / name).exists():
            raise BadNavigation(f"{name}: in {FILE.name}, and not there")
        return [name]

    def _page(self, path: str, short: str = "", about: str = "", below: tuple[Page, ...] = ()) -> Page:
        title = title_of((self._docs / path).read_text(encoding="utf-8"))
        return Page(path, title, short, about, below)
