"""A web search run by the gateway is one legal answer in every client's dialect, before every upstream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import types

from tests.gateway.hosted.hosted_kit import ASKED, DIALECTS, OTHER, TOWER, HostedStage
from wireglot_core.wire.json import encode_text

QUERY = "height of the tower"


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage() as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def _check_upstream(stage: HostedStage) -> list[Any]:
    """Two rounds: the function is offered in both, and the second brings what was found."""
    first, second = [request.json for request in stage.upstream.requests]
    assert [query.text for query in stage.web.queries] == [QUERY]
    assert TOWER.text not in encode_text(first)
    assert TOWER.text in encode_text(second)
    for body in (first, second):
        assert "web_search" in encode_text(body["tools"])
    return [first, second]


def _search_with_claude(stage: HostedStage, model: str, streamed: bool) -> None:
    asked: dict[str, Any] = {
        "model": model,
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": ASKED}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}],
    }
    if streamed:
        with stage.claude.messages.stream(**asked) as stream:
            message: Any = stream.get_final_message()
    else:
        message = stage.claude.messages.create(**asked)
    text, call, result, *answer = message.content
    assert text.type == "text"
    assert (call.type, call.name, call.input) == ("server_tool_use", "web_search", {"query": QUERY})
    assert call.id.startswith("srvtoolu_")
    assert (result.type, result.tool_use_id) == ("web_search_tool_result", call.id)
    found = [(hit.type, hit.url, hit.title, hit.page_age) for hit in result.content]
    assert found == [
        ("web_search_result", TOWER.url, TOWER.title, TOWER.age),
        ("web_search_result", OTHER.url, OTHER.title, None),
    ]
    assert all(hit.encrypted_content and TOWER.text not in hit.encrypted_content for hit in result.content)
    assert TOWER.text in "".join(block.text for block in answer)
    notes = [cited for block in answer for cited in block.citations or ()]
    assert [(cited.type, cited.url, cited.title, cited.cited_text) for cited in notes] == [
        ("web_search_result_location", hit.url, hit.title, hit.text) for hit in (TOWER, OTHER)
    ]
    assert message.stop_reason == "end_turn"
    assert message.usage.server_tool_use.web_search_requests == 1
    assert message.usage.output_tokens > 0
    _check_upstream(stage)


def _search_with_responses(stage: HostedStage, model: str, streamed: bool) -> None:
    asked: dict[str, Any] = {
        "model": model,
        "input": ASKED,
        "tools": [{"type": "web_search"}],
        "store": False,
    }
    if streamed:
        kinds: list[str] = []
        with stage.gpt.responses.stream(**asked) as stream:
            for event in stream:
                kinds.append(event.type)
            response: Any = stream.get_final_response()
        assert kinds.count("response.created") == 1
        progress = [kind for kind in kinds if "web_search_call" in kind]
        assert progress == [
            f"response.web_search_call.{step}" for step in ("in_progress", "searching", "completed")
        ]
    else:
        response = stage.gpt.responses.create(**asked)
    opening, call, answer = response.output
    assert opening.type == answer.type == "message"
    assert (call.type, call.status, call.action.query) == ("web_search_call", "completed", QUERY)
    assert [source.url for source in call.action.sources] == [TOWER.url, OTHER.url]
    (content,) = answer.content
    assert TOWER.text in content.text
    notes = [(note.url, content.text[note.start_index : note.end_index]) for note in content.annotations]
    assert notes == [(TOWER.url, TOWER.url), (OTHER.url, OTHER.url)]
    assert response.status == "completed"
    assert response.tool_usage.web_search.num_requests == 1
    assert [tool.type for tool in response.tools] == ["web_search"]
    _check_upstream(stage)


def _search_with_chat(stage: HostedStage, model: str, streamed: bool) -> None:
    asked: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": ASKED}],
        "extra_body": {"tools": [{"type": "builtin_function", "function": {"name": "$web_search"}}]},
    }
    if streamed:
        with stage.gpt.chat.completions.stream(**asked) as stream:
            answer: Any = stream.get_final_completion()
    else:
        answer = stage.gpt.chat.completions.create(**asked)
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert not choice.message.tool_calls
    assert TOWER.text in choice.message.content
    if not streamed:
        content = choice.message.content
        cited = [note.url_citation for note in choice.message.annotations]
        assert [content[note.start_index : note.end_index] for note in cited] == [TOWER.url, OTHER.url]
    _check_upstream(stage)


def _search_with_gemini(stage: HostedStage, model: str, streamed: bool) -> None:
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    if streamed:
        chunks = list(stage.gemini.models.generate_content_stream(model=model, contents=ASKED, config=config))
    else:
        chunks = [stage.gemini.models.generate_content(model=model, contents=ASKED, config=config)]
    text = "".join(chunk.text or "" for chunk in chunks)
    assert TOWER.text in text
    assert not any(chunk.function_calls for chunk in chunks)
    last: Any = chunks[-1].candidates
    grounding = last[0].grounding_metadata
    assert grounding.web_search_queries == [QUERY]
    assert [chunk.web.uri for chunk in grounding.grounding_chunks] == [TOWER.url, OTHER.url]
    assert last[0].finish_reason == types.FinishReason.STOP
    _check_upstream(stage)


def _search_with_interactions(stage: HostedStage, model: str, streamed: bool) -> None:
    api: Any = stage.gemini.interactions
    asked: dict[str, Any] = {"model": model, "input": ASKED, "tools": [{"type": "google_search"}]}
    if streamed:
        events = list(api.create(**asked, stream=True))
        starts = [event for event in events if event.event_type == "step.start"]
        assert [event.index for event in starts] == list(range(len(starts)))
        answer = api.get(events[-1].interaction.id)
        kinds = [event.step.type for event in starts]
        assert kinds == [step.type for step in answer.steps[1:]]
    else:
        answer = api.create(**asked)
    assert answer.status == "completed"
    steps = [step for step in answer.steps if step.type not in ("user_input", "thought")]
    assert [step.type for step in steps[1:]] == [
        "google_search_call",
        "google_search_result",
        "model_output",
    ]
    _, call, result, said = steps
    assert call.arguments.queries == [QUERY]
    assert result.call_id == call.id
    assert not result.is_error
    (content,) = said.content
    assert TOWER.text in content.text
    text = content.text.encode()
    cited = [text[note.start_index : note.end_index].decode() for note in content.annotations]
    assert cited == [note.url for note in content.annotations] == [TOWER.url, OTHER.url]
    _check_upstream(stage)


_CLIENTS = {
    "anthropic": _search_with_claude,
    "openai-chat": _search_with_chat,
    "openai-responses": _search_with_responses,
    "gemini": _search_with_gemini,
    "gemini-interactions": _search_with_interactions,
}


@pytest.mark.sampled("client", "streamed", each=2)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("upstream", DIALECTS)
@pytest.mark.parametrize("client", _CLIENTS)
def test_a_search_is_one_legal_answer(stage: HostedStage, client: str, upstream: str, streamed: bool) -> None:
    _CLIENTS[client](stage, f"{upstream}-up/m1", streamed)
