"""A client's WebSocket over one to the upstream: what goes out, and whatever the upstream does."""

from __future__ import annotations

import json
import re
import struct
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.gateway.faults.faults_kit import KEY, ONCE, provider
from tests.gateway.websocket_kit import Event, answer, ask, opened
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Fault, ScriptedUpstream

MODEL = "up/m1"
SOCKET = ONCE + "websocket = true\n"
SHORT = SOCKET + "timeouts = { first_byte = 0.3, idle = 0.3 }\n"
LIMITS = "[limits]\nevent = 100_000\n"
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
Stage = tuple[LiveGateway, ScriptedUpstream]


def _toml(upstream: ScriptedUpstream) -> str:
    tables = [
        provider("up", upstream, "openai-responses", SOCKET),
        provider("plain", upstream, "openai-responses"),
        provider("short", upstream, "openai-responses", SHORT),
        provider("again", upstream, "openai-responses", SOCKET.replace("retries = 0", "retries = 1")),
        provider("strict", upstream, "openai-responses", SOCKET + 'losses = "as-is"\n'),
    ]
    return "".join(tables) + LIMITS


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream(websockets=True) as upstream, LiveGateway(_toml(upstream)) as gateway:
        yield gateway, upstream


@pytest.fixture(autouse=True)
def _nothing_is_left(stage: Stage) -> Iterator[None]:
    gateway, upstream = stage
    upstream.reset()
    yield
    running = gateway.process.gateway
    wait_until(lambda: gateway.process._http.open_sockets == 0)
    wait_until(lambda: running.permits == 0 and running.in_flight == 0 and running.account.held == 0)


def turns(gateway: LiveGateway, model: str, **fields: Any) -> list[list[Event]]:
    """Three requests on one connection, each after the one before: a call, its output, a message."""
    common = {"model": model, "tools": [TOOL], "instructions": "be brief", **fields}
    with opened(gateway) as line:
        first = ask(line, input="[[demo:think]] [[demo:tool look {}]] look around", **common)
        called = [item for item in first[-1]["response"]["output"] if item["type"] == "function_call"]
        output = {"type": "function_call_output", "call_id": called[0]["call_id"], "output": "seen"}
        second = ask(line, input=[output], previous_response_id=first[-1]["response"]["id"], **common)
        again = second[-1]["response"]["id"]
        return [first, second, ask(line, input="thanks", previous_response_id=again, **common)]


def messages(upstream: ScriptedUpstream) -> list[dict[str, Any]]:
    """Those that came over a WebSocket, as they came; {} for a request over HTTP."""
    return [json.loads(request.message or b"{}") for request in upstream.requests]


def inputs(upstream: ScriptedUpstream) -> list[list[str]]:
    """What each request says as the upstream understood it: over a WebSocket, with what it goes on from."""
    return [_said(request.json["input"]) for request in upstream.requests]


def _said(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    said = []
    for item in given:
        content = item.get("content") or ()
        said += [content] if isinstance(content, str) else [part["text"] for part in content]
        said += [
            item[key] for key in ("call_id", "arguments", "output", "encrypted_content") if item.get(key)
        ]
    return said


def frame(opcode: int, payload: bytes, *, fin: bool = True, masked: bool = False) -> bytes:
    size = len(payload)
    if size < 126:
        length = bytes([size | masked << 7])
    elif size < 1 << 16:
        length = bytes([126 | masked << 7]) + struct.pack(">H", size)
    else:
        length = bytes([127 | masked << 7]) + struct.pack(">Q", size)
    return bytes([opcode | fin << 7]) + length + (bytes(4) if masked else b"") + payload


def text(event: Event) -> bytes:
    return frame(1, json.dumps(event).encode())


# --- what goes out


@pytest.mark.parametrize("fields", [{"store": False}, {"store": True}, {}], ids=str)
def test_only_what_is_new_goes_out_and_means_the_same_as_the_whole(
    stage: Stage, fields: dict[str, Any]
) -> None:
    gateway, upstream = stage
    fields = {**fields, "include": ["reasoning.encrypted_content"]}
    turns(gateway, "plain/m1", **fields)
    whole = inputs(upstream)
    assert messages(upstream) == [{}, {}, {}]
    upstream.reset()
    answers = turns(gateway, MODEL, **fields)
    assert [events[-1]["type"] for events in answers] == ["response.completed"] * 3
    assert inputs(upstream) == whole
    sent = messages(upstream)
    assert [message["type"] for message in sent] == ["response.create"] * 3
    assert [_said(message["input"])[-1] for message in sent[1:]] == ["seen", "thanks"]
    assert [len(message["input"]) for message in sent[1:]] == [1, 1]
    assert all(message["tools"] and message["instructions"] == "be brief" for message in sent)
    assert not any("stream" in message for message in sent)
    assert len({request.connection for request in upstream.requests}) == 1
    assert {request.headers["authorization"] for request in upstream.requests} == {f"Bearer {KEY}"}


def test_the_saved_bytes_are_counted(stage: Stage) -> None:
    gateway = stage[0]

    def counts() -> list[float]:
        """Bytes sent, and bytes saved."""
        shown = gateway.call(gateway.process.gateway.scrape()).decode()
        found = re.findall(r'^wireglot_upstream_websocket_bytes_total{bytes="(\w+)"} (.+)$', shown, re.M)
        assert [name for name, _ in found] == ["sent", "saved"]
        return [float(count) for _, count in found]

    sent, saved = counts()
    with opened(gateway) as line:
        ask(line, model=MODEL, input="hi", store=False)
    assert counts()[0] > sent
    assert counts()[1] == saved, "a first request goes out whole"
    turns(gateway, MODEL, store=False)
    assert counts()[1] > saved


def test_a_large_conversation_goes_out_once(stage: Stage) -> None:
    gateway, upstream = stage
    large = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "x" * 300_000}
    question = {"role": "user", "content": "hi"}
    with opened(gateway) as line:
        first = ask(line, model=MODEL, input=[question, large, output], tools=[TOOL], store=False)[-1]
        again = {"previous_response_id": first["response"]["id"]}
        ask(line, model=MODEL, input="on", tools=[TOOL], store=False, **again)
    whole, delta = upstream.requests
    assert len(whole.message) > 300_000 > 1000 > len(delta.message)
    assert len(delta.body) > 300_000


def test_another_conversation_on_the_connection_goes_out_whole(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        before = ask(line, model=MODEL, input="one", store=False)[-1]["response"]["id"]
        ask(line, model=MODEL, input="something else", store=False)
        ask(line, model=MODEL, input="two", store=False, previous_response_id=before)
    sent = messages(upstream)
    assert [message.get("previous_response_id") for message in sent] == [None, None, None]
    assert [said[0] for said in inputs(upstream)] == ["one", "something else", "one"]
    assert len({request.connection for request in upstream.requests}) == 1


def test_each_client_connection_has_one_of_its_own_upstream(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as one, opened(gateway) as other:
        for line in (one, other, one):
            ask(line, model=MODEL, input="hi", store=False)
        assert gateway.process._http.open_sockets == 2
    first, second, third = (request.connection for request in upstream.requests)
    assert first == third != second


def test_each_lane_has_a_connection_of_its_own_upstream(stage: Stage) -> None:
    gateway, upstream = stage
    ids: dict[str, str] = {}
    with opened(gateway) as line:
        for turn in ("one", "two"):
            for lane in ("a", "b"):
                again = {"previous_response_id": ids[lane]} if lane in ids else {}
                last = ask(line, model=MODEL, input=turn, store=False, stream_id=lane, **again)[-1]
                ids[lane] = last["response"]["id"]
    first, second, *rest = (request.connection for request in upstream.requests)
    assert [first, second] == rest
    assert first != second
    assert [_said(message["input"]) for message in messages(upstream)[2:]] == [["two"], ["two"]]


def test_requests_over_http_and_those_sent_as_they_are_use_no_websocket(stage: Stage) -> None:
    gateway, upstream = stage
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    for event in client.responses.create(model=MODEL, input="hi", store=False, stream=True):
        assert event.type != "error"
    with opened(gateway) as line:
        assert ask(line, model="strict/m1", input="hi", store=False)[-1]["type"] == "response.completed"
    assert messages(upstream) == [{}, {}]


# --- where there is none, or no longer


def test_an_upstream_without_websockets_is_asked_for_one_once() -> None:
    with (
        ScriptedUpstream() as upstream,
        LiveGateway(provider("up", upstream, "openai-responses", SOCKET)) as gateway,
    ):
        for _ in range(2):
            answers = turns(gateway, MODEL, store=False)
            assert [events[-1]["type"] for events in answers] == ["response.completed"] * 3
        assert [request.method for request in upstream.requests] == ["GET"] + ["POST"] * 6
        first, *_, last = _said(upstream.requests[3].json["input"])
        assert "look around" in first
        assert last == "thanks"


def _error(code: str) -> Behaviour:
    error = {"type": "invalid_request_error", "code": code, "message": "no longer", "param": None}
    return Behaviour(frames=(text({"type": "error", "status": 400, "error": error}),))


LOST = {
    "closed while it waited": [Behaviour(close=True), Behaviour()],
    "closed at the next request": [Behaviour(), Behaviour(fault="close"), Behaviour()],
    "reset at the next request": [Behaviour(), Behaviour(fault="reset"), Behaviour()],
    "the answer is forgotten": [Behaviour(), _error("previous_response_not_found"), Behaviour()],
    "it has lasted long enough": [
        Behaviour(),
        _error("websocket_connection_limit_reached"),
        Behaviour(),
    ],
}


@pytest.mark.parametrize("case", LOST)
def test_a_lost_connection_is_replaced_and_the_request_goes_out_whole(stage: Stage, case: str) -> None:
    gateway, upstream = stage
    upstream.next(*LOST[case])
    with opened(gateway) as line:
        before = ask(line, model=MODEL, input="one", store=False)[-1]["response"]["id"]
        last = ask(line, model=MODEL, input="two", store=False, previous_response_id=before)
        assert last[-1]["type"] == "response.completed"
        again = last[-1]["response"]["id"]
        ask(line, model=MODEL, input="three", store=False, previous_response_id=again)
    whole, delta = upstream.requests[-2], upstream.requests[-1]
    assert _said(json.loads(whole.message)["input"])[::2] == ["one", "two"]
    assert _said(json.loads(delta.message)["input"]) == ["three"]
    assert upstream.requests[0].connection != whole.connection == delta.connection


def test_a_message_that_is_too_large_for_the_upstream_goes_out_over_http(stage: Stage) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(frames=(frame(8, struct.pack(">H", 1009)),)), Behaviour(), Behaviour())
    with opened(gateway) as line:
        before = ask(line, model=MODEL, input="one", store=False)[-1]
        assert before["type"] == "response.completed"
        ask(line, model=MODEL, input="two", store=False, previous_response_id=before["response"]["id"])
    sent = messages(upstream)
    assert [bool(message) for message in sent] == [True, False, False]
    body = upstream.requests[-1].json
    assert body["stream"] is True
    assert not {"type", "generate", "stream_id"} & body.keys()


def test_a_websocket_that_is_refused_at_once_goes_on_over_http(stage: Stage) -> None:
    gateway, upstream = stage
    upstream.next(_error("websocket_connection_limit_reached"), Behaviour())
    with opened(gateway) as line:
        assert ask(line, model=MODEL, input="one", store=False)[-1]["type"] == "response.completed"
    assert [bool(message) for message in messages(upstream)] == [True, False]


@pytest.mark.parametrize("fault", ["close-midstream", "reset-midstream"])
def test_a_new_websocket_that_brings_no_answer_is_retried_over_http(stage: Stage, fault: Fault) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(fault=fault, frames=()), Behaviour(), Behaviour())
    with opened(gateway) as line:
        for _ in range(2):
            assert ask(line, model="again/m1", input="one", store=False)[-1]["type"] == "response.completed"
    assert [bool(message) for message in messages(upstream)] == [True, False, False]


# --- errors


def test_a_refusal_over_the_websocket_is_one_over_http(stage: Stage) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(error=429, retry_after=7), Behaviour(error=400), Behaviour())
    with opened(gateway) as line:
        error = ask(line, model=MODEL, input="hi", store=False)[-1]
        assert (error["type"], error["status"], error["headers"]["retry-after"]) == ("error", 429, "7")
        error = ask(line, model=MODEL, input="hi", store=False)[-1]
        assert (error["type"], error["status"]) == ("error", 400)
        assert ask(line, model=MODEL, input="hi", store=False)[-1]["type"] == "response.completed"
    assert all(messages(upstream))


ODD: dict[str, dict[str, Any]] = {
    "a length that is none": {"headers": {"Content-Length": "none"}},
    "a length that is too large": {"headers": {"content-length": "5000000000"}},
    "a code that is a list": {"error": {"code": ["bad"], "message": "no such tool"}},
}


@pytest.mark.parametrize("case", ODD)
def test_an_odd_refusal_over_the_websocket_is_understood(stage: Stage, case: str) -> None:
    gateway, upstream = stage
    error = {"code": "bad", "message": "no such tool"}
    upstream.next(Behaviour(frames=(text({"type": "error", "status": 400, "error": error, **ODD[case]}),)))
    with opened(gateway) as line:
        refused = ask(line, model=MODEL, input="hi", store=False)[-1]
        assert (refused["type"], refused["status"]) == ("error", 400)
        assert "no such tool" in refused["error"]["message"]
        assert ask(line, model=MODEL, input="hi", store=False)[-1]["type"] == "response.completed"


def test_a_client_that_leaves_ends_the_request_upstream(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(Behaviour(gate=gate, after=5))
    with opened(gateway) as line:
        line.send(json.dumps({"type": "response.create", "model": MODEL, "input": "hi", "store": False}))
        line.recv(timeout=DEADLINE_SECONDS)
    assert upstream.wait_for(1)[0].abandoned.wait(DEADLINE_SECONDS)


def test_a_drain_ends_idle_websockets() -> None:
    with (
        ScriptedUpstream(websockets=True) as upstream,
        LiveGateway(provider("up", upstream, "openai-responses", SOCKET)) as gateway,
        opened(gateway) as line,
    ):
        ask(line, model=MODEL, input="hi", store=False)
        gateway.call(gateway.process.server.drain(60))
        wait_until(lambda: gateway.process._http.open_sockets == 0)
        upstream.wait_closed()


# --- abuse


_LARGE = b'{"type":"response.output_text.delta","delta":"' + b"x" * 120_000 + b'"}'
ABUSE: dict[str, tuple[str, Behaviour]] = {
    # The model, and what the upstream does in place of an answer, or of the rest of it.
    "no WebSocket at all": (MODEL, Behaviour(frames=(b"\xff" * 200,))),
    "no JSON": (MODEL, Behaviour(frames=(frame(1, b"<html>"),))),
    "a list": (MODEL, Behaviour(frames=(frame(1, b"[]"),))),
    "binary": (MODEL, Behaviour(frames=(frame(2, b"{}"),))),
    "masked": (MODEL, Behaviour(frames=(frame(1, b"{}", masked=True),))),
    "no UTF-8": (MODEL, Behaviour(frames=(frame(1, b"{\xff\xfe"),))),
    "an unknown opcode": (MODEL, Behaviour(frames=(frame(3, b""),))),
    "a large message": (MODEL, Behaviour(frames=(frame(1, _LARGE),))),
    "a large message in pieces": (
        MODEL,
        Behaviour(frames=(frame(1, _LARGE[:60_000], fin=False), frame(0, _LARGE[60_000:]))),
    ),
    "a large message without an end": (
        "short/m1",
        Behaviour(
            fault="stall-midstream",
            frames=(frame(1, b"{", fin=False), *[frame(0, b" " * 9_000, fin=False)] * 12),
        ),
    ),
    "half a message": (
        "short/m1",
        Behaviour(fault="stall-midstream", frames=(frame(1, b'{"type":', fin=False),)),
    ),
    "a normal close": (MODEL, Behaviour(frames=(frame(8, struct.pack(">H", 1000)),))),
    "an internal error": (MODEL, Behaviour(frames=(frame(8, struct.pack(">H", 1011) + b"oops"),))),
    "a close without a code": (MODEL, Behaviour(frames=(frame(8, b""),))),
    "no close at all": (MODEL, Behaviour(fault="close-midstream", frames=())),
    "a reset": (MODEL, Behaviour(fault="reset-midstream", frames=())),
    "silence": ("short/m1", Behaviour(fault="stall-midstream", frames=())),
    "pings in place of an answer": (
        "short/m1",
        Behaviour(fault="stall-midstream", frames=tuple([frame(9, b"x" * 100)] * 10)),
    ),
    "a flood of pings": (
        MODEL,
        Behaviour(fault="stall-midstream", frames=tuple([frame(9, b"x" * 100) * 100] * 20)),
    ),
    "pongs that nobody asked for": (
        MODEL,
        Behaviour(fault="stall-midstream", frames=tuple([frame(10, b"x" * 100) * 100] * 20)),
    ),
}
TIMED_OUT = frozenset({"silence", "pings in place of an answer", "half a message"})


@pytest.mark.parametrize("begun", [False, True], ids=["at once", "within an answer"])
@pytest.mark.parametrize("case", ABUSE)
def test_abuse_is_an_error_and_harms_nobody(stage: Stage, case: str, begun: bool) -> None:
    gateway, upstream = stage
    model, behaviour = ABUSE[case]
    with opened(gateway) as line:
        if begun:
            events = ask(line, model=MODEL, input="hi", store=False)
            started = tuple(text(event) for event in events[:6])
            frames = (*started, *(behaviour.frames or ()))
            behaviour = Behaviour(fault=behaviour.fault, frames=frames)
        upstream.next(
            behaviour if behaviour.fault else Behaviour(fault="close-midstream", frames=behaviour.frames)
        )
        ended = ask(line, model=model, input="hi", store=False)[-1]
        if begun:
            assert ended["type"] == "response.failed"
            assert ended["response"]["error"]["code"] == "server_error"
        else:
            expected = (504, "upstream_timeout") if case in TIMED_OUT else (502, "upstream_error")
            assert (ended["type"], ended["status"], ended["error"]["code"]) == ("error", *expected)
        assert ask(line, model=MODEL, input="hi", store=False)[-1]["type"] == "response.completed"
    wait_until(lambda: gateway.process._http.open_sockets == 0)


def test_what_comes_while_nothing_is_asked_ends_the_websocket(stage: Stage) -> None:
    gateway, upstream = stage
    events: list[Event] = []
    with opened(gateway) as line:
        events = ask(line, model=MODEL, input="hi", store=False)
        stray = (*(text(event) for event in events), text({"type": "response.created", "response": {}}))
        upstream.next(Behaviour(frames=stray))
        last = ask(line, model=MODEL, input="hi", store=False)
        assert last[-1]["type"] == "response.completed"
        wait_until(lambda: gateway.process._http.open_sockets == 0)
        again = last[-1]["response"]["id"]
        assert ask(line, model=MODEL, input="two", store=False, previous_response_id=again)[-1]["type"] == (
            "response.completed"
        )
    assert len(json.loads(upstream.requests[-1].message)["input"]) > 1


def test_a_second_end_of_an_answer_is_not_the_next_answer(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        first = ask(line, model="again/m1", input="hi", store=False)[-1]
        upstream.next(Behaviour(frames=(text(first),)), Behaviour())
        last = ask(line, model="again/m1", input="two", store=False)[-1]
        assert last["type"] == "response.completed"
        assert last["response"]["id"] != first["response"]["id"]
    assert [bool(message) for message in messages(upstream)] == [True, True, True]


def test_answers_wait_for_a_client_that_does_not_read(stage: Stage) -> None:
    gateway, _ = stage
    with opened(gateway) as line:
        line.send(
            json.dumps(
                {"type": "response.create", "model": MODEL, "input": "[[demo:words 20000]]", "store": False}
            )
        )
        events = answer(line)
    assert events[-1]["type"] == "response.completed"
    assert [event["sequence_number"] for event in events] == list(range(len(events)))


def test_each_answer_has_its_own_log_line_and_usage(stage: Stage) -> None:
    gateway, _ = stage
    model = "up/logged"
    turns(gateway, model, store=False)
    lines = wait_until(lambda: found if len(found := _lines(gateway, model)) == 3 else None)
    assert [(line["status"], line["outcome"], line["route"]) for line in lines] == [(200, "ok", model)] * 3
    assert all(line["tokens"]["output"] > 0 for line in lines)


def _lines(gateway: LiveGateway, model: str) -> list[dict[str, Any]]:
    return [line for line in gateway.log() if line["model"] == model]
