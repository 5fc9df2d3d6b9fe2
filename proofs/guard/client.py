"""The client of a gateway that is counted: one request at a time, and nothing else meanwhile."""

from __future__ import annotations

import http.client
import socket
import time

from proofs.bench import processes, targets
from proofs.guard.callgrind import NotCounted

_QUIET_SECONDS = 0.2
_SETTLES_SECONDS = 60.0


class Client:
    """One connection. A request is one write, so that the gateway reads as few times as it can."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, path: str, content: bytes) -> bytes:
        lines = [
            f"POST {path} HTTP/1.1",
            "host: localhost",
            "content-type: application/json",
            *targets.HEADERS,
        ]
        head = "\r\n".join([*lines, f"content-length: {len(content)}", "", ""])
        self._socket.sendall(head.encode() + content)
        answer = http.client.HTTPResponse(self._socket, method="POST")
        answer.begin()
        text = answer.read()
        if answer.status != 200:
            raise NotCounted(f"{path} answered {answer.status}: {text[:300]!r}")
        return text

    def close(self) -> None:
        self._socket.close()


def wait_until_quiet(pid: int) -> None:
    end = time.monotonic() + _SETTLES_SECONDS
    before = None
    while (spent := processes.cpu_seconds(pid)) != before:
        if time.monotonic() > end:
            raise NotCounted("the gateway does not come to rest")
        before = spent
        time.sleep(_QUIET_SECONDS)
