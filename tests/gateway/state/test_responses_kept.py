"""What is stored over time: after a restart, past its time, on disk, and while the store is away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import openai
import pytest
from msgspec.structs import force_setattr, replace

from tests.gateway.state.responses_kit import ALICE, TOOLS, Stage
from wireglot.gateway.settings import Settings
from wireglot.gateway.state.responses.store import ResponseStore
from wireglot.gateway.state.stored_forms import KeptResponse
from wireglot.stores import StoreDown
from wireglot.stores.memory import MemoryEngine
from wireglot.stores.records import Document
from wireglot.testing.live_gateway import BASES, LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.dialects.registry import dialect


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """FAULTS 95: responses, chains, conversations and sessions go on where they were."""
    with Stage("anthropic", folder=tmp_path) as stage:
        first = stage.alice.responses.create(model="m1", input="before-restart")
        conversation = stage.alice.conversations.create(metadata={"topic": "x"})
        stage.alice.responses.create(model="m1", input="in-conversation", conversation=conversation.id)
        body = {
            "model": "m1",
            "messages": [{"role": "user", "content": "in-session"}],
            "conversation": "mine",
        }
        assert stage.ask("POST", "/v1/chat/completions", body)[0] == 200
        stage.restart()
        assert stage.alice.responses.retrieve(first.id).to_dict() == first.to_dict()
        stage.alice.responses.create(model="m1", input="then", previous_response_id=first.id)
        assert "before-restart" in stage.sent_text()
        assert stage.alice.conversations.retrieve(conversation.id).metadata == {"topic": "x"}
        stage.alice.responses.create(model="m1", input="then", conversation=conversation.id)
        assert "in-conversation" in stage.sent_text()
        assert stage.ask("POST", "/v1/chat/completions", body)[0] == 200
        assert stage.sent_text().count("in-session") > 1


def test_nothing_of_a_body_lies_on_disk_in_plain(tmp_path: Path) -> None:
    """T8: what is stored is sealed with the gateway's secret."""
    nonce = "nonce-0f7a9b31c2"
    with Stage("openai-chat", folder=tmp_path) as stage:
        made = stage.alice.responses.create(
            model="m1", input=f"[[demo:echo]] {nonce}", instructions=f"{nonce} rule", metadata={"k": nonce}
        )
        conversation = stage.alice.conversations.create(metadata={"k": nonce})
        stage.alice.responses.create(model="m1", input=nonce, conversation=conversation.id)
        messages = [{"role": "user", "content": nonce}]
        body = {"model": "m1", "messages": messages, "conversation": "plain-name"}
        assert stage.ask("POST", "/v1/chat/completions", body)[0] == 200
        assert nonce in stage.alice.responses.retrieve(made.id).output_text
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("wireglot.db") for path in written)
    assert not [path.name for path in written if nonce.encode() in path.read_bytes()]


def test_what_is_past_its_time_is_gone() -> None:
    with Stage("gemini", "[store.keep]\nresponses_days = 2\nconversations_days = 3\n") as stage:
        made = stage.alice.responses.create(model="m1", input="x")
        conversation = stage.alice.conversations.create()
        documents = stage.gateway.process.state.engine.documents
        for kind, days in (("response", 2), ("reference", 2), ("conversation", 3)):
            kept = stage.stored(kind)
            assert {round((document.expires - document.created) / 86_400_000) for document in kept} == {days}
            over = [replace(document, expires=document.created - 1) for document in kept]
            stage.gateway.call(documents.put(over))
        with pytest.raises(openai.NotFoundError):
            stage.alice.responses.retrieve(made.id)
        with pytest.raises(openai.BadRequestError):
            stage.alice.responses.create(model="m1", input="x", previous_response_id=made.id)
        with pytest.raises(openai.NotFoundError):
            stage.alice.conversations.retrieve(conversation.id)


def test_a_provider_of_the_same_dialect_may_keep_its_responses_itself() -> None:
    with Stage("openai-responses", '[store]\nresponses = "upstream"\n') as stage:
        made = stage.alice.responses.create(model="m1", input="x", previous_response_id="resp_theirs")
        assert stage.sent()["previous_response_id"] == "resp_theirs"
        assert "store" not in stage.sent()
        assert not stage.stored("response")
        assert made.id
    with Stage("anthropic", '[store]\nresponses = "upstream"\n') as stage:
        made = stage.alice.responses.create(model="m1", input="first-word")
        stage.alice.responses.create(model="m1", input="x", previous_response_id=made.id)
        assert "first-word" in stage.sent_text()


def test_reasoning_follows_a_chain_through_a_change_of_provider_and_back() -> None:
    """What one provider signed is not shown to another, and is there again when the first one is asked."""
    with ScriptedUpstream() as upstream:
        toml = "".join(
            f'[providers.{name}]\ndialect = "{name}"\nbase_url = "{upstream.url}{BASES[name]}"\napi_key = "k-{name}"\n'
            for name in ("anthropic", "openai-responses")
        )
        with LiveGateway(toml) as gateway:
            client = openai.OpenAI(
                base_url=f"{gateway.url}/v1",
                api_key=ALICE,
                max_retries=0,
                http_client=openai.DefaultHttpxClient(verify=False),
            )
            previous: dict[str, Any] = {}
            text: Any = "[[demo:strict]] [[demo:think]] [[demo:tool get_weather]] hi"
            asked: list[tuple[str, str]] = []
            for name in ("anthropic", "openai-responses", "anthropic", "openai-responses", "anthropic"):
                response = client.responses.create(
                    model=f"{name}/m1", input=text, tools=TOOLS, reasoning={"effort": "low"}, **previous
                )
                asked.append((name, upstream.requests[-1].body.decode()))
                text = [
                    {"type": "function_call_output", "call_id": item.call_id, "output": "18 degrees"}
                    for item in response.output
                    if item.type == "function_call"
                ]
                text.append({"role": "user", "content": "[[demo:think]] [[demo:tool get_weather]] again"})
                previous = {"previous_response_id": response.id}
            marks = {"anthropic": '"signature":', "openai-responses": '"encrypted_content":'}
            assert [sent.count(marks[name]) for name, sent in asked] == [0, 0, 1, 1, 2]


class Away:
    """A store that can be made unavailable."""

    def __init__(self, behind: Any) -> None:
        self.behind = behind
        self.reads = self.writes = True

    def __getattr__(self, name: str) -> Any:
        there = self.reads if name in ("get", "pieces", "recent") else self.writes
        method = getattr(self.behind, name)

        async def called(*arguments: Any, **more: Any) -> Any:
            if not there:
                raise StoreDown("away for a test")
            return await method(*arguments, **more)

        return called


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Stage("openai-chat") as stage:
        held = stage.gateway.process.state
        store = Away(held.responses._documents)
        monkeypatch.setattr(held.responses, "_documents", store)
        monkeypatch.setattr(held.conversations, "_documents", store)

        async def check() -> None:
            if not store.writes:
                raise StoreDown("away for a test")

        monkeypatch.setattr(stage.gateway.process.state.engine, "check", check)
        yield stage, store


def test_without_the_store_what_needs_it_is_refused_and_all_else_goes_on(away: Any) -> None:
    """FAULTS 93"""
    stage, store = away
    first = stage.alice.responses.create(model="m1", input="x")
    store.reads = store.writes = False
    store_health = stage.gateway.process.state.store_health
    store_health.suspect(StoreDown("away for a test"))  # as the next look at it finds
    raw = stage.alice.responses.with_raw_response.create(model="m1", input="hello")
    served = raw.parse()
    assert (served.store, served.status) == (False, "completed")
    assert "storage" in raw.headers["x-wireglot-losses"]
    assert stage.gateway.wait_log(1, "not stored")
    assert stage.alice.responses.create(model="m1", input="hello", store=False).status == "completed"
    asked = len(stage.upstream.requests)
    refused: tuple[dict[str, Any], ...] = (
        {"store": True},
        {"previous_response_id": first.id},
        {"conversation": "mine"},
    )
    for more in refused:
        with pytest.raises(openai.InternalServerError) as caught:
            stage.alice.responses.create(model="m1", input="x", **more)
        assert (caught.value.status_code, caught.value.code) == (503, "storage_unavailable")
    with pytest.raises(openai.InternalServerError):
        stage.alice.responses.retrieve(first.id)
    assert len(stage.upstream.requests) == asked
    store.reads = store.writes = True
    store_health.trouble = ""
    assert stage.alice.responses.retrieve(first.id).id == first.id


@pytest.mark.parametrize("streaming", [False, True])
def test_an_answer_that_could_not_be_stored_is_not_reported_as_stored(away: Any, streaming: bool) -> None:
    """[A7] FAULTS 93: durable before it is acknowledged, and delivered where it is paid for."""
    stage, store = away
    store.writes = False
    asked: dict[str, Any] = {"model": "m1", "input": "hello", "store": True}
    if not streaming:
        assert stage.alice.responses.create(**asked).store is False
        return
    events = list(stage.alice.responses.create(**asked, stream=True))
    assert "response.output_text.delta" in [event.type for event in events]
    assert (events[-1].type, events[-1].response.store) == ("response.completed", False)


@pytest.mark.parametrize("begins", [False, True])
def test_a_turn_that_its_conversation_could_not_take_leaves_no_response(away: Any, begins: bool) -> None:
    """FAULTS 93: what the client was informed is not stored is not there, neither as a whole nor in half."""
    stage, store = away
    body = {"model": "m1", "input": "hello", "conversation": "mine"}
    if not begins:
        assert stage.ask("POST", "/v1/responses", body)[0] == 200
    kinds = ("response", "reference", "conversation", "item")
    before = {kind: {document.id for document in stage.stored(kind)} for kind in kinds}
    real, puts = store.behind.put, []

    async def put(documents: Any, *, new: bool = False) -> bool:
        puts.append(len(documents))
        if len(puts) == 2:
            raise StoreDown("away for a test")
        return bool(await real(documents, new=new))

    async def append(documents: Any) -> int:
        raise StoreDown("away for a test")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(store.behind, "put", put)
        patched.setattr(store.behind, "append", append)
        status, answer = stage.ask("POST", "/v1/responses", body)
    assert (status, answer["status"], answer["store"]) == (200, "completed", False)
    assert len(puts) == (2 if begins else 1)
    assert {kind: {document.id for document in stage.stored(kind)} for kind in kinds} == before


def test_a_whole_history_costs_one_reference_for_all_its_items() -> None:
    """Besides those of the answer, and of items whose ids are the client's own. Any of them can be referred to."""
    with Stage("openai-chat") as stage:
        items = [{"role": "user", "content": f"word-{number}"} for number in range(300)]
        named = {"type": "message", "id": "msg_mine", "role": "user", "content": "word-mine"}
        made = stage.alice.responses.create(model="m1", input=[*items, named])
        assert len(stage.stored("reference")) == 1 + 1 + len(made.output)
        listed = stage.alice.responses.input_items.list(made.id, order="asc", limit=100).data
        assert len({item.id for item in listed}) == 100
        for id, word in ((listed[77].id, "word-77"), ("msg_mine", "word-mine")):
            reference = {"type": "item_reference", "id": id}
            stage.alice.responses.create(model="m1", input=[reference], store=False)
            assert word in stage.sent_text()
            assert "word-5" not in stage.sent_text()
        with pytest.raises(openai.NotFoundError):
            stage.bob.responses.create(model="m1", input=[{"type": "item_reference", "id": listed[77].id}])
        stage.alice.responses.delete(made.id)
        assert stage.stored("reference") == []


@pytest.mark.parametrize("length", [201, 4000])
def test_items_with_long_ids_are_kept_and_found(length: int) -> None:
    """Some providers' ids are long, and clients send them back."""
    with Stage("openai-chat") as stage:
        id = "msg_" + "x" * length
        item = {"type": "message", "id": id, "role": "user", "content": "long-named"}
        made = stage.alice.responses.create(model="m1", input=[item], conversation="mine")
        reference = [{"type": "item_reference", "id": id}]
        stage.alice.responses.create(model="m1", input=reference)
        assert "long-named" in stage.sent_text()
        stage.alice.responses.create(model="m1", input=reference, conversation="mine")
        listed = stage.alice.responses.input_items.list(made.id)
        assert [entry.id for entry in listed] == [id]
        for kind in ("reference", "item"):
            assert max(len(document.id) for document in stage.stored(kind)) < 300


def test_a_request_that_is_stored_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Stage("openai-chat") as stage:
        speaks, parsed = dialect("openai-responses"), []
        real = speaks.parse_request

        def parse_request(body: Any, context: Any) -> Any:
            parsed.append(body)
            return real(body, context)

        store = Away(stage.gateway.process.state.responses._documents)
        monkeypatch.setattr(stage.gateway.process.state.responses, "_documents", store)
        store.reads = False  # nor is there anything to look up
        force_setattr(speaks, "parse_request", parse_request)
        try:
            made = stage.alice.responses.create(
                model="m1", input="hi", store=True, metadata={"k": "v"}, user="u-1", truncation="disabled"
            )
        finally:
            force_setattr(speaks, "parse_request", real)
        assert made.store is True
        assert len(parsed) == 1


def test_the_reference_of_an_item_goes_with_its_response() -> None:
    asyncio.run(_keeps_references())


async def _keeps_references() -> None:
    engine = MemoryEngine()
    store = ResponseStore(engine.documents, Settings())
    item = {"type": "message", "id": "msg_1", "role": "user", "content": []}
    await store.save("alice", "resp_1", KeptResponse({"output": []}, [item]))
    await store.save("alice", "resp_2", KeptResponse({"output": [item]}))
    assert await store.items("alice", ["msg_1"]) == {"msg_1": item}
    assert await store.items("bob", ["msg_1"]) == {}
    assert await store.delete("alice", "resp_1")
    assert await store.items("alice", ["msg_1"]) == {"msg_1": item}  # the other one still has it
    assert not await store.replace("alice", "resp_1", KeptResponse({"output": []}))
    assert await store.delete("alice", "resp_2")
    assert await store.items("alice", ["msg_1"]) == {}
    left: list[Document] = await engine.documents.recent("alice", "reference", limit=9)
    assert left == []


def test_kimi_gets_its_reasoning_back_by_the_chain_alone() -> None:
    """mapping 7: Kimi refuses a call that comes back without the reasoning before it."""
    with ScriptedUpstream() as upstream:
        toml = f'[providers.kimi]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "k-0123456789"\n'
        with LiveGateway(toml) as gateway:
            client: Any = openai.OpenAI(
                base_url=f"{gateway.url}/v1",
                api_key="x",
                max_retries=0,
                http_client=openai.DefaultHttpxClient(verify=False),
            )
            asked: dict[str, Any] = {"model": "kimi/kimi-k3", "tools": TOOLS, "reasoning": {"effort": "high"}}
            first = client.responses.create(**asked, input="[[demo:think]] [[demo:tool get_weather]] hi")
            (call,) = [item for item in first.output if item.type == "function_call"]
            thought = "".join(part.text for part in first.output[0].summary)
            assert thought
            result = {"type": "function_call_output", "call_id": call.call_id, "output": "18 degrees"}
            client.responses.create(**asked, input=[result], previous_response_id=first.id)
            (turn,) = [m for m in upstream.requests[-1].json["messages"] if m["role"] == "assistant"]
            assert turn["reasoning_content"] == thought
