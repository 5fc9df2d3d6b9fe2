"""Mixed traffic for hours: every dialect to every provider, clients that leave, upstreams that fail."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import httptools

from proofs.bench.bodies import body
from proofs.bench.targets import HEADERS, PROVIDERS
from wireglot_core.dialects.registry import DialectName

_DIALECTS = ("anthropic", "openai-chat", "openai-responses", "gemini")
_ENDINGS = {
    "anthropic": b"event: message_stop",
    "openai-chat": b"data: [DONE]",
    "openai-responses": b"event: response.completed",
    "gemini": b'"finishReason"',
}
_PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
_PLANS = ("mock-c20", "mock-c200", "mock-c40-g5", "mock-d30-c5", "mock-s20000-c10-w2000")
_FAULTS = ("mock-e500", "mock-e429", "mock-e503", "mock-x0", "mock-x7", "mock-c20-m9", "mock-c20-g5-x9")
_PATIENCE = 60.0

ABORTS = 0.10
FAULTS = 0.08


class Job(NamedTuple):
    dialect: str
    provider: str
    size: str
    stream: bool
    plan: str
    faulty: bool
    leaves: float
    """The client leaves: -1 in the midst of its own request, else after so many seconds; 0 stays."""

    def request(self, host: str) -> bytes:
        model = f"{'bad-' if self.faulty else ''}{self.provider}/{self.plan}"
        content = _content(self.dialect, self.size, model, self.stream)
        if self.dialect == "gemini":
            verb = "streamGenerateContent?alt=sse" if self.stream else "generateContent"
            path = f"/v1beta/models/{model}:{verb}"
        else:
            path = _PATHS[self.dialect]
        lines = [f"POST {path} HTTP/1.1", f"host: {host}", "content-type: application/json", *HEADERS]
        lines += [f"content-length: {len(content)}", "", ""]
        return "\r\n".join(lines).encode() + content


@lru_cache(maxsize=512)
def _content(dialect: DialectName, size: str, model: str, stream: bool) -> bytes:
    return body(dialect, size, model, stream=stream)


def draw(chance: random.Random) -> Job:
    faulty = chance.random() < FAULTS
    leaves = 0.0
    if chance.random() < ABORTS:
        leaves = chance.choice((-1.0, chance.uniform(0.0005, 0.3)))
    return Job(
        chance.choice(_DIALECTS),
        chance.choice(tuple(PROVIDERS)),
        chance.choices(("tiny", "2k", "100k"), (4, 5, 1))[0],
        chance.random() < 0.7,
        chance.choice(_FAULTS if faulty else _PLANS),
        faulty,
        leaves,
    )


class Answer:
    """What came back so far."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.body = b""
        self.whole = False
        self.kept = False

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.whole = True
        self.kept = self.parser.should_keep_alive()


class Client:
    """One client after the other on one connection, as long as the connection lasts."""

    def __init__(self, port: int, chance: random.Random, tally: Counter[str], odd: list[str]) -> None:
        self._port = port
        self._chance = chance
        self._tally = tally
        self._odd = odd
        self._writer: asyncio.StreamWriter | None = None

    async def run(self, stopped: asyncio.Event) -> None:
        while not stopped.is_set():
            job = draw(self._chance)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._do(job)
            except TimeoutError:
                self._wrong(job, f"no end within {_PATIENCE:.0f} s")
                await self.hang_up()
            except OSError as fault:
                if not job.faulty and not job.leaves:
                    self._wrong(job, f"connection: {fault!r}")
                self._tally["cut"] += 1
                await self.hang_up()
        await self.hang_up()

    async def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        self._writer = None

    async def _do(self, job: Job) -> None:
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        request = job.request(f"127.0.0.1:{self._port}")
        self._tally["requests"] += 1
        if job.leaves < 0:
            self._writer.write(request[: self._chance.randrange(1, len(request))])
            await self._writer.drain()
            return await self._leave()
        self._writer.write(request)
        if not job.leaves:
            return self._judge(job, await self._listen())
        try:
            async with asyncio.timeout(job.leaves):
                self._judge(job, await self._listen())
        except TimeoutError:
            await self._leave()
        return None

    async def _leave(self) -> None:
        self._tally["left"] += 1
        if self._writer is not None and self._chance.random() < 0.5:
            self._writer.transport.abort()
        await self.hang_up()

    async def _listen(self) -> Answer:
        answer = Answer()
        while not answer.whole:
            data = await self._reader.read(65536)
            if not data:
                raise ConnectionResetError("closed before the end")
            try:
                answer.parser.feed_data(data)
            except httptools.HttpParserError as fault:
                raise ConnectionResetError(f"unreadable: {fault}") from None
        if not answer.kept:
            await self.hang_up()
        return answer

    def _judge(self, job: Job, answer: Answer) -> None:
        status = answer.parser.get_status_code()
        self._tally[f"status {status}"] += 1
        complete = status == 200 and (not job.stream or _ENDINGS[job.dialect] in answer.body)
        if not job.faulty and not complete:
            self._wrong(job, f"status {status}: {answer.body[-300:]!r}")
        elif "-x" in job.plan and complete:
            self._wrong(job, "a stream that was cut off looks whole")

    def _wrong(self, job: Job, what: str) -> None:
        self._tally["wrong"] += 1
        if len(self._odd) < 10:
            self._odd.append(f"{job}: {what}")
