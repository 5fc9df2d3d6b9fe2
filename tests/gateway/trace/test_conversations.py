"""Which exchanges are turns of one conversation, where the client names no session."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from msgspec.structs import replace

from tests.gateway.faults.faults_kit import BY_NAME, ask, post
from tests.gateway.trace.trace_kit import id_of, stage
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace.conversations import history_of, read_request, title_of, with_sessions
from wireglot.gateway.trace.rows import ExchangeRows
from wireglot_core.traces.trace import Row, TurnHashes


def body(*said: str, system: str = "") -> bytes:
    """In turns, the user first."""
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)
    ]
    return json.dumps({"model": "m", "max_tokens": 9, "system": system, "messages": messages}).encode()


def history(*said: str, system: str = "") -> TurnHashes:
    found = history_of(read_request("anthropic", body(*said, system=system)))
    assert found is not None
    return found


class Traffic:
    def __init__(self) -> None:
        self.rows: list[Row] = []

    def turn(self, *said: str, **fields: Any) -> str:
        number = len(self.rows)
        row = Row(
            id=f"req_{number:04d}", at=1000.0 + number, state="done", client="sdk", total_ms=10.0,
            operation="generate", history=history(*said),
        )  # fmt: skip
        self.rows.append(replace(row, **fields))
        return row.id

    def sessions(self) -> dict[str, str]:
        return {row.id: row.session for row in with_sessions(self.rows)}


def test_a_turn_continues_the_exchange_whose_messages_are_its_beginning() -> None:
    traffic = Traffic()
    a = traffic.turn("hi")
    b = traffic.turn("other")
    c = traffic.turn("hi", "hello", "and?")
    d = traffic.turn("hi", "hello", "and?", "no more", "bye")
    found = traffic.sessions()
    assert found[a] == found[c] == found[d] == f"turns-{a}"
    assert found[b] == f"turns-{b}"


def test_a_thousand_equal_prompts_are_as_many_conversations() -> None:
    traffic = Traffic()
    for _ in range(1000):
        traffic.turn("What is 6 times 7?")
    assert len(set(traffic.sessions().values())) == 1000
    # Each goes on: with the same answer, too.
    for number in range(1000):
        traffic.turn("What is 6 times 7?", "42" if number % 2 else "Forty-two", "Are you sure?")
    assert set(Counter(traffic.sessions().values()).values()) == {2}


@rows("fields", [{"client": "other"}, {"key": "bob"}])
def test_equal_words_of_others_are_another_conversation(fields: dict[str, Any]) -> None:
    traffic = Traffic()
    a = traffic.turn("hi")
    b = traffic.turn("hi", "hello", "and?", **fields)
    found = traffic.sessions()
    assert found[a] != found[b]


def test_a_clients_own_session_wins() -> None:
    traffic = Traffic()
    a = traffic.turn("hi", session="named")
    b = traffic.turn("hi", "hello", "and?")
    assert traffic.sessions() == {a: "named", b: f"turns-{b}"}


def test_another_answer_to_the_same_turn_stays_in_its_conversation() -> None:
    traffic = Traffic()
    a = traffic.turn("hi")
    b = traffic.turn("hi", "hello", "and?")
    again = traffic.turn("hi", "hello", "and?")
    other = traffic.turn("hi", "hello", "something else")
    assert len({traffic.sessions()[each] for each in (a, b, again, other)}) == 1


def test_a_failed_try_is_not_continued_and_a_gap_is_bridged_by_the_beginning() -> None:
    traffic = Traffic()
    good = traffic.turn("hi")
    failed = traffic.turn("hi", state="failed", status=529)
    next = traffic.turn("hi", "hello", "and?")
    last = traffic.turn("hi", "hello", "and?", "unseen", "unseen?", "so", "bye")
    found = traffic.sessions()
    assert found[good] == found[next] == found[last] != found[failed]


def test_what_clients_change_from_turn_to_turn_is_not_compared() -> None:
    plain = history("hi", "hello", "and?", system="It is noon.")
    assert plain == history("hi", "hello", "and?", system="It is one o'clock.")
    marked = json.loads(body("hi", "hello", "and?"))
    marked["messages"][0]["content"] = [
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    ]
    assert history_of(read_request("anthropic", json.dumps(marked).encode())) == plain
    assert plain.before == history("hi").own
    assert plain.answered == plain.root != plain.own
    assert history("hi").root == history("hi").before == ""


@rows(
    ("content", "title"),
    [
        ("What  is\nthis?", "What is this?"),
        ([{"type": "text", "text": "Do it"}, {"type": "text", "text": "<system-reminder>x</system-reminder>"}], "Do it"),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "done"}], "Before"),
        ("x" * 300, "x" * 119 + "…"),
    ],
)  # fmt: skip
def test_a_title_is_the_last_words_of_the_user(content: Any, title: str) -> None:
    messages = [
        {"role": "user", "content": "Before"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]},
        {"role": "user", "content": content},
    ]
    document = {"model": "m", "max_tokens": 9, "messages": messages}
    assert title_of(read_request("anthropic", json.dumps(document).encode())) == title


@rows("data", [b"", b"[]", b"{", b'{"messages": 1}', b"[" * 200_000, b"\xff"])
def test_what_is_no_conversation_has_no_history(data: bytes) -> None:
    assert history_of(read_request("anthropic", data)) is None
    assert title_of(read_request("nonsense", data)) == ""


def test_bodies_are_held_up_to_a_bound_and_let_go_once_they_were_read() -> None:

    kept = ExchangeRows("w", most=3)

    def did(id: str, data: bytes) -> None:
        record = ExchangeRecord(id, 0.0, dialect="anthropic", path="/v1/messages", body=data)
        kept.begin(record)
        record.finished = 1.0
        kept.finish(record)

    for number in range(5):
        did(f"req_{number}", body("hi"))
    assert kept._bodies_size == 3 * len(body("hi"))
    did("req_large", b" " * 3_000_000)
    assert "req_large" not in kept._bodies
    asyncio.run(kept.read_histories())
    assert (kept._bodies_size, len(kept._bodies)) == (0, 0)
    found = {row.id: row.history for row in kept.formatted(kept.snapshot())}
    assert found == {"req_3": history("hi"), "req_4": history("hi"), "req_large": None}
    for number in range(6):
        did(f"req_large{number}", b" " * 1_900_000)
    assert kept._bodies_size <= 8 * 1024 * 1024
    assert kept._histories == {}


@rows(("mode", "memory", "is_known"), [("all", 0, True), ("off", 1_000_000, True), ("off", 0, False)])
def test_an_exchange_has_a_title_where_its_bodies_are_known(mode: str, memory: int, is_known: bool) -> None:
    with stage(f'mode = "{mode}"', memory=memory) as made:
        words = "Water the upstream-key-0123456789 roses"
        made.look.over(id_of(ask(made.gateway, BY_NAME["anthropic"], "gemini-up/titled", words)))

        def titled() -> bool:
            title = made.look.rows()[0].get("title", "")
            return bool(title == "Water the [redacted] roses") == is_known

        wait_until(titled)


def test_the_cache_of_a_turn_is_compared_with_the_turn_before_it() -> None:
    with stage() as made:
        ids = []
        for said in (["hi"], ["hi", "hello", "and?"], ["other", "hello", "and?", "no more", "bye"]):
            messages = [
                {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)
            ]
            document = {"model": "anthropic-up/m1", "max_tokens": 9, "messages": messages}
            headers = {"x-claude-code-session-id": "3d1e5a52-7d3c-4f0a-9c7c-0d6c2a3b4c5d"}
            ids.append(id_of(post(made.gateway.port, "/v1/messages", json.dumps(document).encode(), headers)))
            made.look.trace(ids[-1])
        truths = made.look.get(f"exchanges/{ids[2]}/cache?all=1")["turns"]
        assert [truth["id"] for truth in truths] == ids
        assert "previous" not in truths[0]
        assert (truths[1]["previous"], truths[1]["same"], truths[1]["blocks"]) == (ids[0], 1, 1)
        assert truths[2]["broken"]["pointer"] == "/messages/0/content/text"
        assert made.look.get(f"exchanges/{ids[2]}/cache")["turns"] == truths[2:]
        assert made.look.raw("exchanges/req_unknown/cache").status == 404
