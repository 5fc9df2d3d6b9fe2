"""The admin API, and keys that are made, rotated and revoked while the gateway answers."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.faults.faults_kit import BY_NAME, ask, is_complete, provider, reported, start
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.stores.base import StoreDown
from wireglot.stores.records import Document
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

SECRET = "the-secret-of-the-owner-0123456789"
CHAT, CLAUDE = BY_NAME["openai-chat"], BY_NAME["anthropic"]


class Said(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    document: Any


def admin(
    gateway: LiveGateway, method: str, path: str, body: Any = None, *, secret: str = SECRET, **headers: str
) -> Said:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    sent = {"authorization": f"Bearer {secret}", **{n.replace("_", "-"): v for n, v in headers.items()}}
    data = None
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent.setdefault("content-type", "application/json")
    try:
        connection.request(method, f"/v1/admin{path}", data, sent)
        answer = connection.getresponse()
        return Said(
            answer.status,
            {name.lower(): value for name, value in answer.getheaders()},
            json.loads(answer.read() or b"null"),
        )
    finally:
        connection.close()


def toml(upstream: ScriptedUpstream) -> str:
    return (
        f'[server]\nadmin_secret = "{SECRET}"\n[limits]\nauth_failures = 1000\n'
        f'{provider("mine", upstream, "openai-chat")}[models]\n"m*" = "mine/m*"\n'
        f'[keys]\nconfigured = "sha256:{"0" * 64}"\n'
    )


@pytest.fixture(scope="module")
def stage() -> Iterator[tuple[LiveGateway, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, LiveGateway(toml(upstream)) as gateway:
        yield gateway, upstream


def create(gateway: LiveGateway, name: str, **fields: Any) -> str:
    made = admin(gateway, "POST", "/keys", {"name": name, **fields})
    assert made.status == 201, made
    return str(made.document["key"])


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_a_key_is_made_reported_once_and_opens_at_once(stage: Any) -> None:
    """R-DE-06, THREATS T8"""
    gateway, _ = stage
    made = admin(gateway, "POST", "/keys", {"name": "once", "models": ["m*"], "cost_per_day": 2.5})
    assert (made.status, made.headers["cache-control"]) == (201, "no-store")
    key = made.document["key"]
    assert made.document["prefix"] == key[:6]
    assert ask(gateway, CHAT, "m1", headers=bearer(key)).status == 403, "no price: but it is known"
    for path in ("/keys", "/keys/once"):
        seen = admin(gateway, "GET", path)
        assert seen.status == 200
        assert key not in json.dumps(seen.document)
        assert '"cost_per_day": 2.5' in json.dumps(seen.document)


def test_an_update_holds_from_then_on(stage: Any) -> None:
    gateway, _ = stage
    key = create(gateway, "updated", requests_per_minute=1)
    assert [ask(gateway, CHAT, "m1", headers=bearer(key)).status for _ in range(2)] == [200, 429]
    changed = admin(gateway, "PATCH", "/keys/updated", {"requests_per_minute": None, "concurrent": 3})
    assert changed.status == 200
    assert (changed.document["requests_per_minute"], changed.document["concurrent"]) == (None, 3)
    assert ask(gateway, CHAT, "m1", headers=bearer(key)).status == 200


def test_after_a_rotation_both_keys_open_for_the_overlap(stage: Any) -> None:
    gateway, _ = stage
    old = create(gateway, "rotated")
    turned = admin(gateway, "POST", "/keys/rotated/rotate", {"overlap": 3600})
    new = turned.document["key"]
    assert turned.document["old_key_until"]
    assert [ask(gateway, CHAT, "m1", headers=bearer(key)).status for key in (old, new)] == [200, 200]
    newest = admin(gateway, "POST", "/keys/rotated/rotate").document["key"]
    statuses = [ask(gateway, CHAT, "m1", headers=bearer(key)).status for key in (old, new, newest)]
    assert statuses == [401, 401, 200]


def test_a_stream_finishes_after_its_key_was_revoked(stage: Any) -> None:
    """FAULTS 90: and no other request is let in."""
    gateway, upstream = stage
    key = create(gateway, "streaming")
    upstream.next(Behaviour(gap=0.02))
    call = start(gateway, CLAUDE, "m1", stream=True, headers=bearer(key))
    first = call.until(b"content_block")
    assert admin(gateway, "DELETE", "/keys/streaming").document["state"] == "revoked"
    assert ask(gateway, CLAUDE, "m1", headers=bearer(key)).status == 401
    rest = call.rest()
    assert is_complete(CLAUDE, msgspec.structs.replace(rest, body=first + rest.body))


@rows(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/keys", {}, 400, "name: expected a name"),
        ("POST", "/keys", {"name": "a/b"}, 400, "name: expected a name"),
        ("POST", "/keys", {"name": "bad", "concurrent": "5"}, 400, "concurrent: expected a whole number"),
        ("POST", "/keys", {"name": "bad", "expires": 5}, 400, "expires: expected a date"),
        ("POST", "/keys", {"name": "bad", "hash": "x"}, 400, "hash: expected"),
        ("POST", "/keys", [1], 400, "expected a JSON object"),
        ("POST", "/keys", b"{", 400, "not JSON"),
        ("POST", "/keys", {"name": "configured"}, 409, "in the configuration"),
        ("GET", "/keys/nobody", None, 404, "no stored key"),
        ("PATCH", "/keys/nobody", {}, 404, "no stored key"),
        ("DELETE", "/keys/nobody", None, 404, "no stored key"),
        ("POST", "/keys/nobody/rotate", {"overlap": -1}, 400, "overlap: expected whole seconds"),
        ("POST", "/keys/nobody/rotate", {"overlap": 1, "x": 2}, 400, "nothing but overlap"),
        ("POST", "/keys/nobody/rotate", {}, 404, "no stored key"),
    ],
)
def test_what_cannot_be_done_is_reported(
    stage: Any, method: str, path: str, body: Any, status: int, said: str
) -> None:
    gateway, _ = stage
    answered = admin(gateway, method, path, body)
    assert answered.status == status
    assert said in answered.document["error"]["message"]


def test_a_name_is_taken_once_and_for_all(stage: Any) -> None:
    gateway, _ = stage
    create(gateway, "taken")
    assert admin(gateway, "POST", "/keys", {"name": "taken"}).status == 409
    assert admin(gateway, "DELETE", "/keys/taken").status == 200
    assert admin(gateway, "POST", "/keys", {"name": "taken"}).status == 409
    assert admin(gateway, "POST", "/keys/taken/rotate").status == 409


@rows(
    ("headers", "status"),
    [
        ({"origin": "https://evil.test"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
    ],
)
def test_a_page_of_another_site_and_a_wrong_secret_change_nothing(
    stage: Any, headers: dict[str, str], status: int
) -> None:
    """FAULTS 113"""
    gateway, _ = stage
    assert admin(gateway, "POST", "/keys", {"name": "smuggled"}, **headers).status == status
    assert admin(gateway, "GET", "/keys/smuggled").status == 404


def sent_in_chunks(gateway: LiveGateway, method: str, path: str, body: bytes) -> int:
    """The status of a body that says of itself that it is plain text."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)
    headers = {"authorization": f"Bearer {SECRET}", "content-type": "text/plain"}
    try:
        connection.request(method, f"/v1/admin{path}", iter([body]), headers, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_body_in_chunks_must_be_json_too(stage: Any) -> None:
    """THREATS T2: how long it is does not matter to what it may be."""
    gateway, _ = stage
    assert sent_in_chunks(gateway, "POST", "/keys", b'{"name": "chunks"}') == 415
    assert admin(gateway, "GET", "/keys/chunks").status == 404


def test_a_body_that_nobody_reads_must_be_json_too(stage: Any) -> None:
    """THREATS T2: in chunks, at a page that acts on its path alone."""
    gateway, _ = stage
    create(gateway, "stays")
    assert sent_in_chunks(gateway, "DELETE", "/keys/stays", b"{}") == 415
    assert admin(gateway, "GET", "/keys/stays").document["state"] == "active"


def test_a_client_key_opens_no_admin_door_and_the_admin_secret_no_other(stage: Any) -> None:
    gateway, _ = stage
    key = create(gateway, "client")
    assert admin(gateway, "GET", "/keys", secret=key).status == 401
    assert ask(gateway, CHAT, "m1", headers=bearer(SECRET)).status == 401


def test_the_store_is_reported_in_numbers(stage: Any) -> None:
    gateway, _ = stage
    create(gateway, "number-one")
    said = admin(gateway, "GET", "/store")
    assert said.status == 200
    assert said.document["engine"].startswith("SQLite")
    assert said.document["kinds"]["keys"]["count"] >= 1
    assert said.document["trouble"] is None


def test_a_caller_is_wiped_and_no_other(stage: Any) -> None:
    """THREATS T19"""
    gateway, _ = stage
    state = gateway.process.state
    for caller in ("wiped", "kept"):
        document = Document(caller, "response", f"resp_{caller}", b"body", created=1)
        gateway.call(state.documents.put([document]))
        gateway.call(state.vault.keep(caller, {"name": b"value"}, 60))
    said = admin(gateway, "DELETE", "/callers/wiped/data")
    assert said.document == {"caller": "wiped", "removed": {"response": 1, "vault": 1}}
    assert gateway.call(state.documents.get("wiped", "response", ["resp_wiped"])) == []
    assert len(gateway.call(state.documents.get("kept", "response", ["resp_kept"]))) == 1


def test_without_the_store_stored_keys_get_503_after_a_minute_and_others_go_on(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS 101"""
    gateway, _ = stage
    key = create(gateway, "shut-out")
    table = gateway.process.state.keys

    async def down(*_: Any) -> Any:
        raise StoreDown("switched off")

    monkeypatch.setattr(gateway.process.state.engine.keys, "version", down)
    monkeypatch.setattr(gateway.process.state.engine.keys, "all", down)
    before = table.clock
    assert ask(gateway, CHAT, "m1", headers=bearer(key)).status == 200
    monkeypatch.setattr(table, "clock", lambda: before() + 61)
    for client in (CHAT, CLAUDE, BY_NAME["gemini"]):
        refused = ask(gateway, client, "m1", headers=bearer(key))
        assert refused.status == 503
        assert "not available" in reported(client, refused).message
    assert admin(gateway, "GET", "/keys").status == 503
    monkeypatch.undo()
    wait_until(lambda: ask(gateway, CHAT, "m1", headers=bearer(key)).status == 200)


def test_a_key_stands_in_no_file_and_no_log(tmp_path: Path) -> None:
    """THREATS T8: not even where it was refused, or offered in a query."""
    with ScriptedUpstream() as upstream:
        with LiveGateway(toml(upstream), folder=tmp_path) as gateway:
            first = create(gateway, "first", requests_per_minute=1)
            second = admin(gateway, "POST", "/keys/first/rotate", {"overlap": 60}).document["key"]
            for key in (first, second):
                ask(gateway, CHAT, "m1", headers=bearer(key))
                ask(gateway, BY_NAME["gemini"], "m1", headers={"x-goog-api-key": key})
            admin(gateway, "DELETE", "/keys/first")
            assert ask(gateway, CHAT, "m1", headers=bearer(first)).status == 401
            gateway.wait_log(5)
        with LiveGateway(toml(upstream), folder=tmp_path) as gateway:
            assert ask(gateway, CHAT, "m1", headers=bearer(second)).status == 401, "revoked for good"
            assert admin(gateway, "GET", "/keys/first").document["state"] == "revoked"
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert any(path.name == "wireglot.db" for path in files)
        for path in files:
            data = path.read_bytes()
            for key in (first, second):
                assert key.encode() not in data, path
                assert key[6:20].encode() not in data, path


def test_without_an_admin_secret_there_is_nothing_there() -> None:
    with LiveGateway() as gateway:
        assert admin(gateway, "GET", "/keys").status == 404
        assert admin(gateway, "POST", "/keys", {"name": "me"}).status == 404
