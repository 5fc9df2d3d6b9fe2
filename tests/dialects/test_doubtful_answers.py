"""Which answers that pass through must be read first: found by signs, exactly as by the patterns themselves."""

from hypothesis import example, given
from hypothesis import strategies as st

from wireglot.dialects import passthrough
from wireglot.dialects.passthrough import is_doubtful
from wireglot.wire.json import BadJson, decode

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
