"""Groups DC and DD through a running gateway: streams that wait, break or are left, and upstreams that fail."""

import json
import socket
import threading
import urllib.request
from typing import Any

import pytest

from tests.requirements.live import PATHS, STREAMS, ask, question, stage, words
from tests.requirements.wire import MAIN
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

clients = pytest.mark.parametrize("client", MAIN)
PINGS = {"anthropic": b"event: ping", "openai-chat": b": ", "openai-responses": b": "}
ENDS = {
    "anthropic": b"message_stop",
    "openai-chat": b"[DONE]",
    "openai-responses": b"response.completed",
    "gemini": b'"STOP"',
}


def wish(client: str) -> dict[str, Any]:
    return {} if client == "gemini" else {"stream": True}


@pytest.mark.parametrize("client", list(PINGS))
def test_a_silent_upstream_is_bridged(client):
    """R-DC-09"""
    with stage("gemini", "[limits]\nping = 0.05\n") as (gateway, upstream):
        goes_on = threading.Event()
        upstream.otherwise = Behaviour(gate=goes_on)
        body = json.dumps(question(client, stream=True)).encode()
        asked = urllib.request.Request(
            gateway.url + STREAMS[client], body, {"content-type": "application/json"}
        )
        with urllib.request.urlopen(asked) as answer:
            assert answer.read(len(PINGS[client])) == PINGS[client]
            goes_on.set()
            assert ENDS[client] in answer.read()


@clients
@pytest.mark.parametrize("fault", ["no-terminal", "error-midstream", "reset-midstream"])
def test_a_broken_stream_ends_in_an_error_and_never_in_an_end(client, fault):
    """R-DC-07"""
    with stage("anthropic", retry="{retries = 0}") as (gateway, upstream):
        after = None if fault == "no-terminal" else 3
        upstream.otherwise = Behaviour(fault=fault, after=after)
        answer = ask(gateway, STREAMS[client], question(client, "[[demo:text 50]]", **wish(client)))
    assert ENDS[client] not in answer.body
    assert b"error" in answer.body


@clients
def test_a_client_that_leaves_ends_the_question_upstream(client):
    """R-DC-10"""
    with stage("anthropic") as (gateway, upstream):
        upstream.otherwise = Behaviour(gap=0.2)
        body = json.dumps(question(client, "[[demo:text 200]]", **wish(client))).encode()
        with socket.create_connection(("127.0.0.1", gateway.port)) as connection:
            head = f"POST {STREAMS[client]} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            assert connection.recv(100)
        (request,) = upstream.wait_for(1)
        assert request.abandoned.wait(DEADLINE_SECONDS)


@clients
def test_an_upstream_that_only_streams_serves_whole_answers(client):
    """R-DC-11"""
    with stage("openai-chat", streams='"only"') as (gateway, upstream):
        answer = ask(gateway, PATHS[client], question(client, "[[demo:echo]] Say hello"))
        assert upstream.requests[0].json["stream"] is True
    assert "Say hello" in words(client, answer.json)


@clients
def test_an_upstream_that_never_streams_serves_streams(client):
    """R-DC-12"""
    with stage("openai-chat", streams='"never"') as (gateway, upstream):
        answer = ask(gateway, STREAMS[client], question(client, **wish(client)))
        assert not upstream.requests[0].json.get("stream")
    assert ENDS[client] in answer.body


@rows(
    ("status", "chat", "claude"),
    [
        (400, (400, "invalid_request_error"), (400, "invalid_request_error")),
        (404, (404, "invalid_request_error"), (404, "not_found_error")),
        (413, (413, "invalid_request_error"), (413, "request_too_large")),
        (429, (429, "rate_limit_error"), (429, "rate_limit_error")),
        (500, (500, "server_error"), (500, "api_error")),
    ],
)
def test_an_upstreams_error_has_its_class_in_each_envelope(status, chat, claude):
    """R-DD-01"""
    with stage("gemini", retry="{retries = 0}") as (gateway, upstream):
        upstream.otherwise = Behaviour(error=status)
        one = ask(gateway, PATHS["openai-chat"], question("openai-chat"))
        two = ask(gateway, PATHS["anthropic"], question("anthropic"))
    assert (one.status, one.json["error"]["type"]) == chat
    assert (two.status, two.json["error"]["type"]) == claude
    assert two.json["type"] == "error"


def test_an_exhausted_quota_is_not_asked_again():
    """R-DD-04, C13: waiting does not help."""
    error = {
        "error": {
            "message": "You exceeded your current quota",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        }
    }
    with stage("openai-chat") as (gateway, upstream):
        upstream.otherwise = Behaviour(
            status=429, body=json.dumps(error).encode(), headers=(("content-type", "application/json"),)
        )
        ask(gateway, PATHS["anthropic"], question("anthropic"))
        assert len(upstream.requests) == 1


@pytest.mark.parametrize(("wait", "asked"), [(0, 2), (3600, 1)])
def test_advice_to_wait_is_followed_or_failed_fast(wait, asked):
    """R-DD-03, R-DD-04, C13: a short one is waited for, a long one reported at once."""
    with stage("openai-chat") as (gateway, upstream):
        upstream.next(Behaviour(error=429, retry_after=wait))
        answer = ask(gateway, PATHS["anthropic"], question("anthropic"))
        assert len(upstream.requests) == asked
    assert answer.status == (200 if asked == 2 else 429)


def test_a_broken_connection_is_tried_again_and_nothing_after_the_first_byte():
    """R-DD-04, C13"""
    with stage("openai-chat") as (gateway, upstream):
        upstream.next(Behaviour(fault="reset"))
        assert ask(gateway, PATHS["anthropic"], question("anthropic")).status == 200
        assert len(upstream.requests) == 2
        upstream.reset()
        upstream.next(Behaviour(fault="reset-midstream", after=5))
        text = question("anthropic", "[[demo:text 50]]", stream=True)
        assert b"event: error" in ask(gateway, PATHS["anthropic"], text).body
        assert len(upstream.requests) == 1


def test_a_network_failure_has_a_status_here():
    """C44: the library has none for it; a client of the gateway needs one."""
    toml = '[providers.mine]\ndialect = "gemini"\nbase_url = "http://127.0.0.1:1/v1beta"\nmodels = ["m1"]\nretry = {retries = 0}\n'
    with LiveGateway(toml) as gateway:
        assert ask(gateway, PATHS["anthropic"], question("anthropic")).status in (502, 503, 504)


def provider(name: str, upstream: ScriptedUpstream) -> str:
    return f'[providers.{name}]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k-0123456789"\nmodels = ["m1"]\nretry = {{retries = 0}}\n'


@pytest.mark.parametrize(("rule", "status"), [("", 500), ('[models]\n"m1" = ["one/m1", "two/m1"]\n', 200)])
def test_another_provider_is_asked_only_where_a_chain_says_so(rule, status):
    """R-DD-08, R-DD-07: off unless it is written down, and reported in the answer; no provider twice."""
    with ScriptedUpstream() as one, ScriptedUpstream() as two:
        one.otherwise = Behaviour(error=500)
        with LiveGateway(provider("one", one) + provider("two", two) + rule) as gateway:
            answer = ask(gateway, PATHS["anthropic"], question("anthropic"))
            assert (len(one.requests), len(two.requests)) == (1, 1 if rule else 0)
    assert answer.status == status
    assert answer.headers["x-wireglot-route"] == ("two/m1" if rule else "one/m1")


def test_a_page_of_a_proxy_is_reported_in_a_line():
    """R-DD-06"""
    page = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>"
    with stage("openai-chat", retry="{retries = 0}") as (gateway, upstream):
        upstream.otherwise = Behaviour(status=502, body=page, headers=(("content-type", "text/html"),))
        answer = ask(gateway, PATHS["anthropic"], question("anthropic"))
    assert answer.status >= 500
    assert "<" not in answer.json["error"]["message"]


def test_the_id_of_a_request_stands_in_its_error_and_its_log_line():
    """R-DE-09, C45"""
    with stage("openai-chat", retry="{retries = 0}") as (gateway, upstream):
        upstream.otherwise = Behaviour(error=500)
        answer = ask(gateway, PATHS["anthropic"], question("anthropic"))
        (line,) = gateway.wait_log()
    assert answer.json["request_id"] == answer.headers["x-wireglot-request-id"] == line["id"]


def test_a_body_that_is_too_large_is_refused():
    """R-DD-10: the limit is a setting."""
    with stage("openai-chat", "[limits]\nanthropic_body = 2000\nbody = 2000\n") as (gateway, upstream):
        answer = ask(gateway, PATHS["anthropic"], question("anthropic", "x" * 5000))
        assert upstream.requests == []
    assert (answer.status, answer.json["error"]["type"]) == (413, "request_too_large")
