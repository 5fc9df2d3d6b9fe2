"""The scripted upstream, byte by byte: each fault is on the wire as its description says."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot.testing.scripted_upstream import __main__ as alone

CHAT = "/v1/chat/completions"
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello there"}]}


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
def upstream(running: ScriptedUpstream) -> ScriptedUpstream:
    running.reset()
    return running


class Peer:
    """A client that sees every byte."""

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self.socket = socket.create_connection(("127.0.0.1", upstream.port), timeout=DEADLINE_SECONDS)

    def ask(self, path: str = CHAT, *, stream: bool = False, more: str = "", body: Any = None) -> None:
        data = json.dumps(body if body is not None else {**ASKED, "stream": stream}).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n{more}\r\n"
        self.socket.sendall(head.encode() + data)

    def rest(self) -> bytes:
        """All that comes until the connection ends."""
        got = b""
        while data := self.socket.recv(65536):
            got += data
        return got

    def until(self, mark: bytes) -> bytes:
        got = b""
        while mark not in got:
            data = self.socket.recv(65536)
            assert data, got
            got += data
        return got


CLOSE = "Connection: close\r\n"


def got(upstream: ScriptedUpstream, behaviour: Behaviour, **how: Any) -> tuple[str, dict[str, str], bytes]:
    """The status line, the headers and the body of one answer; chunks are joined."""
    upstream.next(behaviour)
    peer = Peer(upstream)
    peer.ask(more=CLOSE, **how)
    head, _, body = peer.rest().partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    if headers.get("transfer-encoding") == "chunked":
        joined = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            joined += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
        body = joined
    return status, headers, body


def test_by_default_it_answers_as_a_provider_would(upstream: ScriptedUpstream) -> None:
    status, headers, body = got(upstream, Behaviour())
    assert status == "HTTP/1.1 200 OK"
    assert headers["content-type"] == "application/json"
    assert int(headers["content-length"]) == len(body)
    assert "Hello there" in json.loads(body)["choices"][0]["message"]["content"]
    (asked,) = upstream.requests
    assert (asked.method, asked.path, asked.query) == ("POST", CHAT, "")
    assert asked.json["messages"] == ASKED["messages"]
    assert asked.headers["host"] == "x"
    assert asked.raw.startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
    assert asked.done.is_set()
    assert not asked.abandoned.is_set()


@rows(
    ("behaviour", "status", "kind", "body"),
    [
        (Behaviour(body=b"{}"), 200, "application/json", b"{}"),
        (Behaviour(body=b"x", status=503, headers=(("content-type", "a/b"),)), 503, "a/b", b"x"),
        (Behaviour(pieces=(b"data: 1\n\n", b"", b"data: 2\n\n")), 200, "text/event-stream", b"data: 1\n\ndata: 2\n\n"),
        (Behaviour(fault="empty"), 200, "application/json", b""),
        (Behaviour(fault="redirect", location="http://h/"), 307, None, b""),
    ],
)  # fmt: skip
def test_an_answer_of_the_tests_own_is_sent_as_it_is(
    upstream: ScriptedUpstream, behaviour: Behaviour, status: int, kind: str | None, body: bytes
) -> None:
    line, headers, found = got(upstream, behaviour)
    assert line.split()[1] == str(status)
    assert headers.get("content-type") == kind
    assert found == body
    if status == 307:
        assert headers["location"] == "http://h/"


def test_an_error_is_the_dialects_own_and_says_when_to_come_again(upstream: ScriptedUpstream) -> None:
    line, headers, body = got(
        upstream, Behaviour(error=429, retry_after=2, headers=(("x-more", "1"), ("Content-Type", "x/y")))
    )
    assert line.split()[1] == "429"
    assert (headers["retry-after"], headers["x-more"], headers["Content-Type"]) == ("2", "1", "x/y")
    assert "content-type" not in headers
    assert json.loads(body)["error"]["code"] == "rate_limit_exceeded"


def test_other_documents_than_the_one_expected(upstream: ScriptedUpstream) -> None:
    _, _, whole = got(upstream, Behaviour())
    line, headers, page = got(upstream, Behaviour(fault="html"))
    assert (line.split()[1], headers["content-type"]) == ("200", "text/html")
    assert page.startswith(b"<!doctype html>")
    assert got(upstream, Behaviour(fault="wrong-type"))[1]["content-type"] == "text/plain"
    _, headers, half = got(upstream, Behaviour(fault="truncated-json"))
    assert len(half) == int(headers["content-length"]) == len(whole) // 2
    _, headers, packed = got(upstream, Behaviour(fault="gzip"))
    assert headers["content-encoding"] == "gzip"
    assert json.loads(gzip.decompress(packed))["object"] == "chat.completion"
    _, headers, document = got(upstream, Behaviour(fault="json-for-stream"), stream=True)
    assert headers["content-type"] == "application/json"
    assert json.loads(document)["object"] == "chat.completion"
    gemini = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    _, headers, document = got(upstream, Behaviour(fault="json-for-stream"), path=path, body=gemini)
    assert "candidates" in json.loads(document)


def test_what_is_wrong_with_the_bytes(upstream: ScriptedUpstream) -> None:
    _, _, whole = got(upstream, Behaviour())
    _, headers, body = got(upstream, Behaviour(fault="short-body"))
    assert int(headers["content-length"]) == len(body) + 100
    _, headers, body = got(upstream, Behaviour(fault="unframed"))
    assert not headers.keys() & {"content-length", "transfer-encoding"}
    assert json.loads(body).keys() == json.loads(whole).keys()
    _, headers, _ = got(upstream, Behaviour(fault="huge-headers", size=70_000))
    assert headers["x-huge"] == "h" * 70_000
    upstream.next(Behaviour(fault="byte-chunks"))
    peer = Peer(upstream)
    peer.ask(stream=True, more=CLOSE)
    chunks = peer.rest().partition(b"\r\n\r\n")[2]
    assert chunks.startswith(b"1\r\nd\r\n1\r\na\r\n1\r\nt\r\n")
    assert chunks.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("fault", ["close", "garbage", "interim-flood"])
def test_what_comes_instead_of_a_head(upstream: ScriptedUpstream, fault: Any) -> None:
    upstream.next(Behaviour(fault=fault, size=3))
    peer = Peer(upstream)
    peer.ask()
    assert (
        peer.rest()
        == {
            "close": b"",
            "garbage": b"\x16\x03\x01 this is no HTTP\r\n\r\n" * 4,
            "interim-flood": b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
        }[fault]
    )


@pytest.mark.parametrize("fault", ["reset", "reset-midstream"])
def test_a_reset_is_no_orderly_end(upstream: ScriptedUpstream, fault: Any) -> None:
    upstream.next(Behaviour(fault=fault))
    peer = Peer(upstream)
    peer.ask(stream=True)
    with pytest.raises(ConnectionResetError):
        peer.rest()


@pytest.mark.parametrize("fault", ["stall", "stall-midstream"])
def test_one_that_stalls_waits_until_its_peer_leaves(upstream: ScriptedUpstream, fault: Any) -> None:
    upstream.next(Behaviour(fault=fault, after=1))
    peer = Peer(upstream)
    peer.ask(stream=True)
    (asked,) = upstream.wait_for()
    if fault == "stall-midstream":
        assert peer.until(b"data: ").startswith(b"HTTP/1.1 200")
    assert not asked.done.is_set()
    peer.socket.close()
    assert asked.abandoned.wait(DEADLINE_SECONDS)
    upstream.wait_closed()
    assert upstream.open_connections == 0


def test_streams_that_end_before_their_end(upstream: ScriptedUpstream) -> None:
    def events(fault: Any = "", after: int | None = None) -> list[bytes]:
        return got(upstream, Behaviour(fault=fault, after=after), stream=True)[2].split(b"\n\n")[:-1]

    whole = events()
    assert whole[-1] == b"data: [DONE]"
    assert len(events("close-midstream", 2)) == 2
    assert 1 < len(events("close-midstream")) < len(whole)
    assert b"[DONE]" not in b"".join(events("no-terminal"))
    half = got(upstream, Behaviour(fault="half-event", after=1), stream=True)[2]
    assert half.count(b"\n\n") == 1
    assert not half.endswith(b"\n\n")
    broken = events("bad-json", 1)
    assert len(broken) == len(whole)
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken[1].removeprefix(b"data: "))
    (first,) = events("error-first")
    assert b"overloaded" in first
    *_, last = events("error-midstream")
    assert b"error" in last


def test_a_connection_is_kept_unless_one_side_says_otherwise(upstream: ScriptedUpstream) -> None:
    peer = Peer(upstream)
    upstream.next(Behaviour(body=b"one"), Behaviour(body=b"two"), Behaviour(body=b"three", close=True))
    for word in (b"one", b"two"):
        peer.ask()
        peer.until(word)
    peer.ask()
    assert b"connection: close" in peer.rest()
    numbers = [request.connection for request in upstream.requests]
    assert len(set(numbers)) == 1
    before = upstream.connections
    got(upstream, Behaviour())
    assert upstream.connections == before + 1


def test_a_gate_is_waited_for_before_the_head_or_after_some_pieces(upstream: ScriptedUpstream) -> None:
    for after, before in ((None, b""), (1, b"data: 1")):
        gate = threading.Event()
        upstream.reset()
        upstream.next(Behaviour(pieces=(b"data: 1\n\n", b"data: 2\n\n"), gate=gate, after=after))
        peer = Peer(upstream)
        peer.ask(more=CLOSE)
        (asked,) = upstream.wait_for()
        came = peer.until(before) if before else b""
        assert b"data: 2" not in came
        assert not asked.done.is_set()
        gate.set()
        assert b"data: 2" in came + peer.rest()


def test_a_large_answer_waits_for_a_peer_that_reads_slowly(upstream: ScriptedUpstream) -> None:
    size = 8 * 1024 * 1024
    upstream.next(Behaviour(pieces=(b"x" * size, b"y")))
    peer = Peer(upstream)
    peer.ask(more=CLOSE)
    (asked,) = upstream.wait_for()
    body = peer.rest()
    assert body.count(b"x") >= size
    assert body.endswith(b"1\r\ny\r\n0\r\n\r\n")
    assert asked.done.wait(DEADLINE_SECONDS)


def test_the_queue_comes_first_and_then_what_is_otherwise(upstream: ScriptedUpstream) -> None:
    upstream.otherwise = Behaviour(body=b"otherwise")
    upstream.next(Behaviour(body=b"queued"))
    assert [got(upstream, each)[2] for each in (Behaviour(body=b"second"),)] == [b"queued"]
    assert got(upstream, Behaviour(body=b"third"))[2] == b"second"
    upstream.reset()
    assert upstream.requests == []
    assert b"chat.completion" in got(upstream, Behaviour())[2]


def test_a_path_that_nobody_serves_is_not_found(upstream: ScriptedUpstream) -> None:
    line, _, body = got(upstream, Behaviour(), path="/v1/nothing")
    assert line.split()[1] == "404"
    assert "/v1/nothing" in json.loads(body)["error"]["message"]
    line, _, body = got(upstream, Behaviour(), path="/v1internal:loadCodeAssist", body={})
    assert line.split()[1] == "200"
    assert json.loads(body)["cloudaicompanionProject"] == "demo"


def test_decide_sees_a_request_before_the_queue() -> None:
    def decide(request: Any) -> Behaviour | None:
        return Behaviour(body=b"decided") if request.path == "/mine" else None

    with ScriptedUpstream(decide=decide) as upstream:
        upstream.next(Behaviour(body=b"queued"))
        for path, word in (("/mine", b"decided"), (CHAT, b"queued")):
            peer = Peer(upstream)
            peer.ask(path, more=CLOSE)
            assert peer.rest().endswith(word)
        with pytest.raises(TimeoutError, match="2 requests came, not 3"):
            upstream.wait_for(3, timeout=0.01)
    wait_until(lambda: upstream.open_connections == 0)


def sent(upstream: ScriptedUpstream, data: bytes) -> bytes:
    """What comes for bytes of a client's own, until the connection ends."""
    peer = Peer(upstream)
    peer.socket.sendall(data)
    return peer.rest()


def test_a_request_is_recorded_as_it_was_framed(upstream: ScriptedUpstream) -> None:
    head = b"POST /v1/x?a=1&b HTTP/1.1\r\nHost: x\r\nX-Twice: 1\r\nConnection: Close\r\nx-twice:  2 \r\n"
    chunks = b"3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n"
    upstream.otherwise = Behaviour(body=b"ok")
    sent(upstream, head + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks)
    got = sent(upstream, head + b"Expect: 100-Continue\r\nContent-Length: 2\r\n\r\nhi")
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    sent(upstream, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
    first, second, third = upstream.requests
    assert (first.method, first.path, first.query) == ("POST", "/v1/x", "a=1&b")
    assert first.headers["x-twice"] == "1, 2"
    assert (first.body, second.body, third.body) == (b"abc0123456789", b"hi", b"")
    assert second.raw == head + b"Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n"


def test_status_lines_and_lengths_are_as_the_status_asks_for(upstream: ScriptedUpstream) -> None:
    for status, line in (
        (200, "200 OK"),
        (307, "307 Temporary Redirect"),
        (400, "400 Bad Request"),
        (404, "404 Not Found"),
        (429, "429 Too Many Requests"),
        (418, "418 Scripted"),
    ):
        first, headers, _ = got(upstream, Behaviour(body=b"x", status=status))
        assert (first, headers["content-length"]) == (f"HTTP/1.1 {line}", "1")
    for status in (204, 304):
        _, headers, body = got(upstream, Behaviour(body=b"", status=status))
        assert "content-length" not in headers
        assert body == b""


def test_half_of_a_single_piece_is_sent_before_the_end(upstream: ScriptedUpstream) -> None:
    _, headers, body = got(upstream, Behaviour(body=b"0123456789", fault="close-midstream"))
    assert (headers["content-length"], body) == ("10", b"01234")
    pieces = (b"a", b"b", b"c", b"d", b"e")
    assert got(upstream, Behaviour(pieces=pieces, fault="close-midstream"))[2] == b"ab"
    assert got(upstream, Behaviour(pieces=pieces, fault="close-midstream", after=0))[2] == b""
    assert got(upstream, Behaviour(pieces=pieces[:1] * 2, fault="close-midstream"))[2] == b"a"


def test_the_demo_models_own_failures_are_on_the_wire(upstream: ScriptedUpstream) -> None:
    def asking(directive: str) -> Any:
        return {"model": "m", "messages": [{"role": "user", "content": f"{directive} Hello there"}]}

    for directive, before in (("[[demo:hang]]", b""), ("[[demo:hang-midstream]]", b"content-length")):
        upstream.reset()
        peer = Peer(upstream)
        peer.ask(body=asking(directive))
        (recorded,) = upstream.wait_for()
        if before:
            peer.until(before)
        assert not recorded.done.is_set()
        peer.socket.close()
        assert recorded.abandoned.wait(DEADLINE_SECONDS)


def test_an_endless_line_has_as_many_bytes_as_asked_for(upstream: ScriptedUpstream) -> None:
    upstream.next(Behaviour(fault="endless-line", size=70_000))
    peer = Peer(upstream)
    peer.ask(stream=True)
    came = peer.until(b"data: ")
    while len(came.partition(b"data: ")[2]) < 70_000:
        came += peer.socket.recv(65536)
    line = came.partition(b"\r\n\r\n")[2]
    assert line == b"%x\r\ndata: " % 70_006 + b"x" * 70_000
    peer.socket.close()


def test_a_delay_and_gaps_are_not_waited_for_by_a_peer_that_has_left(upstream: ScriptedUpstream) -> None:
    for behaviour in (
        Behaviour(delay=600),
        Behaviour(pieces=(b"a", b"b"), gap=600),
        Behaviour(pieces=(b"a", b"b"), gap=600, fault="unframed"),
    ):
        upstream.reset()
        upstream.next(behaviour)
        peer = Peer(upstream)
        peer.ask()
        (recorded,) = upstream.wait_for()
        if behaviour.gap:
            peer.until(b"\r\n\r\na" if behaviour.fault else b"a\r\n")
        peer.socket.close()
        assert recorded.abandoned.wait(DEADLINE_SECONDS)
        assert recorded.done.wait(DEADLINE_SECONDS)


def test_an_address_that_is_taken_is_reported() -> None:
    with ScriptedUpstream() as one:
        assert one.url == f"http://127.0.0.1:{one.port}"
        with pytest.raises(OSError, match="in use"):
            ScriptedUpstream(port=one.port).start()
        peer = Peer(one)
        wait_until(lambda: one.open_connections == 1)
        with pytest.raises(TimeoutError, match="1 connections are still open"):
            one.wait_closed(timeout=0.01)
    assert peer.socket.recv(1) == b"", "they end with it"
    assert one.open_connections == 0


def test_it_runs_alone_until_it_is_interrupted(monkeypatch: Any, capsys: Any) -> None:
    steps: list[object] = []

    class Double:
        url = "http://127.0.0.1:1"

        def __init__(self, **given: object) -> None:
            steps.append(given)

        def __enter__(self) -> Double:
            return self

        def __exit__(self, *_: object) -> None:
            steps.append("stopped")

    class Interrupted:
        def wait(self) -> None:
            steps.append(capsys.readouterr().out)
            raise KeyboardInterrupt

    monkeypatch.setattr(alone, "ScriptedUpstream", Double)
    monkeypatch.setattr(alone, "threading", SimpleNamespace(Event=Interrupted))
    for arguments, given in (
        ([], {"host": "127.0.0.1", "port": 0, "websockets": False}),
        (["--host", "::1", "--port", "8"], {"host": "::1", "port": 8, "websockets": False}),
    ):
        steps.clear()
        alone.main(arguments)
        assert steps == [given, "http://127.0.0.1:1\n", "stopped"]
