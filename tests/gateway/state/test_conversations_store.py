"""Conversations in the store: numbers, names and times of their items."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from wireglot.dialects.base import Context
from wireglot.gateway.settings import Keep, Settings, StoreSettings
from wireglot.gateway.state.conversations import ConversationStore
from wireglot.gateway.state.items import as_wire, items_of, turns_of
from wireglot.gateway.state.kept import KeptConversation, KeptItem
from wireglot.ir.content import Media, Message, Origin, Reasoning, Signature, Text, ToolCall, ToolResult
from wireglot.stores.memory import MemoryEngine

CONTEXT = Context(seed="test")
ID = "mine"

SIGNED = Message(
    "assistant",
    (
        Reasoning("thought", Signature("c2ln", Origin("anthropic", "a", "m"))),
        Text("one"),
        Media("image", "image/png", data="aGk="),
        ToolCall("call_1", "get_weather", "{}", signature=Signature("c2ln", Origin("gemini", "g", "m"))),
        ToolCall("call_2", "get_time", "{}"),
    ),
)
RESULTS = Message(
    "user", (ToolResult("call_1", (Text("18"),)), ToolResult("call_2", (Text("noon"),)), Text("so?"))
)


def wired(id: str, text: str = "x") -> KeptItem:
    content = [{"type": "input_text", "text": text}]
    return KeptItem(id, {"type": "message", "id": id, "role": "user", "content": content})


def run(body: Callable[[ConversationStore, KeptConversation], Awaitable[None]], days: float = 0.0) -> None:
    async def prepared() -> None:
        settings = Settings(store=StoreSettings(keep=Keep(conversations_days=days)))
        store = ConversationStore(MemoryEngine().documents, settings)
        kept = KeptConversation(ID, 1)
        assert await store.create("alice", kept)
        assert not await store.create("alice", kept)
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


def test_items_are_given_new_time_only_when_a_good_part_of_the_old_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [int(time.time() * 1000)]
    monkeypatch.setattr("wireglot.gateway.state.conversations._now", lambda: clock[0])
    day = 24 * 3600 * 1000

    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        begun = clock[0]
        for hours in (0, 12, 30):
            clock[0] = begun + hours * 3600 * 1000
            await store.append("alice", kept, [wired(f"msg_{hours}")], CONTEXT)
            found = await store.seen("alice", ID)
            assert found is not None
            assert found.until == begun + (10 * day if hours < 24 else 10 * day + hours * 3600 * 1000)
            pieces = await store._documents.pieces("alice", "item", ID)
            assert {piece.expires for piece in pieces} == {found.until}

    run(body, days=10)


def test_a_turn_that_is_added_does_not_undo_a_change_of_the_metadata() -> None:
    async def body(store: ConversationStore, kept: KeptConversation) -> None:
        for turn in range(20):
            changed = msgspec.structs.replace(kept, metadata={"turn": str(turn)})
            await asyncio.gather(
                store.append("alice", kept, [wired(f"msg_{turn}")], CONTEXT), store.update("alice", changed)
            )
            found = await store.find("alice", ID)
            assert found is not None
            assert found.metadata == {"turn": str(turn)}

    run(body)


@pytest.mark.parametrize("message", [SIGNED, RESULTS])
def test_a_message_is_the_same_after_it_was_cut_into_items(message: Message) -> None:
    items = items_of([Message("user", (Text("before"),)), message], CONTEXT)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(items), type=list[KeptItem])
    assert turns_of(kept, CONTEXT, "openai-chat") == ([Message("user", (Text("before"),)), message], ())


def test_items_of_any_dialect_are_shown_as_openai_shows_them() -> None:
    shown = [as_wire(item, CONTEXT) for item in items_of([SIGNED, RESULTS], CONTEXT)]
    kinds = [item["type"] for item in shown]
    assert kinds == [
        "reasoning",
        "message",
        "image_generation_call",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ]
    assert len({item["id"] for item in shown}) == len(shown)
    assert shown[1]["content"][0]["text"] == "one"
    assert (shown[3]["call_id"], shown[5]["output"], shown[7]["content"][0]["text"]) == (
        "call_1",
        "18",
        "so?",
    )
