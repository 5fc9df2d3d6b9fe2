"""Parts of a page that are written by a program: `<!-- generated: NAME -->` ... `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_BLOCK = re.compile(r"<!-- generated: ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)


class NoBlock(Exception):
    """A page and the program that fills it do not agree on its blocks."""


def filled(page: str, blocks: Mapping[str, str]) -> str:
    """The page with fresh text in all of its blocks; it must have exactly those."""
    found = _BLOCK.findall(page)
    if sorted(found) != sorted(blocks):
        raise NoBlock(f"expected the blocks {sorted(blocks)}, found {sorted(found)}")
    return _BLOCK.sub(lambda block: f"<!-- generated: {block[1]} -->\n{blocks[block[1]]}\n<!-- end -->", page)


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table; a `|` in a cell does not end it."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)
