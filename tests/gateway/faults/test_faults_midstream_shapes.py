"""FAULTS 3e: streams that are odd but whole, and answers that contradict themselves."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import (
    CLIENTS,
    UPSTREAMS,
    UPSTREAMS_ALONE,
    Answered,
    Client,
    ask,
    every_dialect,
    is_complete,
    logged,
    model_at,
    reported_in_stream,
    without_estimate,
)
from tests.gateway.faults.faults_stages import (
    EVERY,
    PAIRS,
    SOME_PAIRS,
    Stage,
    frames,
    pair_name,
    repeated,
    stage_behind,
)
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.wire.json import decode, encode

EVENTS = pytest.mark.parametrize(
    ("client", "source"),
    [(client, source) for client, source in SOME_PAIRS if not (client.is_array and client.dialect == source)],
    ids=pair_name,
)
"""An array that passes through has neither events nor line ends that matter."""

SAID = "[[demo:echo]] ü€😀\u2028 three words"
stage = stage_behind(every_dialect)


def plain(answered: Answered) -> bytes:
    """Without what differs between two answers: ids that come from the request's own, times, estimates."""
    body = re.sub(rb"([a-z]{2,}_)[0-9A-Za-z]{12,}", rb"\1ID", without_estimate(answered.body))
    return re.sub(rb'"(created(?:_at)?|completed_at)":[0-9.]+', rb'"\1":0', body)


def texts(client: Client, answered: Answered) -> str:
    """All that an answer says, in any dialect."""
    if client.is_array:
        documents = answered.json
    else:
        data = re.findall(rb"^data: (\{[^\r\n]*)", answered.body, re.MULTILINE)
        documents = [decode(line) for line in data]
    return "".join(_said(document) for document in documents)


def _said(document: dict[str, Any]) -> str:
    document = document.get("response", document) if "candidates" not in document else document
    if "candidates" in document:
        parts = [part for one in document["candidates"] for part in one.get("content", {}).get("parts", [])]
        return "".join(part.get("text", "") for part in parts)
    if "choices" in document:
        return "".join(choice["delta"].get("content") or "" for choice in document["choices"])
    if document.get("type") == "response.output_text.delta":
        return str(document["delta"])
    delta = document.get("delta")
    return delta.get("text", "") if isinstance(delta, dict) else ""


@pytest.mark.sampled("client.name", each=2)
@pytest.mark.parametrize(("client", "source"), PAIRS, ids=pair_name)
def test_how_a_stream_is_cut_into_pieces_changes_nothing(stage: Stage, client: Client, source: str) -> None:
    """FAULTS 71"""
    gateway, upstream = stage
    usual = ask(gateway, client, model_at(source), SAID, stream=True)
    assert is_complete(client, usual)
    assert "ü€😀\u2028 three words" in texts(client, usual)
    upstream.next(Behaviour(fault="byte-chunks"))
    assert plain(ask(gateway, client, model_at(source), SAID, stream=True)) == plain(usual)
    if client.is_array and client.dialect == source:
        return  # another framing: its bytes are not those that are recorded below
    whole = repeated(upstream)
    for size in (2, 3, 7, 61, 1024 * 1024):
        upstream.next(Behaviour(pieces=tuple(whole[n : n + size] for n in range(0, len(whole), size))))
        assert plain(ask(gateway, client, model_at(source), SAID, stream=True)) == plain(usual)


@pytest.mark.sampled("client.name", "source")
@EVENTS
@pytest.mark.parametrize("end", [b"\r\n", b"\r"], ids=["crlf", "cr"])
def test_any_line_end_is_one(stage: Stage, end: bytes, client: Client, source: str) -> None:
    """FAULTS 71: also cut between the two letters of one."""
    gateway, upstream = stage
    usual = ask(gateway, client, model_at(source), SAID, stream=True)
    whole = repeated(upstream).replace(b"\n", end)
    cuts = [n for n in range(1, len(whole)) if whole[n - 1 : n] == b"\r"]
    pieces = tuple(whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True))
    upstream.next(Behaviour(pieces=pieces))
    answered = ask(gateway, client, model_at(source), SAID, stream=True)
    body = plain(answered)
    if client.dialect == source:
        body = body.replace(end, b"\n")
    assert body == plain(usual)


FIRST = ("anthropic", "openai-responses")
"""Dialects whose streams begin with an event of their own."""
ODD = [b": a comment\n\n", b"retry: 1000\n\n", b"id: 7\n\n", b":\n\n"]
UNKNOWN = b'event: wonder\ndata: {"type":"wonder","delta":{"type":"wonder_delta","wonder":1}}\n\n'


@EVENTS
def test_what_a_stream_holds_beside_its_answer_is_skipped_or_kept(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 74: skipped where it is translated, kept where it passes through."""
    gateway, upstream = stage
    usual = ask(gateway, client, model_at(source), SAID, stream=True)
    pieces = frames(repeated(upstream))
    extras = [*ODD, UNKNOWN] if source in ("anthropic", "openai-responses") else ODD
    upstream.next(Behaviour(pieces=(*extras, *pieces[:3], *extras, *pieces[3:])))
    answered = ask(gateway, client, model_at(source), SAID, stream=True)
    assert is_complete(client, answered)
    assert texts(client, answered) == texts(client, usual)
    if client.dialect == source:
        assert all(extra in answered.body for extra in extras)
    else:
        assert plain(answered) == plain(usual)


@pytest.mark.sampled(each=3)
@EVERY
def test_one_large_event_passes(stage: Stage, client: Client) -> None:
    """FAULTS 73"""
    gateway, upstream = stage
    large = "x" * (8 * 1024 * 1024)
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    pieces = [
        {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": large}}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    sent = (*(b"data: " + encode(piece) + b"\n\n" for piece in pieces), b"data: [DONE]\n\n")
    upstream.next(Behaviour(pieces=sent))
    answered = ask(gateway, client, model_at("openai-chat"), stream=True)
    assert is_complete(client, answered)
    assert texts(client, answered) == large


@pytest.mark.parametrize(
    ("client", "source"),
    [(client, source) for client, source in PAIRS if source in FIRST and client.dialect != source],
    ids=pair_name,
)
def test_a_stream_without_its_first_event_is_repaired_or_refused(
    stage: Stage, client: Client, source: str
) -> None:
    """FAULTS 79"""
    gateway, upstream = stage
    ask(gateway, client, model_at(source), SAID, stream=True)
    pieces = frames(repeated(upstream))
    upstream.next(Behaviour(pieces=tuple(pieces[1:])))
    answered = ask(gateway, client, model_at(source), SAID, stream=True)
    if answered.status == 200 and not is_complete(client, answered):
        reported_in_stream(client, answered)
    else:
        assert answered.status in (200, 502)


ENDING = [(client, source) for client, source in PAIRS if source not in ("gemini", "code-assist")]
"""Only the end of the HTTP answer ends a Gemini stream: usage may follow the finish reason."""


@pytest.mark.sampled("client.name", each=3)
@pytest.mark.parametrize(("client", "source"), ENDING, ids=pair_name)
@pytest.mark.parametrize("joined", [False, True], ids=["later", "at-once"])
def test_what_follows_the_end_is_not_sent(stage: Stage, joined: bool, client: Client, source: str) -> None:
    """FAULTS 79"""
    gateway, upstream = stage
    usual = ask(gateway, client, model_at(source), SAID, stream=True)
    pieces = frames(repeated(upstream))
    last, more = pieces[-1], [*pieces[-3:], *pieces[:4], b": late\n\n"]
    tail = (last + b"".join(more),) if joined else (last, *more)
    upstream.next(Behaviour(pieces=(*pieces[:-1], *tail)))
    answered = ask(gateway, client, model_at(source), SAID, stream=True)
    if client.dialect == source:  # what came in the same piece has passed on with it
        assert plain(answered).startswith(plain(usual))
    else:
        assert plain(answered) == plain(usual)


TOOL = {"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}}


def tool_stream(stop: str) -> tuple[bytes, ...]:
    """Anthropic calls a tool and stops within its arguments."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m1", "content": [], "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"city": "Par'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return tuple(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode(event)) for event in events)


@pytest.mark.parametrize("stop", ["max_tokens", "tool_use"])
@EVERY
def test_arguments_that_were_cut_are_never_repaired(stage: Stage, client: Client, stop: str) -> None:
    """[X7] FAULTS 80: nor are they handed over: a stream that has reported their beginning fails. At the limit
    it ends as its vendor's does: the stop reason or the item's status says that the call was cut."""
    gateway, upstream = stage
    upstream.next(Behaviour(pieces=tool_stream(stop)))
    answered = ask(gateway, client, model_at("anthropic"), stream=True)
    assert b"Paris" not in answered.body
    for valid in (b'{"city":"Par"}', b'{"city": "Par"}', b'{\\"city\\": \\"Par\\"}', b'"args":{"city"'):
        assert valid not in answered.body
    if stop == "max_tokens":
        assert is_complete(client, answered)
    else:  # where all of it came at once, the upstream was asked again
        assert b'city\\": \\"Par' not in answered.body or not is_complete(client, answered)


USAGES: list[Any] = [
    None,
    {},
    {"prompt_tokens": None, "completion_tokens": None},
    {"prompt_tokens": -5, "completion_tokens": -1, "total_tokens": -6},
    {"prompt_tokens": 10**12, "completion_tokens": 10**12, "total_tokens": 2 * 10**12},
    {"prompt_tokens": 1e300, "completion_tokens": "many", "total_tokens": True},
    "none",
]


@pytest.mark.parametrize("usage", USAGES, ids=lambda usage: str(usage)[:24])
def test_an_account_that_cannot_be_true_is_left_out(stage: Stage, usage: Any) -> None:
    """FAULTS 81"""
    gateway, upstream = stage
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    pieces = [
        {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hello"}}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
    ]
    sent = (*(b"data: " + encode(piece) + b"\n\n" for piece in pieces), b"data: [DONE]\n\n")
    for client in CLIENTS:
        upstream.next(Behaviour(pieces=sent))
        answered = ask(gateway, client, model_at("openai-chat"), stream=True)
        assert is_complete(client, answered)
        counted = logged(gateway, answered)
        assert counted["outcome"] == "ok"
        for name in ("input", "output"):
            assert 0 <= counted.get("tokens", {}).get(name, 0) <= 10**9
        if client.dialect != "openai-chat":
            numbers = re.findall(rb'[tT]oken[a-zA-Z_]*":\s*(-?[0-9.e+]+)', answered.body)
            assert all(0 <= float(number) <= 10**9 for number in numbers), answered.body


def test_every_upstream_is_met_with_every_client() -> None:
    assert {client.dialect for client in CLIENTS} >= set(UPSTREAMS) - UPSTREAMS_ALONE
