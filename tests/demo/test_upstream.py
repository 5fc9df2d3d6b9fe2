"""The scripted upstream: what it records, and that it breaks in each of the ways it promises."""

from __future__ import annotations

import gc
import gzip
import http.client
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trustme

from tests.http.transport_kit import descriptors
from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.scripted_upstream import FAULTS, Behaviour, Fault, ScriptedUpstream

CHAT: dict[str, Any] = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as running:
        yield running


@pytest.fixture
def upstream(server: ScriptedUpstream) -> ScriptedUpstream:
    server.reset()
    return server


def raw(upstream: ScriptedUpstream, body: dict[str, Any], path: str = "/v1/chat/completions") -> bytes:
    """All bytes that come back until the connection ends, which the request asks for."""
    document = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(document)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", upstream.port), timeout=60) as connection:
        connection.sendall(head.encode() + document)
        received = bytearray()
        while data := connection.recv(65_536):
            received += data
    return bytes(received)


def fetch(upstream: ScriptedUpstream, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        return (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read(),
        )
    finally:
        connection.close()


def broken(upstream: ScriptedUpstream, fault: Fault, *, stream: bool, **more: Any) -> bytes:
    upstream.next(Behaviour(fault=fault, **more))
    return raw(upstream, {**CHAT, "stream": stream})


def test_requests_are_recorded_as_they_came(upstream: ScriptedUpstream) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    for _ in range(2):
        connection.request("POST", "/v1/chat/completions?x=1", json.dumps(CHAT), {"X-Thing": "a"})
        connection.getresponse().read()
    connection.close()
    first, second = upstream.wait_for(2)
    assert (first.method, first.path, first.query) == ("POST", "/v1/chat/completions", "x=1")
    assert first.headers["x-thing"] == "a"
    assert b"X-Thing: a\r\n" in first.raw
    assert first.json == CHAT
    assert first.connection == second.connection


def test_a_chunked_request_is_read(upstream: ScriptedUpstream) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    body = json.dumps(CHAT).encode()
    connection.request(
        "POST",
        "/v1/chat/completions",
        iter([body[:9], body[9:]]),
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    assert connection.getresponse().status == 200
    connection.close()
    assert upstream.requests[0].json == CHAT


def test_the_queue_is_used_once_and_then_the_demo_model_answers(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(error=503), Behaviour(status=418, body=b"teapot", headers=(("x-a", "b"),)))
    assert fetch(upstream, CHAT)[0] == 503
    status, headers, body = fetch(upstream, CHAT)
    assert (status, headers["x-a"], body) == (418, "b", b"teapot")
    assert fetch(upstream, CHAT)[0] == 200
    upstream.otherwise = Behaviour(error=500)
    assert [fetch(upstream, CHAT)[0] for _ in range(2)] == [500, 500]


def test_pieces_of_the_tests_own_are_sent_as_a_stream(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(pieces=(b"data: 1\n\n", b"data: 2\n\n"), gap=0.001))
    _, headers, body = fetch(upstream, CHAT)
    assert headers["content-type"] == "text/event-stream"
    assert body == b"data: 1\n\ndata: 2\n\n"


def test_a_function_may_decide() -> None:
    def decide(request: Any) -> Behaviour | None:
        return Behaviour(error=402) if b"pay" in request.body else None

    with ScriptedUpstream(decide=decide) as upstream:
        assert fetch(upstream, CHAT)[0] == 200
        assert fetch(upstream, {**CHAT, "user": "pay"})[0] == 402


def test_a_stream_is_sent_in_chunks_and_ends_properly(upstream: ScriptedUpstream) -> None:
    received = raw(upstream, {**CHAT, "stream": True})
    assert b"transfer-encoding: chunked" in received
    assert received.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("fault", ["close", "garbage"])
def test_nothing_that_is_http_comes(upstream: ScriptedUpstream, fault: Fault) -> None:
    assert not broken(upstream, fault, stream=True).startswith(b"HTTP")


@pytest.mark.parametrize("fault", ["reset", "reset-midstream"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_is_a_reset(upstream: ScriptedUpstream, fault: Fault, stream: bool) -> None:
    with pytest.raises(ConnectionResetError):
        broken(upstream, fault, stream=stream)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_closed_in_the_middle_leaves_the_framing_open(
    upstream: ScriptedUpstream, stream: bool
) -> None:
    received = broken(upstream, "close-midstream", stream=stream)
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body
    assert b"[DONE]" not in body
    assert not body.endswith(b"0\r\n\r\n")
    if not stream:
        assert len(body) < int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])


def test_as_many_pieces_are_sent_as_were_asked_for(upstream: ScriptedUpstream) -> None:
    received = broken(upstream, "close-midstream", stream=True, after=3)
    assert received.count(b"data: {") == 3


def test_a_stream_without_its_terminal_event_still_ends_properly(upstream: ScriptedUpstream) -> None:
    received = broken(upstream, "no-terminal", stream=True)
    assert received.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in received
    assert b'"finish_reason":"stop"' not in received


def test_half_an_event_is_half_an_event(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(fault="half-event", after=2))
    body = fetch(upstream, {**CHAT, "stream": True})[2]
    assert body.count(b"\n\n") == 2
    assert not body.endswith(b"\n\n")


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503, 529])
def test_any_status_is_answered_on_request(upstream: ScriptedUpstream, status: int) -> None:
    """R-DE-15"""
    upstream.next(Behaviour(error=status))
    assert fetch(upstream, CHAT)[0] == status


def test_a_corrupt_tool_call_is_a_body_of_the_tests_own(upstream: ScriptedUpstream) -> None:
    """R-DE-15"""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": '}}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call]}}]}
    upstream.next(Behaviour(body=json.dumps(answer).encode()))
    assert json.loads(fetch(upstream, CHAT)[2]) == answer


def test_one_event_is_no_json(upstream: ScriptedUpstream) -> None:
    """R-DE-15"""
    upstream.next(Behaviour(fault="bad-json", after=2))
    lines = [line[6:] for line in fetch(upstream, {**CHAT, "stream": True})[2].splitlines() if line]
    broken_lines = []
    for number, line in enumerate(lines[:-1]):
        try:
            json.loads(line)
        except ValueError:
            broken_lines.append(number)
    assert broken_lines == [2]


def test_an_error_may_be_the_first_event_or_a_later_one(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(fault="error-first"), Behaviour(fault="error-midstream"))
    first = fetch(upstream, {**CHAT, "stream": True})
    assert first[0] == 200
    assert first[2].startswith(b'data: {"error"')
    later = fetch(upstream, {**CHAT, "stream": True})[2]
    assert later.startswith(b'data: {"id"')
    assert b'data: {"error"' in later
    assert b"[DONE]" not in later


def test_answers_of_another_kind(upstream: ScriptedUpstream) -> None:
    names: tuple[Fault, ...] = (
        "html",
        "empty",
        "wrong-type",
        "redirect",
        "truncated-json",
        "json-for-stream",
        "gzip",
    )
    upstream.next(*(Behaviour(fault=name, location="http://127.0.0.1:1/") for name in names))
    found = {name: fetch(upstream, {**CHAT, "stream": name == "json-for-stream"}) for name in names}
    assert found["html"][2].startswith(b"<!doctype html>")
    assert found["empty"][2] == b""
    assert found["wrong-type"][1]["content-type"] == "text/plain"
    assert (found["redirect"][0], found["redirect"][1]["location"]) == (307, "http://127.0.0.1:1/")
    with pytest.raises(ValueError):
        json.loads(found["truncated-json"][2])
    assert json.loads(found["json-for-stream"][2])["object"] == "chat.completion"
    assert json.loads(gzip.decompress(found["gzip"][2]))["object"] == "chat.completion"


def test_bytes_come_one_by_one_and_mean_the_same(upstream: ScriptedUpstream) -> None:
    whole = fetch(upstream, {**CHAT, "stream": True})[2]
    upstream.next(Behaviour(fault="byte-chunks"))
    received = raw(upstream, {**CHAT, "stream": True})
    body = received.partition(b"\r\n\r\n")[2]
    assert body.startswith(b"1\r\nd\r\n1\r\na\r\n1\r\nt\r\n")
    assert body.count(b"1\r\n") >= len(whole)


def test_a_body_may_be_unframed_or_too_short(upstream: ScriptedUpstream) -> None:
    received = broken(upstream, "unframed", stream=True)
    assert b"transfer-encoding" not in received
    assert b"content-length" not in received
    assert received.endswith(b"data: [DONE]\n\n")
    upstream.next(Behaviour(fault="short-body"))
    with pytest.raises(http.client.IncompleteRead):
        fetch(upstream, CHAT)


def test_heads_may_be_too_much(upstream: ScriptedUpstream) -> None:
    assert len(broken(upstream, "huge-headers", stream=False, size=50_000)) > 50_000
    assert broken(upstream, "interim-flood", stream=False, size=20).count(b"100 Continue") == 20


def test_a_line_may_never_end(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(fault="endless-line", size=300_000))
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}))
    got = connection.getresponse().read(300_000)
    connection.close()
    assert len(got) == 300_000
    assert b"\n" not in got


@pytest.mark.parametrize("fault", ["stall", "stall-midstream"])
def test_a_stall_lasts_until_the_peer_leaves(upstream: ScriptedUpstream, fault: Fault) -> None:
    upstream.next(Behaviour(fault=fault))
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}))
    (request,) = upstream.wait_for(1)
    if fault == "stall-midstream":
        assert connection.getresponse().read(20)
    assert not request.done.is_set()
    connection.close()
    assert request.abandoned.wait(DEADLINE_SECONDS)
    upstream.wait_closed()


def test_a_peer_that_leaves_a_slow_stream_is_noticed(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(gap=60))
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    connection.request("POST", "/v1/chat/completions", json.dumps({**CHAT, "stream": True}))
    response = connection.getresponse()
    assert response.read(10)
    connection.close()
    response.close()
    assert upstream.requests[0].abandoned.wait(DEADLINE_SECONDS)


def test_every_fault_can_be_named() -> None:
    assert {"close", "endless-line", "error-first"} <= set(FAULTS)
    assert Behaviour(fault="interim-flood").amount > 0


def test_directives_work_over_http_too(upstream: ScriptedUpstream) -> None:
    cut = {"model": "demo", "messages": [{"role": "user", "content": "[[demo:cut]]"}]}
    with pytest.raises(http.client.IncompleteRead):
        fetch(upstream, cut)
    assert b"[DONE]" not in fetch(upstream, {**cut, "stream": True})[2]


def test_gemini_cli_finds_what_it_asks_before_its_first_turn(upstream: ScriptedUpstream) -> None:
    received = raw(upstream, {}, "/v1internal:loadCodeAssist")
    assert b"cloudaicompanionProject" in received
    assert raw(upstream, {}, "/elsewhere").startswith(b"HTTP/1.1 404")


def test_a_websocket_is_refused_with_the_status_that_makes_codex_go_on(upstream: ScriptedUpstream) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=DEADLINE_SECONDS)
    connection.request("GET", "/v1/responses", headers={"Upgrade": "websocket", "Connection": "Upgrade"})
    assert connection.getresponse().status == 426
    connection.close()


def test_it_speaks_tls_with_a_certificate_of_the_tests_own() -> None:
    authority = trustme.CA()
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(ours)
    authority.configure_trust(theirs)
    with ScriptedUpstream(tls=ours) as upstream:
        assert upstream.url.startswith("https://")
        connection = http.client.HTTPSConnection("127.0.0.1", upstream.port, timeout=60, context=theirs)
        connection.request("GET", "/v1/models")
        assert connection.getresponse().status == 200
        connection.close()


@pytest.mark.parametrize("tls", [False, True])
def test_a_client_that_connects_while_it_stops_leaves_no_socket_open(tls: bool) -> None:
    """Over TLS the client never begins its handshake, so that there is always one to give up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
    gc.collect()
    before = descriptors()
    for _ in range(30):
        with socket.socket() as client, ScriptedUpstream(tls=context) as upstream:
            client.connect(("127.0.0.1", upstream.port))
        assert descriptors() <= before


def test_a_port_in_use_is_an_error(upstream: ScriptedUpstream) -> None:
    with pytest.raises(OSError, match="in use"):
        ScriptedUpstream(port=upstream.port).start()


def test_it_runs_alone() -> None:
    command = [sys.executable, "-m", "wireglot.testing.scripted_upstream"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
        connection.request("GET", "/v1/models")
        assert b"demo" in connection.getresponse().read()
        connection.close()
        process.terminate()
