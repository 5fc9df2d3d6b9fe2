"""A gateway in front of a scripted upstream in every dialect, and what its inspector tells of the traffic."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.gateway.faults.faults_kit import Answered, every_dialect
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

Document = dict[str, Any]


class Look:
    """Somebody on this machine who looks."""

    def __init__(self, port: int) -> None:
        self.port = port

    def raw(self, path: str, method: str = "GET", document: Any = None) -> Answered:
        headers = {}
        if method != "GET":
            csrf = self.get("session")["csrf"]
            headers = {"x-wireglot-csrf": csrf, "content-type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            body = json.dumps(document) if document is not None else None
            connection.request(method, f"/inspector/api/{path}", body, headers)
            answer = connection.getresponse()
            reported = {name.lower(): value for name, value in answer.getheaders()}
            return Answered(answer.status, reported, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Document:
        answer = self.raw(path)
        assert answer.status == 200, answer
        document: Document = answer.json
        return document

    def post(self, path: str, document: Any) -> Document:
        answer = self.raw(path, "POST", document)
        assert answer.status == 200, answer
        reported: Document = answer.json
        return reported

    def rows(self, query: str = "") -> list[Document]:
        rows: list[Document] = self.get(f"exchanges?{query}")["rows"]
        return rows

    def over(self, id: str) -> Document:
        """The row of an exchange, once it is over: an answer is out a moment before its row is made."""

        def look() -> Document | None:
            answer = self.raw(f"exchanges/{id}")
            row: Document = answer.json["row"] if answer.status == 200 else {}
            return row if row.get("state") else None

        return wait_until(look)

    def trace(self, id: str) -> Document:
        assert self.over(id)["recorded"]
        return self.get(f"exchanges/{id}")


class Stage:
    def __init__(self, upstream: ScriptedUpstream, gateway: LiveGateway) -> None:
        self.upstream = upstream
        self.gateway = gateway
        self.look = Look(gateway.port)

    @property
    def files(self) -> list[Path]:
        return sorted(self.gateway.folder.glob("wireglot/traces/*.trace"))


@contextmanager
def stage(
    trace: str = 'mode = "all"',
    more: Callable[[ScriptedUpstream], str] = lambda upstream: "",
    folder: Path | None = None,
    memory: int = 0,
) -> Iterator[Stage]:
    """`trace`: lines of [trace]. `more`: further tables. `memory`: bytes of bodies that are held anyway."""
    with ScriptedUpstream() as upstream:
        toml = f"{every_dialect(upstream)}{more(upstream)}\n[trace]\nmemory_bytes = {memory}\n{trace}\n"
        with LiveGateway(toml, folder=folder) as gateway:
            yield Stage(upstream, gateway)


def id_of(answer: Answered) -> str:
    return answer.headers["x-request-id"]


def text_of(message: Document) -> str:
    """All that was recorded of one side."""
    frames = message.get("frames", [])
    return str(message.get("body", "")) + "".join(frame["data"] for frame in frames)
