"""Answers that pass through, with the model that was asked in place of the one that answered."""

from __future__ import annotations

from tests.tiers import rows
from wireglot_core.dialects.anthropic.tap import in_answer, in_opening

START = (
    b'event: message_start\r\ndata:  {"type":"message_start", "message":{"id":"msg_1","model" : "upstream-1",'
    b'"content":[ ],"usage":{"input_tokens":1}} }\r\n\r\n'
)
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"text":"\\"model\\": \\"x\\""}}\n\n'


def test_only_the_name_changes() -> None:
    """[L7] Every other byte stays as the provider wrote it."""
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    named = in_opening(ping + START + DELTA, "mine")
    assert named == ping + START.replace(b'"upstream-1"', b'"mine"') + DELTA
    body = b'{ "model":"upstream-1", "content":[{"type":"text","text":"\\"model\\":\\"upstream-1\\""}] }\n'
    assert in_answer(body, "mine") == body.replace(b'"upstream-1"', b'"mine"', 1)


def test_equal_names_leave_the_bytes_alone() -> None:
    """[L7] Where names are equal, bytes stay as they are."""
    assert in_opening(START + DELTA, "upstream-1") == START + DELTA
    body = b'{"model" :"upstream-1"}'
    assert in_answer(body, "upstream-1") is body


@rows(
    "odd",
    [
        b"",
        b"data: {",
        b"data: []\n\n",
        b'data: {"type":"message_start"}\n\n',
        b'data: {"x":"message_start"}\n\n',
    ],
)
def test_what_names_no_model_stays_as_it_is(odd: bytes) -> None:
    assert in_opening(odd, "mine") == odd
    assert in_answer(odd, "mine") == odd


def test_a_stream_may_begin_with_its_data() -> None:
    """[L7] Hosts leave the name of the event out."""
    bare = START.partition(b"\r\n")[2]
    assert bare.startswith(b"data:")
    assert in_opening(bare + DELTA, "mine") == bare.replace(b'"upstream-1"', b'"mine"') + DELTA


def test_a_frame_that_is_cut_is_renamed_to_its_end() -> None:
    """[L7] The line may still be without its end."""
    cut = START.rstrip()
    assert in_opening(cut, "mine") == cut.replace(b'"upstream-1"', b'"mine"')
