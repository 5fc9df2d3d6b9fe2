"""Links of a page as the site has them: to its own pages, and to the repository where that has an address."""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

FENCE: Final = re.compile(
    r"^(?P<mark>```+|~~~+)(?P<kind>[^\n`]*)\n(?P<code>.*?)^(?P=mark)[ \t]*$", re.DOTALL | re.MULTILINE
)
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK: Final = re.compile(r"(?<![!\\])\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
_IMAGE: Final = re.compile(r"!\[([^]]*)\]\(([^)\s]+)\)")
_ABSOLUTE: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


class Places:
    """Where things are. Paths of the repository; `pages` says which page of the site one of them is."""

    def __init__(self, pages: Mapping[str, str], files: frozenset[str], home: str = "") -> None:
        """`files`: what the site has beside its pages, under the same paths within docs/. `home`: the
        project's address, where it has one."""
        self._pages = pages
        self._files = files
        self._home = home.rstrip("/")

    def of(self, page: str, link: str) -> str:
        """Where a link of a page leads on the site; "": nowhere."""
        if _ABSOLUTE.match(link) or link.startswith("#"):
            return link
        file, mark, anchor = link.partition("#")
        target = os.path.normpath(PurePosixPath(page).parent / file)
        here = PurePosixPath(self._pages[page]).parent
        staged = self._pages.get(target)
        if staged is None and target in self._files:
            staged = target.removeprefix("docs/")
        if staged is not None:
            return os.path.relpath(staged, here) + mark + anchor
        return f"{self._home}/blob/main/{target}{mark}{anchor}" if self._home else ""


def rewritten(text: str, page: str, places: Places) -> str:
    """A page with its links as the site has them. Code stays; a link that leads nowhere is its words."""

    def link(match: re.Match[str]) -> str:
        target = places.of(page, match[2])
        return f"[{match[1]}]({target})" if target else match[1]

    def image(match: re.Match[str]) -> str:
        return f"![{match[1]}]({places.of(page, match[2])})"

    return outside_code(text, lambda piece: _replaced(_IMAGE, image, _replaced(_LINK, link, piece)))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with a change to all that stands in no fence."""
    out, at = [], 0
    for fence in FENCE.finditer(text):
        out += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*out, change(text[at:])])


def _replaced(pattern: re.Pattern[str], change: Callable[[re.Match[str]], str], text: str) -> str:
    """But for what begins within a span of code; the words of a link may hold one."""
    spans = [match.span() for match in _CODE.finditer(text)]
    starts = [start for start, _ in spans]

    def changed(match: re.Match[str]) -> str:
        before = bisect(starts, match.start())
        return match[0] if before and match.start() < spans[before - 1][1] else change(match)

    return pattern.sub(changed, text)
