"""What is an answer, what is none, and what of one is handed over."""

from __future__ import annotations

import msgspec
import pytest

from tests.tiers import rows
from wireglot_core.ir.content import Message, Part, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.outcome import Candidate, Response, Stop, StopReason, Usage, added
from wireglot_core.ir.request import Request, Tool
from wireglot_core.ir.stream import Delta, Failure, Finish, PartEnd, PartStart, check, fold, unfold
from wireglot_core.ir.verdict import (
    CUT,
    CUT_BY_FILTER,
    CUT_BY_LIMIT,
    EMPTY,
    NoAnswer,
    StreamVerdict,
    accept,
    is_cut,
    with_whole_calls,
)

USER = Message("user", (Text("clean up"),))
ASKED = Request("m", (USER,))
WHOLE = ToolCall("c1", "f", '{"a": "b"}')
BROKEN = ToolCall("c2", "g", '{"a": "b')
BARE = ToolCall("c3", "h", "")


def answer(reason: StopReason, *content: Part, raw: str = "said", usage: Usage | None = None) -> Response:
    return Response("r", "m", content, Stop(reason, raw, "x"), usage)


def verdict(response: Response, request: Request | None = ASKED) -> object:
    """What becomes of a whole answer: its parts, or the error."""
    try:
        return accept(response, request).response.content
    except NoAnswer as failed:
        return failed.error


def streamed(response: Response, request: Request | None = ASKED, *, leaves_out: bool = True) -> object:
    watch = StreamVerdict(request, leaves_out=leaves_out)
    events = [passed for event in unfold(response) for passed in watch.pass_on([event])]
    list(check(events))
    last = events[-1]
    if type(last) is Failure:
        assert watch.verdict == last.error
        return last.error
    assert watch.verdict is None
    return fold(events).content


def both(response: Response, request: Request | None = ASKED) -> object:
    """Whole or streamed, it is the same answer."""
    found = verdict(response, request)
    assert streamed(response, request) == found
    return found


@rows("text", ['{"a": "b', '{"a": 1', "{", '{"a": {"b": 1}', '{"a": tru', '[1, "', '{"a":'])
def test_arguments_that_end_too_early_are_cut(text: str) -> None:
    """[X7] By their syntax alone."""
    assert is_cut(text)


@rows("text", ["", "  ", "{}", '{"a": 1}', "oops", '{"a": 1]', '{"a": 1}}', "null", "\ud800"])
def test_what_is_whole_or_broken_otherwise_is_not_cut(text: str) -> None:
    """[X7] Others repair or wrap it."""
    assert not is_cut(text)


def test_an_answer_with_something_in_it_is_one() -> None:
    for part in (Text("hi"), WHOLE, BARE):
        assert both(answer("end", part)) == (part,)


def test_nothing_is_no_answer_to_a_user() -> None:
    """[X6] Whatever stands around it."""
    for content in ((), (Text(""),), (Reasoning("hm"),)):
        assert both(answer("end", *content)) == EMPTY
    assert both(answer("other", raw="")) == EMPTY
    assert both(answer("tool_calls")) == EMPTY


@rows("reason", ["length", "context_full", "refused", "paused", "stop_sequence"])
def test_nothing_is_legal_where_the_reason_says_why(reason: StopReason) -> None:
    """[X6] The limit, a refusal, a pause, a stop sequence."""
    assert both(answer(reason)) == ()


def test_nothing_is_legal_behind_the_result_of_a_tool() -> None:
    """[X6] Also where the client has put something beside the result."""
    turns = (USER, Message("assistant", (WHOLE,)), Message("user", (ToolResult("c1", (Text("done"),)),)))
    assert both(answer("end"), Request("m", turns)) == ()
    assert both(answer("end"), Request("m", (*turns, Message("user", (Text("</tool>"),))))) == ()
    assert both(answer("end"), Request("m", (*turns, Message("assistant", (Text("ok"),)), USER))) == EMPTY


def test_nothing_is_legal_behind_an_answer_that_the_client_began() -> None:
    """[X6] It may have been complete. A call that was left without its result is no such beginning."""
    assert both(answer("end"), Request("m", (USER, Message("assistant", (Text("The sum is 4."),))))) == ()
    assert both(answer("end"), Request("m", (USER, Message("assistant", (WHOLE,))))) == EMPTY
    assert both(answer("end"), Request("m", (USER, Message("assistant", (Text("ok"),)), USER))) == EMPTY


def test_tokens_spent_on_thinking_up_to_the_limit_are_legal() -> None:
    """[X6] Though the server says that the model stopped by itself."""
    spent = answer("end", Reasoning("hm"), usage=Usage(output=0, reasoning=64))
    assert both(spent, Request("m", (USER,), max_tokens=64)) == (Reasoning("hm"),)
    assert both(spent, Request("m", (USER,), max_tokens=65)) == EMPTY


def test_a_client_with_stop_sequences_may_get_nothing() -> None:
    """[X6] Not every dialect tells them apart from an end."""
    assert both(answer("end"), Request("m", (USER,), stop=("STOP",))) == ()


def test_a_whole_answer_is_cut_at_the_first_stop_sequence() -> None:
    """Not every upstream takes them; where one does, its text holds none."""
    asked = Request("m", (USER,), stop=("</b>", "END"))
    said = answer("end", Reasoning("END?"), Text("<b>no</b> and END"), WHOLE)
    accepted = accept(said, asked).response
    assert accepted.content == (Reasoning("END?"), Text("<b>no"))
    assert (accepted.stop.reason, accepted.stop.sequence) == ("stop_sequence", "</b>")
    assert accept(answer("end", Text("</b>")), asked).response.content == ()
    untouched = answer("end", Text("<b>no"))
    assert accept(untouched, asked).response is untouched


def test_a_further_answer_loses_the_calls_that_were_cut_and_nothing_else() -> None:
    freeform = ToolCall("c4", "patch", "*** Begin", kind="custom")
    whole = Candidate((Text('{"a": "b'), WHOLE, freeform), Stop("end"))
    losses: list[Loss] = []
    assert with_whole_calls(whole, "candidates[1]", losses) is whole
    assert not losses
    cut = Candidate((Text('{"a": "b'), BROKEN, WHOLE, BROKEN, freeform), Stop("end"))
    left = with_whole_calls(cut, "candidates[1]", losses)
    assert left == whole
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        (f"candidates[1].content[{index}]", "tool_call.arguments", "dropped") for index in (1, 3)
    ]


def test_a_malformed_call_is_no_answer_whatever_else_was_said() -> None:
    """[X6] The reason names it."""
    found = both(answer("malformed_call", Text("well"), raw="MALFORMED_FUNCTION_CALL"))
    assert getattr(found, "code", "") == "malformed_tool_call"


@pytest.mark.parametrize("reason", ["end", "tool_calls", "other"])
def test_a_cut_call_is_no_answer(reason: StopReason) -> None:
    """[X7] Nor are the calls beside it: nobody knows what else is missing."""
    assert both(answer(reason, WHOLE, BROKEN)) == CUT


@pytest.mark.parametrize("reason", ["length", "context_full", "refused"])
def test_a_call_that_was_interrupted_is_left_out(reason: StopReason) -> None:
    """[X7] What was whole before stays; in a whole answer the loss is reported."""
    assert both(answer(reason, Text("well"), WHOLE, BROKEN)) == (Text("well"), WHOLE)
    assert both(answer(reason, BARE)) == ()
    (loss,) = accept(answer(reason, WHOLE, BROKEN), ASKED).losses
    assert (loss.path, loss.feature, loss.action) == ("$.content[1]", "tool_call.arguments", "dropped")


def test_a_cut_by_the_numbers_is_reported_as_one() -> None:
    """[X7] Some servers say that they call a tool when the limit was reached."""
    reported = accept(
        answer("tool_calls", BROKEN, usage=Usage(output=16)), Request("m", (USER,), max_tokens=16)
    )
    assert (reported.response.content, reported.response.stop.reason) == ((), "length")


def test_a_call_without_arguments_is_whole_where_the_answer_says_that_it_ended() -> None:
    """[X7] Or where it goes on behind it."""
    assert both(answer("tool_calls", WHOLE, BARE)) == (WHOLE, BARE)
    assert both(answer("length", BARE, WHOLE)) == (BARE, WHOLE)
    assert both(answer("tool_calls", BARE, raw="")) == CUT


def test_an_id_that_recurs_is_made_another_one() -> None:
    asked = Request("m", (USER, Message("assistant", (WHOLE,)), Message("user", (ToolResult(WHOLE.id),))))
    again = msgspec.structs.replace(WHOLE, id=f"{WHOLE.id}-2")
    other = Candidate((WHOLE,), Stop("end"))
    came = msgspec.structs.replace(answer("tool_calls", WHOLE, WHOLE, BARE), others=(other,))
    third = msgspec.structs.replace(WHOLE, id=f"{WHOLE.id}-3")
    found = accept(came, asked).response
    assert found.content == (again, third, BARE)
    assert found.others == (msgspec.structs.replace(other, content=(again,)),)
    events = StreamVerdict(asked).pass_on(list(unfold(came)))
    assert (fold(events).content, fold(events).others) == (found.content, found.others)


def test_an_id_recurs_also_behind_the_name_that_a_client_puts_before_it() -> None:
    """As Gemini CLI does."""
    sent = msgspec.structs.replace(WHOLE, id=f"{WHOLE.name}__{WHOLE.id}")
    asked = Request("m", (USER, Message("assistant", (sent,)), Message("user", (ToolResult(sent.id),))))
    assert both(answer("tool_calls", WHOLE), asked) == (msgspec.structs.replace(WHOLE, id=f"{WHOLE.id}-2"),)


def test_what_has_been_reported_in_pieces_cannot_be_taken_back() -> None:
    """[X7] Then the stream fails, and says why."""
    assert streamed(answer("length", BROKEN), leaves_out=False) == CUT_BY_LIMIT
    assert streamed(answer("refused", BROKEN), leaves_out=False) == CUT_BY_FILTER
    assert streamed(answer("end", BROKEN), leaves_out=False) == CUT


def test_the_end_of_a_cut_call_waits_until_it_is_known_why() -> None:
    """[X7] No writer may close it before."""
    watch = StreamVerdict(ASKED, leaves_out=True)
    *events, finish = unfold(answer("length", BROKEN))
    assert not [event for event in watch.pass_on(events) if type(event) is PartEnd]
    end, last = watch.pass_on([finish])
    assert end == PartEnd(0, cut=True)
    assert type(last) is Finish


def test_events_of_a_good_answer_pass_as_the_same_list() -> None:
    """Nothing is made again where nothing is wrong."""
    watch = StreamVerdict(ASKED)
    events = list(unfold(answer("end", Text("hi"))))
    assert watch.pass_on(events[:-1]) == events[:-1]
    texts = [event for event in events if type(event) is not PartStart][:1]
    assert watch.pass_on(texts) is texts


def test_two_accounts_become_one() -> None:
    """[X6] What was paid for nothing is counted with the rest."""
    assert added(Usage(input=1, output=2), Usage(input=3, cache_read=4, reasoning=5)) == Usage(
        input=4, cache_read=4, output=2, reasoning=5
    )
    assert added(None, Usage(input=1)) == Usage(input=1)


def test_pieces_that_have_nothing_new_need_not_be_read():
    """Of a text once something is said, and of a thought from its start; not beside open arguments."""
    watch = StreamVerdict(ASKED)
    assert watch.is_known(0) is False
    watch.pass_on([PartStart(0, Reasoning(""))])
    assert [watch.is_known(index) for index in (0, 1)] == [True, False]
    watch.pass_on([Delta(0, "hm"), PartEnd(0), PartStart(1, Text("")), Delta(1, "a")])
    assert [watch.is_known(index) for index in (0, 1, 2)] == [True, True, True]
    watch.pass_on([PartEnd(1), PartStart(2, ToolCall("c", "f", ""))])
    assert watch.is_known(2) is False
    watch.pass_on([Delta(2, "{}"), PartEnd(2)])
    assert watch.is_known(3) is True


def test_pieces_that_may_hold_a_leaked_call_are_read():
    request = Request("m", (USER,), tools=(Tool("f"),))
    watch = StreamVerdict(request, leaks_calls=("kimi",))
    watch.pass_on([PartStart(0, Text("")), Delta(0, "a")])
    assert watch.is_known(0) is False
