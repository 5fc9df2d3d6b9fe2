"""The gateway as an application: who is let in, what errors say, how it drains and adopts settings."""

from __future__ import annotations

import asyncio
import hashlib
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import head
from tests.gateway.offline import (
    CHAT,
    CHAT_PATH,
    MESSAGES_PATH,
    RESPONSES_PATH,
    Got,
    Offline,
    Said,
    asked,
)
from tests.tiers import rows
from wireglot.gateway.composition import _note_sign_in
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.job import Incoming
from wireglot.http.application import Familiar, Head
from wireglot.logins.login import LoginFailed
from wireglot_core.wire.json import decode, encode

KEY = "sk-of-the-client-0123456789"
KEYS = {"team": f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"}
MINE = {"mine": {"dialect": "openai-chat", "base_url": "https://h.example/v1", "api_key": "key-one"}}


def offline(**tables: Any) -> Offline:
    made = Offline(**{"providers": MINE, **tables})
    made.upstream.say(Said(body=CHAT))
    return made


# Who is let in.


@rows(
    ("method", "path", "headers", "status", "code"),
    [
        ("POST", CHAT_PATH, {}, 200, ""),
        ("GET", CHAT_PATH, {}, 405, "method_not_allowed"),
        ("POST", "/v1/nothing", {}, 404, "unknown_url"),
        ("POST", CHAT_PATH, {"content_type": "text/plain"}, 415, "unsupported_media_type"),
        ("POST", CHAT_PATH, {"host": "evil.example"}, 403, None),
        ("POST", CHAT_PATH, {"origin": "https://evil.example"}, 403, None),
        ("GET", "/v1/models", {}, 200, ""),
        ("GET", "/v1/models", {"content_type": "text/plain"}, 200, ""),
    ],
)
def test_what_is_let_in(
    method: str, path: str, headers: dict[str, str], status: int, code: str | None
) -> None:
    with offline() as gateway:
        got = gateway.ask(path, asked() if method == "POST" else b"", method, **headers)
        assert got.status == status, got
        assert (got.headers.get("allow") == "POST") is (status == 405)
        if status >= 400:
            assert got.headers["x-wireglot-request-id"].startswith("req_")
            assert code is None or got.json["error"]["code"] == code
            assert got.record is not None
            assert (got.record.status, got.record.outcome, got.record.path) == (status, "error", path)


def test_a_key_is_needed_where_there_are_any_and_for_nothing_that_is_open() -> None:
    with offline(keys=KEYS) as gateway:
        missing = gateway.ask(CHAT_PATH, asked())
        assert (missing.status, missing.headers["www-authenticate"]) == (401, "Bearer")
        assert missing.headers["x-should-retry"] == "false"
        assert gateway.ask(CHAT_PATH, asked(), authorization=f"Bearer {KEY}").status == 200
        assert gateway.ask("/healthz", method="GET").status == 200
        assert gateway.gateway.asks_for_keys
    with offline() as gateway:
        assert not gateway.gateway.asks_for_keys


def test_a_head_that_is_repeated_is_let_in_again_until_its_key_or_the_settings_change() -> None:
    with offline(keys=KEYS) as gateway:
        familiar = Familiar()
        made = head("POST", CHAT_PATH)
        for _ in range(2):
            made = head("POST", CHAT_PATH, content_type="application/json", authorization=f"Bearer {KEY}")
            made.familiar = familiar
            assert gateway.gateway.admit(made) is None
            assert made.admission.incoming.caller.name == "team"
        found = familiar.found
        assert found is not None
        wrong = head("POST", CHAT_PATH, content_type="application/json", authorization="Bearer wrong")
        assert gateway.gateway.admit(wrong) is not None
        # Known by its digests: a key that is not among those of now is refused.
        with offline() as other:
            gateway.gateway.adopt(other.settings)
            assert gateway.gateway.admit(made) is None
            assert familiar.found is not found
            assert familiar.found.settings is other.settings


def test_nothing_is_kept_of_heads_that_bring_no_body() -> None:
    with offline() as gateway:
        for method, path in (("GET", "/v1/models"), ("GET", "/healthz")):
            made = head(method, path)
            made.familiar = Familiar()
            assert gateway.gateway.admit(made) is None
            assert made.familiar.found is None


# Bodies.


@rows(
    ("method", "path", "limit"),
    [
        ("POST", CHAT_PATH, 5_000_000),
        ("POST", MESSAGES_PATH, 6_000_000),
        ("POST", "/v1/messages/count_tokens", 6_000_000),
    ],
)
def test_how_large_a_body_may_be(method: str, path: str, limit: int) -> None:
    with offline(limits={"body": 5_000_000, "anthropic_body": 6_000_000}) as gateway:
        made = head(method, path, content_type="application/json")
        assert gateway.gateway.admit(made) is None
        assert gateway.gateway.body_limit(made) == limit


def test_bodies_that_are_no_requests_to_a_model_are_small() -> None:
    from wireglot.gateway.pages import telemetry_intake

    with offline() as gateway:
        made = head("POST", "/v1/metrics", content_type="application/json")
        assert gateway.gateway.admit(made) is None
        assert gateway.gateway.body_limit(made) == telemetry_intake.MAX_BODY
    with offline(limits={"body": 1000, "anthropic_body": 1000}) as gateway:
        made = head("POST", "/v1/metrics", content_type="application/json")
        assert gateway.gateway.admit(made) is None
        assert gateway.gateway.body_limit(made) == 1000


def test_bodies_that_do_not_arrive_are_refused_in_the_dialect_of_the_path() -> None:
    with offline() as gateway:
        made = head("POST", MESSAGES_PATH, content_type="application/json")
        refusals = {
            413: gateway.gateway.too_large(made, 77),
            529: gateway.gateway.overloaded(made),
            408: gateway.gateway.stalled(made),
        }
        for status, refused in refusals.items():
            assert (refused.status, refused.close) == (status, True)
            document = decode(refused.body)
            headers = dict(refused.headers)
            assert document["type"] == "error"
            assert document["request_id"] == headers["request-id"] == headers["x-wireglot-request-id"]
        assert "larger than 77 bytes" in decode(refusals[413].body)["error"]["message"]
        assert "stopped arriving" in decode(refusals[408].body)["error"]["message"]
        assert len(gateway.records) == 3
        assert not gateway.gateway.admit(made)


# Errors.


def test_a_bug_is_an_internal_error_that_says_nothing_else() -> None:
    with offline() as gateway:

        async def broken(*_: object) -> Any:
            raise ValueError("a secret detail")

        gateway.upstream.respond = broken
        got = gateway.ask(CHAT_PATH, asked())
        assert (got.status, got.json["error"]["code"]) == (500, "internal_error")
        assert b"secret detail" not in got.body
        assert gateway.gateway.in_flight == 0


def test_where_to_look_is_shown_to_callers_that_need_no_key() -> None:
    refusal = Said(503, {"error": {"message": "no room"}})
    with offline(providers={"mine": {**MINE["mine"], "retry": {"retries": 0}}}) as gateway:
        gateway.upstream.say(refusal)
        got = gateway.ask(MESSAGES_PATH, asked())
        assert got.json["error"]["message"] == "mine: no room | called at h.example"
        proxied = gateway.ask(MESSAGES_PATH, asked(), x_forwarded_for="192.0.2.1")
        assert "h.example" not in proxied.json["error"]["message"]
        assert got.record is not None
        assert got.record.error_fix == "called at h.example"
        # In its own dialect an error about the request passes unchanged.
        body = b'{ "error": {"message": "bad", "type": "invalid_request_error", "x": 1} }'
        gateway.upstream.say(Said(400, body))
        assert gateway.ask(CHAT_PATH, asked()).body == body


def test_an_error_of_a_forwarded_request_keeps_its_status_and_tells_when_to_come_back() -> None:
    with offline(providers={"mine": {**MINE["mine"], "retry": {"retries": 0}}}) as gateway:
        gateway.upstream.say(Said(429, {"error": {"message": "slow"}}, headers={"retry-after": "30"}))
        got = gateway.ask(CHAT_PATH, asked())
        assert (got.status, got.headers["retry-after"]) == (429, "30")
        assert got.headers["content-type"] == "application/json"
        assert got.headers["x-wireglot-route"] == "mine/m"


def test_errors_carry_headers_once() -> None:
    with offline() as gateway:
        gateway.upstream.say(Said(400, {"error": {"message": "bad"}}))
        head_ = head("POST", MESSAGES_PATH, content_type="application/json")
        assert gateway.gateway.admit(head_) is None
        reply = CollectedReply(9999)
        gateway.call(gateway.gateway.handle(head_, encode(asked()), reply))
        names = [name for name, _ in reply.headers]
        assert names.count("content-type") == 1
        assert len(names) == len(set(names))


def test_an_error_after_the_stream_has_begun_is_in_it() -> None:
    limits = {"ping": 5.0}
    with offline(limits=limits) as gateway:

        async def slow(*_: object) -> Any:
            await asyncio.sleep(30)
            return Said(400, {"error": {"message": "no such thing"}})

        gateway.upstream.respond = slow
        got = gateway.ask(MESSAGES_PATH, asked(stream=True))
        assert got.status == 200
        assert b"no such thing" in got.body
        assert got.record is not None
        assert (got.record.outcome, got.record.status) == ("error", 200)
        assert got.record.id.encode() in got.body


# How it ends.


async def _left(gateway: Offline, draining: bool, **more: Any) -> Got:
    """A client that leaves, or a gateway that must end, while a provider is called."""
    made = head("POST", CHAT_PATH, content_type="application/json")
    assert gateway.gateway.admit(made) is None
    reply = CollectedReply(99_999)
    task = asyncio.create_task(gateway.gateway.handle(made, encode(asked(**more)), reply))
    await asyncio.sleep(1)
    assert gateway.gateway.in_flight == 1
    gateway.gateway.draining = draining
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return Got(reply.status, dict(reply.headers), bytes(reply.body), gateway.records[-1])


async def _never(*_: object) -> Any:
    await asyncio.sleep(1e6)


def test_a_client_that_leaves_is_recorded_so_and_answered_nothing() -> None:
    with offline() as gateway:
        gateway.upstream.respond = _never
        got = gateway.call(_left(gateway, draining=False))
        assert (got.status, got.body) == (0, b"")
        assert got.record is not None
        assert got.record.outcome == "client_abort"
        assert (gateway.gateway.in_flight, gateway.gateway.waiting, gateway.gateway.permits) == (0, 0, 0)


@rows("stream", [False, True])
def test_a_gateway_that_must_end_tells_its_clients(stream: bool) -> None:
    with offline(limits={"ping": 0.2}) as gateway:
        gateway.upstream.respond = _never
        got = gateway.call(_left(gateway, draining=True, stream=stream))
        assert got.status == (200 if stream else 503)
        assert b"the gateway is shutting down" in got.body
        assert ("retry-after" in got.headers) is not stream
        assert got.record is not None
        assert got.record.outcome == "gateway_abort"


def test_a_gateway_that_drains_takes_no_more_requests() -> None:
    with offline() as gateway:
        gateway.gateway.draining = True
        got = gateway.ask(CHAT_PATH, asked())
        assert (got.status, got.json["error"]["code"]) == (503, "server_is_overloaded")
        assert "shutting down" in got.json["error"]["message"]
        assert not gateway.upstream.sent
        assert gateway.gateway.condition.draining
        assert gateway.ask("/readyz", method="GET").status == 503
        gateway.gateway.draining = False
        assert gateway.ask("/readyz", method="GET").status == 200


def test_a_configuration_that_was_refused_is_part_of_its_condition() -> None:
    with offline() as gateway:
        assert not gateway.gateway.condition.config_refused
        gateway.gateway.config_refused = True
        assert gateway.gateway.condition.config_refused


def test_new_settings_hold_for_new_requests() -> None:
    other = {"other": {**MINE["mine"], "base_url": "https://o.example/v1"}}
    with offline() as gateway, offline(providers=other, limits={"body": 5000}) as new:
        assert gateway.ask(CHAT_PATH, asked("other/m")).status == 404
        gateway.gateway.adopt(new.settings)
        assert gateway.gateway.settings is new.settings
        assert gateway.ask(CHAT_PATH, asked("other/m")).status == 200
        assert gateway.ask(CHAT_PATH, asked("mine/m")).status == 404
        made = head("POST", CHAT_PATH, content_type="application/json")
        assert gateway.gateway.admit(made) is None
        assert gateway.gateway.body_limit(made) == 5000


# Requests of its own.


def test_a_request_of_the_gateway_is_recorded_with_its_purpose_and_its_origin() -> None:
    with offline() as gateway:
        made = head("POST", CHAT_PATH, content_type="application/json")
        incoming = Incoming(gateway.settings, made, gateway.gateway._parts.routes.match(made), LOCAL)
        reply = CollectedReply(9999)
        id = gateway.call(gateway.gateway.submit(incoming, encode(asked()), reply, "req_outer", "search"))
        record = gateway.records[-1]
        assert (record.id, record.within, record.operation, reply.status) == (id, "req_outer", "search", 200)


def _prewarm(gateway: Offline, body: dict[str, Any]) -> CollectedReply:
    made = head("POST", RESPONSES_PATH, content_type="application/json")
    incoming = Incoming(gateway.settings, made, gateway.gateway._parts.routes.match(made), LOCAL)
    reply = CollectedReply(99_999)
    gateway.call(gateway.gateway.prewarm(incoming, encode(body), reply))
    return reply


def test_a_request_that_is_only_read_calls_no_one_and_ends_at_once() -> None:
    with offline() as gateway:
        reply = _prewarm(gateway, {"model": "mine/m", "input": "Hi", "stream": True})
        assert (reply.status, reply.ended, gateway.upstream.sent) == (200, True, [])
        record = gateway.records[-1]
        assert (record.operation, record.caller, record.status, record.outcome) == (
            "prewarm",
            "local",
            200,
            "ok",
        )
        assert f"resp_{record.id.removeprefix('req_')}".encode() in reply.body
        assert b"response.completed" in reply.body
        assert dict(reply.headers)["x-wireglot-request-id"] == record.id
        bad = _prewarm(gateway, {"model": "mine/m", "input": 7, "stream": True})
        assert (bad.status, gateway.records[-1].outcome) == (400, "error")
        gateway.gateway.draining = True
        assert _prewarm(gateway, {"model": "mine/m", "input": "Hi", "stream": True}).status == 503


def test_a_request_that_is_only_read_may_have_no_input_yet() -> None:
    """The first frame of Codex 0.169 on a WebSocket; a request that is to be answered needs input as before."""
    body = {"model": "mine/m", "input": [], "stream": True, "store": False}
    with offline() as gateway:
        for _ in range(2):
            reply = _prewarm(gateway, body)
            assert (reply.status, reply.ended, gateway.upstream.sent) == (200, True, [])
            refused = gateway.ask(RESPONSES_PATH, body)
            assert (refused.status, b"expected at least one item" in refused.body) == (400, True)


def test_metrics_are_of_all_workers_where_there_are_several() -> None:
    with offline() as gateway:
        assert b"wireglot_" in gateway.call(gateway.gateway.scrape())

        class Siblings:
            async def gather(self) -> bytes:
                return b"of all"

        siblings: Any = Siblings()
        gateway.gateway.siblings = siblings
        assert gateway.call(gateway.gateway.scrape()) == b"of all"


def test_a_refusal_is_counted_and_begun_once() -> None:
    with offline() as gateway:
        made = Head("POST", "/v1/nothing", "/v1/nothing", "", {"host": "localhost", "user-agent": "a/1",
                    "traceparent": "00-1"}, "")  # fmt: skip
        refused = gateway.gateway.admit(made)
        assert refused is not None
        (record,) = gateway.records
        assert (record.agent, record.traceparent, record.operation) == ("a/1", "00-1", "")
        assert gateway.observer.metrics.in_flight.cell(()).value == 0


def test_a_page_of_the_inspector_is_refused_with_its_headers() -> None:
    with offline() as gateway:
        got = gateway.ask("/inspector/nothing", method="GET", host="evil.example")
        assert got.status == 403
        assert got.record is not None
        assert got.record.operation == "inspector"
        assert "content-security-policy" in got.headers


# Queues and times.


def test_an_answer_that_takes_longer_than_its_caller_allows_is_ended() -> None:
    with offline() as gateway:
        gateway.upstream.respond = _never
        got = gateway.ask(CHAT_PATH, asked(), x_wireglot_timeout="5")
        assert (got.status, got.json["error"]["code"]) == (504, "upstream_timeout")
        assert got.json["error"]["message"] == "no complete answer within 5 seconds"
        assert gateway.seconds == 5.0


async def _both(gateway: Offline) -> list[int]:
    waiting = [asyncio.create_task(gateway.asking(CHAT_PATH, asked())) for _ in range(2)]
    await asyncio.sleep(0.5)
    assert gateway.gateway.waiting == 1
    assert gateway.gateway.in_flight == 1
    return sorted([(await each).status for each in waiting])


@rows(("seconds", "statuses"), [(1.0, [200, 200]), (3.0, [200, 503])])
def test_requests_beyond_the_limit_wait_for_two_seconds(seconds: float, statuses: list[int]) -> None:
    with offline(limits={"requests": 1}) as gateway:

        async def slow(*_: object) -> Any:
            await asyncio.sleep(seconds)
            return Said(body=CHAT)

        gateway.upstream.respond = slow
        assert gateway.call(_both(gateway)) == statuses
        assert (gateway.gateway.waiting, gateway.gateway.permits, gateway.gateway.in_flight) == (0, 0, 0)


def test_a_key_has_its_own_limit_of_requests() -> None:
    with offline(limits={"requests_per_key": 1}, keys=KEYS) as gateway:

        async def slow(*_: object) -> Any:
            await asyncio.sleep(1)
            return Said(body=CHAT)

        gateway.upstream.respond = slow

        async def work() -> list[int]:
            bearer = f"Bearer {KEY}"
            asking = [gateway.asking(CHAT_PATH, asked(), authorization=bearer) for _ in range(2)]
            waiting = [asyncio.create_task(each) for each in asking]
            return [(await each).status for each in waiting]

        assert gateway.call(work()) == [200, 200]
        assert gateway.seconds == 2.0


def test_logins_are_noted_with_the_providers_that_use_them() -> None:
    with offline() as gateway:
        notes: list[Any] = []
        observer: Any = SimpleNamespace(note=lambda level, event, **more: notes.append((level, event, more)))
        account = gateway.settings.providers["mine"].credentials[0].account
        _note_sign_in(observer, gateway.settings, account, None)
        _note_sign_in(observer, gateway.settings, "gone", LoginFailed("no", "do this"))
    assert notes == [
        ("info", "signed in", {"provider": "mine"}),
        ("warn", "login failed", {"provider": "a previous provider", "detail": "no", "fix": "do this"}),
    ]


@rows(
    ("model", "status"),
    [("mine/m", 200), ("mine/other", 403)],
)
def test_a_key_may_be_good_for_some_models_only(model: str, status: int) -> None:
    with offline(keys={"team": {"hash": KEYS["team"], "models": ["mine/m"]}}) as gateway:
        assert gateway.ask(CHAT_PATH, asked(model), authorization=f"Bearer {KEY}").status == status
