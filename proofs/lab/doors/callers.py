"""Two callers: what the gateway remembers for one of them must not exist for the other.

All that Ann says, and all that she is sent, carries her marks; Bob knows every id of hers. Not one of her
marks may come to him, nor stand in what a provider is asked for him; and all of hers must stay.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from proofs.lab.doors.knocking import Book, Said, asked
from proofs.lab.doors.stage import ADMIN, ANN, BOB, KEYS, METRICS, Stage, staged
from proofs.lab.marking_upstream import MARK, SPEAKERS, mark
from proofs.lab.questions import CLIENTS, question, whole
from proofs.served import keys_table
from wireglot_core.dialects.registry import DialectName

_NUMBER: Final = {ANN: 1, BOB: 2}
_ROUNDS: Final = 4
_SESSION: Final = "a-name-that-both-use"
_TOOL: Final = {"name": "look", "parameters": {"type": "object"}}
_SIGNED: Final = "signed"


class Asker:
    """One of the two. What comes back is searched for the other's marks."""

    def __init__(self, stage: Stage, name: str, book: Book) -> None:
        self._stage = stage
        self._key = KEYS[name]
        self._number = _NUMBER[name]
        self._book = book
        self._said = count(1)

    def mark(self, way: str = "well") -> str:
        return mark(self._number, next(self._said), way)

    async def ask(self, method: str, path: str, document: Any = None, **headers: str) -> Said:
        sent = b"" if document is None else msgspec.json.encode(document)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await asked(self._stage.port, method, path, sent, {**named, "x-api-key": self._key})

    def owns(self, said: Said) -> bool:
        return said.status == 200 and self.sees(said.body)

    def sees(self, data: bytes) -> bool:
        """Whether a mark of this one is in it."""
        return any(int(who) == self._number for who, _, _ in MARK.findall(data))


class Pair:
    def __init__(self, stage: Stage, book: Book) -> None:
        self.stage = stage
        self.book = book
        self.ann = Asker(stage, ANN, book)
        self.bob = Asker(stage, BOB, book)

    async def foreign(
        self, name: str, method: str, path: str, document: Any = None, *, may: bool = False, **headers: str
    ) -> Said:
        """Bob asks for what is Ann's. `may`: it is a question of his own, and may well be answered."""
        before = len(self.stage.seen)
        said = await self.bob.ask(method, path, document, **headers)
        problem = ""
        if self.ann.sees(said.head + said.body):
            problem = f"he is informed of hers: {said.status} {said.body[:120]!r}"
        elif any(self.ann.sees(each.body) and self.bob.sees(each.body) for each in self.stage.seen[before:]):
            problem = "a provider was informed of hers"
        elif said.let_in and not may:
            problem = f"status {said.status}: {said.body[:120]!r}"
        self.book.counts[f"status {said.status}"] += 1
        self.book.knocked(f"{name}: {method} {path}", problem)
        return said


async def trial(book: Book, folder: Path) -> None:
    server = f'admin_secret = "{ADMIN}"\nmetrics_key = "{METRICS}"\n'
    async with staged(folder, server=server, tables=keys_table(KEYS)) as stage:
        stage.upstream.ways[_SIGNED] = _signed
        pair = Pair(stage, book)
        for turn in book.some(range(_ROUNDS)):
            model = f"{SPEAKERS[turn % len(SPEAKERS)]}/any"
            async for path in _kept(pair, model):
                book.right(f"hers is still there: {path}", pair.ann.owns(await pair.ann.ask("GET", path)))
            for client in CLIENTS:
                await _session(pair, client, model)
                await _idempotent(pair, client, model)
            await _losses(pair)
            await _compacted(pair, model)
            for speaker in ("gemini", "anthropic", "openai-responses"):
                await _vault(pair, speaker)
        await _pages(pair)


async def _kept(pair: Pair, model: str) -> AsyncIterator[str]:
    """Responses, in background too, and conversations: where each of them is."""
    ann = pair.ann
    for more in ({}, {"background": True}, {"stream": True, "background": True}):
        asking = {
            "model": model,
            "input": f"Say {ann.mark()}",
            "store": True,
            "metadata": {"m": ann.mark()},
            **more,
        }
        said = await ann.ask("POST", "/v1/responses", asking)
        id = _id(said)
        book_path = f"/v1/responses/{id}"
        await _at_response(pair, model, id)
        yield book_path
    item = {"type": "message", "role": "user", "content": f"I said {ann.mark()}"}
    made = await ann.ask("POST", "/v1/conversations", {"metadata": {"m": ann.mark()}, "items": [item]})
    id = _id(made)
    await ann.ask("POST", "/v1/responses", {"model": model, "input": f"Say {ann.mark()}", "conversation": id})
    items = (await ann.ask("GET", f"/v1/conversations/{id}/items")).body
    await _at_conversation(pair, model, id, [each["id"] for each in msgspec.json.decode(items)["data"]])
    yield f"/v1/conversations/{id}"
    yield f"/v1/conversations/{id}/items"


def _id(said: Said) -> str:
    """Of what was made; of a stream, from its first event."""
    if said.body[:1] == b"{":
        return str(msgspec.json.decode(said.body)["id"])
    return said.body.partition(b'"id":"')[2].partition(b'"')[0].decode()


def _spellings(id: str) -> Iterator[str]:
    yield from (
        id,
        id.upper(),
        f"%{ord(id[0]):02x}{id[1:]}",
        f"{id}%20",
        f"{id}%00",
        f"{id}?key=x",
        f"{ANN}%2F{id}",
    )


async def _at_response(pair: Pair, model: str, id: str) -> None:
    for root in ("", "/openai"):
        for spelled in _spellings(id):
            path = f"{root}/v1/responses/{spelled}"
            for method, more in (
                ("GET", ""), ("HEAD", ""), ("GET", "?stream=true"), ("GET", "?starting_after=0&stream=true"),
                ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", ""),
            ):  # fmt: skip
                await pair.foreign("a response", method, path + more)
    for client in CLIENTS:
        path, body = whole(*question(client, model, f"Say {pair.bob.mark()}"))
        if client == "openai-responses":
            for kept in ({"store": False}, {"store": True}, {"store": True, "background": True}):
                chained = {**body, "previous_response_id": id, **kept}
                await pair.foreign(f"chained {kept}", "POST", path, chained)
        # A name that is no conversation's id is one that a client has chosen: he begins his own.
        await pair.foreign("taken for a name", "POST", path, {**body, "conversation": id}, may=True)
        await pair.foreign("taken for a session", "POST", path, body, may=True, x_wireglot_session=id)
    after = {"model": model, "previous_response_id": id}
    await pair.foreign("compacted", "POST", "/v1/responses/compact", after)
    await pair.foreign("counted", "POST", "/v1/responses/input_tokens", {**after, "input": "x"})
    reference = [{"type": "item_reference", "id": id}, {"role": "user", "content": pair.bob.mark()}]
    await pair.foreign("referred to", "POST", "/v1/responses", {"model": model, "input": reference}, may=True)


async def _at_conversation(pair: Pair, model: str, id: str, items: list[str]) -> None:
    for root in ("", "/openai"):
        for spelled in _spellings(id):
            path = f"{root}/v1/conversations/{spelled}"
            await pair.foreign("a conversation", "GET", path)
            await pair.foreign("a conversation", "POST", path, {"metadata": {"m": pair.bob.mark()}})
            await pair.foreign("a conversation", "GET", f"{path}/items")
            added = {"items": [{"type": "message", "role": "user", "content": pair.bob.mark()}]}
            await pair.foreign("a conversation", "POST", f"{path}/items", added)
            for item in items:
                await pair.foreign("an item", "GET", f"{path}/items/{item}")
                await pair.foreign("an item", "DELETE", f"{path}/items/{item}")
            await pair.foreign("a conversation", "DELETE", path)
    for named in (id, id.removeprefix("conv_")):
        await pair.foreign("as a session", "GET", f"/v1/sessions/{named}")
        await pair.foreign("as a session", "DELETE", f"/v1/sessions/{named}")
    for client in CLIENTS:
        path, body = whole(*question(client, model, f"Say {pair.bob.mark()}"))
        await pair.foreign("gone on with", "POST", path, {**body, "conversation": id})
        await pair.foreign("gone on with, by an object", "POST", path, {**body, "conversation": {"id": id}})
    for item in items:
        reference = [{"type": "item_reference", "id": item}, {"role": "user", "content": pair.bob.mark()}]
        await pair.foreign("an item", "POST", "/v1/responses", {"model": model, "input": reference}, may=True)


async def _session(pair: Pair, client: DialectName, model: str) -> None:
    """Both have a session of the same name."""
    path, body = whole(*question(client, model, f"Say {pair.ann.mark()}"))
    pair.book.right(
        "a session", pair.ann.owns(await pair.ann.ask("POST", path, body, x_wireglot_session=_SESSION))
    )
    path, body = whole(*question(client, model, f"Say {pair.bob.mark()}"))
    await pair.foreign("a session of hers", "POST", path, body, may=True, x_wireglot_session=_SESSION)
    await pair.foreign("a session of hers", "GET", f"/v1/sessions/{_SESSION}", may=True)
    await pair.foreign("a session of hers", "DELETE", f"/v1/sessions/{_SESSION}", may=True)
    seen = await pair.ann.ask("GET", f"/v1/sessions/{_SESSION}")
    pair.book.right("her session stays", seen.status == 200, seen)


async def _idempotent(pair: Pair, client: DialectName, model: str) -> None:
    """Both use one Idempotency-Key: for the very same question, and for another."""
    key = f"shared-{pair.ann.mark()[4:-4]}"
    path, body = whole(*question(client, model, f"Say {mark(3, 1)}"))
    first = await pair.ann.ask("POST", path, body, idempotency_key=key)
    asked_before = pair.stage.upstream.asked
    again = await pair.ann.ask("POST", path, body, idempotency_key=key)
    is_kept = pair.stage.upstream.asked == asked_before and again.body == first.body
    pair.book.right("her answer comes again", is_kept, again)
    said = await pair.bob.ask("POST", path, body, idempotency_key=key)
    reached = pair.stage.upstream.asked == asked_before + 1
    pair.book.knocked(
        "the same question with her key", "" if reached else f"he got her answer: {said.status}"
    )
    own = pair.bob.mark()
    other_key = f"{key}-2"
    path, hers = whole(*question(client, model, f"Say {pair.ann.mark()}"))
    await pair.ann.ask("POST", path, hers, idempotency_key=other_key)
    path, body = whole(*question(client, model, f"Say {own}"))
    said = await pair.foreign(
        "another question with her key", "POST", path, body, may=True, idempotency_key=other_key
    )
    pair.book.right("he has his own answer", said.status == 200 and own.encode() in said.body, said)


async def _losses(pair: Pair) -> None:
    """What could not cross of a request of hers. Anthropic's top_k is unknown to Chat."""
    path, body = whole(*question("anthropic", "openai-chat/any", f"Say {pair.ann.mark()}"))
    said = await pair.ann.ask("POST", path, {**body, "top_k": 5})
    id = said.header("x-wireglot-request-id")
    page = f"/v1/requests/{id}/losses"
    pair.book.right("her losses", (await pair.ann.ask("GET", page)).status == 200, said)
    for spelled in _spellings(id):
        await pair.foreign("her losses", "GET", f"/v1/requests/{spelled}/losses")
        await pair.foreign("her losses", "GET", f"/openai/v1/requests/{spelled}/losses")


async def _compacted(pair: Pair, model: str) -> None:
    """A summary is sealed for whom it was made."""
    asking: dict[str, Any] = {
        "model": model,
        "input": [{"role": "user", "content": f"Say {pair.ann.mark()}"}],
    }
    said = await pair.ann.ask("POST", "/v1/responses/compact", asking)
    sealed = [item for item in msgspec.json.decode(said.body)["output"] if item["type"] == "compaction"]
    own = {"role": "user", "content": pair.ann.mark()}
    going_on = await pair.ann.ask("POST", "/v1/responses", {"model": model, "input": [*sealed, own]})
    pair.book.right("her summary", bool(sealed) and pair.ann.owns(going_on), going_on)
    for more in (sealed, [{**each, "id": "cmp_other"} for each in sealed], sealed * 2):
        turn = {"role": "user", "content": pair.bob.mark()}
        asking = {"model": model, "input": [*more, turn], "store": False}
        await pair.foreign("her summary", "POST", "/v1/responses", asking, may=True)


def _signed(said: bytes, data: bytes) -> bytes:
    """A call with reasoning state, which names its caller, in the dialect of the plain answer."""
    state = base64.b64encode(b"state of %b" % said).decode()
    answer = msgspec.json.decode(data)
    if "candidates" in answer:
        signed = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": state}
        answer["candidates"][0]["content"]["parts"] = [signed]
    elif "content" in answer:
        thought = {"type": "thinking", "thinking": "Hm.", "signature": state}
        answer["content"] = [thought, {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]
        answer["stop_reason"] = "tool_use"
    elif "output" in answer:
        item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": state}
        call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
        answer["output"] = [item, {**call, "status": "completed"}]
    body = msgspec.json.encode(answer)
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )


async def _vault(pair: Pair, speaker: DialectName) -> None:
    """A client of Chat that carries no state: the gateway remembers it, for its caller alone."""
    own = pair.ann.mark(_SIGNED)
    state = base64.b64encode(b"state of %b" % own.encode())[:-4].decode()
    say = {"role": "user", "content": f"Say {own}"}
    asking: dict[str, Any] = {"model": f"{speaker}/any", "messages": [say], "reasoning_effort": "high"}
    asking["tools"] = [{"type": "function", "function": _TOOL}]
    said = await pair.ann.ask("POST", "/v1/chat/completions", asking)
    calls = msgspec.json.decode(said.body)["choices"][0]["message"].get("tool_calls") or []
    plain = [{key: call[key] for key in ("id", "type", "function")} for call in calls]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in plain]
    turn = {"role": "assistant", "content": None, "tool_calls": plain}

    async def replayed(asker: Asker, text: str) -> bool:
        before = len(pair.stage.seen)
        history = [{"role": "user", "content": text}, turn, *results]
        await asker.ask("POST", "/v1/chat/completions", {**asking, "messages": history})
        return any(state.encode() in each.body for each in pair.stage.seen[before:])

    pair.book.right(
        f"her state for {speaker}", bool(plain) and await replayed(pair.ann, say["content"]), said
    )
    for text in (say["content"], f"Say {pair.bob.mark()}"):
        got = await replayed(pair.bob, text)
        pair.book.knocked(
            f"her state for {speaker}, with {text[:12]!r}", "a provider was given it" if got else ""
        )


async def _pages(pair: Pair) -> None:
    """Lists and sums: Bob's own, whatever he names."""
    ann_usage = await pair.ann.ask("GET", "/v1/usage?group_by=key")
    pair.book.right("her usage", ann_usage.status == 200 and ANN.encode() in ann_usage.body, ann_usage)
    for query in (
        "", "?group_by=key", f"?key={ANN}", f"?caller={ANN}", f"?group_by=key&key={ANN}", f"?keys={ANN}",
        "?group_by=session", f"?group_by=session&caller={ANN}", f"?key={BOB}&key={ANN}",
        "?group_by=model,key,session",
        "?group_by=request", "?group_by=caller", f"?session={_SESSION}&group_by=key",
        "?limit=1000&group_by=key",
    ):  # fmt: skip
        for page in ("/v1/usage", "/v1/sessions", "/openai/v1/usage", "/openai/v1/sessions", "/v1/models"):
            said = await pair.foreign("a list", "GET", page + query, may=True)
            named = ANN.encode() in said.body
            pair.book.knocked(
                f"a list: GET {page}{query}", f"it names her: {said.body[:120]!r}" if named else ""
            )
    for page in ("/metrics", "/v1/admin/usage", "/v1/admin/keys", f"/v1/admin/keys/{ANN}", "/v1/admin/store"):
        await pair.foreign("a page of the house", "GET", page)
    await pair.foreign("her key", "DELETE", f"/v1/admin/keys/{ANN}")
    await pair.foreign("her key", "POST", f"/v1/admin/keys/{ANN}/rotate")
    await pair.foreign("all of hers", "DELETE", f"/v1/admin/callers/{ANN}/data")
