"""A document of one dialect in all others: nothing is sent, and nothing is lost in silence."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gateway.inspector.inspector_kit import Visitor
from tests.tiers import rows
from wireglot.gateway.inspector.playground import asked_of, translated
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.dialects.registry import NAMES
from wireglot_core.translate import StreamTranslator, translate_request, translate_response
from wireglot_core.wire.json import decode

FIXTURES = Path("tests/fixtures")
FOLDERS = {"request": "requests", "answer": "responses", "stream": "streams"}
TRANSLATE = "/inspector/api/translate"


def text_of(dialect: str, kind: str) -> str:
    folder = FIXTURES / dialect / FOLDERS[kind]
    chosen = sorted(folder.iterdir())
    liked = [path for path in chosen if "plain" in path.name or path.stem in ("text", "turn")]
    return (liked or chosen)[0].read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def visitor():
    """Of a gateway without any provider."""
    with LiveGateway("[providers]\ndiscover = false\n") as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        yield visitor


@rows("kind", FOLDERS)
@rows("dialect", NAMES)
def test_a_document_is_reported_in_all_other_dialects(visitor, dialect, kind):
    text = text_of(dialect, kind)
    reported = visitor.post(TRANSLATE, {"dialect": dialect, "kind": kind, "text": text}).json()
    assert reported["problem"] is None
    assert set(reported["dialects"]) == set(NAMES) - {dialect}
    for name, there in reported["dialects"].items():
        assert "error" not in there, (name, there)
        if kind == "stream":
            stream = StreamTranslator(source=dialect, target=name)
            assert there["text"].encode() == stream.feed(text.encode()) + stream.close()
            losses = stream.losses
        else:
            work = translate_request if kind == "request" else translate_response
            rendered = work(text, source=dialect, target=name)
            assert json.loads(there["text"]) == rendered.value
            assert there["text"].startswith('{\n  "')
            losses = list(rendered.losses)
        assert len(there["losses"]) == len(losses)
        for loss in there["losses"]:
            assert loss.keys() - ({"line"} if kind == "stream" else set()) == {
                "path", "feature", "action", "detail", "grade", "document", "pointer", "reason"
            }  # fmt: skip


def test_a_loss_of_a_stream_tells_the_line_of_the_event_that_brought_it(visitor):
    text = (FIXTURES / "anthropic" / "streams" / "unknown_events.sse").read_text(encoding="utf-8")
    asked = {"dialect": "anthropic", "kind": "stream", "text": text}
    there = visitor.post(TRANSLATE, asked).json()["dialects"]
    lines = text.split("\n")
    for name in ("openai-chat", "openai-responses", "gemini"):
        reported = {loss["feature"]: lines[loss["line"] - 1] for loss in there[name]["losses"]}
        moved = {"content.position"} if name == "openai-chat" else set()
        assert reported.keys() == {"foreign_part", "foreign_event"} | moved
        assert reported["foreign_event"].startswith('data: {"type":"x_progress"')
        # What it is, is known when it ends.
        assert reported["foreign_part"] == 'data: {"type":"content_block_stop","index":1}'


def test_lines_are_counted_as_editors_count_them(visitor):
    """And what is known at the end only stands at the last event."""
    lines = [
        'data: {"responseId":"r","candidates":[{"content":{"role":"model","parts":[{"text":"a\u2028b\u0085c"}]}}]}',
        "",
        'data: {"x":1,"candidates":[{"content":{"parts":[{"text":"."}]},"finishReason":"STOP"}]}',
    ]
    for end in ("\n", "\r\n"):
        asked = {"dialect": "gemini", "kind": "stream", "text": end.join([*lines, "", ""])}
        there = visitor.post(TRANSLATE, asked).json()["dialects"]["openai-chat"]
        assert [loss["line"] for loss in there["losses"]] == [3] * len(there["losses"]) != []


def test_a_loss_tells_its_place_twice(visitor):
    body = {
        "model": "m",
        "max_tokens": 5,
        "top_k": 3,
        "messages": [{"role": "user", "content": "x"}],
    }
    asked = {"dialect": "anthropic", "kind": "request", "text": json.dumps(body)}
    there = visitor.post(TRANSLATE, asked).json()["dialects"]["openai-chat"]
    (loss,) = (each for each in there["losses"] if each["path"] == "$.top_k")
    assert (loss["pointer"], loss["grade"], loss["action"]) == ("/top_k", "harmless", "dropped")


def test_the_request_brings_back_what_an_answer_does_not_say(visitor):
    tool = {"name": "look", "input_schema": {"type": "object"}}
    request = {"model": "m", "max_tokens": 9, "tools": [tool], "messages": [{"role": "user", "content": "x"}]}
    asked = {
        "dialect": "openai-chat",
        "kind": "answer",
        "text": text_of("openai-chat", "answer"),
        "request": json.dumps(request),
    }
    reported = visitor.post(TRANSLATE, asked).json()
    assert "error" not in reported["dialects"]["anthropic"]


PROBLEMS = [
    ("request", "", 1, 1, ""),
    ("request", "{", 1, 2, ""),
    ("request", '{"a":\n 1,}', 2, 4, ""),
    ("request", '{"é": "é",\n"b" 1}', 2, 5, ""),
    ("request", "[]", None, None, ""),
    ("request", "3", None, None, ""),
    ("request", '{"model": "m", "messages": 3}', None, None, "/messages"),
    ("request", '{"model": "m", "messages": [{"role": "user", "content": [{"type": "text"}]}]}', None, None,
     "/messages/0/content/0/text"),
    ("request", "[" * 5000, 1, None, ""),
    ("request", '{"a":' * 200 + "1" + "}" * 200, 1, None, ""),
    ("answer", "{}", None, None, "/content"),
    ("answer", "nothing", 1, None, ""),
    ("answer", "[1, 2]", None, None, ""),
    ("stream", "", None, None, ""),
    ("stream", "hello", None, None, ""),
    ("stream", 'data: {"type": "ping"}\n\ndata: {"type": oops}\n\n', 3, 16, ""),
    ("stream", "event: x\n\n", None, None, ""),
]  # fmt: skip


@rows(("kind", "text", "line", "column", "pointer"), PROBLEMS)
def test_what_is_wrong_is_reported_with_its_place(visitor, kind, text, line, column, pointer):
    answer = visitor.post(TRANSLATE, {"dialect": "anthropic", "kind": kind, "text": text})
    assert answer.status == 200
    reported = answer.json()
    problem = reported["problem"]
    assert problem["message"]
    assert reported["dialects"] == {}
    assert problem.get("line") == line
    if column is not None:
        assert problem["column"] == column
    assert problem["pointer"] == pointer


BAD = [
    ({}, "dialect"),
    ({"dialect": "klingon", "kind": "request", "text": "{}"}, "dialect"),
    ({"dialect": "anthropic", "kind": "poem", "text": "{}"}, "kind"),
    ({"dialect": "anthropic", "kind": "request", "text": 5}, "text"),
    ({"dialect": "anthropic", "kind": "request", "text": {}}, "text"),
    ({"dialect": ["anthropic"], "kind": "request", "text": "{}"}, "dialect"),
    ({"dialect": "anthropic", "kind": None, "text": "{}"}, "kind"),
    ({"dialect": "anthropic", "kind": "request", "text": "{}", "extra": 1}, "extra"),
    ({"dialect": "anthropic", "kind": "request", "text": "x" * (1024 * 1024 + 1)}, "text"),
    ({"dialect": "anthropic", "kind": "answer", "text": "{}", "model": 7}, "model"),
    ({"dialect": "anthropic", "kind": "answer", "text": "{}", "request": "{"}, "request"),
    ({"dialect": "anthropic", "kind": "answer", "text": "{}", "request": "[]"}, "request"),
]


@rows(("document", "field"), BAD)
def test_a_bad_question_names_its_field(visitor, document, field):
    answer = visitor.post(TRANSLATE, document)
    assert answer.status == 400
    assert answer.json()["error"]["param"] == field


@rows("body", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 10_000])
def test_a_body_that_is_no_question_is_refused(visitor, body):
    assert visitor.post(TRANSLATE, body).status == 400


def test_half_a_letter_does_no_harm(visitor):
    text = '{"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "\\ud83d"}]}'
    body = json.dumps({"dialect": "anthropic", "kind": "request", "text": text}).encode()
    assert visitor.post(TRANSLATE, body).json()["problem"] is None
    raw = b'{"dialect": "anthropic", "kind": "request", "text": "\\ud83d"}'
    assert visitor.post(TRANSLATE, raw).json()["problem"] is not None


def test_many_large_documents_at_once_are_answered_or_asked_to_come_back(visitor):
    turns = [
        {"role": ("user", "assistant")[number % 2], "content": f"turn {number}"} for number in range(1001)
    ]
    asked = {
        "dialect": "openai-chat",
        "kind": "request",
        "text": json.dumps({"model": "m", "messages": turns}),
    }
    with ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda _: visitor.post(TRANSLATE, asked), range(16)))
    assert {answer.status for answer in answers} <= {200, 503}
    assert any(answer.status == 200 for answer in answers)
    assert visitor.post(TRANSLATE, asked).status == 200, "the way is free again"


@pytest.mark.whole
def test_every_fixture_can_be_played_with():
    for dialect in NAMES:
        for kind, folder in FOLDERS.items():
            for path in sorted((FIXTURES / dialect / folder).iterdir()):
                text = path.read_text(encoding="utf-8")
                reported = translated(asked_of({"dialect": dialect, "kind": kind, "text": text}, 1 << 20))
                assert reported["problem"] is None, path
                for name, there in reported["dialects"].items():
                    if kind != "stream" and "error" not in there:
                        assert isinstance(decode(there["text"]), dict), (path, name)


@rows(
    ("text", "message"),
    [
        ("", "expected server-sent events: lines that begin with data:"),
        ("data: {}\n\ndata: [DONE]\n\n", "the upstream stream ended before it was complete"),
        ("hello", "expected server-sent events: lines that begin with data:"),
    ],
)
def test_what_is_no_stream_is_reported(text, message):
    reported = translated(asked_of({"dialect": "openai-chat", "kind": "stream", "text": text}, 1 << 20))
    assert reported["problem"]["message"] == message
    assert reported["dialects"] == {}
