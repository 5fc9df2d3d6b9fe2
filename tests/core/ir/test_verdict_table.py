"""Pinned verdicts: what becomes of every kind of answer, whole and streamed.

`WIREGLOT_UPDATE=1 pytest tests/core/ir/test_verdict_table.py` writes the table again.
"""

import os
from typing import get_args

import pytest

from tests.core.laws.cases import FIXTURES
from wireglot_core.ir.content import Media, Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.leaked_calls import LEAK_FAMILIES, LeakFamily
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    fold,
    unfold,
)
from wireglot_core.ir.verdict import NoAnswer, StreamVerdict, accept

TABLE = FIXTURES / "verdicts.txt"
UPDATE = bool(os.environ.get("WIREGLOT_UPDATE"))

USER = Message("user", (Text("go"),))
WHOLE, BROKEN, BARE = ToolCall("1", "f", '{"a":1}'), ToolCall("2", "g", '{"a":'), ToolCall("3", "h", " ")
FREE = ToolCall("4", "run", '{"a":', "custom")
LEAKED = "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
CONTENTS: dict[str, tuple[Part, ...]] = {
    "nothing": (),
    "an empty text": (Text(""),),
    "a text": (Text("hi"),),
    "a thought": (Reasoning("hm"),),
    "a thought and a text": (Reasoning("hm"), Text("hi")),
    "a picture": (Media("image", data="aGk="),),
    "a call": (WHOLE,),
    "a cut call": (BROKEN,),
    "a text and a cut call": (Text("hi"), BROKEN),
    "a bare call": (BARE,),
    "a freeform call": (FREE,),
    "a call and a cut one": (WHOLE, BROKEN),
    "a cut call and a whole one": (BROKEN, WHOLE),
    "a bare call and a whole one": (BARE, WHOLE),
    "a bare call and a text": (BARE, Text("hi")),
    "two bare calls": (BARE, ToolCall("5", "h", "")),
    "a bare call and a cut one": (BARE, BROKEN),
    "a cut call and a bare one": (BROKEN, BARE),
    "a leaked call": (Text("so"), Text("hi " + LEAKED)),
    "a leaked call before words": (Text("hi " + LEAKED), Text("so")),
    "a leaked call that is cut": (Reasoning("hm " + LEAKED[:-3]),),
}
RESULT = (USER, Message("assistant", (WHOLE,)), Message("user", (ToolResult("1"),)))
REQUESTS: dict[str, Request | None] = {
    "nobody knows what was asked": None,
    "a user asked": Request("m", (USER,), (Tool("f"),)),
    "a user without tools asked": Request("m", (USER,)),
    "a user asked for up to 16 tokens": Request("m", (USER,), (Tool("f"),), max_tokens=16),
    "a user asked for up to 17 tokens": Request("m", (USER,), (Tool("f"),), max_tokens=17),
    "a user asked with a stop sequence": Request("m", (USER,), (Tool("f"),), stop=("END",)),
    "a tool has answered": Request("m", RESULT, (Tool("f"),)),
    "a tool has answered, and a user asks": Request(
        "m", (*RESULT, Message("assistant", (Text("ok"),)), USER), (Tool("f"),)
    ),
}
SPENT = Usage(output=10, reasoning=6)


def parts(content: tuple[Part, ...]) -> str:
    return (
        "".join(part.id if isinstance(part, ToolCall) else type(part).__name__[0].lower() for part in content)
        or "-"
    )


def error(found: ApiError) -> str:
    return f"{found.code} {found.status}"


def whole(response: Response, request: Request | None, leaks_calls: tuple[LeakFamily, ...]) -> str:
    try:
        accepted = accept(response, request, leaks_calls=leaks_calls)
    except NoAnswer as failed:
        return error(failed.error) if failed.usage == response.usage else "nobody knows what it cost"
    text = f"{parts(accepted.response.content)} {accepted.response.stop.reason}"
    return " ".join([text, *(f"({loss.path} {loss.feature} {loss.action})" for loss in accepted.losses)])


def streamed(
    events: list[Event], request: Request | None, leaves_out: bool, leaks_calls: tuple[LeakFamily, ...]
) -> str:
    watch = StreamVerdict(request, leaves_out=leaves_out, leaks_calls=leaks_calls)
    passed = [each for event in events for each in watch.pass_on([event])]
    at_once = StreamVerdict(request, leaves_out=leaves_out, leaks_calls=leaks_calls).pass_on(list(events))
    last = passed[-1]
    assert last == at_once[-1]
    if isinstance(last, Failure):
        assert watch.verdict == last.error
        return error(last.error)
    assert watch.verdict is None
    answer = fold(passed)
    assert answer == fold(at_once)
    losses = [f"({loss.path} {loss.feature} {loss.action})" for loss in watch.losses]
    return " ".join([f"{parts(answer.content)} {answer.stop.reason}", *losses])


def test_what_becomes_of_answers():
    lines = []
    for content_name, content in CONTENTS.items():
        leaks = LEAK_FAMILIES if content_name.startswith("a leaked call") else ()
        for request_name, request in REQUESTS.items():
            lines.append(f"# {content_name}: {request_name}")
            seen: dict[str, list[str]] = {}
            for reason in get_args(StopReason):
                for raw in ("", "said"):
                    for usage in (None, SPENT):
                        response = Response("r", "m", content, Stop(reason, raw), usage)
                        events = list(unfold(response))
                        found = [
                            whole(response, request, leaks),
                            *(streamed(events, request, out, leaks) for out in (True, False)),
                        ]
                        # Whole and streamed are one answer, but for ids that are made up of its place.
                        same = found[0].partition(" (")[0] == found[1].partition(" (")[0]
                        assert same, (content_name, request_name, reason, raw, usage, found)
                        case = f"{reason}{'' if raw else ' unsaid'}{' at 16' if usage else ''}"
                        reported = found[0] if found[0] == found[2] else f"{found[0]}; in pieces: {found[2]}"
                        seen.setdefault(reported, []).append(case)
            lines += [f"{reported} <- {', '.join(cases)}" for reported, cases in seen.items()]
            lines.append("")
    text = "\n".join(lines)
    if UPDATE:
        TABLE.write_text(text, encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == text


def test_who_may_say_nothing_says_nothing():
    """A compaction, a count: anyone who asks knows that there need be no answer."""
    nothing = Response("r", "m", (), Stop("end", "said"))
    asked = REQUESTS["a user asked"]
    assert accept(nothing, asked, may_be_empty=True).response is nothing
    assert type(StreamVerdict(asked, may_be_empty=True).pass_on(list(unfold(nothing)))[-1]) is Finish
    assert type(StreamVerdict(asked).pass_on(list(unfold(nothing)))[-1]) is Failure
    with pytest.raises(NoAnswer):
        accept(Response("r", "m", (BROKEN,), Stop("end", "said")), asked, may_be_empty=True)


def test_cut_calls_of_further_answers_are_left_out():
    others = (
        Candidate((Text("a"), BROKEN, WHOLE), Stop("end")),
        Candidate((WHOLE, FREE), Stop("end")),
        Candidate((BROKEN,), Stop("end")),
    )
    accepted = accept(Response("r", "m", (Text("hi"),), Stop("end", "x"), others=others), None)
    assert [other.content for other in accepted.response.others] == [(Text("a"), WHOLE), (WHOLE, FREE), ()]
    assert [(loss.path, loss.feature, loss.action) for loss in accepted.losses] == [
        ("$.others[0].content[1]", "tool_call.arguments", "dropped"),
        ("$.others[2].content[0]", "tool_call.arguments", "dropped"),
    ]
    fine = Response("r", "m", (Text("hi"),), Stop("end", "x"), others=others[1:2])
    assert accept(fine, None).response is fine


def test_a_good_answer_is_the_same_object():
    fine = Response("r", "m", (Text("hi"), WHOLE), Stop("end", "x"))
    assert accept(fine, REQUESTS["a user asked"]).response is fine


def test_an_error_says_whether_asking_again_could_help():
    def failed(reason: StopReason, *content: Part, leaves_out: bool = False) -> ApiError:
        events = list(unfold(Response("r", "m", content, Stop(reason, "RAW"))))
        last = StreamVerdict(REQUESTS["a user asked"], leaves_out=leaves_out).pass_on(events)[-1]
        assert isinstance(last, Failure)
        return last.error

    limits: tuple[StopReason, ...] = ("length", "context_full")
    for reason in limits:
        limit = failed(reason, BROKEN)
        assert (limit.kind, limit.status, limit.code) == ("invalid_request", 400, "truncated_tool_call")
    stops: tuple[StopReason, ...] = ("refused", "paused")
    for reason in stops:
        stopped = failed(reason, BROKEN)
        assert (stopped.kind, stopped.status, stopped.code) == ("content_policy", 400, "truncated_tool_call")
    cut = failed("end", BROKEN)
    assert (cut.kind, cut.status, cut.code) == ("server", 502, "truncated_tool_call")
    empty = failed("end")
    assert (empty.kind, empty.status, empty.code) == ("server", 502, "empty_answer")
    broken = failed("malformed_call", Text("hi"))
    assert (broken.kind, broken.status, broken.code) == ("server", 502, "malformed_tool_call")
    assert "(RAW)" in broken.message


# --- as it streams


def test_a_stream_is_clear_when_something_was_said_and_no_call_is_open():
    watch = StreamVerdict(REQUESTS["a user asked"])
    seen = []
    for event in unfold(
        Response("r", "m", (Reasoning("hm"), Text("hi"), WHOLE, BROKEN), Stop("length", "x"))
    ):
        watch.pass_on([event])
        seen.append((type(event).__name__, watch.is_clear, watch.has_open_calls))
    assert seen == [
        ("Start", False, False),
        ("PartStart", False, False),
        ("Delta", False, False),
        ("PartEnd", False, False),
        ("PartStart", False, False),
        ("Delta", True, False),
        ("PartEnd", True, False),
        ("PartStart", False, True),
        ("Delta", False, True),
        ("PartEnd", True, False),
        ("PartStart", False, True),
        ("Delta", False, True),
        ("PartEnd", False, True),
        ("Finish", False, True),
    ]


@pytest.mark.parametrize("leaking", [False, True])
def test_what_an_answer_cost_is_known_however_it_ended(leaking):
    """Also of one that is searched for leaked calls: it was paid for."""
    words = "a <|tool_calls" if leaking else "a"
    events: list[Event] = [
        Start("r", "m", usage=Usage(input=1)),
        PartStart(0, Text("")),
        Delta(0, words),
        UsageReport(Usage(input=2)),
        PartEnd(0),
        Finish(Stop("malformed_call"), Usage(input=3)),
    ]
    watch = StreamVerdict(REQUESTS["a user asked"], leaks_calls=LEAK_FAMILIES if leaking else ())
    known = []
    passed: list[Event] = []
    for event in events:
        passed = watch.pass_on([event])
        known.append(watch.usage and watch.usage.input)
    assert known == [1, 1, 1, 2, 2, 3]
    assert passed[-2] == UsageReport(Usage(input=3))
    quiet = StreamVerdict(REQUESTS["a user asked"])
    assert [type(event) for event in quiet.pass_on([events[0], Finish(Stop("end"))])] == [Start, Failure]
    assert quiet.usage == Usage(input=1)


def test_pieces_of_a_text_pass_as_they_came():
    watch = StreamVerdict(REQUESTS["a user asked"])
    watch.pass_on([Start("r", "m"), PartStart(0, Text("")), Delta(0, "a")])
    pieces: list[Event] = [Delta(0, "b"), Delta(0, "c")]
    assert watch.pass_on(pieces) is pieces
    odd: list[Event] = [Delta(0, "x < y"), Delta(0, "z")]
    assert watch.pass_on(odd) == odd


def test_a_call_without_arguments_ends_when_the_answer_goes_on():
    watch = StreamVerdict(REQUESTS["a user asked"], leaves_out=True)
    first: list[Event] = [Start("r", "m"), PartStart(0, ToolCall("1", "f", "")), PartEnd(0)]
    assert watch.pass_on(first) == first[:2]
    second: list[Event] = [PartStart(1, ToolCall("2", "f", "")), Delta(1, "{"), PartEnd(1)]
    assert watch.pass_on(second) == [PartEnd(0), *second[:2]]
    third: list[Event] = [PartStart(2, ToolCall("3", "f", "")), PartEnd(2)]
    assert watch.pass_on(third) == third[:1]
    assert watch.pass_on([Finish(Stop("length", "x"))]) == [
        PartEnd(1, cut=True),
        PartEnd(2, cut=True),
        Finish(Stop("length", "x")),
    ]


def test_events_before_a_leak_in_one_batch_are_judged_too():
    """What a server sends in one read: the end of a call, and words that leak another."""
    watch = StreamVerdict(REQUESTS["a user asked"], leaks_calls=LEAK_FAMILIES)
    events: list[Event] = [
        Start("r", "m"),
        PartStart(0, ToolCall("1", "f", '{"a": 1}')),
        PartEnd(0),
        PartStart(1, Text("")),
        Delta(1, "so " + LEAKED),
        PartEnd(1),
        Finish(Stop("end", "x")),
    ]
    answer = fold(watch.pass_on(events))
    assert [type(part) for part in answer.content] == [ToolCall, Text, ToolCall]
    assert answer.stop.reason == "tool_calls"
    assert [(loss.path, loss.feature, loss.action) for loss in watch.losses] == [
        ("$.content", "tool_call.arguments", "invented")
    ]
    assert isinstance(watch.losses[0], Loss)
