"""The scripted upstream over a WebSocket: its connection's state, and answers as messages."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

import msgspec
from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import generate_accept_token

from wireglot.demo.service import Served
from wireglot.testing.scripted_upstream.behaviour import Recorded
from wireglot_core.dialects.capabilities import WebSockets
from wireglot_core.dialects.registry import surface
from wireglot_core.wire.json import decode, encode
from wireglot_core.wire.sse import SseDecoder

_MAX_EVENT_BYTES: Final = 1 << 30
_OF_UPGRADES: Final = ("upgrade", "connection", "sec-websocket-key", "sec-websocket-version")


class UpgradedConnection:
    """One connection, without its I/O."""

    def __init__(self, upgrade: Recorded) -> None:
        spoken = surface("openai-responses").websockets
        assert spoken is not None
        self._spoken: WebSockets = spoken
        self._upgrade = upgrade
        self._protocol = Connection(ConnectionType.SERVER)
        self._text = ""
        self._kept: dict[str, list[dict[str, Any]]] = {}
        self.messages: deque[bytes] = deque()
        self.closed = False

    def accept(self) -> bytes:
        token = generate_accept_token(self._upgrade.headers["sec-websocket-key"].encode()).decode()
        lines = ("HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: Upgrade")
        return "\r\n".join([*lines, f"sec-websocket-accept: {token}", "", ""]).encode()

    def receive(self, data: bytes) -> bytes:
        """Returns what to send back at once."""
        self._protocol.receive_data(data)
        reply = b""
        for event in self._protocol.events():
            reply += self._take(event)
        return reply

    def _take(self, event: Event) -> bytes:
        if isinstance(event, TextMessage):
            self._text += event.data
            if event.message_finished:
                self.messages.append(self._text.encode())
                self._text = ""
        elif isinstance(event, Ping):
            return self._protocol.send(event.response())
        elif isinstance(event, CloseConnection):
            self.closed = True
        return b""

    def send(self, text: str) -> bytes:
        return self._protocol.send(TextMessage(data=text))

    def request(self, message: bytes) -> tuple[Recorded, str]:
        """A message as a request, and its error if it is not a valid one."""
        spoken, upgrade = self._spoken, self._upgrade
        asked = spoken.read(decode(message))
        assert asked is not None, "a request"
        before = self._kept.get(asked.previous, [])
        error = ""
        if asked.previous and asked.previous not in self._kept:
            error = spoken.error(400, spoken.is_missing(asked.previous), {}, "")
        body = spoken.continued(asked.body, before, "") if not error else asked.body
        headers = {key: value for key, value in upgrade.headers.items() if key not in _OF_UPGRADES}
        recorded = msgspec.structs.replace(
            upgrade, method="POST", headers=headers, body=encode(body), message=message
        )
        return recorded, error

    def events(self, request: Recorded, served: Served) -> list[str]:
        """An answer as messages. The last answer is kept, for the next request to continue from."""
        spoken = self._spoken
        self._kept.clear()
        if served.status != 200:
            return [spoken.error(served.status, decode(served.body), dict(served.headers), "")]
        items, events = spoken.items(request.json), []
        for frame in SseDecoder(_MAX_EVENT_BYTES).feed(served.body):
            events.append(frame.data.decode())
            item = spoken.item(frame.data)
            end = spoken.end(frame.data) if item is None else None
            if item is not None:
                items.append(item)
            elif end is not None and end.is_whole:
                self._kept[end.id] = items
        return events
