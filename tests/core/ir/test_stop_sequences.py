"""Answers cut at stop sequences: whole, and streamed in any pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wireglot_core.ir import stop_sequences
from wireglot_core.ir.content import Citation, Reasoning, Text, TokenLogprob, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Candidate, Response, Stop, Usage
from wireglot_core.ir.stop_sequences import (
    MAX_SEQUENCE_CHARS,
    MAX_SEQUENCES,
    StopFilter,
    cut_response,
    first_match,
    searched,
)
from wireglot_core.ir.stream import (
    Delta,
    Event,
    Failure,
    Finish,
    OtherAnswer,
    PartEnd,
    PartStart,
    Start,
    UsageReport,
    check,
    fold,
    unfold,
)

_FEW_LETTERS = st.text("ab\n", max_size=24)
_SEQUENCES = st.lists(st.text("ab\n", min_size=1, max_size=5), min_size=1, max_size=4)
START = Start("r", "m")
END = Finish(Stop("end"), Usage(input=1, output=2))


def answer(*parts: Text | Reasoning | ToolCall, others: tuple[Candidate, ...] = ()) -> Response:
    return Response("r", "m", parts, Stop("end"), Usage(input=1, output=2), others=others)


def is_cut(stops: StopFilter) -> bool:
    return stops.cut


def streamed(text: str, cuts: list[int]) -> list[list[Event]]:
    """The events of an answer of this text, cut into pieces at these places."""
    places = sorted({0, len(text), *[cut % (len(text) + 1) for cut in cuts]})
    pieces = [text[start:end] for start, end in pairwise(places)]
    deltas: list[list[Event]] = [[Delta(0, piece)] for piece in pieces]
    return [[START, PartStart(0, Text(""))], *deltas, [PartEnd(0)], [END]]


def spoken(response: Response) -> tuple[str, Stop]:
    return "".join(part.text for part in response.content if isinstance(part, Text)), response.stop


@given(_FEW_LETTERS, _SEQUENCES, st.lists(st.integers(0, 100), max_size=12))
def test_any_chunking_is_cut_where_the_whole_text_is(
    text: str, sequences: list[str], cuts: list[int]
) -> None:
    stops = StopFilter(sequences)
    passed = [event for batch in streamed(text, cuts) for event in stops.events(batch)]
    assert list(check(passed)) == passed
    assert spoken(fold(passed)) == spoken(cut_response(answer(Text(text)), sequences))


@given(_FEW_LETTERS, _SEQUENCES)
def test_no_text_is_held_that_cannot_be_the_beginning_of_a_sequence(text: str, sequences: list[str]) -> None:
    stops = StopFilter(sequences)
    stops.events([START, PartStart(0, Text(""))])
    sent = ""
    for number, letter in enumerate(text, 1):
        events = stops.events([Delta(0, letter)])
        sent += "".join(event.text for event in events if isinstance(event, Delta))
        if any(isinstance(event, Finish) for event in events):
            return
        held = text[len(sent) : number]
        assert not held or any(sequence.startswith(held) for sequence in sequences)


@given(_FEW_LETTERS, _SEQUENCES)
def test_nothing_is_left_of_a_sequence_and_nothing_is_lost_before_it(text: str, sequences: list[str]) -> None:
    kept, stop = spoken(cut_response(answer(Text(text)), sequences))
    assert text.startswith(kept)
    assert not any(sequence in kept for sequence in sequences)
    if stop.reason == "stop_sequence":
        assert stop.sequence in sequences
        assert text[len(kept) :].startswith(stop.sequence or "-")
    else:
        assert kept == text


def test_the_sequence_that_is_complete_first_wins_and_of_equals_the_longest() -> None:
    assert first_match("xabcd", ["abcd", "bc"]) == (2, "bc")
    assert first_match("xabc", ["bc", "abc"]) == (1, "abc")
    assert first_match("xabc", ["q", ""]) is None


@given(_FEW_LETTERS, _SEQUENCES)
def test_the_first_match_is_what_a_search_for_each_sequence_finds(text: str, sequences: list[str]) -> None:
    each = [(at + len(one), at, one) for one in sequences if (at := text.find(one)) >= 0]
    assert first_match(text, sequences) == (min(each)[1:] if each else None)


def test_only_as_many_sequences_are_searched_for_as_the_limits_allow() -> None:
    many = [f"stop {number}" for number in range(10_000)]
    assert searched(many) == tuple(many[:MAX_SEQUENCES])
    assert searched(["", "a" * MAX_SEQUENCE_CHARS, "b"]) == ("a" * MAX_SEQUENCE_CHARS,)
    assert searched(["a" * (MAX_SEQUENCE_CHARS + 1), "b"]) == ("b",)
    assert first_match("at stop 9999", many) == (3, "stop 9")


@pytest.mark.parametrize("sequence", ["a" * 2000 + "b", "ab" * 1000 + "c"])
def test_a_step_for_each_character_whatever_may_be_a_beginning(
    sequence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that nearly is the sequence, again and again, in pieces of one character."""
    steps = 0
    after = stop_sequences._Beginnings.after

    def counted(self: stop_sequences._Beginnings, here: int, char: str) -> int:
        nonlocal steps
        steps += 1
        return after(self, here, char)

    stops = StopFilter([sequence])
    monkeypatch.setattr(stop_sequences._Beginnings, "after", counted)
    text = sequence[:-1] * 3
    passed = stops.events([START, PartStart(0, Text(""))])
    passed += [event for char in text for event in stops.events([Delta(0, char)])]
    passed += stops.events([PartEnd(0), END])
    assert steps <= len(text)
    assert spoken(fold(passed)) == (text, END.stop)


def test_an_answer_ends_at_the_match_and_its_upstream_is_not_needed() -> None:
    stops = StopFilter(["END"])
    assert stops.events([START, PartStart(0, Text("")), Delta(0, "one E")]) == [
        START,
        PartStart(0, Text("")),
        Delta(0, "one "),
    ]
    assert not is_cut(stops)
    assert stops.events([Delta(0, "ND two"), Delta(0, "three")]) == [
        PartEnd(0),
        Finish(Stop("stop_sequence", sequence="END")),
    ]
    assert is_cut(stops)
    assert stops.events([Delta(0, "four"), PartEnd(0), END]) == []


def test_reasoning_and_arguments_are_not_searched() -> None:
    parts = (Reasoning("a STOP b"), ToolCall("1", "f", '{"a":"STOP"}'), Text("fine"))
    events = [*unfold(answer(*parts))]
    assert StopFilter(["STOP"]).events(events) == events
    assert cut_response(answer(*parts), ["STOP"]) == answer(*parts)


def test_calls_that_are_open_at_the_match_are_completed() -> None:
    stops = StopFilter(["STOP"])
    call = ToolCall("1", "f", "")
    passed = stops.events(
        [START, PartStart(0, call), Delta(0, "{"), PartStart(1, Text("")), Delta(1, "a STOP b")]
    )
    assert not is_cut(stops)
    passed += stops.events([Delta(1, "c"), PartStart(2, Text("")), Delta(0, "}"), Delta(2, "d")])
    passed += stops.events([PartEnd(2), PartEnd(0), PartEnd(1), END])
    assert list(check(passed)) == passed
    response = fold(passed)
    assert response.content == (ToolCall("1", "f", "{}"), Text("a "))
    assert response.stop == Stop("stop_sequence", sequence="STOP")
    assert is_cut(stops)


def test_further_answers_are_waited_for_and_cut_too() -> None:
    other = Candidate((Text("c STOP d"),), Stop("end"))
    stops = StopFilter(["STOP"], several=True)
    events: list[Event] = [
        START,
        PartStart(0, Text("")),
        Delta(0, "a STOP b"),
        PartEnd(0),
        OtherAnswer(other),
        END,
    ]
    passed = stops.events(events)
    assert list(check(passed)) == passed
    assert not is_cut(stops)
    expected = cut_response(answer(Text("a STOP b"), others=(other,)), ["STOP"])
    assert fold(passed) == expected
    assert expected.others == (Candidate((Text("c "),), Stop("stop_sequence", sequence="STOP")),)
    assert expected.usage == END.usage


def test_citations_and_probabilities_behind_the_cut_are_removed() -> None:
    tokens = tuple(TokenLogprob(token, -1.0) for token in ("one", " two", " ST", "OP", " three"))
    cited = (Citation(url="http://1", start=0, end=3), Citation(url="http://2", start=4, end=12))
    text = "one two STOP three"
    whole = cut_response(answer(Text(text, citations=cited, logprobs=tokens)), ["STOP"])
    assert whole.content == (Text("one two ", citations=cited[:1], logprobs=tokens[:2]),)
    stops = StopFilter(["STOP"])
    passed = stops.events([START, PartStart(0, Text(""))])
    for token in tokens:
        passed += stops.events([Delta(0, token.token, (token,))])
    assert fold(passed).content == (Text("one two ", logprobs=tokens[:2]),)


def test_tokens_of_held_text_are_not_lost_where_nothing_matches() -> None:
    tokens = tuple(TokenLogprob(token, -1.0) for token in ("a", " ST", "OR", "M"))
    stops = StopFilter(["STOP"])
    passed = stops.events([START, PartStart(0, Text(""))])
    for token in tokens:
        passed += stops.events([Delta(0, token.token, (token,))])
    passed += stops.events([PartEnd(0), END])
    assert fold(passed).content == (Text("a STORM", logprobs=tokens),)


def test_held_text_goes_out_before_a_failure_and_at_the_end_of_its_part() -> None:
    stops = StopFilter(["STOP"])
    stops.events([START, PartStart(0, Text("")), Delta(0, "a ST")])
    broken = Failure(ApiError("server", "broken"))
    assert stops.events([broken]) == [Delta(0, "ST"), broken]
    stops = StopFilter(["STOP"])
    stops.events([START, PartStart(0, Text("b ST")), UsageReport(Usage(input=1))])
    assert stops.events([PartEnd(0), END]) == [Delta(0, "ST"), PartEnd(0), END]


def test_a_text_that_begins_with_a_sequence_leaves_nothing() -> None:
    assert cut_response(answer(Reasoning("t"), Text("STOP a"), Text("b")), ["STOP"]).content == (
        Reasoning("t"),
    )
