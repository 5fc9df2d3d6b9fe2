"""Searches that an upstream runs itself look to every client like those of its own vendor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import types

import wireglot
from tests.gateway.hosted.hosted_kit import HostedStage
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode, encode_text

TEXT = "Die Höhe ist 324 m."
URL = "https://example.com/turm"
ANSWERS: dict[str, Any] = {
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m1",
        "content": [
            {
                "type": "server_tool_use",
                "id": "srvtoolu_01",
                "name": "web_search",
                "input": {"query": "turm"},
            },
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_01",
                "content": [
                    {
                        "type": "web_search_result",
                        "url": URL,
                        "title": "Turm",
                        "encrypted_content": "EqgfCioI",
                        "page_age": None,
                    }
                ],
            },
            {
                "type": "text",
                "text": TEXT,
                "citations": [
                    {
                        "type": "web_search_result_location",
                        "url": URL,
                        "title": "Turm",
                        "cited_text": "324 m",
                        "encrypted_index": "Eo8",
                    }
                ],
            },
        ],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 4, "server_tool_use": {"web_search_requests": 1}},
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m1",
        "output": [
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {
                    "type": "search",
                    "query": "turm",
                    "queries": ["turm"],
                    "sources": [{"type": "url", "url": URL}],
                },
            },
            {
                "type": "message",
                "id": "msg_1",
                "status": "completed",
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": TEXT,
                        "annotations": [
                            {
                                "type": "url_citation",
                                "url": URL,
                                "title": "Turm",
                                "start_index": 0,
                                "end_index": 19,
                            }
                        ],
                        "logprobs": [],
                    }
                ],
            },
        ],
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": TEXT}]},
                "finishReason": "STOP",
                "groundingMetadata": {
                    "webSearchQueries": ["turm"],
                    "groundingChunks": [{"web": {"uri": URL, "title": "Turm"}}],
                    "groundingSupports": [
                        {
                            "segment": {"startIndex": 0, "endIndex": 20, "text": TEXT},
                            "groundingChunkIndices": [0],
                        }
                    ],
                },
            }
        ],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7},
        "modelVersion": "m1",
        "responseId": "r1",
    },
}
NATIVE = {"anthropic": "native/m1", "openai-responses": "native-responses/m1", "gemini": "native-gemini/m1"}


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage() as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def script(stage: HostedStage, upstream: str, streamed: bool) -> str:
    """What the upstream answers with, and its name."""
    answer = ANSWERS[upstream]
    if not streamed:
        stage.upstream.next(Behaviour(body=encode(answer)))
    else:
        spoken = dialect(upstream)
        events = list(unfold(spoken.parse_response(answer, Context())))
        data = spoken.stream_writer(Context()).write(events)
        head = (("content-type", "text/event-stream"),)
        stage.upstream.next(Behaviour(headers=head, pieces=(data,)))
    return NATIVE[upstream]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["openai-responses", "gemini"])
def test_anthropic_clients_see_blocks_and_a_counter(
    stage: HostedStage, upstream: str, streamed: bool
) -> None:
    """Claude Code says "Did 0 searches" without them."""
    model = script(stage, upstream, streamed)
    question = {"role": "user", "content": "Wie hoch?"}
    message = stage.ask_claude(model, streamed, [question])
    blocks = {block.type: block for block in message.content}
    assert blocks["server_tool_use"].input == {"query": "turm"}
    result = blocks["web_search_tool_result"]
    assert result.tool_use_id == blocks["server_tool_use"].id
    assert [hit.url for hit in result.content] == [URL]
    assert [cited.url for cited in blocks["text"].citations] == [URL]
    assert message.usage.server_tool_use.web_search_requests == 1
    if not streamed:
        assert [block.type for block in message.content][-1] == "text"
    # With the next turn its provider gets back its own, and nothing that it did not write.
    turns = [
        question,
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": "Danke."},
    ]
    script(stage, upstream, streamed)
    stage.ask_claude(model, streamed, turns)
    sent = encode_text(stage.upstream.requests[-1].json)
    assert "srvtoolu_" not in sent
    assert "call_wn" not in sent
    assert ('"ws_1"' in sent) == (upstream == "openai-responses")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["anthropic", "gemini"])
def test_responses_clients_see_an_item_and_a_counter(
    stage: HostedStage, upstream: str, streamed: bool
) -> None:
    asked: dict[str, Any] = {
        "model": script(stage, upstream, streamed),
        "input": "Wie hoch?",
        "tools": [{"type": "web_search"}],
        "store": False,
    }
    if streamed:
        with stage.gpt.responses.stream(**asked) as stream:
            response: Any = stream.get_final_response()
    else:
        response = stage.gpt.responses.create(**asked)
    items = {item.type: item for item in response.output}
    call = items["web_search_call"]
    assert (call.status, call.action.query) == ("completed", "turm")
    assert [source.url for source in call.action.sources] == [URL]
    (text,) = items["message"].content
    assert [(note.url, text.text[note.start_index : note.end_index]) for note in text.annotations] == [
        (URL, TEXT)
    ]
    assert response.tool_usage.web_search.num_requests == 1


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", ["anthropic", "openai-responses"])
def test_gemini_clients_see_grounding(stage: HostedStage, upstream: str, streamed: bool) -> None:
    model = script(stage, upstream, streamed)
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    asked: dict[str, Any] = {"model": model, "contents": "Wie hoch?", "config": config}
    models = stage.gemini.models
    chunks = list(models.generate_content_stream(**asked)) if streamed else [models.generate_content(**asked)]
    last: Any = chunks[-1].candidates
    grounding = last[0].grounding_metadata
    assert grounding.web_search_queries == ["turm"]
    assert [chunk.web.uri for chunk in grounding.grounding_chunks] == [URL]
    assert [each.segment.end_index for each in grounding.grounding_supports] == [len(TEXT.encode())]


def _round(*items: dict[str, Any]) -> Behaviour:
    """An answer of the Responses API that searches once, then says this."""
    search = {**ANSWERS["openai-responses"]["output"][0], "id": "ws_2"}
    return Behaviour(body=encode({**ANSWERS["openai-responses"], "output": [search, *items]}))


@pytest.mark.parametrize("client", ["anthropic", "openai-responses", "gemini"])
def test_searches_of_the_upstream_and_of_the_gateway_add_up(stage: HostedStage, client: str) -> None:
    """The upstream searches itself and cannot fetch pages: it searches in both rounds, the gateway fetches once."""
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "web_fetch",
        "arguments": encode_text({"url": URL}),
        "status": "completed",
    }
    stage.upstream.next(_round(call), _round(ANSWERS["openai-responses"]["output"][1]))
    model, asked = NATIVE["openai-responses"], f"Read {URL}"
    if client == "anthropic":
        message = stage.claude.messages.create(
            model=model,
            max_tokens=100,
            messages=[{"role": "user", "content": asked}],
            tools=[
                {"type": "web_search_20250305", "name": "web_search"},
                {"type": "web_fetch_20250910", "name": "web_fetch"},
            ],
        )
        counts: Any = message.usage.server_tool_use
        assert (counts.web_search_requests, counts.web_fetch_requests) == (2, 1)
        used = message.usage.input_tokens, message.usage.output_tokens
    elif client == "gemini":
        tools = [types.Tool(google_search=types.GoogleSearch()), types.Tool(url_context=types.UrlContext())]
        config = types.GenerateContentConfig(tools=[*tools])
        answer: Any = stage.gemini.models.generate_content(model=model, contents=asked, config=config)
        assert answer.candidates[0].grounding_metadata.web_search_queries == ["turm", "turm"]
        assert len(answer.candidates[0].url_context_metadata.url_metadata) == 1
        used = answer.usage_metadata.prompt_token_count, answer.usage_metadata.candidates_token_count
    else:
        stage.upstream.reset()
        stage.upstream.next(_paused(), _paused(is_last=True))
        response: Any = stage.gpt.responses.create(
            model=NATIVE["anthropic"], input=asked, tools=[{"type": "web_search"}], store=False
        )
        assert response.tool_usage.web_search.num_requests == 2
        used = response.usage.input_tokens, response.usage.output_tokens
    assert used == (6, 8)
    assert len(stage.upstream.requests) == 2


def _paused(*, is_last: bool = False) -> Behaviour:
    stop = "end_turn" if is_last else "pause_turn"
    return Behaviour(body=encode({**ANSWERS["anthropic"], "stop_reason": stop}))


def test_another_provider_gets_what_was_found(stage: HostedStage) -> None:
    question = {"role": "user", "content": "Wie hoch?"}
    message = stage.ask_claude(script(stage, "gemini", False), False, [question])
    turns = [
        question,
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": "Danke."},
    ]
    stage.ask_claude("openai-chat-up/m1", False, turns)
    sent = stage.upstream.requests[-1].json["messages"]
    assert [each["role"] for each in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert URL in sent[2]["content"]


ASKED = {
    "anthropic": {
        "model": "m1",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
    },
    "openai-responses": {"model": "m1", "input": "?", "tools": [{"type": "web_search"}], "store": False},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "?"}]}], "tools": [{"googleSearch": {}}]},
}


@pytest.mark.parametrize("client", ASKED)
@pytest.mark.parametrize("upstream", ANSWERS)
def test_the_library_shows_them_as_the_gateway_does(client: Any, upstream: Any) -> None:
    if client == upstream:
        return
    ways: dict[str, Any] = {"source": upstream, "target": client, "request": ASKED[client]}
    whole = wireglot.translate_response(ANSWERS[upstream], **ways).value
    translator = wireglot.StreamTranslator(**ways)
    spoken = dialect(upstream)
    data = spoken.stream_writer(Context()).write(
        list(unfold(spoken.parse_response(ANSWERS[upstream], Context())))
    )
    streamed = (translator.feed(data) + translator.close()).decode()
    marks = {
        "anthropic": ['"web_search_tool_result"', '"web_search_requests":1'],
        "openai-responses": ['"web_search_call"', '"num_requests":1'],
        "gemini": ['"webSearchQueries":["turm"]', URL],
    }
    for mark in marks[client]:
        assert mark in encode_text(whole)
        assert mark in streamed
