"""Clients of one gateway that use all that it remembers, in every dialect, and note what they are
reported."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from proofs.lab.client_record import Account, ClientRecord, Exchange
from proofs.lab.link import Link, Reply
from proofs.lab.scenario_config import ADA, ADMIN, CHAT, CLAUDE, GEMINI, GPT, TIRED
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

_ANTHROPIC: Final = {"anthropic-version": "2023-06-01"}
_EVERY_WORKER: Final = 20
_POLL_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 20.0


class Clients:
    """Several callers, one request at a time each; requests that are never answered run beside them."""

    def __init__(self, port: int, upstream: ScriptedUpstream, reported: ClientRecord) -> None:
        self.reported = reported
        self._port = port
        self._upstream = upstream
        self._links: dict[str, Link] = {}
        self._hanging: list[asyncio.Task[Reply]] = []
        reported.admin = ADMIN
        reported.keys["ada"] = ADA

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        for task in self._hanging:
            task.cancel()

    async def have_things_kept(self) -> None:
        await self._keys()
        await self._stored_responses()
        await self._conversation()
        await self._sessions()
        await self._sealed_reasoning()
        await self._vault()

    async def have_more_kept(self) -> None:
        await self._idempotent_answers()
        await self._compaction()
        await self._cool_downs()
        await self._background()
        await self._budgets()
        await self._pages()

    async def when_the_store_has_it(self) -> None:
        """What the ledger says of it is only reported then."""
        await self._fetch("a session", "ada", "/v1/sessions/trip")
        await self._fetch("another session", "ada", "/v1/sessions/diary")
        await self._fetch("sessions that are only named", "thrifty", "/v1/sessions")

    async def be_killed_in_the_middle(self, is_written: Callable[[], bool]) -> None:
        """Some are answered, which needs no store, and some are not when this ends. `is_written`: whether the
        journal has all of it."""
        before = set(self.reported.requests)
        for number, (path, body, headers) in enumerate(_plain_requests()):
            reply = await self.ask("ada", "POST", path, body, headers)
            assert reply.status == 200, (number, reply)
        self.reported.unapplied = [id for id in self.reported.requests if id not in before]
        await self._hang("left", "/v1/messages", _messages("[[demo:hang]] nobody will know"), _ANTHROPIC)
        streamed = {"model": "demo-gemini", "input": "[[demo:hang]]", "stream": True, "store": False}
        await self._hang("left", "/v1/responses", streamed)
        await until(is_written)

    async def ask(
        self,
        caller: str,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        counts: bool = True,
    ) -> Reply:
        """`counts`: whether an answer to a POST asked a model, and so is a row of usage."""
        link = self._links.get(caller)
        if link is None:
            key = ADMIN if caller == "admin" else self.reported.keys[caller]
            link = self._links[caller] = Link(self._port, key)
        reply = await link.ask(method, path, body, headers)
        while b"cannot be checked at the moment" in reply.body:  # a busy machine: the store was late
            await asyncio.sleep(int(reply.headers["retry-after"]))
            reply = await link.ask(method, path, body, headers)
        dialect = _dialect(path)
        if counts and method == "POST" and reply.status == 200 and dialect:
            id = reply.headers["x-wireglot-request-id"]
            self.reported.requests[id] = Account(caller, dialect, _tokens(reply, dialect))
        return reply

    async def _asked(self, caller: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
        reply = await self.ask(caller, "POST", path, body, headers)
        assert reply.status == 200, (path, body, reply)
        return reply.json()

    async def _fetch(self, name: str, caller: str, path: str) -> Any:
        reply = await self.ask(caller, "GET", path)
        assert reply.status == 200, (path, reply)
        self.reported.fetched.append(_exchange(name, caller, "GET", path, reply))
        return reply.json() if "json" in reply.headers.get("content-type", "") else None

    async def _again(
        self, name: str, caller: str, path: str, body: Any, headers: dict[str, str] | None = None
    ) -> Reply:
        self._upstream.reset()
        reply = await self.ask(caller, "POST", path, body, headers)
        reported = _exchange(name, caller, "POST", path, reply, body, headers)
        self.reported.again.append(msgspec.structs.replace(reported, sent=sent(self._upstream)))
        return reply

    async def _keys(self) -> None:
        limits: dict[str, dict[str, Any]] = {
            "left": {"concurrent": 5},
            "leaver": {},
            "renewed": {"models": ["demo", "tired/*"], "requests_per_minute": 6},
            "spent": {"tokens_per_month": 200, "cost_per_month": 50},
            "thrifty": {"tokens_per_day": 10_000_000, "expires": "2099-12-31"},
        }
        for name, limit in limits.items():
            made = await self.ask("admin", "POST", "/v1/admin/keys", {"name": name, **limit})
            assert made.status == 201, made
            self.reported.keys[name] = made.json()["key"]
        assert (await self.ask("admin", "DELETE", "/v1/admin/keys/leaver")).status == 200
        self.reported.shut["leaver"] = self.reported.keys.pop("leaver")
        renewed = await self.ask("admin", "POST", "/v1/admin/keys/renewed/rotate", {"overlap": 0})
        self.reported.shut["renewed"], self.reported.keys["renewed"] = (
            self.reported.keys["renewed"],
            renewed.json()["key"],
        )
        await self._fetch("keys", "admin", "/v1/admin/keys")
        for name in self.reported.keys:
            await until(partial(self._opens, name))

    async def _opens(self, caller: str) -> bool:
        """Asked so often that every worker has been asked."""
        for _ in range(_EVERY_WORKER):
            if (await self.ask(caller, "GET", "/v1/models")).status != 200:
                return False
        return True

    async def _stored_responses(self) -> None:
        first = {
            "model": "demo-gemini",
            "input": "[[demo:think]] My name is Ada.",
            "instructions": "Be brief.",
        }
        one = await self._asked("ada", "/v1/responses", first)
        second = {
            "model": "demo-anthropic",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "[[demo:think]] And then?"}]}
            ],
            "previous_response_id": one["id"],
            "include": ["reasoning.encrypted_content"],
            "metadata": {"topic": "names"},
            "stream": True,
        }
        reply = await self.ask("ada", "POST", "/v1/responses", second)
        two = _completed(reply.body)
        tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
        third = {
            "model": "demo-openai-chat",
            "input": "[[demo:tool look {}]]",
            "tools": [tool],
            "previous_response_id": two["id"],
        }
        three = await self._asked("ada", "/v1/responses", third)
        call = next(item for item in three["output"] if item["type"] == "function_call")
        for number, response in enumerate((one, two, three), 1):
            await self._fetch(f"response {number}", "ada", f"/v1/responses/{response['id']}")
            await self._fetch(f"input of {number}", "ada", f"/v1/responses/{response['id']}/input_items")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "found it"}
        ask = {"type": "message", "role": "user", "content": "[[demo:strict]] What was it?"}
        for model in ("demo-anthropic", "demo-gemini", GPT, CLAUDE):
            body = {
                "model": model,
                "input": [output, ask],
                "previous_response_id": three["id"],
                "store": False,
            }
            await self._again(f"a chain goes on at {model}", "ada", "/v1/responses", body)
        item = {"type": "item_reference", "id": one["output"][-1]["id"]}
        body = {"model": "demo-gemini", "input": [item, ask], "store": False}
        await self._again("an item is referred to", "ada", "/v1/responses", body)
        self.reported.goes_on["response"] = two["id"]

    async def _conversation(self) -> None:
        begun = {
            "metadata": {"topic": "travel"},
            "items": [{"type": "message", "role": "user", "content": "I am in Lima."}],
        }
        reply = await self.ask("ada", "POST", "/v1/conversations", begun, counts=False)
        id = reply.json()["id"]
        for model, text in (("demo-anthropic", "[[demo:think]] Where am I?"), ("demo-gemini", "And why?")):
            body = {"model": model, "input": text, "conversation": id}
            await self._asked("ada", "/v1/responses", body)
        await self._asked(
            "ada", "/v1/chat/completions", {**_chat("[[demo:echo]] really"), "conversation": id}
        )
        await self._fetch("a conversation", "ada", f"/v1/conversations/{id}")
        await self._fetch("its items", "ada", f"/v1/conversations/{id}/items?order=asc&limit=100")
        self.reported.goes_on["conversation"] = id

    async def _sessions(self) -> None:
        for turn, (path, body, headers) in enumerate(_session_turns()):
            reply = await self.ask("ada", "POST", path, body, {**headers, "x-wireglot-session": "trip"})
            assert reply.status == 200, (turn, reply)
        simple = {"model": "demo-anthropic", "conversation": "diary", "input": "[[demo:think]] Dear diary"}
        await self._asked("ada", "/v1/gemini", simple)
        grouped = await self.ask(
            "thrifty", "POST", "/v1/chat/completions", _chat("hello"), {"x-session-id": "grouped"}
        )
        assert grouped.status == 200, grouped
        self.reported.goes_on["session"] = "trip"

    async def _sealed_reasoning(self) -> None:
        """Clients that bring a foreign model's state back in a field of their own."""
        say, go_on = "[[demo:think]] Think of a number.", "[[demo:strict]] Which one?"
        for model in (GEMINI, GPT, CLAUDE):
            asked = {**_messages(say), "model": model, "thinking": {"type": "enabled", "budget_tokens": 1024}}
            answer = await self._asked("ada", "/v1/messages", asked, _ANTHROPIC)
            turns = [*asked["messages"], {"role": "assistant", "content": answer["content"]}]
            body = {**asked, "messages": [*turns, {"role": "user", "content": go_on}]}
            await self._again(f"Anthropic's client, {model}", "ada", "/v1/messages", body, _ANTHROPIC)
        for model in (GEMINI, CLAUDE, GPT):
            include, user = ["reasoning.encrypted_content"], {"role": "user", "content": say}
            body = {"model": model, "store": False, "include": include, "input": [user]}
            answer = await self._asked("ada", "/v1/responses", body)
            body = {**body, "input": [user, *answer["output"], {"role": "user", "content": go_on}]}
            await self._again(f"Responses' client, {model}", "ada", "/v1/responses", body)
        for model in (CLAUDE, GPT, GEMINI):
            path = f"/v1beta/models/{model}:generateContent"
            first = {"role": "user", "parts": [{"text": say}]}
            think = {"thinkingConfig": {"includeThoughts": True}}
            answer = await self._asked("ada", path, {"contents": [first], "generationConfig": think})
            contents = [
                first,
                answer["candidates"][0]["content"],
                {"role": "user", "parts": [{"text": go_on}]},
            ]
            body = {"contents": contents, "generationConfig": think}
            await self._again(f"Gemini's client, {model}", "ada", path, body)
        for model in (CLAUDE, GEMINI, CHAT):
            asked = {**_chat(say), "model": model}
            answer = await self._asked("ada", "/v1/chat/completions", asked)
            turns = [*asked["messages"], answer["choices"][0]["message"]]
            body = {**asked, "messages": [*turns, {"role": "user", "content": go_on}]}
            await self._again(f"Chat's client that echoes, {model}", "ada", "/v1/chat/completions", body)

    async def _vault(self) -> None:
        """Clients that send back what they show, and nothing else."""
        tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
        go_on = {"role": "user", "content": "[[demo:strict]] What did you find?"}
        for model in (CLAUDE, GEMINI, GPT, CHAT):
            # The demo model gives equal answers equal ids, and one of them is kept: GPT is asked otherwise.
            asked = "[[demo:think]] [[demo:tool look {}]]" + (" Go on." if model == GPT else "")
            say = {"role": "user", "content": asked}
            body: dict[str, Any] = {"model": model, "messages": [say], "tools": [tool]}
            answer = await self._asked("ada", "/v1/chat/completions", body)
            calls = [
                {"id": call["id"], "type": "function", "function": call["function"]}
                for call in answer["choices"][0]["message"]["tool_calls"]
            ]
            turn = {
                "role": "assistant",
                "content": answer["choices"][0]["message"]["content"],
                "tool_calls": calls,
            }
            results = [{"role": "tool", "tool_call_id": call["id"], "content": "gold"} for call in calls]
            body["messages"] = [say, turn, *results, go_on]
            await self._again(f"Chat's client that forgets, {model}", "ada", "/v1/chat/completions", body)
            self._upstream.reset()
            await self._asked("thrifty", "/v1/chat/completions", body)
            if model in (CLAUDE, GEMINI):
                # What was put back reached the provider: nobody else's vault has it.
                assert sent(self._upstream)[0][1] != self.reported.again[-1].sent[0][1], (
                    "the vault was not asked"
                )

    async def _idempotent_answers(self) -> None:
        think = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        streamed = {
            **_messages("[[demo:think]] Stream this once."),
            "stream": True,
            "model": "demo-gemini",
            **think,
        }
        stored = {"model": "demo-anthropic", "input": "Store this once."}
        cases: list[tuple[str, Any, dict[str, str]]] = [
            ("/v1/chat/completions", _chat("Charge me once."), {}),
            ("/v1/messages", streamed, _ANTHROPIC),
            ("/v1/responses", stored, {}),
        ]
        for path, body, headers in cases:
            headers = {**headers, "idempotency-key": "order-4711"}
            first = await self.ask("ada", "POST", path, body, headers)
            again = await self.ask("ada", "POST", path, body, headers, counts=False)
            assert again.headers.get("idempotent-replayed") == "true", again
            assert again.body == first.body
            self.reported.replayed.append(_exchange(path, "ada", "POST", path, first, body, headers))

    async def _compaction(self) -> None:
        turns = [
            {"role": "user", "content": "My number is 7."},
            {"role": "assistant", "content": "Noted."},
            {"role": "user", "content": "My town is Ulm."},
        ]
        compacted = await self._asked(
            "ada", "/v1/responses/compact", {"model": "demo-anthropic", "input": turns}
        )
        ask = {"role": "user", "content": "What is my number?"}
        body = {"model": "demo-gemini", "input": [*compacted["output"], ask], "store": False}
        await self._again("a summary is opened", "ada", "/v1/responses", body)
        refused = await self._again("a summary of another caller", "thrifty", "/v1/responses", body)
        assert refused.status == 400, refused

    async def _cool_downs(self) -> None:
        """A key that is exhausted rests for a model; one that is refused rests altogether."""
        for number, error in enumerate((429, 401)):
            self._upstream.next(Behaviour(error=error, retry_after=3600))
            body = {**_chat("hello"), "model": f"{TIRED}-{number}"}
            reply = await self.ask("renewed", "POST", "/v1/chat/completions", body)
            assert reply.status in (429, 502), reply

    async def _background(self) -> None:
        body = {"model": "demo-gemini", "input": "[[demo:think]] Take your time.", "background": True}
        for name, more in (("finished", {}), ("finished and streamed", {"stream": True})):
            reply = await self.ask("ada", "POST", "/v1/responses", {**body, **more}, counts=False)
            id = _completed(reply.body)["id"] if more else reply.json()["id"]
            await until(partial(self._is_finished, id))
            await self._fetch(f"background, {name}", "ada", f"/v1/responses/{id}")
            if more:
                await self._fetch("its events", "ada", f"/v1/responses/{id}?stream=true&starting_after=2")
        unfinished = {"model": "demo-anthropic", "input": "[[demo:hang]]", "background": True}
        reply = await self.ask("left", "POST", "/v1/responses", unfinished, counts=False)
        self.reported.unfinished = reply.json()["id"]
        self.reported.crashed["left"] = 1

    async def _is_finished(self, id: str) -> bool:
        answer = await self.ask("ada", "GET", f"/v1/responses/{id}")
        return bool(answer.json()["status"] == "completed")

    async def _budgets(self) -> None:
        """`spent` has used up its month; its last request is refused."""
        body = {**_chat("[[demo:text 200]]"), "max_tokens": 2000}
        assert (await self.ask("spent", "POST", "/v1/chat/completions", body)).status == 200
        reply = await self.ask("spent", "POST", "/v1/chat/completions", body)
        while reply.status == 429 and "running requests" in reply.body.decode():
            reply = await self.ask("spent", "POST", "/v1/chat/completions", body)  # not settled yet
        assert reply.status == 429, reply
        assert reply.json()["error"]["code"] == "insufficient_quota", reply
        self.reported.refused.append(
            _exchange("a spent budget", "spent", "POST", "/v1/chat/completions", reply, body)
        )

    async def _pages(self) -> None:
        body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
        assist = {"model": "demo-anthropic", "project": "p", "request": body}
        await self._again("Code Assist", "ada", "/v1internal:generateContent", assist)
        await self._again("Gemini simple", "ada", "/v1/gemini", {"model": "demo-openai-chat", "input": "hi"})

    async def _hang(self, caller: str, path: str, body: Any, headers: dict[str, str] | None = None) -> None:
        """A request that is never answered, on a connection of its own."""
        link = Link(self._port, self.reported.keys[caller])
        self._links[f"{caller} {len(self._hanging)}"] = link
        self._hanging.append(asyncio.create_task(link.ask("POST", path, body, headers)))
        self.reported.crashed[caller] = self.reported.crashed.get(caller, 0) + 1

    async def hung_up(self) -> None:
        """After the kill: none of those was answered."""
        for task in self._hanging:
            with suppress(OSError):
                raise AssertionError(f"it was answered: {await task}")


def sent(upstream: ScriptedUpstream) -> list[tuple[str, str]]:
    """What it has got since it was reset."""
    names = ("authorization", "x-api-key", "x-goog-api-key")
    return [
        ("".join(request.headers.get(name, "") for name in names), request.body.decode())
        for request in upstream.requests
    ]


def _exchange(
    name: str,
    caller: str,
    method: str,
    path: str,
    reply: Reply,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Exchange:
    losses = reply.headers.get("x-wireglot-losses", "")
    return Exchange(
        name, caller, method, path, reply.status, reply.body.decode(), body, headers or {}, losses
    )


def _chat(text: str) -> dict[str, Any]:
    return {"model": "demo-gemini", "messages": [{"role": "user", "content": text}]}


def _messages(text: str) -> dict[str, Any]:
    return {"model": "claude-any", "max_tokens": 4000, "messages": [{"role": "user", "content": text}]}


def _session_turns() -> list[tuple[str, Any, dict[str, str]]]:
    contents = {"contents": [{"role": "user", "parts": [{"text": "[[demo:echo]] in Gemini's"}]}]}
    return [
        ("/v1/chat/completions", _chat("[[demo:think]] in Chat's words"), {}),
        ("/v1/messages", _messages("[[demo:think]] in Anthropic's words"), _ANTHROPIC),
        ("/v1beta/models/demo-openai-chat:generateContent", contents, {}),
        ("/v1/gemini", {"model": "demo-openai-responses", "input": "in simple words"}, {}),
        ("/v1/responses", {"model": "demo-gemini", "input": "in Responses' words"}, {}),
    ]


def _plain_requests() -> list[tuple[str, Any, dict[str, str]]]:
    contents = {"contents": [{"role": "user", "parts": [{"text": "while it was locked"}]}]}
    return [
        ("/v1/chat/completions", {**_chat("while it was locked"), "model": "demo-openai-chat"}, {}),
        ("/v1/chat/completions", {**_chat("while it was locked"), "model": "demo-anthropic"}, {}),
        ("/v1/messages", _messages("while it was locked"), {**_ANTHROPIC, "x-session-id": "locked"}),
        ("/v1/responses", {"model": "demo-gemini", "input": "while it was locked", "store": False}, {}),
        ("/v1beta/models/demo-openai-responses:generateContent", contents, {}),
        ("/v1/gemini", {"model": "demo-anthropic", "input": "while it was locked"}, {}),
    ]


def _dialect(path: str) -> str:
    """Of what is answered by a model; "": it is none of that."""
    if "/admin/" in path or path.endswith(("/conversations", "/cancel")):
        return ""
    for part, dialect in (
        ("/v1/messages", "anthropic"),
        ("/v1/chat", "openai-chat"),
        ("/v1/responses", "openai-responses"),
        ("/v1internal", "code-assist"),
        ("/v1beta/", "gemini"),
        ("/v1/gemini", "gemini-simple"),
    ):
        if path.startswith(part):
            return dialect
    return ""


def _tokens(reply: Reply, dialect: str) -> int:
    """What a client was sent as the usage of its request, input and output together."""
    if "json" not in reply.headers.get("content-type", ""):
        return -1
    answer = reply.json()
    if dialect == "code-assist":
        answer = answer["response"]
    usage = answer.get("usageMetadata") or answer.get("usage") or {}
    total = usage.get("totalTokenCount") or usage.get("total_tokens")
    if total is None and "input_tokens" in usage:
        cached = (usage.get(name) or 0 for name in ("cache_read_input_tokens", "cache_creation_input_tokens"))
        total = usage["input_tokens"] + usage["output_tokens"] + sum(cached)
    return -1 if total is None else int(total)


def _completed(stream: bytes) -> Any:
    for line in stream.splitlines():
        if line.startswith(b"data: ") and b'"response.completed"' in line[:60]:
            return msgspec.json.decode(line[6:])["response"]
    raise AssertionError(f"it did not complete: {stream[-300:]!r}")


async def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = holds()
        if await found if asyncio.iscoroutine(found) else found:
            return
        assert time.monotonic() < end, "it did not come to hold"
        await asyncio.sleep(_POLL_SECONDS)
