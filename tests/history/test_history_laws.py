"""What holds for any conversation and any answer, however it came about."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.support import DIALECTS, MODELS, assert_presentable
from tests.tiers import rows
from wireglot.history import Assistant, History, Media, Message, Text, ToolCall, ToolResult, Unfinished
from wireglot.history.pairs import boundaries, open_calls
from wireglot_core.ir.content import Part, Reasoning
from wireglot_core.ir.stream import Event, Failure, fold
from wireglot_core.testing.strategies import event_streams, requests, responses, samples

TARGETS = [
    *((dialect, MODELS[dialect], None) for dialect in DIALECTS),
    ("gemini", "gemini-2.5-flash", "gemini"),
    ("openai-chat", "kimi-k2.6", "kimi"),
    ("anthropic", "kimi-k3", "kimi-anthropic"),
]

_WORDS = st.sampled_from(("", " ", "Hello", "{}", "Grüße"))
_IDS = st.sampled_from(("a", "b", "functions.read:0"))
_NAMES = st.sampled_from(("read", "list"))
_PICTURE = Media("image", "image/png", samples.PNG)
_RESULTS = st.builds(
    ToolResult, _IDS, st.lists(st.builds(Text, _WORDS), max_size=2).map(tuple), st.booleans()
)
_CALLS = st.builds(ToolCall, _IDS, _NAMES, st.sampled_from(("", "{}", '{"path": "x"}', '{"path')))
_STATE = st.sampled_from((None, *samples.REASONING_SIGNATURES))
_ANSWERS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, _WORDS),
    st.builds(Text, _WORDS, signature=st.just(samples.PART_SIGNATURE)),
    st.builds(Reasoning, _WORDS, _STATE),
    _CALLS,
    st.sampled_from(samples.FOREIGN_ANSWERS),
)
_QUESTIONS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, _WORDS), st.just(_PICTURE), _RESULTS, st.sampled_from(samples.FOREIGN_QUESTIONS)
)


def _messages(role: Any, parts: st.SearchStrategy[Part]) -> st.SearchStrategy[Message]:
    return st.builds(Message, st.just(role), st.lists(parts, max_size=4).map(tuple))


_ANY = st.one_of(
    _messages("user", _QUESTIONS),
    _messages("assistant", _ANSWERS),
    _messages("system", st.builds(Text, _WORDS)),
)
histories = st.lists(_ANY, max_size=8).map(History)


@rows(("dialect", "model", "provider"), TARGETS)
@given(history=histories)
def test_no_request_has_an_empty_part_or_an_orphan_whatever_was_appended(dialect, model, provider, history):
    """R-U-05 (C39), R-U-06, R-U-07"""
    history.user("And now?")
    asked = history.request(dialect, model=model, provider=provider, max_tokens=99)
    assert_presentable(dialect, asked.value)


@rows("dialect", DIALECTS)
@given(history=histories)
def test_calls_that_end_a_history_are_answered_and_that_is_reported(dialect, history):
    """R-U-06: asked too early, the request is still one that the provider takes."""
    history.user("Go on.")
    history.append(Message("assistant", (ToolCall("last", "read", "{}"),)))
    asked = history.request(dialect, model=MODELS[dialect], max_tokens=99)
    assert_presentable(dialect, asked.value)
    place = f"$.messages[{len(history) - 1}].content[0]"
    assert (place, "tool_result.pairing", "invented") in [
        (loss.path, loss.feature, loss.action) for loss in asked.losses
    ]


@given(histories)
def test_a_saved_history_is_loaded_as_it_was(history):
    again = History.load(history.save())
    assert again == history
    assert again.save() == history.save()


@given(requests())
def test_everything_the_dialects_can_say_survives_saving(request):
    history = History(request.messages)
    assert history.messages == request.messages
    assert History.load(history.save()) == history


@given(event_streams(failing=True))
def test_the_accumulator_amounts_to_the_fold_of_the_events(events):
    answer = Assistant()
    for event in events:
        answer.feed(event)
    assert answer.done
    if isinstance(events[-1], Failure):
        assert answer.failed == events[-1].error
        with pytest.raises(Unfinished):
            answer.message()
        return
    whole = fold(events)
    assert answer.failed is None
    assert answer.response() == whole
    assert answer.text == "".join(part.text for part in whole.content if isinstance(part, Text))
    assert answer.reasoning == "".join(part.text for part in whole.content if isinstance(part, Reasoning))
    assert (answer.stop, answer.usage) == (whole.stop, whole.usage)


@given(event_streams(failing=True), st.data())
def test_events_in_lists_give_the_same_steps_as_one_by_one(events, data):
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=4))
    slow, quick = Assistant(), Assistant()
    single = [step for event in events for step in slow.feed(event)]
    bounds = [0, *sorted(cuts), len(events)]
    several = [step for start, end in pairwise(bounds) for step in quick.feed(events[start:end])]
    assert single == several


@given(event_streams(failing=True))
def test_ids_and_said_text_never_change_while_an_answer_grows(events: list[Event]):
    """R-AJ-10, R-W-01: a call has its id from its first step; text only grows."""
    answer = Assistant()
    seen: dict[int, tuple[str, str]] = {}
    before = ("", "")
    for event in events:
        for step in answer.feed(event):
            if step.kind == "call":
                assert step.id
                assert seen.setdefault(step.index, (step.id, step.name)) == (step.id, step.name)
        assert answer.text.startswith(before[0])
        assert answer.reasoning.startswith(before[1])
        before = (answer.text, answer.reasoning)
        assert [call.id for call in answer.calls] == [seen[index][0] for index in sorted(seen)]
    if not isinstance(events[-1], Failure):
        assert not any(call.partial for call in answer.calls)


@given(responses())
def test_the_turn_holds_every_call_all_text_and_every_signature(response):
    """R-U-01: the complete content, never only text, never an empty text."""
    turn = Assistant.from_response(response).message()
    assert all(part.text or part.signature for part in turn.content if isinstance(part, Text))
    assert [part for part in turn.content if not isinstance(part, Text)] == [
        part for part in response.content if not isinstance(part, Text)
    ]
    said = [(part.text, part.signature) for part in response.content if isinstance(part, Text)]
    kept = [(part.text, part.signature) for part in turn.content if isinstance(part, Text)]
    assert kept == [(text, signature) for text, signature in said if text or signature]


@given(histories, st.integers(0, 9))
def test_a_cut_never_parts_a_call_from_its_result(history, most):
    before = history.messages
    waiting = history.pending
    removed = history.cut(most)
    lead = len([*_leading(before)])
    assert before == before[:lead] + removed + history.messages[lead:]
    end = lead + len(removed)
    for call, result in _partners(before):
        assert (lead <= call < end) == (lead <= result < end)
    assert history.pending == waiting
    assert len(history) - lead <= most or len(boundaries(history.messages[lead:])) <= 1


@given(requests(), st.integers(0, 6))
def test_a_cut_of_a_sound_history_needs_no_repair(request, most):
    history = History(request.messages)
    history.user("And now?")
    whole = history.request("openai-chat", model="m")
    history.cut(most)
    asked = history.request("openai-chat", model="m")
    repairs = [loss for loss in asked.losses if loss.feature == "tool_result.pairing"]
    assert len(repairs) <= len([loss for loss in whole.losses if loss.feature == "tool_result.pairing"])
    assert_presentable("openai-chat", asked.value)


@given(histories)
def test_a_copy_and_its_original_go_their_own_ways(history):
    before, twin = history.messages, history.copy()
    assert twin == history
    assert twin.messages is history.messages
    twin.user("Only here.")
    twin.cut(1)
    assert history.messages is before


@given(histories)
def test_results_by_id_close_every_open_call(history):
    for call in open_calls(history.messages):
        history.result(call, "done")
    assert open_calls(history.messages) == []
    assert history.pending == ()


def _leading(messages: tuple[Message, ...]) -> list[Message]:
    lead = []
    for message in messages:
        if message.role != "system":
            break
        lead.append(message)
    return lead


def _partners(messages: tuple[Message, ...]) -> list[tuple[int, int]]:
    """Where each answered call stands, and where its result."""
    pairs, waiting = [], defaultdict(list)
    for place, message in enumerate(messages):
        for part in message.content:
            if isinstance(part, ToolCall):
                waiting[part.id].append(place)
            elif isinstance(part, ToolResult) and waiting[part.call_id]:
                pairs.append((waiting[part.call_id].pop(), place))
    return pairs
