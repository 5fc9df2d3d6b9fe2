"""Citations: web results exist in all dialects, places in documents are Anthropic's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from wireglot_core.dialects.anthropic.lost_fields import LOST
from wireglot_core.dialects.anthropic.names import NAME, put_back
from wireglot_core.dialects.common_losses import foreign_citation
from wireglot_core.dialects.fields import Fields, own_fields, own_form
from wireglot_core.ir.content import Citation, Foreign, Text
from wireglot_core.ir.loss import Loss

_NOT_BLANK = re.compile(r"\S")
_WEB = "web_search_result_location"
_WEB_KNOWN = frozenset({"type", "url", "title", "cited_text"})


def parse_citation(fields: Fields) -> Citation:
    kind = fields.value.get("type")
    url, title, quote = (fields.value.get(key) for key in ("url", "title", "cited_text"))
    if (
        kind == _WEB
        and type(url) is str
        and type(title) in (str, type(None))
        and type(quote) in (str, type(None))
    ):
        absent = [key for key in ("title", "cited_text") if key not in fields.value]
        extra = fields.rest(_WEB_KNOWN, NAME, {"absent": absent} if absent else None)
        return Citation(url, title or "", quote or "", extra=extra)
    return Citation(native=Foreign(NAME, kind if type(kind) is str else "", fields.value))


def parse_citations(fields: Fields, key: str = "citations") -> tuple[Citation, ...]:
    """Parses the citations of a text block; a value that is not a list stays an unknown field."""
    if type(fields.value.get(key)) is not list:
        return ()
    return tuple(parse_citation(item) for item in fields.objects(key))


def cut_at_citations(part: Text) -> list[tuple[str, list[int]]]:
    """Splits a text the way Anthropic does: each cited span is a separate piece, with the indexes of its
    citations. Overlapping spans are one piece. The text is not split where the citation of a page names no
    span, or a blank one."""
    text, spans, unplaced = part.text, list[tuple[int, int, list[int]]](), list[int]()
    places = sorted(enumerate(part.citations), key=lambda each: each[1].start or 0)
    word = -1  # the first character at `start` or later that is not blank
    for index, citation in places:
        start, end = citation.start, citation.end
        if citation.native is not None or not citation.url:
            unplaced.append(index)
            continue
        if start is None or end is None or start < 0 or end > len(text):
            return [(text, [*range(len(part.citations))])]
        if word < start:
            found = _NOT_BLANK.search(text, start)
            word = found.start() if found is not None else len(text)
        if word >= end:
            return [(text, [*range(len(part.citations))])]
        if spans and spans[-1][1] < start and not text[spans[-1][1] : start].strip():
            # Blank text alone is refused when a client sends it back.
            spans[-1] = (spans[-1][0], start, spans[-1][2])
        if spans and start < spans[-1][1]:
            begin, before, others = spans[-1]
            others.append(index)
            spans[-1] = (begin, max(before, end), others)
        else:
            spans.append((start, end, [index]))
    if not spans:
        return [(text, unplaced)]
    pieces, place = list[tuple[str, list[int]]](), 0
    for start, end, indices in spans:
        if text[place:start].strip():
            pieces.append((text[place:start], []))
            place = start
        pieces.append((text[place:end], indices))
        place = end
    if text[place:].strip():
        pieces.append((text[place:], []))
    else:
        pieces[-1] = (pieces[-1][0] + text[place:], pieces[-1][1])
    pieces[-1] = (pieces[-1][0], pieces[-1][1] + unplaced)
    return pieces


def render_citations(
    citations: Iterable[tuple[int, Citation]], path: str, losses: list[Loss], echoable: bool
) -> list[dict[str, Any]]:
    """Renders citations, each with its index. `echoable`: toward the upstream, which accepts only web results
    that it minted (`encrypted_index`)."""
    blocks = []
    for index, citation in citations:
        block = _render(citation, f"{path}.citations[{index}]", losses, echoable)
        if block is not None:
            blocks.append(block)
    return blocks


def _render(citation: Citation, path: str, losses: list[Loss], echoable: bool) -> dict[str, Any] | None:
    native = citation.native
    if native is not None:
        if native.dialect == NAME:
            return native.value
        losses.append(foreign_citation(native, path))
        return None
    own = own_fields(citation.extra, NAME)
    if not citation.url:
        losses.append(Loss(path, "citations", "dropped", "names no URL"))
        return None
    if echoable and not own.get("encrypted_index"):
        losses.append(
            Loss(path, "citations", "dropped", "only web results issued by Anthropic can be sent back")
        )
        return None
    if citation.start is not None or citation.end is not None:
        losses.append(
            Loss(path, "citations", "approximated", "start and end of the cited text are not reported")
        )
    absent = own_form(citation.extra, NAME).get("absent", ())
    block: dict[str, Any] = {"type": _WEB}
    if citation.quote or "cited_text" not in absent:
        block["cited_text"] = None if own.get("cited_text", "") is None else citation.quote
    block["url"] = citation.url
    if citation.title or "title" not in absent:
        block["title"] = citation.title or (None if "title" in own else "")
    LOST.of(citation, path, losses)
    block = put_back(block, citation.extra)
    # Clients read this field; an empty one marks a result that cannot be echoed.
    block.setdefault("encrypted_index", "")
    return block
