"""The whole list as a file."""

from __future__ import annotations

import csv
import io
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask
from tests.gateway.inspector.inspector_kit import ADMIN, Visitor, keys_table
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace.export import FORMATS, csv_lines, har_entries
from wireglot.gateway.trace.pages import loss_habits
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.traces.trace import LossCounts, Row, Tokens

A = BY_NAME["anthropic"]
SECRET = "upstream-key-0123456789"


@pytest.fixture(scope="module")
def bodies() -> Iterator[Stage]:
    with stage('mode = "all"') as made:
        yield made


def fill(made: Stage, count: int, caller: str = "") -> None:
    """Exchanges of long ago, as the gateway's list has them."""
    rows = made.gateway.process.gateway.traces.rows
    for number in range(count):
        record = ExchangeRecord(
            f"req_fill{caller}{number:06d}", time.monotonic() - 5, dialect="anthropic", operation="generate"
        )
        record.path, record.status = "/v1/messages", 200 if number % 4 else 429
        record.facts = RequestFacts(agent="=1+1")
        record.caller, record.error_message = caller, "x" * 500 if caller else ""
        rows.begin(record)
        record.finished = time.monotonic()
        rows.finish(record)


@pytest.mark.whole
def test_all_that_match_are_exported_and_not_what_was_loaded() -> None:
    with stage('mode = "off"') as made:
        fill(made, 10_000)
        table = made.look.raw("export?format=csv")
        assert table.headers["content-disposition"] == 'attachment; filename="wireglot-exchanges.csv"'
        lines = list(csv.DictReader(io.StringIO(table.body.decode())))
        assert {line["id"] for line in lines} == {f"req_fill{number:06d}" for number in range(10_000)}
        assert {line["agent"] for line in lines} == {"'=1+1"}
        some = made.look.raw("export?format=jsonl&q=status:>=400&sort=time")
        found = [json.loads(line) for line in some.body.splitlines()]
        assert len(found) == 2_500
        assert [row["at"] for row in found] == sorted(row["at"] for row in found)
        assert made.look.raw("export?format=jsonl&q=nowhere").body == b""
        assert json.loads(made.look.raw("export?format=har&q=status:500").body)["log"]["entries"] == []


def test_clients_with_keys_that_do_not_read_leave_a_place_for_the_operator() -> None:
    keys = {name: f"{name}-key-0123456789abcdef" for name in ("alice", "bob")}
    with stage(
        'mode = "off"', more=lambda _: f'[server]\nadmin_secret = "{ADMIN}"\n{keys_table(**keys)}'
    ) as made:
        for name in keys:
            fill(made, 5_000, name)
        port = made.gateway.port
        statuses, calls = [], []
        for name in ("alice", "alice", "alice", "bob", "bob"):
            call = socket.create_connection(("127.0.0.1", port))
            call.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            asked = f"GET /inspector/api/export?format=jsonl HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
            call.sendall(f"{asked}authorization: Bearer {keys[name]}\r\n\r\n".encode())
            statuses.append(call.recv(12)[-3:])
            calls.append(call)
        try:
            assert statuses == [b"200", b"200", b"503", b"200", b"503"]
            operator = Visitor(made.gateway)
            export = "/inspector/api/export?format=csv&q=id:req_fillbob000001"
            answer = operator.ask("GET", export, authorization=f"Bearer {ADMIN}")
            assert answer.status == 200
        finally:
            for call in calls:
                call.close()


def test_har_has_recorded_bodies_of_both_sides_and_no_secret(bodies: Stage) -> None:
    id = id_of(ask(bodies.gateway, A, "gemini-up/har", f"my key is {SECRET}", stream=True))
    bodies.look.trace(id)
    answer = bodies.look.raw(f"export?format=har&q=id:{id}")
    log = json.loads(answer.body)["log"]
    assert (log["version"], log["creator"]["name"]) == ("1.2", "Wireglot")
    client, upstream = log["entries"]
    assert client["request"]["postData"]["text"].startswith("{")
    assert "event: message_stop" in client["response"]["content"]["text"]
    assert client["response"]["status"] == upstream["response"]["status"] == 200
    assert upstream["request"]["url"].startswith("http://127.0.0.1")
    assert "generateContent" in upstream["request"]["url"].replace("streamG", "g")
    for entry in (client, upstream):
        assert entry["startedDateTime"].endswith("Z")
        assert entry["time"] == entry["timings"]["wait"] + entry["timings"]["receive"]
    assert SECRET.encode() not in answer.body


def test_what_cannot_be_exported_is_refused_with_a_reason(bodies: Stage) -> None:
    for query, message in (
        ("format=xls", "format"),
        ("q=stauts:400", "stauts:400: there is no field stauts; did you mean status?"),
        ("sort=weight", "sort"),
        ("since=soon", "since: expected a time ago"),
    ):
        answer = bodies.look.raw(f"export?{query}")
        assert answer.status == 400
        assert message in answer.json["error"]["message"]


def test_a_row_without_bodies_is_an_entry_of_what_is_known() -> None:
    row = Row(id="req_1", at=1_700_000_000.5, path="/v1/messages", status=429, total_ms=12.0)
    (entry,) = map(json.loads, har_entries(row, None))
    assert entry["request"]["url"] == "http://wireglot/v1/messages"
    assert entry["response"]["status"] == 429
    assert entry["startedDateTime"] == "2023-11-14T22:13:20.500Z"
    assert entry["_row"]["id"] == "req_1"


def test_cells_that_begin_as_formulas_are_marked_as_text() -> None:
    row = Row(
        id="req_1", at=1.0, client='=HYPERLINK("x")', asked="-1", error="a\nb", cost=5,
        title=" =1+1", model="\n@SUM(1)", provider="|calc", session="\ufeffa b",
    )  # fmt: skip
    (line,) = csv.reader(io.StringIO(csv_lines([row], "USD").decode()))
    assert '\'=HYPERLINK("x")' in line
    assert "'-1" in line
    assert "a\nb" in line
    assert {"' =1+1", "'\n@SUM(1)", "'|calc", "\ufeffa b"} <= {*line}


def test_a_table_has_amounts_in_units_of_the_currency_and_losses_by_grade() -> None:
    row = Row(
        id="req_1",
        at=1.0,
        cost=41_200,
        stop="end_turn",
        attempts=2,
        tokens=Tokens(input=900, output=40, cached=800),
        losses=LossCounts(serious=1, harmless=2),
        features=["stop", "cache_marker"],
    )
    table = FORMATS["csv"].head + csv_lines([row, Row(id="req_2", at=2.0)], "EUR")
    full, bare = csv.DictReader(io.StringIO(table.decode()))
    shown = ("cost", "currency", "cached", "stop", "attempts", "serious", "degraded", "harmless", "losses")
    values = ["0.041200", "EUR", "800", "end_turn", "2", "1", "0", "2", "stop cache_marker"]
    assert [full[name] for name in shown] == values
    assert (bare["cost"], bare["currency"], bare["serious"]) == ("", "", "")


def test_the_fields_of_a_filter_and_the_usual_losses_are_reported(bodies: Stage) -> None:
    fields = bodies.look.get("fields")
    assert {"client", "status", "loss", "since"} <= {each["name"] for each in fields["fields"]}
    assert all(each["about"] for each in fields["fields"])
    assert "cost" in fields["sorts"]
    rows = [
        Row(
            id="1",
            at=1.0,
            state="done",
            client="c",
            provider="p",
            losses=LossCounts(harmless=1),
            features=["a"],
        ),
        Row(id="2", at=2.0, state="failed", client="c", provider="p", features=["a", "b"]),
        Row(id="3", at=3.0, state="running", client="c", provider="p", features=["a"]),
        Row(id="4", at=4.0, state="done", client="c"),
    ]
    assert loss_habits(rows) == [
        {"client": "c", "provider": "p", "exchanges": 2, "features": {"a": 2, "b": 1}}
    ]
    assert bodies.look.get("losses")["pairs"] is not None


def test_ids_ask_only_for_what_changed(bodies: Stage) -> None:
    ids = [id_of(ask(bodies.gateway, A, "gemini-up/ids")) for _ in range(3)]
    for id in ids:
        bodies.look.over(id)
    found = bodies.look.rows(f"ids={ids[0]},{ids[2]},req_unknown")
    assert [row["id"] for row in found] == [ids[2], ids[0]]
    assert bodies.look.rows(f"ids={ids[0]}&q=model:gemini-up/ids&sort=-cost")
    assert not bodies.look.rows(f"ids={ids[0]}&q=-model:gemini-up/ids")
    assert bodies.look.raw("exchanges?ids=" + ",".join(["a"] * 501)).status == 400
