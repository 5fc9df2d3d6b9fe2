"""The vault's own rules: for how long, whose, under which names, and when not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.gateway.state.reasoning_kit import MODELS, SETTINGS, Memory, WatchedVault, signed
from tests.gateway.state.test_reasoning import ASKED, CALL, called, chat, last_answer, result
from tests.tiers import rows
from wireglot.gateway.request.worker_thread import LARGE_BYTES
from wireglot.gateway.settings import Keep, Secret
from wireglot.gateway.state.reasoning.parts import GIVEN_UP, minter_of, unpack
from wireglot.gateway.state.reasoning.vault import (
    _comes_bare,
    _may_lack,
    _rename_results,
)
from wireglot.gateway.targets.routing import lost_state
from wireglot.stores.base import StoreDown
from wireglot_core.ir.content import (
    Foreign,
    Message,
    Origin,
    Part,
    Reasoning,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.outcome import Candidate, Response, Stop

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
    memory.turns.store_health.trouble = "down"
    memory.answer(asked, CALL)
    assert vault.seconds == []
    assert asked.record.notes == ["reasoning not kept: the store is not available"]


def test_turns_that_were_refused_are_given_up_under_every_secret() -> None:
    vault = Timed()
    memory = Memory(vault)
    memory.answer(memory.ask(chat(ASKED)), CALL)
    again = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(again.request().messages) == (CALL,)
    again.attempt.stripped = True
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
    first.attempt.stripped = True
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
    assert minter_of(own, Reasoning("hm")) == Origin("openai-chat", "kimi", "kimi-k2.6")
    assert minter_of(drops, Reasoning("hm")) is None
    assert minter_of(gemini, Reasoning("hm")) is None


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
    (reported,) = job.request().messages[-1].content
    assert isinstance(reported, ToolResult)
    assert reported.call_id == call.id
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
    assert len(job.ending.keepers) == 1, "the next answer may be kept all the same"


def test_a_pointer_that_another_version_wrote_leads_nowhere() -> None:
    class Strange(Timed):
        async def recall(self, caller: str, names: Any) -> dict[str, bytes]:
            return {names[-1]: b"\xff not a name"} if len(names) > 1 else {}

    job = Memory(Strange()).ask(chat(ASKED, called(CALL), result(CALL)))
    assert not job.rewritten


# --- what a client does not see because it did not ask for it


SAID: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "What is it?"}]}
OPENAI = Origin("openai-responses", "openai", "gpt-5.5")
THOUGHT = Reasoning("Hm.", Signature("ZW5j", OPENAI, "rs_1"))


@rows(
    ("dialect", "body", "model", "withholds"),
    [
        ("anthropic", SAID, "openai", True),
        ("anthropic", {**SAID, "thinking": {"type": "disabled"}}, "openai", True),
        ("anthropic", {**SAID, "output_config": {"effort": "high"}}, "openai", True),
        ("anthropic", {**SAID, "thinking": {"type": "adaptive"}}, "openai", False),
        ("anthropic", {**SAID, "thinking": {"type": "between_tools"}}, "openai", False),
        ("anthropic", {**SAID, "thinking": {"type": "enabled", "budget_tokens": 1024}}, "kimi", False),
        ("anthropic", SAID, "anthropic", False),
        ("openai-chat", SAID, "openai", False),
    ],
)
def test_reasoning_is_withheld_from_clients_of_other_dialects_that_did_not_ask(
    dialect: str, body: dict[str, Any], model: str, withholds: bool
) -> None:
    assert Memory().ask(body, dialect, MODELS[model]).withholds_reasoning is withholds


@pytest.mark.parametrize(
    ("config", "withholds"),
    [
        ({}, True),
        ({"thinkingConfig": {}}, True),
        ({"thinkingConfig": {"includeThoughts": False}}, True),
        ({"thinkingConfig": {"includeThoughts": True}}, False),
    ],
)
def test_a_gemini_client_asks_for_thoughts_by_name(config: dict[str, Any], withholds: bool) -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": config}
    assert Memory().ask(body, "gemini", MODELS["openai"]).withholds_reasoning is withholds


def test_nothing_is_withheld_where_the_store_is_known_to_be_down() -> None:
    memory = Memory()
    memory.turns.store_health.trouble = "down"
    assert not memory.ask(SAID, "anthropic", MODELS["openai"]).withholds_reasoning


def test_nothing_is_withheld_where_the_store_does_not_answer() -> None:
    memory = Memory()
    memory.vault.down = True
    said = [*SAID["messages"], {"role": "assistant", "content": "That."}, *SAID["messages"]]
    assert not memory.ask({**SAID, "messages": said}, "anthropic", MODELS["openai"]).withholds_reasoning


@pytest.mark.parametrize(
    ("shared", "withholds"), [("", False), ("redis://localhost", True)], ids=["apart", "shared"]
)
def test_nothing_is_withheld_where_each_worker_has_a_memory_of_its_own(shared: str, withholds: bool) -> None:
    now = msgspec.structs.replace(
        SETTINGS,
        server=msgspec.structs.replace(SETTINGS.server, workers=2),
        store=msgspec.structs.replace(SETTINGS.store, shared=Secret(shared, "test")),
    )
    assert Memory(now=now).ask(SAID, "anthropic", MODELS["openai"]).withholds_reasoning is withholds


@pytest.mark.parametrize("size", [1, 1 << 21], ids=["store down", "too large"])
def test_state_that_was_neither_shown_nor_kept_is_reported(size: int) -> None:
    memory = Memory()
    asked = memory.ask(SAID, "anthropic", MODELS["openai"])
    asked.attempt.minter = OPENAI
    memory.vault.down = size == 1
    memory.answer(asked, THOUGHT, Text("a" * size))
    assert [(loss.path, loss.feature, loss.action) for loss in asked.attempt.losses] == [
        ("$.content", "reasoning.signature", "dropped")
    ]


@pytest.mark.parametrize("thoughts", [(), (THOUGHT,)], ids=["alone", "behind a thought"])
def test_parts_of_hosted_tools_that_were_withheld_are_put_back(thoughts: tuple[Part, ...]) -> None:
    """OpenAI refuses a thought without the search that it led to."""
    memory = Memory()
    search = Foreign("openai-responses", "web_search_call", {"id": "ws_1"})
    memory.answer(memory.ask(SAID, "anthropic", MODELS["openai"]), *thoughts, search, Text("Found."))
    said = [*SAID["messages"], {"role": "assistant", "content": "Found."}, *SAID["messages"]]
    job = memory.ask({**SAID, "messages": said}, "anthropic", MODELS["openai"])
    assert job.request().messages[1].content == (*thoughts, search, Text("Found."))


# --- whom it concerns


def about(family: str = "a", **reasoning: Any) -> Any:
    """As much of a surface as the vault looks at."""
    reported = {
        "returns": "some",
        "drops_thoughts": False,
        "bare_signatures": False,
        "placeholders": (),
        **reasoning,
    }
    return SimpleNamespace(family=family, name=f"{family}-1", reasoning=SimpleNamespace(**reported))


def upstream(family: str, reasoning: str = "own", catalog: str = "known", signs: bool = False) -> Any:
    """As much of an upstream as decides what its clients lose."""
    limits = SimpleNamespace(reasoning=reasoning, call_signatures=signs)
    return SimpleNamespace(surface=about(family), limits=limits, catalog=bool(catalog))


def reached(client: Any, other: Any) -> Any:
    """The target that it is for a client."""
    lost = lost_state(client, other.surface, other.limits, catalog=other.catalog)
    return SimpleNamespace(name="p/m", lost=lost)


@rows(
    ("client", "hides", "target", "expected"),
    [
        (about(returns="all"), False, upstream("b"), False),
        (about(returns="all", drops_thoughts=True), False, upstream("a", "text"), False),
        (about(returns="all"), True, upstream("a"), False),
        (about(), False, upstream("b"), True),
        (about(), False, upstream("b", "text"), True),
        (about(), False, upstream("a"), False),
        (about(), False, upstream("a", "text"), False),
        (about(), True, upstream("a"), True),
        (about(drops_thoughts=True), False, upstream("a"), False),
        (about(drops_thoughts=True), False, upstream("a", "text"), True),
        (about(drops_thoughts=True), False, upstream("a", catalog=""), True),
        (about(drops_thoughts=True), False, upstream("a", "signed", catalog=""), False),
        (about(), False, upstream("a", catalog=""), False),
        (about(placeholders=(b"none",)), False, upstream("a", "signed", signs=True), True),
        (about(placeholders=(b"none",)), False, upstream("a", "signed"), False),
    ],
)
def test_state_is_lost_between_families_and_where_a_client_drops_or_does_not_see_it(
    client: Any, hides: bool, target: Any, expected: bool
) -> None:
    asking: Any = SimpleNamespace(hides_state=hides, targets=(reached(client, target),))
    vault = Memory().turns
    applies = client.reasoning.returns != "all"  # to others the step is not applied
    assert (applies and vault.concerns(asking)) is expected


@rows(
    ("body", "differs", "targets", "lacks"),
    [
        (b"{}", False, (upstream("a", signs=True),), False),
        (b'{"signature": "none"}', False, (upstream("a", signs=True),), True),
        (b"{}", True, (upstream("a", signs=True),), True),
        (b"{}", False, (upstream("a", signs=True), upstream("b")), True),
        (b"{}", False, (upstream("a"),), True),
        (b"{}", False, (upstream("a", catalog=""),), False),
        (b'{"role": "model"}', False, (upstream("a", catalog=""),), True),
    ],
)
def test_in_its_own_dialect_state_is_looked_for_where_the_body_shows_that_it_may_be_lost(
    body: bytes, differs: bool, targets: tuple[Any, ...], lacks: bool
) -> None:
    replaces = all(target.limits.call_signatures for target in targets)
    marks = {"placeholders": (b"none",)} if replaces else {"drops_thoughts": True, "turn_marks": (b"model",)}
    job = SimpleNamespace(surface=about(**marks), body=body)
    there = tuple(reached(job.surface, target) for target in targets)
    asking: Any = SimpleNamespace(job=job, hides_state=False, differs=differs, targets=there)
    assert _may_lack(asking) is lacks


@rows(
    ("bare", "families", "carries"),
    [
        (True, ("b",), True),
        (True, ("a", "b"), True),
        (True, ("a",), False),
        (False, ("b",), False),
        (False, ("a",), False),
    ],
)
def test_signatures_come_back_bare_only_where_another_dialect_is_asked(
    bare: bool, families: tuple[str, ...], carries: bool
) -> None:
    client = about(bare_signatures=bare)
    asking: Any = SimpleNamespace(targets=tuple(reached(client, upstream(each)) for each in families))
    assert _comes_bare(asking) is carries


def test_large_conversations_are_read_and_repaired_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    async def noted(work: Any) -> Any:
        threads.append(True)
        return work()

    monkeypatch.setattr("wireglot.gateway.state.reasoning.vault.run_in_thread", noted)
    for letters, times in ((10, 0), (LARGE_BYTES, 2)):
        threads.clear()
        memory = Memory()
        asked = {"role": "user", "content": "x" * letters}
        memory.answer(memory.ask(chat(asked)), CALL)
        threads.clear()
        job = memory.ask(chat(asked, called(CALL), result(CALL)))
        assert last_answer(job.request().messages) == (CALL,)
        assert len(threads) == times


def test_thoughts_of_a_model_that_takes_any_text_are_kept_as_they_are() -> None:
    """Nobody needs to have written them; elsewhere they are their writer's."""

    def kept(reasoning: str) -> Any:
        vault = Timed()
        memory = Memory(vault)
        job = memory.ask(chat(ASKED), model=MODELS["kimi"])
        target = job.targets[0]
        limits = msgspec.structs.replace(target.limits, reasoning=reasoning)
        job.targets = (msgspec.structs.replace(target, limits=limits),)
        job.record.routed(target.provider.name, target.model, target.dialect)
        asyncio.run(job.ending.keep(Response("r", "m", (Reasoning("I look."), CALL), Stop("end"))))
        (body,) = (body for body in vault.entries.values() if len(body) > 32)
        return unpack(body)

    assert kept("text") == (Reasoning("I look."), CALL)
    assert kept("own") == (Reasoning("I look.", minter=Origin("openai-chat", "kimi", "kimi-k2.6")), CALL)


def test_given_up_is_under_the_names_of_old_secrets_too() -> None:
    vault = Timed()
    old, new = SETTINGS.server.secret, Secret("of today", "test")
    server = msgspec.structs.replace(SETTINGS.server, secret=new, old_secrets=(old,))
    memory = Memory(vault)
    memory.answer(memory.ask(chat(ASKED)), CALL)
    later = Memory(vault, msgspec.structs.replace(SETTINGS, server=server))
    again = later.ask(chat(ASKED, called(CALL), result(CALL)))
    assert again.rewritten
    again.attempt.stripped = True
    vault.entries.clear()
    later.answer(again, Text("Rain."))
    assert list(vault.entries.values()) == [GIVEN_UP] * 2
    assert not later.ask(chat(ASKED, called(CALL), result(CALL))).rewritten


def test_an_exact_turn_is_taken_before_what_a_loose_name_points_to() -> None:
    """The same call behind two conversations, the second of which was kept last."""
    memory = Memory()
    other = {"role": "user", "content": "And in Bonn?"}
    first, second = CALL, msgspec.structs.replace(CALL, signature=signed("b3RoZXI="))
    memory.answer(memory.ask(chat(ASKED)), first)
    memory.answer(memory.ask(chat(other)), second)
    memory.vault.asked.clear()
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert last_answer(job.request().messages) == (first,)
    assert len(memory.vault.asked) == 1, "what is there is not asked for again"


def test_a_message_that_gets_its_state_back_stays_the_models() -> None:
    memory = Memory()
    memory.answer(memory.ask(chat(ASKED)), CALL)
    job = memory.ask(chat(ASKED, called(CALL), result(CALL)))
    assert [message.role for message in job.request().messages] == ["system", "user", "assistant", "user"]
