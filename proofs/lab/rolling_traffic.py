"""Callers that use all machines of a fleet while these come and go, and note what was acknowledged."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections import Counter
from typing import Any, Final

import msgspec

from proofs.lab.link import Reply
from proofs.lab.rolling_fleet import Machine, RollingFleet

_ANTHROPIC: Final = {"anthropic-version": "2023-06-01"}
_MODELS: Final = ("demo-gemini", "demo-anthropic", "demo-openai-chat", "demo-openai-responses")
_CHAIN: Final = 30
"""Longer chains only cost time."""
_PAUSE_SECONDS: Final = 0.02


class Acknowledged:
    def __init__(self) -> None:
        self.responses: dict[str, tuple[str, str]] = {}
        """By id: whose key, and the word in it."""
        self.sessions: dict[tuple[str, str], list[str]] = {}
        """By key and name: the words, in their order."""
        self.requests: dict[str, int] = {}
        """By request id: the tokens that the client was sent."""
        self.by_version: Counter[str] = Counter()
        self.crossed = 0
        """Turns that went on at another version than the one before them."""
        self.broken = 0
        self.problems: list[str] = []


class Caller:
    def __init__(self, fleet: RollingFleet, key: str, chance: random.Random, reported: Acknowledged) -> None:
        self._fleet = fleet
        self._key = key
        self._chance = chance
        self._reported = reported
        self._last = ""
        self._length = 0
        self._session = 0
        self._version = ""
        self._before: dict[str, str] = {}
        """By what is gone on with: the version that had it last."""

    async def run(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            kind = self._chance.choice((self._stored, self._turn, self._plain, self._once, self._look))
            try:
                await kind(f"word-{secrets.token_hex(8)}")
            except (OSError, asyncio.IncompleteReadError):
                self._reported.broken += 1  # its machine has left: nothing was acknowledged
                await asyncio.sleep(_PAUSE_SECONDS)
            except Exception as problem:
                self._reported.problems.append(f"{kind.__name__}: {type(problem).__name__}: {problem}"[:500])

    async def _ask(
        self, path: str, body: Any, headers: dict[str, str] | None = None, machine: Machine | None = None
    ) -> Reply:
        machine = machine or self._chance.choice(self._fleet.serving())
        self._version = machine.version
        reply = await machine.ask(self._key, "POST", path, body, headers)
        assert reply.status == 200, f"{machine}: {path}: {reply.status} {reply.body[:300]!r}"
        self._reported.by_version[machine.version] += 1
        return reply

    def _goes_on(self, what: str) -> None:
        if self._before.get(what, self._version) != self._version:
            self._reported.crossed += 1
        self._before[what] = self._version

    def _account(self, reply: Reply, tokens: int) -> None:
        self._reported.requests[reply.headers["x-wireglot-request-id"]] = tokens

    async def _stored(self, word: str) -> None:
        stream = self._chance.random() < 0.5
        body: dict[str, Any] = {"model": self._model(), "input": f"[[demo:echo]] {word}", "stream": stream}
        if self._last and self._length < _CHAIN:
            body["previous_response_id"] = self._last
        reply = await self._ask("/v1/responses", body)
        response = _completed(reply.body) if stream else reply.json()
        assert word in msgspec.json.encode(response["output"]).decode(), "an answer to something else"
        self._length = self._length + 1 if "previous_response_id" in body else 1
        self._last = response["id"]
        self._reported.responses[self._last] = (self._key, word)
        self._account(reply, response["usage"]["total_tokens"])
        self._goes_on("chain")

    async def _turn(self, word: str) -> None:
        name = f"session-{self._session // _CHAIN}"
        self._session += 1
        headers = {"x-wireglot-session": name}
        say = {"role": "user", "content": f"[[demo:echo]] {word}"}
        kind = self._chance.choice(("messages", "chat", "simple"))
        if kind == "messages":
            body = {"model": self._model(), "messages": [say], "max_tokens": 500}
            reply = await self._ask("/v1/messages", body, {**headers, **_ANTHROPIC})
            usage = reply.json()["usage"]
            cached = [usage.get(f"cache_{what}_input_tokens") or 0 for what in ("read", "creation")]
            tokens = usage["input_tokens"] + usage["output_tokens"] + sum(cached)
        elif kind == "chat":
            reply = await self._ask(
                "/v1/chat/completions", {"model": self._model(), "messages": [say]}, headers
            )
            tokens = reply.json()["usage"]["total_tokens"]
        else:
            reply = await self._ask("/v1/gemini", {"model": self._model(), "input": say["content"]}, headers)
            tokens = reply.json()["usageMetadata"]["totalTokenCount"]
        self._reported.sessions.setdefault((self._key, name), []).append(word)
        self._account(reply, tokens)
        self._goes_on("session")

    async def _plain(self, word: str) -> None:
        say = {"role": "user", "content": f"[[demo:echo]] {word}"}
        reply = await self._ask("/v1/chat/completions", {"model": self._model(), "messages": [say]})
        self._account(reply, reply.json()["usage"]["total_tokens"])

    async def _once(self, word: str) -> None:
        """The same bytes again, at any machine."""
        headers = {"idempotency-key": word}
        body = {"model": self._model(), "messages": [{"role": "user", "content": word}]}
        first = await self._ask("/v1/chat/completions", body, headers)
        self._account(first, first.json()["usage"]["total_tokens"])
        self._goes_on(word)
        again = await self._ask("/v1/chat/completions", body, headers)
        self._goes_on(word)
        del self._before[word]
        assert again.headers.get("idempotent-replayed") == "true", "it was answered twice"
        assert again.body == first.body, "another answer to the same request"

    async def _look(self, word: str) -> None:
        if not self._last:
            return
        machine = self._chance.choice(self._fleet.serving())
        reply = await machine.ask(self._key, "GET", f"/v1/responses/{self._last}")
        _, said = self._reported.responses[self._last]
        assert reply.status == 200, f"{machine}: {self._last}: {reply.status}"
        assert said in reply.body.decode(), f"{machine}: {self._last}: not what was said"

    def _model(self) -> str:
        return self._chance.choice(_MODELS)


def _completed(stream: bytes) -> Any:
    for line in stream.splitlines():
        if line.startswith(b"data: ") and b'"response.completed"' in line[:60]:
            return msgspec.json.decode(line[6:])["response"]
    raise AssertionError(f"it did not complete: {stream[-300:]!r}")
