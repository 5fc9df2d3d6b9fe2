"""Many at once on one conversation: whatever the order, turns stay whole and nothing is left behind."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from wireglot.gateway.settings import Settings
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.stored_forms import KeptConversation, KeptItem, new_part
from wireglot.stores.memory.engine import MemoryDocuments
from wireglot_core.dialects.context import Context

_WORKERS, _TURNS, _ITEMS = 5, 6, 3


class Slow(MemoryDocuments):
    """Others get a word in before and after each step."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(lambda: 1)
        self._chance = chance

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if not asyncio.iscoroutinefunction(value):
            return value

        async def called(*given: Any, **named: Any) -> Any:
            await self._wait()
            answer = await value(*given, **named)
            await self._wait()
            return answer

        return called

    # Not a coroutine function: those are slowed down.
    def _wait(self) -> Any:
        turns = self._chance.randrange(4)

        async def wait() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        return wait()


class Storm:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.documents = Slow(self.chance)
        self.store = ConversationStore(self.documents, Settings())

    async def run(self) -> None:
        await asyncio.gather(*(self._work(number) for number in range(_WORKERS)))
        held = await self._held()
        items = [document for document in self.documents.everything() if document.kind == "item"]
        parts = [document for document in self.documents.everything() if document.kind == "part"]
        assert len(items) == len(held)
        notes = [document for document in self.documents.everything() if document.kind == "metadata"]
        assert len(notes) <= len(parts)
        assert len(parts) == (1 if await self.store.find("alice", "mine") else 0)

    async def _work(self, worker: int) -> None:
        for turn in range(_TURNS):
            name, wish = f"{worker}-{turn}", self.chance.random()
            found = await self.store.find("alice", "mine")
            kept = found or KeptConversation("mine", 1, new_part())
            if wish < 0.1:
                await self.store.delete("alice", "mine")
            elif wish < 0.2:
                await self.store.update("alice", kept, {"turn": name})
            else:
                whole = wish < 0.5
                mark = "whole" if whole else "added"
                items = [KeptItem(f"{mark}-{name}.{number}", {}) for number in range(_ITEMS)]
                await self.store.keep_turn(
                    "alice", kept, items, Context(seed=name), begins=found is None, whole=whole
                )
            await self._held()

    async def _held(self) -> list[str]:
        kept = await self.store.find("alice", "mine")
        if kept is None:
            return []
        held = [placed.kept.id for placed in await self.store.items("alice", kept)]
        if not held:  # nobody takes items away
            now = await self.store.find("alice", "mine")
            assert now is None or now.part != kept.part
        turns = [id.partition(".")[0] for id in held]
        for place in range(0, len(held), _ITEMS):
            assert turns[place : place + _ITEMS] == [turns[place]] * _ITEMS
        assert len(set(held)) == len(held)
        assert not any(turn.startswith("whole") for turn in turns[_ITEMS:])  # it stands alone, or first
        return held


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(0, 200, 50))
def test_whatever_comes_at_once_turns_stay_whole_and_nothing_is_left_behind(seed: int) -> None:
    """C41: added, exchanged, changed, deleted and begun again, in two hundred orders."""
    for number in range(seed, seed + 50):
        asyncio.run(Storm(number).run())
