"""Parses and renders content parts of message items and of tool outputs: text, refusals, annotations, log
probabilities."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.common_losses import NO_URL, foreign_citation
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.dialects.openai_responses.lost_fields import LOST, LOST_IN_ANSWERS, LOST_OF_REFUSALS
from wireglot_core.dialects.openai_responses.media import parse_media
from wireglot_core.dialects.openai_responses.output import (
    part_extra,
)
from wireglot_core.dialects.openai_responses.spelling import NAME, keep, parse_cache, put_back, render_cache
from wireglot_core.dialects.openai_shared import BREAKPOINT, cited_span, parse_logprob, render_logprobs
from wireglot_core.ir.content import PHASE, Citation, Extra, Foreign, Media, Text, TokenLogprob
from wireglot_core.ir.loss import Loss

_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
_TEXT_KEYS = frozenset({"type", "text", "annotations", "logprobs", BREAKPOINT})
_REFUSAL_KEYS = frozenset({"type", "refusal"})
_CITATION_KEYS = frozenset({"type", "url", "title", "start_index", "end_index"})
_CITATION_ALWAYS = ("title", "start_index", "end_index")
_OUTPUT_LISTS = ("annotations", "logprobs")


def plain_text(part: Any) -> Text | None:
    """An ordinary text of a client without additional fields; None: it needs the full conversion."""
    if type(part) is dict and len(part) == 2 and part.get("type") == "input_text":
        text = part.get("text")
        return Text(text) if type(text) is str else None
    return None


def parse_part(part: Fields, usual: str) -> Text | Media | Foreign:
    """One content part. `usual` is the default text type at this place."""
    kind = part.text("type")
    if kind in _TEXT_TYPES:
        return _parse_text(part, kind, usual)
    if kind == "refusal":
        said = part.text_or("refusal") if "refusal" in part.value else part.text("refusal")
        return Text(said, refusal=True, extra=keep(part.value, _REFUSAL_KEYS))
    return parse_media(part, kind) or Foreign(NAME, kind, part.value)


def _parse_text(part: Fields, kind: str, usual: str) -> Text:
    form: dict[str, Any] = {}
    if kind != usual:
        form["type"] = kind
    if kind == "output_text":
        form["keys"] = [key for key in _OUTPUT_LISTS if key in part.value]
    citations: tuple[Citation, ...] = ()
    if part.value.get("annotations", []) != []:
        citations = tuple(map(parse_citation, part.objects("annotations")))
    logprobs = parse_logprobs(part.value["logprobs"]) if part.value.get("logprobs") else ()
    if logprobs:
        form["logprobs"] = part.value["logprobs"]
    return Text(
        part.text_or("text") if kind == "output_text" and "text" in part.value else part.text("text"),
        citations=citations,
        logprobs=logprobs,
        cache=parse_cache(part) if BREAKPOINT in part.value else None,
        extra=part.rest(_TEXT_KEYS, NAME, form),
    )


def render_text(part: Text, kind: str, path: str, losses: list[Loss], whole: bool = False) -> dict[str, Any]:
    """`kind` is the text type of the place; `whole`: with the empty lists that a response always has."""
    extra, form = None, {}
    if part.extra is not None:
        extra = part_extra(part)
        form = own_form(extra, NAME)
    kind = form.get("type", kind)
    value: dict[str, Any] = {"type": kind, "text": part.text}
    if kind != "output_text":
        LOST.of(part, path, losses)
        if part.cache is not None:
            value[BREAKPOINT] = render_cache(part.cache, path, losses)
    elif part.refusal:
        LOST_OF_REFUSALS.of(part, path, losses)
        value = {"type": "refusal", "refusal": part.text}
    else:
        LOST_IN_ANSWERS.of(part, path, losses)
        keys = form.get("keys", _OUTPUT_LISTS if whole else ())
        annotations = render_citations(part, path, losses) if part.citations else []
        if annotations or "annotations" in keys:
            value["annotations"] = annotations
        if part.logprobs or "logprobs" in keys:
            scored = part.logprobs or form.get("logprobs")
            value["logprobs"] = _render_logprobs(part, form) if scored else []
    return value if extra is None else put_back(value, extra)


# Annotations


def parse_citation(note: Fields) -> Citation:
    if note.value.get("type") != "url_citation":
        return Citation(native=Foreign(NAME, str(note.value.get("type", "")), note.value))
    return Citation(
        note.text_or("url"),
        note.text_or("title"),
        start=note.integer("start_index"),
        end=note.integer("end_index"),
        extra=keep(note.value, _CITATION_KEYS, always=_CITATION_ALWAYS),
    )


def render_citations(part: Text, path: str, losses: list[Loss]) -> list[dict[str, Any]]:
    notes: list[dict[str, Any]] = []
    for number, citation in enumerate(part.citations):
        note = _render_citation(citation, len(part.text), f"{path}.citations[{number}]", losses)
        if note is not None:
            notes.append(note)
    return notes


def _render_citation(citation: Citation, length: int, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    native = citation.native
    if native is not None and native.dialect == NAME:
        return native.value
    if native is not None and not citation.url:
        losses.append(foreign_citation(native, path))
        return None
    if not citation.url:
        losses.append(NO_URL.at(path))
        return None
    if native is not None:
        losses.append(foreign_citation(native, path, "approximated"))
    LOST.of(citation, path, losses)
    own = citation.extra is not None and citation.extra.dialect == NAME
    start, end = cited_span(citation, length, own, path, losses)
    note = {
        "type": "url_citation",
        "start_index": start,
        "end_index": end,
        "url": citation.url,
        "title": citation.title,
    }
    return put_back(note, citation.extra)


# Log probabilities


def parse_logprobs(raw: Any) -> tuple[TokenLogprob, ...]:
    """Lenient: malformed log probabilities are no reason to refuse an answer."""
    if type(raw) is not list:
        return ()
    return tuple(token for token in map(parse_logprob, raw) if token is not None)


def _render_logprobs(part: Text, form: dict[str, Any]) -> list[dict[str, Any]]:
    raw = form.get("logprobs")
    if type(raw) is list and parse_logprobs(raw) == part.logprobs:
        return raw
    return render_logprobs(part.logprobs)


def is_plain(part: Any) -> bool:
    """Whether the part can be written as a string."""
    return (
        type(part) is Text
        and not part.refusal
        and not part.citations
        and not part.logprobs
        and (part.signature is None or part.signature.id == PHASE)
        and part.cache is None
        and _says_nothing(part.extra)
    )


def _says_nothing(extra: Extra | None) -> bool:
    """Whether the extra has no fields to write. Another dialect's does not count: it is reported and dropped
    anyway."""
    return extra is None or extra.dialect != NAME or (not extra.fields and not extra.form)
