"""Citations of sources that a search found: where a text names the address of one, it cites it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from wireglot.ir.content import Citation
from wireglot.ir.hosted import WebSource

_QUOTED_CHARACTERS: Final = 150
"""As Anthropic's citations quote."""
_AFTER: Final = r"(?![\w/?=&%#~-]|[.:,;@!+][\w/])"
"""What would make it another address. A mark at the end of a sentence does not."""


def cited(text: str, sources: Sequence[WebSource], *, quotes: bool) -> tuple[Citation, ...]:
    """A citation for each place at which the text links to a source, in their order."""
    known: dict[str, WebSource] = {}
    for source in sources:
        if source.url and source.url in text:
            known.setdefault(source.url, source)
    if not known:
        return ()
    longest_first = sorted(known, key=len, reverse=True)
    addresses = "|".join(map(re.escape, longest_first))
    found = []
    # A link of Markdown as a whole, else the address alone.
    for place in re.finditer(rf"\[[^\[\]]*\]\(<?({addresses})>?\)|({addresses}){_AFTER}", text):
        source = known[place[1] or place[2]]
        quote = source.text[:_QUOTED_CHARACTERS] if quotes else ""
        found.append(Citation(source.url, source.title, quote, start=place.start(), end=place.end()))
    return tuple(found)
