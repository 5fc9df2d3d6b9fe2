"""Fuzzed through the whole gateway: the bytes of HTTP, and the ids of what is remembered.

The gateway runs in this process with its demo provider. Most inputs are handed to a connection of its server
without any socket; a share of them goes over real ones.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import quote

import msgspec

from proofs.lab.fuzz_codecs import json_seeds, names_in
from proofs.lab.fuzz_mutations import Mutator
from proofs.lab.fuzz_target import Found, Input
from wireglot.gateway.config import load
from wireglot.gateway.run import Process
from wireglot.gateway.state.losses import shelf
from wireglot.http.server.connection import Hub, ServerConnection
from wireglot.http.server.phases import WAITING
from wireglot_core.testing.laws import cut_at

_KEYS: Final = {"a": "key-of-a-0123456789abcdef", "b": "key-of-b-0123456789abcdef"}
_ADMIN: Final = "admin-secret-0123456789"
_TOML: Final = (
    '[server]\nport = 0\nsecret = "a-secret-of-its-own"\nlog = "json"\n'
    f'admin_secret = "{_ADMIN}"\n[limits]\nrequests_per_key = 0\nauth_failures = 1000000000\n'
    '[providers]\ndiscover = false\n[providers.demo]\n[store]\nurl = "memory:"\n[keys]\n'
) + "".join(f'{name} = "sha256:{hashlib.sha256(key.encode()).hexdigest()}"\n' for name, key in _KEYS.items())
_MARK_OF_A: Final = "mark-that-only-a-may-see"
_OVER_SOCKETS: Final = 1 / 200
_SOCKET_SECONDS: Final = 0.02
"""A request that is not whole gets no answer, and need not be waited for."""
_QUICK_STEPS: Final = 300
_SETTLE_SECONDS: Final = 30.0
_TAIL_BYTES: Final = 16_384
_STATUS: Final = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_VERSION_NOT_SPOKEN: Final = 505
"""The one status of the 500s that tells of the client's fault."""


class _Line(asyncio.Transport):
    """A client's end that takes everything."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.written = bytearray()
        self.statuses: list[int] = []
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        head = _STATUS.match(data)
        if head is not None and head[1] != b"100":
            self.statuses.append(int(head[1]))
        self.written += data

    def write_eof(self) -> None:
        """It may still send."""

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        """What is sent is sent."""

    def resume_reading(self) -> None:
        """As above."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits."""

    def get_write_buffer_size(self) -> int:
        return 0


class _Gateway:
    """Lives between `begin` and `end`, in a loop of its own that runs only while an input is tried."""

    def begin(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._reported)
        self._reports: list[str] = []
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - until `end`
        self._loop.run_until_complete(self._start())

    def end(self) -> None:
        with suppress(Exception):
            self._loop.run_until_complete(asyncio.wait_for(self._process.close(), 10))
        self._loop.close()
        self._log.close()

    async def _start(self) -> None:
        path = Path("no-such-folder") / "wireglot.toml"
        settings = load(path, environ={}, content=_TOML.encode())
        self._process = Process(settings, environ={}, log_fd=self._log.fileno())
        await self._process.start()
        self._hub: Hub = self._process.server._hub

    def _reported(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._reports.append(f"{context['message']}: {context.get('exception')!r}")

    def answered(self, data: bytes, places: list[int]) -> _Line:
        """What comes of bytes that arrive in pieces, once nothing is at work on them any more."""
        return self._loop.run_until_complete(self._fed(data, places))

    async def _fed(self, data: bytes, places: list[int]) -> _Line:
        line, connection = _Line(), ServerConnection(self._hub)
        connection.connection_made(line)
        for piece in cut_at(data, places):
            if piece and not line.is_closing():
                connection.data_received(piece)
                if places:
                    await asyncio.sleep(0)
        await self._settled(connection)
        connection.eof_received()
        connection.connection_lost(None)
        return line

    async def _settled(self, connection: ServerConnection) -> None:
        for _ in range(_QUICK_STEPS):
            if not self._hub.tasks and connection._phase != WAITING:
                return
            await asyncio.sleep(0)
        while self._hub.tasks:
            _, late = await asyncio.wait(tuple(self._hub.tasks), timeout=_SETTLE_SECONDS)
            if late:
                raise Found(f"{len(late)} requests are never answered: {late}")
            await asyncio.sleep(0)

    def sent(self, data: bytes) -> _Line:
        """The same over a socket."""
        return self._loop.run_until_complete(self._over_socket(data))

    async def _over_socket(self, data: bytes) -> _Line:
        line = _Line()
        reader, writer = await asyncio.open_connection(*self._process.address)
        with suppress(OSError, TimeoutError):
            writer.write(data)
            while got := await asyncio.wait_for(reader.read(1 << 16), _SOCKET_SECONDS):
                line.write(got)
        writer.close()
        return line

    def judged(self, line: _Line) -> str:
        if self._reports:
            reported, self._reports = self._reports, []
            raise Found("; ".join(reported))
        for status in line.statuses:
            if status >= 500 and status != _VERSION_NOT_SPOKEN:
                raise Found(f"{status}: {self._last_words()}")
        return f"status {line.statuses[0]}" if line.statuses else "no answer"

    def _last_words(self) -> str:
        """What the log says of an error that the answer keeps to itself."""
        self._log.seek(max(0, self._log.tell() - _TAIL_BYTES))
        lines = self._log.read().splitlines()
        reported = [line for line in lines if b'"level":"error"' in line or b"traceback" in line]
        return b"\n".join(reported[-2:] or lines[-2:]).decode()


def _request(method: str, path: str, body: bytes = b"", *headers: str, key: str = _KEYS["b"]) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", f"authorization: Bearer {key}", *headers]
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


_PATHS: Final = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/demo-gemini:generateContent",
    "code-assist": "/v1internal:generateContent",
}
_PAGES: Final = (
    "GET /healthz", "GET /readyz", "GET /metrics", "GET /", "HEAD /v1/models", "GET /v1/models/demo-gemini",
    "GET /v1beta/models?pageSize=1&key=x", "GET /v1/usage?group_by=key&from=2025-01-01", "GET /v1/sessions",
    "GET /v1/responses/resp_1?stream=true&starting_after=1", "DELETE /v1/conversations/conv_1/items/i",
    "GET /v1/requests/req_1/losses", "GET /v1/admin/keys?limit=2", "GET /v1/admin/store", "PUT /v1/messages",
    "GET /openai/v1/models", "DELETE /v1/admin/callers/a/data", "OPTIONS /v1/messages", "CONNECT a:1",
    "GET http://localhost/v1/models",
)  # fmt: skip
_HEADERS: Final = (
    b"content-length: 5", b"transfer-encoding: chunked", b"connection: close", b"connection: keep-alive, x",
    b"expect: 100-continue", b"upgrade: websocket", b"origin: https://a.example", b"content-encoding: gzip",
    b"sec-fetch-site: cross-site", b"x-api-key: " + _KEYS["b"].encode(), b"x-wireglot-session: s",
    b"x-wireglot-admin: " + _ADMIN.encode(), b"idempotency-key: k", b"accept: text/event-stream",
    b"anthropic-version: 2023-06-01", b"anthropic-beta: a,b", b"openai-beta: responses=v1", b"host: [::1]:80",
    b"content-type: text/plain", b"content-type: application/json; charset=latin-1", b"range: bytes=0-1",
    b"access-control-request-method: POST", b"traceparent: 00-0-0-01", b"x-wireglot-losses: strict",
)  # fmt: skip
_HTTP_WORDS: Final = (
    *_HEADERS, b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"\0", b"\t", b" ", b":", b"HTTP/1.0", b"HTTP/1.1",
    b"HTTP/2.0", b"GET", b"POST", b"HEAD", b"%2F", b"%00", b"..", b"//", b"?", b"#", b"0\r\n\r\n",
    b"5\r\nhello\r\n", b";a=b", b"ffffffffffffffff", b"%ff", b"\xff", b"/v1/", b"/v1beta/models/",
    b":streamGenerateContent?alt=sse",
)  # fmt: skip


class HttpBytes(_Gateway):
    """Whatever bytes arrive: an answer that is no fault of ours, or none."""

    def __init__(self) -> None:
        bodies = [seed for seed in json_seeds("requests") if len(seed.data) < 6000]
        self._seeds = [
            Input("http", _request("POST", _PATHS[name], self._demo(seed.data)))
            for seed in bodies
            if (name := seed.form.partition(" ")[0]) in _PATHS
        ]
        for page in _PAGES:
            method, _, target = page.partition(" ")
            self._seeds.append(Input("http", _request(method, target)))
        hello = b'{"model":"demo-anthropic","messages":[{"role":"user","content":"Hi."}],"stream":true}'
        chunks = b"%x\r\n%b\r\n0\r\n\r\n" % (len(hello), hello)
        for header in ("", "expect: 100-continue\r\n", "accept: */*\r\n"):
            head = f"content-type: application/json\r\n{header}transfer-encoding: chunked"
            self._seeds.append(Input("http", _request("POST", _PATHS["openai-chat"], b"", head) + chunks))
        whole = _request("POST", _PATHS["openai-chat"], hello)
        self._seeds.append(Input("http", whole + _request("GET", "/v1/models") + whole))
        self._seeds += [
            Input("http", _request("GET", "/v1/models", b"", header.decode())) for header in _HEADERS
        ]
        self.words: tuple[bytes, ...] = (*_HTTP_WORDS, *names_in(bodies))

    def _demo(self, body: bytes) -> bytes:
        return re.sub(rb'"model":"[^"]*"', b'"model":"demo-anthropic"', body, count=1)

    def seeds(self) -> list[Input]:
        return list(self._seeds)

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        head, end, body = one.data.partition(b"\r\n\r\n")
        other_head, _, other_body = other.data.partition(b"\r\n\r\n")
        match mutator.chance.randrange(6):
            case 0 | 1:
                return mutator.of_bytes(one.data, other.data)
            case 2 | 3 if body:
                body = mutator.of_json(body, other_body)
                head = re.sub(rb"content-length: \d+", b"content-length: %d" % len(body), head)
                return head + end + body
            case _:
                return mutator.of_lines(head, other_head, b"\r\n") + end + body

    def tried(self, given: Input, chance: Random) -> str:
        data = given.data
        if chance.random() < _OVER_SOCKETS:
            return f"{self.judged(self.sent(data))} (over a socket)"
        places = [] if chance.random() < 0.5 else [chance.randint(0, len(data)) for _ in range(3)]
        return self.judged(self.answered(data, places))


_BODY: Final = "\x00"
"""Stands behind a path for what is in the body."""
_PLACES: Final = (
    "GET /v1/responses/{}", "GET /v1/responses/{}?stream=true", "DELETE /v1/responses/{}",
    "POST /v1/responses/{}/cancel", "GET /v1/responses/{}/input_items",
    "GET /v1/responses/RESP_B/input_items?after={}",
    "GET /v1/conversations/{}", "DELETE /v1/conversations/{}", "GET /v1/conversations/{}/items",
    "GET /v1/conversations/CONV_B/items?after={}", "GET /v1/conversations/{}/items/{}",
    "DELETE /v1/conversations/CONV_B/items/{}", "GET /v1/sessions/{}", "DELETE /v1/sessions/{}",
    "GET /v1/requests/{}/losses", "GET /v1/models/{}", "GET /v1beta/models/{}", "GET /v1/usage?key={}",
    "GET /v1/admin/keys/{}", "DELETE /v1/admin/keys/{}", "POST /v1/admin/keys/{}/rotate",
    'POST /v1/conversations/{}\x00{"metadata":{"a":"b"}}',
    'POST /v1/responses\x00{"model":"demo-anthropic","input":"x","previous_response_id":{}}',
    'POST /v1/responses\x00{"model":"demo-anthropic","input":"x","conversation":{}}',
    'POST /v1/responses\x00{"model":"demo-anthropic","input":"x","conversation":{"id":{}}}',
    'POST /v1/responses\x00{"model":"demo-anthropic","input":[{"type":"item_reference","id":{}}]}',
    'POST /v1/conversations\x00{"items":[{"type":"message","role":"user","content":"x","id":{}}]}',
    'POST /v1/responses\x00{"model":{},"input":"x"}',
    "idempotency-key", "x-wireglot-session", "authorization", "x-api-key",
)  # fmt: skip
_ID_WORDS: Final = (
    b"resp_", b"conv_", b"msg_", b"%", b"%2F", b"/", b"..", b"'",
    b'"', b"--", b";", b"*", b"\x00", b"\xff", b":",
    "é".encode(), "\u202e".encode(), b"a" * 300,
    b"\\", b"{}", b"$", b"?", b"#", b" ", b"null", b"_wg", b"KEY_A",
)  # fmt: skip
_OWNED: Final = ("RESP", "CONV", "ITEM", "SESSION", "REQUEST")


class Ids(_Gateway):
    """Ids of responses, conversations, sessions and requests, in every place where one is taken. `b` asks:
    whatever it says, it sees nothing of `a`, and takes nothing away from it."""

    def __init__(self) -> None:
        owned = [f"{kind}_{owner}" for kind in _OWNED for owner in "AB"]
        self.words: tuple[bytes, ...] = (*(each.encode() for each in owned), *_ID_WORDS)
        self._seeds = [Input(place, each.encode()) for place in _PLACES for each in owned]

    def seeds(self) -> list[Input]:
        return list(self._seeds)

    def begin(self) -> None:
        # An unknown id is looked for again, in case it is on its way: here nearly every one is unknown.
        self._unhurried = patch.object(shelf, "_LOOK_SECONDS", 0.0)
        self._unhurried.start()
        super().begin()
        self._real: dict[bytes, bytes] = {b"KEY_A": b"a"}
        for owner, key in _KEYS.items():
            said = _MARK_OF_A if owner == "a" else "of b"
            body = msgspec.json.encode({"model": "demo-anthropic", "input": f"{said} [[demo:echo]]"})
            line = self.answered(_request("POST", "/v1/responses", body, key=key), [])
            self._own("RESP", owner, re.search(rb'"(resp_[^"]+)"', line.written))
            self._own("REQUEST", owner, re.search(rb"x-wireglot-request-id: (\S+)", line.written))
            item = {"type": "message", "role": "user", "content": said}
            body = msgspec.json.encode({"items": [item], "metadata": {"of": said}})
            line = self.answered(_request("POST", "/v1/conversations", body, key=key), [])
            self._own("CONV", owner, re.search(rb'"(conv_[^"]+)"', line.written))
            items = f"/v1/conversations/{self._real[f'CONV_{owner.upper()}'.encode()].decode()}/items"
            self._own(
                "ITEM",
                owner,
                re.search(rb'"id":"([^"]+)"', self.answered(_request("GET", items, key=key), []).written),
            )
            session = f"session-of-{owner}"
            self._real[f"SESSION_{owner.upper()}".encode()] = session.encode()
            body = msgspec.json.encode(
                {"model": "demo-anthropic", "messages": [{"role": "user", "content": said}]}
            )
            self.answered(
                _request("POST", _PATHS["openai-chat"], body, f"x-wireglot-session: {session}", key=key), []
            )

    def _own(self, kind: str, owner: str, found: re.Match[bytes] | None) -> None:
        if found is None:
            raise Found(f"no {kind} of {owner}")
        self._real[f"{kind}_{owner.upper()}".encode()] = bytes(found[1])

    def end(self) -> None:
        try:
            for path in ("/v1/responses/RESP_A", "/v1/conversations/CONV_A/items", "/v1/sessions/SESSION_A"):
                real = self._named(path.encode()).decode()
                line = self.answered(_request("GET", real, key=_KEYS["a"]), [])
                if _MARK_OF_A.encode() not in line.written:
                    raise Found(f"a's own is gone: {path}: {bytes(line.written)!r}")
        finally:
            super().end()
            self._unhurried.stop()

    def changed(self, mutator: Mutator, one: Input, other: Input) -> bytes:
        return one.data if mutator.chance.random() < 0.05 else mutator.of_bytes(one.data, other.data)[:2000]

    def tried(self, given: Input, chance: Random) -> str:
        line = self.answered(self._asked(given.form, self._named(given.data), chance), [])
        if _MARK_OF_A.encode() in line.written:
            raise Found(f"b sees what is a's: {bytes(line.written[-1500:])!r}")
        return self.judged(line)

    def _named(self, text: bytes) -> bytes:
        for name, real in self._real.items():
            text = text.replace(name, real)
        return text

    def _asked(self, form: str, id: bytes, chance: Random) -> bytes:
        key = _ADMIN if "/admin/" in form else _KEYS["b"]
        if " " not in form:
            body = b'{"model":"demo-anthropic","messages":[{"role":"user","content":"Hi."}]}'
            key = "" if form in ("authorization", "x-api-key") else key
            return _request("POST", _PATHS["openai-chat"], body, f"{form}: {id.decode('latin-1')}", key=key)
        method, _, rest = form.partition(" ")
        path, _, body_form = rest.partition(_BODY)
        shown = quote(id, safe="") if chance.random() < 0.8 else id.decode("latin-1")
        path = self._named(path.replace("{}", shown).encode("latin-1")).decode("latin-1")
        written = msgspec.json.encode(id.decode("utf-8", "replace"))
        return _request(method, path, body_form.encode().replace(b"{}", written), key=key)
