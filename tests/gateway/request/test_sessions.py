"""By which name a client means its conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.job import conversation_name, grouping_name
from wireglot.http.application import Head
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import encode
from wireglot_core.wire.splice import Outline


def head(**headers: str) -> Head:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Head("POST", "/v1/messages", "/v1/messages", "", named, "127.0.0.1")


def outline(**body: Any) -> Outline:
    return Outline(encode({"model": "m", **body}))


@rows(
    ("dialect", "headers", "body", "name"),
    [
        ("anthropic", {"x_claude_code_session_id": "cc"}, {}, "cc"),
        ("openai-responses", {"session_id": "codex"}, {"prompt_cache_key": "other"}, "codex"),
        ("gemini", {"x_session_id": "any"}, {}, "any"),
        ("anthropic", {}, {"metadata": {"user_id": '{"device_id": "d", "session_id": "sess-1"}'}}, "sess-1"),
        ("anthropic", {}, {"metadata": {"user_id": "user_a_account_c_session_0123-4567"}}, "0123-4567"),
        ("anthropic", {}, {"metadata": {"session_id": "plain"}}, "plain"),
        ("openai-chat", {}, {"metadata": {"session_id": "plain"}}, "plain"),
        ("openai-chat", {}, {"prompt_cache_key": "thread-7"}, "thread-7"),
        ("openai-responses", {}, {"prompt_cache_key": "thread-7"}, "thread-7"),
        ("openai-chat", {}, {"metadata": {"user_id": "x"}, "prompt_cache_key": "thread-7"}, "thread-7"),
        ("anthropic", {}, {"metadata": {"user_id": "{broken"}}, ""),
        ("openai-chat", {}, {"metadata": 5, "prompt_cache_key": 5}, ""),
        ("openai-chat", {}, {"user": "somebody"}, ""),
        ("gemini", {}, {"prompt_cache_key": "no field of its own"}, ""),
    ],
)
def test_a_clients_own_session_is_found_wherever_it_tells_it(
    dialect: str, headers: dict[str, str], body: dict[str, Any], name: str
) -> None:
    """C41: by header, `metadata.user_id` or `session_id`, `prompt_cache_key`; never by `user`."""
    assert grouping_name(head(**headers), outline(**body), surface(dialect).client) == name


@rows("name", ["..", ".", "a\nb", "x" * 257, "nul\0"])
def test_a_name_that_no_path_could_hold_is_refused(name: str) -> None:
    with pytest.raises(RequestError, match="conversation: expected"):
        conversation_name(head(), outline(conversation=name), "conversation")


def test_a_name_in_the_body_goes_before_the_header() -> None:
    named = head(x_wireglot_session="by-header")
    assert conversation_name(named, outline(conversation={"id": "by-body"}), "conversation") == "by-body"
    assert conversation_name(named, outline(), "conversation") == "by-header"


def test_an_empty_key_names_no_conversation_where_the_dialect_has_no_field() -> None:
    assert conversation_name(head(), outline(**{"": "abc"}), "") == ""
