"""What must hold of the finished site: it is whole, and asks nobody else for anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

_LOADS: Final = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
    "object": "data",
}
"""Elements that a browser fetches by itself, and the attribute that says from where."""
_ELSEWHERE: Final = re.compile(r"(?:https?:)?//")
_CSS: Final = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")]+)")


def problems(site: Path, pages: int) -> list[str]:
    """`pages`: how many there must be, at least."""
    found = []
    written = sorted(site.rglob("*.html"))
    if len(written) < pages:
        found.append(f"{len(written)} pages where {pages} were expected")
    for page in written:
        reader = _Loaded()
        reader.feed(page.read_text(encoding="utf-8"))
        for place in reader.places:
            where = f"{page.relative_to(site)} loads {place}"
            if _ELSEWHERE.match(place):
                found.append(f"{where}, which is elsewhere")
            elif not place.startswith("data:") and not (page.parent / place.partition("?")[0]).exists():
                found.append(f"{where}, which is not there")
    for sheet in site.rglob("*.css"):
        found += (
            f"{sheet.relative_to(site)} loads {place}, which is elsewhere"
            for place in _CSS.findall(sheet.read_text(encoding="utf-8"))
        )
    if not (site / "searchindex.js").exists():
        found.append("there is no index to search")
    return found


class _Loaded(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        wanted = _LOADS.get(tag)
        given = dict(attrs)
        if tag == "link" and given.get("rel") in ("index", "search", "next", "prev", "canonical"):
            return  # reported, not loaded
        place = given.get(wanted) if wanted else None
        if place:
            self.places.append(place)
