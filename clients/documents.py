"""What clients and upstreams got from the gateway, checked by the vendors' schemas where those are installed.

Only what the gateway wrote is checked: where both speak one dialect, bytes pass unchanged.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clients.upstream import Exchange
from proofs.judges.oracle import Kind, Oracle, events, installed
from wireglot.demo.service import DemoTarget, target_of
from wireglot_core.wire.json import decode

_KINDS: dict[str, Kind] = {"generate": "answer", "stream": "answer", "count": "count", "models": "models"}


def are_checked() -> bool:
    return installed() is not None


def problems(speaks: str, upstream: str, exchanges: Sequence[Exchange], wire: Path) -> list[str]:
    """Each kind of problem once: of the requests of the upstream's notes, and of the answers on the wire."""
    vendors = installed()
    if vendors is None or speaks == upstream:
        return []
    found = [
        problem.name
        for exchange in exchanges
        for problem in vendors.problems(exchange.dialect, "request", decode(exchange.asked))
    ]
    for sent in sorted(wire.glob("*.sent")):
        found += _of_connection(
            vendors, sent.read_bytes(), sent.with_suffix(".received").read_bytes(), upstream
        )
    return list(dict.fromkeys(found))


def _of_connection(vendors: Oracle, sent: bytes, received: bytes, upstream: str) -> Iterator[str]:
    """One connection, whose requests say what the answers are. Half an answer is none: the client left."""
    answers = _Kept(received)
    for method, target in _requests(sent):
        try:
            sock: Any = answers  # nothing but `makefile` is asked of it
            answer = http.client.HTTPResponse(sock, method=method)
            answer.begin()
            body = answer.read()
        except (http.client.HTTPException, OSError, ValueError):
            return
        if target is None or target.dialect == upstream or not body:
            continue
        if answer.getheader("content-encoding"):
            continue
        yield from _of_answer(vendors, target, answer, body)


def _of_answer(
    vendors: Oracle, target: DemoTarget, answer: http.client.HTTPResponse, body: bytes
) -> Iterator[str]:
    if (answer.getheader("content-type") or "").startswith("text/event-stream"):
        found = [each for event in events(body) for each in vendors.problems(target.dialect, "event", event)]
    else:
        kind: Kind = "error" if answer.status >= 400 else _KINDS[target.operation]
        found = vendors.problems(target.dialect, kind, decode(body))
    yield from (problem.name for problem in found)


def _requests(sent: bytes) -> Iterator[tuple[str, DemoTarget | None]]:
    stream = io.BytesIO(sent)
    while line := stream.readline():
        method, path, _ = line.decode("latin-1").split(" ", 2)
        headers = http.client.parse_headers(stream)
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(stream.readline().partition(b";")[0], 16):
                stream.seek(size + 2, io.SEEK_CUR)
            while stream.readline().strip():
                """A trailer."""
        else:
            stream.seek(int(headers.get("content-length", "0")), io.SEEK_CUR)
        place = urlsplit(path)
        known = {name.lower(): value for name, value in headers.items()}
        yield method, target_of(place.path, place.query, known)


class _Kept(io.BytesIO):
    """What was received, as the socket that `HTTPResponse` reads: the next answer begins where one ends."""

    def makefile(self, mode: str) -> _Kept:
        return self

    def close(self) -> None:
        """It stays open for the next answer."""
