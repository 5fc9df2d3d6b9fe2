"""The vault's own rules: for how long, whose, under which names, and when not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.gateway.state.reasoning_kit import MODELS, SETTINGS, Memory, WatchedVault, signed
from tests.gateway.state.test_reasoning import ASKED, CALL, called, chat, last_answer, result
from wireglot.gateway.settings import Keep
from wireglot.gateway.state.reasoning.parts import GIVEN_UP
from wireglot.gateway.state.reasoning.vault import _minter, _rename_results
from wireglot.ir.content import Message, Origin, Reasoning, Text, ToolCall, ToolResult
from wireglot.ir.outcome import Candidate, Response, Stop
from wireglot.stores.base import StoreDown

DAY = 86_400


class Timed(WatchedVault):
    """Tells for how long things are kept, and holds them."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[int] = []
        self.entries: dict[str, bytes] = {}

    async def keep(self, caller: str, entries: Mapping[str, bytes], seconds: int) -> None:
        self.seconds.append(seconds)
        self.entries.update(entries)
        await super().keep(caller, entries, seconds)


@pytest.mark.parametrize(
    ("days", "seconds"), [(30.0, 30 * DAY), (0.5, DAY // 2), (1.0, DAY), (0.0, 3650 * DAY)]
)
def test_turns_are_kept_as_long_as_the_settings_say(days: float, seconds: int) -> None:
    """Ten years where they say for ever: every entry of a vault ends."""
    store = msgspec.structs.replace(SETTINGS.store, keep=Keep(vault_days=days))
    vault = Timed()
    memory = Memory(vault, msgspec.structs.replace(SETTINGS, store=store))
    memory.answer(memory.ask(chat(ASKED)), CALL)
    assert vault.seconds == [seconds]


def test_a_turn_is_kept_once_and_its_other_names_point_to_it() -> None:
    vault = Timed()
    memory = Memory(vault)
    memory.answer(memory.ask(chat(ASKED)), CALL)
    bodies = {name: body for name, body in vault.entries.items() if len(body) > 32}
    ((exact, _),) = bodies.items()
    assert [body.decode() for name, body in vault.entries.items() if name != exact] == [exact, exact]


def test_a_store_that_is_known_to_be_away_is_not_asked_to_keep() -> None:
    vault = Timed()
    memory = Memory(vault)
    asked = memory.ask(chat(ASKED))
    memory.turns.away = lambda: True
    memory.answer(asked, CALL)
    assert vault.seconds == []
    assert asked.record.notes == ["reasoning not kept: the store is not available"]


def test_turns_that_were_refused_are_given_up_under_every_secret() -> None:
    vault = Timed()
    memory = Memory(vault)
    memory.answer(memory.ask(chat(ASKED)), CALL)
    again = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(again.request().messages) == (CALL,)
    again.stripped = True
    vault.entries.clear()
    memory.answer(again, Text("Rain."))
    assert list(vault.entries.values()) == [GIVEN_UP]
    once_more = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert not once_more.rewritten


def test_what_was_not_refused_is_not_given_up() -> None:
    vault = Timed()
    memory = Memory(vault)
    memory.answer(memory.ask(chat(ASKED)), CALL)
    again = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    vault.entries.clear()
    memory.answer(again, Text("Rain."))
    assert vault.entries == {}
    # Nor where nothing had been put back.
    first = memory.ask(chat(ASKED))
    first.stripped = True
    memory.answer(first, Text("Rain."))
    assert vault.entries == {}


def test_old_state_that_is_to_be_given_up_is_waited_for_also_where_the_model_does_not_think() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    again = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    target = again.targets[0]
    plain = msgspec.structs.replace(target.limits, thinking="none", call_signatures=False)
    assert again.ending.holds(msgspec.structs.replace(target, limits=plain))


@pytest.mark.parametrize(
    ("thinking", "signs", "holds"), [("none", True, True), ("level", False, True), ("none", False, False)]
)
def test_who_thinks_or_signs_leaves_something_to_keep(thinking: Any, signs: bool, holds: bool) -> None:
    job = Memory().ask(chat(ASKED))
    target = job.targets[0]
    limits = msgspec.structs.replace(target.limits, thinking=thinking, call_signatures=signs)
    assert job.ending.holds(msgspec.structs.replace(target, limits=limits)) is holds


def test_only_answers_are_remembered() -> None:
    memory = Memory()
    job = memory.ask(chat(ASKED))
    assert memory.turns.concerns(job)
    for operation in ("count", "models"):
        asked = msgspec.structs.replace(job.job.asked, operation=operation)
        other = memory.ask(chat(ASKED))
        other.job = msgspec.structs.replace(other.job, asked=asked)  # type: ignore[misc]
        assert not memory.turns.concerns(other)


def test_results_are_renamed_up_to_the_next_answer() -> None:
    def results(*ids: str) -> Message:
        return Message("user", (Text("a"), *(ToolResult(id) for id in ids)), "ann")

    answer = Message("assistant", (ToolCall("old", "f", "{}"),))
    messages = [
        answer,
        results("old", "x"),
        Message("system", (Text("s"),)),
        results("old"),
        answer,
        results("old"),
    ]
    _rename_results(messages, 1, {"old": "new"})
    assert messages == [
        answer,
        results("new", "x"),
        Message("system", (Text("s"),)),
        results("new"),
        answer,
        results("old"),
    ]
    before = list(messages)
    _rename_results(messages, 1, {})
    assert all(one is other for one, other in zip(messages, before, strict=True))


def test_thoughts_that_nobody_signed_are_their_writers_if_it_takes_them_back() -> None:
    memory = Memory()
    (kimi,) = memory.ask(chat(ASKED), model=MODELS["kimi"]).targets[:1]
    (gemini,) = memory.ask(chat(ASKED)).targets[:1]
    own = msgspec.structs.replace(kimi, limits=msgspec.structs.replace(kimi.limits, reasoning="own"))
    drops = msgspec.structs.replace(kimi, limits=msgspec.structs.replace(kimi.limits, reasoning="drop"))
    assert _minter(own, Reasoning("hm")) == Origin("openai-chat", "kimi", "kimi-k2.6")
    assert _minter(drops, Reasoning("hm")) is None
    assert _minter(gemini, Reasoning("hm")) is None


def test_the_target_that_answered_says_what_is_worth_keeping() -> None:
    """Of several, the one in the record; where that is none of them, the first."""
    memory = Memory()
    job = memory.ask(chat(ASKED), model=MODELS["kimi"])
    kimi = job.targets[0]
    takes_nothing = msgspec.structs.replace(
        kimi, model="other", limits=msgspec.structs.replace(kimi.limits, reasoning="drop")
    )
    content = (Reasoning("I look."), ToolCall("functions.f:0", "f", "{}"))

    def kept(answered: str, *targets: Any) -> int:
        vault = Timed()
        memory = Memory(vault)
        job = memory.ask(chat(ASKED), model=MODELS["kimi"])
        job.targets = targets
        job.record.routed(kimi.provider.name, answered, kimi.dialect)
        asyncio.run(job.ending.keep(Response("r", answered, content, Stop("end"))))
        return len(vault.seconds)

    assert kept(kimi.model, kimi, takes_nothing) == 1
    assert kept("other", kimi, takes_nothing) == 0
    assert kept("unknown", kimi, takes_nothing) == 1
    assert kept("unknown", takes_nothing, kimi) == 0


def test_each_of_several_answers_is_kept_if_it_has_state() -> None:
    vault = Timed()
    memory = Memory(vault)
    job = memory.ask(chat(ASKED))
    target = job.targets[0]
    job.record.routed(target.provider.name, target.model, target.dialect)
    others = (
        Candidate((Text("plain"),), Stop("end")),
        Candidate((Text("It will rain in Ulm all day.", signature=signed("eA==")),), Stop("end")),
    )
    asyncio.run(job.ending.keep(Response("r", "m", (CALL,), Stop("end"), others=others)))
    assert len(vault.seconds) == 2


def test_a_turn_is_found_by_its_place_where_its_ids_are_gone_and_its_results_follow() -> None:
    memory = Memory()
    call = ToolCall("functions.look_up:0", "look_up", "{}", signature=signed("c2ln"))
    memory.answer(memory.ask(chat(ASKED)), call)
    renamed = msgspec.structs.replace(call, id="made_anew_by_the_client")
    job = memory.ask(chat(ASKED, called(renamed), result(renamed)))
    assert last_answer(job.request().messages) == (call,)
    (told,) = job.request().messages[-1].content
    assert isinstance(told, ToolResult)
    assert told.call_id == call.id
    # Two looks: one for all names of all turns, one for what those point to.
    assert [len(names) for names in memory.vault.asked] == [3, 1]


def test_a_request_that_only_its_vendor_can_read_is_left_alone() -> None:
    memory = Memory()
    job = memory.ask({"messages": [{"role": "user", "content": [{"type": "no such part"}]}]})
    assert not job.rewritten


def test_a_store_that_fails_to_recall_is_noted() -> None:
    class Forgetful(Timed):
        async def recall(self, caller: str, names: Any) -> dict[str, bytes]:
            raise StoreDown("away")

    memory = Memory(Forgetful())
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert job.record.notes == ["reasoning not recalled: the store is not available"]
    assert job.ending.keeps == 1, "the next answer may be kept all the same"


def test_a_pointer_that_another_version_wrote_leads_nowhere() -> None:
    class Strange(Timed):
        async def recall(self, caller: str, names: Any) -> dict[str, bytes]:
            return {names[-1]: b"\xff not a name"} if len(names) > 1 else {}

    job = Memory(Strange()).ask(chat(ASKED, called(CALL), result(CALL)))
    assert not job.rewritten
