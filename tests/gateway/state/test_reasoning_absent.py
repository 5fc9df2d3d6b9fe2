"""Turns that the store is known not to hold: it is not asked about them again and again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.gateway.state.reasoning_kit import SETTINGS, Memory, WatchedVault
from tests.gateway.state.test_reasoning import ASKED, CALL, called, chat, last_answer, result
from wireglot.gateway.settings import Secret
from wireglot.gateway.state.reasoning.absent import ABSENT_SECONDS, AbsentTurns
from wireglot.gateway.state.reasoning.vault import ReasoningVault
from wireglot_core.ir.content import Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop

PLAIN = ToolCall("5b1d07aa", "look_up", '{"city":"Ulm"}')
HISTORY: dict[str, Any] = chat(ASKED, called(PLAIN), result(PLAIN))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def memory_with(clock: Clock, vault: WatchedVault | None = None) -> Memory:
    memory = Memory(vault)
    memory.turns = ReasoningVault(memory.vault, SETTINGS, None, absent=AbsentTurns(clock))
    return memory


def test_the_store_is_asked_once_for_a_turn_that_it_does_not_hold() -> None:
    memory = memory_with(Clock())
    memory.ask(HISTORY)
    memory.ask(HISTORY)
    assert len(memory.vault.asked) == 1


def test_of_a_conversation_that_goes_on_only_the_new_turn_is_asked_for() -> None:
    memory = memory_with(Clock())
    memory.ask(HISTORY)
    memory.ask(chat(ASKED, called(PLAIN), result(PLAIN), called(CALL), result(CALL)))
    first, second = memory.vault.asked
    assert not set(first) & set(second)


def test_a_turn_of_another_caller_session_or_conversation_is_asked_for() -> None:
    memory = memory_with(Clock())
    memory.ask(HISTORY)
    memory.ask(HISTORY, caller="another")
    memory.ask(HISTORY, session="another")
    memory.ask(chat({"role": "user", "content": "And tomorrow?"}, called(PLAIN), result(PLAIN)))
    assert len(memory.vault.asked) == 4


def test_after_a_minute_the_store_is_asked_again() -> None:
    """Another process may have kept the same words, said again."""
    clock = Clock()
    memory = memory_with(clock)
    memory.ask(HISTORY)
    clock.now += ABSENT_SECONDS - 1
    memory.ask(HISTORY)
    assert len(memory.vault.asked) == 1
    clock.now += 1
    memory.ask(HISTORY)
    assert len(memory.vault.asked) == 2


def test_what_is_kept_after_it_was_absent_is_found() -> None:
    """The same words said again, this time with state."""
    memory = memory_with(Clock())
    said_again = chat(ASKED, called(CALL), result(CALL))
    assert not memory.ask(said_again).rewritten
    memory.answer(memory.ask(chat(ASKED)), CALL)
    assert last_answer(memory.ask(said_again).request().messages) == (CALL,)


def test_what_is_kept_while_the_store_is_asked_is_not_known_to_be_absent() -> None:
    absent = AbsentTurns(Clock())
    moment = absent.moment
    absent.forget("one")
    absent.learn("one", "", [(b"before", b"turn")], moment, 0)
    assert not absent.known("one", 0)("", b"before", b"turn")


@pytest.mark.parametrize(("asked", "now", "known"), [(0, 0, True), (1, 2, False), (None, None, False)])
def test_what_is_kept_by_another_process_leaves_a_mark(
    asked: int | None, now: int | None, known: bool
) -> None:
    absent = AbsentTurns(Clock())
    absent.learn("one", "", [(b"before", b"turn")], absent.moment, asked)
    assert absent.known("one", now)("", b"before", b"turn") is known


def test_under_another_mark_what_was_known_before_is_forgotten() -> None:
    absent = AbsentTurns(Clock())
    absent.learn("one", "", [(b"before", b"turn")], absent.moment, 1)
    absent.learn("one", "", [(b"before", b"other turn")], absent.moment, 2)
    known = absent.known("one", 2)
    assert known("", b"before", b"other turn")
    assert not known("", b"before", b"turn")


def test_a_store_that_is_down_is_known_to_hold_nothing_by_nobody() -> None:
    memory = memory_with(Clock())
    memory.vault.down = True
    memory.ask(HISTORY)
    memory.vault.down = False
    memory.ask(HISTORY)
    assert len(memory.vault.asked) == 1


def test_a_turn_that_was_found_is_asked_for_every_time() -> None:
    memory = memory_with(Clock())
    memory.answer(memory.ask(chat(ASKED)), CALL)
    for _ in range(2):
        assert memory.ask(chat(ASKED, called(CALL), result(CALL))).rewritten
    assert len(memory.vault.asked) == 2


def test_an_answer_without_state_does_not_hide_one_that_said_the_same_with_state() -> None:
    """Asked twice, answered with the same words, and only the first time with a signature."""
    memory = memory_with(Clock())
    memory.answer(memory.ask(chat(ASKED)), CALL)
    again = memory.ask(chat(ASKED))
    unsigned = msgspec.structs.replace(CALL, signature=None)
    assert not again.ending.wants(Response("r", "m", (unsigned,), Stop("tool_calls")))
    assert memory.ask(chat(ASKED, called(CALL), result(CALL))).rewritten


def test_an_answer_with_state_is_asked_for_by_the_one_that_did_not_see_it() -> None:
    """Two processes: one answers, the other is asked next."""
    vault = WatchedVault()
    one, other = memory_with(Clock(), vault), memory_with(Clock(), vault)
    other.answer(other.ask(chat(ASKED)), Text("Rain."))
    one.answer(one.ask(chat(ASKED)), CALL)
    assert other.ask(chat(ASKED, called(CALL), result(CALL))).rewritten


def test_other_secrets_make_other_names() -> None:
    memory = memory_with(Clock())
    memory.ask(HISTORY)
    server = msgspec.structs.replace(SETTINGS.server, secret=Secret("another", "test"))
    memory.turns.adopt(msgspec.structs.replace(SETTINGS, server=server))
    memory.ask(HISTORY)
    assert len(memory.vault.asked) == 2


def test_no_more_is_known_than_there_is_room_for() -> None:
    absent = AbsentTurns(Clock(), most=3)
    for number in range(10):
        absent.learn(f"caller {number % 2}", "", [(b"before", b"%d" % number)], absent.moment, 0)
    known = [n for n in range(10) if absent.known(f"caller {n % 2}", 0)("", b"before", b"%d" % n)]
    assert 1 <= len(known) <= 3
    assert 9 in known
