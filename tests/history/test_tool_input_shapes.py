"""Every shape in which hosts of Anthropic's wire give a call's input, from bytes to the next request.

R-AJ-16: the named sequences stand in `tests/fixtures/anthropic/tool_input_shapes.ndjson`.
"""

import json
from typing import Any

import pytest

from tests.history.support import FIXTURES, anthropic_call, anthropic_events, assert_presentable, heard
from tests.tiers import rows
from wireglot.history import Assistant, History
from wireglot_core.testing.laws import every_cut

LINES = (FIXTURES / "anthropic" / "tool_input_shapes.ndjson").read_text(encoding="utf-8").splitlines()
SHAPES = {shape["name"]: shape for shape in map(json.loads, LINES)}
MATRIX = {
    "start input only": "R-AJ-01",
    "delta only, split": "R-AJ-02, R-AJ-18",
    "start input null and delta": "R-AJ-03",
    "start input and the same again as delta": "R-AJ-04, R-AJ-17",
    "start input and its continuation": "R-AJ-05, R-AJ-14",
    "start input empty and full delta": "R-AJ-06",
}
"""R-AJ-19: the behaviour matrix, row by row; the other named shapes are variations of these."""

every_shape = rows("name", SHAPES)


def answer_to(shape: dict, reason: str = "tool_use") -> Assistant:
    return heard("anthropic", anthropic_events(*anthropic_call(shape, reason)))


def run_tool(arguments: str) -> str:
    """A tool as agents have them: it reads its arguments and complains about what is no JSON."""
    try:
        value = json.loads(arguments)
    except ValueError as problem:
        raise ValueError(f"invalid tool arguments JSON: {problem}") from None
    return f"read {value['path']}"


def test_the_six_shapes_of_the_matrix_are_all_there():
    """R-AJ-16, R-AJ-19"""
    assert MATRIX.keys() <= SHAPES.keys()


@every_shape
def test_every_shape_gives_one_valid_object(name):
    """R-AJ-01, R-AJ-02, R-AJ-03, R-AJ-04, R-AJ-05, R-AJ-06, R-AJ-09, R-AJ-17, R-AJ-18, R-AJ-19, C12"""
    (call,) = answer_to(SHAPES[name]).calls
    assert call.input == SHAPES[name]["arguments"]
    assert call.problem == ""
    assert json.loads(call.native["function"]["arguments"]) == SHAPES[name]["arguments"]


@every_shape
def test_start_input_and_deltas_are_never_glued_together(name):
    """R-AJ-07, R-AJ-08: whatever both say, it is said once."""
    shape = SHAPES[name]
    (call,) = answer_to(shape).calls
    said = "".join(shape["deltas"])
    if said:
        assert call.arguments != json.dumps(shape.get("start")) + said
    assert json.JSONDecoder().raw_decode(call.arguments)[1] == len(call.arguments)


@every_shape
def test_deltas_win_over_the_start_input_only_if_they_are_a_document(name):
    """R-AJ-13 (the deltas if there are any, else the start) and R-AJ-15 (replaced by a full document, else
    continued) are both superseded by C12: both buffers are kept, and what parses is chosen at the end."""
    shape = SHAPES[name]
    (call,) = answer_to(shape).calls
    said = "".join(shape["deltas"])
    if not said.strip():
        expected = shape.get("start") or {}
        expected = json.loads(expected) if isinstance(expected, str) else expected
    elif said.startswith("{") and json.loads(said):
        expected = json.loads(said)
    else:  # a continuation, or an empty object, which adds nothing
        expected = shape["arguments"]
        assert expected.items() >= shape["start"].items()
    assert call.input == expected


@every_shape
def test_the_id_is_the_same_at_the_start_in_the_deltas_at_the_end_and_in_the_history(name):
    """R-AJ-10, R-AJ-21"""
    answer = Assistant.of("anthropic")
    ids = {step.id for step in answer.steps([anthropic_events(*anthropic_call(SHAPES[name]))])}
    history = History()
    history.user("Read it.")
    history.assistant(answer)
    assert ids | {call.id for call in (*answer.calls, *history.pending)} == {"Read_0"}


@every_shape
def test_the_finish_reason_is_tool_calls_unless_the_length_cut_it(name):
    """R-AJ-11, R-AJ-21, C43: truncation is not hidden."""
    for said in ("tool_use", "end_turn"):
        stop = answer_to(SHAPES[name], said).stop
        assert stop is not None
        assert stop.reason == "tool_calls"
    cut = answer_to(SHAPES[name], "max_tokens").stop
    assert cut is not None
    assert cut.reason == "length"


@every_shape
def test_arguments_at_the_end_of_the_block_are_those_at_the_end_of_the_message(name):
    """R-AJ-12"""
    answer = Assistant.of("anthropic")
    events = anthropic_call(SHAPES[name])
    at_block_stop = None
    for event in events:
        for step in answer.read(anthropic_events(event)):
            at_block_stop = step.call or at_block_stop
    answer.end()
    assert (at_block_stop,) == answer.calls


@every_shape
def test_the_shape_survives_any_cutting_of_the_bytes(name):
    data = anthropic_events(*anthropic_call(SHAPES[name]))
    whole = answer_to(SHAPES[name]).response()
    for pieces in every_cut(data, random_cuts=3):
        answer = Assistant.of("anthropic")
        list(answer.steps(pieces))
        assert answer.response() == whole


@every_shape
@rows("dialect", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_the_next_request_repeats_the_call_with_those_arguments(name, dialect):
    """R-AJ-09, R-U-07"""
    history = History()
    history.user("Read it.")
    history.assistant(answer_to(SHAPES[name]))
    history.result("Read_0", "text")
    body = history.request(dialect, model="kimi-k3" if dialect == "anthropic" else "m").value
    assert_presentable(dialect, body)
    sent = {
        "anthropic": lambda: body["messages"][1]["content"][0]["input"],
        "openai-chat": lambda: json.loads(
            body["messages"][1]["tool_calls"][0]["function"]["arguments"] or "{}"
        ),
        "openai-responses": lambda: json.loads(body["input"][1]["arguments"] or "{}"),
        "gemini": lambda: body["contents"][1]["parts"][0]["functionCall"]["args"],
    }[dialect]()
    assert sent == SHAPES[name]["arguments"]


def test_a_single_object_runs_and_a_glued_payload_fails_naming_the_json():
    """R-AJ-20, R-AJ-22: what was wrong downstream was the gluing."""
    shape = SHAPES["start input and the same again as delta"]
    glued = json.dumps(shape["start"]) + "".join(shape["deltas"])
    with pytest.raises(ValueError, match=r"^invalid tool arguments JSON: "):
        run_tool(glued)
    (call,) = answer_to(shape).calls
    assert run_tool(call.arguments) == "read a.py"


MALFORMED: dict[str, dict[str, Any]] = {
    "a fragment that continues nothing": {"start": {"a": 1}, "deltas": ['{"a": ', "oops"]},
    "an object behind another object": {"deltas": ['{"a":1}', '{"a":2}']},
    "cut in a string": {"start": {}, "deltas": ['{"path": "a.p']},
    "not JSON at all": {"deltas": ["rm -rf"]},
    "a list": {"deltas": ["[1, 2]"]},
    "a continuation of nothing": {"start": None, "deltas": [', "line": 3}']},
}


@rows("name", MALFORMED)
def test_malformed_continuations_never_raise_and_name_the_json_problem(name):
    """R-AJ-05, R-AJ-14, R-AJ-22, C10: the raw text is kept, wrapped where an object is needed."""
    shape = MALFORMED[name]
    answer = answer_to(shape)
    (call,) = answer.calls
    assert call.id == "Read_0"
    assert answer.stop is not None
    assert answer.stop.reason == "tool_calls"
    assert call.arguments == "".join(shape["deltas"])
    assert call.problem.startswith("invalid tool arguments JSON: ")
    assert call.input == {"_parse_error": call.problem, "_raw": call.arguments}


@rows("name", MALFORMED)
def test_the_model_is_shown_what_was_wrong_and_sees_what_it_wrote(name):
    """R-AJ-22, C10"""
    history = History()
    history.user("Read it.")
    history.assistant(answer_to(MALFORMED[name]))
    (call,) = history.pending
    history.result(call, call.problem, error=True)
    chat = history.request("openai-chat", model="m").value["messages"]
    assert chat[1]["tool_calls"][0]["function"]["arguments"] == call.arguments
    assert "invalid tool arguments JSON: " in chat[2]["content"]
    anthropic = history.request("anthropic", model="claude-opus-5").value["messages"]
    assert anthropic[1]["content"][0]["input"]["_raw"] == call.arguments
    assert anthropic[2]["content"][0]["is_error"] is True
