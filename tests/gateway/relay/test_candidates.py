"""Several answers of upstreams that give one to a request: asked for, paid, delivered and refused."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import openai
import pytest
from google import genai
from google.genai import types

from tests.gateway.faults.faults_kit import BY_NAME, every_dialect, start
from tests.gateway.relay.test_judge import requests_by_operation
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.state.quotas.budgets import MAX_UNRESERVED_REQUESTS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import unfold
from wireglot_core.wire.json import encode

ONE_ANSWER = ("anthropic", "openai-responses")
"""Dialects with one answer to a request."""
CHAT, GEMINI = BY_NAME["openai-chat"], BY_NAME["gemini"]
EITHER = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
UPSTREAM = pytest.mark.parametrize("source", ONE_ANSWER)
KEY = f'[keys.me]\nhash = "sha256:{hashlib.sha256(b"mine").hexdigest()}"\n'
MINE = {"authorization": "Bearer mine"}


class Numbered:
    """An upstream whose answers say which of them they are."""

    def __init__(self) -> None:
        self.behaviours: dict[int, Behaviour] = {}
        """By the number of the request, from 1."""
        self.upstream = ScriptedUpstream(decide=self._decide)
        self._lock = threading.Lock()
        self._count = 0

    def reset(self) -> None:
        self.upstream.reset()
        self.behaviours.clear()
        self._count = 0

    def _decide(self, request: Recorded) -> Behaviour:
        with self._lock:
            self._count += 1
            number = self._count
        source = "anthropic" if request.path.endswith("/messages") else "openai-responses"
        if "chat" in request.path:
            source = "openai-chat"
        return self.behaviours.get(number) or said(
            source, f"answer {number}", stream="stream" in request.json and request.json["stream"]
        )


def said(source: str, *texts: str, stream: bool, usage: Usage | None = None) -> Behaviour:
    """An upstream's answer."""
    usage = usage or Usage(input=10, output=3)
    response = Response("r1", "m1", tuple(map(Text, texts)), Stop("end"), usage)
    codec = dialect(source)
    if not stream:
        return Behaviour(body=encode(codec.render_response(response, Context()).value))
    return Behaviour(pieces=(codec.stream_writer(Context()).write([*unfold(response)]),))


@contextmanager
def stage(more: str = "", lines: str = "") -> Iterator[tuple[LiveGateway, Numbered]]:
    numbered = Numbered()
    once = lines or "retry = { retries = 0 }\nbreaker = { consecutive = 1000000, minimum = 1000000 }\n"
    with numbered.upstream as upstream, LiveGateway(every_dialect(upstream, once) + more) as gateway:
        yield gateway, numbered


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[LiveGateway, Numbered]]:
    with stage() as made:
        yield made


@pytest.fixture
def numbered(running: tuple[LiveGateway, Numbered]) -> Numbered:
    running[1].reset()
    return running[1]


@pytest.fixture
def gateway(running: tuple[LiveGateway, Numbered], numbered: Numbered) -> LiveGateway:
    return running[0]


def gpt(gateway: LiveGateway) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="mine", max_retries=0)


def asked(gateway: LiveGateway, source: str, *, stream: bool, n: int = 3, **more: Any) -> Any:
    """A completion, as OpenAI's SDK puts it together."""
    body: Any = {"model": f"{source}-up/m1", "messages": [{"role": "user", "content": "hi"}], "n": n, **more}
    if not stream:
        return gpt(gateway).chat.completions.create(**body)
    body["stream_options"] = {"include_usage": True}
    with gpt(gateway).chat.completions.stream(**body) as events:
        return events.get_final_completion()


@EITHER
@UPSTREAM
def test_a_chat_client_gets_as_many_choices_as_it_asks_for(
    gateway: LiveGateway, numbered: Numbered, source: str, stream: bool
) -> None:
    completion = asked(gateway, source, stream=stream)
    assert [choice.index for choice in completion.choices] == [0, 1, 2]
    assert sorted(choice.message.content for choice in completion.choices) == [
        "answer 1",
        "answer 2",
        "answer 3",
    ]
    assert {choice.finish_reason for choice in completion.choices} == {"stop"}
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (30, 9, 39)
    assert len(numbered.upstream.requests) == 3
    assert not any("n" in request.json for request in numbered.upstream.requests)
    first, *others = numbered.upstream.requests
    for other in others:
        assert other.json.get("stream", False) is False
        assert _asked_for(other) == _asked_for(first)


def _asked_for(request: Recorded) -> Any:
    return {name: value for name, value in request.json.items() if name != "stream"}


@EITHER
@UPSTREAM
def test_a_gemini_client_gets_as_many_candidates_as_it_asks_for(
    gateway: LiveGateway, numbered: Numbered, source: str, stream: bool
) -> None:
    client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
    config = types.GenerateContentConfig(candidate_count=2)
    body: Any = {"model": f"{source}-up/m1", "contents": "hi", "config": config}
    if stream:
        answers = [*client.models.generate_content_stream(**body)]
    else:
        answers = [client.models.generate_content(**body)]
    texts: dict[int, str] = {}
    for answer in answers:
        for candidate in answer.candidates or ():
            parts = (candidate.content.parts if candidate.content else None) or ()
            index = candidate.index or 0
            texts[index] = texts.get(index, "") + "".join(part.text or "" for part in parts)
    assert sorted(texts) == [0, 1]
    assert sorted(texts.values()) == ["answer 1", "answer 2"]
    usage = answers[-1].usage_metadata
    assert usage is not None
    assert (usage.prompt_token_count, usage.candidates_token_count) == (20, 6)
    assert len(numbered.upstream.requests) == 2


@EITHER
@UPSTREAM
def test_it_is_reported_as_emulated(gateway: LiveGateway, source: str, stream: bool) -> None:
    answered = start(
        gateway, CHAT, f"{source}-up/m1", stream=stream, n=2, headers={"x-wireglot-loss-details": "1"}
    ).rest()
    losses = msgspec.json.decode(answered.headers["x-wireglot-loss-details"])
    (loss,) = [loss for loss in losses if loss["feature"] == "candidates"]
    assert (loss["path"], loss["action"], loss["grade"]) == ("$.n", "emulated", "harmless")
    strict = start(gateway, CHAT, f"{source}-up/m1", n=2, headers={"x-wireglot-loss-policy": "strict"}).rest()
    assert strict.status == 400
    assert "candidates" in strict.json["error"]["message"]


@UPSTREAM
def test_without_emulation_one_answer_is_asked_for(
    gateway: LiveGateway, numbered: Numbered, source: str
) -> None:
    completion = asked(gateway, source, stream=False, extra_headers={"x-wireglot-emulate": "off"})
    assert len(completion.choices) == 1
    assert len(numbered.upstream.requests) == 1


@UPSTREAM
def test_more_than_the_limit_are_refused_by_the_clients_name_for_it(
    gateway: LiveGateway, numbered: Numbered, source: str
) -> None:
    with pytest.raises(openai.BadRequestError, match="n: at most 8") as refused:
        asked(gateway, source, stream=False, n=9)
    assert refused.value.param == "n"
    body: Any = {"generationConfig": {"candidateCount": 9}}
    answered = start(gateway, GEMINI, f"{source}-up/m1", **body).rest()
    assert answered.status == 400
    assert "generationConfig.candidateCount: at most 8" in answered.json["error"]["message"]
    assert not numbered.upstream.requests


def test_the_limit_is_a_setting() -> None:
    with stage("[limits]\ncandidates = 2\n") as (gateway, numbered):
        assert len(asked(gateway, "anthropic", stream=False, n=2).choices) == 2
        with pytest.raises(openai.BadRequestError, match="n: at most 2"):
            asked(gateway, "anthropic", stream=False, n=3)
        assert len(numbered.upstream.requests) == 2


@UPSTREAM
def test_one_that_fails_fails_the_whole_answer(source: str) -> None:
    for failing in (1, 2, 3):
        with stage() as (gateway, numbered):  # what is left of one answer must not be taken for the next
            numbered.behaviours[failing] = Behaviour(error=429, retry_after=7)
            with pytest.raises(openai.RateLimitError):
                asked(gateway, source, stream=False)


def test_one_that_fails_is_reported_at_the_end_of_a_stream() -> None:
    with stage() as (gateway, numbered):
        go_on = threading.Event()
        first = said("anthropic", "answer 1", stream=True)
        numbered.behaviours[1] = msgspec.structs.replace(first, gate=go_on)
        numbered.behaviours[2] = Behaviour(error=400)
        call = start(gateway, CHAT, "anthropic-up/m1", stream=True, n=2)
        numbered.upstream.wait_for(2)
        go_on.set()
        answered = call.rest()
        if numbered.upstream.requests[0].json["stream"]:
            assert answered.status == 200
            assert b"answer 1" in answered.body
            assert b'"error"' in answered.body
            assert b'finish_reason":"stop' not in answered.body
        else:  # the other one came first, and failed the way of the answer itself
            assert answered.status == 400


@EITHER
def test_a_client_that_leaves_ends_all_of_them(stream: bool) -> None:
    with stage() as (gateway, numbered):
        numbered.behaviours = dict.fromkeys((1, 2, 3), Behaviour(fault="stall"))
        call = start(gateway, CHAT, "anthropic-up/m1", stream=stream, n=3)
        numbered.upstream.wait_for(3)
        call.leave()
        for request in numbered.upstream.requests:
            assert request.abandoned.wait(DEADLINE_SECONDS)
        wait_until(lambda: gateway.process.gateway.in_flight == 0)


def test_a_first_answer_that_fails_ends_the_others() -> None:
    with stage() as (gateway, numbered):
        numbered.behaviours = {
            1: Behaviour(fault="stall"),
            2: Behaviour(fault="stall"),
            3: Behaviour(error=400),
        }
        answered = start(gateway, CHAT, "anthropic-up/m1", n=3, headers={"x-wireglot-timeout": "0.3"}).rest()
        assert answered.status in (400, 504)
        for request in numbered.upstream.requests[:2]:
            assert request.abandoned.wait(DEADLINE_SECONDS)


@EITHER
def test_each_has_its_row_in_the_ledger_and_all_are_on_the_budget(stream: bool) -> None:
    with stage(f"{KEY}tokens_per_day = 1000000\ntokens_per_minute = 1000000\n") as (gateway, _):
        completion = asked(gateway, "openai-responses", stream=stream, max_tokens=50)
        lines = gateway.wait_log(3)
        assert sorted(line["operation"] for line in lines) == ["candidate", "candidate", "generate"]
        used = sum(line["tokens"]["input"] + line["tokens"]["output"] for line in lines)
        assert used == completion.usage.total_tokens == 39
        budgets = gateway.process.state.counters._budgets  # type: ignore[attr-defined]  # the counters of one process
        wait_until(lambda: [spent for spent, _ in budgets.values()] == [used])
        wait_until(lambda: requests_by_operation(gateway, MINE) == {"generate": 1, "candidate": 2})


def test_more_answers_than_a_budget_has_room_for_are_refused() -> None:
    lines = f"{KEY}tokens_per_day = 300\n[limits]\ncandidates = 64\n"
    with stage(lines) as (gateway, _), pytest.raises(openai.RateLimitError):
        asked(gateway, "anthropic", stream=False, n=MAX_UNRESERVED_REQUESTS + 1, max_tokens=50)


@EITHER
def test_one_place_at_the_provider_is_enough(stream: bool) -> None:
    lines = "retry = { retries = 0 }\nconcurrency = 1\n"
    limits = f"{KEY}concurrent = 1\nrequests_per_minute = 1\n[limits]\nrequests = 1\nqueue = 1\n"
    with stage(limits, lines) as (gateway, numbered):
        completion = asked(gateway, "anthropic", stream=stream)
        said_by = [choice.message.content for choice in completion.choices]
        assert said_by == ["answer 1", "answer 2", "answer 3"]
        assert len(numbered.upstream.requests) == 3


def test_the_same_seed_is_sent_once_where_the_upstream_takes_one() -> None:
    lines = 'retry = { retries = 0 }\nlimits = { sampling = ["seed"] }\n'
    with stage("", lines) as (gateway, numbered):
        asked(gateway, "openai-chat", stream=False, seed=7)
        assert sorted(request.json["seed"] for request in numbered.upstream.requests) == [7, 8, 9]


def test_tools_and_reasoning_of_every_answer_are_delivered(gateway: LiveGateway, numbered: Numbered) -> None:
    call = ToolCall("toolu_1", "f", '{"a":1}')
    response = Response(
        "r", "m1", (Reasoning("hm"), Text("hi"), call), Stop("tool_calls"), Usage(input=1, output=1)
    )
    body = encode(dialect("anthropic").render_response(response, Context()).value)
    numbered.behaviours = dict.fromkeys((1, 2), Behaviour(body=body))
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    completion = asked(gateway, "anthropic", stream=False, n=2, tools=tools)
    for choice in completion.choices:
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "hi"
        (made,) = choice.message.tool_calls
        assert (made.function.name, made.function.arguments) == ("f", '{"a":1}')


@EITHER
def test_every_answer_is_cut_at_a_stop_sequence(
    gateway: LiveGateway, numbered: Numbered, stream: bool
) -> None:
    numbered.behaviours = {
        number: said("openai-responses", f"answer {number}", stream=stream and number == 1)
        for number in (2, 3)
    }
    completion = asked(gateway, "openai-responses", stream=stream, stop=["swer"])
    assert [choice.message.content for choice in completion.choices] == ["an"] * 3
