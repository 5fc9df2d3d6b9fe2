"""Answers that pause, continued by the gateway for clients whose dialects have no such stop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway.faults.faults_kit import BY_NAME, ONCE, every_dialect, start
from tests.gateway.hosted.documents_kit import Documents
from wireglot.gateway.hosted.loop import MAX_ROUNDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode

MODEL = "anthropic-up/m1"
LINES = ONCE + "limits = { hosted_tools = true }\n"
"""The upstream runs tools."""
CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {"type": "web_search_result", "url": "https://a.example", "title": "A", "encrypted_content": "e", "page_age": None}
    ],
}  # fmt: skip
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
PAUSED: list[dict[str, Any]] = [THOUGHT, {"type": "text", "text": "Looking. "}, CALL, FOUND]
DONE: list[dict[str, Any]] = [{"type": "text", "text": "Done."}]
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def said(content: list[dict[str, Any]], stop: str, *, stream: bool) -> Behaviour:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m1",
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 3},
    }
    if not stream:
        return Behaviour(body=encode(message))
    codec = dialect("anthropic")
    events = [*unfold(codec.parse_response(message, Context()))]
    return Behaviour(pieces=(codec.stream_writer(Context()).write(events),))


class Pausing:
    """An upstream that pauses before it answers."""

    def __init__(self) -> None:
        self.pauses = 1
        self.upstream = ScriptedUpstream(decide=self._decide)

    def reset(self, pauses: int = 1) -> None:
        self.upstream.reset()
        self.pauses = pauses

    def _decide(self, request: Recorded) -> Behaviour:
        stream = request.json.get("stream", False)
        if self.pauses > 0:
            self.pauses -= 1
            return said(PAUSED, "pause_turn", stream=stream)
        return said(DONE, "end_turn", stream=stream)

    @property
    def asked(self) -> list[Any]:
        return [request.json for request in self.upstream.requests]


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[LiveGateway, Pausing]]:
    pausing = Pausing()
    documents = Documents(forwarded="anthropic")
    with pausing.upstream as upstream, LiveGateway(every_dialect(upstream, LINES)) as gateway:
        documents.of(gateway)
        yield gateway, pausing
    documents.check()


@pytest.fixture
def pausing(running: tuple[LiveGateway, Pausing]) -> Pausing:
    running[1].reset()
    return running[1]


@pytest.fixture
def gateway(running: tuple[LiveGateway, Pausing], pausing: Pausing) -> LiveGateway:
    return running[0]


def gpt(gateway: LiveGateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)


def chat(gateway: LiveGateway, *, stream: bool) -> tuple[str, str, int, int]:
    body: Any = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "web_search_options": {}}
    if stream:
        body["stream_options"] = {"include_usage": True}
        with gpt(gateway).chat.completions.stream(**body) as events:
            completion: Any = events.get_final_completion()
    else:
        completion = gpt(gateway).chat.completions.create(**body)
    (choice,) = completion.choices
    usage = completion.usage
    return choice.message.content, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens


def responses(gateway: LiveGateway, *, stream: bool) -> tuple[str, str, int, int]:
    body: Any = {"model": MODEL, "input": "hi", "tools": [{"type": "web_search"}], "store": False}
    if stream:
        with gpt(gateway).responses.stream(**body) as events:
            answer: Any = events.get_final_response()
    else:
        answer = gpt(gateway).responses.create(**body)
    return answer.output_text, answer.status, answer.usage.input_tokens, answer.usage.output_tokens


def gemini(gateway: LiveGateway, *, stream: bool) -> tuple[str, str, int, int]:
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    body: Any = {"model": MODEL, "contents": "hi", "config": config}
    if stream:
        answers = [*client.models.generate_content_stream(**body)]
    else:
        answers = [client.models.generate_content(**body)]
    last = answers[-1]
    assert last.candidates
    assert last.candidates[0].finish_reason
    assert last.usage_metadata
    usage = last.usage_metadata
    return (
        "".join(answer.text or "" for answer in answers),
        last.candidates[0].finish_reason.value,
        usage.prompt_token_count or 0,
        (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
    )


CLIENTS = {
    "openai-chat": (chat, "stop"),
    "openai-responses": (responses, "completed"),
    "gemini": (gemini, "STOP"),
}


@EITHER
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_gets_one_whole_answer(
    gateway: LiveGateway, pausing: Pausing, client: str, stream: bool
) -> None:
    pausing.reset(2)
    ask, ended = CLIENTS[client]
    text, reason, read, written = ask(gateway, stream=stream)
    assert text == "Looking. Looking. Done."
    assert reason == ended
    assert (read, written) == (30, 9)
    first, second, third = pausing.asked
    assert second["messages"][:-1] == first["messages"] == third["messages"][:-1]
    assert second["messages"][-1] == {"role": "assistant", "content": PAUSED}
    assert third["messages"][-1] == {"role": "assistant", "content": PAUSED + PAUSED}


def test_it_is_reported_as_emulated_and_every_round_has_its_row() -> None:
    pausing = Pausing()
    with pausing.upstream as upstream, LiveGateway(every_dialect(upstream, LINES)) as gateway:
        answered = start(gateway, BY_NAME["openai-chat"], MODEL, web_search_options={}).rest()
        assert answered.status == 200
        assert "stop_reason" in answered.headers["x-wireglot-losses"]
        lines = gateway.wait_log(2)
        assert sorted(line["operation"] for line in lines) == ["generate", "tool_round"]
        assert [(line["tokens"]["input"], line["tokens"]["output"]) for line in lines] == [(10, 3)] * 2


def test_a_pause_without_end_ends_at_the_maximum_of_rounds(gateway: LiveGateway, pausing: Pausing) -> None:
    pausing.reset(1000)
    text, reason, _, _ = chat(gateway, stream=False)
    assert text == "Looking. " * (MAX_ROUNDS + 1)
    assert reason == "length"
    assert len(pausing.asked) == MAX_ROUNDS + 1


@EITHER
def test_without_emulation_the_pause_is_a_loss(gateway: LiveGateway, pausing: Pausing, stream: bool) -> None:
    client = BY_NAME["openai-chat"]
    headers = {"x-wireglot-emulate": "off"}
    answered = start(gateway, client, MODEL, stream=stream, web_search_options={}, headers=headers).rest()
    assert b'"finish_reason":"length"' in answered.body
    assert len(pausing.asked) == 1


@EITHER
def test_a_client_that_knows_pauses_continues_by_itself(
    gateway: LiveGateway, pausing: Pausing, stream: bool
) -> None:
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    answered = start(gateway, BY_NAME["anthropic"], MODEL, stream=stream, tools=tools).rest()
    assert b"pause_turn" in answered.body
    assert len(pausing.asked) == 1


def test_a_round_that_fails_fails_the_answer(gateway: LiveGateway, pausing: Pausing) -> None:
    pausing.upstream._decide = None
    try:
        pausing.upstream.next(said(PAUSED, "pause_turn", stream=False), Behaviour(error=400))
        with pytest.raises(openai.BadRequestError):
            chat(gateway, stream=False)
    finally:
        pausing.upstream._decide = pausing._decide


def test_an_answer_without_hosted_tools_is_not_waited_for(gateway: LiveGateway, pausing: Pausing) -> None:
    answered = start(gateway, BY_NAME["openai-chat"], MODEL).rest()
    assert answered.json["choices"][0]["finish_reason"] == "length"
    assert len(pausing.asked) == 1


@EITHER
def test_the_searches_of_all_rounds_are_reported(
    gateway: LiveGateway, pausing: Pausing, stream: bool
) -> None:
    pausing.reset(2)
    body: Any = {"model": MODEL, "input": "hi", "tools": [{"type": "web_search"}], "store": False}
    if stream:
        with gpt(gateway).responses.stream(**body) as events:
            answer: Any = events.get_final_response()
    else:
        answer = gpt(gateway).responses.create(**body)
    searches = [item for item in answer.output if item.type == "web_search_call"]
    assert [search.action.query for search in searches] == ["x", "x"]
    assert answer.tool_usage.web_search.num_requests == 2
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (30, 9)


@EITHER
def test_gemini_clients_see_the_queries_of_all_rounds(
    gateway: LiveGateway, pausing: Pausing, stream: bool
) -> None:
    pausing.reset(2)
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    config = types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())])
    body: Any = {"model": MODEL, "contents": "hi", "config": config}
    if stream:
        *_, last = client.models.generate_content_stream(**body)
    else:
        last = client.models.generate_content(**body)
    candidates: Any = last.candidates
    grounding = candidates[0].grounding_metadata
    assert grounding.web_search_queries == ["x", "x"]
    assert [chunk.web.uri for chunk in grounding.grounding_chunks] == ["https://a.example"]
