"""A gateway without sockets, threads or waiting: a scripted transport answers, and its clock jumps ahead.

offline = Offline(providers={"mine": {"dialect": "openai-chat", "base_url": "https://h.example/v1"}})
offline.upstream.say(Said(429, headers={"retry-after": "3"}), Said(body=CHAT))
got = offline.ask("/v1/chat/completions", {"model": "mine/m", "messages": [...]})
assert (got.status, offline.seconds) == (200, 3.0)
"""

from __future__ import annotations

import asyncio
import selectors
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from tests.gateway.kit import head
from wireglot.gateway import config
from wireglot.gateway.composition import compose
from wireglot.gateway.observe.observer import Observer
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request import worker_thread
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.state.state import State
from wireglot.http.redaction import Redactor
from wireglot.http.transport import Answer, Outbound, Timeouts, TransportFault
from wireglot_core.wire.json import decode, encode

T = TypeVar("T")

CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH = "/v1/chat/completions", "/v1/messages", "/v1/responses"

CHAT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def asked(model: str = "mine/m", text: str = "Hi", **more: Any) -> dict[str, Any]:
    """A small request that Chat and Messages both take."""
    return {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": text}], **more}


class Said:
    """Implements `Answer`: what an upstream says, in these pieces."""

    def __init__(
        self,
        status: int = 200,
        body: dict[str, Any] | bytes = b"",
        *,
        pieces: tuple[bytes | TransportFault, ...] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status = status
        data = body if isinstance(body, bytes) else encode(body)
        self.pieces: tuple[bytes | TransportFault, ...] = (data,) if pieces is None else pieces
        kind = "application/json" if pieces is None else "text/event-stream"
        self.headers = {"content-type": kind, **(headers or {})}
        self.aborted = False
        self.limit = -1

    async def read(self, limit: int, held: Callable[[int], None] | None = None) -> bytes:
        self.limit, found = limit, bytearray()

        def feed(piece: bytes) -> None:
            found.extend(piece)
            if held is not None:
                held(len(piece))
            if len(found) > limit:
                raise TransportFault("too_large", "the upstream's answer is too large")

        await self.pump(feed)
        return bytes(found)

    async def pump(self, feed: Callable[[bytes], None]) -> None:
        for piece in self.pieces:
            await asyncio.sleep(0)
            if isinstance(piece, TransportFault):
                raise piece
            feed(piece)

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def abort(self) -> None:
        self.aborted = True


class Upstream:
    """Implements `Transport`: says what it is told to, in turn; the last one again and again."""

    waiting = 0

    def __init__(self) -> None:
        self._script: deque[Said | TransportFault] = deque()
        self.sent: list[Outbound] = []
        self.timeouts: list[Timeouts] = []
        self.times: list[float] = []
        self.respond: Callable[[Outbound, Timeouts], Awaitable[Any]] | None = None
        """Answers in the place of the script."""

    def say(self, *answers: Said | TransportFault) -> None:
        self._script = deque(answers)

    async def send(self, request: Outbound, timeouts: Timeouts) -> Answer:
        self.sent.append(request)
        self.timeouts.append(timeouts)
        self.times.append(asyncio.get_running_loop().time())
        if self.respond is not None:
            answer: Answer = await self.respond(request, timeouts)
            return answer
        await asyncio.sleep(0)
        said = self._script.popleft() if len(self._script) > 1 else self._script[0]
        if isinstance(said, TransportFault):
            raise said
        return said

    async def close(self) -> None: ...

    @property
    def headers(self) -> dict[str, str]:
        """Of the last request."""
        return dict(self.sent[-1].headers)

    @property
    def json(self) -> Any:
        return decode(self.sent[-1].body)


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes
    record: ExchangeRecord | None

    @property
    def json(self) -> Any:
        return decode(self.body)


class _Jumping(selectors.DefaultSelector):
    """Where the loop would wait, its clock goes ahead."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if not found and any(shares._running for shares in worker_thread._shares.values()):
            return super().select(60)  # work in a thread takes its time, and wakes the loop
        if not found and timeout is None:
            raise AssertionError("the gateway waits for something that never comes")
        if not found and timeout:
            self.now += timeout
        return found


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Jumping()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


class Offline:
    """`tables`: the configuration. All upstreams are `upstream`."""

    def __init__(self, **tables: Any) -> None:
        self.loop = JumpingLoop()
        self.upstream = Upstream()
        self.records: list[ExchangeRecord] = []
        given = {"server": {"log": "off"}, "store": {"url": "memory:"}, **tables}
        self.settings = config.load(None, environ={}, overrides=given, create_secret=False)
        self.observer = Observer(self.settings, telemetry=self)
        self.state = self.call(State.open(self.settings, self.observer))
        self.call(self.state.keys.refresh())
        self.gateway = compose(
            self.settings, {"http": self.upstream, "https": self.upstream}, self.observer, self.state
        )
        self._began = self.loop.time()

    def finish(self, record: ExchangeRecord, redactor: Redactor) -> None:
        """Implements `Telemetry`, as `close` does."""
        self.records.append(record)

    def close(self) -> None: ...

    def __enter__(self) -> Offline:
        return self

    def __exit__(self, *_: object) -> None:
        """What runs in the background has nothing more to do: its threads were never started."""
        for task in (left := asyncio.all_tasks(self.loop)):
            task.cancel()
        self.call(_ended(left))
        self.loop.close()

    @property
    def seconds(self) -> float:
        """Waited so far."""
        return self.loop.time() - self._began

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def ask(self, path: str, body: dict[str, Any] | bytes = b"", method: str = "POST", **headers: str) -> Got:
        return self.call(self.asking(path, body, method, **headers))

    async def asking(
        self, path: str, body: dict[str, Any] | bytes = b"", method: str = "POST", **headers: str
    ) -> Got:
        plain, _, query = path.partition("?")
        data = body if isinstance(body, bytes) else encode(body)
        sent = {"content_type": "application/json", "content_length": str(len(data)), **headers}
        made = head(method, plain, query, **sent)
        before = len(self.records)
        refused = self.gateway.admit(made)
        if refused is not None:
            return Got(refused.status, dict(refused.headers), refused.body, self.records[-1])
        reply = CollectedReply(1 << 24)
        await self.gateway.handle(made, data, reply)
        record = self.records[-1] if len(self.records) > before else None
        return Got(reply.status, dict(reply.headers), bytes(reply.body), record)


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
