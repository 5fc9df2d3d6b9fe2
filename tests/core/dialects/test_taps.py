"""What passes through is listened to, and any cutting of it tells the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect, surface
from wireglot_core.dialects.surface import Tap
from wireglot_core.ir.stream import Failure
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import FrameTooLarge

_TEXT = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}'
_LINES = {
    "text": _TEXT % b"one",
    "text that quotes": _TEXT % b'say \\"usage\\":{ and [DONE]',
    "comment": b": keep-alive",
    "stop": b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}',
    "spaced stop": b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}',
    "usage": b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}',
    "error": b'data: {"error":{"message":"no","type":"server_error"}}',
    "done": b"data: [DONE]",
}


def _reported(heard: Tap) -> tuple[object, ...]:
    return heard.usage, heard.stop, heard.complete, heard.ended, heard.error


@given(
    st.lists(st.sampled_from(sorted(_LINES)), max_size=8),
    st.sampled_from([b"\n\n", b"\r\n\r\n", b"\r\r"]),
    st.integers(1, 300),
)
def test_any_cutting_of_a_chat_stream_tells_the_same(kinds, gap, size):
    data = b"".join(_LINES[kind] + gap for kind in kinds)
    by_the_byte, cut, whole, framed = (surface("openai-chat").tap(1 << 20) for _ in range(4))
    for at in range(len(data)):
        by_the_byte.feed(data[at : at + 1])
    for at in range(0, len(data), size):
        cut.feed(data[at : at + size])
    whole.feed(data)
    for kind in kinds:
        framed.feed(_LINES[kind] + gap)
    assert _reported(by_the_byte) == _reported(cut) == _reported(whole) == _reported(framed)


def test_an_end_before_the_usage_is_heard():
    heard = surface("openai-chat").tap(1 << 20)
    heard.feed(b"".join(_LINES[kind] + b"\n\n" for kind in ("text", "done", "text", "usage")))
    assert heard.ended
    assert heard.usage is not None
    assert heard.usage.output == 4


@pytest.mark.parametrize("name", ["openai-chat", "anthropic", "openai-responses"])
def test_a_frame_larger_than_allowed_is_refused(name):
    with pytest.raises(FrameTooLarge):
        surface(name).tap(1000).feed(_TEXT % (b"x" * 2000) + b"\n\n")


@rows("kind", [[], {}, ["error"], 7, None])
def test_an_event_whose_type_is_no_text_ends_nothing(kind):
    heard = surface("openai-responses").tap(1 << 20)
    heard.feed(
        b"event: response.completed\ndata: " + encode({"type": kind, "response": {"usage": {}}}) + b"\n\n"
    )
    assert not heard.ended


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_an_error_is_also_recognised_by_the_name_of_its_event(name):
    error = {"message": "over quota", "code": "insufficient_quota", "param": None, "type": "server_error"}
    data = b"event: error\ndata: " + encode(error) + b"\n\n"
    heard = surface(name).tap(1 << 20)
    heard.feed(data)
    assert (heard.complete, heard.ended) == (True, True)
    assert heard.error is not None
    assert heard.error.message == "over quota"
    events = dialect(name).stream_reader(Context()).read(data)
    assert [event.error.message for event in events if isinstance(event, Failure)] == ["over quota"]
