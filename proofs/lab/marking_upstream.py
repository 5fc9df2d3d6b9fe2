"""An upstream that says what it was given and nothing else: each question carries a mark of its own, and so
do the answer, its headers, and every error. The mark says how the answer is to fail, too."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import Reasoning, Text
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response, Stop, Usage
from wireglot_core.ir.stream import Delta, Event, unfold
from wireglot_core.testing.laws import write_stream
from wireglot_core.wire.json import encode

FAILURES: Final = ("refuse", "limit", "close", "reset", "cut", "garbage")
"""An error, an error that asks to wait, the connection's end before the answer (in order, or not) or within
it, and an answer that nobody can read."""
MARK: Final = re.compile(rb"mark(\d{4})x(\d{8})([a-z]+)")
SPEAKERS: Final[tuple[DialectName, ...]] = ("anthropic", "openai-chat", "openai-responses", "gemini")
PROVIDER_KEY: Final = "not-a-secret"

_SHAPE: Final = "mark0000x00000000well"
_REPEATS: Final = 6
_LENGTH: Final = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAMED: Final = re.compile(rb'"stream": ?true|streamGenerateContent')
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_STATUSES: Final = {"refuse": b"503 Service Unavailable", "limit": b"429 Too Many Requests"}


class Seen(NamedTuple):
    """A request as it arrived."""

    head: bytes
    body: bytes


def mark(caller: int, exchange: int, way: str = "well") -> str:
    return f"mark{caller:04d}x{exchange:08d}{way}"


class _Words:
    """What a dialect's answers look like, with the place of a mark in them."""

    def __init__(self, name: DialectName) -> None:
        spoken, context = dialect(name), Context(now=1_760_000_000)
        answer = Response(
            id=f"id_{_SHAPE}",
            model="marked",
            content=(Reasoning(f"I was reported {_SHAPE}."), Text(f"You said {_SHAPE}. ")),
            stop=Stop("end"),
            usage=Usage(input=7, output=9),
        )
        self.whole = encode(spoken.render_response(answer, context).value)
        self.stream = write_stream(spoken, _repeated(list(unfold(answer))), context).value
        error = ApiError("overloaded", f"no room for {_SHAPE}", 503)
        self.error = encode(spoken.render_error(error, context).value)


def _repeated(events: list[Event]) -> list[Event]:
    """A stream in more pieces than it needs."""
    return [each for event in events for each in ([event] * _REPEATS if type(event) is Delta else [event])]


class _Connection(asyncio.Protocol):
    def __init__(self, upstream: MarkingUpstream) -> None:
        self._upstream = upstream
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

        self._upstream.connections += 1

    def data_received(self, data: bytes) -> None:
        self._upstream.bytes += len(data)
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end]
            length = _LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._held) < whole:
                return
            body, self._held = self._held[end + 4 : whole], self._held[whole:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        reported = MARK.findall(body)
        self._upstream.asked += 1
        if self._upstream.seen is not None:
            self._upstream.seen.append(Seen(head, body))
        if not reported:
            self._transport.close()
            return
        caller, exchange, way = reported[-1]
        said = b"mark%b%b%b" % (caller, b"x" + exchange, way)
        words = self._upstream.words[_speaker(head)]
        name = way.decode()
        if name in ("close", "reset"):
            self._leave(reset=name == "reset")
            return
        streamed = _STREAMED.search(head.partition(b"\r\n")[0]) or _STREAMED.search(body)
        status, data = b"200 OK", words.stream if streamed else words.whole
        if name in _STATUSES:
            status, data, streamed = _STATUSES[name], words.error, None
        data = data.replace(_SHAPE.encode(), said)
        if name in self._upstream.ways:
            self._transport.write(self._upstream.ways[name](said, data))
            return
        if name == "garbage":
            data = data[:-40].replace(b":", b";", 30) + said
        kind = b"text/event-stream" if streamed else b"application/json"
        wait = b"retry-after: 1\r\n" if name == "limit" else b""
        self._transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: %b\r\nx-request-id: req-%b\r\ncontent-length: %d\r\n%b\r\n"
            % (status, kind, said, len(data), wait)
            + (data[: len(data) // 2] if name == "cut" or streamed else data)
        )
        if name == "cut":
            self._transport.close()
        elif streamed:  # in two pieces, so that a client can leave between them
            asyncio.get_running_loop().call_soon(self._transport.write, data[len(data) // 2 :])

    def _leave(self, *, reset: bool) -> None:
        if reset:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.close()


def provider_table(name: str, speaker: DialectName, url: str, retry: str = "retries = 1\n") -> str:
    """A provider for a configuration that never rests, however often it fails: every question is asked.
    `url`: without a path; `retry`: the lines of that table."""
    version = {"anthropic": "", "gemini": "/v1beta"}.get(speaker, "/v1")
    return (
        f'[providers.{name}]\ndialect = "{speaker}"\nbase_url = "{url}{version}"\n'
        f'api_key = "{PROVIDER_KEY}"\n[providers.{name}.retry]\n{retry}'
        f"[providers.{name}.breaker]\nconsecutive = 1000000000\nminimum = 1000000000\n"
    )


def _speaker(head: bytes) -> DialectName:
    path = head.split(b" ", 2)[1]
    if b"/messages" in path:
        return "anthropic"
    if b"/chat/completions" in path:
        return "openai-chat"
    return "openai-responses" if b"/responses" in path else "gemini"


class MarkingUpstream:
    """`record`: all requests are kept, as they arrived."""

    def __init__(self, *, record: bool = False) -> None:
        self.asked = 0
        self.connections = 0
        self.bytes = 0
        """That arrived, behind TLS where it is spoken."""
        self.seen: list[Seen] | None = [] if record else None
        self.ways: dict[str, Callable[[bytes, bytes], bytes]] = {}
        """Further ways that a mark may name: the mark and the plain answer -> all that is sent."""
        self.words = {name: _Words(name) for name in SPEAKERS}

    async def start(self, context: ssl.SSLContext | None = None) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=4096, ssl=context
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()
