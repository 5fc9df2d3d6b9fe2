"""Names of turns: the same for all that show the same, others for all else, and the same in every version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.gateway.state.reasoning import names
from wireglot.gateway.state.reasoning.names import (
    Namer,
    Turn,
    call_key,
    may_be_same,
    read_history,
    visible,
    without_ids,
)
from wireglot_core.cache import known_row
from wireglot_core.cache.memory import Memory
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Foreign, Media, Message, Part, Reasoning, Text, ToolCall, ToolResult

LONG = "It will rain in Ulm today and tomorrow."
ASKED = Message("user", (Text(" weather? "), Media("image", data="A" * 100), Foreign("acme", "note", {})))
CALLED = ToolCall("call_8f3a61c2", "look_up", '{"days": 2.0, "city": "Ulm"}')
SAID = Message("assistant", (Reasoning("hm"), Text(" Let me see. "), CALLED))
RESULT = Message("user", (ToolResult("call_8f3a61c2", (Text("rain"),)),))
ANSWER = Message("assistant", (Text(LONG), Text("No.", refusal=True)))


def user(*parts: Part) -> Message:
    return Message("user", parts)


def model(*parts: Part) -> Message:
    return Message("assistant", parts)


# --- what earlier versions have kept is found


def named(session: str) -> list[str]:
    """The names of two turns, in the order exact, placed, loose."""
    namer = Namer(b"secret", "ann", session)
    names: list[str] = []
    for turn in read_history((ASKED, SAID, RESULT, ANSWER)).turns:
        names += [namer.exact(turn.prefix, turn.shown), namer.placed(turn.place, turn.said)]
        names += namer.loose(turn.content)
    return names


@pytest.mark.parametrize(
    ("session", "names"),
    [
        (
            "",
            [
                "79a6455f3c96feca2deeb41f7516d33c",
                "55b0976c9975ce65c94f693fba32a430",
                "1d586f9201725a54d49b27064e2bba64",
                "ec4d450fe87c3e98324d9245ef979c2f",
                "c9f5126ad510f1da56c72ba2878ec51b",
                "5c209a2d69a50d07af729b3c387d44af",
            ],
        ),
        (
            "s",
            [
                "79a6455f3c96feca2deeb41f7516d33c",
                "3e36361eef185e74f7a9cb3e5f75bdf7",
                "51b537f48419bc003eb7760c5af367ad",
                "ec4d450fe87c3e98324d9245ef979c2f",
                "4f5beabc5b52ccf4017d8e4ccf416f5a",
                "ed608eef18a1a9ad22a5a242ae8d572a",
            ],
        ),
    ],
)
def test_names_are_those_of_every_version(session: str, names: list[str]) -> None:
    """What was kept under them lies in stores for months: another name would lose all of it."""
    assert named(session) == names


# --- what makes a name


def history(*messages: Message) -> tuple[bytes, bytes]:
    read = read_history(messages)
    return read.prefix, read.place


@rows(
    ("one", "other"),
    [
        ((ASKED,), (Message("system", (Text("be good"),)), ASKED)),
        ((user(Text("a"), Text("b")),), (user(Text("a")), user(Text("b")))),
        ((user(Text(" a\n")),), (user(Text("a")),)),
        ((user(Text("a"), Text(" ")),), (user(Text("a")),)),
        ((user(ToolResult("1", (Text("a"),))),), (user(ToolResult("1", (Text("b"),), is_error=True)),)),
        ((model(Text("a"), Reasoning("hm")),), (model(Text("a")),)),
        ((model(Text("a")), model(Text("b"))), (model(Text("ab")),)),
        ((model(Text(" ab ")),), (model(Text("ab")),)),
        ((model(Text("a"), CALLED),), (model(CALLED, Text("a")),)),
    ],
)
def test_what_clients_do_to_a_conversation_leaves_its_name(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    assert history(*one) == history(*other)


@rows(
    ("one", "other"),
    [
        ((user(Text("a")),), (user(Text("b")),)),
        ((user(Text("a")), model(Text("b"))), (user(Text("a")),)),
        ((user(Text("a")), model()), (user(Text("a")),)),
        ((model(Text("a")),), (user(Text("a")),)),
        ((model(Text("a")),), (model(Text("a", refusal=True)),)),
        ((model(CALLED),), (model(ToolCall(CALLED.id, "other", CALLED.arguments)),)),
        ((model(CALLED),), (model(ToolCall(CALLED.id, "look_up", CALLED.arguments, namespace="n")),)),
        ((model(CALLED),), (model(ToolCall(CALLED.id, "look_up", "{}")),)),
        ((model(CALLED),), (model(CALLED, CALLED),)),
        ((user(ToolResult("1")),), (user(),)),
        ((user(Media("image", data="a")),), (user(Media("image", data="b")),)),
        ((user(Media("document", text="a")),), (user(Media("document", text="b")),)),
        ((user(Media("image", data="a" + "x" * 64)),), (user(Media("image", data="x" * 64)),)),
        ((user(Foreign("acme", "a", {})),), (user(Foreign("acme", "b", {})),)),
    ],
)
def test_what_was_said_otherwise_has_another_name(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    assert history(*one)[0] != history(*other)[0]
    assert history(*one)[1] != history(*other)[1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((model(CALLED),), (model(ToolCall("other", "look_up", CALLED.arguments)),)),
        ((user(ToolResult("1")),), (user(ToolResult("2")),)),
        (
            (user(Text("a")), user(ToolResult("1")), user(Text("b"))),
            (user(Text("a")), user(ToolResult("2")), user(Text("b"))),
        ),
    ],
)
def test_ids_tell_conversations_apart_but_not_places(
    one: tuple[Message, ...], other: tuple[Message, ...]
) -> None:
    assert history(*one)[0] != history(*other)[0]
    assert history(*one)[1] == history(*other)[1]


def test_without_ids_both_names_are_one() -> None:
    prefix, place = history(user(Text("a")), model(Text("b")))
    assert prefix is place, "made once"
    prefix, place = history(user(Text("a")), model(CALLED))
    assert prefix != place


def test_what_a_turn_is_behind_is_all_that_was_said_before_it() -> None:
    read = read_history((ASKED, SAID, model(Text("more")), RESULT, ANSWER))
    first, second = read.turns
    assert (first.start, first.end, second.start, second.end) == (1, 3, 4, 5)
    assert first.content == (*SAID.content, Text("more"))
    assert (first.prefix, first.place) == history(ASKED)
    assert (second.prefix, second.place) == history(ASKED, SAID, model(Text("more")), RESULT)
    assert (read.prefix, read.place) == history(ASKED, SAID, model(Text("more")), RESULT, ANSWER)
    assert (first.shown, first.said) == (visible(first.content), without_ids(first.content))


def test_a_turn_alone_is_the_messages_own_content() -> None:
    """Nothing is made again where nothing was cut."""
    assert read_history((ASKED, ANSWER)).turns[0].content is ANSWER.content


def test_a_turn_at_the_end_ends_with_the_conversation() -> None:
    (turn,) = read_history((model(Text("a")), model(Text("b")))).turns
    assert turn == Turn(0, 2, (Text("a"), Text("b")), turn.shown, turn.said, *history())
    assert turn.shown == turn.said


# --- what is remembered of a conversation


SPOKEN: tuple[Message, ...] = (
    Message("system", (Text("be good"),)),
    ASKED,
    SAID,
    model(Text("more")),
    RESULT,
    ANSWER,
    user(Text("and tomorrow?")),
    model(Text("and"), CALLED),
    model(Text("more")),
)


@pytest.fixture(autouse=True, scope="module")
def _soon_settled() -> Iterator[None]:
    """Short conversations, too, are remembered but for their last turn."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_row, "OPEN_TURNS", 1)
        patch.setattr(known_row, "_LEAST", 1)
        yield


@given(picked=st.lists(st.lists(st.integers(0, len(SPOKEN) - 1), max_size=12), max_size=8))
def test_a_conversation_has_the_names_that_it_has_without_a_memory(picked: list[list[int]]) -> None:
    memory = Memory(1024 * 1024)
    known = [memory.decode(b"[%d]" % number) for number in range(len(SPOKEN))]
    for value, message in zip(known, SPOKEN, strict=True):
        memory.share(message, value)
    for numbers in picked:
        for count in range(len(numbers) + 1):
            messages = [SPOKEN[number] for number in numbers[:count]]
            read, expected = read_history(messages, memory), read_history(messages)
            assert read.turns == expected.turns
            assert (read.prefix, read.place) == (expected.prefix, expected.place)


def test_what_comes_again_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(1024 * 1024)
    for number, message in enumerate(SPOKEN):
        memory.share(message, memory.decode(b"[%d]" % number))
    first = read_history(SPOKEN, memory)
    monkeypatch.setattr("wireglot.gateway.state.reasoning.names.encode", None)
    again = read_history(SPOKEN[1:], memory)
    assert [turn.made for turn in again.turns] == [turn.made for turn in first.turns]
    assert all(one.made is other.made for one, other in zip(first.turns, again.turns, strict=True))
    assert [turn.start for turn in again.turns] == [turn.start - 1 for turn in first.turns]
    assert again.prefix == first.prefix


# --- arguments


@rows(
    ("one", "other"),
    [
        ('{"a":1,"b":2}', ' { "b" : 2, "a" : 1 } '),
        ("", "{}"),
        (" ", "{}"),
        ('{"a":1.0}', '{"a":1}'),
        ('{"a":1e2}', '{"a":100}'),
        ('{"a":2E0}', '{"a":2}'),
        ('{"a":[1.0,{"b":2.0}]}', '{"a":[1,{"b":2}]}'),
        ('{"a":', ' {"a":\n'),
        ('{"a":"\\u00e9"}', '{"a":"é"}'),
    ],
)
def test_arguments_that_clients_write_again_are_the_same(one: str, other: str) -> None:
    assert call_key(ToolCall("1", "f", one)) == call_key(ToolCall("1", "f", other))


@rows(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":2}'),
        ('{"a":1.5}', '{"a":1}'),
        ('{"a":"1.0"}', '{"a":"1"}'),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ('{"a":9007199254740992.0}', '{"a":9007199254740992}'),
        ('{"a":1}', '{"a":true}'),
    ],
)
def test_other_arguments_are_others(one: str, other: str) -> None:
    assert call_key(ToolCall("1", "f", one)) != call_key(ToolCall("1", "f", other))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _rewritten(value: Any) -> Any:
    """As JavaScript writes numbers again: without a point where nothing stands behind it."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {key: _rewritten(value[key]) for key in reversed(value)}
    return [_rewritten(item) for item in value] if isinstance(value, list) else value


@given(value=JSON)
def test_numbers_that_clients_write_again_are_the_same_wherever_they_stand(value: Any) -> None:
    one, other = (ToolCall("1", "f", json.dumps(each)) for each in (value, _rewritten(value)))
    assert call_key(one) == call_key(other)


def test_freeform_input_is_compared_to_the_letter() -> None:
    assert call_key(ToolCall("1", "f", '{"a":1}', "custom")) != call_key(
        ToolCall("1", "f", '{"a": 1}', "custom")
    )
    assert call_key(ToolCall("1", "f", "", "custom"))[-1] == ""


def test_the_name_that_gemini_cli_puts_before_an_id_is_not_of_it() -> None:
    assert call_key(ToolCall("look_up__call_1", "look_up", "{}")) == call_key(
        ToolCall("call_1", "look_up", "{}")
    )
    assert call_key(ToolCall("other__call_1", "look_up", "{}"))[0] == "other__call_1"


MINTED = Context(seed="x").new_id("call", "0", "f")


@rows(
    ("sent", "kept", "same"),
    [
        ("toolu_01AbCdEfGh", "toolu_01AbCdEfGh", True),
        ("mcp_toolu_01AbCdEfGh", "toolu_01AbCdEfGh", True),
        (MINTED, "toolu_01AbCdEfGh", True),
        ("toolu_99ZzYyXxWw", "toolu_01AbCdEfGh", False),
        ("toolu_01AbCdEfGh", "mcp_toolu_01AbCdEfGh", True),
        ("call_01AbCdEfGhIjKlMnOpQrStUv_0", "toolu_01AbCdEfGhIjKlMnOpQrStUvWx", True),
        ("call_01AbCdEfGhIjKlMnOpQrStU_0", "toolu_01AbCdEfGhIjKlMnOpQrStUvWx", False),
        ("anything_1234567", "toolu_1234567", False),
        ("toolu01AbCdEfGh", "toolu_01AbCdEfGh", True),
        ("toolu01AbCdEf", "toolu_01AbCdEfGh", False),
        ("anything-else", "functions.f:0", True),
        ("anything-else", "f_12", True),
        ("anything-else", "f-123456", True),
        ("anything-else", "f-1234567", False),
        ("anything-else", "abcde", True),
        ("anything-else", "abcdef", False),
        ("anything-else", "call.x", False),
    ],
)
def test_when_an_id_does_not_prove_a_call_another_one(sent: str, kept: str, same: bool) -> None:
    assert may_be_same(ToolCall(sent, "f", "{}"), ToolCall(kept, "f", "{}")) is same


# --- namers


EXACT: Callable[[Namer], str] = lambda namer: namer.exact(b"prefix", b"shown")  # noqa: E731 - a row of parameters
PLACED: Callable[[Namer], str] = lambda namer: namer.placed(b"place", b"said")  # noqa: E731 - a row of parameters
LOOSE: Callable[[Namer], str] = lambda namer: "".join(namer.loose([CALLED]))  # noqa: E731 - a row of parameters
TEXT: Callable[[Namer], str] = lambda namer: "".join(namer.loose([Text(LONG)]))  # noqa: E731 - a row of parameters


@pytest.mark.parametrize("name", [EXACT, PLACED, LOOSE, TEXT])
def test_a_name_is_of_one_secret_and_one_caller(name: Callable[[Namer], str]) -> None:
    mine = name(Namer(b"secret", "ann", ""))
    assert len(mine) == 32
    assert mine == name(Namer(b"secret", "ann", ""))
    assert mine != name(Namer(b"other", "ann", ""))
    assert mine != name(Namer(b"secret", "bob", ""))
    # A session that the client names tells turns apart, but not those behind the very same conversation.
    assert (mine == name(Namer(b"secret", "ann", "s"))) is (name is EXACT)


def test_names_of_different_kinds_never_meet() -> None:
    namer = Namer(b"secret", "ann", "")
    assert namer.exact(b"ab", b"c") != namer.exact(b"a", b"bc")
    assert namer.exact(b"", b"a") != namer.placed(b"", b"a")
    assert len({EXACT(namer), PLACED(namer), LOOSE(namer), TEXT(namer)}) == 4


def test_a_turn_is_found_by_each_of_its_calls() -> None:
    namer = Namer(b"secret", "ann", "")
    other = ToolCall("call_99999999", "look_up", "{}")
    both = namer.loose([Text(LONG), CALLED, other])
    assert both == [*namer.loose([CALLED]), *namer.loose([other])]
    assert len(set(both)) == 2


def test_ids_that_recur_tell_a_turn_only_within_a_session() -> None:
    recurring = ToolCall("functions.f:0", "f", "{}")
    assert Namer(b"secret", "ann", "").loose([recurring, CALLED]) == Namer(b"secret", "ann", "").loose(
        [CALLED]
    )
    assert len(Namer(b"secret", "ann", "s").loose([recurring, CALLED])) == 2


@rows(
    ("sent", "kept"),
    [
        ("call8f3a61c2", "call_8f3a61c2"),
        ("toolu01AbCdEfGh", "toolu_01AbCdEfGh"),
        ("toolubdrk01AbCdEfGh", "toolu_bdrk_01AbCdEfGh"),
    ],
)
def test_a_call_is_found_where_its_id_lost_its_punctuation(sent: str, kept: str) -> None:
    namer = Namer(b"secret", "ann", "")
    (name,) = namer.loose([ToolCall(kept, "f", "{}")])
    assert name in namer.loose([ToolCall(sent, "f", "{}")])
    assert name not in namer.loose([ToolCall(sent + "0", "f", "{}")])


def test_only_texts_that_hardly_recur_tell_a_turn() -> None:
    namer = Namer(b"secret", "ann", "")
    assert namer.loose([Text("x" * 31), Text("  ")]) == []
    assert len(namer.loose([Text("x" * 31), Text("x ")])) == 1
    assert namer.loose([Text(" " + LONG), Reasoning("hm")]) == namer.loose([Text(LONG)])


def test_half_a_letter_in_a_callers_or_a_sessions_name_is_no_error() -> None:
    """Clients may send such words; they are read as a question mark, as everywhere."""
    for name in (EXACT, PLACED, LOOSE, TEXT):
        assert name(Namer(b"secret", "ann\ud800", "s\ud800")) == name(Namer(b"secret", "ann?", "s?"))


def test_long_arguments_are_not_held_beside_what_is_counted() -> None:
    """Thousands of whole files, of all callers together."""
    names._canonical_once.cache_clear()
    for size in (10, 100_000):
        one, other = (
            visible((ToolCall("c", "write", text),))
            for text in ('{"a": 1, "b": "%s"}' % ("x" * size), '{"b":"%s","a":1.0}' % ("x" * size))
        )
        assert one == other
    assert names._canonical_once.cache_info().currsize == 2
