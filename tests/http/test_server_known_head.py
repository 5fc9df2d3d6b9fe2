"""A head like the last one of its connection is not read again, and means what it would mean if it were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.http.limits_kit import Limits
from tests.http.server_kit import Run, loops, runner, serving
from tests.tiers import rows
from wireglot.http.server.head import Inbound, KnownHead, Malformed, read_head, remember


@pytest.fixture(params=loops())
def run(request: pytest.FixtureRequest) -> Run:
    return runner(request.param)


LIMITS = Limits()
PEER = "10.0.0.7"
LINES = st.lists(
    st.sampled_from([
        b"User-Agent: agent/1", b"Authorization: Bearer k", b"X-A: 1", b"x-a: 2", b"Connection: keep-alive",
        b"Connection: close", b"Expect: 100-continue", b"Accept: */*", b"X-Content-Length: 3", b"X: Content-Length: 9",
    ]),
    max_size=5,
    unique=True,
)  # fmt: skip
LENGTHS = st.one_of(
    st.integers(0, 10**7).map(lambda n: str(n).encode()), st.sampled_from([b"007", b"9" * 18])
)
NAMES = st.sampled_from([b"Content-Length: ", b"content-length:", b"CONTENT-LENGTH:  "])


def raw(before: list[bytes], length: bytes, behind: list[bytes], name: bytes = b"content-length: ") -> bytes:
    return b"\r\n".join([b"POST /v1/m HTTP/1.1", b"Host: localhost", *before, name + length, *behind])


def known(head: bytes) -> KnownHead | None:
    return remember(head, read_head(head, PEER, LIMITS), LIMITS)


def plain(inbound: Inbound) -> Inbound:
    inbound.head.familiar = None
    return inbound


@given(before=LINES, behind=LINES, first=LENGTHS, then=LENGTHS, name=NAMES)
def test_what_is_known_reads_as_if_it_were_new(
    before: list[bytes], behind: list[bytes], first: bytes, then: bytes, name: bytes
) -> None:
    try:
        last = known(raw(before, first, behind, name))
    except Malformed:
        return
    if last is None:
        assert int(first) == 0
        return
    again = raw(before, then, behind, name)
    found = last.again(again, LIMITS)
    assert found is not None
    assert found.head.familiar is last
    assert plain(found) == read_head(again, PEER, LIMITS)


@given(
    at=st.integers(0, 200),
    odd=st.sampled_from([
        b"\r\n", b" ", b"\t", b"+", b"-", b"0x", b",", b"\r\nTransfer-Encoding: chunked", b"\r\nX: y", b"\xb2", b"k", b"1" * 19,
    ]),
)  # fmt: skip
def test_with_anything_else_in_it_a_head_is_new_or_refused_as_ever(at: int, odd: bytes) -> None:
    """Nothing but digits can stand where the digits of the length stood."""
    before, behind = [b"Authorization: Bearer k"], [b"X-A: 1"]
    first = raw(before, b"12", behind)
    last = known(first)
    assert last is not None
    changed = first[:at] + odd + first[at:]
    found = last.again(changed, LIMITS)
    if found is not None:
        assert plain(found) == read_head(changed, PEER, LIMITS)


@rows("length", [b"", b"-1", b"+1", b"1 2", b"1\r\nX: y", b" 1", b"1 ", b"\xb2", b"1" * 19])
def test_what_is_no_number_is_not_taken_for_one(length: bytes) -> None:
    last = known(raw([], b"12", []))
    assert last is not None
    assert last.again(raw([], length, []), LIMITS) is None


def test_other_limits_have_it_read_again() -> None:
    head = raw([], b"12", [])
    last = known(head)
    assert last is not None
    assert last.again(head, Limits()) is None
    half = b"a" * (LIMITS.url // 2)
    long = raw([b"X-A: " + half, b"X-B: " + half], b"12", [])
    assert (kept := known(long)) is not None
    assert kept.again(long, LIMITS) is None


def test_a_body_in_chunks_is_not_remembered() -> None:
    head = b"POST /v1/m HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked"
    assert known(head) is None
    assert known(b"GET /v1/m HTTP/1.1\r\nHost: localhost") is None


def test_every_request_of_a_connection_has_its_own_length_and_headers(run: Run) -> None:
    def post(key: bytes, body: bytes) -> bytes:
        return raw([b"Authorization: Bearer " + key], str(len(body)).encode(), []) + b"\r\n\r\n" + body

    async def scenario() -> None:
        async with serving() as served:
            client = await served.client()
            for key, body in (
                (b"a", b"1"),
                (b"a", b"22"),
                (b"a", b"333"),
                (b"b", b"333"),
                (b"b", b""),
                (b"a", b"1"),
            ):
                client.send(post(key, body))
                answer = await client.response()
                assert answer.body == b"POST /v1/m " + body
            reported = [
                (h.headers["authorization"][-1], h.headers["content-length"]) for h in served.app.heads
            ]
            assert reported == [("a", "1"), ("a", "2"), ("a", "3"), ("b", "3"), ("b", "0"), ("a", "1")]
            first, second, third, *others = served.app.heads
            assert first.familiar is None
            assert second.familiar is third.familiar is not None
            assert second.headers is not third.headers
            assert [other.familiar for other in others[:1]] == [None]

    run(scenario())
