"""Chat answers that pass through untouched: what is heard of them, and the usage that nobody asked for."""

import json
from typing import Any

from tests.tiers import rows
from wireglot_core.dialects.openai_chat.tap import STREAM_USAGE, ChatTap, glance

COST = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
MORE = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


def frame(document: Any) -> bytes:
    return b"data: " + (document if type(document) is bytes else json.dumps(document).encode()) + b"\n\n"


def ended(reason: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason, **more}]}


WORD = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}], "usage": None}


@rows(
    ("body", "tokens", "stop"),
    [
        ({**ended("stop"), "usage": COST}, 3, "end"),
        (ended("stop", usage=COST), 3, "end"),
        ({**ended("length", usage=MORE), "usage": COST}, 3, "length"),
        ({**ended("tool_calls"), "usage": {}}, None, "tool_calls"),
        (ended("function_call"), None, "tool_calls"),
        (ended("content_filter", usage="odd"), None, "refused"),
        (ended("novel"), None, "other"),
        (ended(None), None, ""),
        (ended(""), None, ""),
        ({"choices": [], "usage": COST}, 3, ""),
        ({"choices": None, "usage": COST}, 3, ""),
        ({"usage": COST}, 3, ""),
        ({}, None, ""),
    ],
)
def test_a_whole_answer_tells_its_cost_and_its_end(body, tokens, stop):
    seen = glance(json.dumps(body).encode())
    assert (seen.usage.input if seen.usage is not None else None) == tokens
    assert seen.stop == stop


@rows(
    ("frames", "tokens", "stop", "complete", "is_over", "failed"),
    [
        ([WORD], None, "", False, False, False),
        ([WORD, b"[DONE]"], None, "", True, True, False),
        ([WORD, ended("stop")], None, "end", True, False, False),
        ([WORD, ended("tool_calls"), {"choices": [], "usage": COST}, b"[DONE]"], 3, "tool_calls", True, True, False),
        ([WORD, ended("")], None, "", False, False, False),
        ([ended(""), ended("stop")], None, "end", True, False, False),
        ([ended("stop"), ended("")], None, "end", True, False, False),
        ([ended("stop", usage=COST)], 3, "end", True, False, False),
        ([{**ended("stop", usage=MORE), "usage": COST}], 3, "end", True, False, False),
        ([{"choices": [], "usage": COST}, {"choices": [], "usage": MORE}], 9, "", False, False, False),
        ([{"choices": ["odd"], "usage": COST}], 3, "", False, False, False),
        ([{"choices": {"0": 1}, "usage": COST}], 3, "", False, False, False),
        ([{"error": {"message": "broken"}}], None, "", True, True, True),
        ([{"error": "broken"}], None, "", True, True, True),
        ([{"error": {"message": "broken"}, "choices": []}], None, "", True, True, True),
        ([{**ended("stop"), "error": {"message": "broken"}}], None, "end", True, False, False),
        ([{"error": {}, "choices": [], "usage": COST}], 3, "", False, False, False),
        ([b'{"usage": {"prompt'], None, "", False, False, False),
        ([WORD, ended("length", index=1)], None, "", False, False, False),
        ([ended("length", index=1), ended("stop"), ended("length", index=2)], None, "end", True, False, False),
        ([{"choices": [*ended("length", index=1)["choices"], *ended("stop")["choices"]]}], None, "end", True, False, False),
    ],
)  # fmt: skip
@rows("size", [0, 7, 40])
def test_a_stream_tells_its_cost_and_its_end(frames, tokens, stop, complete, is_over, failed, size):
    data = b"".join(map(frame, frames))
    tap = ChatTap(10_000)
    for start in range(0, len(data), size or len(data)):
        tap.feed(data[start : start + (size or len(data))])
    tap.close()
    assert (tap.usage.input if tap.usage is not None else None) == tokens
    assert (tap.stop, tap.complete, tap.ended) == (stop, complete, is_over)
    assert (tap.error is not None) == failed


@rows("gap", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@rows(
    ("document", "is_hidden"),
    [
        (b'{"choices":[],"usage":{"prompt_tokens":3}}', True),
        (b'{"choices" : [ ], "usage" : {"prompt_tokens":3}}', True),
        (b'{"usage":{"prompt_tokens":3},"choices":[]}', True),
        (b'{"choices":[],"usage":null}', False),
        (b'{"choices":[]}', False),
        (b'{"choices":[{"index":0}],"usage":{"prompt_tokens":3}}', False),
    ],
)
def test_only_the_frame_that_nobody_asked_for_is_hidden(document, is_hidden, gap):
    before, after = b'data: {"choices":[{"delta":{}}]}' + gap, b"data: [DONE]" + gap
    reported = b"data: " + document + gap
    assert STREAM_USAGE.hide(before + reported + after) == before + (b"" if is_hidden else reported) + after
    assert STREAM_USAGE.hide(reported) == (b"" if is_hidden else reported)
    assert STREAM_USAGE.hide(before + after) == before + after


@rows(
    ("options", "is_asked", "asking"),
    [
        (None, False, {"include_usage": True}),
        ("odd", False, {"include_usage": True}),
        ({}, False, {"include_usage": True}),
        ({"include_usage": False, "more": 1}, False, {"include_usage": True, "more": 1}),
        ({"include_usage": True}, True, {"include_usage": True}),
    ],
)
def test_a_stream_is_asked_for_its_cost_once(options, is_asked, asking):
    assert STREAM_USAGE.field == "stream_options"
    assert STREAM_USAGE.is_asked(options) is is_asked
    assert STREAM_USAGE.asking(options) == asking
