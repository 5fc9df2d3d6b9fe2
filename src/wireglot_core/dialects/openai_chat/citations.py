"""Parses and renders citations (`annotations`)."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.common_losses import NO_URL, foreign_citation
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_chat.extras import NAME, keep, put_back
from wireglot_core.dialects.openai_shared import cited_span
from wireglot_core.ir.content import Citation, Foreign
from wireglot_core.ir.loss import Loss, losses_of_extra

_CITATION = frozenset({"url", "title", "start_index", "end_index"})
_QUOTED = _CITATION | {"content"}
"""OpenRouter quotes the page (openrouter.ai/docs/guides/features/plugins/web-search); OpenAI does not."""


def parse_citation(value: Any) -> Citation:
    nested = (
        value.get("url_citation") if type(value) is dict and value.get("type") == "url_citation" else None
    )
    if type(nested) is not dict:
        kind = value.get("type") if type(value) is dict else None
        native = Foreign(
            NAME, kind if type(kind) is str else "", value if type(value) is dict else {"value": value}
        )
        return Citation(native=native)
    start, end, quote = nested.get("start_index"), nested.get("end_index"), nested.get("content")
    return Citation(
        _text_or_empty(nested.get("url")),
        _text_or_empty(nested.get("title")),
        _text_or_empty(quote),
        start=start if type(start) is int else None,
        end=end if type(end) is int else None,
        extra=keep(
            {key: item for key, item in value.items() if key != "index"},
            {"type", "url_citation"},
            {"raw": value},
            nested={"url_citation": (nested, _QUOTED if type(quote) is str else _CITATION)},
        ),
    )


def _text_or_empty(value: Any) -> str:
    return value if type(value) is str else ""


def render_citation(
    citation: Citation, shift: int, length: int, path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    """`shift`: the length of the text before this part in the one string of the answer; `length`: the length
    of the part itself."""
    if citation.native is not None:
        if citation.native.dialect == NAME:
            return citation.native.value
        losses.append(foreign_citation(citation.native, path))
        return None
    raw = own_form(citation.extra, NAME).get("raw")
    if raw is not None and not shift and parse_citation(raw) == citation:
        return dict(raw)
    if not citation.url:
        losses.append(NO_URL.at(path))
        return None
    losses_of_extra(citation.extra, NAME, path, losses)
    start, end = cited_span(citation, length, raw is not None, path, losses)
    nested: dict[str, Any] = {"url": citation.url, "title": citation.title}
    if citation.quote and raw is not None:
        nested["content"] = citation.quote
    elif citation.quote:
        losses.append(Loss(f"{path}.quote", "citations", "dropped", "Chat does not quote"))
    if start is not None:
        nested["start_index"] = start + shift
    if end is not None:
        nested["end_index"] = end + shift
    out = {"type": "url_citation", "url_citation": nested}
    put_back(out, citation.extra)
    return out
