"""An upstream that repeats our key in its complaint, in the middle of a stream."""

from __future__ import annotations

import http.client

import pytest

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.wire.json import encode

KEY = "upstream-key-0123456789"
START = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
    b'"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\n'
)
SPELLED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)


def complaint(**where: str) -> bytes:
    fields = {"message": "no", "type": "server_error", "param": "p", "code": "c", **where}
    return b"data: " + encode({"error": fields}) + b"\n\n"


PLAIN = complaint(message=f"bad key {KEY} given")
CASES = {
    "whole": (PLAIN,),
    "cut before it": (PLAIN[:40], PLAIN[40:]),
    "cut inside it": (PLAIN[: PLAIN.index(b"0123")], PLAIN[PLAIN.index(b"0123") :]),
    "in the code": (complaint(code=KEY),),
    "in the param": (complaint(param=KEY),),
    "in the type": (complaint(type=KEY),),
    "in escapes": (PLAIN.replace(KEY.encode(), SPELLED.encode()),),
}


@rows("case", CASES)
@rows("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "gemini"])
def test_a_key_is_never_reported_whatever_the_client_speaks(stage, path, case):
    """THREATS T9"""
    gateway, upstream = stage
    upstream.next(
        Behaviour(pieces=(START, *CASES[case]), headers=(("content-type", "text/event-stream"),), gap=0.01)
    )
    model = f"m-{list(CASES).index(case)}-{len(path)}"  # each its own breaker
    body: dict[str, object] = {"model": model, "stream": True, "max_tokens": 9}
    if path == "gemini":
        path, body = (
            f"/v1beta/models/{model}:streamGenerateContent?alt=sse",
            {"contents": [{"parts": [{"text": "x"}]}]},
        )
    elif path == "/v1/responses":
        body = {"model": model, "stream": True, "input": "x"}
    else:
        body["messages"] = [{"role": "user", "content": "x"}]
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", path, encode(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    reported = answer.read()
    connection.close()
    assert answer.status == 200
    assert b"error" in reported
    for form in (KEY, KEY[:18], SPELLED):
        assert form.encode() not in reported
    assert KEY not in (gateway.folder / "log").read_text()


@pytest.fixture(scope="module")
def stage():
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as gateway:
        yield gateway, upstream


def test_a_callers_time_covers_waiting_too(stage):
    gateway, upstream = stage
    upstream.next(Behaviour(error=429, retry_after=5))
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    headers = {"content-type": "application/json", "x-wireglot-timeout": "0.3"}
    body = encode({"model": "slow", "messages": [{"role": "user", "content": "x"}]})
    connection.request("POST", "/v1/chat/completions", body, headers)
    answer = connection.getresponse()
    assert answer.status == 504
    answer.read()
    connection.close()


def test_json_of_too_many_members_is_refused_before_it_is_read(stage):
    """FAULTS 23"""
    gateway, upstream = stage
    seen = len(upstream.requests)
    body = b'{"model":"m","messages":[' + b"[]," * 600_000 + b"[]]}"
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 400
    assert b"json_too_large" in answer.read()
    assert len(upstream.requests) == seen
    connection.close()
