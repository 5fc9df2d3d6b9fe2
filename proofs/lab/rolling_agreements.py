"""What two versions have to agree on: begun on a machine of one, gone on with on a machine of the other."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from proofs.lab.link import Link, Reply
from proofs.lab.rolling_fleet import Machine, RollingFleet, is_refused, until
from proofs.lab.scenario_config import ADMIN, CHAT, CLAUDE, GEMINI, GPT

Agreement = Callable[[RollingFleet, Machine, Machine], Awaitable[None]]

_ANTHROPIC: Final = {"anthropic-version": "2023-06-01"}
_SIGNED: Final = "d2lyZWdsb3QtZGVtby0x"
"""How every signature of the demo model begins, in base64."""
_RATE: Final = 10


def _word() -> str:
    return f"word-{secrets.token_hex(6)}"


def _chat(model: str, *messages: Any) -> dict[str, Any]:
    return {"model": model, "messages": list(messages)}


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def chains(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    words = [_word() for _ in range(4)]
    last = ""
    for number, word in enumerate(words):
        body: dict[str, Any] = {
            "model": (GEMINI, CLAUDE, GPT, CLAUDE)[number],
            "input": f"[[demo:think]] {word}",
        }
        if last:
            body["previous_response_id"] = last
        last = (await (one, other)[number % 2].answer(key, "POST", "/v1/responses", body))["id"]
    sent = fleet.sent_with(words[-1])
    assert all(word in sent for word in words), "the chain is not whole"
    shown = [await machine.ask(key, "GET", f"/v1/responses/{last}") for machine in (one, other)]
    assert shown[0].body == shown[1].body
    assert (await other.ask(key, "DELETE", f"/v1/responses/{last}")).status == 200
    assert (await one.ask(key, "GET", f"/v1/responses/{last}")).status == 404


async def conversations(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    id = (await one.answer(key, "POST", "/v1/conversations", {"metadata": {"made": "here"}}))["id"]
    words = [_word() for _ in range(3)]
    await other.answer(key, "POST", "/v1/responses", {"model": GPT, "input": words[0], "conversation": id})
    await one.answer(
        key, "POST", "/v1/chat/completions", {**_chat(CHAT, _user(words[1])), "conversation": id}
    )
    await other.answer(key, "POST", "/v1/gemini", {"model": CLAUDE, "input": words[2], "conversation": id})
    assert all(word in fleet.sent_with(words[2]) for word in words)
    path = f"/v1/conversations/{id}/items?order=asc"
    shown = [await machine.ask(key, "GET", path) for machine in (one, other)]
    assert shown[0].body == shown[1].body
    assert (await one.ask(key, "DELETE", f"/v1/conversations/{id}")).status == 200
    assert (await other.ask(key, "GET", f"/v1/conversations/{id}")).status == 404


async def sessions(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    session = {"x-wireglot-session": "trip"}
    words = [_word() for _ in range(4)]
    contents = {"contents": [{"role": "user", "parts": [{"text": words[2]}]}]}
    await one.answer(
        key, "POST", "/v1/chat/completions", _chat(GEMINI, _user(f"[[demo:think]] {words[0]}")), session
    )
    said = {**_chat(CLAUDE, _user(words[1])), "max_tokens": 500}
    await other.answer(key, "POST", "/v1/messages", said, {**session, **_ANTHROPIC})
    await one.answer(key, "POST", "/v1beta/models/gpt%2Fsome-model:generateContent", contents, session)
    await other.answer(key, "POST", "/v1/responses", {"model": GEMINI, "input": words[3]}, session)
    assert all(word in fleet.sent_with(words[3]) for word in words)
    shown = [await machine.answer(key, "GET", "/v1/sessions/trip") for machine in (one, other)]
    assert shown[0]["items"] == shown[1]["items"]


async def sealed_envelopes(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    say = "[[demo:think]] think of it"
    for model in (GEMINI, GPT):
        word = _word()
        asked = {
            **_chat(model, _user(say)),
            "max_tokens": 4000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        }
        answer = await one.answer(key, "POST", "/v1/messages", asked, _ANTHROPIC)
        turns = [
            _user(say),
            {"role": "assistant", "content": answer["content"]},
            _user(f"[[demo:strict]] {word}"),
        ]
        await other.answer(key, "POST", "/v1/messages", {**asked, "messages": turns}, _ANTHROPIC)
        assert _SIGNED in fleet.sent_with(word), f"Anthropic's client lost the state of {model}"
    for model in (CLAUDE, GEMINI):
        word = _word()
        body = {"model": model, "store": False, "include": ["reasoning.encrypted_content"]}
        answer = await one.answer(key, "POST", "/v1/responses", {**body, "input": [_user(say)]})
        items = [_user(say), *answer["output"], _user(f"[[demo:strict]] {word}")]
        await other.answer(key, "POST", "/v1/responses", {**body, "input": items})
        assert _SIGNED in fleet.sent_with(word), f"Responses' client lost the state of {model}"
    for model in (CLAUDE, GPT):
        word, path = _word(), f"/v1beta/models/{model.replace('/', '%2F')}:generateContent"
        think = {"thinkingConfig": {"includeThoughts": True}}
        first = {"role": "user", "parts": [{"text": say}]}
        answer = await one.answer(key, "POST", path, {"contents": [first], "generationConfig": think})
        next_turn = {"role": "user", "parts": [{"text": f"[[demo:strict]] {word}"}]}
        contents = [first, answer["candidates"][0]["content"], next_turn]
        await other.answer(key, "POST", path, {"contents": contents, "generationConfig": think})
        assert _SIGNED in fleet.sent_with(word), f"Gemini's client lost the state of {model}"


async def reasoning_vault(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    for model in (CLAUDE, GEMINI):
        word = _word()
        say = _user(f"[[demo:think]] [[demo:tool look {{}}]] {word}")
        answer = await one.answer(key, "POST", "/v1/chat/completions", {**_chat(model, say), "tools": [tool]})
        message = answer["choices"][0]["message"]
        calls = [{name: call[name] for name in ("id", "type", "function")} for call in message["tool_calls"]]
        turn = {"role": "assistant", "content": message["content"], "tool_calls": calls}
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "gold"} for call in calls]
        body = {**_chat(model, say, turn, *results, _user(f"[[demo:strict]] and {word}")), "tools": [tool]}
        await other.answer(key, "POST", "/v1/chat/completions", body)
        assert _SIGNED in fleet.sent_with(f"and {word}"), f"the vault has lost the state of {model}"


async def client_keys(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    name, key = await fleet.new_key(one)
    path = f"/v1/admin/keys/{name}"
    await other.answer(ADMIN, "PATCH", path, {"models": ["demo"], "requests_per_minute": 50})
    ask = _chat("demo-gemini", _user("hi"))
    await until(lambda: _has_status(one, key, ask, 404, 403))
    shown = [await machine.answer(ADMIN, "GET", path) for machine in (one, other)]
    assert shown[0] == shown[1]
    rotated = (await one.answer(ADMIN, "POST", f"{path}/rotate", {"overlap": 0}))["key"]
    await until(lambda: is_refused(other, key))
    assert not await is_refused(other, rotated)
    assert (await other.ask(ADMIN, "DELETE", path)).status == 200
    await until(lambda: is_refused(one, rotated))


async def _has_status(machine: Machine, key: str, body: Any, *statuses: int) -> bool:
    return (await machine.ask(key, "POST", "/v1/chat/completions", body)).status in statuses


async def rates(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one, requests_per_minute=_RATE)
    ask = _chat("demo", _user("hi"))
    statuses = [
        (await (one, other)[number % 2].ask(key, "POST", "/v1/chat/completions", ask)).status
        for number in range(2 * _RATE)
    ]
    # A bucket gives back one place every six seconds: a slow machine may see some more.
    assert _RATE <= statuses.count(200) <= _RATE + 4, statuses
    assert set(statuses) == {200, 429}, statuses


async def budgets(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    most = 500
    _, key = await fleet.new_key(one, tokens_per_day=most)
    spent = [0]
    ask = {**_chat("demo-gemini", _user("[[demo:text 80]]")), "max_tokens": 200}
    for number in range(100):
        reply = await (one, other)[number % 2].ask(key, "POST", "/v1/chat/completions", ask)
        if reply.status == 429:
            if reply.json()["error"]["code"] == "insufficient_quota":
                break
            await asyncio.sleep(0.05)  # reserved by one that is being settled
        else:
            spent.append(reply.json()["usage"]["total_tokens"])
    assert most <= sum(spent) <= most + max(spent), spent
    for machine in (one, other):
        reply = await machine.ask(key, "POST", "/v1/chat/completions", ask)
        assert reply.json()["error"]["code"] == "insufficient_quota", reply
        await until(partial(lambda machine: _used(machine, key, sum(spent)), machine))


async def _used(machine: Machine, key: str, tokens: int) -> bool:
    """Whether all of it is in the ledger: another machine's last rows take a moment."""
    reported = await machine.answer(key, "GET", "/v1/usage?group_by=key")
    return bool(reported["total"]["total_tokens"] == tokens)


async def concurrency(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one, concurrent=1)
    ask = _chat("demo", _user("hi"))
    hanging = [asyncio.create_task(_hang(one, key))]

    async def refused() -> bool:
        if hanging[-1].done():  # the other one's question had the only place when it came
            hanging.append(asyncio.create_task(_hang(one, key)))
        return await _has_status(other, key, ask, 429)

    try:
        await until(refused)
    finally:
        hanging[-1].cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
    await until(lambda: _has_status(other, key, ask, 200))


def _hang(machine: Machine, key: str) -> Coroutine[Any, Any, Reply]:
    ask = _chat("demo", _user("[[demo:hang]]"))
    return Link(machine.served.port, key).ask("POST", "/v1/chat/completions", ask)


async def cool_downs(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    model = f"model-{secrets.token_hex(6)}"
    ask = _chat(f"tired/{model}", _user("hi"))
    fleet.exhausted.add(model)
    assert (await one.ask(key, "POST", "/v1/chat/completions", ask)).status == 429
    fleet.exhausted.discard(model)
    seen = [0]

    async def rests() -> bool:
        before = _asked(fleet, model)
        status = (await other.ask(key, "POST", "/v1/chat/completions", ask)).status
        seen[0] = _asked(fleet, model)
        return status == 429 and seen[0] == before

    await until(rests)


def _asked(fleet: RollingFleet, model: str) -> int:
    return sum(model.encode() in request.body for request in fleet.upstream.requests)


async def idempotency(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    once = {"idempotency-key": f"order-{secrets.token_hex(6)}"}
    for stream in (False, True):
        body = {"model": CLAUDE, "input": _word(), "stream": stream}
        once = {"idempotency-key": f"order-{secrets.token_hex(6)}"}
        first = await one.ask(key, "POST", "/v1/responses", body, once)
        again = await other.ask(key, "POST", "/v1/responses", body, once)
        assert (first.status, again.headers.get("idempotent-replayed")) == (200, "true"), again
        assert again.body == first.body
        changed = await other.ask(key, "POST", "/v1/responses", {**body, "input": "else"}, once)
        assert changed.status == 409, changed


async def background(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    body = {"model": "demo-gemini", "input": "[[demo:slow 20ms]] hello", "background": True}
    id = (await one.answer(key, "POST", "/v1/responses", body))["id"]
    await until(lambda: _has_ended(other, key, id))
    shown = [await machine.ask(key, "GET", f"/v1/responses/{id}") for machine in (one, other)]
    assert shown[0].body == shown[1].body
    streamed = await one.ask(key, "POST", "/v1/responses", {**body, "stream": True})
    id = _id_in(streamed.body)
    again = await other.ask(key, "GET", f"/v1/responses/{id}?stream=true")
    assert again.body == streamed.body
    hanging = {**body, "input": "[[demo:hang]]"}
    id = (await one.answer(key, "POST", "/v1/responses", hanging))["id"]
    assert (await other.answer(key, "POST", f"/v1/responses/{id}/cancel"))["status"] == "cancelled"
    assert (await one.answer(key, "GET", f"/v1/responses/{id}"))["status"] == "cancelled"


async def _has_ended(machine: Machine, key: str, id: str) -> bool:
    return bool((await machine.answer(key, "GET", f"/v1/responses/{id}"))["status"] == "completed")


def _id_in(stream: bytes) -> str:
    start = stream.index(b'"resp_') + 1
    return stream[start : stream.index(b'"', start)].decode()


async def summaries(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    _, key = await fleet.new_key(one)
    _, strange = await fleet.new_key(other)
    turns = [_user("My number is 7."), {"role": "assistant", "content": "Noted."}]
    compacted = await one.answer(
        key, "POST", "/v1/responses/compact", {"model": "demo-anthropic", "input": turns}
    )
    word = _word()
    body = {"model": GPT, "store": False, "input": [*compacted["output"], _user(word)]}
    await other.answer(key, "POST", "/v1/responses", body)
    assert "encrypted_content" not in fleet.sent_with(word)
    assert (await other.ask(strange, "POST", "/v1/responses", body)).status == 400


async def wiping(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    name, key = await fleet.new_key(one)
    id = (await one.answer(key, "POST", "/v1/responses", {"model": "demo", "input": "hi"}))["id"]
    await other.answer(key, "GET", f"/v1/responses/{id}")
    assert (await other.ask(ADMIN, "DELETE", f"/v1/admin/callers/{name}/data")).status == 200
    assert (await one.ask(key, "GET", f"/v1/responses/{id}")).status == 404


async def reports(fleet: RollingFleet, one: Machine, other: Machine) -> None:
    """What the commands of either version say of the other's machines."""
    listed = [
        await asyncio.to_thread(machine.served.run, "keys", "list", "--config", "wireglot.toml", "--json")
        for machine in (one, other)
    ]
    assert len(listed[0]) > 100
    assert listed[0] == listed[1]


AGREEMENTS: Final[tuple[Agreement, ...]] = (
    chains, conversations, sessions, sealed_envelopes, reasoning_vault, client_keys, rates, budgets,
    concurrency, cool_downs, idempotency, background, summaries, wiping,
)  # fmt: skip
