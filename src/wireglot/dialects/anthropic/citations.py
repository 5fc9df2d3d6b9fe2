"""Citations: a web result is shared by all dialects, places in documents are Anthropic's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from wireglot.dialects.anthropic.names import NAME, put_back
from wireglot.dialects.fields import Fields, own_fields, own_form
from wireglot.ir.content import Citation, Foreign, Text
from wireglot.ir.loss import Loss

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
    """The citations of a text block; something that is no list stays with the unknown fields."""
    if type(fields.value.get(key)) is not list:
        return ()
    return tuple(parse_citation(item) for item in fields.objects(key))


def cut_at_citations(part: Text) -> list[Text]:
    """A text in pieces, as Anthropic writes it: what is cited is a block of its own with its citations. Spans
    that overlap are one piece. Not cut where a citation names no span."""
    text, spans = part.text, list[tuple[int, int, tuple[Citation, ...]]]()
    for citation in sorted(part.citations, key=_start):
        start, end = citation.start, citation.end
        if start is None or end is None or not 0 <= start < end <= len(text):
            return [part]
        cited = replace(citation, start=None, end=None)
        if spans and not text[spans[-1][1] : start].strip() and start > spans[-1][1]:
            # Blank text alone is refused when a client sends it back.
            spans[-1] = (spans[-1][0], start, spans[-1][2])
        if spans and start < spans[-1][1]:
            begin, before, others = spans[-1]
            spans[-1] = (begin, max(before, end), (*others, cited))
        else:
            spans.append((start, end, (cited,)))
    pieces, place = list[Text](), 0
    for start, end, citations in spans:
        if text[place:start].strip():
            pieces.append(Text(text[place:start]))
            place = start
        pieces.append(Text(text[place:end], citations=citations))
        place = end
    rest = text[place:]
    if rest.strip():
        pieces.append(Text(rest))
    else:
        pieces[-1] = replace(pieces[-1], text=pieces[-1].text + rest)
    return pieces


def _start(citation: Citation) -> int:
    return citation.start or 0


def render_citations(
    citations: Iterable[Citation], path: str, losses: list[Loss], echoable: bool
) -> list[dict[str, Any]]:
    """`echoable`: toward the upstream, which takes back only web results it minted (`encrypted_index`)."""
    blocks = []
    for index, citation in enumerate(citations):
        block = _render(citation, f"{path}.citations[{index}]", losses, echoable)
        if block is not None:
            blocks.append(block)
    return blocks


def _render(citation: Citation, path: str, losses: list[Loss], echoable: bool) -> dict[str, Any] | None:
    native = citation.native
    if native is not None:
        if native.dialect == NAME:
            return native.value
        losses.append(Loss(path, "citations", "dropped", f"a {native.type} of {native.dialect}"))
        return None
    own = own_fields(citation.extra, NAME)
    if not citation.url:
        losses.append(Loss(path, "citations", "dropped", "names no web address"))
        return None
    if echoable and not own.get("encrypted_index"):
        losses.append(
            Loss(path, "citations", "dropped", "only web results minted by Anthropic can be sent back")
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
    block = put_back(block, citation.extra, path, losses)
    # Clients read this field; an empty one marks a result that cannot be echoed.
    block.setdefault("encrypted_index", "")
    return block
