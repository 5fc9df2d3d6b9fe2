"""Callers for whom nothing is kept: what they say is not read for the vault, and nothing kept is missed."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.kit import own, settings
from tests.gateway.state.doubles import Gemini
from tests.gateway.state.reasoning_kit import Memory, WatchedVault, signed
from tests.gateway.state.test_reasoning import ASKED, CALL, called, chat, last_answer, result
from tests.gateway.state.test_reasoning_live import MODELS, Talk, assert_all_came_back, gateway, gemini_at
from tests.processes import run_forked
from wireglot.gateway.request.worker_thread import LARGE_BYTES
from wireglot.gateway.state.reasoning import names
from wireglot.gateway.state.reasoning import vault as room
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.sqlite import SqliteEngine
from wireglot_core.ir.content import Part, Reasoning, Text, ToolCall
from wireglot_core.ir.outcome import Response, Stop

PLAIN = ToolCall("5b1d07aa", "look_up", '{"city":"Ulm"}')
HISTORY: dict[str, Any] = chat(ASKED, called(PLAIN), result(PLAIN))


class Knowing(Memory):
    """One gateway, whose store tells who has nothing."""

    def __init__(self, engine: Any = None) -> None:
        self.engine = engine or MemoryEngine()
        vault = WatchedVault()
        vault.behind = self.engine.vault
        super().__init__(vault)
        self.turns.lacks = self.engine.lacks


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages were read, each time."""
    counts: list[int] = []
    read = names.read_history

    def counted(messages: Any, memory: Any = None) -> Any:
        counts.append(len(messages))
        return read(messages, memory)

    monkeypatch.setattr(room, "read_history", counted)
    return counts


def test_of_a_caller_who_has_nothing_the_conversation_is_read_once_and_the_store_asked_once(
    reads: list[int],
) -> None:
    memory = Knowing()
    for number in range(5):
        other = {"role": "user", "content": f"question {number}"}
        asked = memory.ask(chat(other, called(PLAIN), result(PLAIN)))
        assert not asked.ending.wants(Response("r", "m", (Text("Rain."),), Stop("end")))
    assert len(reads) == len(memory.vault.asked) == 1


def test_its_first_answer_with_state_is_kept_under_the_same_names(reads: list[int]) -> None:
    kept = []
    for memory in (Knowing(), Memory()):
        memory.ask(HISTORY)
        reads.clear()
        asked = memory.ask(HISTORY)
        assert len(reads) == (0 if isinstance(memory, Knowing) else 1)
        memory.answer(asked, CALL)
        assert len(reads) == 1
        kept += memory.vault.kept
    assert kept[0] == kept[1]


def test_from_its_first_answer_with_state_on_everything_is_looked_for() -> None:
    memory = Knowing()
    memory.ask(HISTORY)
    memory.answer(memory.ask(HISTORY), CALL)
    again = chat(ASKED, called(PLAIN), result(PLAIN), called(CALL), result(CALL))
    assert last_answer(memory.ask(again).request().messages) == (CALL,)
    # Nor is anybody else's said to be kept.
    assert not memory.ask(again, caller="another").rewritten


def test_several_answers_of_one_request_are_read_for_once(reads: list[int]) -> None:
    memory = Knowing()
    memory.ask(HISTORY)
    reads.clear()
    asked = memory.ask(HISTORY)
    target = asked.targets[0]
    asked.record.routed(target.provider.name, target.model, target.dialect)
    response = Response("r", "m", (CALL,), Stop("end"))
    for _ in range(2):
        asyncio.run(asked.ending.keep(response))
    assert reads == [4]


def test_what_was_put_into_the_request_later_does_not_count(reads: list[int]) -> None:
    """Names are made of what the client sent: that is what it sends again."""
    memory = Knowing()
    memory.ask(HISTORY)
    asked = memory.ask(HISTORY)
    request = asked.request()
    asked.rewrite(msgspec.structs.replace(request, messages=request.messages[:1]))
    memory.answer(asked, CALL)
    again = chat(ASKED, called(PLAIN), result(PLAIN), called(CALL), result(CALL))
    memory.vault.asked.clear()
    assert last_answer(memory.ask(again).request().messages) == (CALL,)
    assert len(memory.vault.asked) == 1, "by its exact name"


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_an_answer_of_an_unlisted_server_is_read_only_where_it_begins_with_reasoning(whole: bool) -> None:
    """It passes as it came, and so does its request, which is not decoded."""
    memory = Knowing()
    memory.settings = settings(own("mine", "openai-chat"))
    memory.ask(HISTORY, model="mine/m")  # by which it is known that there is nothing
    asked = memory.ask(HISTORY, model="mine/m")
    assert asked.ending.holds(asked.targets[0])
    assert not asked.ending.expects(b'{"content": "Hi", "usage": {"reasoning_tokens": 0}}', whole=whole)
    assert asked.ending.expects(b'{"reasoning_content": "hm"}', whole=whole)
    assert asked._request is None
    memory.answer(asked, Text("Nothing to keep."))
    assert asked._request is None
    memory.answer(asked, Reasoning("hm"), Text("Found."))
    again = chat(*HISTORY["messages"], {"role": "assistant", "content": "Found."})
    brought = last_answer(memory.ask(again, model="mine/m").request().messages)
    assert [part.text for part in brought if isinstance(part, Text | Reasoning)] == ["hm", "Found."]


def test_what_is_kept_for_its_own_dialect_is_kept_apart_and_for_its_own_server() -> None:
    """Equal words of others neither replace it nor are given to it."""
    memory = Memory()
    memory.settings = settings(
        own("mine", "openai-chat"), own("other", "openai-chat"), own("theirs", "anthropic")
    )
    again = chat(*HISTORY["messages"], {"role": "assistant", "content": "Found."})
    for provider, family in (("mine", "openai-chat"), ("theirs", "anthropic")):
        signature = signed("s", family, provider) if family == "anthropic" else None
        memory.answer(
            memory.ask(HISTORY, model=f"{provider}/m"), Reasoning(provider, signature), Text("Found.")
        )
    for provider, brought in (("mine", ["mine"]), ("theirs", ["theirs"]), ("other", [])):
        asked = memory.ask(again, model=f"{provider}/m")
        content = last_answer(asked.request().messages)
        assert [part.text for part in content if isinstance(part, Reasoning)] == brought
        assert asked.rewritten is bool(brought)


def test_a_large_conversation_is_read_beside_the_loop_at_the_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[bool] = []

    async def noted(work: Any) -> Any:
        threads.append(True)
        return work()

    monkeypatch.setattr("wireglot.gateway.state.reasoning.vault.run_in_thread", noted)
    memory = Knowing()
    large = {"role": "user", "content": "x" * LARGE_BYTES}
    memory.ask(HISTORY)
    asked = memory.ask(chat(large, called(PLAIN), result(PLAIN)))
    assert len(threads) == 1
    memory.answer(asked, CALL)
    assert len(threads) == 2


def test_a_request_that_only_its_vendor_can_read_is_left_alone() -> None:
    memory = Knowing()
    memory.ask(HISTORY)
    asked = memory.ask({"messages": "none"})
    assert (asked.rewritten, asked.ending.keepers) == (False, [])


def test_a_vault_apart_from_the_store_is_asked_as_ever(tmp_path: Path) -> None:
    """Redis: what the store knows of itself says nothing of it."""
    with gateway("", tmp_path) as one:
        state: Any = one.process.state
        assert state.reasoning.lacks == state.engine.lacks
    apart = room.ReasoningVault(WatchedVault(), one.process.state.settings, None)
    assert not apart.lacks("one")


# --- several processes


class Talking:
    """A client's conversation, of which it keeps texts and calls."""

    def __init__(self, number: int) -> None:
        self.caller = f"caller {number % 2}"
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": f"conversation {number}"}]

    def turn(self, memory: Memory, *content: Part) -> list[tuple[Part, ...]]:
        """The turns before this one, as the upstream got them."""
        asked = memory.ask(chat(*self.messages), caller=self.caller)
        memory.answer(asked, *content)
        calls = [part for part in content if isinstance(part, ToolCall)]
        texts = [part.text for part in content if isinstance(part, Text)]
        if calls:
            self.messages += [called(*calls), *map(result, calls)]
        else:
            said = {"role": "assistant", "content": "".join(texts)}
            self.messages += [said, {"role": "user", "content": f"go on, {len(self.messages)}"}]
        return [message.content for message in asked.request().messages if message.role == "assistant"]


@pytest.mark.sampled(each=4)
@pytest.mark.parametrize("seed", range(12))
def test_three_processes_on_one_file_find_all_that_one_finds_that_always_asks(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)

    async def opened() -> list[SqliteEngine]:
        return [await SqliteEngine.open(str(tmp_path / "s.db")) for _ in range(3)]

    engines = asyncio.run(opened())
    fleet = [Knowing(engine) for engine in engines]
    always = Memory()
    known = 0
    ours, theirs = ([Talking(number) for number in range(4)] for _ in range(2))
    for step in range(30):
        at, one = chance.randrange(4), chance.choice(fleet)
        content: tuple[Part, ...] = (Text(f"A plain answer without any state, the {step}th."),)
        if step > 9 and chance.random() < step / 40:
            content = (msgspec.structs.replace(CALL, id=f"call-{step}-of-{seed}"),)
        known += one.engine.lacks(ours[at].caller)
        assert ours[at].turn(one, *content) == theirs[at].turn(always, *content)
    assert known, "somebody was spared a look"
    for engine in engines:
        asyncio.run(engine.close())


def test_two_gateways_that_know_of_nothing_find_what_either_keeps(tmp_path: Path) -> None:
    with Gemini() as double:
        toml = gemini_at(double, "key") + MODELS
        with gateway(toml, tmp_path) as one, gateway(toml, tmp_path) as other:
            for each in (one, other):
                _learn(each)
            talk = Talk(one.url)
            for number in range(8):
                talk.client.url = (one, other)[number % 2].url
                talk.turn(streaming=number % 3 == 0)
        assert_all_came_back(double)


def test_what_is_imported_while_a_gateway_runs_is_found(tmp_path: Path) -> None:
    with Gemini() as double:
        toml = gemini_at(double, "key") + MODELS
        with gateway(toml, tmp_path / "old") as old:
            talk = Talk(old.url)
            for _ in range(4):
                talk.turn(streaming=False)
        secret = next((tmp_path / "old").rglob("secret"))
        new = tmp_path / "new" / secret.parent.relative_to(tmp_path / "old")
        new.mkdir(parents=True, mode=0o700)
        (new / secret.name).write_bytes(secret.read_bytes())
        (new / secret.name).chmod(0o600)
        with gateway(toml, tmp_path / "new") as running:
            _learn(running)
            exported = _cli(tmp_path / "old", "export")
            _cli(tmp_path / "new", "import", exported)
            talk.client.url = running.url
            for _ in range(4):
                talk.turn(streaming=False)
        assert_all_came_back(double)


def _learn(one: Any) -> None:
    """It looks for turns of nobody's, and knows then that its caller has nothing."""
    state: Any = one.process.state
    assert one.call(state.vault.recall("default", ["nothing"])) == {}
    assert state.reasoning.lacks("default")


def _cli(folder: Path, command: str, given: bytes = b"") -> bytes:
    config = folder / "cli.toml"
    config.touch(mode=0o600)
    done = run_forked(
        [sys.executable, "-m", "wireglot.cli", "store", "--config", str(config), command],
        input=given,
        capture_output=True,
        env={**os.environ, "XDG_DATA_HOME": str(folder)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    written: bytes = done.stdout
    return written
