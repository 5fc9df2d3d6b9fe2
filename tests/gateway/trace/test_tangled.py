"""Bodies of nothing but parts: they are recorded, and neither recording nor looking takes them apart.

Work is counted, not timed: anyone who reads such a body makes an object of each part, which takes many times its
size, and is one call that no other request can interrupt.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask, post
from tests.gateway.trace.trace_kit import id_of, stage
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace.made_trace import made_trace
from wireglot.gateway.trace.recording import recording_of
from wireglot.http.application import Head
from wireglot.http.copies import Room
from wireglot.http.redaction import Redactor
from wireglot_core.traces import bodies
from wireglot_core.traces.analysis import with_analysis
from wireglot_core.traces.bodies import is_tangled
from wireglot_core.traces.target import RecordedTarget
from wireglot_core.traces.trace import Attempt, Row, Trace, TraceMessage

T = TypeVar("T")

_BESIDE = 300_000
"""Bytes for all but the body: patterns, modules."""

PARTS, VALUES = 5_000, 20_000
"""Most, here: large bodies would only make the tests long."""
SECRET = "Zq7rT0pL9vXw3KfJm2Hd8Bn5"
DEEP = b"[" + b",".join([b'{"a":' * 50 + b"1" + b"}" * 50] * (PARTS // 50 + 1)) + b"]"
STRINGS = b"[" + b",".join([b'""'] * (VALUES + 2)) + b"]"
MEMBERS = b"{" + b",".join(b'"%x":1' % number for number in range(VALUES + 2)) + b"}"
TANGLED = {"deep": DEEP, "strings": STRINGS, "members": MEMBERS}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MAX_CONTAINERS", PARTS)
    monkeypatch.setattr(bodies, "MAX_VALUES", VALUES)


def most_of(work: Callable[[], T]) -> tuple[T, int]:
    """What comes of it, and the most bytes that it held at a time."""
    tracemalloc.start()
    try:
        done = work()
        return done, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", TANGLED)
def test_what_is_nothing_but_parts_is_known(name: str) -> None:
    assert is_tangled(TANGLED[name])


@pytest.mark.parametrize(
    "said",
    ["if (a[0]) { b(1, 2); } " * 30_000, '\\"{[,' * 60_000, "x" * 1_000_000],
    ids=["code", "quotes", "x"],
)
def test_long_texts_are_not_parts_whatever_stands_in_them(said: str) -> None:
    turn = {"role": "user", "content": [{"type": "text", "text": said}]}
    assert not is_tangled(json.dumps({"messages": [turn] * 3}).encode())


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", TANGLED)
def test_looking_at_one_says_why_it_is_not_linked(name: str) -> None:
    body = b'{"model":"m","max_tokens":5,"messages":[],"x":' + TANGLED[name] + b"}"
    message = TraceMessage(method="POST", body=body.decode(), bytes=len(body))
    attempt = Attempt(
        provider="",
        model="m",
        dialect="openai-chat",
        request=TraceMessage(body='{"model":"m","messages":[]}'),
        answer=message,
        limits=RecordedTarget(limits=None, stream=False).written(),
    )
    row = Row(id="req_1", at=1.0, dialect="anthropic")
    trace = Trace(row=row, request=message, answer=message, attempts=[attempt])
    reported, most = most_of(lambda: with_analysis(trace))
    assert reported.attempts[0].links == []
    assert reported.notes == [
        "no links: the client's request: too large to be linked (it has more than 5,000 parts)"
    ]
    assert most < 4 * len(body) + _BESIDE


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", TANGLED)
def test_credentials_are_not_looked_for_in_one_and_none_of_it_is_kept(name: str) -> None:
    tool = b'{"type":"mcp","server_url":"https://x","headers":{"x-tenant":"%b"},"x":' % SECRET.encode()
    body = b'{"model":"m","input":"x","tools":[' + tool + TANGLED[name] + b"}]}"
    head = Head(method="POST", target="/v1/responses", path="/v1/responses", query="", headers={}, peer="")
    record = ExchangeRecord("req_1", time.monotonic(), finished=time.monotonic(), dialect="openai-responses")
    recording = recording_of(head, body, record, Room(1 << 30), 1 << 30)
    redactor = Redactor({"a-secret-that-is-not-there"})
    trace, most = most_of(lambda: made_trace(recording, redactor, "w"))
    assert trace.request.body == ""
    assert trace.request.truncated
    assert trace.request.bytes == len(body)
    assert trace.notes == [
        "the request is not recorded: it names tool servers, and has too many parts to search it for credentials"
    ]
    assert most < 4 * len(body) + _BESIDE


def test_one_is_recorded_and_looked_at_beside_others() -> None:
    parts = b",".join([b"[]"] * (bodies.MAX_CONTAINERS + 1))
    turn = b'{"role":"user","content":"x"}'
    with stage() as made:
        body = b'{"model":"anthropic-up/m1","max_tokens":5,"messages":[%b],"x":[%b]}' % (turn, parts)
        answer = post(made.gateway.port, "/v1/messages", body)
        beside = ask(made.gateway, BY_NAME["openai-chat"], "gemini-up/m1", "Beside it.")
        assert beside.status == 200
        trace = made.look.trace(id_of(answer))
        assert len(trace["request"]["body"]) == len(body)
        assert any("too large to be linked" in note for note in trace["notes"])
        assert made.look.trace(id_of(beside))["attempts"][0]["links"]
