"""Small things that two dialects have, or only one: carried where there is a place, else declared."""

import json
from typing import Any

import pytest

from tests.tiers import rows
from wireglot_core import StreamTranslator, translate_request, translate_response
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, dialect_name
from wireglot_core.ir.loss import Loss

ASK: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "?"}]},
    "openai-chat": {"model": "m", "messages": [{"role": "user", "content": "?"}]},
    "openai-responses": {"model": "m", "input": "?"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "?"}]}]},
}
NEAR = {"city": "Utrecht", "country": "NL"}
SEARCH: dict[str, dict[str, Any]] = {
    "anthropic": {
        "tools": [
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "max_uses": 3,
                "allowed_domains": ["example.org"],
                "user_location": {"type": "approximate", **NEAR},
            }
        ]
    },
    "openai-responses": {
        "tools": [
            {
                "type": "web_search",
                "filters": {"allowed_domains": ["example.org"]},
                "user_location": {"type": "approximate", **NEAR},
                "search_context_size": "low",
            }
        ]
    },
    "openai-chat": {
        "web_search_options": {
            "search_context_size": "low",
            "user_location": {"type": "approximate", "approximate": NEAR},
        }
    },
}


def sent(source: str, target: str, **more: Any) -> tuple[dict[str, Any], list[Loss]]:
    done = translate_request(
        {**ASK[source], **more}, source=dialect_name(source), target=dialect_name(target), model="m"
    )
    return done.value, list(done.losses)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (
            "anthropic",
            "openai-responses",
            {
                "type": "web_search",
                "filters": {"allowed_domains": ["example.org"]},
                "user_location": {"type": "approximate", **NEAR},
            },
        ),
        (
            "openai-responses",
            "anthropic",
            {
                "type": "web_search_20250305",
                "name": "web_search",
                "allowed_domains": ["example.org"],
                "user_location": {"type": "approximate", **NEAR},
            },
        ),
        (
            "openai-chat",
            "openai-responses",
            {
                "type": "web_search",
                "user_location": {"type": "approximate", **NEAR},
                "search_context_size": "low",
            },
        ),
    ],
)
def test_options_of_a_web_search_that_both_sides_have_are_carried(source, target, expected):
    """[X17] Domains, the user's place, how often, how much."""
    body, _ = sent(source, target, **SEARCH[source])
    assert body["tools"] == [expected]


def test_options_reach_chat_in_its_own_form():
    """[X17] ... which nests the place once more."""
    asked = dialect("openai-responses").parse_request(
        {**ASK["openai-responses"], **SEARCH["openai-responses"]}, Context()
    )
    body = dialect("openai-chat").render_request(asked, Context()).value
    assert body["web_search_options"] == SEARCH["openai-chat"]["web_search_options"]


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("anthropic", "openai-responses", {"max_uses"}),
        ("anthropic", "gemini", {"max_uses", "allowed_domains", "location"}),
        ("openai-responses", "anthropic", {"context_size"}),
        ("openai-chat", "gemini", {"location", "context_size"}),
    ],
)
def test_an_option_without_a_place_is_declared_by_its_name(source, target, options):
    """[X11] Each one, not the tool as a whole."""
    _, losses = sent(source, target, **SEARCH[source])
    reported = {loss.detail.partition(" of ")[0] for loss in losses if loss.feature == "hosted_tool"}
    assert options <= reported


def test_an_option_that_only_one_has_is_declared():
    """[X11] A time range of Google's."""
    tools = [{"googleSearch": {"timeRangeFilter": {"startTime": "2025-01-01T00:00:00Z"}}}]
    _, losses = sent("gemini", "anthropic", tools=tools)
    assert any("timeRangeFilter" in loss.detail for loss in losses)


@pytest.mark.parametrize("target", ["anthropic", "gemini"])
def test_the_name_of_a_format_is_declared_where_formats_have_none(target):
    """[X11] json_schema name."""
    schema = {"type": "json_schema", "name": "verdict", "schema": {"type": "object"}}
    _, losses = sent("openai-responses", target, text={"format": schema})
    assert [loss for loss in losses if loss.detail == "a format has no name"]
    _, losses = sent("openai-responses", "openai-chat", text={"format": schema})
    assert not [loss for loss in losses if loss.feature == "output_format"]


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_what_is_said_of_a_namespace_is_declared(target):
    """[X11] namespace description."""
    member = {"type": "function", "name": "open", "parameters": {"type": "object", "properties": {}}}
    group = {"type": "namespace", "name": "files", "description": "All about files.", "tools": [member]}
    body, losses = sent("openai-responses", "openai-responses", tools=[group])
    assert body["tools"] == [group]
    _, losses = sent("openai-responses", target, tools=[group])
    assert [loss for loss in losses if loss.detail.startswith("description: ")]


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_what_else_an_answer_should_include_is_declared(target):
    """[X11] `include` beside what everybody gets."""
    _, losses = sent("openai-responses", target, include=["reasoning.encrypted_content"])
    assert not [loss for loss in losses if "include" in loss.path]
    _, losses = sent("openai-responses", target, include=["web_search_call.action.sources"])
    assert [loss for loss in losses if "include" in loss.path]


GROUNDED: dict[str, Any] = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "It rains."}]},
            "finishReason": "STOP",
            "groundingMetadata": {
                "webSearchQueries": ["weather"],
                "searchEntryPoint": {"renderedContent": "<b>"},
                "groundingChunks": [
                    {"retrievedContext": {"uri": "https://example.org", "title": "W", "text": "Rain."}}
                ],
                "groundingSupports": [
                    {"segment": {"endIndex": 9}, "groundingChunkIndices": [0], "confidenceScores": [0.5]}
                ],
            },
        }
    ],
    "modelVersion": "m",
    "responseId": "r",
}


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai-responses"])
def test_what_grounding_says_beside_its_sources_is_declared(target):
    """[X11] Queries, search entry point, retrieved context, confidence."""
    losses = translate_response(GROUNDED, source="gemini", target=target).losses
    text = " ".join(f"{loss.path} {loss.detail}" for loss in losses)
    for name in ("webSearchQueries", "searchEntryPoint", "retrievedContext.text", "confidenceScores"):
        assert name.rpartition(".")[2] in text, name


def test_grounding_comes_back_to_its_own_dialect_as_it_was():
    """[X11] ... and nothing of it twice."""
    same = translate_response(GROUNDED, source="gemini", target="gemini")
    assert same.value == GROUNDED
    assert same.losses == ()


@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "gemini"])
def test_two_fields_without_a_place_are_two_losses(target):
    """[X11] They share a place in the answer, and are distinguished by name."""
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [],
        "x_one": "a",
        "x_two": "b",
    }
    losses = translate_response(body, source="openai-responses", target=target).losses
    text = " ".join(f"{loss.path} {loss.detail}" for loss in losses if loss.feature == "response.extra")
    assert "x_one" in text
    assert "x_two" in text


@rows("named", [{}, {"document_name": "a.pdf"}], ids=["bare", "named"])
@rows(
    ("target", "where"), [("anthropic", "source"), ("openai-responses", "file_url"), ("gemini", "fileData")]
)
def test_documents_by_address_of_mistral_are_documents(target, where, named):
    """[X17] `document_url` is carried where documents have addresses, and comes back as it was."""
    part = {"type": "document_url", "document_url": "https://example.org/a.pdf", **named}
    messages = [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}]
    body, _ = sent("openai-chat", target, messages=messages)
    assert where in str(body)
    assert "https://example.org/a.pdf" in str(body)
    same, losses = sent("openai-chat", "openai-chat", messages=messages)
    assert same["messages"] == messages
    assert losses == []


FUNCTION = {"name": "t", "input_schema": {"type": "object"}}


@rows("tools", [[], [FUNCTION], [{"type": "novelty_1", "name": "n"}]])
@rows("target", ["openai-chat", "openai-responses", "gemini"])
@rows("kind", ["lottery", "auto", "none"])
def test_fields_of_a_choice_that_nobody_else_knows_are_declared(kind, target, tools):
    """Also where no tool is left that could be chosen."""
    _, losses = sent("anthropic", target, tools=tools, tool_choice={"type": kind, "odds": 3})
    reported = [loss.path for loss in losses]
    whole = [loss.action for loss in losses if loss.path == "$.tool_choice"]
    assert "$.tool_choice.odds" in reported or whole == ["dropped"]
    assert kind != "lottery" or "$.tool_choice.type" in reported or whole == ["dropped"]


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_how_long_a_whole_prompt_is_kept_is_carried_or_declared(target):
    said = {
        ttl: sent("anthropic", target, cache_control={"type": "ephemeral", **ttl_field})
        for ttl, ttl_field in {"": {}, "5m": {"ttl": "5m"}, "1h": {"ttl": "1h"}}.items()
    }
    assert said[""] != said["1h"]
    assert said[""] != said["5m"]


@pytest.mark.parametrize("ttl", [{}, {"ttl": "30m"}, {"ttl": "24h"}])
def test_a_cache_breakpoint_on_a_chat_tool_or_call_stays_there(ttl):
    mark = {"prompt_cache_breakpoint": {"mode": "explicit", **ttl}}
    tools = [{"type": "function", "function": {"name": "t"}, **mark}]
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}, **mark}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "!"},
    ]
    body, losses = sent("openai-chat", "openai-chat", tools=tools, messages=messages)
    assert body["tools"] == tools
    assert body["messages"] == messages
    assert losses == []
    body, _ = sent("openai-chat", "anthropic", tools=tools, messages=messages)
    assert "cache_control" in body["tools"][0]
    assert "cache_control" in body["messages"][1]["content"][0]


@pytest.mark.parametrize("target", ["anthropic", "openai-responses", "gemini"])
def test_log_probabilities_of_a_streamed_refusal_are_carried_or_declared(target):
    token = {"token": "No", "logprob": -0.5, "bytes": [78, 111], "top_logprobs": []}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    scored = {"content": None, "refusal": [token]}
    reported, carried = [], []
    for logprobs in (scored, None):
        translator = StreamTranslator(source="openai-chat", target=target)
        out = b""
        for choice in (
            {"index": 0, "delta": {"refusal": "No"}, "logprobs": logprobs, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        ):
            out += translator.feed(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n")
        out += translator.feed(b"data: [DONE]\n\n") + translator.close()
        reported.append([loss.feature for loss in translator.losses].count("logprobs"))
        carried.append(b"-0.5" in out)
    assert [bool(lost) or kept for lost, kept in zip(reported, carried, strict=True)] == [True, False]


def test_the_tier_of_an_answer_is_reported_where_its_reader_would_look():
    """Anthropic's stands beside the usage."""
    answer = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        "service_tier": "novel",
    }
    done = translate_response(answer, source="openai-chat", target="anthropic")
    reported = [loss.path for loss in done.losses if loss.feature == "service_tier"]
    assert reported == ["$.usage.service_tier"]
