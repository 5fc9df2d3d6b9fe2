"""An answer while it grows, from the wire of every dialect."""

import json

import pytest

from tests.history.support import FIXTURES, anthropic_call, anthropic_events, gemini_chunk, heard, stream
from tests.tiers import rows
from wireglot.history import Assistant, Message, Text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect as codec
from wireglot_core.ir.content import Reasoning
from wireglot_core.ir.outcome import Stop
from wireglot_core.ir.stream import BrokenGrammar, Delta, Event, Failure, Finish, PartStart, Start, fold
from wireglot_core.testing.check_dialect import fixtures
from wireglot_core.testing.laws import every_cut, read_stream

STREAMS = [
    case
    for name in ("anthropic", "openai-chat", "openai-responses", "gemini", "code-assist")
    for case in fixtures(FIXTURES, name, "streams")
    if case.id.endswith(".sse")
]


@rows("case", STREAMS, ids=lambda case: case.id)
def test_reading_a_recorded_stream_amounts_to_folding_it(case):
    answer = heard(case.dialect, case.data)
    events = read_stream(codec(case.dialect), [case.data], Context())
    last = events[-1]
    if isinstance(last, Failure):
        assert answer.failed == last.error
        return
    assert answer.response() == fold(events)


def test_text_reasoning_and_calls_are_there_while_they_arrive():
    """R-W-01, R-W-02 (C40): what is partial says so, and a call has its id from the start."""
    events = anthropic_call({"start": {}, "deltas": ['{"path": ', '"a.py"}']})
    answer = Assistant.of("anthropic")
    seen = []
    for event in events:
        answer.read(anthropic_events(event))
        seen.append([(call.id, call.name, call.arguments, call.partial) for call in answer.calls])
    answer.end()
    assert seen[1:5] == [
        [("Read_0", "Read", "", True)],
        [("Read_0", "Read", '{"path": ', True)],
        [("Read_0", "Read", '{"path": "a.py"}', True)],
        [("Read_0", "Read", '{"path": "a.py"}', False)],
    ]
    assert answer.done
    assert (answer.id, answer.model) == ("msg_1", "kimi-k3")
    assert answer.usage is not None
    assert answer.usage.output == 9


def test_steps_tell_what_is_new_and_the_last_one_has_the_whole():
    """R-W-01"""
    answer = Assistant.of("gemini")
    data = stream(gemini_chunk({"text": "Hel"}, finish=""), gemini_chunk({"text": "lo"}))
    steps = list(answer.steps([data]))
    assert {(step.kind, step.index) for step in steps} == {("text", 0)}
    assert "".join(step.delta for step in steps) == "Hello" == answer.text
    assert [step.part for step in steps if not step.partial] == [Text("Hello")]


def test_signed_reasoning_stays_in_the_turn():
    """R-U-01"""
    answer = heard("anthropic", (FIXTURES / "anthropic" / "streams" / "thinking_and_tools.sse").read_bytes())
    thought = answer.message().content[0]
    assert isinstance(thought, Reasoning)
    assert thought.signature is not None
    assert thought.text == answer.reasoning != ""
    assert answer.calls


@pytest.mark.parametrize("name", ["tools.sse", "text.sse"])
def test_steps_do_not_depend_on_how_the_bytes_arrive(name):
    data = (FIXTURES / "code-assist" / "streams" / name).read_bytes()
    expected = heard("code-assist", data)
    for pieces in every_cut(data, random_cuts=4):
        answer = Assistant.of("code-assist")
        list(answer.steps(pieces))
        assert (answer.message(), answer.usage, answer.stop) == (
            expected.message(), expected.usage, expected.stop,
        )  # fmt: skip


def test_a_stream_cut_short_fails_and_keeps_only_what_can_be_sent_again():
    """C43: half a call is none."""
    events = anthropic_call({"start": {}, "deltas": ['{"path": ']})[:3]
    answer = heard("anthropic", anthropic_events(*events))
    assert answer.done
    assert answer.failed is not None
    assert answer.calls[0].partial
    assert answer.message(partial=True) == Message("assistant", ())


def test_one_json_document_is_read_like_a_stream():
    body = {**gemini_chunk({"text": "Hi"}), "modelVersion": "gemini-3-pro", "responseId": "r1"}
    answer = Assistant.of("gemini")
    answer.whole(json.dumps(body))
    assert (answer.text, answer.id, answer.stop and answer.stop.reason) == ("Hi", "r1", "end")


@rows(
    ("body", "status", "kind"),
    [
        ({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}, 429, "rate_limit"),
        ("<html><title>Bad gateway</title></html>", 502, "server"),
        (b"{", 200, "server"),
        ("[]", 200, "server"),
        ({"candidates": 3}, 200, "server"),
    ],
)
def test_an_error_instead_of_an_answer_is_a_failure_and_never_raises(body, status, kind):
    answer = Assistant.of("gemini")
    answer.whole(body, status)
    assert answer.failed is not None
    assert answer.failed.kind == kind


def test_events_out_of_order_are_a_bug_of_the_one_that_fed_them():
    wrong: list[list[Event]] = [
        [Delta(0, "x")],
        [Start("r", "m"), Start("r", "m")],
        [Start("r", "m"), PartStart(1, Text(""))],
        [Start("r", "m"), PartStart(0, Text("")), Finish(Stop("end"))],
        [Start("r", "m"), Delta(0, "x")],
        [Start("r", "m"), Finish(Stop("end")), Delta(0, "x")],
    ]
    for events in wrong:
        with pytest.raises(BrokenGrammar):
            Assistant().feed(events)


def test_two_answers_at_once_do_not_know_of_each_other():
    """R-E-04, C29: no state is shared, however they interleave."""
    data = (FIXTURES / "code-assist" / "streams" / "tools.sse").read_bytes()
    other = stream(gemini_chunk({"text": "Something else"}))
    one, two = Assistant.of("code-assist"), Assistant.of("gemini")
    for at in range(max(len(data), len(other))):
        one.read(data[at : at + 1])
        two.read(other[at : at + 1])
    one.end()
    two.end()
    assert one.message() == heard("code-assist", data).message()
    assert two.message() == Message("assistant", (Text("Something else"),))
