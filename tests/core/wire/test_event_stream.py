from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.event_stream import BadFrame, EventStreamDecoder, StreamMessage, message

MAX_MESSAGE: Final = 24 * 1024 * 1024
CHUNK: Final = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}

# `payload_no_headers` of the examples that Amazon's SDKs are tested with.
NO_HEADERS: Final = b"\x00\x00\x00\x1d\x00\x00\x00\x00\xfdR\x8cZ{'foo':'bar'}\xc3e96"
EVERY_KIND: Final = b"".join(
    bytes((len(name),)) + name.encode() + bytes((kind,)) + value
    for kind, name, value in (
        (0, "true", b""),
        (1, "false", b""),
        (2, "byte", b"\xcf"),
        (3, "short", b"\x00\x2a"),
        (4, "number", b"\x00\x00\xa0\x0c"),
        (5, "long", b"\x00\x00\x00\x00\x02\x87\x57\xb2"),
        (6, "bytes", b"\x00\x03\xff\x00\x01"),
        (7, "content-type", b"\x00\x10application/json"),
        (8, "time", b"\x00\x00\x00\x00\x00\x84\x5f\xed"),
        (9, "uuid", bytes(range(16))),
    )
)


def framed(headers: bytes, payload: bytes = b"") -> bytes:
    lengths = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return whole + struct.pack(">I", crc32(whole))


def prelude(total: int, headers: int) -> bytes:
    lengths = struct.pack(">II", total, headers)
    return lengths + struct.pack(">I", crc32(lengths))


def read(pieces: list[bytes]) -> list[StreamMessage]:
    decoder = EventStreamDecoder(MAX_MESSAGE)
    found = [each for piece in pieces for each in decoder.feed(piece)]
    decoder.close()
    return found


def test_amazons_own_example_is_read() -> None:
    assert read([NO_HEADERS]) == [StreamMessage({}, b"{'foo':'bar'}")]
    assert message({}, b"{'foo':'bar'}") == NO_HEADERS


def test_headers_of_every_kind_are_stepped_over_and_those_that_are_text_are_reported() -> None:
    assert read([framed(EVERY_KIND, b"x")]) == [StreamMessage({"content-type": "application/json"}, b"x")]


def test_amazons_own_reader_agrees() -> None:
    theirs = pytest.importorskip(
        "botocore.eventstream", reason="the extra wireglot[bedrock]"
    ).EventStreamBuffer()
    theirs.add_data(framed(EVERY_KIND, b"x") + message(CHUNK, b"{}"))
    first, second = theirs
    assert (first.headers["content-type"], first.payload) == ("application/json", b"x")
    assert (second.headers, second.payload) == (CHUNK, b"{}")


def test_what_is_written_is_read_under_every_cut() -> None:
    written = [
        StreamMessage(CHUNK, b'{"bytes":"eyJ0eXBlIjoicGluZyJ9"}'),
        StreamMessage({}, b""),
        StreamMessage({":message-type": "exception", ":exception-type": "throttlingException"}, b"{}"),
        StreamMessage({"läng": "ü" * 300}, bytes(range(256))),
    ]
    data = b"".join(message(each.headers, each.payload) for each in written)
    for pieces in every_cut(data):
        assert read(pieces) == written


@given(
    st.lists(
        st.tuples(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=4), st.binary()),
        max_size=4,
    ),
    st.integers(0, 3),
)
def test_any_messages_survive_any_cut(messages: list[tuple[dict[str, str], bytes]], seed: int) -> None:
    data = b"".join(message(headers, payload) for headers, payload in messages)
    for pieces in every_cut(data, seed=seed):
        assert read(pieces) == [StreamMessage(*each) for each in messages]


@rows("at", range(len(message(CHUNK, b"{}"))))
def test_no_bit_of_a_message_can_change_unnoticed(at: int) -> None:
    data = bytearray(message(CHUNK, b"{}"))
    data[at] ^= 0x10
    with pytest.raises(BadFrame):
        read([bytes(data)])


def test_a_wrong_length_is_found_before_it_is_waited_for() -> None:
    """Sixteen bytes of garbage must not have us wait for gigabytes."""
    with pytest.raises(BadFrame, match="prelude"):
        EventStreamDecoder(MAX_MESSAGE).feed(b"\x7f\xff\xff\xff" + bytes(12))
    for total, headers in ((15, 0), (20, 5), (2**31, 2**30), (100, 200 * 1024)):
        with pytest.raises(BadFrame, match="lengths"):
            EventStreamDecoder(MAX_MESSAGE).feed(prelude(total, headers))


def test_lengths_up_to_the_limits_are_waited_for() -> None:
    """Headers of at most 128 KiB, which is what Amazon allows."""
    most = 128 * 1024
    for total, headers in ((16, 0), (21, 5), (MAX_MESSAGE, most)):
        assert EventStreamDecoder(MAX_MESSAGE).feed(prelude(total, headers)) == []
    with pytest.raises(BadFrame, match="lengths"):
        EventStreamDecoder(MAX_MESSAGE).feed(prelude(MAX_MESSAGE, most + 1))
    with pytest.raises(BadFrame, match="larger"):
        EventStreamDecoder(MAX_MESSAGE).feed(prelude(MAX_MESSAGE + 1, most))


def test_messages_before_a_bad_one_come_out_and_then_it_is_reported() -> None:
    good, bad = message(CHUNK, b"1"), bytearray(message(CHUNK, b"2"))
    bad[-1] ^= 1
    for pieces in every_cut(good + bytes(bad)):
        decoder = EventStreamDecoder(MAX_MESSAGE)
        found: list[StreamMessage] = []
        try:
            for piece in pieces:
                found += decoder.feed(piece)
        except BadFrame:
            pass
        assert found == [StreamMessage(CHUNK, b"1")]
        assert decoder.fault is not None
        with pytest.raises(BadFrame, match="checksum of a message"):
            decoder.feed(good)
        with pytest.raises(BadFrame, match="checksum of a message"):
            decoder.close()


def test_a_stream_cut_inside_a_message_is_reported() -> None:
    whole = message(CHUNK, b"{}")
    for end in range(1, len(whole)):
        decoder = EventStreamDecoder(MAX_MESSAGE)
        assert decoder.feed(whole[:end]) == []
        with pytest.raises(BadFrame, match="inside"):
            decoder.close()


def test_a_message_that_is_too_large_is_refused_by_its_prelude() -> None:
    decoder = EventStreamDecoder(max_message=100)
    with pytest.raises(BadFrame, match="100 bytes"):
        decoder.feed(message({}, bytes(200))[:12])


@rows(
    "headers",
    [
        b"\x05abc",  # a name that is cut
        b"\x01a\x07\x00\xff",  # a value that is cut
        b"\x01a\x63",  # a kind that is none
        b"\x01\xff\x00",  # a name that is no text
        b"\x01a",  # no kind
    ],
)
def test_headers_that_cannot_be_read_are_a_bad_frame(headers: bytes) -> None:
    with pytest.raises(BadFrame, match="headers"):
        read([framed(headers)])


@given(st.binary(max_size=200))
def test_garbage_is_reported_and_nothing_else(data: bytes) -> None:
    for pieces in every_cut(data):
        try:
            read(pieces)
        except BadFrame:
            continue
        assert not data


def test_headers_that_are_numbers_are_stepped_over_by_their_exact_length() -> None:
    """One too few or too many, and what comes after is read as something else."""
    last = b"\x01z\x07\x00\x01v"
    for kind, length in ((0, 0), (1, 0), (2, 1), (3, 2), (4, 4), (5, 8), (8, 8), (9, 16)):
        headers = b"\x01a" + bytes((kind,)) + b"\x07" * length + last
        assert read([framed(headers, b"p")]) == [StreamMessage({"z": "v"}, b"p")]
    assert read([framed(b"\x01a\x06\x00\x02\x07\x07" + last)]) == [StreamMessage({"z": "v"}, b"")]


def test_a_fault_is_known_before_the_next_call() -> None:
    decoder = EventStreamDecoder(MAX_MESSAGE)
    assert decoder.fault is None
    assert len(decoder.feed(message({}, b"1") + b"\xff" * 12)) == 1
    assert str(decoder.fault) == "the checksum of a prelude does not fit"
    fine = EventStreamDecoder(MAX_MESSAGE)
    fine.feed(message({}, b"1"))
    fine.close()
