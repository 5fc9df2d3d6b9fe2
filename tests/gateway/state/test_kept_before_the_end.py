"""What must be kept of an answer before its end goes out: our own troubles with it are not the provider's, and a
client that leaves does not take half of it along."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from proofs.lab.link import Link, Reply
from tests.waiting import until, wait_until
from wireglot.stores import StoreDown
from wireglot.testing.live_gateway import LiveGateway


def ask(live: LiveGateway, path: str, body: Any, headers: dict[str, str] | None = None) -> Reply:
    async def one() -> Reply:
        link = Link(live.port)
        try:
            return await link.ask("POST" if body is not None else "GET", path, body, headers)
        finally:
            link.close()

    return asyncio.run(one())


def test_a_store_that_fails_is_no_failure_of_the_provider() -> None:
    """FAULTS 93: requests that need no state go on."""
    with LiveGateway() as live:
        documents: Any = live.process.state.engine.documents

        async def full(*_: Any, **__: Any) -> bool:
            raise StoreDown("the disk is full")

        documents.put = full
        for _ in range(8):
            body = {"model": "demo-gemini", "input": "hi", "store": True, "stream": True}
            reply = ask(live, "/v1/responses", body)
            assert reply.status == 503 or b'"store":false' in reply.body.rpartition(b"data: ")[2]
        plain = ask(live, "/v1/responses", {"model": "demo-gemini", "input": "hi", "store": False})
        assert plain.status == 200
        unsaid = ask(live, "/v1/responses", {"model": "demo-gemini", "input": "hi"})
        assert (unsaid.status, unsaid.json()["store"]) == (200, False)


def test_a_client_that_leaves_while_its_turn_is_kept_leaves_a_whole_turn() -> None:
    with LiveGateway() as live:
        documents: Any = live.process.state.engine.documents
        put, reached, gate = documents.put, [], asyncio.Event()

        async def slow(found: Any, **how: Any) -> bool:
            reached.append(True)
            await gate.wait()
            return bool(await put(found, **how))

        async def go_on() -> None:
            gate.set()

        documents.put = slow
        body = {"model": "demo", "messages": [{"role": "user", "content": "remember me"}], "stream": True}

        async def leave() -> None:
            content = msgspec.json.encode(body)
            reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
            head = (
                "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-wireglot-session: trip\r\n"
                f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
            )
            writer.write(head.encode() + content)
            await reader.readuntil(b"chat.completion.chunk")
            await until(lambda: reached)
            writer.close()

        asyncio.run(leave())
        wait_until(lambda: not live.process.server.connections)
        live.call(go_on())

        def items() -> list[Any]:
            found: list[Any] = ask(live, "/v1/sessions/trip", None).json().get("items", [])
            return found

        wait_until(lambda: len(items()) >= 2)
        assert [item["role"] for item in items()] == ["user", "assistant"]


def test_an_answer_does_not_wait_for_a_vault_that_is_known_to_be_away() -> None:
    """FAULTS 94: what needs no state goes on at once."""
    with LiveGateway() as live:
        state: Any = live.process.state
        asked: list[Any] = []

        async def stuck(*values: Any) -> None:
            asked.append(values)

        state.vault.keep = stuck
        body = {"model": "demo-gemini", "messages": [{"role": "user", "content": "[[demo:think]] hi"}]}
        assert ask(live, "/v1/chat/completions", body).status == 200
        assert len(asked) == 1  # there is something to keep
        state.store_health.trouble = "the database is locked"
        assert ask(live, "/v1/chat/completions", body).status == 200
        assert len(asked) == 1
        assert any("kept" in note for line in live.wait_log(2) for note in line.get("notes", ()))
