"""Rows of the list: of every exchange, without a body of any being recorded."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask, post, start
from tests.gateway.trace.trace_kit import Stage, id_of, stage
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.gateway.observe.client_names import client_name
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace import pages, traces
from wireglot.gateway.trace.rows import ExchangeRows, redacted
from wireglot.http.redaction import Redactor
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.ir.purpose import RequestFacts
from wireglot_core.traces.trace import Row
from wireglot_core.wire.json import decode

A, C, R, G = (BY_NAME[name] for name in ("anthropic", "openai-chat", "openai-responses", "gemini"))
FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")


@pytest.fixture(scope="module")
def plain() -> Iterator[Stage]:
    with stage('mode = "off"') as made:
        yield made


@rows("name", FOUR)
@rows("stream", [False, True])
def test_an_exchange_of_any_dialect_is_a_row(plain: Stage, name: str, stream: bool) -> None:
    client = BY_NAME[name]
    id = id_of(ask(plain.gateway, client, "openai-chat-up/m1", stream=stream))
    row = plain.look.over(id)
    assert row["state"] == "done"
    assert row["status"] == 200
    assert row["dialect"] == name
    assert row["asked"] == "openai-chat-up/m1"
    assert (row["provider"], row["model"], row["upstream_dialect"]) == ("openai-chat-up", "m1", "openai-chat")
    assert row.get("stream", False) is stream
    assert row["attempts"] == 1
    assert 0 <= row["first_ms"] <= row["total_ms"]
    if not (stream and row.get("passthrough")):  # whose client did not ask for its usage
        assert row["tokens"]["input"] > 0
        assert row["tokens"]["output"] > 0
    assert "recorded" not in row
    assert id in [each["id"] for each in plain.look.rows()]


def test_an_exchange_that_runs_is_a_row_already(plain: Stage) -> None:
    gate = threading.Event()
    plain.upstream.next(Behaviour(gate=gate))
    call = start(plain.gateway, A, "openai-chat-up/slow")
    try:
        row = wait_until(lambda: next(iter(plain.look.rows("model=openai-chat-up/slow")), None))
        assert row.get("state", "running") == "running"
        assert "status" not in row
    finally:
        gate.set()
    assert plain.look.over(id_of(call.rest()))["state"] == "done"


def test_a_refused_request_is_a_row_with_its_error(plain: Stage) -> None:
    answer = post(plain.gateway.port, "/v1/messages", b'{"model": ')
    row = plain.look.over(id_of(answer))
    assert row["state"] == "failed"
    assert row["status"] == 400
    assert "JSON" in row["error"]


def test_a_client_that_leaves_is_informed(plain: Stage) -> None:
    gate = threading.Event()
    plain.upstream.next(Behaviour(gate=gate, after=4))
    call = start(plain.gateway, A, "anthropic-up/left", stream=True)
    call.until(b"data:")
    call.leave(reset=True)
    row = wait_until(lambda: next(iter(plain.look.rows("model=anthropic-up/left&status=left")), None))
    gate.set()
    assert row["state"] == "left"


def test_neither_the_inspector_nor_health_nor_metrics_are_rows(plain: Stage) -> None:
    before = len(plain.look.rows("limit=1000"))
    plain.look.get("recording")
    plain.look.raw("nothing/here")
    for path in ("/healthz", "/readyz", "/metrics", "/inspector", "/inspector/nowhere"):
        connection = http.client.HTTPConnection("127.0.0.1", plain.gateway.port)
        connection.request("GET", path)
        connection.getresponse().read()
        connection.close()
    assert len(plain.look.rows("limit=1000")) == before


def test_rows_are_filtered_and_come_in_pages(plain: Stage) -> None:
    ids = [id_of(ask(plain.gateway, C, "gemini-up/paged")) for _ in range(5)]
    plain.upstream.next(Behaviour(error=400))
    failed = id_of(ask(plain.gateway, C, "gemini-up/paged"))
    plain.look.over(failed)
    query = "model=gemini-up/paged&limit=2"
    first = plain.look.get(f"exchanges?{query}")
    second = plain.look.get(f"exchanges?{query}&before={first['next']}")
    third = plain.look.get(f"exchanges?{query}&before={second['next']}")
    found = [row["id"] for page in (first, second, third) for row in page["rows"]]
    assert found == [failed, *reversed(ids)]
    assert third["next"] is None
    assert [row["id"] for row in plain.look.rows("model=gemini-up/paged&status=4xx")] == [failed]
    assert [row["id"] for row in plain.look.rows("model=gemini-up/paged&status=failed")] == [failed]
    assert len(plain.look.rows("model=gemini-up/paged&status=200")) == 5
    assert not plain.look.rows("model=gemini-up/paged&provider=anthropic-up")
    assert len(plain.look.rows("q=GEMINI-UP/paged&limit=3")) == 3
    for filtered in ("model=gemini-up/paged", "q=GEMINI-UP/paged"):
        counted = plain.look.get(f"exchanges?{filtered}&count=1")
        assert counted == {"rows": [], "next": None, "count": 6, "more": False}
    assert plain.look.raw("exchanges?limit=0").status == 400
    assert plain.look.raw("exchanges?limit=1000").status == 200
    assert plain.look.raw("exchanges?limit=1001").status == 400
    assert plain.look.raw("exchanges?before=req_unknown").status == 400


def test_losses_are_counted_and_reported_without_any_body(plain: Stage) -> None:
    answer = ask(plain.gateway, A, "openai-chat-up/lossy", top_k=5, metadata={"user_id": "u"})
    row = plain.look.over(id_of(answer))
    assert "sampling.top_k" in row["features"]
    assert sum(row["losses"].values()) >= 1
    reported = plain.look.get(f"exchanges/{row['id']}")
    assert {"sampling.top_k"} <= {loss["feature"] for loss in reported["losses"]}
    assert row["id"] in [each["id"] for each in plain.look.rows("loss=sampling.top_k")]
    assert row["id"] in [each["id"] for each in plain.look.rows("loss=any")]
    assert row["id"] not in [each["id"] for each in plain.look.rows("loss=image")]


def gemini_turn(plain: Stage, *said: str, agent: str = "GeminiCLI/0.20.0") -> str:
    contents = [
        {"role": ("user", "model")[at % 2], "parts": [{"text": text}]} for at, text in enumerate(said)
    ]
    body = {"systemInstruction": {"parts": [{"text": "Be a gardener."}]}, "contents": contents}
    path = "/v1beta/models/openai-chat-up%2Fm1:generateContent"
    answer = post(plain.gateway.port, path, json.dumps(body).encode(), headers={"user-agent": agent})
    id = id_of(answer)
    plain.look.over(id)
    return id


def test_a_turn_without_a_session_continues_the_exchange_whose_messages_it_begins_with(plain: Stage) -> None:
    first = gemini_turn(plain, "Do roses drink?")
    second = gemini_turn(plain, "Do roses drink?", "They do.", "How much?")
    third = gemini_turn(plain, "Do roses drink?", "They do.", "How much?", "A litre.", "A day?")
    alone = [gemini_turn(plain, "What of tulips?") for _ in range(3)]
    other = gemini_turn(plain, "Do roses drink?", "They do.", "How much?", agent="OpenAI/Python 2.3.0")
    conversations = plain.look.get("conversations")["conversations"]
    (found,) = [each for each in conversations if each["session"] == f"turns-{first}"]
    assert (found["turns"], found["client"]) == (3, "gemini-cli")
    for id in (first, second, third):
        assert [row["id"] for row in plain.look.rows(f"session=turns-{id}")] == [third, second, first]
    assert [row["id"] for row in plain.look.rows(f"q=session:turns-{third}+-id:{second}")] == [third, first]
    named = {each["session"] for each in conversations}
    assert not named & {f"turns-{id}" for id in (*alone, other)}


def test_conversations_that_are_not_listed_are_counted(plain: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    for session in ("counted-first", "counted-second"):
        headers = {"x-claude-code-session-id": session, "user-agent": "claude-cli/2.0 (external, cli)"}
        plain.look.over(id_of(ask(plain.gateway, A, "gemini-up/m1", headers=headers)))
    told = plain.look.get("conversations")
    assert told["count"] == len(told["conversations"]) >= 2
    monkeypatch.setattr(pages, "_MAX_CONVERSATIONS", 1)
    fewer = plain.look.get("conversations")
    assert [each["session"] for each in fewer["conversations"]] == ["counted-second"]
    assert fewer["count"] == told["count"]


def test_turns_of_one_session_are_a_conversation(plain: Stage) -> None:
    headers = {
        "x-claude-code-session-id": "a-session-of-three",
        "user-agent": "claude-cli/2.0 (external, cli)",
    }
    targets = ("gemini-up/m1", "gemini-up/m1", "openai-chat-up/lossy")
    ids = [id_of(ask(plain.gateway, A, target, headers=headers, top_k=5)) for target in targets]
    for id in ids:
        plain.look.over(id)
    reported = plain.look.get("conversations")["conversations"]
    (found,) = [each for each in reported if each["session"] == "a-session-of-three"]
    assert (found["turns"], found["client"]) == (3, "claude-code")
    assert found["tokens"]["output"] > 0
    assert found["first_at"] <= found["last_at"]
    rows = plain.look.rows("session=a-session-of-three")
    assert len(rows) == 3
    grades = {
        grade: sum(row.get("losses", {}).get(grade, 0) for row in rows)
        for grade in ("serious", "degraded", "harmless")
    }
    assert {grade: found[grade] for grade in grades} == grades
    assert found["losses"] == sum(grades.values()) > 0


def test_live_tells_each_exchange_as_it_comes_and_ends(plain: Stage) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", plain.gateway.port, timeout=60)
    connection.request("GET", "/inspector/api/live")
    response = connection.getresponse()
    assert response.getheader("content-type", "").startswith("text/event-stream")
    assert b"event: hello" in response.readline()
    id = id_of(ask(plain.gateway, G, "anthropic-up/lively", stream=True))
    seen: list[str] = []
    until = time.monotonic() + DEADLINE_SECONDS
    while "done" not in seen:
        assert time.monotonic() < until, seen  # keep-alives come for ever
        line = response.readline()
        if line.startswith(b"data: ") and id.encode() in line:
            seen.append(decode(line[6:]).get("state", "running"))
    connection.close()
    assert set(seen) <= {"running", "done"}


def test_who_looks_is_let_go_when_the_gateway_ends() -> None:
    with stage('mode = "off"') as made:
        connection = http.client.HTTPConnection("127.0.0.1", made.gateway.port, timeout=60)
        connection.request("GET", "/inspector/api/live")
        response = connection.getresponse()
        assert b"event: hello" in response.readline()
        made.gateway.process.gateway.draining = True
        assert b"recording" in response.read()  # to its proper end
        connection.close()


def test_secrets_of_the_configuration_stand_in_no_row(plain: Stage) -> None:
    secret = "upstream-key-0123456789"
    headers = {"user-agent": f"tool/1 {secret}", "x-session-id": f"s-{secret}"}
    plain.upstream.next(Behaviour(status=400, body=b'{"error": {"message": "bad key %b"}}' % secret.encode()))
    answer = ask(plain.gateway, C, f"openai-chat-up/{secret}", headers=headers)
    plain.look.over(id_of(answer))
    for row in plain.look.rows("limit=1000"):
        assert secret not in str(row)


def test_rows_of_a_list_are_searched_for_secrets_beside_the_loop(
    plain: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten thousand it takes half a second, in which no other request would go on."""
    plain.look.over(id_of(ask(plain.gateway, C, "openai-chat-up/beside")))
    threads: set[int] = set()

    def noted(row: Row, redactor: Redactor) -> Row:
        threads.add(threading.get_ident())
        return redacted(row, redactor)

    async def of_the_loop() -> int:
        return threading.get_ident()

    monkeypatch.setattr(traces, "redacted", noted)
    for path in (
        "exchanges",
        "conversations",
        "losses",
        "dashboard",
        "export?format=csv",
        "export?format=har",
    ):
        plain.look.raw(path)
        assert threads, path
        assert plain.gateway.call(of_the_loop()) not in threads, path
        threads.clear()


def test_the_ring_is_bounded_and_a_slow_listener_misses_some_counted() -> None:
    rows = ExchangeRows("w", most=3)

    async def run() -> tuple[int, int]:
        listener = rows.listen()
        for number in range(700):
            record = ExchangeRecord(f"req_{number}", 0.0, path="/v1/messages")
            rows.begin(record)
            record.finished = 1.0
            rows.finish(record)
        heard = await listener.heard(0)
        listener.close()
        return len(heard), listener.dropped

    assert asyncio.run(run()) == (500, 200)
    assert [row.id for row in rows.formatted(rows.snapshot())] == ["req_697", "req_698", "req_699"]


def test_what_others_wrote_is_in_the_row_and_no_secret_in_any_of_it() -> None:
    written = {
        "agent": "user_agent", "path": "/path", "session": "session", "asked": "asked", "model": "model",
        "stop": "stop", "error": "error", "purpose_word": "word", "agent_name": "name", "agent_id": "id",
        "parent_agent_id": "parent",
    }  # fmt: skip

    def row_of(secret: str) -> Row:
        text = {name: f"{value}{secret}" for name, value in written.items()}
        facts = RequestFacts(
            word=text["purpose_word"],
            agent=text["agent_name"],
            agent_id=text["agent_id"],
            parent_id=text["parent_agent_id"],
        )
        record = ExchangeRecord(
            "req_1", 0.0, path=text["path"], agent=text["agent"], session=text["session"], model=text["asked"],
            upstream_model=text["model"], stop=text["stop"], facts=facts, finished=1.0, error_message=text["error"],
        )  # fmt: skip
        kept = ExchangeRows("w")
        kept.begin(record)
        kept.finish(record)
        (row,) = kept.formatted(kept.snapshot())
        return row

    plain = row_of("")
    assert {name: getattr(plain, name) for name in written} == written
    secret = "hush-hush-0123456789"
    scrubbed = redacted(row_of(secret), Redactor([secret]))
    for name, value in written.items():
        assert getattr(scrubbed, name) == f"{value}[redacted]"


def test_half_a_character_in_a_name_is_no_reason_to_lose_the_row() -> None:
    rows = ExchangeRows("w")
    record = ExchangeRecord("req_1", 0.0, model="\ud800", path="/v1/messages")
    rows.begin(record)
    record.finished = 1.0
    rows.finish(record)
    row = rows.find("req_1")
    assert row is not None
    assert row.asked == "\ufffd"


@rows(
    ("agent", "name"),
    [
        ("claude-cli/2.0.14 (external, cli)", "claude-code"),
        ("codex_cli_rs/0.46.0 (Debian 12; x86_64) xterm", "codex"),
        ("codex_exec/0.46.0", "codex"),
        ("GeminiCLI/0.9.0/gemini-2.5-pro (linux; x64)", "gemini-cli"),
        ("opencode/0.15.0 ai-sdk/provider-utils", "opencode"),
        ("KimiCLI/0.40", "kimi-cli"),
        ("kimi-code-cli/2.1.0", "kimi-code"),
        ("OpenAI/Python 2.3.0", "openai-python"),
        ("AsyncOpenAI/Python 2.3.0", "openai-python"),
        ("Anthropic/Python 0.69.0", "anthropic-python"),
        ("AsyncAnthropic/Python 0.69.0", "anthropic-python"),
        ("google-genai-sdk/1.41.0 gl-python/3.11", "google-genai"),
        ("claude-code/2.1.0", "claude-code"),
        ("gemini-cli/1.0", "gemini-cli"),
        ("kimi-cli/0.40", "kimi-cli"),
        ("QwenCode/0.24.0 (linux; x64)", "qwen-code"),
        ("OpenAI/JS 6.1.0", "openai-node"),
        ("Anthropic/JS 0.66.0", "anthropic-node"),
        ("tool-1.0.- x", "tool-1.0"),
        ("curl/8.5.0", "curl"),
        ("python-httpx/0.28", "python-httpx"),
        ("<script>", ""),
        ("", ""),
    ],
)
def test_a_client_is_named_by_its_agent(agent: str, name: str) -> None:
    assert client_name(agent) == name
