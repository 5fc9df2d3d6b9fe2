"""The strict head reader and chunk reader against llhttp: what we accept, it reads the same way."""

from __future__ import annotations

import contextlib

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.limits_kit import Limits
from wireglot.http.server import head as server_head
from wireglot.http.server.body import ChunkedBody, TooLarge
from wireglot.http.server.head import Inbound, Malformed, check_partial, read_head


class Seen:
    """What llhttp reports of a request."""

    def __init__(self, data: bytes) -> None:
        self.target = b""
        self.fields: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.heads = 0
        self.whole = 0
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_url(self, part: bytes) -> None:
        self.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))

    def on_headers_complete(self) -> None:
        self.heads += 1

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.whole += 1


ODD = st.sampled_from([
    b"\r\n", b"\r", b"\n", b"\r\n ", b"\0", b"\t", b" ", b":", b"\x7f", b"\xe9", b",", b"%2f", b"?", b"#", b"//", b";",
    b"chunked", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"HTTP/1.0", b"http://localhost/", b"+", b"_",
])  # fmt: skip
NAMES = st.sampled_from([
    b"Host", b"host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"X-A", b"Expect", b"Accept", b"User-Agent",
])  # fmt: skip
VALUES = st.sampled_from([
    b"localhost", b"3", b"03", b"chunked", b"Chunked", b"close", b"keep-alive", b"a, b", b"", b" x ", b"100-continue", b"a\xe9",
])  # fmt: skip


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """Mostly good heads, some with something odd put in somewhere."""
    method = draw(st.sampled_from([b"GET", b"POST", b"OPTIONS", b"PUT"]))
    target = draw(
        st.sampled_from([b"/", b"/v1/models?a=b", b"/v1beta/models/a:b", b"http://localhost/x", b"*"])
    )
    lines = [
        b"Host: localhost",
        *(name + b":" + value for name, value in draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))),
    ]
    raw = (
        method
        + b" "
        + target
        + b" HTTP/1."
        + draw(st.sampled_from([b"0", b"1"]))
        + b"\r\n"
        + b"\r\n".join(lines)
    )
    for odd in draw(st.lists(ODD, max_size=2)):
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + odd + raw[at:]
    return raw


def _read(raw: bytes) -> Inbound | None:
    with contextlib.suppress(Malformed):
        return read_head(raw, "", Limits())
    return None


@given(heads())
def test_a_head_we_accept_is_read_the_same_by_llhttp(raw: bytes):
    inbound = _read(raw)
    if inbound is None or b"\r\n\r\n" in raw:
        return
    seen = Seen(raw + b"\r\n\r\n")
    head = inbound.head
    assert seen.heads == 1
    assert (seen.parser.get_method().decode(), seen.target.decode()) == (head.method, head.target)
    assert seen.parser.get_http_version() == f"1.{inbound.minor}"
    joined: dict[str, str] = {}
    for name, value in seen.fields:
        key, text = name.decode().lower(), value.decode("latin-1").strip(" \t")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    assert joined == head.headers
    # Where the body ends: llhttp calls a request without one whole at once.
    assert seen.whole == (1 if inbound.length == 0 else 0)


@given(heads())
def test_a_head_is_judged_the_same_with_and_without_a_memory_of_lines(raw: bytes):
    first = _read(raw)
    assert _read(raw) == first
    server_head._fields.clear()
    server_head._lines.clear()
    assert _read(raw) == first


@given(heads(), st.data())
def test_a_good_head_is_not_refused_while_it_is_still_arriving(raw: bytes, data: st.DataObject):
    if _read(raw) is None:
        return
    whole = raw + b"\r\n\r"
    seen = 0
    for cut in sorted(data.draw(st.sets(st.integers(0, len(whole)), max_size=5))):
        check_partial(whole[:cut], seen, Limits())
        seen = cut


@pytest.mark.parametrize(
    "held", [b"GET / HTTP/1.1\r\nA: b\rc", b"GET / HTTP/1.1\r\nA: b\n", b"GET / HTTP/1.1\r\n\0"]
)
def test_a_line_end_cut_in_the_middle_is_judged_once_its_second_half_is_there(held: bytes):
    check_partial(held[:-1], 0, Limits())
    with pytest.raises(Malformed):
        check_partial(held, len(held) - 1, Limits())


CHUNK = st.one_of(
    st.binary(max_size=9).map(lambda data: b"%x\r\n%b\r\n" % (len(data), data) if data else b""),
    st.sampled_from([b"3;a=b\r\nabc\r\n", b"003\r\nabc\r\n", b"A\r\n0123456789\r\n"]),
)
BENT = st.sampled_from([b"", b"", b"", b"\n", b"\r", b" ", b"0", b"+", b"0x", b";", b"\0", b"X: y\r\n", b"-"])


@given(st.lists(CHUNK, max_size=4), BENT, st.data())
def test_chunks_we_accept_are_read_the_same_by_llhttp_however_cut(
    chunks: list[bytes], bent: bytes, data: st.DataObject
):
    raw = b"".join(chunks) + b"0\r\n\r\n"
    at = data.draw(st.integers(0, len(raw)))
    raw = raw[:at] + bent + raw[at:]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=5)))
    results = [
        _chunks([raw]),
        _chunks([raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]),
    ]
    assert results[0] == results[1]
    if results[0] is not None:
        whole, body, rest = results[0]
        seen = Seen(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + raw[: len(raw) - len(rest)]
        )
        assert (seen.body, seen.whole) == (body, whole)


def _chunks(pieces: list[bytes]) -> tuple[bool, bytes, bytes] | None:
    """Whether the body is whole, the body, and what follows it; None for a refused one."""
    reader = ChunkedBody(1000)
    rest = b""
    try:
        for piece in pieces:
            if reader.rest is None:
                reader.feed(piece)
            else:
                rest += piece
    except (Malformed, TooLarge):
        return None
    return reader.rest is not None, reader.body(), (reader.rest or b"") + rest


def test_no_line_that_may_hold_a_secret_is_remembered():
    server_head._fields.clear()
    server_head._lines.clear()
    secret = "sk-" + "s" * 20
    lines = [
        "Host: a",
        f"Authorization: Bearer {secret}",
        f"x-api-key: {secret}",
        f"X-Goog-Api-Key: {secret}",
    ]
    lines += [f"Cookie: {secret}", f"X-Custom: {secret}", "User-Agent: me"]
    read_head("\r\n".join([f"GET /v1/models?key={secret} HTTP/1.1", *lines]).encode(), "", Limits())
    assert set(server_head._fields) == {"Host: a", "User-Agent: me"}
    assert not server_head._lines


def test_the_memory_of_lines_is_bounded():
    for number in range(5000):
        read_head(
            f"GET /{number} HTTP/1.1\r\nHost: h{number}\r\nUser-Agent: {'u' * 300}\r\nX-{number}: a".encode(),
            "",
            Limits(),
        )
    assert len(server_head._fields) <= 2048
    assert len(server_head._lines) <= 2048
    assert len(server_head._names) <= 2048
    assert max(map(len, server_head._fields)) <= 256


@pytest.mark.parametrize("name", ["X" * 4000, "a" + " " * 7000 + "b", "%" * 8000])
def test_a_hostile_line_costs_no_more_than_its_length(name: str):
    """Guards against patterns that backtrack: these took minutes with a careless one."""
    for raw in (
        f"GET /{name} HTTP/1.1\r\nHost: a",
        f"GET / HTTP/1.1\r\nHost: a\r\n{name}: b",
        f"GET / HTTP/1.1\r\nHost: a\r\nA: {name}",
    ):
        _read(raw.encode())
