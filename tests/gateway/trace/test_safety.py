"""What a recording must not hold, who may read it, and how long it is there."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, KEY, Call, ask, every_dialect, start
from tests.gateway.faults.test_faults_process import serving
from tests.gateway.inspector.inspector_kit import Visitor
from tests.gateway.trace.trace_kit import Look, Stage, id_of, stage, text_of
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.inspector.access import sign_in_ticket
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.trace.made_trace import made_trace
from wireglot.gateway.trace.recording import recording_of
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.http.application import Head
from wireglot.http.copies import Room
from wireglot.http.redaction import Redactor
from wireglot.stores.records import UsageQuery
from wireglot.stores.seal import Sealer
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.traces.trace import Row, Trace, TraceMessage
from wireglot_core.wire.json import encode

A, C, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "gemini"))
CLIENT_KEY = "wg-planted-client-key-987654321"
COOKIE = "session=planted-cookie-value-4711"
PLANTED = (KEY, CLIENT_KEY, COOKIE, "sk-planted0123456789abcdef", "planted-in-query-0815")


def everything(made: Stage, id: str) -> str:
    return str(made.look.trace(id)) + made.look.raw(f"exchanges/{id}/export").body.decode()


@pytest.mark.parametrize("stream", [False, True])
def test_no_planted_secret_is_in_a_trace(stream: bool) -> None:
    """R-K-02, C33"""
    headers = {
        "x-api-key": CLIENT_KEY,
        "authorization": f"Bearer {CLIENT_KEY}",
        "cookie": COOKIE,
        "x-custom-token": "planted-in-query-0815",
    }
    with stage() as made:
        text = f"my keys are {KEY}, {CLIENT_KEY} and sk-planted0123456789abcdef: {COOKIE}"
        body = encode({**G.body("m1", text, stream)})
        path = G.path("anthropic-up/m1", stream)
        path += ("&" if "?" in path else "?") + "key=planted-in-query-0815"
        answer = Call(made.gateway.port, path, body, headers).rest()
        assert answer.status == 200
        reported = everything(made, id_of(answer))
        assert "my keys are" in reported
        for secret in PLANTED:
            assert secret not in reported


def test_no_secret_is_in_the_trace_of_an_upstreams_error() -> None:
    error = {"error": {"type": "authentication_error", "message": f"the key {KEY} is wrong, Bearer {KEY}"}}
    with stage() as made:
        made.upstream.next(
            Behaviour(status=401, body=encode(error), headers=(("set-cookie", COOKIE), ("x-echo", KEY)))
        )
        reported = everything(made, id_of(ask(made.gateway, C, "anthropic-up/m1")))
        assert "is wrong" in reported
        assert KEY not in reported
        assert COOKIE not in reported


def test_a_secret_that_two_events_of_a_stream_share_is_gone() -> None:
    half = len(KEY) // 2
    pieces = tuple(
        b'data: {"choices":[{"index":0,"delta":{"content":"x"}}],"a":"%b"}\n\n' % part.encode()
        for part in (KEY, "plain", "plain")
    )
    record = ExchangeRecord("req_1", time.monotonic(), finished=time.monotonic())
    head = Head(method="POST", target="/v1/messages", path="/v1/messages", query="", headers={}, peer="")
    recording = recording_of(head, b"{}", record, Room(1 << 20), 1 << 20)
    recording.answer.streamed = True
    recording.answer.status, recording.answer.headers = 200, [("content-type", "text/event-stream")]
    for data in (*pieces, KEY[:half].encode() + b"\n\n", KEY[half:].encode() + b"\n\n"):
        recording.answer.add(data)
    trace = made_trace(recording, Redactor({KEY}), "w")
    joined = "".join(frame.data for frame in trace.answer.frames)
    assert KEY not in joined
    assert "plain" in joined


def test_what_lies_on_the_disk_is_sealed_and_for_its_owner_alone() -> None:
    """C33"""
    with stage() as made:
        id = id_of(ask(made.gateway, A, "gemini-up/m1", "a sentence that nobody may read"))
        made.look.trace(id)
        (file,) = made.files
        data = file.read_bytes()
        for word in (b"sentence", b"gemini-up", b"messages", b"model"):
            assert word not in data
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) & 0o077 == 0


def test_the_next_gateway_still_shows_what_this_one_recorded(tmp_path: Path) -> None:
    with stage(folder=tmp_path) as made:
        id = id_of(ask(made.gateway, A, "gemini-up/m1", "remember me"))
        made.look.trace(id)
    with stage('mode = "off"', folder=tmp_path) as made:
        assert [row["id"] for row in made.look.rows()] == [id]
        assert "remember me" in made.look.trace(id)["request"]["body"]
        assert made.look.rows("q=remember+me")


def test_what_waits_to_be_written_is_written_before_the_end(tmp_path: Path) -> None:
    with stage(folder=tmp_path) as made:
        ids = [id_of(ask(made.gateway, A, "gemini-up/m1")) for _ in range(20)]
    names = [file.name for file in (tmp_path / "wireglot" / "traces").iterdir()]
    assert all(any(id in name for name in names) for id in ids)


def test_a_damaged_or_foreign_file_is_reported_and_everything_else_is_shown() -> None:
    with stage() as made:
        ids = [id_of(ask(made.gateway, A, "gemini-up/m1")) for _ in range(3)]
        for id in ids:
            made.look.trace(id)
        folder = made.files[0].parent
        rows = made.gateway.process.gateway.traces.rows
        rows._over.clear()  # as after a restart
        made.gateway.process.gateway.traces.shelf._rows.clear()
        made.files[0].write_bytes(made.files[0].read_bytes()[:-5] + b"wrong")
        made.files[1].write_bytes(b"something else altogether")
        (folder / "notes.txt").write_text("not ours")
        (folder / "1767225600000-0123456789abcdef-req_x.trace").write_bytes(b"")
        found = [row["id"] for row in made.look.rows()]
        assert made.files
        damaged, foreign, good = (
            file.name.partition("-")[2].partition("-")[2][:-6] for file in made.files[1:]
        )
        assert good in found
        assert foreign not in found
        assert made.look.raw(f"exchanges/{foreign}").status == 404
        assert "format" not in made.look.get(f"exchanges/{damaged}")
        assert made.gateway.wait_log(1, "unreadable")
        assert (folder / "notes.txt").exists()


def kept(id: str, at: float, key: str = "k", size: int = 10) -> Trace:
    body = os.urandom(size).hex()  # which does not become smaller
    return Trace(row=Row(id=id, at=at, key=key), request=TraceMessage(body=body), answer=TraceMessage())


def notes() -> Any:
    return lambda level, event, **fields: None


def test_recordings_go_after_their_time_and_when_they_are_too_much(tmp_path: Path) -> None:
    """R-K-01, C33"""
    shelf = TraceShelf(tmp_path / "t", Sealer(b"secret-of-sixteen"), notes())
    for number in range(5):
        shelf.put(kept(f"req_{number}", 1_800_000_000 + number * 3600))
    assert [each.id for each in shelf.listed()] == [f"req_{number}" for number in (4, 3, 2, 1, 0)]
    now = 1_800_000_000 + 4 * 3600 + 1
    shelf.sweep(TraceSettings(keep_hours=2.0), now)
    assert [each.id for each in shelf.listed()] == ["req_4", "req_3"]
    shelf.put(kept("req_large", 1_800_000_000 + 5 * 3600, size=5000))
    left = shelf.sweep(TraceSettings(keep_hours=20.0, keep_bytes=9_000), now + 3600)
    assert shelf.listed()[0].id == "req_large"
    assert left == shelf.bytes <= 9_000


def test_a_recording_moved_to_another_name_does_not_open(tmp_path: Path) -> None:
    shelf = TraceShelf(tmp_path, Sealer(b"secret-of-sixteen"), notes())
    shelf.put(kept("req_a", 1_800_000_000.0))
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / file.name.replace("req_a", "req_b"))
    shelf._rows.clear()
    (found,) = shelf.listed()
    assert shelf.row(found) is None
    assert shelf.trace(found) is None


KEYS = {"alice": "alice-key-0123456789abcdef", "bob": "bob-key-0123456789abcdef"}
ADMIN = "admin-secret-0123456789"


def with_keys(upstream: ScriptedUpstream) -> str:
    lines = [f'{name} = "sha256:{hashlib.sha256(key.encode()).hexdigest()}"' for name, key in KEYS.items()]
    return f'[server]\nadmin_secret = "{ADMIN}"\n[keys]\n' + "\n".join(lines) + "\n"


def test_a_key_sees_its_own_exchanges_and_the_admin_all() -> None:
    with stage(more=with_keys) as made:
        ids = {
            name: id_of(ask(made.gateway, A, "gemini-up/m1", f"I am {name}", headers={"x-api-key": key}))
            for name, key in KEYS.items()
        }
        assert made.look.raw("exchanges").status in (401, 403)
        admin, alice = Visitor(made.gateway), Visitor(made.gateway)
        for visitor, secret in ((admin, ADMIN), (alice, KEYS["alice"])):
            visitor.look()
            assert visitor.sign_in(secret).status == 200
        wait_until(lambda: len(admin.get("/inspector/api/exchanges?status=done").json()["rows"]) == 2)
        assert [row["id"] for row in alice.get("/inspector/api/exchanges").json()["rows"]] == [ids["alice"]]
        assert alice.get("/inspector/api/exchanges?key=bob").json()["rows"] == []
        assert alice.get("/inspector/api/exchanges?q=bob").json()["rows"] == []
        for page in ("", "/export", "/image?pointer=/model"):
            unknown = alice.get(f"/inspector/api/exchanges/req_nobody{page}")
            others = alice.get(f"/inspector/api/exchanges/{ids['bob']}{page}")
            assert (unknown.status, others.status) == (404, 404)
            assert others.message.replace(ids["bob"], "") == unknown.message.replace("req_nobody", "")
        assert "I am alice" in alice.get(f"/inspector/api/exchanges/{ids['alice']}").json()["request"]["body"]
        assert "I am bob" in admin.get(f"/inspector/api/exchanges/{ids['bob']}").json()["request"]["body"]
        assert alice.post("/inspector/api/recording", {"minutes": 1}).status == 403
        assert admin.post("/inspector/api/recording", {"minutes": 1}).status == 200


def test_only_the_keys_that_are_named_are_recorded() -> None:
    with stage('mode = "all"\nkeys = ["bob"]', more=with_keys) as made:
        admin = Visitor(made.gateway)
        admin.look()
        admin.sign_in(ADMIN)
        for key in KEYS.values():
            ask(made.gateway, A, "gemini-up/m1", headers={"x-api-key": key})
        rows = wait_until(
            lambda: (
                len(rows := admin.get("/inspector/api/exchanges?status=done").json()["rows"]) == 2 and rows
            )
        )
        assert {row["key"]: row.get("recorded", False) for row in rows} == {"alice": False, "bob": True}


def test_wiping_a_caller_takes_its_recordings_and_rows() -> None:
    with stage(more=with_keys) as made:
        admin = Visitor(made.gateway)
        admin.look()
        admin.sign_in(ADMIN)
        for key in KEYS.values():
            ask(made.gateway, A, "gemini-up/m1", headers={"x-api-key": key})
        wait_until(lambda: len(admin.get("/inspector/api/exchanges?status=done").json()["rows"]) == 2)
        wiped = admin.ask(
            "DELETE", "/v1/admin/callers/bob/data", origin=None, authorization=f"Bearer {ADMIN}", cookie=None
        )
        assert wiped.json()["removed"]["traces"] == 1
        assert [row["key"] for row in admin.get("/inspector/api/exchanges").json()["rows"]] == ["alice"]


def with_admin(upstream: ScriptedUpstream) -> str:
    return f'[server]\nadmin_secret = "{ADMIN}"\n'


@pytest.mark.parametrize("memory", [0, 1 << 23], ids=["on the disk", "in memory"])
def test_what_runs_while_its_caller_is_wiped_leaves_nothing_behind(memory: int) -> None:
    gate = threading.Event()
    with stage('mode = "all"' if not memory else 'mode = "off"', more=with_admin, memory=memory) as made:
        made.upstream.next(Behaviour(gate=gate, after=1))
        session = {"x-claude-code-session-id": "a-session"}
        call = start(made.gateway, A, "gemini-up/m1", stream=True, headers=session, seed=7, top_k=3)
        call.until(b"content_block_delta")
        (row,) = made.look.rows("status=running")
        assert made.look.get(f"exchanges/{row['id']}/running")["request"]
        listed = http.client.HTTPConnection("127.0.0.1", made.gateway.port, timeout=DEADLINE_SECONDS)
        listed.request("GET", "/inspector/api/live")
        live = listed.getresponse()
        gone = Visitor(made.gateway).ask(
            "DELETE", "/v1/admin/callers/local/data", origin=None, authorization=f"Bearer {ADMIN}"
        )
        assert gone.status == 200
        assert made.look.rows() == []
        assert made.look.raw(f"exchanges/{row['id']}/running").status == 404
        gate.set()
        assert b"message_stop" in call.rest().body, "its client has its answer"
        # The next one of the same caller is whole, and the first has ended before it.
        id = id_of(ask(made.gateway, A, "gemini-up/m2", headers={"x-claude-code-session-id": "another"}))
        assert made.look.over(id)["recorded"]
        assert [each["id"] for each in made.look.rows()] == [id]
        assert len(made.files) == (0 if memory else 1)
        assert made.look.raw(f"exchanges/{row['id']}").status == 404
        while b"was removed while it ran" not in (line := live.readline()):
            assert line, "who has it as running hears that it is gone"
        listed.close()
        process = made.gateway.process
        assert made.gateway.call(process.state.documents.get("local", "losses", [row["id"]])) == []
        assert made.gateway.call(process.state.ledger.flush())
        used = made.gateway.call(process.state.engine.ledger.rows(UsageQuery(), limit=9))
        assert {each.id: each.session for each in used} == {row["id"]: "", id: "another"}


def test_a_sign_in_link_opens_once_even_at_the_same_moment_in_two_workers(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, "--workers", "2") as served:
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        (about,) = (json.loads(each.read_text()) for each in tmp_path.rglob("running/*.json"))

        def entered(ticket: str) -> bool:
            return any(
                name == "set-cookie" for name, _ in Visitor(served).get(f"/inspector/enter/{ticket}").pairs
            )

        with ThreadPoolExecutor(6) as pool:
            for _ in range(10):
                ticket = sign_in_ticket(about["key"], time.time())
                assert sum(pool.map(entered, [ticket] * 6)) == 1


def test_all_workers_of_a_machine_are_in_the_list_and_are_recorded(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, "--workers", "2") as served:
        wait_until(lambda: b'state="answered"} 2' in served.get("/metrics")[1])
        look = Look(served.port)
        assert look.post("recording", {"minutes": 5})["workers"] == 2
        live = Call(served.port, "/nowhere", b"")
        live.leave()
        ids: list[str] = []

        def both() -> bool:
            """Which worker takes a connection is up to the system."""
            call = Call(
                served.port, A.path("gemini-up/m1", False), encode(A.body("gemini-up/m1", "hi", False))
            )
            ids.append(id_of(call.rest()))
            rows = [row for row in look.rows("limit=1000&status=done") if row["id"] in ids]
            return len({row["worker"] for row in rows}) == 2 and len(rows) == len(ids)

        wait_until(both)
        for _ in range(4):  # anyone who is asked
            rows = {row["id"]: row for row in look.rows("limit=1000")}
            assert set(ids) <= set(rows)
            assert all(rows[id]["recorded"] for id in ids)
        assert text_of(look.trace(ids[0])["request"])
        assert look.post("recording", {"minutes": 0})["until"] is None


def test_serve_with_trace_records_from_the_first_request(tmp_path: Path) -> None:
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, "--trace", "5") as served:
        call = Call(served.port, A.path("gemini-up/m1", False), encode(A.body("gemini-up/m1", "hi", False)))
        look = Look(served.port)
        assert look.trace(id_of(call.rest()))["request"]
        assert look.get("recording")["mode"] == "all"
        wait_until(lambda: b"all bodies are recorded for 5 minutes" in served.log.read_bytes())


@pytest.mark.sampled
@pytest.mark.parametrize("mode", ["errors", "all"])
def test_anyone_who_starts_it_is_informed_that_it_records(tmp_path: Path, mode: str) -> None:
    more = f'[trace]\nmode = "{mode}"\n'
    with ScriptedUpstream() as upstream, serving(upstream, tmp_path, more=more) as served:
        wait_until(lambda: f"trace.mode = {mode}".encode() in served.log.read_bytes())


def test_without_a_place_for_data_recordings_live_as_long_as_the_process() -> None:
    with ScriptedUpstream() as upstream:
        toml = f'{every_dialect(upstream)}[store]\nurl = "memory:"\n[trace]\nmode = "all"\n'
        with LiveGateway(toml) as gateway:
            look = Look(gateway.port)
            assert look.trace(id_of(ask(gateway, A, "gemini-up/m1")))["request"]
            folder = gateway.process.gateway.traces.shelf.folder
            assert folder is not None
            assert folder.exists()
        assert not folder.exists()
