"""Requests one at a time from this process, for what a load generator cannot do."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable
from typing import NamedTuple


class Answered(NamedTuple):
    seconds: float
    status: int


class Talk:
    """One connection that is kept."""

    def __init__(self, port: int, headers: Iterable[str], timeout: float = 60.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {
            "content-type": "application/json",
            **dict(line.split(": ", 1) for line in headers),
        }

    def ask(self, path: str, content: bytes) -> Answered:
        began = time.monotonic()
        try:
            self._connection.request("POST", path, content, self._headers)
            answer = self._connection.getresponse()
            answer.read()
        except (http.client.HTTPException, OSError):
            self._connection.close()
            return Answered(time.monotonic() - began, 0)
        return Answered(time.monotonic() - began, answer.status)

    def close(self) -> None:
        self._connection.close()
