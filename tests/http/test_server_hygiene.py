"""Bytes that are not the HTTP we speak, and limits: refused at once, closed, and never handed to the application."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.http.limits_kit import Limits
from tests.http.server_kit import HOST, FakeApp, Run, get, loops, post, runner, serving
from tests.waiting import until
from wireglot.http.application import Refusal

POST = b"POST / HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def _post(*lines: bytes, body: bytes = b"abc") -> bytes:
    return POST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def _host(value: bytes) -> bytes:
    return b"GET / HTTP/1.1\r\nHost: " + value + b"\r\n\r\n"


def _target(target: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n"


MALFORMED: dict[str, tuple[bytes, int]] = {
    # Framing (fault matrix rows 1 and 2)
    "length and chunked": (_post(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"), 400),
    "chunked and length": (_post(b"Transfer-Encoding: chunked", b"Content-Length: 3", body=b"0\r\n\r\n"), 400),
    "two equal lengths": (_post(b"Content-Length: 3", b"Content-Length: 3"), 400),
    "two lengths": (_post(b"Content-Length: 3", b"Content-Length: 4"), 400),
    "list of lengths": (_post(b"Content-Length: 3, 3"), 400),
    "length +3": (_post(b"Content-Length: +3"), 400),
    "length 0x3": (_post(b"Content-Length: 0x3"), 400),
    "length 1_0": (_post(b"Content-Length: 1_0"), 400),
    "length -1": (_post(b"Content-Length: -1"), 400),
    "length 2^64": (_post(b"Content-Length: 18446744073709551616"), 400),
    "length empty": (_post(b"Content-Length: "), 400),
    "length with a space inside": (_post(b"Content-Length: 1 0"), 400),
    "length in other digits": (_post("Content-Length: ٣".encode()), 400),
    "coding xchunked": (_post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 400),
    "coding twice": (_post(*[b"Transfer-Encoding: chunked"] * 2, body=b"0\r\n\r\n"), 400),
    "coding chunked, chunked": (_post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"), 400),
    "coding chunked, identity": (_post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"), 400),
    "coding gzip, chunked": (_post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), 400),
    "coding identity": (_post(b"Transfer-Encoding: identity"), 400),
    "coding empty": (_post(b"Transfer-Encoding: "), 400),
    "coding and a tab": (_post(b"Transfer-Encoding: chunked\t", body=b"0\r\n\r\n"), 400),
    "coding behind a tab": (_post(b"Transfer-Encoding:\tchunked", body=b"0\r\n\r\n"), 400),
    "coding and a space": (_post(b"Transfer-Encoding: chunked ", body=b"0\r\n\r\n"), 400),
    "length and a tab": (_post(b"Content-Length: 3\t", body=b"abc"), 400),
    "length behind a tab": (_post(b"Content-Length:\t3", body=b"abc"), 400),
    "length and a space": (_post(b"Content-Length: 3 ", body=b"abc"), 400),
    "coding with vertical tab": (_post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"), 400),
    "chunked on 1.0": (b"POST / HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    # Chunks (row 3)
    "chunk 0x5": (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk +5": (CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk -5": (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk with a space": (CHUNKED + b"5 \r\nhello\r\n0\r\n\r\n", 400),
    "chunk with a space before": (CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n", 400),
    "chunk without a size": (CHUNKED + b"\r\nhello\r\n0\r\n\r\n", 400),
    "chunk 5_0": (CHUNKED + b"5_0\r\nhello\r\n0\r\n\r\n", 400),
    "chunk line with LF only": (CHUNKED + b"5\nhello\r\n0\r\n\r\n", 400),
    "chunk line with CR only": (CHUNKED + b"5\rhello\r\n0\r\n\r\n", 400),
    "chunk end wrong": (CHUNKED + b"5\r\nhelloXX0\r\n\r\n", 400),
    "chunk end with LF only": (CHUNKED + b"5\r\nhello\n0\r\n\r\n", 400),
    "chunk longer than reported": (CHUNKED + b"5\r\nhello!\r\n0\r\n\r\n", 400),
    "chunk extension with LF": (CHUNKED + b"5;a=\nb\r\nhello\r\n0\r\n\r\n", 400),
    "chunk extension with NUL": (CHUNKED + b"5;a=\0b\r\nhello\r\n0\r\n\r\n", 400),
    "chunk extension empty": (CHUNKED + b"5;\r\nhello\r\n0\r\n\r\n", 400),
    "chunk extension endless": (CHUNKED + b"5;" + b"a" * 300, 400),
    "chunk size of 17 digits": (CHUNKED + b"0" * 16 + b"5\r\nhello\r\n0\r\n\r\n", 400),
    "last chunk with LF only": (CHUNKED + b"0\n\n", 400),
    "last chunk ends with LF": (CHUNKED + b"0\r\n\n", 400),
    # Lines (row 4)
    "bare LF lines": (b"GET / HTTP/1.1\nHost: localhost\n\n", 400),
    "one bare LF": (b"GET / HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n", 400),
    "LF ends the head": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\n", 400),
    "bare CR in a value": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\rc\r\n\r\n", 400),
    "CR CR LF": (b"GET / HTTP/1.1\r\nHost: localhost\r\r\n\r\n", 400),
    "folded header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n c\r\n\r\n", 400),
    "folded first header": (b"GET / HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
    "tab-folded header": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n\tc\r\n\r\n", 400),
    "NUL in a value": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\0c\r\n\r\n", 400),
    "DEL in a value": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\x7fc\r\n\r\n", 400),
    "escape in a value": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: \x1b[1m\r\n\r\n", 400),
    "space before the colon": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA : b\r\n\r\n", 400),
    "space in a name": (b"GET / HTTP/1.1\r\nHost: localhost\r\nA b: c\r\n\r\n", 400),
    "no colon": (b"GET / HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n", 400),
    "empty name": (b"GET / HTTP/1.1\r\nHost: localhost\r\n: b\r\n\r\n", 400),
    "name beyond ASCII": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\xc3\xa9: b\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n", 400),
    "HTTP/0.9 with headers": (b"GET /\r\n" + HOST + b"\r\n", 400),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\n" + HOST + b"\r\n", 505),
    "HTTP/1.10": (b"GET / HTTP/1.10\r\n" + HOST + b"\r\n", 400),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "http in lower case": (b"GET / http/1.1\r\n" + HOST + b"\r\n", 400),
    "method in lower case": (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "tabs in the request line": (b"GET\t/\tHTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "space after the version": (b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n", 400),
    "two empty lines first": (b"\r\n\r\nGET / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "TLS hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    # Host (row 5)
    "no host": (b"GET / HTTP/1.1\r\nA: b\r\n\r\n", 400),
    "no header at all": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "no host on 1.0": (b"GET / HTTP/1.0\r\n\r\n", 400),
    "two hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    "two equal hosts": (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    "host x/admin?": (_host(b"x/admin?"), 400),
    "host x@evil": (_host(b"x@evil"), 400),
    "host x#": (_host(b"x#"), 400),
    "host empty": (_host(b""), 400),
    "host with only a port": (_host(b":80"), 400),
    "host with a word for a port": (_host(b"x:http"), 400),
    "host with a space": (_host(b"x y"), 400),
    "host list": (_host(b"x, y"), 400),
    "host with a backslash": (_host(b"x\\y"), 400),
    "host with brackets left open": (_host(b"[::1"), 400),
    # Targets (rows 4 and 7, threat T4)
    "absolute with another host": (_target(b"http://evil.test/"), 400),
    "absolute with a user": (_target(b"http://a@localhost/"), 400),
    "absolute of another scheme": (_target(b"ftp://localhost/"), 400),
    "absolute with dots": (_target(b"http://localhost/a/../b"), 400),
    "connect": (b"CONNECT localhost:443 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "path without a slash": (_target(b"v1/models"), 400),
    "path @evil": (_target(b"@evil.test/"), 400),
    "path dots": (_target(b"/v1/../admin"), 400),
    "path dots at the end": (_target(b"/v1/.."), 400),
    "path dot": (_target(b"/v1/./models"), 400),
    "path dot at the end": (_target(b"/v1/."), 400),
    "path encoded dots": (_target(b"/v1/%2e%2E/admin"), 400),
    "path two slashes": (_target(b"//v1/models"), 400),
    "path two slashes inside": (_target(b"/v1//models"), 400),
    "path %5c": (_target(b"/v1%5cadmin"), 400),
    "path %00": (_target(b"/v1%00"), 400),
    "path %0d%0a": (_target(b"/v1%0d%0aA:b"), 400),
    "path %7f": (_target(b"/v1%7F"), 400),
    "path %3b": (_target(b"/v1%3Badmin"), 400),
    "path half an escape": (_target(b"/v1%4"), 400),
    "path no escape": (_target(b"/v1%zz"), 400),
    "path semicolon": (_target(b"/v1;/admin"), 400),
    "path backslash": (_target(b"/v1\\admin"), 400),
    "path control": (_target(b"/v1\x01"), 400),
    "path NUL": (_target(b"/v1\x00"), 400),
    "path beyond ASCII": (_target("/é".encode()), 400),
    "path quote": (_target(b'/"'), 400),
    "path fragment": (_target(b"/v1#x"), 400),
    "query fragment": (_target(b"/v1?a#x"), 400),
    "query beyond ASCII": (_target("/v1?é".encode()), 400),
    # The rest
    "unknown expectation": (_post(b"Content-Length: 3", b"Expect: 200-ok"), 417),
    "two authorizations": (_post(b"Authorization: a", b"Authorization: b", b"Content-Length: 3"), 400),
    "two content types": (_post(b"Content-Type: a/b", b"Content-Type: c/d", b"Content-Length: 3"), 400),
    "host in a trailer": (CHUNKED + b"1\r\na\r\n0\r\nHost: evil\r\n\r\n", 400),
    "length in a trailer": (CHUNKED + b"1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n", 400),
    "key in a trailer": (CHUNKED + b"1\r\na\r\n0\r\nAuthorization: x\r\n\r\n", 400),
}  # fmt: skip


@pytest.fixture(params=loops())
def run(request) -> Run:
    return runner(request.param)


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
def test_malformed_bytes_are_refused_and_the_connection_ends(run: Run, bytewise: bool):
    async def scenario():
        async with serving() as served:
            for name, (data, status) in MALFORMED.items():
                client = await served.client()
                if bytewise:
                    await client.send_bytewise(data)
                else:
                    client.send(data)
                answer = await client.response()
                assert (name, answer.status) == (name, status)
                assert answer.headers["connection"] == "close", name
                assert answer.headers["content-type"] == "application/json", name
                error = json.loads(answer.body)["error"]
                assert set(error) == {"message", "type", "param", "code"}, name
                assert error["type"] == "invalid_request_error", name
                assert error["code"], name
                assert await client.rest() == b"", name
            assert served.app.heads == []
            assert sum(served.server.refused.values()) == len(MALFORMED)

    run(scenario())


def test_what_follows_malformed_bytes_is_never_read_as_a_request(run: Run):
    async def scenario():
        async with serving() as served:
            for name, (data, status) in MALFORMED.items():
                client = await served.client()
                client.send(data + get("/smuggled"))
                answer = await client.response()
                assert (name, answer.status) == (name, status)
                assert await client.rest() == b"", name
            assert served.app.heads == []

    run(scenario())


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/v1beta/models/openai/gpt-5.5:generateContent?alt=sse", "/v1beta/models/openai/gpt-5.5:generateContent", "alt=sse"),
        ("/v1internal:loadCodeAssist", "/v1internal:loadCodeAssist", ""),
        ("/v1/models/a%20b@c~d", "/v1/models/a%20b@c~d", ""),
        ("/?", "/", ""),
        ("/v1?x=a/../b//c;d%2f{e}|[f]&u=http://other/", "/v1", "x=a/../b//c;d%2f{e}|[f]&u=http://other/"),
        ("http://localhost/v1/models?a", "/v1/models", "a"),
        ("HTTP://LOCALHOST", "/", ""),
        ("http://localhost?a", "/", "a"),
        ("/v1/.well-known/x", "/v1/.well-known/x", ""),
    ],
)  # fmt: skip
def test_good_targets_are_split_and_never_decoded(run: Run, target: str, path: str, query: str):
    async def scenario():
        async with serving() as served:
            assert (await served.ask(get(target))).status == 200
            (head,) = served.app.heads
            assert (head.target, head.path, head.query) == (target, path, query)

    run(scenario())


@pytest.mark.parametrize(
    "host", ["localhost:8484", "127.0.0.1", "[::1]:8484", "my_host.example-1.com", "a" * 255]
)
def test_good_hosts_come_in(run: Run, host: str):
    async def scenario():
        async with serving() as served:
            assert (await served.ask(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())).status == 200
            assert served.app.heads[0].headers == {"host": host}

    run(scenario())


LIMITS = Limits(header_line=200, header_count=6, header_total=600, url=100)


def _sized(total: int) -> bytes:
    """A request whose head, without the empty line at its end, is so many bytes long."""
    lines = ["GET / HTTP/1.1", "Host: localhost", "A: " + "a" * 190, "B: " + "b" * 190, "C: "]
    return "\r\n".join([*lines[:-1], "C: " + "c" * (total - len("\r\n".join(lines)))]).encode() + b"\r\n\r\n"


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize(
    ("make", "limit", "status"),
    [
        (lambda n: get("/" + "a" * (n - 1)), LIMITS.url, 414),
        (lambda n: get("/?" + "a" * (n - 2)), LIMITS.url, 414),
        (lambda n: get("/", "A: " + "a" * (n - 3)), LIMITS.header_line, 431),
        (lambda n: get("/", *["A: b"] * (n - 1)), LIMITS.header_count, 431),
        (_sized, LIMITS.header_total, 431),
    ],
    ids=["path", "url", "line", "count", "total"],
)  # fmt: skip
def test_limits_of_the_head_hold_to_the_byte(run: Run, make, limit: int, status: int, bytewise: bool):
    async def scenario():
        async with serving(limits=LIMITS) as served:
            for size, expected in [(limit - 1, 200), (limit, 200), (limit + 1, status)]:
                client = await served.client()
                if bytewise:
                    await client.send_bytewise(make(size))
                else:
                    client.send(make(size))
                assert (await client.response()).status == expected
                if expected != 200:
                    assert await client.rest() == b""

    run(scenario())


@pytest.mark.parametrize(
    ("data", "status"),
    [(b"GET /" + b"a" * 100_000, 414), (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000, 431)],
    ids=["line", "headers"],
)
def test_an_endless_head_is_refused_before_its_end(run: Run, data: bytes, status: int):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            client.send(data)
            assert (await client.response()).status == status
            assert await client.rest() == b""

    run(scenario())


def test_a_body_may_be_as_large_as_its_limit(run: Run):
    async def scenario():
        async with serving(FakeApp(limit=100_000)) as served:
            for size in (99_999, 100_000):
                assert (await served.ask(post("/", b"a" * size))).status == 200
                chunk = b"%x\r\n%b\r\n0\r\n\r\n" % (size, b"a" * size)
                assert (await served.ask(CHUNKED + chunk)).status == 200
            assert [len(body) for body in served.app.bodies] == [99_999, 99_999, 100_000, 100_000]

    run(scenario())


@pytest.mark.parametrize(
    "data",
    [
        POST + b"Content-Length: 100001\r\n\r\n",
        POST + b"Content-Length: 100001\r\nExpect: 100-continue\r\n\r\n",
        CHUNKED + b"186a1\r\n",
        CHUNKED + b"186a0\r\n" + b"a" * 100_000 + b"\r\n1\r\n",
        CHUNKED + b"ffffffffffffffff\r\n",
    ],
    ids=["declared", "expecting", "chunk", "sum of chunks", "huge chunk"],
)
def test_a_body_over_its_limit_is_refused_as_soon_as_that_is_known(run: Run, data: bytes):
    """R-DD-10"""

    async def scenario():
        async with serving(FakeApp(limit=100_000)) as served:
            client = await served.client()
            client.send(data)
            answer = await client.response()
            assert (answer.status, answer.body, answer.headers["connection"]) == (
                413,
                b"over 100000",
                "close",
            )
            assert await client.rest() == b""
            assert served.app.heads == []
            assert served.server.buffered == 0

    run(scenario())


def test_a_client_still_sending_its_large_body_can_read_why_it_was_refused(run: Run):
    async def scenario():
        async with serving(FakeApp(limit=1000)) as served:
            client = await served.client()
            client.send(post("/", b"a" * 900_000))
            assert (await client.response()).status == 413
            assert await client.rest() == b""

    run(scenario())


def test_a_body_of_too_many_tiny_chunks_is_refused(run: Run):
    async def scenario():
        async with serving() as served:
            client = await served.client()
            client.send(CHUNKED + b"1\r\na\r\n" * 20_000)
            answer = await client.response()
            assert json.loads(answer.body)["error"]["code"] == "invalid_chunk"

    run(scenario())


def test_bodies_that_arrive_together_are_limited(run: Run):
    async def scenario():
        async with serving(limits=Limits(buffered=50_000)) as served:
            first, second = await served.client(), await served.client()
            first.send(post("/", b"a" * 40_000)[:-1])
            await until(lambda: served.server.buffered == 39_999)
            second.send(post("/", b"a" * 40_000)[:-1])
            assert (await second.response()).status == 503
            first.send(b"a")
            assert (await first.response()).status == 200
            assert served.server.buffered == 0

    run(scenario())


@pytest.mark.parametrize("data", [b"G", b"GET / HTTP/1.1\r\nHost: loc"], ids=["line", "headers"])
def test_a_head_that_does_not_end_is_given_up(run: Run, data: bytes):
    async def scenario():
        async with serving(limits=Limits(header_time=0.05)) as served:
            client = await served.client()
            client.send(data)
            answer = await client.response()
            assert (answer.status, answer.headers["connection"]) == (408, "close")
            assert await client.rest() == b""

    run(scenario())


def test_a_head_that_trickles_in_gets_no_more_time_for_it(run: Run):
    async def scenario():
        async with serving(limits=Limits(header_time=0.1)) as served:
            client = await served.client()
            while not served.server.refused:
                client.send(b"G")
                await asyncio.sleep(0.01)
            assert (await client.response()).status == 408

    run(scenario())


@pytest.mark.parametrize(
    "head", [POST + b"Content-Length: 9\r\n\r\n", CHUNKED + b"9\r\n"], ids=["length", "chunks"]
)
@pytest.mark.parametrize(
    "limits",
    [Limits(body_idle=0.05), Limits(body_total=0.05)],
    ids=["without progress", "too slow overall"],
)
def test_a_body_that_stalls_is_answered_by_the_application_and_closed(run: Run, head: bytes, limits: Limits):
    async def scenario():
        async with serving(limits=limits) as served:
            client = await served.client()
            client.send(head + b"abc")
            answer = await client.response()
            assert (answer.status, answer.body, answer.headers["connection"]) == (408, b"stalled", "close")
            assert await client.rest() == b""
            assert served.app.heads == []
            assert served.server.buffered == 0

    run(scenario())


def test_an_idle_connection_is_closed_without_a_word(run: Run):
    async def scenario():
        async with serving(limits=Limits(keep_alive=0.05)) as served:
            fresh, used = await served.client(), await served.client()
            used.send(get("/"))
            assert (await used.response()).status == 200
            assert await fresh.rest() == b""
            assert await used.rest() == b""

    run(scenario())


def test_a_refused_request_whose_body_does_not_come_is_given_up(run: Run):
    async def scenario():
        app = FakeApp()
        app.refusals["/no"] = Refusal(401, [], b"no")
        async with serving(app, Limits(body_idle=0.05)) as served:
            client = await served.client()
            client.send(post("/no", b"abc")[:-1])
            assert (await client.response()).status == 401
            assert await client.rest() == b""

    run(scenario())


def test_too_many_connections_are_reported_and_closed(run: Run):
    async def scenario():
        async with serving(limits=Limits(connections=2)) as served:
            first, second = await served.client(), await served.client()
            await until(lambda: served.server.connections == 2)
            third = await served.client()
            answer = await third.response()
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert json.loads(answer.body)["error"]["type"] == "server_error"
            assert await third.rest() == b""
            await third.close()
            second.send(get("/"))
            assert (await second.response()).status == 200
            await first.close()
            await until(lambda: served.server.connections == 1)
            assert (await served.ask(get("/"))).status == 200

    run(scenario())


def test_an_upgrade_is_ignored_and_its_tail_is_the_next_request(run: Run):
    async def scenario():
        async with serving() as served:
            for protocol in ("websocket", "h2c", "\x80\xff"):
                client = await served.client()
                lines = [
                    "Connection: Upgrade, HTTP2-Settings",
                    f"Upgrade: {protocol}",
                    "HTTP2-Settings: AAMAAABk",
                ]
                client.send(get("/1", *lines).decode().encode("latin-1") + get("/2"))
                assert (await client.response()).body == b"GET /1 "
                assert (await client.response()).body == b"GET /2 "

    run(scenario())
