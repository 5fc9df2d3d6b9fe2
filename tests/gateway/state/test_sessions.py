"""Conversations held for dialects that know none, and `/v1/sessions`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from msgspec.structs import replace

from tests.gateway.state.responses_kit import ALICE, BOB, Stage, stage_fixtures
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.stores.records import UsageRow

CHAT, MESSAGES, SIMPLE = "/v1/chat/completions", "/v1/messages", "/v1/gemini"
GEMINI = "/v1beta/models/m1:generateContent"
CHAT_TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
    }
]
GEMINI_TOOLS = [{"functionDeclarations": [{"name": "get_weather"}]}]


running, stage = stage_fixtures()


@pytest.fixture(scope="module")
def one() -> Iterator[Stage]:
    with Stage("gemini") as stage:
        yield stage


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m1", "messages": [{"role": "user", "content": text}], **more}


def messages(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m1", "max_tokens": 4000, "messages": [{"role": "user", "content": text}], **more}


def contents(text: str, **more: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def answered(stage: Stage, path: str, body: dict[str, Any], **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, document = stage.ask("POST", path, body, named)
    assert status == 200, document
    return document


def held(stage: Stage, id: str) -> list[str]:
    status, session = stage.ask("GET", f"/v1/sessions/{id}")
    assert status == 200
    return [
        part["text"]
        for item in session["items"]
        if item["type"] == "message"
        for part in item["content"]
        if "text" in part
    ]


def test_a_conversation_goes_through_every_dialect(stage: Stage) -> None:
    """R-Y-32, R-Y-33, R-AH-06, C41: begun in Chat, gone on with in others, ended in the simplified form."""
    name = f"travels-{stage.dialect}"
    answered(stage, CHAT, chat("[[demo:echo]] word-chat.", conversation=name))
    answered(stage, MESSAGES, messages("[[demo:echo]] word-messages.", conversation={"id": name}))
    answered(stage, GEMINI, contents("[[demo:echo]] word-gemini.", conversation=name))
    answered(
        stage,
        "/v1/responses",
        {"model": "m1", "input": "[[demo:echo]] word-responses.", "store": False, "conversation": name},
    )
    answered(stage, SIMPLE, {"model": "m1", "input": "[[demo:echo]] word-simple.", "conversation": name})
    sent = stage.sent_text()
    words = ["word-chat", "word-messages", "word-gemini", "word-responses", "word-simple"]
    places = [sent.index(word) for word in words]
    assert places == sorted(places)
    assert all(sent.count(word) == 2 for word in words[:-1])  # asked and answered
    assert name not in sent
    assert "conversation" not in stage.sent()
    assert [text.split()[-1] for text in held(stage, name)] == [
        f"{word}." for word in words for _ in range(2)
    ]


def test_a_header_names_a_conversation_too(stage: Stage) -> None:
    session = {"x_wireglot_session": f"header-{stage.dialect}"}
    answered(stage, CHAT, chat("first-word"), **session)
    answered(stage, MESSAGES, messages("second-word"), **session)
    assert "first-word" in stage.sent_text()


def test_results_find_their_calls_in_what_is_held(stage: Stage) -> None:
    """R-AF-05, R-U-07: a result that names no call answers the one that waits, and nothing is invented."""
    more = {"conversation": f"tools-{stage.dialect}"}
    asked = "[[demo:tool get_weather]] The weather?"
    first = answered(stage, SIMPLE, {"model": "m1", "input": asked, "tools": GEMINI_TOOLS, **more})
    parts = first["candidates"][0]["content"]["parts"]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["get_weather"]
    result = {"name": "get_weather", "response": {"output": "18 degrees"}}
    body = {"model": "m-results", "tool_results": [result], "tools": GEMINI_TOOLS, **more}
    status, second = stage.ask("POST", SIMPLE, body)
    assert status == 200
    assert "18 degrees" in str(second)
    line = wait_until(lambda: [line for line in stage.gateway.log() if line.get("model") == body["model"]])
    assert "tool_result.pairing" not in str(line)
    call = answered(stage, CHAT, chat(asked, tools=CHAT_TOOLS, **more))["choices"][0]["message"]
    (made,) = call["tool_calls"]
    results = [{"role": "tool", "tool_call_id": made["id"], "content": "20 degrees"}]
    third = answered(stage, CHAT, {"model": "m1", "messages": results, "tools": CHAT_TOOLS, **more})
    assert "20 degrees" in str(third)


def test_thoughts_are_held_with_their_signatures(stage: Stage) -> None:
    """The upstream checks that what it signed comes back unchanged; Chat could not even carry it."""
    more: dict[str, Any] = {"conversation": f"thoughts-{stage.dialect}", "reasoning_effort": "low"}
    asked = "[[demo:strict]] [[demo:think]] [[demo:tool get_weather]] The weather?"
    call = answered(stage, CHAT, chat(asked, tools=CHAT_TOOLS, **more))["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "18 degrees"}]
    last = answered(stage, CHAT, {"model": "m1", "messages": results, "tools": CHAT_TOOLS, **more})
    assert "18 degrees" in str(last)
    marks = {
        "anthropic": '"signature":',
        "gemini": "thoughtSignature",
        "openai-responses": "encrypted_content",
    }
    assert marks.get(stage.dialect, "") in stage.sent_text()


def test_a_request_with_its_own_history_is_taken_at_its_word(one: Stage) -> None:
    more = {"conversation": "own-history"}
    answered(one, CHAT, chat("old-word", **more))
    history = [
        {"role": "system", "content": "rule-1"},
        {"role": "user", "content": "my-word"},
        {"role": "assistant", "content": "my-answer"},
        {"role": "user", "content": "[[demo:echo]] new-word."},
    ]
    answered(one, CHAT, {"model": "m1", "messages": history, **more})
    assert "old-word" not in one.sent_text()
    assert [text.split()[-1] for text in held(one, "own-history")] == [
        "my-word",
        "my-answer",
        "new-word.",
        "new-word.",
    ]
    answered(one, CHAT, chat("then", **more))
    assert "my-answer" in one.sent_text()
    assert "rule-1" not in one.sent_text()  # it comes with each request, or not at all


def test_system_messages_come_with_each_request(one: Stage) -> None:
    more = {"conversation": "systems"}
    for turn in range(3):
        system = [{"role": "system", "content": f"rule-{turn}"}, {"role": "user", "content": f"word-{turn}"}]
        answered(one, CHAT, {"model": "m1", "messages": system, **more})
    sent = one.sent_text()
    assert [f"rule-{turn}" in sent for turn in range(3)] == [False, False, True]
    assert sent.index("word-0") < sent.index("word-1") < sent.index("word-2")


def test_a_clients_own_session_header_only_groups(one: Stage) -> None:
    """Agents send whole histories and side questions under one such id."""
    for name in ("x-claude-code-session-id", "x-session-id", "session-id"):
        session = {name: f"agent-{name}"}
        for text in ("first-word", "second-word"):
            status, _ = one.ask("POST", MESSAGES, messages(text), session)
            assert status == 200
        assert "first-word" not in one.sent_text()
    assert not [document for document in one.stored("conversation") if document.id.startswith("agent-")]


def test_streams_are_held_too(one: Stage) -> None:
    client = anthropic.Anthropic(
        base_url=one.gateway.url,
        api_key=ALICE,
        max_retries=0,
        http_client=anthropic.DefaultHttpxClient(verify=False),
    )
    for text in ("first-word", "second-word"):
        with client.messages.stream(
            model="m1",
            max_tokens=4000,
            messages=[{"role": "user", "content": text}],
            extra_headers={"x-wireglot-session": "streamed"},
        ) as stream:
            assert stream.get_final_text()
    assert "first-word" in one.sent_text()
    assert len(held(one, "streamed")) == 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat("x", conversation="conv_nobody")),
        (MESSAGES, messages("x", conversation="conv_nobody")),
        (SIMPLE, {"model": "m1", "input": "x", "conversation": "conv_nobody"}),
        (GEMINI, contents("x", conversation="conv_nobody")),
    ],
)
def test_an_unknown_id_is_reported_in_the_callers_dialect(
    one: Stage, path: str, body: dict[str, Any]
) -> None:
    status, answer = one.ask("POST", path, body)
    assert status == 404
    error = answer["error"]
    assert "conv_nobody" in error["message"]
    if path == MESSAGES:
        assert error["type"] == "not_found_error"
    elif path == CHAT:
        assert error["code"] == "conversation_not_found"
    else:
        assert error["status"] == "NOT_FOUND"


def test_a_failed_turn_is_not_held(one: Stage) -> None:
    body = chat("[[demo:fail 400]]", conversation="failed-turn")
    assert one.ask("POST", CHAT, body)[0] == 400
    assert not [document for document in one.stored("conversation") if document.id == "failed-turn"]


def test_sessions_are_listed_page_by_page_the_last_used_first() -> None:
    """R-X-06: a caller's own, those that are held and those that only have a name."""
    with Stage("openai-chat") as stage:
        made = stage.alice.conversations.create(metadata={"topic": "x"})
        for number in range(3):
            answered(stage, CHAT, chat("hi", conversation=f"held-{number}"))
            answered(stage, MESSAGES, messages("hi"), x_session_id=f"named-{number}")
        status, _ = stage.ask("POST", CHAT, chat("hi", conversation="of-bob"), key=BOB)
        assert status == 200
        answered(stage, CHAT, chat("again", conversation="held-0"))

        def listing(query: str) -> Any:
            status, page = stage.ask("GET", f"/v1/sessions{query}")
            assert status == 200
            return page

        def all_there() -> bool:
            return sum(int(entry["requests"]) for entry in listing("")["data"]) == 7

        wait_until(all_there)  # the ledger is written beside the answers
        whole = listing("")
        ids = [entry["id"] for entry in whole["data"]]
        assert ids[0] == "held-0"
        assert ids[-1] == made.id
        assert set(ids[1:-1]) == {"held-1", "held-2", "named-0", "named-1", "named-2"}
        assert ids.index("held-2") < ids.index("held-1")
        assert ids.index("named-2") < ids.index("named-1") < ids.index("named-0")
        assert (whole["has_more"], whole["after"]) == (False, None)
        by_id = {entry["id"]: entry for entry in whole["data"]}
        assert by_id["held-0"]["held"]
        assert not by_id["named-0"]["held"]
        assert by_id["held-0"]["requests"] == 2
        assert by_id["named-0"]["tokens"] > 0
        assert by_id["named-0"]["dialects"] == ["anthropic"]
        assert by_id[made.id]["metadata"] == {"topic": "x"}
        seen: list[str] = []
        query = "?limit=2"
        while query:
            page = listing(query)
            seen += [entry["id"] for entry in page["data"]]
            query = f"?limit=2&after={page['after']}" if page["has_more"] else ""
        assert seen == ids
        assert stage.ask("GET", "/v1/sessions?after=x")[0] == 400


def test_a_session_is_shown_and_deleted_by_its_caller_only() -> None:
    """R-X-07, T5"""
    with Stage("openai-chat") as stage:
        answered(stage, CHAT, chat("of alice", conversation="mine"))
        answered(stage, MESSAGES, messages("hi"), x_session_id="named")

        def known() -> bool:
            return all(stage.ask("GET", f"/v1/sessions/{id}")[0] == 200 for id in ("mine", "named"))

        wait_until(known)
        assert held(stage, "mine")[0] == "of alice"
        for method in ("GET", "DELETE"):
            for id in ("mine", "named", "nobody"):
                status, answer = stage.ask(method, f"/v1/sessions/{id}", key=BOB)
                assert (status, answer["error"]["code"]) == (404, "session_not_found")
        for id in ("mine", "named"):
            deleted = {"id": id, "object": "session.deleted", "deleted": True}
            assert stage.ask("DELETE", f"/v1/sessions/{id}") == (200, deleted)
            assert stage.ask("GET", f"/v1/sessions/{id}")[0] == 404
            assert stage.ask("DELETE", f"/v1/sessions/{id}")[0] == 404
        assert not stage.stored("item")
        answered(stage, CHAT, chat("again", conversation="mine"))
        assert "of alice" not in stage.sent_text()


def test_a_deleted_sessions_name_does_not_come_back_with_rows_that_were_under_way() -> None:
    """R-X-07: right after the request, while its row is still on its way to the ledger."""
    with Stage("openai-chat") as stage:
        for number in range(5):
            answered(stage, CHAT, chat("hi", conversation=f"s-{number}"))
            assert stage.ask("DELETE", f"/v1/sessions/s-{number}")[0] == 200
        assert stage.gateway.call(stage.gateway.process.state.ledger.flush(DEADLINE_SECONDS))
        assert stage.ask("GET", "/v1/sessions")[1]["data"] == []


def test_sessions_of_the_same_millisecond_are_all_listed() -> None:
    """Also where those that are held stand elsewhere: they were used when their last answer ended."""
    with Stage("openai-chat") as stage:
        row = UsageRow("", "alice", 1_700_000_000_000, finished=1_700_000_000_001, outcome="ok")
        rows = [replace(row, id=f"r{n}", session=f"named-{n:02}") for n in range(12)]
        older = [replace(row, id="old", session="named-old", started=row.started - 1)]
        for number in range(4):
            answered(stage, CHAT, chat("hi", conversation=f"held-{number}"))
        assert stage.gateway.call(stage.gateway.process.state.ledger.flush(DEADLINE_SECONDS))
        stage.gateway.call(stage.gateway.process.state.engine.ledger.apply(rows + older))
        seen: list[str] = []
        query = "?limit=2"
        while query:
            status, page = stage.ask("GET", f"/v1/sessions{query}")
            assert status == 200
            seen += [entry["id"] for entry in page["data"]]
            query = f"?limit=2&after={page['after']}" if page["has_more"] else ""
        assert seen == [
            *(f"held-{number}" for number in (3, 2, 1, 0)),
            *(f"named-{number:02}" for number in reversed(range(12))),
            "named-old",
        ]
