import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.testing.laws import every_cut
from wireglot_core.wire.sse import Frame, FrameTooLarge, SseDecoder, frame


def read(pieces: list[bytes]) -> list[Frame]:
    decoder = SseDecoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    return frames + decoder.close()


def read_slowly(data: bytes) -> list[Frame]:
    """The standard's algorithm, word for word and byte by byte; a last frame may lack its blank line."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines: list[bytes] = []
    line = bytearray()
    at = 0
    while at < len(data):
        if data[at] in b"\r\n":
            lines.append(bytes(line))
            line.clear()
            if data[at : at + 2] == b"\r\n":
                at += 1
        else:
            line.append(data[at])
        at += 1
    lines += [bytes(line), b""]
    frames: list[Frame] = []
    event, buffer = b"", bytearray()
    for text in lines:
        if not text:
            if buffer:
                frames.append(Frame(event.decode("utf-8", "replace"), bytes(buffer[:-1])))
            event, buffer = b"", bytearray()
            continue
        if text.startswith(b":"):
            continue
        field, _, value = text.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            buffer += value + b"\n"
        elif field == b"event":
            event = value
    return frames


CASES = {
    "one frame": (b"data: {}\n\n", [Frame("", b"{}")]),
    "a named frame": (b"event: ping\ndata: {}\n\n", [Frame("ping", b"{}")]),
    "the name after the data": (b"data: {}\nevent: ping\n\n", [Frame("ping", b"{}")]),
    "the last of two names": (b"event: a\nevent: b\ndata: 1\n\n", [Frame("b", b"1")]),
    "no space": (b"event:x\ndata:1\n\ndata:[DONE]\n\n", [Frame("x", b"1"), Frame("", b"[DONE]")]),
    "only the first space goes": (b"data:  1 \n\n", [Frame("", b" 1 ")]),
    "CRLF": (b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", [Frame("a", b"1"), Frame("", b"2")]),
    "CR": (b"event: a\rdata: 1\r\rdata: 2\r\r", [Frame("a", b"1"), Frame("", b"2")]),
    "mixed line ends": (
        b"data: 1\r\n\ndata: 2\n\rdata: 3\r\r\n",
        [Frame("", b"1"), Frame("", b"2"), Frame("", b"3")],
    ),
    "several data lines": (b"data: a\ndata:\ndata: b\n\n", [Frame("", b"a\n\nb")]),
    "empty data": (b"data:\n\ndata\n\n", [Frame("", b""), Frame("", b"")]),
    "no data, no frame": (b"event: a\n\nid: 1\n\ndata: 1\n\n", [Frame("", b"1")]),
    "comments": (b": hello\n\n:\ndata: 1\n: x\n\n", [Frame("", b"1")]),
    "id, retry and unknown fields": (b"id: 7\nretry: 10\nfoo: bar\ndata: 1\n\n", [Frame("", b"1")]),
    "many blank lines": (b"\n\n\n\ndata: 1\n\n\n\n\ndata: 2\n\n\n", [Frame("", b"1"), Frame("", b"2")]),
    "a BOM": (b"\xef\xbb\xbfdata: 1\n\n", [Frame("", b"1")]),
    "two BOMs": (b"\xef\xbb\xbf\xef\xbb\xbfdata: 1\n\ndata: 2\n\n", [Frame("", b"2")]),
    "a BOM's first byte only": (b"\xef", []),
    "no blank line at the end": (b"data: 1\n\nevent: b\ndata: 2\n", [Frame("", b"1"), Frame("b", b"2")]),
    "no line end at the end": (b"data: 1\n\ndata: 2", [Frame("", b"1"), Frame("", b"2")]),
    "nothing": (b"", []),
    "U+2028, U+0085 and VT are no line ends": (
        "data: a\u2028b\u0085c\x0b\n\n".encode(),
        [Frame("", "a\u2028b\u0085c\x0b".encode())],
    ),
    "characters of several bytes": ("event: é\ndata: 😀\n\n".encode(), [Frame("é", "😀".encode())]),
}


@rows("name", CASES)
def test_frames_come_out_however_the_bytes_are_cut(name):
    """R-DC-06, R-F-03"""
    data, expected = CASES[name]
    assert read_slowly(data) == expected
    for pieces in every_cut(data):
        assert read(pieces) == expected, pieces


_tokens = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"data",
        b"event",
        b"data: ",
        b"event: ",
        b"id",
        b":",
        b" ",
        b"x",
        b"{}",
        b"\xef\xbb\xbf",
        b"\xff",
    ]
)


@given(st.lists(_tokens, max_size=40).map(b"".join))
def test_frames_are_those_of_the_standard(data):
    """R-DC-06"""
    expected = read_slowly(data)
    for pieces in every_cut(data):
        assert read(pieces) == expected, pieces


@given(st.binary(max_size=200))
def test_arbitrary_bytes_never_raise(data):
    assert read([data]) == read_slowly(data)


@given(st.lists(st.tuples(st.binary(), st.binary())))
def test_what_we_write_is_one_frame_each(frames):
    data = b"".join(frame(data, event) for data, event in frames)
    assert len(read([data])) == len(frames)


@given(
    st.lists(
        st.tuples(
            st.text().filter(lambda name: not set("\r\n") & set(name)),
            st.binary().filter(lambda data: b"\r" not in data),
        )
    )
)
def test_what_we_write_is_what_we_read(frames):
    data = b"".join(frame(data, event.encode()) + b": still here\n:\n\n" for event, data in frames)
    assert read([data]) == [Frame(event, data) for event, data in frames]


def test_an_event_name_cannot_smuggle_in_a_field():
    assert read([frame(b"1", b"a\ndata: 2\r\n\r\ndata: 3")]) == [Frame("a data: 2  data: 3", b"1")]


def test_a_frame_leaves_as_soon_as_its_blank_line_is_there():
    decoder = SseDecoder()
    assert decoder.feed(b"data: 1\n") == []
    assert decoder.feed(b"\n") == [Frame("", b"1")]
    assert decoder.feed(b"data: 2\r\n\r") == [Frame("", b"2")]
    assert decoder.feed(b"\ndata: 3\r\n\r\n") == [Frame("", b"3")]
    assert decoder.close() == []


def read_limited(pieces: list[bytes], limit: int) -> tuple[list[Frame], bool]:
    decoder = SseDecoder(max_frame=limit)
    frames: list[Frame] = []
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        frames += decoder.close()
    except FrameTooLarge:
        with pytest.raises(FrameTooLarge):
            decoder.feed(b"data: 1\n\n")
        return frames, True
    return frames, False


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=6), st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n\n\n"])
)
def test_the_size_limit_does_not_depend_on_the_cutting(sizes, end):
    limit = len(b"data: ") + 4
    data = end.join(b"data: " + b"x" * size for size in sizes)
    whole = read_limited([data], limit)
    for pieces in every_cut(data):
        assert read_limited(pieces, limit) == whole, pieces


def test_a_frame_without_end_is_refused():
    decoder = SseDecoder(max_frame=1000)
    for _ in range(1000):
        decoder.feed(b"x")
    with pytest.raises(FrameTooLarge, match="1000 bytes"):
        decoder.feed(b"x")


def test_a_large_event_in_many_pieces_is_read():
    payload = b"x" * (4 * 1024 * 1024)
    data = frame(payload, b"image")
    assert read([data[at : at + 512] for at in range(0, len(data), 512)]) == [Frame("image", payload)]


def test_a_decoder_is_between_frames_only_after_the_first_byte_and_a_blank_line():
    """Then what comes next can be looked at by itself."""
    decoder = SseDecoder()
    assert not decoder.is_between
    for data, between, pending in (
        (b"\xef", False, b""),
        (b"\xbb\xbf", True, b""),
        (b"data: 1", False, b"data: 1"),
        (b"\n\n", True, b""),
        (b"data: 2\r\n\r", False, b""),
        (b"\n", True, b""),
        (b"data: 3\n\ndata", False, b"data"),
    ):
        decoder.feed(data)
        assert (decoder.is_between, decoder.pending) == (between, pending), data
    limited = SseDecoder(max_frame=10)
    assert limited.feed(b"data: 1\n\n" + b"x" * 11 + b"\n\n") == [Frame("", b"1")]
    assert not limited.is_between
    with pytest.raises(FrameTooLarge):
        limited.close()


def test_frames_can_be_cut_first_and_read_later():
    decoder = SseDecoder()
    assert decoder.cut(b"data: 1\r\n\r\n: ping\n\nevent: a\ndata: 2\n\ndata: 3") == [
        b"data: 1",
        b": ping",
        b"event: a\ndata: 2",
    ]
    assert decoder.frame(b"data: 1") == Frame("", b"1")
    assert decoder.frame(b": ping") is None
    assert decoder.frame(b"event: a\ndata: 2") == Frame("a", b"2")
    assert decoder.frame(b"data: 1\ndata: 2") == Frame("", b"1\n2")
    assert decoder.close() == [Frame("", b"3")]
    assert decoder.close() == []


def test_every_name_is_read_however_many_there_are():
    decoder = SseDecoder()
    for _ in range(2):
        for number in range(100):
            data = b"event: n%d\ndata: %d\n\n" % (number, number)
            assert decoder.feed(data) == [Frame(f"n{number}", b"%d" % number)]
    assert len(decoder._names) == 64, "names are the sender's: no more of them are kept"


def test_a_frame_may_be_as_large_as_32_mib_by_default():
    decoder = SseDecoder()
    largest = b"x" * (32 * 1024 * 1024)
    assert decoder.feed(largest) == []
    with pytest.raises(FrameTooLarge, match="larger than 33554432 bytes"):
        decoder.feed(b"x")


def test_what_is_written_has_one_form():
    for data, event, written in (
        (b"{}", b"", b"data: {}\n\n"),
        (b"{}", b"ping", b"event: ping\ndata: {}\n\n"),
        (b"a\r\nb\rc\nd", b"", b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
        (b"{}", b"a\rb", b"event: a b\ndata: {}\n\n"),
        (b"", b"", b"data: \n\n"),
    ):
        assert frame(data, event) == written
