"""Hosted tools in answers that are kept, made in the background, checked, wrapped or long in coming."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from msgspec.structs import replace

from tests.gateway.hosted.hosted_kit import ASKED, TOWER, HostedStage, chat_answer, chat_calls
from tests.gateway.state.usage_kit import fetch
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.web.contract import Page
from wireglot_core.wire.json import decode, encode, encode_text

MODEL = "openai-chat-up/m1"
QUERY = {"query": "height of the tower"}
SEARCH: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage("[limits]\nping = 0.05\n") as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


def post(stage: HostedStage, path: str, body: dict[str, Any]) -> Any:
    return decode(fetch(f"{stage.gateway.url}{path}", body))


def test_a_stream_is_kept_alive_while_a_search_runs(stage: HostedStage) -> None:
    stage.upstream.next(
        chat_calls(("web_search", QUERY), stream=True), chat_answer({"content": "Hi."}, stream=True)
    )
    gate = stage.web.gate = asyncio.Event()
    body = {
        "model": MODEL,
        "max_tokens": 9,
        "stream": True,
        "tools": [SEARCH],
        "messages": [{"role": "user", "content": "?"}],
    }
    connection = http.client.HTTPConnection("127.0.0.1", stage.gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/messages", encode(body), {"content-type": "application/json"})
    response = connection.getresponse()
    have = b""
    while b"server_tool_use" not in have or b"event: ping" not in have.partition(b"server_tool_use")[2]:
        have += response.read1(65536)

    async def go_on() -> None:
        gate.set()

    stage.gateway.call(go_on())
    have += response.read()
    connection.close()
    assert have.count(b"event: message_start") == 1
    assert have.count(b"event: message_stop") == 1
    assert have.index(b"event: ping") < have.index(b"web_search_tool_result")


def test_an_item_ends_before_the_next_begins(stage: HostedStage) -> None:
    calls = chat_calls(("web_search", QUERY), ("web_search", QUERY), text="I search.", stream=True)
    stage.upstream.next(calls, chat_answer({"content": "Hi."}, stream=True))
    with stage.gpt.responses.stream(
        model=MODEL, input="?", tools=[{"type": "web_search"}], store=False
    ) as stream:
        events = [(event.type, event.output_index) for event in stream if hasattr(event, "output_index")]
    ends = [each for each in events if each[0].startswith("response.output_item.")]
    assert ends == [
        (f"response.output_item.{kind}", place) for place in range(4) for kind in ("added", "done")
    ]
    assert [place for _, place in events] == sorted(place for _, place in events)


def test_a_stored_answer_is_the_one_that_the_client_got(stage: HostedStage) -> None:
    body = {"model": MODEL, "input": ASKED, "tools": [{"type": "web_search"}]}
    made = post(stage, "/v1/responses", body)
    kept = decode(fetch(f"{stage.gateway.url}/v1/responses/{made['id']}"))
    assert [item["type"] for item in kept["output"]] == ["message", "web_search_call", "message"]
    assert kept["output"] == made["output"]
    assert kept["usage"] == made["usage"]


def test_a_text_cites_only_what_was_found_before_it(stage: HostedStage) -> None:
    said = f"I look at {TOWER.url}."
    call, text = chat_calls(("web_search", QUERY), stream=True), chat_answer({"content": said}, stream=True)
    assert call.pieces is not None
    assert text.pieces is not None
    unfinished = call.pieces[0].replace(b'"finish_reason":"tool_calls"', b'"finish_reason":null')
    behind = text.pieces[0].replace(b'"finish_reason":"stop"', b'"finish_reason":"tool_calls"')
    stage.upstream.next(replace(call, pieces=(unfinished, behind, call.pieces[1])), text)
    with stage.gpt.responses.stream(model=MODEL, input="?", tools=[{"type": "web_search"}]) as events:
        made: Any = events.get_final_response()
    kept: Any = stage.gpt.responses.retrieve(made.id)
    for shown in (made, kept):
        texts = [part for item in shown.output if item.type == "message" for part in item.content]
        assert [[each.url for each in text.annotations] for text in texts] == [[], [TOWER.url]]


def test_a_search_in_the_background(stage: HostedStage) -> None:
    body = {"model": MODEL, "input": ASKED, "tools": [{"type": "web_search"}], "background": True}
    made = post(stage, "/v1/responses", body)

    def done() -> Any:
        found = decode(fetch(f"{stage.gateway.url}/v1/responses/{made['id']}"))
        return found if found["status"] not in ("queued", "in_progress") else None

    found = wait_until(done)
    assert found["status"] == "completed"
    assert "web_search_call" in [item["type"] for item in found["output"]]
    assert TOWER.text in encode_text(found["output"][-1])


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent?alt=sse"])
def test_a_search_of_gemini_cli_with_a_login(stage: HostedStage, verb: str) -> None:
    contents = [{"role": "user", "parts": [{"text": ASKED}]}]
    body = {
        "model": MODEL,
        "project": "p",
        "request": {"contents": contents, "tools": [{"googleSearch": {}}]},
    }
    answer = fetch(f"{stage.gateway.url}/v1internal:{verb}", body)
    assert b'"webSearchQueries":["height of the tower"]' in answer
    assert TOWER.url.encode() in answer
    assert b"functionCall" not in answer


def test_a_page_that_is_a_file_goes_to_the_model_as_one(stage: HostedStage) -> None:
    stage.web.page = Page(TOWER.url, "Tower", "application/pdf", data="JVBERi0xLjQK")
    stage.upstream.next(chat_calls(("web_fetch", {"url": TOWER.url})), chat_answer({"content": "Read."}))
    turn = {"role": "user", "content": f"Read {TOWER.url}"}
    tool = {"type": "web_fetch_20250910", "name": "web_fetch"}
    answer = post(
        stage, "/v1/messages", {"model": MODEL, "max_tokens": 9, "tools": [tool], "messages": [turn]}
    )
    document = answer["content"][1]["content"]["content"]
    assert document["source"] == {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
    last = {"role": "user", "content": "Go on."}
    turns = [turn, {"role": "assistant", "content": answer["content"]}, last]
    post(stage, "/v1/messages", {"model": "anthropic-up/m1", "max_tokens": 9, "messages": turns})
    assert "JVBERi0xLjQK" in encode_text(stage.upstream.requests[-1].json)


def test_only_calls_that_the_client_sees_are_judged(stage: HostedStage) -> None:
    bash = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
    stage.upstream.next(
        chat_calls(("web_search", QUERY), ("Bash", {"command": "ls"})),
        chat_answer({"content": '{"verdict": "allow"}'}),
    )
    body = {
        "model": MODEL,
        "max_tokens": 99,
        "tools": [SEARCH, bash],
        "messages": [{"role": "user", "content": "?"}],
        "safeguards": [{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}],
    }
    answer = post(stage, "/v1/messages", body)
    (call,) = [block for block in answer["content"] if block["type"] == "tool_use"]
    (result,) = answer["safeguard_results"]
    assert list(result["status"]["tool_uses"]) == [call["id"]]
    assert len(stage.upstream.requests) == 2


def test_one_answer_is_asked_for(stage: HostedStage) -> None:
    stage.upstream.next(chat_answer({"content": "Hi."}))
    tools = [{"type": "builtin_function", "function": {"name": "$web_search"}}]
    body = {"model": MODEL, "n": 3, "messages": [{"role": "user", "content": "?"}], "tools": tools}
    answer = post(stage, "/v1/chat/completions", body)
    assert len(answer["choices"]) == 1
    assert "n" not in stage.upstream.requests[-1].json


@pytest.mark.parametrize("cloud", ["vertex", "bedrock"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_search_runs_for_clients_of_the_clouds(stage: HostedStage, cloud: str, streamed: bool) -> None:
    stage.upstream.next(
        chat_calls(("web_search", QUERY), stream=streamed),
        chat_answer({"content": "324 m."}, stream=streamed),
    )
    url, plain = stage.gateway.url, anthropic.DefaultHttpxClient(verify=False)
    client: Any = (
        anthropic.AnthropicBedrock(base_url=url, aws_region="r", api_key="x", http_client=plain)
        if cloud == "bedrock"
        else anthropic.AnthropicVertex(
            base_url=url, region="r", project_id="p", access_token="x", http_client=plain
        )
    )
    turns = [{"role": "user", "content": ASKED}]
    asked = {"model": MODEL, "max_tokens": 99, "tools": [SEARCH], "messages": turns}
    if streamed:
        with client.messages.stream(**asked) as stream:
            answer = stream.get_final_message()
    else:
        answer = client.messages.create(**asked)
    kinds = [block.type for block in answer.content]
    assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
    assert answer.content[-1].text == "324 m."
    assert len(stage.upstream.requests) == 2
