"""Arguments that are no JSON: repaired where it is plain what was meant, else wrapped (C10)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot_core.dialects.argument_stream import MAX_NUMBER_CHARS, ArgumentStream
from wireglot_core.dialects.arguments import PARSE_ERROR, RAW, read_arguments
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.content import ToolCall
from wireglot_core.ir.outcome import Response, Stop
from wireglot_core.ir.stream import Delta, Event, fold, unfold
from wireglot_core.wire.json import MAX_DEPTH
from wireglot_core.wire.sse import SseDecoder

REPAIRED: list[tuple[str, dict[str, Any]]] = [
    ('{"a":1}{"a":1}', {"a": 1}),
    ('{"a":1} {"a": 1}\n{"a":1}', {"a": 1}),
    ('{}{"a":1}', {"a": 1}),
    ('{"a":1}{}', {"a": 1}),
    ('{"a":1,}', {"a": 1}),
    ('{"a":[1,2, ],"b":{"c":1 , } , }', {"a": [1, 2], "b": {"c": 1}}),
    ('{"a":"x\ny\tz\x00"}', {"a": "x\ny\tz\x00"}),
    ('\x0b{"a":\x01 1}', {"a": 1}),
    ('{"a":{"b":1}}}', {"a": {"b": 1}}),
    ('{"a":[1]}]} }', {"a": [1]}),
    ('{"a":"},}{",}{"a":"},}{",}}', {"a": "},}{"}),
    ('{"a":"quote \\" and\nline",}}', {"a": 'quote " and\nline'}),
]
CUT = [
    '{"path":"/srv/fo',
    '{"a":1,"b":',
    '{"a":1,',
    '{"a":[1,2,',
    '{"a":1}{"a":',
    '{"a":"x\ny',
    "{",
    '{"a":tru',
    '{"a":"x}',
    '{"a":1,"b":2"}',
]
UNCLEAR = [
    '{"a":1}{"a":2}',
    '{"a":1}{"b":2}',
    '{"a":1},{"a":1}',
    '{"a":1,,"b":2}',
    "{,}",
    '{"a":}',
    '{"a":1}}, "b":2}',
    '{"a":[1}]',
    '[{"a":1},]',
    "{'a':1}",
    '{"a":1} and so on',
    "plain words",
]


@rows(("text", "meant"), REPAIRED)
def test_what_was_plainly_meant_is_repaired(text: str, meant: dict[str, Any]) -> None:
    """[X21] C10, R-DB-16"""
    assert read_arguments(text) == (meant, "repaired")


@rows("text", CUT)
def test_what_is_merely_cut_is_never_repaired(text: str) -> None:
    """[X21] What it lacks was never said."""
    value, form = read_arguments(text)
    assert form == "wrapped"
    assert value[RAW] == text


@rows("text", UNCLEAR)
def test_what_could_mean_several_things_is_wrapped(text: str) -> None:
    """[X21] C10"""
    value, form = read_arguments(text)
    assert form == "wrapped"
    assert value.keys() == {PARSE_ERROR, RAW}


@rows(
    "text",
    [
        '{"a":' + "1" * (MAX_NUMBER_CHARS + 1) + "}",
        '{"a":0.' + "1" * MAX_NUMBER_CHARS + "}",
        '{"a":' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}",
    ],
)
def test_what_a_client_cannot_decode_is_wrapped_while_it_streams(text: str) -> None:
    """Numbers without end, and nesting without end: both are the model's to choose."""
    for size in (1, 7, 100):
        stream = ArgumentStream()
        written = "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size))
        value = json.loads(written + stream.finish())
        assert stream.form == "wrapped"
        assert value[RAW] == text
        assert value.keys() == {"a", PARSE_ERROR, RAW}


@pytest.mark.parametrize("control", ["\n", "\x00", "\x1f\t"])
def test_control_characters_of_a_long_string_are_all_escaped(control: str) -> None:
    text = '{"a":"' + control * 500 + 'x","b":[1,' + control * 500 + "]}"
    assert read_arguments(text) == ({"a": control * 500 + "x", "b": [1]}, "repaired")
    for size in (1, 2, 499, len(text)):
        stream = ArgumentStream()
        written = "".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size))
        assert json.loads(written + stream.finish()) == {"a": control * 500 + "x", "b": [1]}


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text() | st.lists(st.integers(), max_size=2)))
def test_what_is_json_is_left_alone(value: dict[str, Any]) -> None:
    """[X21]"""
    assert read_arguments(json.dumps(value)) == (value, "")


@given(st.text(alphabet='{}[]",:\\ 01ae\n\x00', max_size=16))
def test_whatever_a_model_writes_never_raises(text: str) -> None:
    """[X21] R-P-12"""
    for written in (text, "{" + text):
        value, _ = read_arguments(written)
        assert type(value) is dict


def answer(arguments: str) -> Response:
    return Response("r", "m", (ToolCall("c1", "f", arguments),), Stop("tool_calls"))


@rows(("text", "meant"), REPAIRED)
@rows("name", ["anthropic", "gemini"])
def test_clients_that_want_an_object_get_the_repaired_one_and_are_informed(
    name: str, text: str, meant: dict[str, Any]
) -> None:
    """[X21] Whole and streamed."""
    rendered = dialect(name).render_response(answer(text), Context())
    writer = dialect(name).stream_writer(Context(), None)
    data = writer.write(unfold(answer(text)))
    if name == "anthropic":
        assert rendered.value["content"][0]["input"] == meant
        assert json.loads(_streamed_input(data)) == meant
    else:
        assert rendered.value["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] == meant
        assert _streamed_args(data) == [meant]
    for losses in (rendered.losses, writer.losses):
        reported = [(loss.path, loss.action) for loss in losses if loss.feature == "tool_call.arguments"]
        assert reported == [("$.content[0].arguments", "approximated")]


@rows(("text", "meant"), REPAIRED)
@rows("name", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_arguments_are_json_for_every_client(name: str, text: str, meant: dict[str, Any]) -> None:
    """[X21] Whole and streamed, in whatever pieces the model wrote them, with one loss."""
    spoken = dialect(name)
    whole = spoken.render_response(answer(text), Context())
    (call,) = spoken.parse_response(whole.value, Context()).content
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == meant
    assert [loss.action for loss in whole.losses if loss.feature == "tool_call.arguments"] == ["approximated"]
    start, begin, _, *end = unfold(answer(text))
    for size in (1, 2, 3, 5, 1000):
        pieces: list[Event] = [Delta(0, text[at : at + size]) for at in range(0, len(text), size)]
        writer, reader = spoken.stream_writer(Context()), spoken.stream_reader(Context())
        data = b"".join(writer.write([event]) for event in [start, begin, *pieces, *end])
        (call,) = fold([*reader.read(data), *reader.end()]).content
        assert isinstance(call, ToolCall)
        assert json.loads(call.arguments) == meant
        losses = [loss for loss in writer.losses if loss.feature == "tool_call.arguments"]
        assert [(loss.path, loss.action) for loss in losses] == [("$.content[0].arguments", "approximated")]


@rows("text", [*CUT, *UNCLEAR])
@rows("name", ["openai-chat", "openai-responses"])
def test_clients_that_take_text_get_what_the_model_wrote(name: str, text: str) -> None:
    """[X21] C10: where it is not plain what was meant, the raw string is forwarded on string protocols."""
    rendered = dialect(name).render_response(answer(text), Context())
    assert json.dumps(text).strip('"') in json.dumps(rendered.value)
    assert not [loss for loss in rendered.losses if loss.feature == "tool_call.arguments"]


def _streamed_input(data: bytes) -> str:
    deltas = [json.loads(frame.data).get("delta", {}) for frame in SseDecoder().feed(data)]
    return "".join(delta.get("partial_json", "") for delta in deltas)


def _streamed_args(data: bytes) -> list[dict[str, Any]]:
    chunks = [json.loads(frame.data) for frame in SseDecoder().feed(data)]
    parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    return [part["functionCall"]["args"] for part in parts if "functionCall" in part]
