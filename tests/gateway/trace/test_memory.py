"""The last bodies in memory: there without a word of configuration, bounded, and gone as soon as keys are needed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.gateway.faults.faults_kit import BY_NAME, ask, every_dialect
from tests.gateway.inspector.inspector_kit import Visitor
from tests.gateway.trace.trace_kit import Look, id_of, stage
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.setting_tables import TraceSettings
from wireglot.gateway.settings import ClientKey, ServerSettings, Settings
from wireglot.gateway.trace import traces
from wireglot.gateway.trace.recording import Recording, recording_of
from wireglot.gateway.trace.traces import RecentRecordings, memory_bytes
from wireglot.http.application import Head
from wireglot.http.copies import Room
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream

A, C, R = BY_NAME["anthropic"], BY_NAME["openai-chat"], BY_NAME["openai-responses"]
KIB, MIB = 1 << 10, 1 << 20
LOCAL = ServerSettings()


@rows(
    "server, keys, is_held",
    [
        (LOCAL, (), True),
        (replace(LOCAL, host="::1"), (), True),
        (replace(LOCAL, hosts=("localhost",)), (), True),
        (replace(LOCAL, host="0.0.0.0"), (), False),
        (replace(LOCAL, host="192.168.1.5"), (), False),
        (replace(LOCAL, hosts=("wireglot.example.com",)), (), False),
        (replace(LOCAL, require_key=True), (), False),
        (replace(LOCAL, inspector="secret"), (), False),
        (replace(LOCAL, inspector="off"), (), False),
        (LOCAL, (ClientKey(name="k", digest="d"),), False),
    ],
)
def test_bodies_are_held_for_one_person_alone(
    server: ServerSettings, keys: tuple[ClientKey, ...], is_held: bool
) -> None:
    settings = Settings(server=server, keys=keys)
    assert (memory_bytes(settings) > 0) == is_held
    assert memory_bytes(replace(settings, trace=TraceSettings(memory_bytes=0))) == 0


def recording(id: str, size: int, room: Room) -> Recording:
    head = Head("POST", target="/v1/messages", path="/v1/messages", query="", headers={}, peer="")
    return recording_of(head, b"x" * size, ExchangeRecord(id, time.monotonic()), room, body_bytes=MIB)


def holding(most: int) -> RecentRecordings:
    return RecentRecordings(Settings(trace=TraceSettings(memory_bytes=most)), lambda: False)


def test_what_is_held_is_bounded_in_bytes() -> None:
    room, held = Room(64 * MIB), holding(100 * KIB)
    for number in range(50):
        held.put(recording(f"req_{number}", 20 * KIB, room))
        assert held.held <= 100 * KIB
    assert room.held == 0, "what is over takes nothing of the room for those that run"
    assert [f"req_{number}" in held for number in (0, 45, 46, 49)] == [False, False, True, True]
    held.put(recording("huge", 200 * KIB, room))
    assert "huge" not in held
    assert "req_49" in held, "one that is too large takes nobody's place"


def test_what_is_held_is_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_EXCHANGES", 3)
    held = holding(MIB)
    for number in range(5):
        held.put(recording(f"req_{number}", 10, Room(MIB)))
    assert [f"req_{number}" in held for number in range(5)] == [False, False, True, True, True]
    status = held.status()
    assert status is not None
    assert status["exchanges"] == 3


def test_a_running_one_for_which_there_is_no_room_is_not_held() -> None:
    held, room = holding(MIB), Room(10 * KIB)
    held.put(recording("lost", 20 * KIB, room))
    assert "lost" not in held
    assert room.held == 0


def test_running_ones_take_twice_as_much_at_most() -> None:
    held = holding(100 * KIB)
    running = [recording(f"req_{number}", 30 * KIB, held.room) for number in range(10)]
    assert held.room.held <= 200 * KIB
    assert [made.request.lost for made in running] == [False] * 6 + [True] * 4
    for made in running:
        held.put(made)
    assert held.room.held == 0


def test_running_ones_have_a_room_apart_from_recorded_ones() -> None:
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        gateway.process.gateway.traces.memory.room.most = KIB
        assert ask(gateway, A, "gemini-up/m1", "y" * 2 * KIB).status == 200
        assert Look(gateway.port).get("recording")["memory"]["exchanges"] == 0
    with stage(memory=KIB) as made:
        made.gateway.process.gateway.traces.memory.room.most = KIB
        assert made.look.trace(id_of(ask(made.gateway, A, "gemini-up/m1", "y" * 2 * KIB)))["request"]["body"]


def test_a_new_configuration_lets_go_of_what_it_does_not_allow() -> None:
    held = holding(MIB)
    held.put(recording("req_1", 10, Room(MIB)))
    held.adopt(Settings(server=ServerSettings(require_key=True)))
    assert "req_1" not in held
    assert held.held == held.room.most == 0


def test_one_callers_are_forgotten_up_to_a_moment() -> None:
    held, room = holding(MIB), Room(MIB)
    made = recording("req_1", 10, room)
    made.record.caller = "local"
    held.put(made)
    held.forget("other")
    held.forget("local", until=time.time() - 60)
    assert "req_1" in held
    held.forget("local", until=time.time() + 1)
    assert "req_1" not in held


@rows("stream", [False, True])
def test_an_exchange_can_be_opened_without_a_word_of_configuration(stream: bool) -> None:
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        look = Look(gateway.port)
        answer = ask(gateway, A, "gemini-up/m1", "What is held?", stream=stream, top_k=5)
        trace = look.trace(id_of(answer))
        assert "What is held?" in trace["request"]["body"]
        assert trace["attempts"][0]["links"]
        said = trace["answer"].get("body") or "".join(frame["data"] for frame in trace["answer"]["frames"])
        assert said.encode() == answer.body
        status = look.get("recording")["memory"]
        assert status["exchanges"] == 1
        assert 0 < status["bytes"] < status["most_bytes"] == 32 * MIB
        assert look.raw(f"exchanges/{id_of(answer)}/export").status == 200
        assert [row["id"] for row in look.rows("q=what+is+held")] == [id_of(answer)]
        assert not list(Path(gateway.folder).glob("**/*.trace")), "nothing is written"


def test_a_turn_with_what_the_gateway_remembered_has_both_sides_linked() -> None:
    with ScriptedUpstream() as upstream, LiveGateway(every_dialect(upstream)) as gateway:
        first = ask(gateway, R, "gemini-up/m1", "What came first?", store=True)
        more = {"store": True, "previous_response_id": first.json["id"]}
        trace = Look(gateway.port).trace(id_of(ask(gateway, R, "gemini-up/m1", "And then?", **more)))
        assert "What came first?" in trace["attempts"][0]["request"]["body"]
        assert not trace.get("notes")
        assert {"client": "/input", "upstream": "/contents/2/parts/0"} in trace["attempts"][0]["links"]


def test_the_first_key_lets_go_of_all_of_them() -> None:
    admin = '[server]\nadmin_secret = "an-admin-secret-of-length"\n'
    with ScriptedUpstream() as upstream, LiveGateway(admin + every_dialect(upstream)) as gateway:
        id = id_of(ask(gateway, C, "gemini-up/m1"))
        assert Look(gateway.port).trace(id)["request"]["body"]
        visitor = Visitor(gateway)
        visitor.look()
        assert visitor.sign_in("an-admin-secret-of-length").status == 200
        assert visitor.get("/inspector/api/recording").json()["memory"] is not None
        assert visitor.post("/inspector/api/keys", {"name": "first"}).status in (200, 201)
        wait_until(lambda: visitor.get("/inspector/api/recording").json()["memory"] is None)
        row = visitor.get(f"/inspector/api/exchanges/{id}").json()["row"]
        assert not row.get("recorded")


def test_what_is_recorded_is_not_held_twice() -> None:
    with stage('mode = "errors"', memory=MIB) as made:
        good = id_of(ask(made.gateway, C, "gemini-up/m1"))
        bad = id_of(ask(made.gateway, C, "nowhere/m1"))
        assert made.look.trace(good)["request"]
        assert made.look.trace(bad)["request"]
        assert made.look.get("recording")["memory"]["exchanges"] == 1
        assert [file.name.partition("-req")[0] for file in made.files] != []


def test_asking_the_demo_model_leads_to_a_translation_with_a_loss() -> None:
    with LiveGateway("") as gateway:
        visitor = Visitor(gateway)
        visitor.look()
        asked = visitor.post("/inspector/api/ask", {"text": "What is the weather in Paris?"}).json()
        assert (asked["model"], asked["status"]) == ("demo/demo-gemini", 200)
        trace = Look(gateway.port).trace(asked["id"])
        (attempt,) = trace["attempts"]
        assert attempt["dialect"] != trace["row"]["dialect"]
        assert trace["request"]["body"] != attempt["request"]["body"]
        assert trace["answer"]["frames"]
        assert attempt["answer"]["frames"]
        assert [loss["feature"] for loss in trace["losses"]] == ["parallel_tools"]
        assert trace["losses"][0]["pointer"] == "/parallel_tool_calls"
