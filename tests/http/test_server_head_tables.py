"""Heads and chunks, row by row: what is read, and with which status and code others are refused."""

from __future__ import annotations

import json

import pytest

from tests.http.limits_kit import Limits
from tests.tiers import rows
from wireglot.http.application import Refusal
from wireglot.http.server import body as server_body
from wireglot.http.server.body import ChunkedBody, SizedBody, TooLarge
from wireglot.http.server.head import (
    CHUNKED,
    Malformed,
    StatusLines,
    check_partial,
    closing,
    plain_refusal,
    read_head,
    remember,
    render_head,
)

LIMITS = Limits()


def head(*lines: str, first: str = "GET / HTTP/1.1", host: str = "Host: a") -> bytes:
    return "\r\n".join([first, *([host] if host else []), *lines]).encode("latin-1")


def refused(raw: bytes, limits: Limits = LIMITS) -> tuple[int, str]:
    with pytest.raises(Malformed) as caught:
        read_head(raw, "", limits)
    return caught.value.status, caught.value.code


REFUSED = [
    (head("A: b\x01"), 400, "invalid_header"),
    (head("A: b\nc"), 400, "invalid_header"),
    (head("A b"), 400, "invalid_header"),
    (head("A : b"), 400, "invalid_header"),
    (head(": b"), 400, "invalid_header"),
    (head("A"), 400, "invalid_header"),
    (head(" A: b"), 400, "invalid_header"),
    (head(host=""), 400, "invalid_host"),
    (head(host="Host: a b"), 400, "invalid_host"),
    (head(host="Host: a:123456"), 400, "invalid_host"),
    (head(host="Host: " + "a" * 256), 400, "invalid_host"),
    (head("Host: a"), 400, "duplicate_header"),
    (head("Content-Length: 1x"), 400, "invalid_content_length"),
    (head("Content-Length: -1"), 400, "invalid_content_length"),
    (head("Content-Length: " + "1" * 19), 400, "invalid_content_length"),
    (head("Content-Length: "), 400, "invalid_framing"),
    (head("Content-Length:"), 400, "invalid_content_length"),
    (head("Content-Length: 1 "), 400, "invalid_framing"),
    (head("Content-Length:\t1"), 400, "invalid_framing"),
    (head("Transfer-Encoding: chunked "), 400, "invalid_framing"),
    (head("Content-Length: 1", "Transfer-Encoding: chunked"), 400, "invalid_framing"),
    (head("Transfer-Encoding: gzip"), 400, "invalid_framing"),
    (head("Transfer-Encoding: gzip, chunked"), 400, "invalid_framing"),
    (head("Transfer-Encoding: chunked", first="POST / HTTP/1.0"), 400, "invalid_framing"),
    (head("Expect: other"), 417, "expectation_failed"),
    (head(first="GET / HTTP/1.2"), 505, "http_version_not_supported"),
    (head(first="GET / HTTP/2.0"), 505, "http_version_not_supported"),
    (head(first="GET / HTTP/0.9"), 505, "http_version_not_supported"),
    (head(first="GET /"), 400, "invalid_request_line"),
    (head(first="get / HTTP/1.1"), 400, "invalid_request_line"),
    (head(first="A" * 33 + " / HTTP/1.1"), 400, "invalid_request_line"),
    (head(first="GET  / HTTP/1.1"), 400, "invalid_request_line"),
    (head(first="CONNECT a:1 HTTP/1.1"), 405, "method_not_allowed"),
    (head(first="OPTIONS * HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET ftp://a/ HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET http://b/ HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET //a HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /a//b HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /../a HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /a..b HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /. HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /./a HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%2e HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%5C HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%3b HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%00 HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%7F HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /%zz HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /a;b HTTP/1.1"), 400, "invalid_target"),
    (head(first="GET /?a#b HTTP/1.1"), 400, "invalid_target"),
    *((head(f"{name}: 1", f"{name}: 1"), 400, "duplicate_header")
      for name in ("authorization", "content-length", "content-type", "Expect", "origin",
                   "transfer-encoding", "x-api-key", "X-Goog-Api-Key") if name not in ("Expect", "transfer-encoding")),
    (head("expect: 100-continue", "expect: 100-continue"), 400, "duplicate_header"),
    (head("transfer-encoding: chunked", "transfer-encoding: chunked"), 400, "duplicate_header"),
]  # fmt: skip


@rows("raw, status, code", REFUSED)
def test_what_two_readers_could_read_differently_is_refused(raw, status, code):
    for _ in range(2):
        assert refused(raw) == (status, code)


TARGETS = [
    ("/", "/", ""),
    ("/a/b?c=d", "/a/b", "c=d"),
    ("/a?", "/a", ""),
    ("/v1beta/models/a:b", "/v1beta/models/a:b", ""),
    ("/a%2Fb", "/a%2Fb", ""),
    ("/.a", "/.a", ""),
    ("/a?b?c", "/a", "b?c"),
    ("http://a/x?y", "/x", "y"),
    ("HTTPS://A", "/", ""),
    ("http://a?y", "/", "y"),
]


@rows("target, path, query", TARGETS)
def test_a_target_is_a_path_and_a_query(target, path, query):
    found = read_head(head(first=f"GET {target} HTTP/1.1"), "10.0.0.1", LIMITS).head
    assert (found.method, found.target, found.path, found.query) == ("GET", target, path, query)
    assert found.peer == "10.0.0.1"


CONNECTIONS = [
    ("1.1", None, True),
    ("1.1", "close", False),
    ("1.1", "Keep-Alive, Close", False),
    ("1.1", "x", True),
    ("1.1", "keep-alive", True),
    ("1.0", None, False),
    ("1.0", "keep-alive", True),
    ("1.0", "x, Keep-Alive", True),
    ("1.0", "x", False),
]


@rows("version, connection, stays", CONNECTIONS)
def test_whether_a_connection_stays(version, connection, stays):
    lines = [f"Connection: {connection}"] if connection else []
    found = read_head(head(*lines, first=f"GET / HTTP/{version}"), "", LIMITS)
    assert (found.keep_alive, found.minor) == (stays, int(version[-1]))


def test_what_a_head_says_of_its_body():
    for lines, first, length, expects in (
        ([], "GET / HTTP/1.1", 0, False),
        (["Content-Length: 007"], "POST / HTTP/1.1", 7, False),
        (["Content-Length: " + "9" * 18], "POST / HTTP/1.1", 10**18 - 1, False),
        (["Transfer-Encoding: Chunked"], "POST / HTTP/1.1", CHUNKED, False),
        (["Content-Length: 7", "Expect: 100-Continue"], "POST / HTTP/1.1", 7, True),
        (["Content-Length: 7", "Expect: 100-continue"], "POST / HTTP/1.0", 7, False),
    ):
        found = read_head(head(*lines, first=first), "", LIMITS)
        assert (found.length, found.expects_continue) == (length, expects)


def test_headers_are_joined_and_an_old_client_cannot_upgrade():
    lines = ("Accept:  a\t", "X-A: 1", "accept: b", "Upgrade: websocket", "x-stainless-os: Linux")
    for first, upgrade in (("GET / HTTP/1.1", "websocket"), ("GET / HTTP/1.0", None)):
        headers = read_head(head(*lines, first=first), "", LIMITS).head.headers
        assert headers["accept"] == "a, b"
        assert headers.get("upgrade") == upgrade
        assert (headers["host"], headers["x-a"], headers["x-stainless-os"]) == ("a", "1", "Linux")


def test_sizes_of_a_head_are_kept_to_the_byte():
    line = "A: " + "b" * 97
    for limits, fine, raw in (
        (Limits(header_line=100), True, head(line)),
        (Limits(header_line=99), False, head(line)),
        (Limits(header_count=2), True, head(line)),
        (Limits(header_count=1), False, head(line)),
        (Limits(url=50), True, head(first=f"GET /{'a' * 49} HTTP/1.1")),
        (Limits(url=49), False, head(first=f"GET /{'a' * 49} HTTP/1.1")),
        (Limits(header_total=len(head(line))), True, head(line)),
        (Limits(header_total=len(head(line)) - 1), False, head(line)),
    ):
        if fine:
            read_head(raw, "", limits)
        else:
            status, code = refused(raw, limits)
            assert (status, code) == (
                (414, "url_too_long") if limits.url == 49 else (431, "headers_too_large")
            )


def test_a_head_that_cannot_become_good_is_refused_before_its_end():
    limits = Limits(url=100, header_total=300)
    for held, start, code in (
        (b"GET /" + b"a" * 159, 0, None),
        (b"GET /" + b"a" * 160, 0, "url_too_long"),
        (b"GET /" + b"a" * 160 + b" HTTP/1.1\r\n", 0, "url_too_long"),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 284, 0, None),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 285, 0, "headers_too_large"),
        (b"GET / HTTP/9.9\r\n", 0, "http_version_not_supported"),
        (b"\x16\x03\x01\x02", 0, "tls_not_spoken"),
        (b"GET / HTTP/1.1\r\nA: \x01", 0, "invalid_header"),
        (b"GET / HTTP/1.1\r", 0, None),
    ):
        if code is None:
            check_partial(held, start, limits)
        else:
            with pytest.raises(Malformed) as caught:
                check_partial(held, start, limits)
            assert caught.value.code == code, held


def test_a_known_head_is_one_with_a_length_alone():
    raw = head("Content-Length: 5", "A: b", first="POST / HTTP/1.1")
    known = remember(raw, read_head(raw, "p", LIMITS), LIMITS)
    assert known is not None
    for length, fine in (
        ("7", True),
        ("0", True),
        ("9" * 18, True),
        ("9" * 19, False),
        ("", False),
        ("x", False),
    ):
        other = raw.replace(b": 5", f": {length}".encode())
        found = known.again(other, LIMITS)
        assert (found is not None) is fine
        if found is not None:
            assert (found.length, found.head.headers["content-length"]) == (int(length), length)
            assert found.head.familiar is known
            assert (found.head.peer, found.keep_alive, found.minor) == ("p", True, 1)
    assert known.again(raw + b"x", LIMITS) is None
    assert known.again(raw, Limits()) is None
    for lines in (["Content-Length: 0"], []):
        none = head(*lines, first="POST / HTTP/1.1")
        assert remember(none, read_head(none, "", LIMITS), LIMITS) is None
    small = Limits(header_line=len(raw))
    known = remember(raw, read_head(raw, "", small), small)
    assert known is not None
    assert known.again(raw, small) is not None
    assert known.again(raw.replace(b": 5", b": 55"), small) is None


# --- answers


def test_status_lines_have_a_phrase_and_the_date():
    lines = StatusLines(0)
    assert lines[200] == "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
    assert lines[529].startswith("HTTP/1.1 529 Overloaded\r\n")
    assert lines[599].startswith("HTTP/1.1 599 Status\r\n")
    lines.set_date(86400)
    assert lines[200].endswith("date: Fri, 02 Jan 1970 00:00:00 GMT\r\n")


def test_headers_of_an_answer_cannot_end_it_or_frame_it():
    for headers, shown in (
        ([("a", "b"), ("c", "d")], "a: b\r\nc: d\r\n"),
        ([("a", "b\r\nx: y")], "a: b??x: y\r\n"),
        ([("a", "b\nc")], "a: b?c\r\n"),
        ([("a", "b\0")], "a: b?\r\n"),
        ([("a", "ü€")], "a: ü?\r\n"),
        ([("a b", "c\n"), ("d", "e")], "d: e\r\n"),
        *([([(name, "1"), ("z", "2")], "z: 2\r\n")
           for name in ("connection", "content-length", "date", "keep-alive", "transfer-encoding")]),
    ):  # fmt: skip
        assert render_head("S\r\n", headers, "F\r\n\r\n") == f"S\r\n{shown}F\r\n\r\n".encode("latin-1")


def test_a_refusal_without_a_dialect_is_the_last_answer_of_its_connection():
    for status, kind, retry in (
        (400, "invalid_request_error", None),
        (499, "invalid_request_error", None),
        (500, "server_error", None),
        (503, "server_error", "1"),
        (505, "invalid_request_error", None),
    ):
        refusal = plain_refusal(status, "code", "a message")
        assert refusal.close
        assert refusal.status == status
        assert json.loads(refusal.body) == {
            "error": {"message": "a message", "type": kind, "param": None, "code": "code"}
        }
        assert dict(refusal.headers) == {
            "content-type": "application/json",
            **({"retry-after": retry} if retry else {}),
        }
    open_one = Refusal(404, [("a", "b")], b"x")
    assert closing(open_one) == Refusal(404, [("a", "b")], b"x", close=True)
    last = Refusal(404, [], b"", close=True)
    assert closing(last) is last


# --- bodies


def test_a_body_ends_where_its_length_says():
    for pieces, body, rest in (
        ([b"abc"], b"abc", b""),
        ([b"ab", b"cdef"], b"abc", b"def"),
        ([b"a", b"b"], b"ab", None),
        ([b"abcd"], b"abc", b"d"),
    ):
        sized = SizedBody(3)
        for piece in pieces:
            sized.feed(memoryview(piece))
        assert (sized.body(), sized.rest) == (body, rest)


def test_many_parts_and_long_bodies_are_gathered_in_one_place():
    sized = SizedBody(1000)
    for _ in range(64):
        sized.feed(b"x")
    assert len(sized._parts) == 64
    sized.feed(b"y")
    assert sized._parts == []
    assert sized.body() == b"x" * 64 + b"y"
    assert SizedBody(2 * 1024 * 1024)._gathered is None
    assert SizedBody(2 * 1024 * 1024 + 1)._gathered is not None


CHUNKS = [
    ([b"3\r\nabc\r\n0\r\n\r\nrest"], b"abc", b"rest"),
    ([b'3;a;b=c;d="e f"\r\nabc\r\n0\r\n\r\n'], b"abc", b""),
    ([b"0000000000000003\r\nabc\r\n0\r\n\r\n"], b"abc", b""),
    ([b"3\r", b"\nabc\r", b"\n0\r\n\r", b"\nx"], b"abc", b"x"),
    ([b"a\r\n0123456789\r\n"], b"0123456789", None),
]
BAD_CHUNKS = [
    b"00000000000000003\r\n",
    b"x\r\n",
    b"\r\n",
    b" 3\r\n",
    b"3 \r\n",
    b"3;\r\n",
    b'3;a="\r"\r\n',
    b"3\nabc",
    b"3\rx",
    b"3;" + b"a" * 255,
    b"3;" + b"a" * 255 + b"\r\n",
    b"3\r\nabcd\r\n",
    b"0\r\nA: b\r\n\r\n",
]


@rows("pieces, body, rest", CHUNKS)
def test_chunks_are_joined(pieces, body, rest):
    chunked = ChunkedBody(100)
    for piece in pieces:
        chunked.feed(piece)
    assert (chunked.body(), chunked.rest) == (body, rest)


@rows("data", BAD_CHUNKS)
def test_what_is_no_chunk_is_refused(data):
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))]):
        chunked = ChunkedBody(100)
        with pytest.raises(Malformed) as caught:  # noqa: PT012 - by whichever piece
            for piece in pieces:
                chunked.feed(piece)
        assert (caught.value.status, caught.value.code) == (400, "invalid_chunk")


def test_a_size_line_may_have_256_bytes():
    line = b"3;" + b"a" * 254
    chunked = ChunkedBody(100)
    chunked.feed(line)
    chunked.feed(b"\r\nabc\r\n0\r\n\r\n")
    assert chunked.body() == b"abc"


def test_chunks_are_limited_by_what_they_announce():
    fine = ChunkedBody(10)
    fine.feed(b"6\r\nabcdef\r\n4\r\n")
    over = ChunkedBody(10)
    over.feed(b"6\r\nabcdef\r\n")
    with pytest.raises(TooLarge):
        over.feed(b"5\r\n")


def test_so_many_small_chunks_are_free_and_then_they_need_a_mean_size(monkeypatch):
    monkeypatch.setattr(server_body, "_FREE_CHUNKS", 4)
    small = ChunkedBody(10_000)
    small.feed(b"1\r\na\r\n" * 4)
    with pytest.raises(Malformed, match="too many small chunks"):
        small.feed(b"1\r\n")
    large = ChunkedBody(10_000)
    large.feed(b"80\r\n" + b"x" * 128 + b"\r\n")
    large.feed(b"1\r\na\r\n" * 4)
    with pytest.raises(Malformed):
        large.feed(b"1\r\n")
    assert server_body._MEAN_CHUNK_BYTES == 128
