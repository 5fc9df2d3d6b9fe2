"""Every machine of a fleet shows what passes through any of them: over PostgreSQL, and over Redis alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleet_kit import ADMIN, Fleet, chat
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import DEADLINE_SECONDS, wait_until
from tools.servers import PostgresServer, RedisServer

pytestmark = [needs_own_postgres, needs_own_redis]
API = "/inspector/api"


class Machines(Fleet):
    """Two of them, and the server between."""

    def __init__(self, folder: Path, server: PostgresServer | RedisServer, more: str = "") -> None:
        is_redis = isinstance(server, RedisServer)
        store = "sqlite:wireglot.db" if is_redis else server.url
        super().__init__(folder, store, server.url if is_redis else "", more)
        self.server = server

    def look(self, machine: int, path: str, *, key: str = ADMIN) -> Any:
        reply = self.ask(machine, "GET", f"{API}/{path}", key=key)
        assert reply.status == 200, reply.body
        return reply.json()

    def asked(self, machine: int, text: str = "hi", *, key: str = "", session: str = "") -> str:
        """The id of an exchange."""
        headers = {"x-wireglot-session": session} if session else {}
        reply = self.ask(
            machine, "POST", "/v1/chat/completions", chat("demo", text), key=key, headers=headers
        )
        assert reply.status == 200, reply.body
        return reply.headers["x-wireglot-request-id"]

    def row(self, machine: int, id: str, query: str = "", *, key: str = ADMIN) -> dict[str, Any]:
        """In a machine's list, once it is there and over."""

        def look() -> dict[str, Any] | None:
            rows = self.look(machine, f"exchanges?{query}", key=key)["rows"]
            found: dict[str, Any] | None = next((row for row in rows if row["id"] == id), None)
            return found if found is not None and found.get("state") else None

        return wait_until(look)


@contextmanager
def machines(folder: Path, sort: str, more: str = "") -> Iterator[Machines]:
    server = RedisServer() if sort == "redis" else PostgresServer()
    with server, Machines(folder, server, more).running() as running:
        yield running


@pytest.fixture(scope="module", params=["postgres", "redis"])
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(
        tmp_path_factory.mktemp(request.param), request.param, '[trace]\nmode = "all"\n'
    ) as running:
        yield running


def test_each_machine_lists_finds_and_groups_what_the_other_answered(two: Machines) -> None:
    ids = [two.asked(machine, f"trip {machine}", session="a-trip") for machine in (0, 1)]
    workers = set()
    for machine in (0, 1):
        rows = [two.row(machine, id, "session=a-trip") for id in ids]
        workers = {row["worker"] for row in rows}
        assert two.row(machine, ids[1 - machine], f"q={ids[1 - machine]}")["state"] == "done"
        trips = [
            each
            for each in two.look(machine, "conversations")["conversations"]
            if each["session"] == "a-trip"
        ]
        assert [trip["turns"] for trip in trips] == [2]
        assert two.look(machine, "exchanges")["fleet"]["trouble"] is None
    assert len(workers) == 2, "a row says whose it is"


def test_what_another_machine_recorded_opens_here(two: Machines) -> None:
    id = two.asked(1, "a word that only two heard")
    assert two.row(0, id)["recorded"]
    trace = wait_until(lambda: found if "request" in (found := two.look(0, f"exchanges/{id}")) else None)
    assert "a word that only two heard" in trace["request"]["body"]
    exported = two.ask(0, "GET", f"{API}/exchanges/{id}/export", key=ADMIN)
    assert b"a word that only two heard" in exported.body


def test_the_live_list_tells_what_the_other_machine_answers(two: Machines) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", two.machines[0].port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", f"{API}/live", headers={"authorization": f"Bearer {ADMIN}"})
        stream = connection.getresponse()
        assert stream.readline() == b"event: hello\n"
        hello = json.loads(stream.readline().removeprefix(b"data: "))
        assert hello["recording"]["fleet"]["trouble"] is None
        id = two.asked(1)
        while True:
            line = stream.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: ") and json.loads(line[6:]).get("id") == id:
                break
    finally:
        connection.close()


def test_recording_for_some_minutes_reaches_the_other_machine(two: Machines) -> None:
    headers = {"authorization": f"Bearer {ADMIN}"}
    for minutes in (5, 0):
        reply = two.ask(0, "POST", f"{API}/recording", {"minutes": minutes}, headers=headers)
        assert reply.status == 200, reply.body
        assert "unreached" not in reply.json()
        wait_until(lambda: bool(two.look(1, "recording")["until"]) is bool(minutes))  # noqa: B023
