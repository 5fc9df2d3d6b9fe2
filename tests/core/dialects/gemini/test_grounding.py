"""Sources of a streamed answer: they come at its end, beside parts that they are not about."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.dialects.gemini.test_reader import CONTEXT, chunk, content, read, sse
from wireglot_core import translate_response
from wireglot_core.dialects.gemini import DIALECT, citations
from wireglot_core.dialects.google_shared import ByteOffsets
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Citation, Text, ToolCall
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.stream import fold

SIGNED = {"text": "", "thoughtSignature": "U0lH"}
SOURCE = {"web": {"uri": "https://a.example", "title": "A"}}
NAMED = {"groundingChunks": [SOURCE]}


def grounding(start: int, end: int, quote: str = "") -> dict[str, Any]:
    segment = {"startIndex": start, "endIndex": end, **({"text": quote} if quote else {})}
    return {**NAMED, "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}]}


def grounded(metadata: dict[str, Any], *parts: dict[str, Any]) -> dict[str, Any]:
    last: dict[str, Any] = chunk(*parts, finish="STOP")
    last["candidates"][0]["groundingMetadata"] = metadata
    return last


def cited(*chunks: dict[str, Any]) -> list[tuple[str, tuple[Citation, ...]]]:
    return [(part.text, part.citations) for part in content(*chunks) if isinstance(part, Text)]


def losses(target: str, *chunks: dict[str, Any]) -> list[Loss]:
    writer = dialect(target).stream_writer(CONTEXT, None)
    writer.write(read(sse(*chunks)))
    return writer.losses


@pytest.mark.parametrize("metadata", [grounding(5, 7, "is"), NAMED], ids=["supports", "sources"])
@pytest.mark.parametrize("apart", [False, True], ids=["with the signature", "behind it"])
def test_sources_that_come_with_an_empty_signed_part_are_the_last_text_s(
    metadata: dict[str, Any], apart: bool
) -> None:
    """[X2] Gemini 3 ends its stream with an empty part that carries the signature, and the grounding."""
    ends = [chunk(SIGNED), grounded(metadata)] if apart else [grounded(metadata, SIGNED)]
    place: Any = {"start": 5, "end": 7, "quote": "is"} if metadata is not NAMED else {}
    answer = content(chunk({"text": "Bern "}), chunk({"text": "is"}), *ends)
    assert answer[0] == Text("Bern is", citations=(Citation("https://a.example", "A", **place),))
    assert isinstance(answer[1], Text)
    assert answer[1].signature is not None
    assert answer[1].text == ""


def test_the_text_that_a_signature_closes_is_not_continued() -> None:
    """[X2] Text behind the signed part is a part of its own, as it was."""
    answer = content(chunk({"text": "one"}), chunk(SIGNED), chunk({"text": "two"}), chunk(finish="STOP"))
    assert [part.text for part in answer if isinstance(part, Text)] == ["one", "", "two"]


@pytest.mark.parametrize("quote", ["", "there"])
def test_sources_of_a_signed_text_count_from_the_start_of_the_answer(quote: str) -> None:
    """[X2] The server counts the bytes of all its text; the signed piece is a part of its own here."""
    signed = {"text": "over there", "thoughtSignature": "U0lH"}
    (_, none), (text, (citation,)) = cited(chunk({"text": "Go "}), grounded(grounding(8, 13, quote), signed))
    assert none == ()
    assert citation.start is not None
    assert text[citation.start : citation.end] == "there"


def test_sources_of_what_has_been_reported_already_keep_their_address() -> None:
    """[X2] The first text is over; its sources are the answer's, without a place in the last text."""
    signed = {"text": "over there", "thoughtSignature": "U0lH"}
    (_, (citation,)) = cited(chunk({"text": "Go "}), grounded(grounding(0, 2, "Go"), signed))[1]
    assert citation == Citation("https://a.example", "A", "Go")


def test_sources_without_a_text_are_declared_and_come_back() -> None:
    """[X2] Nothing is lost in silence: with no text to stand on they are a field only Gemini knows."""
    chunks = (
        chunk({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "U0lH"}),
        grounded(NAMED),
    )
    assert [type(part) for part in content(*chunks)] == [ToolCall]
    assert [loss.path for loss in losses("anthropic", *chunks)] == ["$.candidates[0].groundingMetadata"]
    assert losses("gemini", *chunks) == []
    again = DIALECT.stream_writer(CONTEXT, None).write(read(sse(*chunks)))
    assert fold(read(again)).extra == fold(read(sse(*chunks))).extra


def test_a_whole_answer_puts_them_on_its_last_text_with_words() -> None:
    """[X2]"""
    body = grounded(NAMED, {"text": "Bern"}, SIGNED)
    answer = DIALECT.parse_response(body, CONTEXT)
    assert [part.citations for part in answer.content if isinstance(part, Text)] == [
        (Citation("https://a.example", "A"),),
        (),
    ]
    assert DIALECT.render_response(answer, CONTEXT).value == body


def test_a_whole_answer_without_a_text_declares_them() -> None:
    """[X2]"""
    body = grounded(NAMED, {"functionCall": {"id": "a", "name": "f", "args": {}}})
    answer = DIALECT.parse_response(body, CONTEXT)
    assert DIALECT.render_response(answer, CONTEXT).value == body
    reported = dialect("anthropic").render_response(answer, CONTEXT).losses
    assert [loss.path for loss in reported] == ["$.candidates[0].groundingMetadata"]


def test_sources_of_one_event_belong_to_what_a_later_event_says_of_them() -> None:
    supports = {"groundingSupports": grounding(0, 5, "Water")["groundingSupports"]}
    first = chunk({"text": "Water is wet."})
    first["candidates"][0]["groundingMetadata"] = NAMED
    answer = fold(read(sse(first, grounded(supports, {"text": ""}))))
    (text,) = answer.content
    assert isinstance(text, Text)
    assert text.citations == (Citation("https://a.example", "A", "Water", 0, 5),)


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses"])
def test_a_cited_stretch_whose_source_is_missing_is_a_loss(target: DialectName) -> None:
    supports = {"groundingSupports": grounding(0, 5, "Water")["groundingSupports"]}
    body = grounded(supports, {"text": "Water is wet."})
    out = translate_response({**body, "responseId": "r"}, source="gemini", target=target)
    assert [(loss.feature, loss.action) for loss in out.losses if loss.feature == "citations"] == [
        ("citations", "dropped")
    ]


@given(st.text(alphabet="aü€😀\ud800", max_size=40).map(lambda text: text * 90), st.integers(-1, 15000))
def test_places_in_a_text_are_those_of_its_bytes(text: str, place: int) -> None:
    offsets, data = ByteOffsets(text), text.encode("utf-8", "replace")
    assert offsets.size == len(data)
    assert offsets.byte(place) == len(text[: max(place, 0)].encode("utf-8", "replace"))
    assert offsets.character(place) == len(data[: max(place, 0)].decode("utf-8", "ignore"))


@given(
    st.text(alphabet="aü", max_size=6),
    st.integers(0, 12),
    st.integers(0, 12),
    st.text(alphabet="aü", max_size=3),
)
def test_a_quote_is_at_its_place_if_its_bytes_are(text: str, first: int, last: int, quote: str) -> None:
    data = text.encode()
    expected = first <= last <= len(data) and data[first:last] == quote.encode()
    assert ByteOffsets(text).is_at(quote, first, last) is expected


def test_sources_that_are_named_again_and_again_are_written_out_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(citations, "MAX_CITED_CHARACTERS", 3 * len("https://a.net/t"))
    web = {"web": {"uri": "https://a.net/", "title": "t"}}
    support = {"segment": {"endIndex": 2}, "groundingChunkIndices": [0] * 5}
    candidate = {
        "content": {"role": "model", "parts": [{"text": "hello"}]},
        "finishReason": "STOP",
        "groundingMetadata": {"groundingChunks": [web], "groundingSupports": [support]},
    }
    made = translate_response({"candidates": [candidate]}, source="gemini", target="openai-chat")
    annotations = made.value["choices"][0]["message"]["annotations"]
    assert [each["url_citation"]["url"] for each in annotations] == ["https://a.net/"] * 3
    assert "citations" in [loss.feature for loss in made.losses]
