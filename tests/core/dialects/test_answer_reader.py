"""What all stream readers do alike: tell a stream from a document, bear a byte-order mark, know an early end."""

from tests.tiers import rows
from wireglot_core.dialects.answer_reader import (
    MAX_DOCUMENT_BYTES,
    before_first_byte,
    first_byte,
    json_or_text,
)
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.stream import Event, Failure

DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")


def _failure(name: str, *pieces: bytes) -> Failure:
    reader = dialect(name).stream_reader(Context(max_frame=1000))
    events: list[Event] = [event for piece in pieces for event in reader.read(piece)] + reader.end()
    assert reader.read(b"data: {}\n\n") == reader.end() == []
    (failure,) = events
    assert isinstance(failure, Failure)
    return failure


@rows(
    ("opening", "first"),
    [
        (b"", b""),
        (b" \r\n\t", b""),
        (b"\xef", b""),
        (b"\xef\xbb", b""),
        (b"\xef\xbb\xbf", b""),
        (b"\xef\xbb\xbf \n{", b"{"),
        (b"\n\n[", b"["),
        (b"data: x", b"d"),
        (b"\xefx", b"\xef"),
    ],
)
def test_the_first_byte_that_is_no_blank_and_no_mark_tells(opening, first):
    assert first_byte(opening) == first


@rows("opening", [b"", b"\xef", b"\xef\xbb\xbf", b" ", b" \n\n", b"\xef\xbb\xbf" + b" " * 1000])
@rows("later", [b"", b" {", b"\xef\xbb\xbf{", b"data", b"["])
def test_little_is_kept_of_an_opening_without_a_first_byte(opening, later):
    kept = before_first_byte(opening)
    assert len(kept) <= 3
    assert first_byte(kept + later) == first_byte(opening + later)


def test_a_document_that_is_no_json_is_text():
    assert json_or_text(b'\xef\xbb\xbf {"a": 1}') == {"a": 1}
    assert json_or_text(b"<html>\xff") == "<html>\ufffd"


@rows("name", DIALECTS)
@rows("blanks", [b"", b" \r\n", b"\xef", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n\n"])
def test_a_stream_of_nothing_is_cut_off(name, blanks):
    reported = _failure(name, *(bytes([byte]) for byte in blanks))
    assert reported.error.message == "the upstream stream ended before it was complete"


@rows("name", DIALECTS)
@rows("before", [b"", b"\xef\xbb\xbf", b"\n \n"])
def test_an_error_that_came_instead_of_a_stream_is_read_however_it_is_cut(name, before):
    document = before + b'{"error": {"message": "no such model", "code": 404, "type": "not_found_error"}}'
    whole = _failure(name, document)
    assert whole.error.message == "no such model"
    assert _failure(name, *(bytes([byte]) for byte in document)) == whole


@rows("name", DIALECTS)
def test_a_document_without_end_is_given_up(name):
    reported = _failure(name, b"{", b" " * MAX_DOCUMENT_BYTES)
    assert (
        reported.error.message == "the upstream sent something that cannot be read: the answer is too large"
    )


@rows("name", DIALECTS)
def test_a_frame_without_end_is_given_up(name):
    reported = _failure(name, b"data: {", b" " * 1000)
    assert (
        reported.error.message
        == "the upstream sent something that cannot be read: a frame is larger than 1000 bytes"
    )
