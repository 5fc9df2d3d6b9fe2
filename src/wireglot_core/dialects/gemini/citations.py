"""Parses and renders grounding and citation metadata. Gemini counts bytes of a part, the IR characters."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.names import OWN, count, listed
from wireglot_core.dialects.google_shared import WEB_SOURCES_ONLY, ByteOffsets
from wireglot_core.dialects.unknown_fields import is_hollow
from wireglot_core.ir.content import Citation, Extra, TokenLogprob
from wireglot_core.ir.loss import Loss, losses_of_extra

GROUNDING = "groundingMetadata."
"""Prefix of a key in a response's extra: grounding metadata other than its sources."""

# Characters of addresses, titles and quotes that the citations of one answer repeat: Gemini names a source by
# a number, other dialects write it out for each place. Citations after that have no source: a loss.
MAX_CITED_CHARACTERS: Final = 4 * 1024 * 1024

_SPANS = frozenset({"groundingChunks", "groundingSupports"})
_SOURCE = frozenset({"uri", "title", "domain"})
_SOURCES = ("web", "retrievedContext", "retrieved_context", "maps", "image")


class Span:
    """One citation and the part it is about: an index into the content's parts."""

    __slots__ = ("citation", "end", "part", "start")

    def __init__(self, part: int, start: int | None, end: int | None, citation: Citation) -> None:
        self.part = part
        self.start = start
        self.end = end
        self.citation = citation

    def on(self, text: ByteOffsets, before: int = 0) -> Citation:
        """The citation with its byte offsets converted to character offsets of `text`, which follows `before`
        bytes of other text. Servers count from the start of the answer, or of the part: the quoted text
        decides which. A span outside `text` is not reported."""
        cited = self.citation
        if self.end is None:
            return cited
        first, last = self.start or 0, self.end
        if before:
            if not text.is_at(cited.quote, first, last) if cited.quote else last > text.size:
                first, last = first - before, last - before
            if first < 0 or last > text.size:
                return cited
        start, end = text.character(first), text.character(last)
        return Citation(
            cited.url,
            cited.title,
            quote=cited.quote,
            start=start,
            end=end,
            extra=cited.extra,
            native=cited.native,
        )


def read_spans(candidate: dict[str, Any]) -> list[Span]:
    """The sources of a candidate. Malformed metadata is ignored, so that the answer is not lost."""
    spans: list[Span] = []
    grounding = candidate.get("groundingMetadata")
    if type(grounding) is dict:
        spans += _grounding(grounding)
    metadata = candidate.get("citationMetadata")
    if type(metadata) is dict:
        given = names.CITATIONS.camel(metadata)
        for item in listed(given.get("citations") or given.get("citationSources")):
            if type(item) is dict:
                spans.append(_citation(names.CITATION.camel(item)))
    return spans


def add_to(candidate: dict[str, Any], key: str, value: Any) -> None:
    """Sets a field of a streamed candidate, joined with that of earlier events: sources may come with one
    event, and the spans they support with a later one."""
    if key in ("groundingMetadata", "citationMetadata") and type(value) is dict:
        before = candidate.get(key)
        if type(before) is dict:
            before.update(value)
            return
        value = dict(value)
    candidate[key] = value


def unreported_grounding(candidate: dict[str, Any]) -> dict[str, Any]:
    """Grounding metadata other than the sources of the text, by path: queries, the search box to show,
    confidence scores, what was retrieved."""
    value = candidate.get("groundingMetadata")
    if type(value) is not dict:
        return {}
    given = names.GROUNDING.camel(value)
    rest = {key: item for key, item in given.items() if key not in _SPANS and not is_hollow(item)}
    if any(
        type(item) is dict and (item.get("confidenceScores") or item.get("confidence_scores"))
        for item in listed(given.get("groundingSupports"))
    ):
        rest["groundingSupports.confidenceScores"] = True
    for chunk in listed(given.get("groundingChunks")):
        for kind, source in chunk.items() if type(chunk) is dict else ():
            for key, item in source.items() if type(source) is dict else ():
                if key not in _SOURCE and not is_hollow(item):
                    rest[f"groundingChunks.{kind}.{key}"] = True
    return {f"{GROUNDING}{key}": item for key, item in rest.items()}


def beside_grounding(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields except those inside the grounding metadata, which is sent back unchanged."""
    if any(key.startswith(GROUNDING) for key in fields):
        return {key: item for key, item in fields.items() if not key.startswith(GROUNDING)}
    return fields


def _citation(item: dict[str, Any]) -> Span:
    rest = {key: item[key] for key in ("license", "publicationDate") if item.get(key)}
    extra = Extra(OWN, rest) if rest else None
    end = item.get("endIndex")
    start = count(item.get("startIndex"))
    return Span(
        0,
        start,
        None if end is None else count(end),
        Citation(_text(item, "uri"), _text(item, "title"), extra=extra),
    )


def _grounding(value: dict[str, Any]) -> list[Span]:
    given = names.GROUNDING.camel(value)
    sources = [_source(chunk) for chunk in listed(given.get("groundingChunks"))]
    spans: list[Span] = []
    room = MAX_CITED_CHARACTERS
    for item in listed(given.get("groundingSupports")):
        if type(item) is not dict:
            continue
        support = names.SUPPORT.camel(item)
        segment = support.get("segment")
        segment = names.SEGMENT.camel(segment) if type(segment) is dict else {}
        for index in listed(support.get("groundingChunkIndices")):
            # A source that is not among the chunks has no address: it is reported as a loss.
            known = type(index) is int and 0 <= index < len(sources)
            url, title = sources[index] if known else ("", "")
            quote = _text(segment, "text")
            room -= len(url) + len(title) + len(quote)
            if room < 0:
                url = title = quote = ""
            end = segment.get("endIndex")
            start, stop = count(segment.get("startIndex")), None if end is None else count(end)
            spans.append(
                Span(
                    count(segment.get("partIndex")),
                    start,
                    stop,
                    Citation(url, title, quote),
                )
            )
    if not any(span.citation.url for span in spans):
        spans += [Span(-1, None, None, Citation(url, title)) for url, title in sources if url]
    return spans


def _source(chunk: Any) -> tuple[str, str]:
    if type(chunk) is dict:
        for kind in _SOURCES:
            source = chunk.get(kind)
            if type(source) is dict:
                return _text(source, "uri"), _text(source, "title")
    return "", ""


def _text(value: dict[str, Any], key: str) -> str:
    item = value.get(key)
    return item if type(item) is str else ""


def grounding_metadata(
    cited: list[tuple[int, str, tuple[Citation, ...], str]], out: list[Loss]
) -> dict[str, Any]:
    """Grounding for (part index, text, citations, path) of each cited part; {} if none can be written."""
    chunks: list[dict[str, Any]] = []
    places: dict[tuple[str, str], int] = {}
    supports: list[dict[str, Any]] = []
    for part, text, citations, path in cited:
        offsets = ByteOffsets(text)
        for index, citation in enumerate(citations):
            place = f"{path}.citations[{index}]"
            if citation.native is not None or not citation.url:
                out.append(WEB_SOURCES_ONLY.at(place))
                continue
            losses_of_extra(citation.extra, OWN, place, out, "citations")
            source = (citation.url, citation.title)
            if source not in places:
                places[source] = len(chunks)
                web = (
                    {"uri": citation.url, "title": citation.title}
                    if citation.title
                    else {"uri": citation.url}
                )
                chunks.append({"web": web})
            supports.append(
                {
                    "segment": _segment(part, text, offsets, citation, place, out),
                    "groundingChunkIndices": [places[source]],
                }
            )
    return {"groundingChunks": chunks, "groundingSupports": supports} if chunks else {}


def _segment(
    part: int, text: str, offsets: ByteOffsets, citation: Citation, path: str, out: list[Loss]
) -> dict[str, Any]:
    start = citation.start if citation.start is not None else 0
    end = citation.end if citation.end is not None else len(text)
    segment: dict[str, Any] = {"partIndex": part} if part else {}
    segment["startIndex"] = offsets.byte(start)
    segment["endIndex"] = offsets.byte(end)
    if citation.quote:
        segment["text"] = citation.quote
    exact = citation.start is not None and citation.end is not None and 0 <= start <= end <= len(text)
    if not exact or (citation.extra is not None and citation.extra.fields):
        out.append(
            Loss(path, "citations", "approximated", "a source is identified by bytes of the answer only")
        )
    return segment


def read_logprobs(value: Any) -> tuple[TokenLogprob, ...]:
    if type(value) is not dict:
        return ()
    given = names.LOGPROBS.camel(value)
    tops = listed(given.get("topCandidates"))
    tokens: list[TokenLogprob] = []
    for index, item in enumerate(listed(given.get("chosenCandidates"))):
        token, logprob = _logprob(item)
        ranked = tops[index].get("candidates") if index < len(tops) and type(tops[index]) is dict else None
        tokens.append(TokenLogprob(token, logprob, tuple(_logprob(entry) for entry in listed(ranked))))
    return tuple(tokens)


def _logprob(value: Any) -> tuple[str, float]:
    if type(value) is not dict:
        return "", 0.0
    given = names.LOGPROB.camel(value)
    number = given.get("logProbability")
    return _text(given, "token"), float(number) if type(number) is int or type(number) is float else 0.0


def write_logprobs(tokens: tuple[TokenLogprob, ...]) -> dict[str, Any]:
    written: dict[str, Any] = {
        "chosenCandidates": [{"token": token.token, "logProbability": token.logprob} for token in tokens]
    }
    if any(token.top for token in tokens):
        written["topCandidates"] = [
            {"candidates": [{"token": text, "logProbability": logprob} for text, logprob in token.top]}
            for token in tokens
        ]
    return written
