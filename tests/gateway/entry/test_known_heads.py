"""A connection whose heads are all alike: each of its requests is let in by what holds when it comes."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from tests.gateway.faults.faults_kit import provider
from tests.gateway.state.test_admin import SECRET, admin, create
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS, wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def toml(upstream: ScriptedUpstream, keys: dict[str, str], server: str = "") -> str:
    named = "".join(f'{name} = "sha256:{digest(key)}"\n' for name, key in keys.items())
    return (
        f'[server]\nadmin_secret = "{SECRET}"\n{server}[limits]\nauth_failures = 1000\n'
        f'{provider("mine", upstream, "openai-chat")}[models]\n"m*" = "mine/m*"\n[keys]\n{named}'
    )


class Line:
    """One connection, kept alive. Its heads differ only where a test says so."""

    def __init__(self, gateway: LiveGateway) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_SECONDS)

    def ask(self, key: str, said: str = "hi", path: str = "/v1/chat/completions", **headers: str) -> int:
        body = json.dumps({"model": "m1", "messages": [{"role": "user", "content": said}]}).encode()
        sent = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("POST", path, body, sent)
        answer = self._connection.getresponse()
        answer.read()
        return answer.status

    def close(self) -> None:
        self._connection.close()


@contextmanager
def house(keys: dict[str, str]) -> Iterator[tuple[LiveGateway, ScriptedUpstream, Line]]:
    with ScriptedUpstream() as upstream, LiveGateway(toml(upstream, keys)) as gateway:
        line = Line(gateway)
        try:
            yield gateway, upstream, line
        finally:
            line.close()


def settled(line: Line, key: str) -> None:
    """The head is known by now, and what it asks for."""
    assert [line.ask(key, "x" * length) for length in (1, 10, 100, 1000)] == [200] * 4


def reloaded(gateway: LiveGateway, text: str) -> None:
    before = gateway.process.gateway.settings
    gateway.reconfigure(text)
    wait_until(lambda: gateway.process.gateway.settings is not before)


def test_a_key_that_was_taken_out_of_the_configuration_opens_no_more() -> None:
    """THREATS T8: also on a connection that was let in with it."""
    with house({"a": "key-of-a", "b": "key-of-b"}) as (gateway, upstream, line):
        settled(line, "key-of-a")
        reloaded(gateway, toml(upstream, {"b": "key-of-b"}))
        assert [line.ask("key-of-a"), line.ask("key-of-b")] == [401, 200]


def test_a_key_that_is_revoked_opens_no_more() -> None:
    """THREATS T8"""
    with house({"a": "key-of-a"}) as (gateway, _, line):
        key = create(gateway, "made")
        settled(line, key)
        assert admin(gateway, "DELETE", "/keys/made").document["state"] == "revoked"
        assert line.ask(key) == 401


def test_a_key_that_has_ended_opens_no_more() -> None:
    """THREATS T8"""
    with house({"a": "key-of-a"}) as (gateway, _, line):
        settled(line, "key-of-a")
        keeper = gateway.process.gateway._parts.gatekeeper
        (known,) = keeper._keys.values()
        keeper._keys = {known.digest: msgspec.structs.replace(known, expires=1)}
        assert line.ask("key-of-a") == 401


def test_keys_that_are_asked_for_from_now_on_are_asked_of_everybody() -> None:
    with house({}) as (gateway, _, line):
        assert [line.ask("any", "x" * length) for length in (1, 10, 100)] == [200] * 3
        key = create(gateway, "first")
        assert [line.ask("any"), line.ask(key)] == [401, 200]


def test_another_key_on_the_same_connection_is_another_caller() -> None:
    """No callers are merged: who shares a connection (a proxy's) is known by the key of each request."""
    with house({"a": "key-of-a", "b": "key-of-b"}) as (gateway, _, line):
        keys = ["key-of-a"] * 3 + ["key-of-b"] * 3 + ["key-of-a", "key-of-b", "key-of-c", "key-of-b"]
        assert [line.ask(key) for key in keys] == [200] * 8 + [401, 200]
        reported = [entry.get("key", "") for entry in gateway.wait_log(len(keys))]
        assert reported == ["a"] * 3 + ["b"] * 3 + ["a", "b", "", "b"]


@rows(
    ("changed", "status"),
    [
        ({"origin": "https://evil.test"}, 403),
        ({"host": "evil.test"}, 403),
        ({"content_type": "text/plain"}, 415),
        ({"content_encoding": "gzip"}, 415),
        ({"path": "/v1/nowhere"}, 404),
        ({"x_wireglot_admin": "wrong"}, 401),
    ],
)
def test_what_is_refused_is_refused_behind_heads_that_were_let_in(
    changed: dict[str, Any], status: int
) -> None:
    """FAULTS 6, 14, 15; THREATS T2"""
    with house({"a": "key-of-a"}) as (_, _, line):
        settled(line, "key-of-a")
        assert line.ask("key-of-a", **changed) == status
        assert line.ask("key-of-a") == 200


def test_other_settings_of_the_server_hold_at_once() -> None:
    with house({"a": "key-of-a"}) as (gateway, upstream, line):
        named = {"host": "llm.example.org"}
        assert line.ask("key-of-a", **named) == 403
        reloaded(gateway, toml(upstream, {"a": "key-of-a"}, 'hosts = ["llm.example.org"]\n'))
        assert [line.ask("key-of-a", **named) for _ in range(3)] == [200] * 3
        reloaded(gateway, toml(upstream, {"a": "key-of-a"}))
        assert line.ask("key-of-a", **named) == 403
