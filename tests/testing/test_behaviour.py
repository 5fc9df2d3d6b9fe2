"""What the scripted upstream sends for a request and a behaviour, before the connection spoils it."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.tiers import rows
from wireglot.demo.service import Served
from wireglot.testing.scripted_upstream import FAULTS, Behaviour, Recorded
from wireglot.testing.scripted_upstream.behaviour import Fault, answer_for

CHAT = "/v1/chat/completions"
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": CHAT,
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
JSON = [("content-type", "application/json")]


def asked(path: str = CHAT, body: Any = None, *, stream: bool = False, **headers: str) -> Recorded:
    if body is None:
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        body |= {"stream": True} if stream else {}
    place, _, query = path.partition("?")
    return Recorded("POST", place, query, headers, json.dumps(body).encode(), 1)


def served(behaviour: Behaviour, *given: Any, **named: Any) -> Served:
    return answer_for(asked(*given, **named), behaviour)


def fault(name: Fault, *given: Any, after: int | None = None, **named: Any) -> Served:
    return served(Behaviour(fault=name, after=after), *given, **named)


def test_the_sizes_of_faults_have_defaults():
    sizes = {name: Behaviour(fault=name).amount for name in FAULTS if Behaviour(fault=name).amount}
    assert sizes == {"interim-flood": 1000, "huge-headers": 65536, "endless-line": 40 * 1024 * 1024}
    assert Behaviour(fault="endless-line", size=7).amount == 7


@rows(
    "dialect, code",
    [
        ("anthropic", {"type": "rate_limit_error"}),
        ("openai-chat", {"code": "rate_limit_exceeded"}),
        ("openai-responses", {"code": "rate_limit_exceeded"}),
        ("gemini", {"status": "RESOURCE_EXHAUSTED"}),
    ],
)
def test_an_error_has_the_form_of_the_dialect_behind_the_path(dialect, code):
    found = served(Behaviour(error=429, retry_after=3), PATHS[dialect])
    error = json.loads(found.body)["error"]
    assert code.items() <= error.items()
    assert error["message"] == "The scripted upstream was instructed to fail with status 429."
    assert (found.status, dict(found.headers)["retry-after"], found.streams) == (429, "3", False)


def test_an_error_where_nothing_is_has_the_form_of_chat_completions():
    error = json.loads(served(Behaviour(error=500), "/nowhere").body)["error"]
    assert error["message"].endswith("status 500.")
    assert "code" in error


def test_a_body_of_the_tests_own_has_the_headers_that_are_given():
    for behaviour, status, headers, streams in (
        (Behaviour(body=b"x"), 200, JSON, False),
        (Behaviour(body=b"x", status=404, headers=(("a", "b"),)), 404, [("a", "b")], False),
        (Behaviour(pieces=(b"x",)), 200, [("content-type", "text/event-stream")], True),
        (Behaviour(pieces=(b"x",), status=201, headers=(("a", "b"),)), 201, [("a", "b")], True),
    ):
        found = served(behaviour)
        assert (found.status, found.headers, found.streams) == (status, headers, streams)
        assert found.pieces == (b"x",)


def test_documents_that_no_provider_sends():
    page = fault("html")
    assert (page.status, page.headers) == (200, [("content-type", "text/html")])
    assert b"<title>502 Bad Gateway</title>" in page.body
    assert fault("empty") == Served(200, JSON, ())
    assert fault("redirect") == Served(307, [("location", "http://127.0.0.1:9/")], ())
    assert fault("wrong-type").headers == [("content-type", "text/plain")]
    whole = served(Behaviour())
    assert fault("truncated-json").body == whole.body[: len(whole.body) // 2]
    packed = fault("gzip", stream=True)
    assert packed.streams
    assert packed.headers[-1] == ("content-encoding", "gzip")
    assert gzip.decompress(packed.body) == served(Behaviour(), stream=True).body
    assert fault("error-first") == whole, "there is no event in a whole document"


def test_a_web_socket_is_refused_with_the_status_after_which_codex_goes_on():
    for word in ("websocket", "WebSocket"):
        found = served(Behaviour(), "/v1/responses", upgrade=word)
        assert found.status == 426
        assert "WebSockets" in json.loads(found.body)["error"]["message"]
    assert served(Behaviour(), "/v1/chat/completions", upgrade="h2c").status == 200


def test_headers_of_a_test_take_the_place_of_those_of_the_same_name():
    found = served(Behaviour(headers=(("X-More", "1"), ("Content-Type", "a/b"))))
    assert found.headers[-2:] == [("X-More", "1"), ("Content-Type", "a/b")]
    assert "content-type" not in dict(found.headers)
    assert len(found.headers) == len(served(Behaviour()).headers) + 1
    assert json.loads(found.body)["object"] == "chat.completion"


def test_a_whole_document_may_come_for_a_stream():
    for path, body, key in (
        (CHAT, None, "choices"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", CONTENTS, "candidates"),
        ("/v1beta/models/m:streamGenerateContent", CONTENTS, "candidates"),
    ):
        found = fault("json-for-stream", path, body, stream=True)
        assert not found.streams
        assert dict(found.headers)["content-type"] == "application/json"
        assert key in json.loads(found.body)


def events(found: Served) -> list[bytes]:
    return found.body.split(b"\n\n")[:-1]


def test_one_event_of_a_stream_is_cut_or_broken_where_it_is_asked_for():
    whole = served(Behaviour(), stream=True).pieces
    middle = len(whole) // 2
    for after in (None, 0, 1):
        at = middle if after is None else after
        half = fault("half-event", after=after, stream=True).pieces
        assert half == (*whole[:at], whole[at][: len(whole[at]) // 2])
        bad = fault("bad-json", after=after, stream=True).pieces
        assert bad == (*whole[:at], whole[at].replace(b"}", b"", 1), *whole[at + 1 :])
        assert bad[at] != whole[at]
    assert fault("half-event", after=len(whole), stream=True).pieces == whole


def test_an_error_that_comes_first_is_all_that_comes():
    for path, body, begin in (
        ("/v1/messages", None, b"event: error\ndata: "),
        (CHAT, None, b"data: "),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", CONTENTS, b"data: "),
        ("/v1beta/models/m:streamGenerateContent", CONTENTS, b"["),
    ):
        found = fault("error-first", path, body, stream=True)
        assert len(found.pieces) == 1
        assert found.body.startswith(begin)
        assert b"The scripted upstream is overloaded." in found.body


def test_streams_that_end_early_end_as_the_demo_model_ends_them():
    whole = served(Behaviour(), stream=True)
    cut, failed = fault("no-terminal", stream=True), fault("error-midstream", stream=True)
    assert (whole.ending, cut.ending, failed.ending) == ("complete", "cut", "fail")
    assert b"error" in events(failed)[-1]


TIER = {"id": "standard-tier", "name": "Demo", "isDefault": True}


@rows(
    "verb, document",
    [
        (
            "loadCodeAssist",
            {"currentTier": TIER, "allowedTiers": [TIER], "cloudaicompanionProject": "demo"},
        ),
        (
            "onboardUser",
            {"done": True, "response": {"cloudaicompanionProject": {"id": "demo", "name": "demo"}}},
        ),
        ("retrieveUserQuota", {"buckets": []}),
        ("listExperiments", {"experimentIds": [], "flags": []}),
    ],
)
def test_gemini_cli_finds_what_it_asks_before_its_first_turn(verb, document):
    found = served(Behaviour(), f"/v1internal:{verb}", {})
    assert (found.status, found.headers, json.loads(found.body)) == (200, JSON, document)


def test_a_path_without_anything_is_not_found():
    found = served(Behaviour(), "/v1internal:other", {})
    assert found.status == 404
    assert json.loads(found.body)["error"]["message"] == (
        "The scripted upstream has nothing at /v1internal:other"
    )
