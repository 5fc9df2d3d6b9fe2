"""What the playground says that the gateway would send is what it sends; and what it sends is answered in place."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.faults.faults_kit import BY_NAME, start
from tests.gateway.inspector.inspector_kit import ADMIN, Visitor, keys_table
from tests.gateway.trace.trace_kit import Document, Stage, stage, text_of
from tests.tiers import rows
from tests.waiting import wait_until
from wireglot.gateway.trace.own_view import HIDDEN
from wireglot.testing import replay
from wireglot.testing.scripted_upstream import Behaviour
from wireglot_core.dialects.registry import NAMES, dialect_name, surface
from wireglot_core.traces.file import read_trace
from wireglot_core.translate import translate_request
from wireglot_core.wire.json import decode, encode

FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")
BODY: Document = {
    "model": "any",
    "max_tokens": 900,
    "stream": True,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Say it again."}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
}
PROVIDER_KEY = "upstream-key-0123456789"


@pytest.fixture(scope="module")
def made() -> Iterator[Stage]:
    def strict(upstream: Any) -> str:
        return (
            f'[providers.strict]\ndialect = "gemini"\nbase_url = "{upstream.url}/v1beta"\nlosses = "strict"\n'
            f'api_key = "{PROVIDER_KEY}"\n'
        )

    with stage(more=strict) as prepared:
        yield prepared


def asked(dialect: str, to: str, **more: Any) -> Document:
    body = BODY
    if dialect != "anthropic":
        rendered = translate_request(
            encode(BODY), source="anthropic", target=dialect_name(dialect), stream=True
        )
        body = rendered.value
    return {"to": to, "dialect": dialect, "body": encode(body).decode(), "stream": True, **more}


@pytest.mark.sampled("dialect", each=2)
@rows("to", FOUR)
@rows("dialect", NAMES)
def test_what_would_be_sent_is_what_is_sent(made: Stage, dialect: str, to: str) -> None:
    before = len(made.upstream.requests)
    shown = made.look.post("replay", asked(dialect, f"{to}-up/m1", dry=True, show=True))
    assert len(made.upstream.requests) == before
    would = shown["would"]["attempts"][0]["request"]
    answer = made.look.raw("replay", "POST", asked(dialect, f"{to}-up/m1", answer=True))
    assert answer.status == 200, answer.body
    sent = made.look.trace(answer.headers["x-wireglot-request-id"])
    real = sent["attempts"][0]["request"]
    assert (would["method"], would["url"]) == (real["method"], real["url"])
    assert decode(would["body"]) == decode(real["body"])
    assert sorted(map(tuple, would["headers"])) == sorted(map(tuple, real["headers"]))
    if surface(dialect).client.framing is None and dialect != "anthropic-bedrock":  # as the trace has it
        assert text_of(sent["answer"]).encode() == answer.body
    assert sent["row"]["client"] == "wireglot-playground"
    of_preview = [loss["feature"] for loss in shown["would"]["attempts"][0].get("losses", [])]
    assert of_preview == [loss["feature"] for loss in sent["attempts"][0].get("losses", [])]


def test_no_secret_is_shown(made: Stage) -> None:
    shown = made.look.raw("replay", "POST", asked("gemini", "strict/m1", dry=True, show=True))
    assert b"x-goog-api-key" in shown.body
    assert PROVIDER_KEY.encode() not in shown.body


def test_what_the_gateway_would_refuse_is_said(made: Stage) -> None:
    shown = made.look.post("replay", asked("anthropic", "strict/m1", dry=True, show=True))
    assert "cache_marker would be dropped" in shown["why"]
    assert "would" not in shown


def test_a_provider_of_the_catalog_is_translated_for_and_not_sent_to(made: Stage) -> None:
    shown = made.look.post("replay", asked("openai-chat", "anthropic/claude-sonnet-4-5", dry=True, show=True))
    assert (shown["sends"], shown["provider"], shown["dialect"]) == (False, "anthropic", "anthropic")
    assert shown["would"]["attempts"][0]["request"]["url"] == "https://api.anthropic.com/v1/messages"
    assert made.look.raw("replay", "POST", asked("openai-chat", "anthropic/x", answer=True)).status == 404
    listed = made.look.get("targets")["targets"]
    states = {each["id"]: each["on"] for each in listed}
    assert states["anthropic/claude-sonnet-4-5"] is False


def test_what_would_be_sent_is_a_trace_that_replays(made: Stage) -> None:
    shown = made.look.post("replay", asked("anthropic", "gemini-up/m1", dry=True, show=True))
    assert replay(read_trace(encode(shown["would"]))).compared == ["request"]


def test_an_error_of_the_provider_is_answered_as_its_client_reads_it(made: Stage) -> None:
    made.upstream.next(Behaviour(status=400, body=b'{"error": {"code": 400, "message": "not so"}}'))
    answer = made.look.raw("replay", "POST", asked("anthropic", "gemini-up/m1", answer=True))
    assert answer.status == 400
    assert answer.json["type"] == "error"
    assert "not so" in answer.json["error"]["message"]


def test_one_who_leaves_ends_the_request(made: Stage) -> None:
    import threading

    gate = threading.Event()
    made.upstream.next(Behaviour(gate=gate, after=1))
    token = made.look.get("session")["csrf"]
    connection = http.client.HTTPConnection("127.0.0.1", made.gateway.port, timeout=30)
    headers = {"x-wireglot-csrf": token, "content-type": "application/json"}
    body = json.dumps(asked("anthropic", "gemini-up/m1", answer=True))
    connection.request("POST", "/inspector/api/replay", body, headers)
    answer = connection.getresponse()
    id = answer.headers["x-wireglot-request-id"]
    answer.close()
    connection.close()
    try:
        wait_until(lambda: next(row for row in made.look.rows() if row["id"] == id).get("state") == "left")
    finally:
        gate.set()


@rows(
    ("more", "param"),
    [({"show": 1}, "show"), ({"answer": "yes"}, "answer"), ({"only": []}, "only"), ({"body": "{"}, "body")],
)
def test_what_cannot_be_asked_is_named(made: Stage, more: Document, param: str) -> None:
    answer = made.look.raw("replay", "POST", asked("anthropic", "gemini-up/m1", dry=True) | more)
    assert (answer.status, answer.json["error"]["param"]) == (400, param)


ALICE = "alice-key-0123456789abcdef"


def test_a_client_key_is_shown_the_document_and_nothing_of_the_account_behind() -> None:
    def more(upstream: Any) -> str:
        return (
            keys_table(alice=ALICE)
            + f'[providers.ours]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/projects/rich-4711/v1"\n'
            f'api_key = "{PROVIDER_KEY}"\nheaders = {{ openai-organization = "org-4711" }}\n'
        )

    with stage('mode = "off"', more=more) as shared:
        visitor = Visitor(shared.gateway)
        visitor.look()
        visitor.sign_in(ALICE)

        def shown(text: str) -> Any:
            body = {"messages": [{"role": "user", "content": text}]}
            asked = {"to": "ours/m1", "dialect": "openai-chat", "body": body, "dry": True, "show": True}
            answer = visitor.post("/inspector/api/replay", asked)
            assert answer.status == 200, answer.body
            for secret in (b"org-4711", b"123456789012", f"127.0.0.1:{shared.upstream.port}".encode()):
                assert secret not in answer.body
            return answer.json()

        sent = shown("Say it again.")["would"]["attempts"][0]["request"]
        assert "Say it again." in sent["body"]
        assert "url" not in sent
        assert {name for name, _ in sent["headers"]} <= {
            "accept", "accept-encoding", "content-type", "user-agent"
        }  # fmt: skip
        hidden = shown("We are rich-4711.")
        assert "would" not in hidden
        assert "the provider's account" in hidden["why"]


def test_a_client_key_is_shown_no_more_of_what_was_sent_than_of_what_would_be() -> None:
    def more(upstream: Any) -> str:
        return (
            keys_table(alice=ALICE).replace("[keys]", f'[server]\nadmin_secret = "{ADMIN}"\n[keys]')
            + f'[providers.ours]\ndialect = "openai-chat"\nbase_url = "{upstream.url}/projects/rich-4711/v1"\n'
            f'api_key = "{PROVIDER_KEY}"\nheaders = {{ openai-organization = "org-4711" }}\n'
            "retry = { retries = 1 }\n"
        )

    with stage(more=more) as shared:
        alice, admin = Visitor(shared.gateway), Visitor(shared.gateway)
        for visitor, secret in ((alice, ALICE), (admin, ADMIN)):
            visitor.look()
            visitor.sign_in(secret)
        secrets = (b"rich-4711", b"org-4711", b"123456789012", f"127.0.0.1:{shared.upstream.port}".encode())
        key, gate = {"x-api-key": ALICE}, threading.Event()
        shared.upstream.next(
            Behaviour(status=503, body=b'{"error": {"message": "the project 123456789012 is busy"}}')
        )
        shared.upstream.next(Behaviour(gate=gate, after=3))
        call = start(shared.gateway, BY_NAME["anthropic"], "ours/m1", "Say it.", stream=True, headers=key)
        call.until(b"content_block_delta")
        (row,) = alice.get("/inspector/api/exchanges?status=running").json()["rows"]
        path = f"/inspector/api/exchanges/{row['id']}"
        grown = alice.get(f"{path}/running")
        gate.set()
        call.rest()
        wait_until(lambda: alice.get(f"{path}/export").status == 200)
        answers = [grown, *(alice.get(path + each) for each in ("", "?only=recorded", "?only=told"))]
        answers += [alice.get(f"/inspector/api/export?format={each}") for each in ("csv", "jsonl", "har")]
        answers += [alice.get(f"{path}/cache"), alice.get("/inspector/api/exchanges")]
        for answer in answers:
            assert answer.status == 200, answer.body
            assert not [secret for secret in secrets if secret in answer.body], answer.body
        exported = alice.get(f"{path}/export").body
        assert not [secret for secret in secrets if secret in exported]
        first, last = answers[1].json()["attempts"]
        assert first["answer"]["body"] == first_of(grown)["answer"].get("body", HIDDEN) == HIDDEN
        assert "Say it." in last["request"]["body"], "its own words are shown"
        assert last["answer"]["frames"]
        assert {name for name, _ in last["request"]["headers"]} <= {
            "accept", "accept-encoding", "content-length", "content-type", "user-agent"
        }  # fmt: skip
        seen_by_admin = admin.get(path).body
        assert all(secret in seen_by_admin for secret in secrets)


def first_of(grown: Any) -> Any:
    return grown.json()["attempts"][0]


def test_a_restricted_key_hears_of_no_provider_by_names_that_lead_nowhere() -> None:
    table = keys_table(alice=ALICE).replace("[keys]\nalice = ", "[keys.alice]\nhash = ")
    with stage('mode = "off"', more=lambda _: table + 'models = ["gemini-up/m1"]\n') as shared:
        visitor = Visitor(shared.gateway)
        visitor.look()
        visitor.sign_in(ALICE)
        for to in ("nowhere", "anthropic-u/m1"):
            asked = {"to": to, "dialect": "anthropic", "body": {**BODY}, "dry": True}
            refused = visitor.post("/inspector/api/replay", asked)
            assert refused.status == 403
            assert "anthropic-up" not in refused.message
