"""This tree takes over what a gateway that was killed left behind: one of an older version, or its own.

What older ones left lies in tests/fixtures/left_behind, one folder a version, made by `proofs.lab.leave_behind`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import apsw
import msgspec
import pytest

from proofs.lab.client_record import read_client_record
from proofs.lab.forms import read_database
from proofs.lab.leave_behind import unpack
from proofs.lab.scenario import sent
from proofs.lab.scenario_config import CHAT, CLAUDE
from proofs.served import Served
from tests.upgrade.forms_kit import as_older_ones_read
from tests.upgrade.left_behind_kit import (
    RELEASED,
    THIS_TREE,
    Restarted,
    asked_for_state,
    packed,
    plain,
    restarted,
)
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway

_TOKENS = ("input", "cache_read", "cache_write", "cache_write_long", "tool_prompt", "output", "reasoning")
_APART = ("vault", "usage", "keys")


_NOT_LOST = ("Chat's client that forgets, gpt/some-model",)
"""Older versions reported the loss of reasoning that they put back for another family. Its client sent none."""

pytestmark = pytest.mark.sampled(each=1)  # what was released comes first


@pytest.fixture(scope="module", params=[*RELEASED, THIS_TREE])
def left(request: pytest.FixtureRequest) -> Path:
    return packed(request.param)


@pytest.fixture(scope="module")
def now(left: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarted]:
    with restarted(left, tmp_path_factory.mktemp("now")) as running:
        yield running


def test_what_was_stored_is_shown_as_it_was(now: Restarted) -> None:
    assert len(now.reported.fetched) > 10
    for reported, reply in zip(now.reported.fetched, now.shown, strict=True):
        shown, before = (as_older_ones_read(text) for text in (reply.body.decode(), reported.answer))
        assert (reported.name, reply.status, shown) == (reported.name, reported.status, before)


def test_what_builds_on_it_has_the_same_answer(now: Restarted) -> None:
    """Chains, references, sealed envelopes in clients' histories, the vault, a summary: all of it is opened, and
    a provider behind the gateway gets the same bytes under the same key."""
    assert len(now.reported.again) > 20
    for reported in now.reported.again:
        reply, sent = now.repeat(reported)
        losses = reply.headers.get("x-wireglot-losses", "")
        assert (reported.name, reply.status) == (reported.name, reported.status)
        expected = reported.losses
        if reported.name in _NOT_LOST and "reasoning.signature" not in losses:
            expected = expected.replace("reasoning.signature", "").strip(",")
        assert sorted(losses.split(",")) == sorted(expected.split(",")), reported.name
        assert plain(reply.body.decode()) == plain(reported.answer), reported.name
        assert [key for key, _ in sent] == [key for key, _ in reported.sent], reported.name
        for (_, body), (_, before) in zip(sent, reported.sent, strict=True):
            assert asked_for_state(body, before) == before, reported.name


def test_an_idempotent_answer_is_given_again_byte_for_byte(now: Restarted) -> None:
    assert now.reported.replayed
    for reported in now.reported.replayed:
        reply, sent = now.repeat(reported)
        assert reply.headers.get("idempotent-replayed") == "true"
        assert (reply.status, reply.body.decode(), sent) == (reported.status, reported.answer, [])


def test_a_chain_of_responses_goes_on(now: Restarted) -> None:
    last = now.reported.goes_on["response"]
    now.upstream.reset()
    body = {"model": CLAUDE, "input": "Who am I?", "previous_response_id": last}
    reply = now.ask("ada", "POST", "/v1/responses", body)
    assert reply.status == 200, reply.body
    [(_, asked)] = sent(now.upstream)
    assert all(said in asked for said in ("My name is Ada.", "And then?", "Who am I?"))
    kept = now.ask("ada", "GET", f"/v1/responses/{reply.json()['id']}").json()
    assert kept["previous_response_id"] == last


def test_a_conversation_goes_on(now: Restarted) -> None:
    id = now.reported.goes_on["conversation"]
    path = f"/v1/conversations/{id}/items?order=asc&limit=100"
    before = now.ask("ada", "GET", path).json()["data"]
    now.upstream.reset()
    reply = now.ask("ada", "POST", "/v1/responses", {"model": CLAUDE, "input": "So?", "conversation": id})
    assert reply.status == 200, reply.body
    [(_, asked)] = sent(now.upstream)
    assert all(said in asked for said in ("I am in Lima.", "Where am I?", "And why?", "really", "So?"))
    after = now.ask("ada", "GET", path).json()["data"]
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2


def test_a_session_of_five_dialects_goes_on(now: Restarted) -> None:
    session = {"x-wireglot-session": now.reported.goes_on["session"]}
    now.upstream.reset()
    body = {"model": CHAT, "messages": [{"role": "user", "content": "And in yours?"}]}
    assert now.ask("ada", "POST", "/v1/chat/completions", body, session).status == 200
    [(_, asked)] = sent(now.upstream)
    words = ("Chat's words", "Anthropic's words", "Gemini's", "simple words", "Responses' words")
    assert all(said in asked for said in (*words, "And in yours?"))


def test_keys_open_what_they_opened(now: Restarted) -> None:
    for caller in now.reported.keys:
        assert now.ask(caller, "GET", "/v1/models").status == 200, caller
    assert set(now.reported.shut) == {"leaver", "renewed"}
    for caller, key in now.reported.shut.items():
        assert now.ask(caller, "GET", "/v1/models", key=key).status == 401, caller


def test_a_spent_budget_is_spent(now: Restarted) -> None:
    assert now.reported.refused
    for reported in now.reported.refused:
        reply, sent = now.repeat(reported)
        assert (reply.status, sent) == (reported.status, [])
        assert reply.json()["error"]["code"] == reported.json()["error"]["code"] == "insufficient_quota"


def test_the_journal_holds_what_the_store_has_not_got(left: Path, tmp_path: Path) -> None:
    """Otherwise the next test would prove nothing."""
    unpack(left, tmp_path)
    reported = read_client_record(left)
    stored = {
        row["id"]: row["outcome"]
        for row in read_database(tmp_path / "wireglot" / "wireglot.db").tables["usage"]
    }
    assert reported.unapplied
    assert not set(reported.unapplied) & set(stored)
    assert {id for id, outcome in stored.items() if outcome} >= set(reported.requests) - set(
        reported.unapplied
    )


def test_every_acknowledged_request_is_one_row_of_usage(now: Restarted) -> None:
    wait_until(lambda: _crashed(now) == now.reported.crashed)
    rows = now.exported("usage")
    count = Counter(row["id"] for row in rows)
    assert set(count.values()) == {1}
    by_id = {row["id"]: row for row in rows}
    for id, account in now.reported.requests.items():
        row = by_id[id]
        assert (row["caller"], row["dialect"], row["outcome"]) == (account.caller, account.dialect, "ok")
        if account.tokens >= 0:
            assert sum(row.get(kind, 0) for kind in _TOKENS) == account.tokens, row
    assert not [row for row in rows if not row.get("outcome")]


def test_usage_is_reported_by_the_command_and_the_page(now: Restarted) -> None:
    wait_until(lambda: _crashed(now) == now.reported.crashed)
    spent: Counter[str] = Counter()
    requests: Counter[str] = Counter()
    for row in now.exported("usage"):
        spent[row["caller"]] += sum(row.get(kind, 0) for kind in _TOKENS)
        requests[row["caller"]] += 1
    command = msgspec.json.decode(
        now.gateway.run(
            "usage", "--config", "wireglot.toml", "--by", "key", "--since", "2020-01-01", "--json"
        )
    )
    page = now.ask("admin", "GET", "/v1/admin/usage?group_by=key&start=2020-01-01").json()
    for reported in (command, page):
        assert {row["key"]: row["total_tokens"] for row in reported["data"]} == spent
        assert {row["key"]: row["requests"] for row in reported["data"]} == requests


def test_what_is_exported_can_be_imported(now: Restarted, tmp_path: Path) -> None:
    backup = tmp_path / "backup.jsonl"
    now.gateway.run("store", "--config", "wireglot.toml", "export", str(backup))
    kinds = Counter(key for line in backup.read_bytes().splitlines() for key in msgspec.json.decode(line))
    assert min(kinds[kind] for kind in ("document", "vault", "usage", "key")) > 0
    elsewhere = Served(tmp_path / "elsewhere", (now.folder / "wireglot.toml").read_text(encoding="utf-8"))
    elsewhere.run("store", "--config", "wireglot.toml", "import", str(backup))
    stats = msgspec.json.decode(elsewhere.run("store", "--config", "wireglot.toml", "stats", "--json"))
    found = stats["kinds"]
    assert {"document": sum(found[kind]["count"] for kind in found if kind not in _APART)} == {
        "document": kinds["document"]
    }
    assert [found[kind]["count"] for kind in _APART] == [kinds["vault"], kinds["usage"], kinds["key"]]


def test_the_configuration_means_what_it_meant(now: Restarted, left: Path, tmp_path: Path) -> None:
    toml = (left / "wireglot.toml").read_text(encoding="utf-8")
    before = now.reported.config_check.replace(" is on: no key\n", " is on: needs no key\n")  # older words
    assert Served(tmp_path, toml).run("config", "check", "wireglot.toml") == before


def test_the_database_is_sound(now: Restarted) -> None:
    connection = apsw.Connection(str(now.folder / "wireglot" / "wireglot.db"))
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close(True)


def test_a_background_response_that_nobody_works_on_is_reported_failed(left: Path, tmp_path: Path) -> None:
    unpack(left, tmp_path)
    reported = read_client_record(left)
    with LiveGateway((tmp_path / "wireglot.toml").read_text(encoding="utf-8"), folder=tmp_path) as gateway:
        background = gateway.process.state.background
        background.lease = background.grace = 0.0  # nobody else is there that could be slow
        request = Request(
            f"{gateway.url}/v1/responses/{reported.unfinished}",
            headers={"authorization": f"Bearer {reported.keys['left']}"},
        )
        with urlopen(request) as answer:
            response = msgspec.json.decode(answer.read())
    assert response["status"] == "failed"
    assert response["error"]["code"] == "server_error"


def _crashed(now: Restarted) -> dict[str, int]:
    return dict(Counter(row["caller"] for row in now.exported("usage") if row.get("outcome") == "crash"))
