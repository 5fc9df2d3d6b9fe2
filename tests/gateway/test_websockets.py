"""Responses over a WebSocket: on every upstream, in turn, and whatever a client does."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest
from openai.lib.responses_websocket import ResponsesWebSocketLimits, ResponsesWebSocketSession
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from tests.gateway.faults.faults_kit import UPSTREAMS, every_dialect, model_at
from tests.gateway.websocket_kit import ENDS, Event, answer, ask, opened
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

KEY = "wg-one-0123456789"
Stage = tuple[LiveGateway, ScriptedUpstream]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream) + _LIMITS) as gateway:
        yield gateway, upstream


_LIMITS = "[limits]\nbody = 200_000\n"


def texts(events: list[Event]) -> str:
    output = events[-1]["response"]["output"]
    return "".join(part["text"] for item in output for part in item.get("content", ()) if "text" in part)


def sent(upstream: ScriptedUpstream) -> str:
    """What the upstream was asked last."""
    return upstream.requests[-1].body.decode()


# --- answers


@pytest.mark.parametrize("source", UPSTREAMS)
def test_requests_are_answered_in_turn_and_go_on_from_one_another(stage: Stage, source: str) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        first = ask(line, model=model_at(source), input="the first question", store=False)
        assert [event["type"] for event in first][:2] == ["response.created", "response.in_progress"]
        assert first[-1]["type"] == "response.completed"
        assert [event["sequence_number"] for event in first] == list(range(len(first)))
        said, before = texts(first), first[-1]["response"]["id"]
        second = ask(
            line, model=model_at(source), input="the second", store=False, previous_response_id=before
        )
        assert second[-1]["response"]["previous_response_id"] == before
        for word in ("the first question", "the second", said[:20]):
            assert json.dumps(word)[1:-1] in sent(upstream) or word in sent(upstream)


def test_a_stored_response_is_gone_on_from_on_another_connection_too(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        stored = ask(line, model=model_at("gemini"), input="kept by the store")[-1]["response"]["id"]
    with opened(gateway) as line:
        events = ask(line, model=model_at("gemini"), input="and on", previous_response_id=stored)
        assert events[-1]["type"] == "response.completed"
        assert "kept by the store" in sent(upstream)


def test_an_unstored_answer_rests_on_the_stored_one_before_it(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        model = model_at("gemini")
        stored = ask(line, model=model, input="one, stored")[-1]["response"]["id"]
        loose = ask(line, model=model, input="two, loose", store=False, previous_response_id=stored)
        assert loose[-1]["response"]["previous_response_id"] == stored
        before = loose[-1]["response"]["id"]
        last = ask(line, model=model, input="three", store=False, previous_response_id=before)
        assert last[-1]["response"]["previous_response_id"] == before
        for word in ("one, stored", "two, loose", "three"):
            assert word in sent(upstream)


def test_what_is_not_stored_ends_with_its_connection(stage: Stage) -> None:
    gateway, _ = stage
    with opened(gateway) as line:
        lost = ask(line, model=model_at("gemini"), input="hi", store=False)[-1]["response"]["id"]
    with opened(gateway) as line:
        for id in (lost, "resp_never"):
            error = ask(line, model=model_at("gemini"), input="on", store=False, previous_response_id=id)[-1]
            assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")
        # The connection is still good.
        assert (
            ask(line, model=model_at("gemini"), input="hi", store=False)[-1]["type"] == "response.completed"
        )


def test_an_output_without_its_call_fails_and_forgets_what_it_rested_on(stage: Stage) -> None:
    gateway, _ = stage
    with opened(gateway) as line:
        before = ask(line, model=model_at("anthropic"), input="hi", store=False)[-1]["response"]["id"]
        output = {"type": "function_call_output", "call_id": "call_nobody", "output": "1"}
        more = {"model": model_at("anthropic"), "store": False, "previous_response_id": before}
        error = ask(line, input=[output], **more)[-1]
        assert (error["type"], error["error"]["param"]) == ("error", "input[0].call_id")
        assert ask(line, input="on", **more)[-1]["error"]["code"] == "previous_response_not_found"


def test_a_failed_continuation_forgets_what_it_rested_on(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        before = ask(line, model=model_at("openai-chat"), input="hi", store=False)[-1]["response"]["id"]
        more = {"model": model_at("openai-chat"), "store": False, "previous_response_id": before}
        upstream.next(Behaviour(error=400))
        error = ask(line, input="on", **more)[-1]
        assert (error["type"], error["status"]) == ("error", 400)
        assert ask(line, input="on", **more)[-1]["error"]["code"] == "previous_response_not_found"


def test_a_request_that_is_only_read_asks_nobody_and_is_gone_on_from(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        asked = len(upstream.requests)
        warm = ask(line, model=model_at("gemini"), input="warm words", store=False, generate=False)
        assert [event["type"] for event in warm] == [
            "response.created",
            "response.in_progress",
            "response.completed",
        ]
        assert warm[-1]["response"]["output"] == []
        assert warm[-1]["response"]["usage"]["total_tokens"] == 0
        assert len(upstream.requests) == asked
        id = warm[-1]["response"]["id"]
        events = ask(line, model=model_at("gemini"), input=[], store=False, previous_response_id=id)
        assert events[-1]["type"] == "response.completed"
        assert "warm words" in sent(upstream)


def test_what_is_not_stored_goes_on_from_what_is(stage: Stage) -> None:
    gateway, upstream = stage
    more = {"model": model_at("gemini"), "store": False}
    with opened(gateway) as line:
        stored = ask(line, model=model_at("gemini"), input="kept by the store")[-1]["response"]["id"]
        between = ask(line, input="kept here", previous_response_id=stored, **more)[-1]["response"]["id"]
        last = ask(line, input="and on", previous_response_id=between, **more)
        for words in ("kept by the store", "kept here", "and on"):
            assert sent(upstream).count(f'"text":"{words}"') == 1
        shown = {event["response"]["previous_response_id"] for event in last if "response" in event}
        assert shown == {between}


def test_an_output_may_answer_a_call_of_a_conversation(stage: Stage) -> None:
    gateway, _ = stage
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    call: Any = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
    kept = client.conversations.create(items=[{"type": "message", "role": "user", "content": "q"}, call])
    output = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
    with opened(gateway) as line:
        events = ask(line, model=model_at("gemini"), conversation=kept.id, input=[output])
        assert events[-1]["type"] == "response.completed"
        before = ask(line, model=model_at("gemini"), input="hi", store=False)[-1]["response"]["id"]
        both = {"conversation": kept.id, "previous_response_id": before}
        error = ask(line, model=model_at("gemini"), input="on", **both)[-1]
        assert error["error"]["code"] == "mutually_exclusive_parameters"


def test_a_session_of_the_upgrade_is_not_added_to_what_a_request_goes_on_from(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway, **{"x-wireglot-session": "one"}) as line:
        more = {"model": model_at("gemini"), "store": False}
        before = ask(line, input="said once", **more)[-1]["response"]["id"]
        ask(line, input="on", previous_response_id=before, **more)
        assert sent(upstream).count('"text":"said once"') == 1


def test_an_idempotency_key_of_the_upgrade_is_of_no_message(stage: Stage) -> None:
    with opened(stage[0], **{"idempotency-key": "one"}) as line:
        for words in ("first", "second", "first"):
            assert ask(line, model=model_at("gemini"), input=words)[-1]["type"] == "response.completed"


_MESSAGE: Event = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
_MESSAGE |= {"content": [{"type": "output_text", "text": "hi", "annotations": []}]}
_RESPONSE: Event = {
    "id": "resp_1",
    "object": "response",
    "status": "in_progress",
    "output": [],
    "model": "m1",
}


def _written(*items: Event, last: tuple[Event, ...] = ()) -> Behaviour:
    """A stream of OpenAI's own, with these items."""
    events: list[Event] = [{"type": "response.created", "response": _RESPONSE}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            place = {"output_index": index, "content_index": 0, "item_id": item["id"]}
            events.append({"type": "response.output_text.delta", **place, "delta": "hi"})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    whole = {**_RESPONSE, "status": "completed", "output": items}
    events += [{"type": "response.completed", "response": whole}, *last]
    stream = "".join(
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n"
        for number, event in enumerate(events)
    )
    return Behaviour(headers=(("content-type", "text/event-stream"),), pieces=(stream.encode(),))


def test_nothing_follows_the_end_of_an_answer(stage: Stage) -> None:
    gateway, upstream = stage
    late: Event = {"type": "error", "code": "late", "message": "late", "param": None}
    upstream.next(_written(_MESSAGE, last=(late,)))
    with opened(gateway) as line:
        more = {"model": model_at("openai-responses"), "store": False}
        assert ask(line, input="hi", **more)[-1]["type"] == "response.completed"
        assert ask(line, input="hi", **more)[0]["type"] == "response.created"


def test_reasoning_without_its_state_is_not_sent_back(stage: Stage) -> None:
    gateway, upstream = stage
    bare = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    more = {"model": model_at("openai-responses"), "store": False}
    without_id = {key: value for key, value in _MESSAGE.items() if key != "id"}
    whole = {**bare, "encrypted_content": "gAAAA"}
    for given, expected in (((bare, _MESSAGE), [without_id]), ((whole, _MESSAGE), [whole, _MESSAGE])):
        with opened(gateway) as line:
            upstream.next(_written(*given))
            before = ask(line, input="hi", **more)[-1]["response"]["id"]
            ask(line, input="on", previous_response_id=before, **more)
            assert json.loads(sent(upstream))["input"][1:-1] == expected


def create(line: ClientConnection, text: str, lane: str = "", **fields: Any) -> None:
    named = {"stream_id": lane} if lane else {}
    request = {"model": model_at("gemini"), "input": text, "store": False, **named, **fields}
    line.send(json.dumps({"type": "response.create", **request}))


@pytest.mark.parametrize("lane", ["", "lane"])
def test_several_requests_of_a_lane_wait_for_their_turn(stage: Stage, lane: str) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(Behaviour(gate=gate))
    with opened(gateway) as line:
        for number in range(3):
            create(line, f"number {number}", lane)
        line.send("{")  # names no lane: it waits for the default one's answers, and for no other's
        if lane:
            assert answer(line)[-1]["error"]["code"] == "invalid_json"
        gate.set()
        for number in range(3):
            events = answer(line)
            assert {event.get("stream_id", "") for event in events} == {lane}
            assert f"number {number}" in texts(events)
        if not lane:
            assert answer(line)[-1]["error"]["code"] == "invalid_json"


def test_lanes_are_answered_at_the_same_time(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(Behaviour(gate=gate, after=2))
    with opened(gateway) as line:
        create(line, "the slow one", "slow")
        first = json.loads(line.recv(timeout=DEADLINE_SECONDS))
        create(line, "the quick one", "quick")
        events = [first, *answer(line)]
        assert events[-1]["stream_id"] == "quick"
        assert "the quick one" in texts(events)
        gate.set()
        events += answer(line)
        assert events[-1]["stream_id"] == "slow"
        assert "the slow one" in texts(events)
        slow = [event for event in events if event["stream_id"] == "slow"]
        assert [event["sequence_number"] for event in slow] == list(range(len(slow)))


def test_no_more_lanes_are_answered_at_once_than_the_vendor_answers(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    asked = len(upstream.requests)
    upstream.next(*[Behaviour(gate=gate)] * 20)
    with opened(gateway) as line:
        for number in range(20):
            create(line, f"number {number}", f"lane-{number}")
        upstream.wait_for(asked + 16)
        assert gateway.process.gateway.in_flight == 16
        gate.set()
        ends: list[str] = []
        while len(ends) < 20:
            event = json.loads(line.recv(timeout=DEADLINE_SECONDS))
            ends += [event["stream_id"]] if event["type"] in ENDS else []
        assert sorted(ends) == sorted(f"lane-{number}" for number in range(20))
        assert len(upstream.requests) == asked + 20


def test_there_are_as_many_lanes_as_the_vendor_has(stage: Stage) -> None:
    with opened(stage[0]) as line:
        ends = []
        for number in range(33):
            create(line, "hi", f"lane-{number}", generate=False)
            ends.append(answer(line)[-1])
        *others, last = ends
        assert {end["type"] for end in others} == {"response.completed"}
        assert (last["stream_id"], last["error"]["code"]) == ("lane-32", "websocket_stream_limit_reached")
        create(line, "hi", generate=False)
        assert answer(line)[-1]["type"] == "response.completed"


def test_a_fork_that_fails_keeps_what_it_rested_on(stage: Stage) -> None:
    gateway, upstream = stage
    with opened(gateway) as line:
        create(line, "the trunk", "trunk")
        before = answer(line)[-1]["response"]["id"]
        upstream.next(Behaviour(error=400))
        create(line, "a fork", "fork", previous_response_id=before)
        assert answer(line)[-1]["status"] == 400
        create(line, "another fork", "fork", previous_response_id=before)
        assert answer(line)[-1]["type"] == "response.completed"
        assert "the trunk" in sent(upstream)


def test_a_client_that_leaves_ends_the_requests_of_all_lanes(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(*[Behaviour(gate=gate, after=1)] * 3)
    asked = len(upstream.requests)
    with opened(gateway) as line:
        for lane in ("a", "b", "", "a"):
            create(line, "hi", lane)
        requests = upstream.wait_for(asked + 3)[asked:]
    assert all(request.abandoned.wait(DEADLINE_SECONDS) for request in requests)
    gate.set()
    wait_until(lambda: gateway.process.gateway.permits == 0 and gateway.process.gateway.account.held == 0)
    assert len(upstream.requests) == asked + 3


def test_the_vendors_sdk_has_lanes_answered(stage: Stage) -> None:
    client = openai.OpenAI(base_url=f"{stage[0].url}/v1", api_key="x", max_retries=0)
    limits = ResponsesWebSocketLimits(8, 1000, 8000, 1 << 20, 1 << 23)
    with client.responses.connect() as line, ResponsesWebSocketSession(line, limits=limits) as session:
        lanes = [session.lane(name) for name in ("one", "two", "three")]
        for number, lane in enumerate(lanes):
            request: Any = {
                "type": "response.create",
                "model": model_at("anthropic"),
                "input": f"number {number}",
                "store": False,
            }
            lane.send(request)
        for number, lane in enumerate(lanes):
            final = lane.get_final_response(timeout=DEADLINE_SECONDS)
            assert f"number {number}" in final.output_text


def test_the_vendors_sdk_reads_an_answer(stage: Stage) -> None:
    gateway, _ = stage
    client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
    with client.responses.connect() as line:
        line.response.create(model=model_at("anthropic"), input="hi", store=False)
        kinds = []
        for event in line:
            kinds.append(event.type)
            if event.type in ENDS:
                break
    assert kinds[-1] == "response.completed"


def test_each_answer_has_a_log_line_and_an_account(stage: Stage) -> None:
    gateway, _ = stage
    with opened(gateway) as line:
        before = len(gateway.log())
        for _ in range(2):
            ask(line, model=model_at("gemini"), input="hi", store=False)
        told = wait_until(lambda: gateway.log()[before + 1 :])
    assert told[-1]["dialect"] == "openai-responses"
    assert told[-1]["tokens"]["output"] > 0


# --- errors


BAD = {
    "no JSON": ("{", "invalid_json", None),
    "a list": ("[]", "invalid_type", None),
    "no type": ("{}", "invalid_value", "type"),
    "another type": ('{"type":"response.cancel"}', "invalid_value", "type"),
    "a bad lane": ('{"type":"response.create","stream_id":"a b"}', "invalid_stream_id", "stream_id"),
    "background": ('{"type":"response.create","background":true}', "unsupported_parameter", "background"),
    "a bad id": (
        '{"type":"response.create","previous_response_id":7}',
        "invalid_type",
        "previous_response_id",
    ),
    "a bad input": (
        '{"type":"response.create","model":"gemini-up/m1","input":7}',
        "invalid_type",
        "input",
    ),
    "items that are none": (
        '{"type":"response.create","model":"gemini-up/m1","input":["hi"]}',
        "invalid_value",
        "input[0]",
    ),
    "a call without an id": (
        '{"type":"response.create","model":"gemini-up/m1","input":[{"type":"function_call","name":"f","call_id":[]}]}',
        "invalid_value",
        "input[0].call_id",
    ),
    "a lone surrogate": ('{"type":"response.create","input":"\\ud800","model":7}', "invalid_type", "model"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_message_is_an_error_and_the_connection_goes_on(stage: Stage, case: str) -> None:
    message, code, param = BAD[case]
    with opened(stage[0]) as line:
        line.send(message)
        error = answer(line)[-1]
        assert (error["type"], error["status"], error["error"]["code"]) == ("error", 400, code)
        assert error["error"]["param"] == param or param is None
        assert ask(line, model=model_at("gemini"), input="hi")[-1]["type"] == "response.completed"


def test_each_refused_message_has_one_log_line_and_is_counted(stage: Stage) -> None:
    gateway = stage[0]
    large = {"type": "response.create", "model": model_at("gemini"), "store": False}
    refused = {case: (message, code) for case, (message, code, _) in BAD.items()}
    refused["an id that nobody has"] = (
        json.dumps({**large, "generate": False, "previous_response_id": "resp_never"}),
        "previous_response_not_found",
    )
    wrong = []
    with opened(gateway) as line:
        for case, (message, code) in refused.items():
            counted = _counted(gateway, 400)
            line.send(message)
            logged = _logged(gateway, answer(line)[-1])
            if logged != [(400, "error", code)] or _counted(gateway, 400) != counted + 1:
                wrong.append((case, logged))
        assert not wrong
        first = ask(line, input="x" * 150_000, generate=False, **large)[-1]["response"]["id"]
        error = ask(line, input="x" * 150_000, previous_response_id=first, **large)[-1]
        assert _logged(gateway, error) == [(413, "error", "request_too_large")]


def _logged(gateway: LiveGateway, error: Event) -> list[tuple[int, str, str]]:
    """The log lines of a refused message: status, outcome, code."""
    id = error["headers"]["x-request-id"]
    lines = wait_until(lambda: [each for each in gateway.log() if each["id"] == id])
    return [(each["status"], each["outcome"], each["error"]["code"]) for each in lines]


def _counted(gateway: LiveGateway, status: int) -> int:
    """Requests of this status, by the metrics."""
    text = gateway.call(gateway.process.gateway.scrape()).decode()
    pattern = rf'^wireglot_requests_total\{{[^}}]*status="{status}"[^}}]*\}} (\d+)'
    return sum(int(count) for count in re.findall(pattern, text, re.MULTILINE))


def test_an_unknown_report_of_the_client_is_ignored(stage: Stage) -> None:
    with opened(stage[0]) as line:
        line.send('{"type":"response.processed","response_id":"resp_1"}')
        assert ask(line, model=model_at("gemini"), input="hi")[0]["type"] == "response.created"


def test_an_upstream_that_refuses_is_told_with_status_and_headers(stage: Stage) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(error=429, retry_after=7))
    with opened(gateway) as line:
        error = ask(line, model=model_at("gemini"), input="hi")[-1]
    assert error["status"] == 429
    assert error["headers"]["retry-after"] == error["error"]["headers"]["retry-after"] == "7"


def test_an_upstream_that_breaks_off_is_a_failed_response(stage: Stage) -> None:
    gateway, upstream = stage
    upstream.next(Behaviour(fault="close-midstream"))
    with opened(gateway) as line:
        assert ask(line, model=model_at("openai-chat"), input="hi")[-1]["type"] == "response.failed"


def test_a_client_that_leaves_ends_its_request(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(Behaviour(gate=gate, after=1))
    with opened(gateway) as line:
        before = len(gateway.log())
        line.send(json.dumps({"type": "response.create", "model": model_at("gemini"), "input": "hi"}))
        line.recv(timeout=DEADLINE_SECONDS)
    wait_until(lambda: any(each["outcome"] == "client_abort" for each in gateway.log()[before:]))
    gate.set()
    wait_until(lambda: gateway.process.gateway.permits == 0)


def test_a_client_that_leaves_with_its_whole_answer_has_not_left_early(stage: Stage) -> None:
    gateway, upstream = stage
    gate = threading.Event()
    upstream.next(
        Behaviour(gate=gate, after=1000)
    )  # the end of the answer is there, that of the stream is not
    model = "openai-responses-up/left"
    with opened(gateway) as line:
        assert ask(line, model=model, input="hi", store=False)[-1]["type"] == "response.completed"
    lines = wait_until(lambda: [each for each in gateway.log() if each["model"] == model])
    gate.set()
    assert [each["outcome"] for each in lines] == ["ok"]


def test_a_client_that_leaves_while_its_request_is_only_read_is_logged_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = stage[0]
    reading = threading.Event()

    async def never(*args: Any) -> Any:
        reading.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(gateway.process.gateway, "_read", never)
    before = len(gateway.log())
    with opened(gateway) as line:
        fields = {"type": "response.create", "model": model_at("gemini"), "input": "hi", "generate": False}
        line.send(json.dumps(fields))
        assert reading.wait(DEADLINE_SECONDS)
    logged = wait_until(lambda: gateway.log()[before:])
    assert [(each["operation"], each["outcome"]) for each in logged] == [("prewarm", "client_abort")]


# --- who may


def _keyed(upstream: ScriptedUpstream, more: str = "", key: str = KEY) -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f'{every_dialect(upstream)}[keys]\none = "sha256:{digest}"\n{more}'


def test_the_key_is_asked_for_before_the_upgrade(stage: Stage) -> None:
    with LiveGateway(_keyed(stage[1])) as gateway:
        with pytest.raises(InvalidStatus) as refused, opened(gateway):
            pass
        assert refused.value.response.status_code == 401
        with opened(gateway, authorization=f"Bearer {KEY}") as line:
            assert ask(line, model=model_at("gemini"), input="hi")[-1]["type"] == "response.completed"
            gateway.reconfigure(_keyed(stage[1], key="wg-another"))
            wait_until(lambda: ask(line, model=model_at("gemini"), input="hi")[-1].get("status") == 401)


def test_there_are_so_many_for_a_key_and_none_where_they_are_off(stage: Stage) -> None:
    with LiveGateway(_keyed(stage[1], "[limits]\nwebsockets = 1\n")) as gateway:
        key = {"authorization": f"Bearer {KEY}"}
        with opened(gateway, **key), pytest.raises(InvalidStatus) as refused, opened(gateway, **key):
            pass
        assert refused.value.response.status_code == 429
        with opened(gateway, **key) as line:  # the place is free again
            assert ask(line, model=model_at("gemini"), input="hi")[-1]["type"] == "response.completed"
    with LiveGateway(_keyed(stage[1], "[limits]\nwebsockets = 0\n")) as gateway:
        with pytest.raises(InvalidStatus) as refused, opened(gateway, **key):
            pass
        assert refused.value.response.status_code == 426


def test_a_connection_ends_when_it_has_lasted_long_enough(stage: Stage) -> None:
    toml = every_dialect(stage[1]) + "[limits]\nwebsocket_time = 0.05\n"
    with LiveGateway(toml) as gateway, opened(gateway) as line:
        assert answer(line)[-1]["error"]["code"] == "websocket_connection_limit_reached"
        with pytest.raises(ConnectionClosed):
            line.recv(timeout=DEADLINE_SECONDS)


def test_a_drain_lets_the_running_answer_end_and_closes(stage: Stage) -> None:
    gate = threading.Event()
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        upstream.next(Behaviour(gate=gate, after=1))
        with opened(gateway) as busy, opened(gateway) as idle:
            busy.send(json.dumps({"type": "response.create", "model": model_at("gemini"), "input": "hi"}))
            busy.recv(timeout=DEADLINE_SECONDS)
            draining = gateway.process.server.drain(DEADLINE_SECONDS)
            ending = threading.Thread(target=lambda: gateway.call(draining))
            ending.start()
            with pytest.raises(ConnectionClosed) as closed:
                idle.recv(timeout=DEADLINE_SECONDS)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1001
            gate.set()
            assert answer(busy)[-1]["type"] == "response.completed"
            with pytest.raises(ConnectionClosed):
                busy.recv(timeout=DEADLINE_SECONDS)
            ending.join(DEADLINE_SECONDS)
            assert not ending.is_alive()


# --- abuse


class Raw:
    """A client that says what it wants."""

    def __init__(self, gateway: LiveGateway, version: str = "1.1", **headers: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", gateway.port), timeout=DEADLINE_SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        asked = {
            "Host": "localhost",
            "Upgrade": "websocket",
            "Connection": "keep-alive, Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": key,
            **headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in asked.items() if value)
        self.socket.sendall(f"GET /v1/responses HTTP/{version}\r\n{lines}\r\n".encode())
        self.data = b""
        self.head = self._until(b"\r\n\r\n").decode()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self.data:
            piece = self.socket.recv(65536)
            assert piece, self.data
            self.data += piece
        found, self.data = self.data.split(mark, 1)
        return found

    def frame(self, opcode: int, payload: bytes = b"", *, fin: bool = True, masked: bool = True) -> None:
        size = len(payload)
        head = bytes([opcode | (0x80 if fin else 0)])
        bit = 0x80 if masked else 0
        if size < 126:
            head += bytes([bit | size])
        elif size < 1 << 16:
            head += bytes([bit | 126]) + struct.pack(">H", size)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", size)
        self.socket.sendall(head + (bytes(4) if masked else b"") + payload)  # a mask of zeros changes nothing

    def close_code(self) -> int:
        """With which the gateway closes; what comes before is passed over."""
        data = self.data
        while True:
            while len(data) >= 2 and len(data) >= 2 + (size := data[1] & 0x7F) and size < 126:
                if data[0] & 0x0F == 8:
                    return int.from_bytes(data[2:4], "big")
                data = data[2 + size :]
            piece = self.socket.recv(65536)
            assert piece, "closed without a word"
            data += piece


def test_no_compression_is_agreed_on(stage: Stage) -> None:
    raw = Raw(stage[0], **{"Sec-WebSocket-Extensions": "permessage-deflate"})
    assert raw.head.startswith("HTTP/1.1 101 ")
    assert "extensions" not in raw.head.lower()
    raw.socket.close()


@pytest.mark.parametrize(
    "header", ["Sec-WebSocket-Key", "Sec-WebSocket-Version", "Connection", "Upgrade"], ids=str
)
def test_half_a_handshake_is_refused_by_name(stage: Stage, header: str) -> None:
    wrong = "none" if header != "Upgrade" else "h2c"
    raw = Raw(stage[0], **{header: wrong})
    assert raw.head.startswith("HTTP/1.1 400 ")
    raw.socket.close()


def test_an_upgrade_of_http_1_0_is_overlooked(stage: Stage) -> None:
    raw = Raw(stage[0], version="1.0")
    assert not raw.head.startswith("HTTP/1.1 101 ")
    raw.socket.close()


ABUSE: dict[str, tuple[int, list[tuple[int, bytes, bool, bool]]]] = {
    # The code of the close, and frames: opcode, payload, fin, masked.
    "no mask": (1002, [(1, b"{}", True, False)]),
    "binary": (1003, [(2, b"{}", True, True)]),
    "no UTF-8": (1007, [(1, b"\xff\xfe", True, True)]),
    "an unknown opcode": (1002, [(3, b"", True, True)]),
    "a continuation of nothing": (1002, [(0, b"x", True, True)]),
    "a new message within another": (1002, [(1, b"{", False, True), (1, b"}", True, True)]),
    "a control frame in pieces": (1002, [(9, b"x", False, True)]),
    "a large control frame": (1002, [(9, b"x" * 126, True, True)]),
    "too large": (1009, [(1, b" " * 200_001, True, True)]),
    "too large in pieces": (1009, [(1, b" " * 60_000, False, True)] + [(0, b" " * 60_000, False, True)] * 3),
    "too many waiting": (1008, [(1, b"{}" + b" " * 99_990, True, True)] * 40),
    "goodbye": (1000, [(8, struct.pack(">H", 1000), True, True)]),
}
LOGGED = {
    1002: (400, "invalid_framing"),
    1003: (415, "unsupported_media_type"),
    1007: (400, "invalid_utf8"),
    1008: (429, "rate_limit_exceeded"),
    1009: (413, "request_too_large"),
}
"""How a message that ends its connection is logged."""


@pytest.mark.parametrize("case", ABUSE)
def test_abuse_ends_the_connection_and_harms_nobody(stage: Stage, case: str) -> None:
    gateway, upstream = stage
    code, frames = ABUSE[case]
    before = len(gateway.log())
    raw = Raw(gateway)
    gate = threading.Event()
    if case == "too many waiting":
        upstream.next(Behaviour(gate=gate))
        raw.frame(
            1, json.dumps({"type": "response.create", "model": model_at("gemini"), "input": "x"}).encode()
        )
        wait_until(lambda: gateway.process.gateway.in_flight == 1)
    try:
        for opcode, payload, fin, masked in frames:
            raw.frame(opcode, payload, fin=fin, masked=masked)
    except OSError:
        pass  # it is closed already
    assert raw.close_code() == code
    gate.set()
    raw.socket.close()
    if code in LOGGED:
        wait_until(lambda: LOGGED[code] in _failures(gateway, before))
    with opened(gateway) as line:
        assert ask(line, model=model_at("gemini"), input="hi")[-1]["type"] == "response.completed"
    wait_until(lambda: gateway.process.gateway.account.held == 0)
    assert code not in LOGGED or _failures(gateway, before).count(LOGGED[code]) == 1


def _failures(gateway: LiveGateway, before: int) -> list[tuple[int, str]]:
    lines = gateway.log()[before:]
    return [
        (each["status"], each.get("error", {}).get("code", "")) for each in lines if each["status"] != 200
    ]


def test_a_flood_of_bad_messages_is_answered_only_as_far_as_it_is_read(stage: Stage) -> None:
    raw = Raw(stage[0])
    raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    flood = (bytes([0x81, 0x80 | 2]) + bytes(4) + b"{}") * 1000
    try:
        for _ in range(200):
            raw.socket.sendall(flood)
    except OSError:
        pass  # it is closed already
    read = 0
    while data := raw.socket.recv(1 << 20):
        read += len(data)
    assert read < 16 << 20
    raw.socket.close()


def test_a_conversation_grows_no_larger_than_a_body_may_be(stage: Stage) -> None:
    gateway, _ = stage
    with opened(gateway) as line:
        more = {"model": model_at("gemini"), "store": False, "input": "x" * 120_000}
        before = ask(line, **more)[-1]["response"]["id"]
        error = ask(line, previous_response_id=before, **more)[-1]
        assert (error["type"], error["status"]) == ("error", 413)
        wait_until(lambda: gateway.process.gateway.account.held == 0)


def test_idle_connections_leave_memory_for_requests(stage: Stage) -> None:
    toml = every_dialect(stage[1]) + "[limits]\nbody = 200_000\nbuffered = 1_000_000\n"
    with LiveGateway(toml) as gateway, ExitStack() as lines:
        for _ in range(8):
            line = lines.enter_context(opened(gateway))
            more = {"model": model_at("gemini"), "store": False}
            assert ask(line, input="x" * 120_000, **more)[-1]["type"] == "response.completed"
        wait_until(lambda: gateway.process.gateway.in_flight == 0)
        wait_until(lambda: gateway.process.gateway.account.held <= 250_000)


def test_a_flood_of_pings_ends_its_connection_and_no_other(stage: Stage) -> None:
    gateway, _ = stage
    raw = Raw(gateway)
    ping = bytes([0x89, 0x80 | 100]) + bytes(4) + b"x" * 100
    with contextlib.suppress(ConnectionError):
        for _ in range(200_000):
            raw.socket.send(ping)
        pytest.fail("the flood was read to its end")
    with opened(gateway) as line:
        assert ask(line, model=model_at("gemini"), input="hi")[-1]["type"] == "response.completed"
    assert gateway.process.gateway.account.held < 4 << 20
    raw.socket.close()


def test_a_client_without_a_sign_of_life_is_let_go(stage: Stage) -> None:
    toml = every_dialect(stage[1]) + "[limits]\nping = 0.05\n"
    with LiveGateway(toml) as gateway:
        raw = Raw(gateway)
        assert raw.close_code() == 1001
        raw.socket.close()
