"""Lists of models, counts, health and telemetry of a gateway without sockets."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from typing import Any

import pytest

from tests.gateway.offline import CHAT, CHAT_PATH, MESSAGES_PATH, Got, Offline, Said, asked
from tests.tiers import rows
from wireglot.gateway.pages.health import Condition, HealthPages
from wireglot.gateway.pages.models import listed, models
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.worker_thread import LARGE_BYTES
from wireglot.http.transport import Timeouts, TransportFault
from wireglot_core.dialects.listed_model import UpstreamModel
from wireglot_core.wire.json import decode

LOCAL = {"dialect": "openai-chat", "base_url": "https://h.example/v1", "api_key": "key-one"}
MINE = {"mine": LOCAL}
CLAUDE = {"mine": {"dialect": "anthropic", "base_url": "https://h.example", "api_key": "key-one"}}
LIST = {
    "data": [{"id": "big", "context_length": 9000, "max_output_tokens": 100, "name": "Big"}, {"id": "small"}]
}
AWAY = TransportFault("connect", "could not connect")
COUNT_PATH = "/v1/messages/count_tokens"


def test_the_models_that_a_server_lists_are_asked_for_once_a_minute() -> None:
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(Said(body=LIST))
        sent = gateway.upstream.sent
        got = gateway.ask("/v1/models", method="GET")
        assert [model["id"] for model in got.json["data"]] == ["mine/big", "mine/small"]
        assert got.headers["age"] == "0"
        assert (len(sent), sent[0].method, sent[0].url) == (1, "GET", "https://h.example/v1/models")
        assert gateway.upstream.timeouts == [Timeouts(first_byte=5.0, total=10.0)]
        gateway.call(asyncio.sleep(59))
        assert gateway.ask("/v1/models", method="GET").headers["age"] == "59"
        assert len(sent) == 1
        gateway.call(asyncio.sleep(1.5))
        assert (
            gateway.ask("/v1/models", method="GET").headers["age"] == "60"
        )  # what comes is for the next one
        gateway.call(asyncio.sleep(1))
        assert (len(sent), gateway.ask("/v1/models", method="GET").headers["age"]) == (2, "1")


def test_a_list_is_kept_for_an_hour_while_its_server_is_away() -> None:
    with Offline(providers=MINE) as gateway:
        sent = gateway.upstream.sent
        gateway.upstream.say(Said(body=LIST))
        gateway.ask("/v1/models", method="GET")
        gateway.upstream.say(AWAY)
        gateway.call(asyncio.sleep(61))
        gateway.ask("/v1/models", method="GET")
        gateway.call(asyncio.sleep(14))
        gateway.ask("/v1/models", method="GET")
        assert len(sent) == 2
        gateway.call(asyncio.sleep(1.1))
        gateway.ask("/v1/models", method="GET")  # every 15 seconds
        assert len(sent) == 3
        gateway.call(asyncio.sleep(3600 - 61 - 14 - 1.1 - 1))
        assert len(gateway.ask("/v1/models", method="GET").json["data"]) == 2
        gateway.call(asyncio.sleep(2))
        got = gateway.ask("/v1/models", method="GET")
        assert (got.json["data"], "age" in got.headers) == ([], False)
        assert got.record is not None
        assert got.record.notes == ["mine has returned no list of models"]


@rows("said", [Said(500, b"{}"), Said(200, b"<html>"), AWAY])
def test_a_server_without_a_list_has_no_models(said: Any) -> None:
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(said)
        got = gateway.ask("/v1/models", method="GET")
        assert (got.status, got.json["data"]) == (200, [])
        if isinstance(said, Said) and said.status == 500:
            assert said.aborted


def test_a_page_waits_two_seconds_for_a_server() -> None:
    with Offline(providers=MINE) as gateway:

        async def slow(*_: object) -> Any:
            await asyncio.sleep(5)
            return Said(body=LIST)

        gateway.upstream.respond = slow
        assert gateway.ask("/v1/models", method="GET").json["data"] == []
        assert gateway.seconds == 2.0
        gateway.call(asyncio.sleep(4))
        assert len(gateway.ask("/v1/models", method="GET").json["data"]) == 2


def test_providers_of_the_catalog_are_not_asked() -> None:
    with Offline(providers={"kimi": {"api_key": "k"}}) as gateway:
        got = gateway.ask("/v1/models", method="GET")
        assert gateway.upstream.sent == []
        names = [model["id"] for model in got.json["data"]]
        assert "kimi-k3" in names
        assert "kimi/kimi-k3" in names


def test_a_single_model() -> None:
    tables = {"providers": MINE, "models": {"alias": "mine/big", "x-*": "mine/*"}}
    with Offline(**tables) as gateway:
        gateway.upstream.say(Said(body=LIST))
        got = gateway.ask("/v1/models/mine/big", method="GET")
        assert (got.status, got.json["id"]) == (200, "mine/big")
        assert got.record is not None
        assert got.record.model == "mine/big"
        assert gateway.ask("/v1/models/alias", method="GET").json["id"] == "alias"
        assert gateway.ask("/v1/models/x-anything", method="GET").json["id"] == "x-anything"
        missing = gateway.ask("/v1/models/nothing", method="GET")
        assert (missing.status, missing.json["error"]["param"]) == (404, "model")
        assert missing.json["error"]["message"] == "model: there is no model 'nothing'"


def test_figures_of_a_server_fill_what_the_catalog_does_not_know() -> None:
    with Offline(providers=MINE) as gateway:
        theirs = {"mine": (UpstreamModel("big", "Big", 9000, 100), UpstreamModel("small"))}
        big, small = models(gateway.settings, "openai-chat", theirs)
        assert (big.id, big.title, big.context, big.output) == ("mine/big", "Big", 9000, 100)
        assert (small.id, small.title, small.context, small.output) == ("mine/small", "mine/small", 0, 0)
        assert big.dialects == ("openai-chat",)
    with Offline(providers={"kimi": {"api_key": "k"}}) as gateway:
        known = listed(gateway.settings, "kimi/kimi-k3", "openai-chat")
        bare = listed(gateway.settings, "kimi-k3", "openai-chat")
        assert known is not None
        assert bare is not None
        assert known.title == f"{bare.title} (kimi)"
        assert bare.context > 0
        assert bare.thinks
        assert listed(gateway.settings, "nothing", "openai-chat") is None


def test_a_key_sees_the_models_that_it_may_use() -> None:
    key = "sk-of-the-client-0123456789"
    table = {"team": {"hash": f"sha256:{hashlib.sha256(key.encode()).hexdigest()}", "models": ["mine/small"]}}
    with Offline(providers=MINE, keys=table) as gateway:
        gateway.upstream.say(Said(body=LIST))

        def get(path: str) -> Got:
            return gateway.ask(path, method="GET", authorization=f"Bearer {key}")

        got = get("/v1/models")
        assert [model["id"] for model in got.json["data"]] == ["mine/small"]
        assert get("/v1/models/mine/big").status == 404
        assert get("/v1/models/mine/small").status == 200


def test_a_page_of_a_list() -> None:
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(Said(body={"data": [{"id": str(number)} for number in range(5)]}))
        got = gateway.ask("/v1/models?limit=2", method="GET", anthropic_version="2023-06-01")
        assert [model["id"] for model in got.json["data"]] == ["mine/0", "mine/1"]
        bad = gateway.ask("/v1/models?limit=x", method="GET", anthropic_version="2023-06-01")
        assert (bad.status, "limit" in bad.json["error"]["message"]) == (400, True)


# Counts.


def count(gateway: Offline, text: str = "Hi", **headers: str) -> Got:
    return gateway.ask(COUNT_PATH, asked(text=text), **headers)


def test_a_provider_that_counts_is_asked_and_its_answer_passes() -> None:
    with Offline(providers=CLAUDE) as gateway:
        gateway.upstream.say(Said(body=b'{"input_tokens": 77}'))
        got = count(gateway)
        assert (got.status, got.body) == (200, b'{"input_tokens": 77}')
        assert "x-wireglot-estimate" not in got.headers
        assert gateway.upstream.sent[-1].url == "https://h.example/v1/messages/count_tokens"
        assert gateway.upstream.json["model"] == "m"
        assert gateway.upstream.timeouts == [Timeouts(first_byte=15.0, total=15.0)]
        assert got.record is not None
        assert (got.record.usage_source, got.record.provider) == ("provider", "mine")
        assert got.record.usage is not None
        assert got.record.usage.input == 77
        count(gateway, x_wireglot_timeout="3")
        assert gateway.upstream.timeouts[-1].total == 3.0


@rows(
    ("said", "again"),
    [
        (Said(404, b"{}"), False),
        (Said(500, b"{}"), True),
        (Said(200, b"nonsense"), True),
        (AWAY, True),
    ],
)
def test_a_count_that_fails_is_estimated(said: Any, again: bool) -> None:
    with Offline(providers=CLAUDE) as gateway:
        gateway.upstream.say(said)
        got = count(gateway)
        assert (got.status, got.headers["x-wireglot-estimate"]) == (200, "true")
        assert got.json["input_tokens"] == 13
        assert got.record is not None
        assert got.record.usage_source == "estimated"
        assert got.record.notes[0].startswith("counting failed: ")
        count(gateway)
        # One that is not there is not looked for again for ten minutes.
        assert len(gateway.upstream.sent) == 1 + again


def test_a_request_that_the_provider_refuses_is_refused() -> None:
    with Offline(providers=CLAUDE) as gateway:
        gateway.upstream.say(
            Said(400, {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}})
        )
        got = count(gateway)
        assert (got.status, "bad" in got.json["error"]["message"]) == (400, True)


def test_a_provider_without_a_counter_is_estimated_by_what_it_reported_before() -> None:
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(
            Said(body={**CHAT, "usage": {"prompt_tokens": 26, "completion_tokens": 2, "total_tokens": 28}})
        )
        first = count(gateway)
        assert (first.json["input_tokens"], gateway.upstream.sent) == (13, [])
        gateway.ask(MESSAGES_PATH, asked())
        assert count(gateway).json["input_tokens"] == 26
        assert count(gateway, "something else").json["input_tokens"] != 26


def test_nothing_is_learned_before_someone_counts() -> None:
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(
            Said(body={**CHAT, "usage": {"prompt_tokens": 26, "completion_tokens": 2, "total_tokens": 28}})
        )
        gateway.ask(MESSAGES_PATH, asked())
        assert count(gateway).json["input_tokens"] == 13


# Health.


@rows(
    ("condition", "status", "body"),
    [
        (Condition(), 200, {"status": "ready"}),
        (Condition(draining=True), 503, {"status": "draining"}),
        (Condition(trouble="down"), 200, {"status": "degraded", "store": "down"}),
        (Condition(trouble="down", ledger_full=True), 503, {"status": "degraded", "store": "down"}),
        (Condition(draining=True, trouble="down"), 503, {"status": "draining", "store": "down"}),
        (Condition(config_refused=True), 200, {"status": "ready", "config": "refused"}),
    ],
)
def test_whether_it_is_ready(condition: Condition, status: int, body: dict[str, str]) -> None:
    async def scrape() -> bytes:
        return b"m 1"

    pages = HealthPages(lambda: condition, scrape, lambda method, path: None)

    def get(operation: str) -> CollectedReply:
        reply, asked_for = CollectedReply(999), type("Asked", (), {"operation": operation})()
        made: Any = type("Head", (), {"method": "GET", "path": "/"})()
        asyncio.run(pages.answer(made, asked_for, reply))
        return reply

    ready = get("ready")
    assert (ready.status, decode(bytes(ready.body))) == (status, body)
    health = get("health")
    assert (health.status, decode(bytes(health.body))) == (200, {"status": "ok"})
    metrics = get("metrics")
    assert bytes(metrics.body) == b"m 1"
    ((name, kind),) = metrics.headers
    assert (name, kind.startswith("text/plain; version=")) == ("content-type", True)
    assert decode(bytes(get("stub").body)) == {}


def test_routes_whose_breaker_is_open_are_measured() -> None:
    table = {"mine": {**LOCAL, "breaker": {"consecutive": 1}, "retry": {"retries": 0}}}
    with Offline(providers=table) as gateway:
        gateway.upstream.say(Said(503, b"{}"))
        gateway.ask(CHAT_PATH, asked())
        text = gateway.call(gateway.gateway.scrape())
        assert b'wireglot_breaker_open{route="mine/m"} 1' in text
        assert b"wireglot_queue 0" in text


# Telemetry of clients.


def test_telemetry_is_forwarded_with_its_type_and_nothing_else() -> None:
    telemetry = {"forward": "https://otel.example", "headers": {"x-key": "secret"}}
    with Offline(providers=MINE, telemetry=telemetry) as gateway:
        gateway.upstream.say(Said(200, b""))
        notes: list[Any] = []
        gateway.gateway._parts.pages.telemetry._note = lambda *note, **more: notes.append((*note, more))
        data = gzip.compress(b"\x0a\x00")
        got = gateway.ask("/v1/metrics", data, content_type="application/x-protobuf", content_encoding="gzip",
                          authorization="Bearer x")  # fmt: skip
        assert (got.status, got.body) == (200, b"")
        (sent,) = gateway.upstream.sent
        assert (sent.url, sent.body, sent.method, sent.pool) == (
            "https://otel.example/v1/metrics", data, "POST", "telemetry",
        )  # fmt: skip
        assert dict(sent.headers) == {
            "content-type": "application/x-protobuf", "content-encoding": "gzip", "x-key": "secret",
        }  # fmt: skip
        assert gateway.upstream.timeouts == [Timeouts(first_byte=10.0, idle=5.0, total=15.0)]
        gateway.upstream.say(AWAY, Said(300, b""), Said(299, b""), Said(200, b""))
        for _ in range(4):
            assert gateway.ask("/v1/logs", b"{}").status == 200
        assert notes == [
            ("warn", "telemetry not forwarded", {"detail": "connect: could not connect"}),
            ("info", "telemetry is forwarded again", {}),
        ]
        text = gateway.call(gateway.gateway.scrape()).decode()
        counted = {
            line.rpartition(" ")[0]: line.rpartition(" ")[2]
            for line in text.splitlines()
            if "client_telemetry" in line and line[0] != "#"
        }
        assert sorted(counted.values()) == ["1", "2", "2"]


JSON, PROTOBUF = "application/json", "application/x-protobuf"


@pytest.mark.parametrize(
    ("kind", "coding", "body", "fits"),
    [
        (JSON, "", b'{"resourceLogs": []}', True),
        (JSON, "", b" {}", True),
        (JSON, "", b'{"resourceSpans": []}', False),
        (JSON, "", b"[]", False),
        (JSON, "", b"{", False),
        (JSON, "", b"", False),
        (JSON, "", b'{"resourceLogs": "' + b"x" * LARGE_BYTES + b'"}', True),
        (JSON, "gzip", gzip.compress(b'{"resourceLogs": []}'), True),
        (JSON, "gzip", gzip.compress(b"words"), False),
        (JSON, "gzip", b"words", False),
        (JSON, "br", b"{}", False),
        (PROTOBUF, "", b"", True),
        (PROTOBUF, "", b"\x0a\x02ab\x0a\x00", True),
        (PROTOBUF, "", b"\x0a\x85\x00abcde", True),
        (PROTOBUF, "", b"\x0a\x03ab", False),
        (PROTOBUF, "", b"\x0a", False),
        (PROTOBUF, "", b"\x0a\xff\xff\xff\xff\xff\xff", False),
        (PROTOBUF, "", b"words", False),
        (PROTOBUF, "gzip", gzip.compress(b"\x0a\x00"), True),
        (PROTOBUF, "gzip", gzip.compress(b"words"), False),
    ],
)
def test_only_telemetry_is_forwarded(kind: str, coding: str, body: bytes, fits: bool) -> None:
    with Offline(providers=MINE, telemetry={"forward": "https://otel.example"}) as gateway:
        gateway.upstream.say(Said(200, b""))
        headers = {"content_type": kind, **({"content_encoding": coding} if coding else {})}
        assert gateway.ask("/v1/logs", body, **headers).status == 200
        assert [sent.body for sent in gateway.upstream.sent] == ([body] if fits else [])
        outcome = "forwarded" if fits else "invalid"
        text = gateway.call(gateway.gateway.scrape()).decode()
        assert f'wireglot_client_telemetry_total{{signal="logs",outcome="{outcome}"}} 1' in text


def test_telemetry_without_a_collector_is_discarded() -> None:
    with Offline(providers=MINE) as gateway:
        assert gateway.ask("/v1/traces", b"data").status == 200
        assert gateway.upstream.sent == []


def test_telemetry_of_more_than_sixteen_at_once_is_dropped() -> None:
    with Offline(providers=MINE, telemetry={"forward": "https://otel.example"}) as gateway:

        async def slow(*_: object) -> Any:
            await asyncio.sleep(5)
            return Said(200, b"")

        gateway.upstream.respond = slow

        async def many() -> None:
            await asyncio.gather(*(gateway.asking("/v1/logs", b"{}") for _ in range(18)))

        gateway.call(many())
        text = gateway.call(gateway.gateway.scrape()).decode()
        assert 'outcome="dropped"} 2' in text
        assert 'outcome="forwarded"} 16' in text


def test_the_connection_of_a_list_that_breaks_off_is_closed() -> None:
    broken = Said(pieces=(b'{"data": ', TransportFault("broken", "the connection ended")))
    with Offline(providers=MINE) as gateway:
        gateway.upstream.say(broken)
        assert gateway.ask("/v1/models", method="GET").json["data"] == []
    assert broken.aborted
