"""What is reported in words to who does not take it as it is."""

import base64

import pytest

from tests.tiers import rows
from wireglot_core import translate_request
from wireglot_core.ir.content import Media
from wireglot_core.providers.fit.words import document_text

OTHERS = ("openai-chat", "openai-responses", "gemini")
FOUND = {
    "type": "search_result",
    "source": "https://example.org/a",
    "title": "On Alpacas",
    "content": [{"type": "text", "text": "They hum."}, {"type": "text", "text": "They spit."}],
    "citations": {"enabled": True},
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}


def asked(*blocks: dict) -> dict:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}]}


def answered(*blocks: dict) -> dict:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": list(blocks)}
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [CALL]},
            {"role": "user", "content": [result]},
        ],
    }


@rows("body", [asked(FOUND), answered(FOUND)], ids=["said", "found by a tool"])
@rows("target", OTHERS)
def test_search_results_are_text_with_source_and_title(target, body):
    """[X4] A tool result of search results does not arrive empty."""
    sent = translate_request(body, source="anthropic", target=target, model="m")
    for word in ("On Alpacas", "https://example.org/a", "They hum.", "They spit."):
        assert word in str(sent.value)
    assert [loss.action for loss in sent.losses if loss.feature == "foreign_part"] == ["approximated"]


def test_search_results_stay_what_they_are_for_their_own_dialect():
    """[X4] ... where there is a place for them."""
    body = answered(FOUND)
    assert translate_request(body, source="anthropic", target="anthropic").value == body


TEXTS = [
    {"type": "text", "media_type": "text/plain", "data": "a,b\n1,2"},
    *(
        {"type": "base64", "media_type": mime, "data": base64.b64encode(b"a,b\n1,2").decode()}
        for mime in ("text/plain", "text/csv", "text/markdown", "application/json")
    ),
]


@rows("source", TEXTS, ids=lambda source: f"{source['type']} {source['media_type']}")
@rows("place", [asked, answered], ids=["said", "found by a tool"])
def test_a_document_of_text_is_text_where_documents_are_not_taken(place, source):
    """[X5] Text is text: Kimi takes no documents, but it reads."""
    body = place({"type": "document", "source": source, "title": "numbers.csv"})
    sent = translate_request(
        body, source="anthropic", target="openai-chat", provider="kimi", model="kimi-k2.6"
    )
    assert "a,b\\n1,2" in str(sent.value)
    assert "numbers.csv" in str(sent.value)
    assert "left out" not in str(sent.value)
    assert {loss.action for loss in sent.losses if loss.feature == "document"} == {"approximated"}


def test_a_document_that_is_no_text_still_leaves_a_note():
    """[X5] A PDF is none."""
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    body = asked({"type": "document", "source": pdf}, {"type": "text", "text": "?"})
    sent = translate_request(
        body, source="anthropic", target="openai-chat", provider="kimi", model="kimi-k2.6"
    )
    assert "left out" in str(sent.value)


def test_a_plain_text_that_stays_one_is_no_loss():
    """[X24] Nothing changed where text/plain became text/plain."""
    data = "data:text/plain;base64," + base64.b64encode(b"Hello").decode()
    part = {"type": "input_file", "filename": "a.txt", "file_data": data}
    body = {"model": "m", "max_output_tokens": 9, "input": [{"role": "user", "content": [part]}]}
    sent = translate_request(body, source="openai-responses", target="anthropic", model="m")
    assert sent.value["messages"][0]["content"][0]["source"]["data"] == "Hello"
    assert [loss for loss in sent.losses if loss.feature == "document"] == []


def test_media_in_a_gemini_result_have_no_resolution():
    """[X12] `mediaResolution` is no field of `functionResponse.parts`: declared."""
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0=", "detail": "high"}
    body = {
        "model": "m",
        "input": [
            {"role": "user", "content": "?"},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": [picture]},
        ],
    }
    sent = translate_request(body, source="openai-responses", target="gemini", model="gemini-3-pro")
    assert "mediaResolution" not in str(sent.value)
    assert [loss.feature for loss in sent.losses if loss.feature == "image.detail"] == ["image.detail"]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_a_resolution_that_openai_has_no_word_for_is_a_near_one(target):
    """[X12] Gemini's medium is no `detail` of OpenAI's."""
    part = {
        "inlineData": {"mimeType": "image/png", "data": "iVBORw0="},
        "mediaResolution": {"level": "MEDIA_RESOLUTION_MEDIUM"},
    }
    body = {"contents": [{"role": "user", "parts": [part]}]}
    sent = translate_request(body, source="gemini", target=target, model="m")
    assert "'high'" in str(sent.value)
    assert [loss.action for loss in sent.losses if loss.feature == "image.detail"] == ["approximated"]


@rows(
    ("mime", "name", "is_text"),
    [
        ("text/plain", "", True),
        ("text/html; charset=utf-8", "", True),
        (" TEXT/CSV ", "", True),
        ("application/javascript", "", True),
        ("application/json", "", True),
        ("application/json;charset=utf-8", "", True),
        ("application/toml", "", True),
        ("application/x-ndjson", "", True),
        ("application/x-sh", "", True),
        ("application/x-yaml", "", True),
        ("application/xml", "", True),
        ("application/yaml", "", True),
        ("application/pdf", "a.txt", False),
        ("image/svg+xml", "a.xml", False),
        ("", "", False),
        ("", "notes", False),
        ("", "txt", True),
        ("application/octet-stream", "a.pdf", False),
        *(
            (mime, f"a.b.{suffix}", True)
            for mime in ("", "application/octet-stream")
            for suffix in ("csv", "json", "md", "MARKDOWN", "rst", "toml", "tsv", "txt", "xml", "yaml", "yml")
        ),
    ],
)
def test_which_documents_are_texts(mime, name, is_text):
    """By their type; where it says nothing, by the end of their name."""
    words = f"{name}\n\nhello" if name else "hello"
    assert document_text(Media("document", mime, "aGVsbG8=", name=name)) == (words if is_text else None)


def test_what_cannot_be_reported_in_words_is_not():
    assert document_text(Media("document", "text/plain", text="as it is")) == "as it is"
    assert document_text(Media("document", "text/plain", "no base64")) is None
    assert document_text(Media("document", "text/plain", "//79")) is None
    assert document_text(Media("document", "text/plain", "")) is None
    assert document_text(Media("document", "text/plain", url="https://a.example")) is None
    assert document_text(Media("image", "text/plain", "aGVsbG8=")) is None


@rows(("target", "model"), [("openai-chat", "gpt-audio"), ("openai-responses", "some-omni")])
@rows(("mime", "form"), [("audio/flac", ""), ("audio/ogg", ""), ("audio/wav", "wav"), ("audio/mpeg", "mp3")])
def test_sound_in_a_form_that_openai_does_not_take_leaves_a_note(target, model, mime, form):
    sound = {"inlineData": {"mimeType": mime, "data": "AAAA"}}
    body = {"contents": [{"role": "user", "parts": [{"text": "Listen."}, sound]}]}
    out = translate_request(body, source="gemini", target=target, model=model)
    sent = str(out.value)
    assert (f"'format': '{form}'" in sent) is bool(form)
    assert ("[audio left out: this model cannot take it]" in sent) is not bool(form)
    assert ("serious" in {loss.grade for loss in out.losses}) is not bool(form)


def test_a_router_takes_sound_in_more_forms():
    sound = {"inlineData": {"mimeType": "audio/flac", "data": "AAAA"}}
    body = {"contents": [{"role": "user", "parts": [{"text": "Listen."}, sound]}]}
    out = translate_request(body, source="gemini", target="openai-chat", provider="openrouter", model="m")
    assert "'format': 'flac'" in str(out.value)
