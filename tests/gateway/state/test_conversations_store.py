"""Conversations in the store: numbers, names and times of their items."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from wireglot.gateway.settings import Keep, Settings, StoreSettings
from wireglot.gateway.state.conversations import store as conversations
from wireglot.gateway.state.conversations.store import ConversationStore
from wireglot.gateway.state.stored_forms import KeptConversation, KeptItem
from wireglot.stores import StoreDown
from wireglot.stores.memory.engine import MemoryDocuments
from wireglot_core.dialects.context import Context

CONTEXT = Context(seed="test")
ID = "mine"


def wired(id: str, text: str = "x") -> KeptItem:
    content = [{"type": "input_text", "text": text}]
    return KeptItem(id, {"type": "message", "id": id, "role": "user", "content": content})


class Watched(MemoryDocuments):
    """Does something else just before it does what it is asked, once."""

    def __init__(self) -> None:
        super().__init__(lambda: int(vars(conversations)["now_ms"]()))
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name.startswith("_") or name == "before" or name not in self.before:
            return value
        first = self.before.pop(name)

        async def called(*given: Any, **named: Any) -> Any:
            await first()
            return await value(*given, **named)

        return called


def watched(store: ConversationStore) -> Watched:
    assert isinstance(store._documents, Watched)
    return store._documents


async def away() -> None:
    raise StoreDown("away for a test")


def left(store: ConversationStore) -> list[str]:
    """All items that lie in the store, whether or not anybody can see them."""
    return [
        document.id.partition("\x1f")[2]
        for document in watched(store).everything()
        if document.kind == "item"
    ]


def run(body: Callable[[ConversationStore, KeptConversation], Awaitable[None]], days: float = 0.0) -> None:
    async def prepared() -> None:
        settings = Settings(store=StoreSettings(keep=Keep(conversations_days=days)))
        store = ConversationStore(Watched(), settings)
        kept = KeptConversation(ID, 1, "part-1")
        assert await store.begin("alice", kept, [], CONTEXT)
        assert not await store.begin("alice", replace(kept, part="part-2"), [wired("msg_0")], CONTEXT)
        assert await ids(store) == []
        await body(store, kept)

    asyncio.run(prepared())


async def ids(store: ConversationStore) -> list[str]:
    kept = await store.find("alice", ID)
    assert kept is not None
    return [placed.kept.id for placed in await store.items("alice", kept)]


def test_an_id_that_is_taken_or_missing_is_exchanged_for_a_new_one() -> None:
    """Providers choose the ids of items, and some choose the same ones again and again."""

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1", "first")], CONTEXT)
        nameless = KeptItem("", {"type": "message", "role": "user", "content": []})
        again = await store.append("alice", kept, [wired("msg_1", "second"), nameless], Context(seed="two"))
        assert again is not None
        held = await ids(store)
        assert held[0] == "msg_1"
        assert len(set(held)) == 3
        assert [item.item["id"] for item in again if item.item] == held[1:]

    run(body)


def test_what_is_exchanged_is_all_that_is_left() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1"), wired("msg_2")], CONTEXT)
        await store.exchange("alice", kept, [wired("msg_3")], CONTEXT)
        assert await ids(store) == ["msg_3"]
        found = await store.find("alice", ID)
        assert found is not None
        assert await store.item("alice", found, "msg_1") is None
        await store.delete_item("alice", found, "msg_3")
        assert await ids(store) == []
        await store.append("alice", kept, [wired("msg_4")], CONTEXT)  # numbered from one again
        assert await ids(store) == ["msg_4"]

    run(body)


def test_what_was_deleted_meanwhile_stays_deleted() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        assert await store.delete("alice", ID)
        assert await store.append("alice", kept, [wired("msg_1")], CONTEXT) is None
        await store.exchange("alice", kept, [wired("msg_1")], CONTEXT)
        assert await store.find("alice", ID) is None
        assert not await store.delete("alice", ID)

    run(body)


def test_a_whole_history_that_could_not_be_written_changes_nothing() -> None:
    """FAULTS 93: the client is informed, and asks again."""

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1"), wired("msg_2")], CONTEXT)
        for step in ("put", "touch"):
            watched(store).before[step] = away
            with pytest.raises(StoreDown):
                await store.exchange("alice", kept, [wired("msg_3")], CONTEXT)
            assert await ids(store) == ["msg_1", "msg_2"]
        for step in ("delete_pieces", "delete"):  # it is written by then; the old one is still to be removed
            watched(store).before[step] = away
            await store.exchange("alice", kept, [wired("msg_3"), wired(step)], CONTEXT)
            assert await ids(store) == ["msg_3", step]
            assert watched(store).before == {}
        await store.exchange("alice", kept, [wired("msg_3")], CONTEXT)
        assert await ids(store) == left(store) == ["msg_3"]

    run(body)


@pytest.mark.parametrize("step", ["pieces", "put", "delete_pieces"])
def test_of_two_whole_histories_at_once_one_holds_and_nothing_is_left_of_the_other(step: str) -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        theirs = [wired("b_1"), wired("b_2")]
        watched(store).before[step] = lambda: store.exchange("alice", kept, theirs, CONTEXT)
        await store.exchange("alice", kept, [wired("a_1"), wired("a_2"), wired("a_3")], CONTEXT)
        assert await ids(store) in (["a_1", "a_2", "a_3"], ["b_1", "b_2"])
        assert sorted(left(store)) == await ids(store)
        assert watched(store).before == {}

    run(body)


def test_a_turn_that_was_added_is_not_reported_as_lost() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        async def then_away() -> None:
            watched(store).before["get"] = away

        watched(store).before["append"] = then_away
        assert await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        assert watched(store).before == {}
        assert await ids(store) == ["msg_1"]

    run(body)


def test_a_turn_that_is_added_during_an_exchange_is_not_lost() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        watched(store).before["append"] = lambda: store.exchange("alice", kept, [wired("msg_2")], CONTEXT)
        assert await store.append("alice", kept, [wired("msg_3")], CONTEXT)
        assert await ids(store) == left(store) == ["msg_2", "msg_3"]

    run(body)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_added_to_a_conversation_while_it_is_deleted_goes_with_it(whole: bool, again: bool) -> None:
    """T8: also where another one of its name has begun by then."""

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        other = replace(kept, part="part-2")

        async def deleted() -> None:
            assert await store.delete("alice", ID)
            if again:
                assert await store.begin("alice", other, [wired("msg_new")], CONTEXT)

        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        watched(store).before["put" if whole else "append"] = deleted
        if whole:
            await store.exchange("alice", kept, [wired("secret")], CONTEXT)
        else:
            assert await store.append("alice", kept, [wired("secret")], CONTEXT) is None
        assert left(store) == (["msg_new"] if again else [])
        assert (await store.find("alice", ID) is not None) == again
        await store.keep_turn("alice", kept, [wired("secret")], CONTEXT, begins=False, whole=whole)
        assert left(store) == (["msg_new"] if again else [])

    run(body)


@pytest.mark.parametrize("step", ["delete_pieces", "pieces"])
def test_a_deletion_that_failed_half_way_shows_nothing_and_can_be_asked_for_again(step: str) -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        watched(store).before[step] = away
        with pytest.raises(StoreDown):
            await store.delete("alice", ID)
        assert await store.find("alice", ID) is None
        assert left(store) == ["msg_1"]
        assert await store.delete("alice", ID)
        assert list(watched(store).everything()) == []
        assert not await store.delete("alice", ID)

    run(body)


def test_what_an_earlier_conversation_of_its_name_left_goes_with_the_next_one() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        watched(store).before["delete_pieces"] = away
        with pytest.raises(StoreDown):
            await store.delete("alice", ID)
        assert await store.begin("alice", replace(kept, part="part-2"), [wired("msg_2")], CONTEXT)
        assert await ids(store) == ["msg_2"]
        assert await store.delete("alice", ID)
        assert list(watched(store).everything()) == []

    run(body)


def test_a_conversation_that_two_begin_at_once_has_the_turns_of_both() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        mine = replace(kept, part="part-2")  # as made before the other one was there
        await store.keep_turn("alice", mine, [wired("msg_1")], CONTEXT, begins=True)
        assert await ids(store) == ["msg_1"]
        await store.keep_turn("alice", mine, [wired("msg_2")], CONTEXT, begins=True, whole=True)
        assert await ids(store) == ["msg_2"]

    run(body)


@pytest.mark.parametrize("length", [200, 201, 5000])
def test_ids_may_have_any_length_and_names_in_the_store_have_not(length: int) -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        long = "msg_" + "x" * (length - 4)
        await store.append("alice", kept, [wired(long), wired(long), wired(long[:-1] + "y")], CONTEXT)
        found = await ids(store)
        assert (found[0], found[2]) == (long, long[:-1] + "y")
        assert found[1] != long
        placed = await store.item("alice", kept, long)
        assert placed is not None
        assert placed.kept == wired(long)
        assert max(len(document.id) for document in watched(store).everything()) < 300
        assert await store.delete_item("alice", kept, long)
        assert await ids(store) == found[1:]

    run(body)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock = [int(time.time() * 1000)]
    monkeypatch.setattr(conversations, "now_ms", lambda: clock[0])
    return clock


def test_items_are_given_new_time_only_when_a_good_part_of_the_old_is_over(clock: list[int]) -> None:
    day = 24 * 3600 * 1000

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        begun = clock[0]
        for hours in (0, 12, 30):
            clock[0] = begun + hours * 3600 * 1000
            await store.append("alice", kept, [wired(f"msg_{hours}")], CONTEXT)
            found = await store.seen("alice", ID)
            assert found is not None
            assert found.until == begun + (10 * day if hours < 24 else 10 * day + hours * 3600 * 1000)
            assert {document.expires for document in watched(store).everything()} == {found.until}
            if hours == 12:
                await store.exchange("alice", kept, [wired("msg_12")], CONTEXT)

    run(body, days=10)


def test_a_conversation_never_outlives_its_items(clock: list[int]) -> None:
    """Half of one would be answered as if it were all of it."""
    day = 24 * 3600 * 1000

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("day-0")], CONTEXT)
        clock[0] += 28 * day
        assert await store.update("alice", kept, {"topic": "x"})
        clock[0] += day
        await store.append("alice", kept, [wired("day-29")], CONTEXT)
        clock[0] += 2 * day
        assert await ids(store) == ["day-0", "day-29"]
        assert len({document.expires for document in watched(store).everything()}) == 1

    run(body, days=30)


def test_a_turn_that_is_added_does_not_undo_a_change_of_the_metadata() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        for turn, step in enumerate(("get", "touch", "append", "pieces", "put")):
            reported = {"turn": str(turn)}
            watched(store).before[step] = partial(
                lambda reported: store.update("alice", kept, reported), reported
            )
            await store.append("alice", kept, [wired(f"msg_{turn}")], CONTEXT)
            await store.exchange("alice", kept, [wired(f"msg_{turn}")], CONTEXT)
            assert await store.metadata("alice", [kept]) == {ID: reported}

    run(body)


def test_a_change_of_the_metadata_brings_nothing_back() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        await store.append("alice", kept, [wired("msg_1")], CONTEXT)
        watched(store).before["put"] = lambda: store.exchange("alice", kept, [wired("msg_2")], CONTEXT)
        assert await store.update("alice", kept, {"topic": "x"})
        assert await ids(store) == ["msg_2"]
        other = replace(kept, part="part-2")

        async def begun_again() -> None:
            await store.delete("alice", ID)
            await store.begin("alice", other, [wired("msg_3")], CONTEXT, {"topic": "new"})

        watched(store).before["put"] = begun_again
        assert not await store.update("alice", kept, {"topic": "y"})
        assert await ids(store) == ["msg_3"]
        assert await store.metadata("alice", [other]) == {ID: {"topic": "new"}}
        assert await store.delete("alice", ID)
        assert list(watched(store).everything()) == []

    run(body)
