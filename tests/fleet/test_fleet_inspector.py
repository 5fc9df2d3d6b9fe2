"""Every machine of a fleet shows what passes through any of them: over PostgreSQL, and over Redis alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from proofs.served import keys_table
from proofs.servers import PostgresServer, RedisServer
from tests.fleet.fleet_kit import ADMIN, SECRET, Fleet, chat
from tests.gateway.inspector.inspector_kit import Visitor
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import DEADLINE_SECONDS, wait_until

# Of the two stores one at every change, but for one test: test_fleet.py has both.
pytestmark = [needs_own_postgres, needs_own_redis, pytest.mark.sampled(each=1)]
API = "/inspector/api"
ADA = "wg-the-key-of-ada-0123456789"
BOB = "wg-the-key-of-bob-0123456789"
CLEO = "wg-the-key-of-cleo-012345678"
KEYS = keys_table({"ada": ADA, "bob": BOB, "cleo": CLEO})
RECORDING = '[trace]\nmode = "all"\n'


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

    def asked(self, machine: int, text: str = "hi", *, key: str = ADA, session: str = "") -> str:
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

    def trace(self, machine: int, id: str) -> dict[str, Any]:
        """What was recorded of it, once a machine can show it."""
        self.row(machine, id)
        found: dict[str, Any] = wait_until(
            lambda: reported if "request" in (reported := self.look(machine, f"exchanges/{id}")) else None
        )
        return found


@contextmanager
def machines(folder: Path, sort: str, more: str = "") -> Iterator[Machines]:
    server = RedisServer() if sort == "redis" else PostgresServer()
    with server, Machines(folder, server, more).running() as running:
        yield running


@pytest.fixture(scope="module", params=["postgres", "redis"])
def two(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp(request.param), request.param, KEYS + RECORDING) as running:
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
    assert len(workers) == 2, "a row says whose it is"


@pytest.mark.sampled(each=2)
def test_what_another_machine_recorded_opens_here(two: Machines) -> None:
    id = two.asked(1, "a word that only two heard")
    assert two.row(0, id)["recorded"]
    trace = two.trace(0, id)
    assert "a word that only two heard" in trace["request"]["body"]
    exported = two.ask(0, "GET", f"{API}/exchanges/{id}/export", key=ADMIN)
    assert b"a word that only two heard" in exported.body


def test_a_word_that_another_machine_recorded_is_found_here(two: Machines) -> None:
    id = two.asked(1, "a zebrafinch that only two heard")
    assert two.trace(0, id)
    found = two.look(0, "exchanges?q=zebrafinch")
    assert [row["id"] for row in found["rows"]] == [id]
    assert "unread" not in found
    assert found["next"] is None


@pytest.mark.whole
def test_the_dashboard_adds_up_what_every_machine_answered_once(two: Machines) -> None:
    ids = [two.asked(machine, key=CLEO) for machine in (0, 1, 1)]
    refused = two.ask(1, "POST", "/v1/chat/completions", {"model": "demo", "messages": 3}, key=CLEO)
    assert refused.status == 400
    ids.append(refused.headers["x-wireglot-request-id"])
    for machine in (0, 1):
        for id in ids:
            two.row(machine, id)
        for query, requests in (("key=cleo", 4), ("key=cleo&model=demo", 4), ("key=eve", 0)):
            reported = two.look(machine, f"dashboard?from=1h&by=provider&{query}")["total"]
            assert reported["requests"] == requests, (machine, query)
    two.machines[1].kill()
    two.machines[1].start()  # what it did before is its own
    for id in ids:
        two.row(1, id)
    for machine in (0, 1):
        rows = two.look(machine, "exchanges?key=cleo")["rows"]
        summed = two.look(machine, "dashboard?from=1h&key=cleo")["total"]
        assert (summed["requests"], summed["open"], summed["errors"]) == (4, 0, 1)
        for side in ("input", "output"):
            assert summed[f"{side}_tokens"] == sum(row.get("tokens", {}).get(side, 0) for row in rows) > 0
        assert summed["latency_ms"]["p50"] is not None
        assert summed["lossy"] == sum(bool(row.get("features")) for row in rows)


def test_the_live_list_tells_what_the_other_machine_answers(two: Machines) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", two.machines[0].port, timeout=DEADLINE_SECONDS)
    try:
        connection.request("GET", f"{API}/live", headers={"authorization": f"Bearer {ADMIN}"})
        stream = connection.getresponse()
        assert stream.readline() == b"event: hello\n"
        hello = json.loads(stream.readline().removeprefix(b"data: "))
        assert hello["recording"]["fleet"]["machines"] >= 1
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
        wait_until(partial(_records, two, 1, bool(minutes)))


def test_a_client_key_sees_its_own_exchanges_of_every_machine_and_no_other(two: Machines) -> None:
    hers = [two.asked(machine, key=ADA) for machine in (0, 1)]
    his = two.asked(1, key=BOB)
    for id in (*hers, his):
        two.row(0, id)
        two.trace(0, id)
    for id in hers:
        assert two.row(0, id, key=ADA)["key"] == "ada"
    reported = two.look(0, "exchanges?limit=1000", key=ADA)["rows"]
    assert {row["key"] for row in reported} == {"ada"}
    for path in (f"exchanges/{his}", f"exchanges/{his}/export", f"exchanges?before={his}"):
        assert two.ask(0, "GET", f"{API}/{path}", key=ADA).status in (400, 404), path
    assert two.look(0, f"exchanges/{his}", key=BOB)["row"]["key"] == "bob"


def test_a_session_ended_on_one_machine_is_none_on_the_other(two: Machines) -> None:
    visitors = [Visitor(machine).browse() for machine in two.machines]
    assert visitors[0].sign_in(ADMIN).status == 200
    # Behind a balancer both machines have one name; here each has its port, which the cookie's name tells.
    _, _, token = visitors[0].cookie.partition("=")
    visitors[1].cookie = f"wireglot-inspector-{two.machines[1].port}={token}"
    assert visitors[1].get(f"{API}/exchanges").status == 200
    ended = visitors[0].ask("DELETE", f"{API}/session")
    assert ended.json()["access"] == "none"
    assert visitors[0].get(f"{API}/exchanges").status == 401
    wait_until(lambda: visitors[1].get(f"{API}/exchanges").status == 401)


def test_a_caller_that_is_wiped_on_one_machine_is_gone_from_all(two: Machines) -> None:
    hers, his = two.asked(1, key=ADA), two.asked(1, key=BOB)
    for machine in (0, 1):
        two.row(machine, hers)
        two.row(machine, his)
        two.trace(machine, his)
    assert two.admin(0, "DELETE", "/v1/admin/callers/bob/data").status == 200
    for machine in (0, 1):
        wait_until(partial(_has_no_row_of, two, machine, "bob"))
        wait_until(partial(_has_nothing_at, two, machine, f"exchanges/{his}"))
        assert two.row(machine, hers)["key"] == "ada"
    two.machines[0].kill()
    two.machines[0].start()  # it knows what the store tells, and no more
    assert two.row(0, hers)["key"] == "ada"
    assert "bob" not in {row["key"] for row in two.look(0, "exchanges?limit=1000")["rows"]}


@pytest.mark.whole
def test_what_a_dead_machine_answered_is_still_there_and_its_own_while_the_store_is_away(
    tmp_path: Path,
) -> None:
    with machines(tmp_path, "postgres", KEYS + RECORDING) as two:
        theirs = two.asked(1, "the last words of two")
        two.trace(0, theirs)
        two.machines[1].kill()
        assert "the last words of two" in two.trace(0, theirs)["request"]["body"]
        two.server.stop()
        own = two.asked(0, "while nobody else can hear it")
        reported = wait_until(
            lambda: reported if (reported := two.look(0, "exchanges"))["fleet"]["trouble"] else None
        )
        assert {own, theirs} <= {row["id"] for row in reported["rows"]}
        assert "store is not available" in two.look(0, f"exchanges/{theirs}")["why"]
        reply = two.ask(0, "POST", f"{API}/recording", {"minutes": 600}, key=ADMIN)
        assert "only this machine" in reply.json()["unreached"]
        two.server.start()
        two.machines[1].start()
        two.row(1, own)
        wait_until(partial(_records, two, 1, True), "who was away hears of it, too")
        wait_until(lambda: two.look(0, "exchanges")["fleet"]["trouble"] is None)


@pytest.mark.whole
def test_without_a_shared_secret_rows_come_and_the_page_says_why_bodies_do_not(tmp_path: Path) -> None:
    with RedisServer() as redis:
        two = Machines(tmp_path, redis, KEYS + RECORDING)
        other = (tmp_path / "two" / "wireglot.toml").read_text().replace(SECRET, SECRET + "-of-two")
        two.machines[1].configure(other)
        with two.running():
            id = two.asked(1)
            assert two.row(0, id)["recorded"]
            why = wait_until(
                lambda: why if "secret" in (why := two.look(0, f"exchanges/{id}").get("why", "")) else None
            )
            assert "set server.secret, the same on every machine" in why
            assert two.row(0, id)["worker"] in why


def _records(two: Machines, machine: int, wanted: bool) -> bool:
    return bool(two.look(machine, "recording")["until"]) is wanted


def _has_no_row_of(two: Machines, machine: int, key: str) -> bool:
    return key not in {row["key"] for row in two.look(machine, "exchanges?limit=1000")["rows"]}


def _has_nothing_at(two: Machines, machine: int, path: str) -> bool:
    return two.ask(machine, "GET", f"{API}/{path}", key=ADMIN).status == 404
