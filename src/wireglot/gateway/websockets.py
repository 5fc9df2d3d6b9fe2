"""Requests that arrive as messages of a WebSocket. Each is answered like an HTTP request, those of one lane
one after the other, and the events of the answer are sent as messages.

A connection keeps its last answers, so that a request may continue from one that is stored nowhere.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from wireglot.gateway.entry.callers import Caller, Gatekeeper
from wireglot.gateway.entry.gates import no_room
from wireglot.gateway.entry.routes import Routes
from wireglot.gateway.errors import RequestError
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.relay.judge import Ask
from wireglot.gateway.relay.sockets import SocketRecord, UpstreamSockets
from wireglot.gateway.request.exchange import Carrier, Exchange
from wireglot.gateway.request.job import HELD_HEADER, Incoming
from wireglot.gateway.settings import Settings
from wireglot.http.application import Head, Headers, Refusal, Reply, UpgradableReply
from wireglot_core.dialects.body import BadField
from wireglot_core.dialects.capabilities import SocketEnd, SocketRequest, WebSockets
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.sse import SseDecoder

if TYPE_CHECKING:
    from wireglot.http.server.websocket import WebSocket

_ONLY_UPGRADE: Final = frozenset(
    {
        "accept",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "idempotency-key",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that do not apply to a message."""
_SOCKET_HEADERS: Final = "sec-websocket-"
_TOLD_HEADERS: Final = ("retry-after", "x-should-retry", "x-request-id")
"""Headers of a refusal that clients act on."""
# Answers of one connection that later turns may refer to.
_MAX_KEPT_ANSWERS: Final = 32
# Streams (`stream_id`) of one WebSocket connection.
_MAX_LANES: Final = 32
_MAX_IN_FLIGHT: Final = 16
"""Answers in progress at once, each in its own lane."""
_MAX_QUEUED: Final = 32
"""Messages that wait for their turn in a lane; further ones stay in the socket."""
_KEPT_SHARE: Final = 4
"""All connections together keep at most a quarter of the memory: idle ones must not displace requests."""

_INVALID_UTF8: Final = 1007

Prewarm = Callable[[Incoming, bytes, Reply], Awaitable[None]]
Refuse = Callable[[Incoming, RequestError], Refusal]


class _Limits(msgspec.Struct, frozen=True):
    """Implements `SocketLimits`."""

    message: int
    ping: float


class SocketService:
    def __init__(
        self,
        *,
        current: Callable[[], Settings],
        gatekeeper: Gatekeeper,
        routes: Routes,
        submit: Ask,
        prewarm: Prewarm,
        refuse: Refuse,
    ) -> None:
        """`submit` answers a request; `prewarm` one that is only read and checked. `refuse` logs and counts a
        message that is refused before it is a request."""
        self.current = current
        self.gatekeeper = gatekeeper
        self.routes = routes
        self.submit = submit
        self.prewarm = prewarm
        self.refuse = refuse
        self.open: Counter[str] = Counter()
        """Connections by the name of their client key."""
        self.kept_bytes = 0
        """Bytes of the answers that all connections keep."""
        self.upstreams = SocketRecord(time.monotonic)

    def publish(self, metrics: Metrics) -> None:
        upstreams = self.upstreams
        metrics.read(
            "upstream_websocket_bytes_total",
            "Bytes of requests over WebSockets to providers: sent, and saved compared with HTTP.",
            lambda: {("sent",): upstreams.sent_bytes, ("saved",): upstreams.saved_bytes},
            ("bytes",),
            "counter",
        )

    def check(self, head: Head, caller: Caller, settings: Settings) -> None:
        """Raises RequestError if this connection cannot be opened."""
        if not settings.limits.websockets:
            # With this error such clients switch to plain HTTP at once; any other status delays them by
            # seconds.
            off = RequestError("bad", "WebSockets are off here: use POST", code="upgrade_required")
            raise off.with_status(426)
        from wireglot.http.server.websocket import handshake_problem  # loading it takes a tenth of a start

        problem = handshake_problem(head)
        if problem:
            raise RequestError("bad", problem, code="invalid_handshake")
        if self.open[caller.name] >= settings.limits.websockets:
            raise RequestError("rate", "too many WebSockets are open with this key", retry_after=1)

    async def serve(self, incoming: Incoming, reply: UpgradableReply) -> None:
        """Serve a connection until the client leaves or the maximum age is reached."""
        from wireglot.http.server.websocket import GOING_AWAY, SocketClosed, WebSocket

        name, limits = incoming.caller.name, incoming.settings.limits
        dialect = incoming.asked.dialect
        spoken = surface(dialect).websockets
        assert spoken is not None, "only paths of such dialects lead here"
        self.open[name] += 1
        socket = WebSocket(incoming.head, reply, _Limits(limits.body_of(dialect), limits.ping))
        conversation = _Conversation(self, incoming, socket, spoken)
        try:
            await conversation.run()
            socket.close(GOING_AWAY)
        except SocketClosed:
            pass  # the client's protocol error is logged below
        except asyncio.CancelledError:
            socket.close(GOING_AWAY)
            raise
        finally:
            if socket.fault is not None:
                self.refuse(incoming, _fault_error(*socket.fault))
            conversation.close()
            socket.release()
            self.open[name] -= 1
            if not self.open[name]:
                del self.open[name]


class _Kept(msgspec.Struct, frozen=True):
    """An answer that a later request may continue from."""

    items: list[dict[str, Any]] = []
    stored: str = ""
    """The stored answer that the items follow, if any."""
    size: int = 0
    lane: str = ""
    """The lane of its request."""


class _Lane:
    """A queue of requests with the same lane name, answered one after the other."""

    def __init__(self, sockets: UpstreamSockets) -> None:
        self.sockets = sockets
        self.waiting: deque[bytes] = deque()
        self.is_busy = False


class _Conversation:
    """The state of one connection."""

    def __init__(
        self, service: SocketService, opened: Incoming, socket: WebSocket, spoken: WebSockets
    ) -> None:
        self._service = service
        self._opened = opened
        self._socket = socket
        self._spoken = spoken
        self._head = _as_post(opened.head)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._kept_bytes = 0
        self._lanes: dict[str, _Lane] = {}
        self._queued_bytes = 0
        self._queued = 0
        self._running: dict[asyncio.Task[None], _EventReply | None] = {}
        """The task that answers each busy lane, and the answer in progress."""
        self._changed = asyncio.Event()
        socket.on_gone = self._leave

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._opened.settings.limits.websocket_time
        try:
            while (message := await self._next(ends)) is not None:
                self._begin(message)
            await self._settle()
            if not self._socket.draining:
                self._socket.send(self._spoken.error(400, self._spoken.expired, {}, ""))
        finally:
            self._leave()
            await self._settle()

    async def _next(self, ends: float) -> bytes | None:
        """The next message, once there is room for it in a queue."""
        maximum = self._opened.settings.limits.body_of(self._opened.asked.dialect)
        while self._running and (
            len(self._running) >= _MAX_IN_FLIGHT
            or self._queued >= _MAX_QUEUED
            or self._queued_bytes > maximum
        ):
            self._changed.clear()
            await self._changed.wait()
        return await self._socket.receive(ends - asyncio.get_running_loop().time())

    def _begin(self, message: bytes) -> None:
        """Answer a message in its lane, now or in its turn."""
        name = self._spoken.lane(message)
        lane = self._lanes.get(name)
        if lane is None:
            lane = _Lane(UpstreamSockets(self._service.upstreams, self._opened.settings.limits.event))
            if not name or len(self._lanes) - ("" in self._lanes) < _MAX_LANES:
                self._lanes[name] = lane
        lane.waiting.append(message)
        self._queued += 1
        self._queued_bytes += len(message)
        if not lane.is_busy:
            lane.is_busy = True
            task = asyncio.create_task(self._serve(lane))
            self._running[task] = None
            task.add_done_callback(self._served)

    async def _serve(self, lane: _Lane) -> None:
        """Answer the queued messages of a lane."""
        try:
            while lane.waiting and not self._socket.draining and not self._socket.closed:
                message = lane.waiting.popleft()
                self._queued -= 1
                self._queued_bytes -= len(message)
                self._changed.set()
                try:
                    await self._answer(message, lane)
                finally:
                    self._socket.done(message)
        finally:
            lane.is_busy = False

    def _served(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        self._changed.set()
        if not task.cancelled() and task.exception() is not None:
            from wireglot.http.server.websocket import INTERNAL

            self._socket.close(INTERNAL)
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a stream of a WebSocket failed", "exception": task.exception(), "task": task}
            )

    def _leave(self) -> None:
        """Cancel what the client no longer waits for. An answer that it already has is not cancelled: the
        client may disconnect then."""
        for task, reply in list(self._running.items()):
            if reply is None or not reply.has_ended:
                task.cancel("the client has disconnected")

    async def _settle(self) -> None:
        while self._running:
            await asyncio.wait(list(self._running))

    async def _answer(self, message: bytes, of: _Lane) -> None:
        lane = previous = ""
        try:
            asked = self._spoken.read(_decoded(message))
            if asked is None:
                return
            lane, previous = asked.lane, asked.previous
            self._check_lane(lane)
            before = self._before(asked)
            if before is None:
                missing = self._spoken.is_missing(previous)["error"]
                gone = RequestError(
                    "not_found", missing["message"], code=missing["code"], param=missing["param"]
                )
                raise gone.with_status(400)
            body = self._spoken.continued(asked.body, before.items, before.stored)
            incoming = self._again()
            if before.items:  # a session has its own history
                headers = incoming.head.headers
                incoming.head.headers = {key: headers[key] for key in headers if key != HELD_HEADER}
        except BadField as fault:
            bad = RequestError("bad", fault.message, code=fault.code, param=fault.path.removeprefix("$."))
            self._refuse(bad, lane)
            self._failed(previous, lane)
            return
        except RequestError as error:
            self._refuse(error, lane)
            return
        await self._run(asked, incoming, body, before, of)

    async def _run(
        self, asked: SocketRequest, incoming: Incoming, body: dict[str, Any], before: _Kept, lane: _Lane
    ) -> None:
        data = encode(body)
        maximum = incoming.settings.limits.body_of(incoming.asked.dialect)
        if len(data) > maximum:
            detail = f"together with the previous response, the request is larger than {maximum} bytes"
            self._refuse(RequestError("too_large", detail), asked.lane)
            self._failed(asked.previous, asked.lane)
            return
        reply = _EventReply(self._socket, self._spoken, asked, incoming.settings.limits.event)
        task = asyncio.current_task()
        assert task is not None
        self._running[task] = reply
        has_room = self._socket.hold(len(data))
        try:
            if not has_room:
                self._refuse(no_room(), asked.lane)
                return
            if asked.generates:
                await self._service.submit(incoming, data, reply, "", "", _Round(lane.sockets))
            else:
                await self._service.prewarm(incoming, data, reply)
        finally:
            self._socket.hold(-len(data))
            self._running[task] = None
            self._socket.answered(reply)
        end = reply.finished
        if end is None or not end.is_whole:
            self._failed(asked.previous, asked.lane)
        elif end.id and not (end.is_stored and asked.generates):
            items = [*before.items, *self._spoken.items(asked.body), *self._spoken.carried(reply.items)]
            self._keep(end.id, _Kept(items, before.stored, len(encode(items)), asked.lane))

    def _again(self) -> Incoming:
        """The connection's request with the current settings and caller: a key may have been revoked
        since."""
        settings, head = self._service.current(), msgspec.structs.replace(self._head)
        asked = self._service.routes.match(head)
        caller = self._service.gatekeeper.caller(head, asked, settings)
        return Incoming(settings, head, asked, caller)

    def _before(self, asked: SocketRequest) -> _Kept | None:
        """The answer before a request; None if it names one that cannot exist. An answer that this connection
        does not know may be in the store."""
        kept = self._kept.get(asked.previous)
        if kept is None and (asked.generates or not asked.previous):
            kept = _Kept(stored=asked.previous)
        return kept

    def _check_lane(self, lane: str) -> None:
        if lane not in self._lanes:
            detail = f"stream_id: a connection has at most {_MAX_LANES}"
            raise BadField(detail, "$.stream_id", code="websocket_stream_limit_reached")

    # Keep an answer for later requests of the connection.

    def _keep(self, id: str, kept: _Kept) -> None:
        self._forget(id)
        self._kept[id] = kept
        self._count(kept.size)
        limits, service = self._opened.settings.limits, self._service
        maximum, shared_maximum = limits.body_of(self._opened.asked.dialect), limits.buffered // _KEPT_SHARE
        while self._kept and (
            len(self._kept) > _MAX_KEPT_ANSWERS
            or self._kept_bytes > maximum
            or service.kept_bytes > shared_maximum
            or not self._socket.hold(0)
        ):
            self._forget(self._oldest())

    def _oldest(self) -> str:
        """The answer to drop first: the last one of a lane only if there are no others."""
        last = {kept.lane: id for id, kept in self._kept.items()}
        others = (id for id, kept in self._kept.items() if last[kept.lane] != id)
        return next(others, next(iter(self._kept)))

    def _count(self, size: int) -> None:
        self._kept_bytes += size
        self._service.kept_bytes += size
        self._socket.hold(size)

    def _forget(self, id: str) -> None:
        kept = self._kept.pop(id, None)
        if kept is not None:
            self._count(-kept.size)

    def _failed(self, previous: str, lane: str) -> None:
        """After a failed request, drop the answer that it continued from, unless that is another lane's."""
        kept = self._kept.get(previous)
        if kept is not None and kept.lane == lane:
            self._forget(previous)

    def close(self) -> None:
        """Drop the kept answers and close the connection's own connections to upstreams."""
        self._kept.clear()
        self._count(-self._kept_bytes)
        for lane in self._lanes.values():
            lane.sockets.close()

    def _refuse(self, error: RequestError, lane: str) -> None:
        refused = self._service.refuse(self._opened, error)
        headers = _useful(refused.headers)
        self._socket.send(self._spoken.error(refused.status, decode(refused.body), headers, lane))


class _Round:
    """Implements `OwnRound`."""

    def __init__(self, carrier: Carrier) -> None:
        self.problem: Exception | None = None
        self._carrier = carrier

    def begin(self, exchange: Exchange) -> None:
        exchange.carrier = self._carrier


class _EventReply:
    """Implements `Reply`: the events of a stream as messages, an error as one."""

    def __init__(self, socket: WebSocket, spoken: WebSockets, asked: SocketRequest, max_event: int) -> None:
        self.started = False
        self.items: list[dict[str, Any]] = []
        """Output items that the answer has completed."""
        self.finished: SocketEnd | None = None
        self._socket = socket
        self._spoken = spoken
        self._asked = asked
        self._decoder = SseDecoder(max_event)
        self._beginning = ""
        self._error = b"{}"

    @property
    def has_ended(self) -> bool:
        """Whether the client has its answer."""
        return self.finished is not None and not self.finished.is_error

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.started = True
        try:
            document = decode(body)
        except BadJson:
            document = body.decode("utf-8", "replace")
        if status < 400:  # no stream began
            status, document = 502, {"error": {"type": "server_error", "message": "expected a stream"}}
        self._socket.send(self._spoken.error(status, document, _useful(headers), self._asked.lane))

    def start(self, status: int, headers: Headers) -> None:
        self.started = True

    def write(self, data: bytes) -> None:
        frames = self._decoder.feed(data)
        if not frames and self._beginning and data.startswith(b":"):
            self._socket.send(self._beginning)  # nothing else makes such clients wait
        for frame in frames:
            event, spoken = frame.data, self._spoken
            if not event.startswith(b"{") or self.has_ended:
                continue  # what follows the end would be taken for the next answer
            message = spoken.event(event, self._asked)
            item = spoken.item(event)
            if item is not None:
                self.items.append(item)
            elif spoken.is_beginning(event):
                self._beginning = message
            elif (end := spoken.end(event)) is not None:
                self.finished = end
                if end.is_error:
                    self._error = event
                    continue
            self._socket.send(message)

    def end(self) -> None:
        if self.finished is not None and self.finished.is_error:
            self._socket.send(self._spoken.error(502, decode(self._error), {}, self._asked.lane))

    def abort(self) -> None:
        error = {"error": {"type": "server_error", "message": "the answer was cut off"}}
        self._socket.send(self._spoken.error(502, error, {}, self._asked.lane))

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._socket.on_pressure(self, pause, resume)


def _decoded(message: bytes) -> Any:
    try:
        return decode(message)
    except BadJson:
        raise BadField("expected a JSON object", "$", "invalid_json") from None


def _fault_error(code: int, reason: str) -> RequestError:
    """The error of a message that ended its connection, as HTTP would report it."""
    from wireglot.http.server import websocket

    match code:
        case websocket.TOO_LARGE:
            return RequestError("too_large", reason)
        case websocket.POLICY:
            return RequestError("rate", reason)
        case websocket.NOT_TEXT:
            return RequestError("media", reason)
    return RequestError("bad", reason, code="invalid_utf8" if code == _INVALID_UTF8 else "invalid_framing")


def _useful(headers: Headers) -> dict[str, str]:
    return {name: value for name, value in headers if name in _TOLD_HEADERS}


def _as_post(head: Head) -> Head:
    """The head that the same request would have over HTTP."""
    kept = {
        name: value
        for name, value in head.headers.items()
        if name not in _ONLY_UPGRADE and not name.startswith(_SOCKET_HEADERS)
    }
    kept |= {"content-type": "application/json", "accept": "text/event-stream"}
    return msgspec.structs.replace(head, method="POST", headers=kept, admission=None, familiar=None)
