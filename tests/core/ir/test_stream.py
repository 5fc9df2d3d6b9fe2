"""Events: their grammar, and the way between them and a whole answer."""

import pytest
from msgspec.structs import replace

from tests.tiers import rows
from wireglot_core.ir.content import (
    CacheMark,
    Citation,
    Extra,
    Foreign,
    Media,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    TokenLogprob,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.stream import (
    BrokenGrammar,
    Delta,
    Event,
    Failure,
    Finish,
    Folding,
    ForeignEvent,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    StreamFailed,
    UsageReport,
    check,
    fold,
    unfold,
)

START, FINISH = Start("id", "m"), Finish(Stop("end"))
FAILURE = Failure(ApiError("server", "down"))
TEXT = PartStart(0, Text(""))
EXTRA, OTHER = Extra("toy", {"a": 1}), Extra("toy", {"b": 2})
SIGNED, PROOF = Signature("one", Origin("toy")), Signature("two", Origin("toy"))
PHASED = Signature("commentary", Origin("toy"), "phase")
LIKELY, UNLIKELY = TokenLogprob("a", -1), TokenLogprob("b", -2)
CITED, CITED_TOO = Citation("https://a.example"), Citation("https://b.example")


@rows(
    "events",
    [
        [START, FINISH],
        [FAILURE],
        [START, FAILURE],
        [START, TEXT, FAILURE],
        [START, TEXT, PartEnd(0), FINISH],
        [START, TEXT, PartStart(1, Text("")), Delta(1, "a"), Delta(0, "b"), PartEnd(1), PartEnd(0), FINISH],
        [START, UsageReport(Usage()), ForeignEvent("toy", "x", {}), FINISH],
        [START, OtherAnswer(Candidate((), Stop("end"))), FINISH],
    ],
)
def test_what_the_grammar_allows(events):
    assert list(check(events)) == events


@rows(
    ("events", "why"),
    [
        ([], "no Finish"),
        ([START], "no Finish"),
        ([START, TEXT, PartEnd(0)], "no Finish"),
        ([FINISH], "Finish before Start"),
        ([TEXT], "part before Start"),
        ([UsageReport(Usage())], "UsageReport before Start"),
        ([ForeignEvent("toy", "x", {})], "ForeignEvent before Start"),
        ([OtherAnswer(Candidate((), Stop("end")))], "OtherAnswer before Start"),
        ([START, START], "second Start"),
        ([START, PartStart(1, Text(""))], "0 was next"),
        ([START, TEXT, PartEnd(0), PartStart(0, Text(""))], "1 was next"),
        ([START, Delta(0, "a")], "not open"),
        ([START, TEXT, PartEnd(0), Delta(0, "a")], "not open"),
        ([START, PartEnd(0)], "not open"),
        ([START, TEXT, PartEnd(0), PartEnd(0)], "not open"),
        ([START, TEXT, FINISH], "open parts"),
        ([START, FINISH, FAILURE], "after the end"),
        ([FAILURE, START], "after the end"),
    ],
)
def test_what_the_grammar_forbids(events, why):
    with pytest.raises(BrokenGrammar, match=why):
        list(check(events))


def folded(start: Part, end: PartEnd, *deltas: Delta) -> tuple[Part, ...]:
    return fold([START, PartStart(0, start), *deltas, end, FINISH]).content


@rows(
    ("start", "end", "whole"),
    [
        (Text("a"), PartEnd(0), Text("abc")),
        (
            Text("a", True, (CITED,), (LIKELY,), SIGNED, CacheMark(), EXTRA),
            PartEnd(0, PROOF, (CITED_TOO,), OTHER),
            Text("abc", True, (CITED, CITED_TOO), (LIKELY,), PROOF, CacheMark(), OTHER),
        ),
        (Text("a", signature=SIGNED, extra=EXTRA), PartEnd(0), Text("abc", signature=SIGNED, extra=EXTRA)),
        (Reasoning("a", SIGNED, True, EXTRA), PartEnd(0), Reasoning("abc", SIGNED, True, EXTRA)),
        (Reasoning("a", SIGNED), PartEnd(0, PROOF, extra=OTHER), Reasoning("abc", PROOF, extra=OTHER)),
        (
            ToolCall("1", "f", "a", "custom", "n", SIGNED, CacheMark(), EXTRA),
            PartEnd(0),
            ToolCall("1", "f", "abc", "custom", "n", SIGNED, CacheMark(), EXTRA),
        ),
        (
            ToolCall("1", "f", "a", signature=SIGNED, extra=EXTRA),
            PartEnd(0, PROOF, extra=OTHER),
            ToolCall("1", "f", "abc", signature=PROOF, extra=OTHER),
        ),
        (Media("image", data="a"), PartEnd(0), Media("image", data="a")),
        (
            Media("image", data="a", signature=SIGNED, extra=EXTRA),
            PartEnd(0, PROOF),
            Media("image", data="a", signature=PROOF, extra=EXTRA),
        ),
        (
            Media("image", data="a", signature=SIGNED, extra=EXTRA),
            PartEnd(0, extra=OTHER),
            Media("image", data="a", signature=SIGNED, extra=OTHER),
        ),
        (Foreign("toy", "x", {}), PartEnd(0, PROOF), Foreign("toy", "x", {})),
    ],
)
def test_what_becomes_known_at_the_end_completes_a_part(start, end, whole):
    assert folded(start, end, Delta(0, "b"), Delta(0, "c")) == (whole,)


def test_probabilities_of_all_pieces_are_kept():
    deltas = (Delta(0, "b", (LIKELY,)), Delta(0, ""), Delta(0, "c", (UNLIKELY, LIKELY)))
    (part,) = folded(Text("", logprobs=(UNLIKELY,)), PartEnd(0), *deltas)
    assert part == Text("bc", logprobs=(UNLIKELY, LIKELY, UNLIKELY, LIKELY))


def test_a_call_that_was_cut_is_no_part_of_the_answer():
    events: list[Event] = [START, PartStart(0, ToolCall("1", "f", "{")), PartStart(1, Text("a")), PartEnd(1)]
    assert fold([*events, PartEnd(0, cut=True), FINISH]).content == (Text("a"),)


def test_parts_stand_in_the_order_in_which_they_began():
    events: list[Event] = [
        START,
        PartStart(0, Text("a")),
        PartStart(1, Text("b")),
        PartEnd(1),
        PartEnd(0),
        FINISH,
    ]
    assert fold(events).content == (Text("a"), Text("b"))


def test_what_the_end_says_counts_more_than_what_the_start_said():
    start = Start("id", "m", 7, Usage(input=1), "flex", EXTRA)
    assert fold([start, FINISH]) == Response("id", "m", (), Stop("end"), Usage(input=1), 7, "flex", (), EXTRA)
    finish = Finish(Stop("length"), Usage(input=3), "priority", OTHER)
    report = UsageReport(Usage(input=2))
    assert fold([start, report, finish]) == Response(
        "id", "m", (), Stop("length"), Usage(input=3), 7, "priority", (), OTHER
    )
    assert fold([start, report, FINISH]).usage == Usage(input=2)
    assert fold([start, report, Finish(Stop("end"), Usage())]).usage == Usage()


def test_further_answers_and_events_of_one_dialect():
    other = Candidate((Text("b"),), Stop("end"))
    events: list[Event] = [
        START,
        ForeignEvent("toy", "x", {}),
        OtherAnswer(other),
        OtherAnswer(other),
        FINISH,
    ]
    assert fold(events) == Response("id", "m", (), Stop("end"), others=(other, other))


def test_a_failure_is_raised_and_an_end_that_is_missing_is_a_bug():
    with pytest.raises(StreamFailed) as failed:
        fold([START, TEXT, FAILURE])
    assert failed.value.error == FAILURE.error
    assert str(failed.value) == "down"
    with pytest.raises(BrokenGrammar):
        fold([START])
    with pytest.raises(BrokenGrammar):
        fold([FINISH])


def test_nothing_counts_behind_the_end():
    folding = Folding()
    folding.add([START, FINISH, Start("other", "m")])
    assert folding.response().id == "id"
    folding = Folding()
    folding.add([START, FAILURE, FINISH])
    with pytest.raises(StreamFailed):
        folding.response()


WHOLE = Response(
    "id",
    "m",
    (
        Text("a", True, (CITED,), (LIKELY,), SIGNED, CacheMark(), EXTRA),
        Text("", logprobs=(LIKELY,)),
        Text("b", signature=PHASED),
        Text(""),
        Reasoning("c", SIGNED, extra=EXTRA),
        Reasoning("", SIGNED, redacted=True),
        Reasoning(""),
        ToolCall("1", "f", "{}", "custom", "n", SIGNED, CacheMark(), EXTRA),
        ToolCall("2", "f", ""),
        Media("image", data="a", signature=SIGNED),
        Foreign("toy", "x", {}),
    ),
    Stop("end"),
    Usage(input=1),
    7,
    "flex",
    (Candidate((Text("b"),), Stop("end")),),
    EXTRA,
)


def test_an_answer_is_what_its_events_amount_to():
    events = list(check(unfold(WHOLE)))
    assert fold(events) == WHOLE


def of(part: Part) -> list[Event]:
    return list(unfold(replace(WHOLE, content=(part,), others=())))[1:-1]


@rows(
    ("part", "events"),
    [
        # The word that says what a text is to the answer is known when it begins; a proof only at its end.
        (Text("b", signature=PHASED), [PartStart(0, Text("", signature=PHASED)), Delta(0, "b"), PartEnd(0)]),
        (Text("b", signature=SIGNED), [PartStart(0, Text("")), Delta(0, "b"), PartEnd(0, SIGNED)]),
        (Text("b", citations=(CITED,)), [PartStart(0, Text("")), Delta(0, "b"), PartEnd(0, None, (CITED,))]),
        (Text("", logprobs=(LIKELY,)), [PartStart(0, Text("")), Delta(0, "", (LIKELY,)), PartEnd(0)]),
        (Text(""), [PartStart(0, Text("")), PartEnd(0)]),
        (Reasoning("c", SIGNED), [PartStart(0, Reasoning()), Delta(0, "c"), PartEnd(0, SIGNED)]),
        (Reasoning("", SIGNED, True), [PartStart(0, Reasoning("", SIGNED, True)), PartEnd(0)]),
        (ToolCall("1", "f", ""), [PartStart(0, ToolCall("1", "f", "")), PartEnd(0)]),
        (ToolCall("1", "f", "{}"), [PartStart(0, ToolCall("1", "f", "")), Delta(0, "{}"), PartEnd(0)]),
        (Media("image", data="a"), [PartStart(0, Media("image", data="a")), PartEnd(0)]),
    ],
)
def test_what_is_reported_about_a_part_and_when(part, events):
    assert of(part) == events


def test_the_account_comes_with_the_end_and_everything_about_the_answer_with_its_start():
    events = list(unfold(replace(WHOLE, content=())))
    assert events == [
        Start("id", "m", 7, None, "flex", EXTRA),
        OtherAnswer(WHOLE.others[0]),
        Finish(Stop("end"), Usage(input=1), "flex"),
    ]


def test_a_result_is_no_part_of_an_answer():
    with pytest.raises(BrokenGrammar, match="ToolResult in a response"):
        of(ToolResult("1"))


def test_what_came_of_a_stream_without_an_end_is_its_parts_as_they_stand():
    stop = Stop("other")
    folding = Folding()
    assert folding.so_far(stop) is None
    start = Start("id", "m", usage=Usage(input=3), created=7, service_tier="flex", extra=EXTRA)
    folding.add([start, PartStart(1, Text("")), PartStart(0, Reasoning("")), Delta(0, "Hm."), PartEnd(0)])
    folding.add([Delta(1, "Hel"), OtherAnswer(Candidate((Text("x"),), Stop("end")))])
    assert not folding.failure
    assert folding.so_far(stop) == Response(
        "id",
        "m",
        (Reasoning("Hm."), Text("Hel")),
        stop,
        Usage(input=3),
        created=7,
        service_tier="flex",
        others=(Candidate((Text("x"),), Stop("end")),),
        extra=EXTRA,
    )
    folding.add([Delta(1, "lo."), FAILURE])
    assert folding.failure
    assert folding.failure == FAILURE.error
    after = folding.so_far(stop)
    assert after is not None
    assert after.content == (Reasoning("Hm."), Text("Hello."))
