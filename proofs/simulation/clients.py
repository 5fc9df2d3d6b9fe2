"""The clients of a run: what they send, when they leave, and what they were told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import httptools
import msgspec

from proofs.lab.questions import CLIENTS, question, whole
from wireglot_core.dialects.registry import DialectName

PATIENCE_SECONDS: Final = 90.0
"""After which a client leaves by itself."""
_READ: Final = 64 * 1024
_ENDS: Final[dict[str, tuple[bytes, ...]]] = {
    "anthropic": (b"event: message_stop\n", b"event: error\n"),
    "openai-chat": (b"data: [DONE]\n", b'data: {"error"'),
    "openai-responses": (
        b"event: response.completed\n",
        b"event: response.failed\n",
        b"event: response.incomplete\n",
        b"event: error\n",
    ),
    "gemini": (b'"finishReason"', b'data: {"error"'),
}
"""What ends a stream: the first is its good end."""


class Asked(msgspec.Struct, eq=False):
    """One request, and what its client knows of it."""

    mark: str
    """Stands in the model's name and in the text: it comes back in the answer, and in the ledger."""
    dialect: DialectName
    stream: bool
    key: str
    stored: bool = False
    background: bool = False
    """The provider is asked while nobody waits."""
    session: str = ""
    """Of the gateway's: it keeps the conversation."""
    idempotency: str = ""
    again: bool = False
    """The same request as one before."""
    began: float = 0.0
    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    whole: bool = False
    """The answer came to its HTTP end."""
    left: bool = False
    """The client left before."""
    problem: str = ""
    ended: float = 0.0

    @property
    def acknowledged(self) -> bool:
        """The gateway has said that it is done."""
        return (
            self.whole and self.status == 200 and not self.background and (not self.stream or self.good_end)
        )

    @property
    def good_end(self) -> bool:
        return self.ends == 1 and _ENDS[self.dialect][0] in self.body

    @property
    def ends(self) -> int:
        ends = sum(self.body.count(mark) for mark in _ENDS[self.dialect])
        # OpenAI reports a failure twice: as an event `error`, and as the failed response.
        told_twice = b"event: response.failed\n" in self.body and b"event: error\n" in self.body
        return ends - told_twice

    @property
    def tokens(self) -> int | None:
        """As the client was told; None where it was not."""
        if self.stream or not self.acknowledged:
            return None
        document = msgspec.json.decode(self.body)
        usage = document.get("usage") or document.get("usageMetadata") or {}
        for total in ("total_tokens", "totalTokenCount"):
            if total in usage:
                return int(usage[total])
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return sum(usage.get(name) or 0 for name in names) if "input_tokens" in usage else None

    @property
    def response_id(self) -> str:
        """Of a stored response."""
        if self.background and self.whole and self.status == 200:
            return str(msgspec.json.decode(self.body)["id"])
        if not self.stored or not self.acknowledged:
            return ""
        document = msgspec.json.decode(self.body) if not self.stream else _last_response(self.body)
        return str(document["id"]) if document.get("store") else ""


def _last_response(stream: bytes) -> Any:
    for line in reversed(stream.splitlines()):
        if line.startswith(b"data: ") and b'"response.completed"' in line:
            return msgspec.json.decode(line[6:])["response"]
    return {}


class _Answer:
    def __init__(self, asked: Asked) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.asked = asked
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.is_whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_whole = True


class Client:
    """One after the other, over connections that are kept or not."""

    def __init__(self, number: int, address: tuple[str, int], chance: random.Random, keys: list[str]) -> None:
        self.number = number
        self._address = address
        self._chance = chance
        self._keys = keys
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._count = 0
        self.asked: list[Asked] = []
        self._last = ""
        self.leaves = 0.0
        """How often it leaves before it has its answer, and within how many seconds."""
        self.leaves_within = 3.0
        self.on_answer: Callable[[], None] = lambda: None

    async def run(self, count: int, pause: float) -> None:
        for _ in range(count):
            await asyncio.sleep(self._chance.random() * pause)
            if self.asked and self._chance.random() < 0.1 and self.asked[-1].idempotency:
                await self._repeat(self.asked[-1])
            else:
                await self.ask(self._next())
        self.close()

    def _next(self) -> Asked:
        self._count += 1
        chance = self._chance
        dialect, key = chance.choice(CLIENTS), chance.choice(self._keys)
        background = dialect == "openai-responses" and chance.random() < 0.2
        in_session = dialect == "anthropic" and chance.random() < 0.4
        return Asked(
            mark=f"mark{self.number}x{self._count}y",
            dialect=dialect,
            stream=chance.random() < 0.6 and not background,
            key=key,
            stored=background or (dialect == "openai-responses" and chance.random() < 0.5),
            background=background,
            session=f"session-{self.number}-{key[:3]}" if in_session else "",
            idempotency=f"once-{self.number}-{self._count}" if chance.random() < 0.15 else "",
        )

    async def _repeat(self, before: Asked) -> None:
        names = ("mark", "dialect", "stream", "key", "stored", "background", "session", "idempotency")
        fresh = Asked(**{name: getattr(before, name) for name in names}, again=True)
        await self.ask(fresh)

    async def ask(self, asked: Asked, *, patient: bool = False) -> Asked:
        """`patient`: it does not leave."""
        self.asked.append(asked)
        chance = self._chance
        asked.began = asyncio.get_running_loop().time()
        path, document = question(asked.dialect, f"a-{asked.mark}", f"[[demo:echo]] {asked.mark}")
        if asked.stored:
            document["store"] = True
            if asked.background:
                document["background"] = True
            if self._last and chance.random() < 0.5 and not asked.again:
                document["previous_response_id"] = self._last
        if not asked.stream:
            path, document = whole(path, document)
        headers = {"authorization": f"Bearer {asked.key}", "anthropic-version": "2023-06-01"}
        if asked.session:
            headers["x-wireglot-session"] = asked.session
        if asked.idempotency:
            headers["idempotency-key"] = asked.idempotency
        leaves = PATIENCE_SECONDS
        if not patient and chance.random() < self.leaves:
            leaves = chance.random() ** 2 * self.leaves_within
        slow = 0.0 if patient or chance.random() > 0.1 else chance.random() * 0.5
        try:
            async with asyncio.timeout(leaves):
                await self._talk("POST", path, headers, msgspec.json.encode(document), asked, slow)
        except TimeoutError as left:
            asked.left = True
            asked.problem = repr(left)
            self.close()
        except (OSError, EOFError, httptools.HttpParserError) as problem:
            asked.problem = repr(problem)
            self.close()
        asked.ended = asyncio.get_running_loop().time()
        if asked.acknowledged:
            self.on_answer()
        if chance.random() < 0.2:
            self.close()
        if asked.acknowledged:
            self._last = asked.response_id or self._last
        return asked

    async def get(self, path: str, key: str) -> Asked:
        """Anything else that is asked for."""
        asked = Asked("", "openai-responses", False, key)
        headers = {"authorization": f"Bearer {key}"}
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._talk("GET", path, headers, b"", asked, 0.0)
        except (OSError, EOFError) as problem:
            asked.problem = repr(problem)
            self.close()
        return asked

    async def _talk(
        self, method: str, path: str, headers: dict[str, str], body: bytes, asked: Asked, slow: float
    ) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address, limit=_READ)
        reader, writer = self._streams
        length = {"host": "localhost", "content-type": "application/json", "content-length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in (headers | length).items())
        head = f"{method} {path} HTTP/1.1\r\n{lines}\r\n"
        writer.write(head.encode() + body)
        answer = _Answer(asked)
        try:
            while not answer.is_whole:
                data = await reader.read(_READ)
                if not data:
                    raise EOFError("the connection ended")
                answer.parser.feed_data(data)
                if slow:
                    await asyncio.sleep(slow)
        finally:
            with suppress(httptools.HttpParserError):
                asked.status = answer.parser.get_status_code()
            asked.headers, asked.body, asked.whole = answer.headers, bytes(answer.body), answer.is_whole
        if answer.headers.get("connection", "").lower() == "close":
            self.close()

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
