"""What is looked at of answers that pass through: which must be read first, found by signs exactly as by the
patterns themselves, and up to where a client can read the frames of a stream."""

from hypothesis import example, given
from hypothesis import strategies as st

from wireglot_core.dialects import passthrough
from wireglot_core.dialects.passthrough import is_doubtful, readable, readable_elements
from wireglot_core.wire.json import BadJson, decode

PIECES = [
    b"MALFORMED_FUNCTION_CALL", b"UNEXPECTED_TOOL_CALL", b"TOO_MANY_TOOL_CALLS", b"MISSING_THOUGHT_SIGNATURE",
    b'"thought": true', b'"thought":true', b'"thought":false', b'"summary_text"', b'"reasoning_text"',
    b"<|tool_call", "<｜tool▁call".encode(), b"\\u003c\\uff5ctool\\u2581call", b"\\u003C|tool_call", b"|tool",
    b'"text":"a"', b'"content": "b"', b'"content":""', b'"arguments":"{}"', b'"arguments":"{"',
    b'"arguments": ""', b'"arguments":{}', b"M", b"X", b" words ", b",", b"{", b"}",
]  # fmt: skip


def is_broken(arguments: str) -> bool:
    try:
        decode(arguments)
    except BadJson:
        return True
    return False


def plainly(body: bytes) -> bool:
    """As it reads in the patterns, without a look at any sign first."""
    if any(sign in body for sign in passthrough._BROKEN) or passthrough._THOUGHTS.search(body):
        return True
    is_answer = passthrough._SPOKEN.search(body) is not None
    for found in passthrough._ARGUMENTS.finditer(body):
        is_answer = True
        try:
            arguments = decode(found[1])
        except BadJson:
            return True
        if not arguments.strip() or is_broken(arguments):
            return True
    return not is_answer


@given(st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join))
@example(b'"text":"a",MALFORMED_FUNCTION_CALL')
@example(b'"text":"a",UNEXPECTED_TOOL_CALL')
def test_signs_find_what_the_patterns_find(body):
    assert is_doubtful(body) == plainly(body)


WHOLE = [
    b'data: {"a":1}\n\n', b'data: {"a":1}\r\n\r\n', b'data:{"a":1}\r\r', b"data: [DONE]\n\n", b"data: \n\n", b": ping\n\n",
    b'event: e\ndata: {"a":1}\n\n', b'data: {"a":\ndata: 1}\n\n', 'data: {"é":1}\n\n'.encode(),
    b'data: {"a":1}\n\r\ndata: {"b":2}\n\n', b'data: {"a":1}\n\r\ndata: [DONE]\n\n',
]  # fmt: skip
BROKEN = [
    b"data: oops\n\n", b'data: {"a":\n\n', b"data: [DONE]x\n\n", b'event: e\ndata: {"a":\r\n\r\n', b'data: {"\xff":1}\n\n',
    b'data: {"a":1}\ndata: {"a":1}\n\n', b'data: {"a":1}\n\r\ndata: {"b":\n\n',
]  # fmt: skip


def test_a_stream_is_readable_up_to_its_first_frame_that_is_no_json():
    for first in (b"", *WHOLE):
        for second in WHOLE:
            whole = first + second
            assert readable(whole, lambda frame: False) == len(whole), whole
        for broken in BROKEN:
            assert readable(first + broken, lambda frame: False) == len(first), first + broken
            assert readable(first + broken + WHOLE[0], lambda frame: False) == len(first), first + broken


def test_a_frame_may_be_how_its_dialect_ends_a_stream_without_being_json():
    for frame, is_read in (
        (b"data: bye\n\n", True),
        (b"event: e\ndata: bye\n\n", False),
        (BROKEN[-1], False),
    ):
        assert readable(WHOLE[0] + frame, lambda _: True) == len(WHOLE[0]) + is_read * len(frame)
        assert readable(WHOLE[0] + frame, lambda whole: b"data: {" in whole) == len(WHOLE[0])


def test_elements_of_an_array_are_readable_up_to_the_first_that_is_no_json():
    for beginning in (b"[", b",", b",\r\n"):
        for end in (b"", b"]", b"\n]"):
            whole = beginning + b'{"a":[1]}, {"b":{}}' + end
            assert readable_elements(whole) == len(whole)
            for broken in (b'{"c":}', b"{c}", b'{"\xff":1}'):
                cut = whole.replace(b'{"b":{}}', broken)
                assert readable_elements(cut) == len(beginning) + len(b'{"a":[1]}')
