"""A client of Responses over a WebSocket."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.waiting import DEADLINE_SECONDS
from wireglot.testing.live_gateway import LiveGateway

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
Event = dict[str, Any]


@contextmanager
def opened(gateway: LiveGateway, **headers: str) -> Iterator[ClientConnection]:
    with connect(
        gateway.url.replace("http", "ws") + "/v1/responses",
        additional_headers=headers,
        open_timeout=DEADLINE_SECONDS,
        max_size=None,
    ) as line:
        yield line


def ask(line: ClientConnection, **fields: Any) -> list[Event]:
    line.send(json.dumps({"type": "response.create", **fields}))
    return answer(line)


def answer(line: ClientConnection) -> list[Event]:
    events: list[Event] = []
    while not events or events[-1]["type"] not in ENDS:
        events.append(json.loads(line.recv(timeout=DEADLINE_SECONDS)))
    return events
