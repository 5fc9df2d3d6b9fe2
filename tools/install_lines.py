"""How pages say that Wireglot is installed: by what `wireglot_core.extras.SOURCE` names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools import page_shape
from wireglot_core.extras import requirement

_LINE: Final = re.compile(
    r"\b((?:pipx?|uv tool) install (?:--[\w-]+ |-e )*)('?)(?:wireglot|\.)(?:\[([\w,]+)\])?\2(?=[\s`),;]|$)"
)


def rewritten(text: str) -> str:
    return _LINE.sub(lambda match: match[1] + requirement(match[3] or ""), text)


def pages() -> Iterator[tuple[Path, str]]:
    """Every page that names another source, and what it should be."""
    for path in page_shape.all_pages():
        text = path.read_text(encoding="utf-8")
        if (wanted := rewritten(text)) != text:
            yield path, wanted
