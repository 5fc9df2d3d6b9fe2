"""What the driver finds in an upstream's notes: state that did not come back, and old turns that changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clients.memory import Memory, remembered
from clients.run import judged
from clients.seat import Outcome
from clients.servers import UPSTREAMS
from clients.upstream import Exchange

TOOLS: list[dict[str, Any]] = [{"name": "read"}]
ASKED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"role": "user", "content": "go"}],
    "openai-chat": [{"role": "user", "content": "go"}],
    "openai-responses": [{"role": "user", "content": "go"}],
    "gemini": [{"role": "user", "parts": [{"text": "go"}]}],
}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
CALL = {"functionCall": {"name": "read", "args": {}}}
ANSWERED: dict[str, str] = {
    "anthropic": "".join(
        f"event: x\ndata: {json.dumps(event)}\n\n"
        for event in (
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "thinking", "thinking": "", "signature": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "h"},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "thinking_delta", "thinking": "m"},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "signature_delta", "signature": "sig"},
            },
        )
    ),
    "openai-chat": 'data: {"choices":[{"delta":{"reasoning_content":"h"}}]}\n\n'
    'data: {"choices":[{"delta":{"reasoning_content":"m"}}]}\n\ndata: [DONE]\n\n',
    "openai-responses": json.dumps({"output": [ITEM]}),
    "gemini": json.dumps({"candidates": [{"content": {"parts": [{**CALL, "thoughtSignature": "sig"}]}}]}),
}
AGAIN: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "assistant", "content": [THOUGHT, {"type": "tool_use"}]},
        {"role": "user", "content": [{"type": "tool_result"}]},
    ],
    "openai-chat": [
        {"role": "assistant", "reasoning_content": "hm", "tool_calls": []},
        {"role": "tool", "content": "x"},
    ],
    "openai-responses": [ITEM, {"type": "function_call"}, {"type": "function_call_output"}],
    "gemini": [
        {"role": "model", "parts": [{**CALL, "thoughtSignature": "sig"}]},
        {"role": "user", "parts": [{"functionResponse": {}}]},
    ],
}
PLACE = {
    "anthropic": "messages",
    "openai-chat": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}


def exchange(dialect: str, turns: list[dict[str, Any]], **others: Any) -> Exchange:
    body = {"tools": TOOLS, PLACE[dialect]: turns, **others}
    return Exchange(dialect, json.dumps(body).encode(), ANSWERED[dialect].encode())


def loop(dialect: str, *more: dict[str, Any]) -> list[Exchange]:
    return [exchange(dialect, ASKED[dialect]), exchange(dialect, [*ASKED[dialect], *more])]


@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_state_that_comes_back_as_it_was_answered_is_kept(dialect: str) -> None:
    assert remembered(loop(dialect, *AGAIN[dialect])) == Memory(turns=1, thoughts=1)


@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_state_that_was_dropped_or_changed_is_found(dialect: str) -> None:
    for instead in ("", "si", "rs_2"):
        text = json.dumps(AGAIN[dialect])
        for state in ('"hm"', '"sig"', '"enc"'):
            text = text.replace(state, json.dumps(instead))
        assert remembered(loop(dialect, *json.loads(text))).problems == ("turn 2: state of 0 of 1 turns",)


@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_old_turns_and_tools_that_changed_are_found(dialect: str) -> None:
    first, second = loop(dialect, *AGAIN[dialect])
    old = Exchange(dialect, first.asked.replace(b'"go"', b'"went"'), first.answered)
    assert remembered([old, second]).problems == (f"turn 2: {PLACE[dialect]}[0] changed",)
    more = Exchange(dialect, second.asked.replace(b'"read"}]', b'"read"}, {"name": "write"}]', 1), b"{}")
    assert remembered([first, more]).problems == ("turn 2: tools changed",)


def test_a_cache_marker_that_moves_changes_nothing() -> None:
    marked = [{"type": "text", "text": "go", "cache_control": {"type": "ephemeral"}}]
    first = exchange("anthropic", [{"role": "user", "content": marked}])
    assert remembered([first, loop("anthropic", *AGAIN["anthropic"])[1]]).problems == ()


@pytest.mark.parametrize("dialect", UPSTREAMS)
def test_text_that_a_client_moves_to_the_end_is_no_change_of_what_was_said(dialect: str) -> None:
    """OpenClaw 2026.9: in a message of its own, or as a part of the last one where a dialect joins them."""
    field, part = (
        ("parts", {"text": "OWN"}) if dialect == "gemini" else ("content", {"type": "text", "text": "OWN"})
    )
    (asked,) = ASKED[dialect]
    said = asked[field] if isinstance(asked[field], list) else [{"type": "text", "text": asked[field]}]
    second = loop(dialect, *AGAIN[dialect])[1]
    for turns in ([asked, {"role": "user", field: [part]}], [{**asked, field: [*said, part]}]):
        assert remembered([exchange(dialect, turns), second], "OWN").problems == ()
        assert remembered([exchange(dialect, turns), second]).problems != ()
        changed = json.loads(json.dumps(turns).replace('"go"', '"went"'))
        assert remembered([exchange(dialect, changed), second], "OWN").problems != ()


def test_what_offers_no_tools_is_no_loop() -> None:
    title = Exchange("openai-chat", b'{"messages": [{"role": "user", "content": "a title"}]}', b"{}")
    assert remembered([title, *loop("openai-chat", *AGAIN["openai-chat"])]) == Memory(1, 1)


def test_a_client_that_printed_the_word_fails_by_its_upstreams_memory() -> None:
    passed = Outcome(True, 1.0, "")
    assert judged(passed, Memory(5, 5), 5).passed
    assert judged(passed, Memory(4, 4), 5).reason == "4 tool turns instead of 5"
    assert judged(passed, Memory(5, 3), 5).reason == "only 3 of 5 turns thought"
    assert judged(passed, Memory(5, 5, ("turn 2: tools changed",)), 5).reason == "turn 2: tools changed"


def test_the_same_json_in_other_bytes_is_a_change() -> None:
    """[prefix] A cache sees bytes: spaces and the order of keys count."""
    first, second = loop("openai-chat", *AGAIN["openai-chat"])
    spaced = Exchange("openai-chat", second.asked.replace(b'"content": "go"', b'"content":"go"'), b"{}")
    assert remembered([first, spaced]).problems == ("turn 2: messages[0] changed",)
