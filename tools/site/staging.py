"""The pages as the generator reads them: copies, with links, pictures and navigation of the site."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path
from typing import Final

from tools.site.diagrams import FOLDER, DrawAll, drawn, pictures, write
from tools.site.links import Places, rewritten
from tools.site.navigation import DOCS, HOME, ROOT, Page, Section, all_pages, sections

_PROJECT: Final = "project"
"""Where pages of the repository's root are."""
EXTRA: Final = "extra"
_AT_ITS_PLACE: Final = "reference/openapi.json"
"""Tools ask for it under its own name; what is only linked gets one from the generator."""


def staged_paths(found: tuple[Section, ...]) -> dict[str, str]:
    """Path in the repository -> page of the site."""
    pages = {"README.md": "index.md", f"docs/{HOME}": "index.md"}
    for page in all_pages(found):
        origin = os.path.normpath(f"docs/{page.path}")
        outside = page.path.startswith("../")
        pages[origin] = f"{_PROJECT}/{Path(page.path).name.lower()}" if outside else page.path
    return pages


def stage(target: Path, draw_all: DrawAll) -> tuple[Section, ...]:
    """Write everything the generator needs to `target`, which is empty."""
    found = sections()
    paths = staged_paths(found)
    others = [path for path in DOCS.rglob("*") if path.is_file() and path.suffix != ".md"]
    places = Places(paths, frozenset(str(path.relative_to(ROOT)) for path in others), home())
    for path in others:
        copy = target / path.relative_to(DOCS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    extra = target / EXTRA / _AT_ITS_PLACE
    extra.parent.mkdir(parents=True)
    shutil.copy(DOCS / _AT_ITS_PLACE, extra)
    below = {os.path.normpath(f"docs/{page.path}"): page.below for page in all_pages(found) if page.below}
    texts = {
        origin: rewritten((ROOT / origin).read_text(encoding="utf-8"), origin, places)
        for origin in paths
        if origin != "README.md"  # the folder's own stands for it
    }
    svgs = draw_all(pictures(texts.values()))
    write(svgs, target / FOLDER)
    for origin, text in texts.items():
        staged = paths[origin]
        page = drawn(text, staged, svgs)
        if origin == f"docs/{HOME}":
            page += "".join(_tree(section.title, section.pages, paths) for section in found)
        if origin in below:
            page += _tree("", below[origin], paths)
        file = target / staged
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8")
    return found


def home() -> str:
    """The project's address, as the package has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address: str = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["home"]
    return address


def _tree(caption: str, pages: tuple[Page, ...], paths: dict[str, str]) -> str:
    lines = ["", "```{toctree}", ":hidden:"]
    if caption:
        lines.append(f":caption: {caption}")
    lines.append("")
    for page in pages:
        place = "/" + paths[os.path.normpath(f"docs/{page.path}")].removesuffix(".md")
        lines.append(f"{page.short} <{place}>" if page.short else place)
    return "\n".join([*lines, "```", ""])
