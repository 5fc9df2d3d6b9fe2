"""Pictures that pages draw in mermaid, as SVG files for light and dark: no page needs a script."""

from __future__ import annotations

import hashlib
import html
import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from tools.site.links import FENCE

FOLDER: Final = "_static/diagrams"
_THEMES: Final = {"light": "default", "dark": "dark"}
_WORDS: Final = re.compile(r"[\[({|]+\"?([^\[\](){}|\"]+)\"?[\])}|]+")
_SIZE: Final = re.compile(r'viewBox="[-\d.]+ [-\d.]+ ([\d.]+) ([\d.]+)"')
_LEAST_SCALE: Final = 0.6
"""Smaller, its words could not be read: a wide picture is moved sideways instead."""


class Picture(NamedTuple):
    """One to draw. `shade`: light or dark."""

    source: str
    shade: str

    @property
    def file(self) -> str:
        return f"{hashlib.sha256(self.source.encode()).hexdigest()[:16]}-{self.shade}.svg"


def pictures(texts: Iterable[str]) -> list[Picture]:
    """All that pages have, each once."""
    sources = [fence["code"] for text in texts for fence in FENCE.finditer(text) if _is_drawn(fence)]
    return [Picture(source, shade) for source in dict.fromkeys(sources) for shade in _THEMES]


def draw(picture: Picture) -> str:
    """The SVG, by mermaid's own code in an engine without a browser."""
    import mermaidx

    svg: str = mermaidx.render(picture.source, theme=_THEMES[picture.shade]).svg()
    return svg


def draw_all(wanted: list[Picture]) -> dict[Picture, str]:
    """A second or two each, so all processors take part."""
    with ProcessPoolExecutor() as pool:
        return dict(zip(wanted, pool.map(draw, wanted), strict=True))


DrawAll = Callable[[list[Picture]], Mapping[Picture, str]]


def drawn(text: str, staged: str, svgs: Mapping[Picture, str]) -> str:
    """A page with its pictures as files. `staged` is the page's path on the site."""
    root = os.path.relpath(FOLDER, PurePosixPath(staged).parent)

    def shown(fence: re.Match[str]) -> str:
        if not _is_drawn(fence):
            return fence[0]
        both = [Picture(fence["code"], shade) for shade in _THEMES]
        images = [_image(picture, svgs[picture], root) for picture in both]
        return f'<div class="diagram">{"".join(images)}</div>\n'

    return FENCE.sub(shown, text)


def write(svgs: Mapping[Picture, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for picture, svg in svgs.items():
        (folder / picture.file).write_text(svg, encoding="utf-8")


def _is_drawn(fence: re.Match[str]) -> bool:
    return fence["kind"].strip() == "mermaid"


def _image(picture: Picture, svg: str, root: str) -> str:
    size = _SIZE.search(svg)
    assert size is not None, "mermaid says how large a picture is"
    width = round(float(size[1]))
    words = html.escape(described(picture.source), quote=True)
    style = f"width: {width}px; min-width: {round(width * _LEAST_SCALE)}px"
    return f'<img class="only-{picture.shade}" src="{root}/{picture.file}" alt="{words}" style="{style}">'


def described(source: str) -> str:
    """The words of a picture, for those who do not see it."""
    found = [" ".join(re.sub(r"<br ?/?>", " ", words).split()) for words in _WORDS.findall(source)]
    return "diagram: " + ", ".join(dict.fromkeys(words for words in found if words))
