"""`GET /v1/usage` of a live gateway: R-DE-07, R-DE-12, R-X-05, R-Y-34, R-Y-35, R-Y-36, R-Y-37."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.state.usage_kit import DIALECTS, Refused, Reported, ask, fetch, reported, usage
from tests.tiers import rows
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream
from wireglot_core.providers.prices import list_price
from wireglot_core.providers.spec import provider
from wireglot_core.wire.json import decode, encode

MODELS = ("demo", "demo-anthropic", "demo-openai-chat", "demo-openai-responses", "demo-gemini")


@pytest.fixture(scope="module")
def demo() -> Iterator[LiveGateway]:
    with LiveGateway() as gateway:
        yield gateway


def row_of(gateway: LiveGateway, session: str) -> dict[str, Any]:
    """The one row of a session that only one request has named."""
    found = usage(gateway, f"group_by=outcome,provider,model&session={session}")
    assert found["total"]["requests"] == 1
    row: dict[str, Any] = found["data"][0]
    return row


def as_reported(row: dict[str, Any]) -> Reported:
    return Reported(
        row["total_input_tokens"],
        row["cache_read_tokens"],
        row["total_output_tokens"],
        row["reasoning_tokens"],
    )


@rows("model", MODELS)
@rows("stream", [False, True], ids=["whole", "stream"])
@rows("dialect", DIALECTS)
def test_the_ledger_has_exactly_what_the_client_was_sent(
    demo: LiveGateway, dialect: str, stream: bool, model: str
) -> None:
    """R-Y-34, R-Y-35, R-Y-36: in every dialect's own place, passed through and translated."""
    session = f"{dialect}-{stream}-{model}"
    answer = ask(demo, dialect, model, stream, x_wireglot_session=session)
    row = row_of(demo, session)
    expected = reported(dialect, answer, stream)
    assert as_reported(row) == expected
    assert expected.input > 0
    assert expected.output > expected.reasoning
    assert (row["outcome"], row["provider"], row["model"]) == ("ok", "demo", model)
    assert (row["cost"], row["unpriced_requests"]) == ("0.000000", 0)


_CLAUDE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 100,
        "cache_read_input_tokens": 2000,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
        "output_tokens": 50,
        "output_tokens_details": {"thinking_tokens": 20},
    },
}
_PRICES = """
[prices]
"mine/*" = { input = 3, output = 15, cache_read = 0.3, cache_write = 3.75, cache_write_long = 6 }
"""


@rows("dialect", DIALECTS)
def test_caches_are_reported_and_paid_for_at_their_own_price(dialect: str) -> None:
    """R-Y-37, R-DE-12"""
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "anthropic", _PRICES) as gateway:
        upstream.next(Behaviour(body=encode(_CLAUDE), headers=(("content-type", "application/json"),)))
        answer = ask(gateway, dialect, "m", False, x_wireglot_session="s")
        row = row_of(gateway, "s")
    assert as_reported(row) == reported(dialect, answer, False) == Reported(2400, 2000, 50, 20)
    assert (row["input_tokens"], row["cache_write_tokens"], row["output_tokens"]) == (100, 300, 30)
    assert row["cost_micros"] == 100 * 3 + 600 + 750 + 600 + 50 * 15
    assert row["cost"] == "0.003000"


def test_usage_outlives_a_restart(tmp_path: Path) -> None:
    """R-DE-07"""
    with LiveGateway(folder=tmp_path) as gateway:
        ask(gateway, "openai-chat", "demo", False)
        before = usage(gateway)["total"]
    with LiveGateway(folder=tmp_path) as gateway:
        assert usage(gateway)["total"] == before
        ask(gateway, "anthropic", "demo", True)
        assert usage(gateway)["total"]["requests"] == 2
    assert [path.name for path in (tmp_path / "wireglot" / "journal").iterdir()] == ["lock"]


def test_a_request_that_fails_over_is_one_row_of_the_provider_that_answered() -> None:
    with ScriptedUpstream() as upstream:
        other = f'base_url = "{upstream.url}/v1"\ndialect = "openai-chat"\napi_key = "k"\n'
        toml = (
            f"[providers.first]\n{other}retry = {{ retries = 0 }}\n[providers.second]\n{other}"
            '[models]\n"m" = ["first/a", "second/b"]\n[prices]\n"second/b" = { input = 1, output = 1 }\n'
        )
        with LiveGateway(toml) as gateway:
            upstream.next(Behaviour(error=503))
            ask(gateway, "anthropic", "m", False, x_wireglot_session="s")
            row = row_of(gateway, "s")
    assert (row["provider"], row["model"], row["outcome"]) == ("second", "b", "ok")
    assert row["cost_micros"] == row["total_tokens"] > 0


def test_an_upstream_that_refuses_is_a_failed_row_that_costs_nothing_known() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as gateway:
        upstream.next(Behaviour(error=400))
        with pytest.raises(Refused):
            ask(gateway, "openai-chat", "m", False)
        total = usage(gateway)["total"]
    assert (total["requests"], total["failed"], total["succeeded"]) == (1, 1, 0)
    assert (total["total_tokens"], total["unpriced_requests"]) == (0, 0)


def test_a_model_of_the_catalog_costs_its_list_price_and_the_metrics_say_the_same() -> None:
    """[M5] [M7]"""
    with ScriptedUpstream() as upstream:
        toml = f'[providers.openai]\nbase_url = "{upstream.url}/v1"\napi_key = "k"\n'
        with LiveGateway(toml) as gateway:
            answer = ask(gateway, "openai-chat", "gpt-5", False, x_wireglot_session="s")
            row = row_of(gateway, "s")
            gateway.wait_log()
            scraped = fetch(f"{gateway.url}/metrics").decode()
    price = list_price(provider("openai"), "gpt-5", int(time.time() * 1000))
    assert price is not None
    seen = reported("openai-chat", answer, False)
    paid = (seen.input - seen.cached) * price.price.input + seen.output * price.price.output
    assert seen.cached == 0
    assert row["cost_micros"] == round(paid / 1_000_000) > 0
    cost = re.search(r'wireglot_cost_total{provider="openai",model="gpt-5",currency="USD"} (\S+)', scraped)
    of_key = re.search(r'wireglot_key_cost_total{key="local",currency="USD"} (\S+)', scraped)
    assert cost is not None
    assert of_key is not None
    assert float(cost[1]) == float(of_key[1]) == row["cost_micros"] / 1_000_000


def test_a_model_without_a_price_is_unpriced_and_not_free() -> None:
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as gateway:
        ask(gateway, "openai-chat", "m", False)
        total = usage(gateway)["total"]
    assert (total["cost"], total["cost_micros"], total["unpriced_requests"]) == (None, None, 1)


def test_a_client_that_leaves_is_an_aborted_row_with_what_it_had_got() -> None:
    import http.client

    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "anthropic") as gateway:
        upstream.next(Behaviour(fault="stall-midstream", after=4))
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
        body = {
            "model": "m",
            "max_tokens": 9,
            "stream": True,
            "messages": [{"role": "user", "content": "hi"}],
        }
        connection.request("POST", "/v1/messages", encode(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        assert b"message_start" in answer.read1()
        answer.close()
        connection.close()
        gateway.wait_log()
        [row] = usage(gateway, "group_by=outcome")["data"]
    assert (row["outcome"], row["failed"], row["open"]) == ("client_abort", 1, 0)
    assert row["input_tokens"] > 0


def test_counting_tokens_and_asking_for_models_are_no_usage() -> None:
    with LiveGateway() as gateway:
        body = {"model": "demo", "messages": [{"role": "user", "content": "hi"}]}
        fetch(f"{gateway.url}/v1/messages/count_tokens", body)
        fetch(f"{gateway.url}/v1/models")
        with pytest.raises(Refused):
            ask(gateway, "openai-chat", "nobody/knows-it", False)
        assert usage(gateway)["total"]["requests"] == 0


def _hashed(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


_KEYS = f"""
[server]
admin_secret = "admin-secret-0123456789"
[providers.demo]
[keys]
alice = "{_hashed("alice-key-0123456789")}"
bob = "{_hashed("bob-key-0123456789")}"
"""
ALICE = {"authorization": "Bearer alice-key-0123456789"}
BOB = {"authorization": "Bearer bob-key-0123456789"}
ADMIN = {"authorization": "Bearer admin-secret-0123456789"}


def test_a_key_sees_its_own_usage_and_the_admin_sees_everybodys() -> None:
    with LiveGateway(_KEYS) as gateway:
        for headers, times in ((ALICE, 2), (BOB, 1)):
            for _ in range(times):
                ask(gateway, "openai-chat", "demo", False, **headers)
        assert [row["key"] for row in usage(gateway, "group_by=key", **ALICE)["data"]] == ["alice"]
        # Asking for another's shows one's own: what `key` means to Gemini's clients is their secret.
        assert usage(gateway, "group_by=key&key=bob", **ALICE)["total"]["requests"] == 2
        everybody = usage(gateway, "group_by=key", "/v1/admin/usage", **ADMIN)
        assert {row["key"]: row["requests"] for row in everybody["data"]} == {"alice": 2, "bob": 1}
        only = usage(gateway, "group_by=model&key=bob", "/v1/admin/usage", **ADMIN)
        assert only["total"]["requests"] == 1
        for headers in ({}, ALICE):
            with pytest.raises(Refused) as refused:
                usage(gateway, "", "/v1/admin/usage", **headers)
            assert refused.value.status == 401


@rows(
    ("query", "param"),
    [
        ("group_by=colour", "group_by"),
        ("groupby=day", "groupby"),
        ("start=yesterday", "start"),
        ("start=2026-13-01", "start"),
        ("end=-1", "end"),
        ("start=2026-01-02&end=2025-01-01", "end"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_named(demo: LiveGateway, query: str, param: str) -> None:
    with pytest.raises(Refused) as refused:
        usage(demo, query)
    error = decode(refused.value.body)["error"]
    assert (refused.value.status, error["param"]) == (400, param)
    assert error["message"].startswith(f"{param}: expected")


def test_times_and_filters_choose_the_rows(demo: LiveGateway) -> None:
    ask(demo, "openai-chat", "demo", False)
    now = int(time.time())
    today = time.strftime("%Y-%m-%d", time.gmtime(now))
    for query in ("start=1h", f"start={now - 3600}&end={now + 3600}", f"end={today}", "provider=demo"):
        assert usage(demo, query)["total"]["requests"] > 0
    for query in (
        f"start={now + 3600}",
        f"end={now - 3600}",
        "provider=other",
        "model=other",
        "session=other",
    ):
        found = usage(demo, query)
        assert (found["total"]["requests"], found["data"]) == (0, [])
    first = usage(demo, "group_by=day,model,provider,key,session,outcome")["data"][0]
    assert (first["key"], first["provider"]) == ("local", "demo")
    assert list(usage(demo)["data"][0])[:2] == ["day", "model"]


def test_while_the_store_is_down_requests_are_answered_and_the_question_is_a_503(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FAULTS 93, 101: and when it is back, all of it is there."""
    from wireglot.stores import StoreDown

    with LiveGateway() as gateway:
        ledger = gateway.process.state.engine.ledger

        async def down(*_: Any) -> Any:
            raise StoreDown("it is away")

        with monkeypatch.context() as away:
            away.setattr(ledger, "apply", down)
            away.setattr(ledger, "totals", down)
            for dialect in DIALECTS:
                ask(gateway, dialect, "demo", True)
            with pytest.raises(Refused) as refused:
                usage(gateway)
            assert (refused.value.status, b"storage_unavailable" in refused.value.body) == (503, True)
            ready = decode(fetch(f"{gateway.url}/readyz"))
            assert (ready["status"], ready["store"]) == ("degraded", "down")
            assert "usage spooled" in [line["event"] for line in gateway.wait_log(event="usage spooled")]
        total = usage(gateway)["total"]  # who asks is not kept waiting for the next try
        gateway.wait_log(event="usage caught up")
        assert (total["requests"], total["succeeded"]) == (len(DIALECTS), len(DIALECTS))


@pytest.mark.parametrize("required", [False, True])
def test_with_a_full_journal_the_gateway_is_not_ready_and_answers_as_it_was_asked_to(
    monkeypatch: pytest.MonkeyPatch, required: bool
) -> None:
    """FAULTS 93"""
    from wireglot.stores import StoreDown

    toml = f"[providers.demo]\n[store]\njournal = 65536\nledger_required = {str(required).lower()}\n"
    with LiveGateway(toml) as gateway:

        async def down(*_: Any) -> Any:
            raise StoreDown("it is away")

        answered = 0
        with monkeypatch.context() as away:
            away.setattr(gateway.process.state.engine.ledger, "apply", down)
            while not gateway.process.state.ledger.full:
                ask(gateway, "openai-chat", "demo", False)
                answered += 1
            with pytest.raises(Refused) as refused:
                fetch(f"{gateway.url}/readyz")
            assert refused.value.status == 503
            if required:
                with pytest.raises(Refused) as refused:
                    ask(gateway, "anthropic", "demo", False)
                assert refused.value.status in (503, 529)
                assert decode(refused.value.body)["error"]["type"] == "overloaded_error"
            else:
                ask(gateway, "anthropic", "demo", False)
            assert gateway.wait_log(event="usage not recorded")[0]["level"] == "error"
            gateway.wait_log(event="usage spooled")
        assert usage(gateway)["total"]["requests"] == answered
        gateway.wait_log(event="usage caught up")
        assert decode(fetch(f"{gateway.url}/readyz"))["status"] == "ready"
        ask(gateway, "openai-chat", "demo", False)
        assert usage(gateway)["total"]["requests"] == answered + 1
        scraped = fetch(f"{gateway.url}/metrics").decode()
    assert "\nwireglot_usage_dropped_total 1\n" in scraped
