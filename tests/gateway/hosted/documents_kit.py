"""What a gateway under test writes, to its clients and to upstreams, given to the vendors' schemas.

Where those are not installed (`make judges ARGS=schemas`), nothing is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofs.judges.oracle import Kind, events, installed
from proofs.judges.schemas import Written
from wireglot.demo.service import target_of
from wireglot.gateway.request.collected_reply import CollectedReply, PassedReply
from wireglot.http.application import Head, Headers, Reply
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Recorded
from wireglot_core.wire.json import decode

_KINDS: dict[str, Kind] = {"generate": "answer", "stream": "answer", "count": "count", "models": "models"}


class NotedReply(PassedReply):
    """Implements `Reply`."""

    __slots__ = ("body", "ended", "headers", "status")

    def __init__(self, behind: Reply) -> None:
        super().__init__(behind)
        self.status = 0
        self.headers: Headers = []
        self.body = bytearray()
        self.ended = False

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self.status, self.headers, self.ended = status, headers, True
        self.body += body
        super().send(status, headers, body)

    def start(self, status: int, headers: Headers) -> None:
        self.status, self.headers = status, headers
        super().start(status, headers)

    def write(self, data: bytes) -> None:
        self.body += data
        super().write(data)

    def end(self) -> None:
        self.ended = True
        super().end()


class Documents:
    """Everything that one gateway writes. `forwarded`: the dialect whose answers upstreams wrote."""

    def __init__(self, forwarded: str = "") -> None:
        self._forwarded = forwarded
        self._answers: list[tuple[Head, bytes, NotedReply]] = []
        self._requests: list[Recorded] = []

    def of(self, gateway: LiveGateway) -> None:
        """Note the answers of this gateway from now on."""
        inside: Any = gateway.process.gateway
        handle = inside.handle

        async def noted(head: Head, body: bytes, reply: Reply) -> None:
            if isinstance(reply, CollectedReply):  # of a request of the gateway's own
                await handle(head, body, reply)
                return
            behind = NotedReply(reply)
            self._answers.append((head, bytes(body), behind))
            await handle(head, body, behind)

        inside.handle = noted

    def sent(self, request: Recorded) -> None:
        """Note a request that an upstream got."""
        self._requests.append(request)

    def check(self) -> None:
        vendors = installed()
        if vendors is None:
            return
        broken: dict[str, str] = {}
        for written in (*self._sent(), *self._answered()):
            for problem in vendors.problems(written.dialect, written.kind, written.document):
                broken.setdefault(problem.name, f"{problem.name} ({written.origin}): {problem.detail}")
        self._answers.clear()
        self._requests.clear()
        assert not broken, "\n".join(broken.values())

    def _sent(self) -> Iterator[Written]:
        for request in self._requests:
            target = target_of(request.path, request.query, request.headers)
            if target is not None and request.body and target.operation in ("generate", "stream"):
                yield Written(f"sent to {request.path}", target.dialect, "request", request.json)

    def _answered(self) -> Iterator[Written]:
        for head, body, reply in self._answers:
            target = target_of(head.path, head.query, head.headers)
            if target is None or target.dialect == self._forwarded or not reply.ended:
                continue
            origin = f"answer of {head.path} to {body[:300]!r}"
            if dict(reply.headers).get("content-type", "").startswith("text/event-stream"):
                for event in events(bytes(reply.body)):
                    yield Written(origin, target.dialect, "event", event)
            else:
                kind: Kind = "error" if reply.status >= 400 else _KINDS[target.operation]
                document = decode(bytes(reply.body))
                if document.get("status") != "queued":  # which has no usage yet
                    yield Written(origin, target.dialect, kind, document)
