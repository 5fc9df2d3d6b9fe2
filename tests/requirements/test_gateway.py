"""Groups K, M, X, Y and DE through a running gateway: the same promises to the clients of every dialect."""

import concurrent.futures
import json
from typing import Any

import pytest

from tests.requirements.live import PATHS, STREAMS, ask, question, stage, words
from tests.requirements.wire import MAIN
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour

clients = pytest.mark.parametrize("client", MAIN)
REPORTED = {
    "anthropic": b"message_stop",
    "openai-chat": b"[DONE]",
    "openai-responses": b"response.completed",
    "gemini": b"finishReason",
}


@pytest.fixture(scope="module", params=["gemini", "openai-chat"])
def running(request):
    """One upstream that shares its dialect with a client, and nothing with the others."""
    with stage(request.param) as both:
        yield both


@clients
def test_every_dialect_is_answered_whole(running, client):
    """R-Y-01, R-Y-03, R-X-01, R-X-02, R-X-04, R-DE-01, R-DE-02, C20, C28: by one gateway, no matter who is behind it."""
    gateway, upstream = running
    answer = ask(gateway, PATHS[client], question(client, "[[demo:echo]] Say hello", model="m1"))
    assert (answer.status, answer.headers["x-wireglot-route"]) == (200, "mine/m1")
    assert "Say hello" in words(client, answer.json)
    assert "m1" in (upstream.requests[-1].path + upstream.requests[-1].body.decode())


@clients
def test_every_dialect_is_answered_in_a_stream(running, client):
    """R-Y-02, R-Z-04, R-AC-06, R-DE-02"""
    gateway, _ = running
    wish: dict[str, Any] = {} if client == "gemini" else {"stream": True}
    answer = ask(gateway, STREAMS[client], question(client, **wish))
    assert (answer.status, answer.headers["content-type"].split(";")[0]) == (200, "text/event-stream")
    assert answer.body.startswith((b"data: ", b"event: "))
    assert REPORTED[client] in answer.body


@rows(
    ("path", "body"),
    [
        ("/v1/gemini", {"model": "m1", "input": "hi"}),  # R-X-03, R-AF-01, R-AF-02
        ("/v1beta/models/m1:streamGenerateContent", question("gemini")),  # R-DE-02: without alt=sse
        ("/v1internal:generateContent", {"model": "m1", "request": question("gemini")}),  # R-DE-03
        ("/v1internal:streamGenerateContent?alt=sse", {"model": "m1", "request": question("gemini")}),
        ("/v1/messages/count_tokens", {**question("anthropic")}),  # R-DE-01
        ("/v1beta/models/m1:countTokens", question("gemini")),
        ("/v1internal:countTokens", {"request": {"model": "models/m1", **question("gemini")}}),  # C50
    ],
)
def test_the_other_paths_are_answered(running, path, body):
    gateway, _ = running
    assert ask(gateway, path, body).status == 200


@rows(
    ("path", "headers", "place"),
    [
        ("/v1/models", {"x-api-key": "x", "anthropic-version": "2023-06-01"}, "data"),
        ("/v1/models", {"authorization": "Bearer x"}, "data"),
        ("/v1beta/models", {"x-goog-api-key": "x"}, "models"),
    ],
)
def test_models_are_listed_for_anyone_who_asks(running, path, headers, place):
    """R-DE-04"""
    gateway, _ = running
    body = ask(gateway, path, b"", "GET", headers).json
    assert isinstance(body[place], list)


@pytest.mark.parametrize("path", ["/", "/health", "/healthz", "/readyz"])
def test_health_and_root_are_open(path):
    """R-DE-07, R-DE-08, R-DE-06: also where keys are demanded."""
    with stage("gemini", f'[keys]\nme = "sha256:{"0" * 64}"\n') as (gateway, _):
        assert ask(gateway, path, b"", "GET").status == 200
        assert ask(gateway, "/v1/models", b"", "GET").status == 401


@clients
def test_a_wrong_key_is_refused_in_the_clients_words(client):
    """R-Y-05, R-DE-06"""
    with stage("gemini", f'[keys]\nme = "sha256:{"0" * 64}"\n') as (gateway, upstream):
        answer = ask(gateway, PATHS[client], question(client), headers={"authorization": "Bearer wrong"})
        assert answer.status == (400 if client == "gemini" else 401)
        assert answer.json["error"]["message"]
        assert upstream.requests == []


@clients
def test_an_unknown_model_is_a_clean_error(client):
    """R-Y-04, R-Z-01, R-AC-01: in the client's own envelope, and nobody is asked."""
    toml = '[providers.mine]\ndialect = "gemini"\nbase_url = "http://127.0.0.1:1/v1beta"\nmodels = ["a"]\n'
    with LiveGateway(toml) as gateway:
        answer = ask(gateway, PATHS[client].replace("m1", "no-such"), question(client, model="no-such"))
    assert answer.status == 404
    assert "no-such" in answer.json["error"]["message"]


@clients
def test_a_client_may_shorten_the_wait(client):
    """R-Y-06, C30, R-DC-08: and is informed that it was too long, not given half an answer."""
    with stage("gemini") as (gateway, upstream):
        upstream.otherwise = Behaviour(fault="stall")
        answer = ask(gateway, PATHS[client], question(client), headers={"x-wireglot-timeout": "0.1"})
        assert answer.status == 504
        assert answer.json["error"]["message"]


@pytest.mark.parametrize("upstream_dialect", ["anthropic", "openai-responses"])
def test_usage_is_the_upstreams_and_not_a_guess(upstream_dialect):
    """R-X-05, R-AA-22, R-DE-13: in the answer and in the log; they add up and are never negative."""
    with stage(upstream_dialect) as (gateway, _):
        body = ask(gateway, PATHS["openai-chat"], question("openai-chat", "[[demo:think]] hi")).json
        (line,) = gateway.wait_log()
    assert "tokens_source" not in line
    assert line["tokens"]["output"] + line["tokens"].get("reasoning", 0) == body["usage"]["completion_tokens"]
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert 0 <= usage["completion_tokens_details"]["reasoning_tokens"] <= usage["completion_tokens"]


def test_requests_at_the_same_time_never_mix():
    """R-Y-31, R-AI-02..05, C29: there is no slot that two of them share, with tools or without."""
    tool = {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }

    def one(number: int) -> tuple[str, str]:
        nonce = f"nonce-{number:03}"
        more: dict[str, Any] = {"tools": [tool]} if number % 2 else {}
        body = question("openai-chat", f"[[demo:echo]] {nonce}", **more)
        return nonce, words("openai-chat", ask(gateway, PATHS["openai-chat"], body).json)

    with stage("gemini") as (gateway, upstream):
        upstream.otherwise = Behaviour(gap=0.001)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(one, range(40)))
    assert [nonce for nonce, text in answers if nonce not in text] == []
    assert [text for nonce, text in answers if text.count("nonce-") != 1] == []


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
def test_the_shape_of_an_answer_does_not_depend_on_the_tools(client):
    """R-AI-02, R-AI-03: one path, whether or not tools were offered."""
    schema = {"type": "object", "properties": {}}
    tools = {
        "openai-chat": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
        "anthropic": [{"name": "f", "input_schema": schema}],
    }
    with stage("gemini") as (gateway, _):
        text = "[[demo:echo]] hi"
        plain = ask(gateway, PATHS[client], question(client, text)).json
        offered = ask(gateway, PATHS[client], question(client, text, tools=tools[client])).json
    assert plain.keys() == offered.keys()
    assert words(client, plain) == words(client, offered)


@clients
def test_a_request_of_the_same_dialect_is_forwarded_as_it_is(client):
    """R-M-01, R-K-05, C34: unknown fields and odd spacing too; and it has its log line like any other."""
    more: dict[str, Any] = (
        {"store": False} if client == "openai-responses" else {}
    )  # what is stored is stored by us
    spoken = json.dumps(question(client, x_unknown={"a": [1.50]}, **more), indent=3).encode()
    with stage(client) as (gateway, upstream):
        assert ask(gateway, PATHS[client], spoken).status == 200
        assert upstream.requests[0].body == spoken
        (line,) = gateway.wait_log()
    assert (line["route"], line["status"]) == ("mine/m1", 200)


def test_a_bent_request_says_so():
    """R-M-02: what a translation could not carry is named in the answer."""
    with stage("anthropic") as (gateway, _):
        plain = ask(gateway, PATHS["openai-chat"], question("openai-chat", max_tokens=9))
        bent = ask(gateway, PATHS["openai-chat"], question("openai-chat", max_tokens=9, seed=1))
    assert "x-wireglot-losses" not in plain.headers
    assert "sampling.seed" in bent.headers["x-wireglot-losses"]


def test_the_log_tells_of_every_request_and_never_what_was_said():
    """C33, C45, R-DE-18: a line each, failures too; no body, no key."""
    with stage("anthropic", retry="{retries = 0}") as (gateway, upstream):
        upstream.next(Behaviour(), Behaviour(error=500))
        for _ in range(2):
            ask(gateway, PATHS["openai-chat"], question("openai-chat", "a very private word"))
        first, second = gateway.wait_log(2)
        written = (gateway.folder / "log").read_bytes()
    assert (first["status"], second["status"]) == (200, 500)
    assert (first["model"], first["route"]) == ("m1", "mine/m1")
    assert second["error"]["kind"] == "server"
    assert b"private" not in written
    assert b"upstream-key-0123456789" not in written


def test_the_clients_own_name_goes_on_and_no_other():
    """R-DE-19, C36: no disguise."""
    with stage("anthropic") as (gateway, upstream):
        ask(gateway, PATHS["openai-chat"], question("openai-chat"), headers={"user-agent": "my-agent/1.0"})
        assert upstream.requests[0].headers["user-agent"] == "my-agent/1.0"
        ask(gateway, PATHS["openai-chat"], question("openai-chat"))
        assert upstream.requests[1].headers["user-agent"] == "wireglot"
