"""Answers of the inspector's pages compared whole: every field, its name and its place."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.gateway.inspector.test_inspector_offline import ask, locked, opened
from tests.gateway.inspector.test_pages_alone import KIMI, RECORDED, Submitted, Traces, page, replay
from tests.gateway.kit import catalogued, head, own, settings
from tests.gateway.offline import Said, Upstream
from tests.tiers import rows
from wireglot.gateway.config.edit import ConfigSource, digest_of
from wireglot.gateway.config.prices import known_price
from wireglot.gateway.entry.callers import Caller, Gatekeeper
from wireglot.gateway.entry.routes import INSPECTOR_ROUTES, Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector import access, dashboard, key_pages, playground, setup_page
from wireglot.gateway.inspector.access import (
    Access,
    InspectorSession,
    InspectorSessions,
    SeenVisitor,
    sign_in_ticket,
)
from wireglot.gateway.inspector.config_page import ConfigPages
from wireglot.gateway.inspector.dashboard import DashboardPage, Figures, TimeSpan
from wireglot.gateway.inspector.inspector import Site
from wireglot.gateway.inspector.key_pages import KeyPages
from wireglot.gateway.inspector.playground import ToTranslate, TranslatePage, translated
from wireglot.gateway.inspector.preview import Preview, Targets, with_catalog
from wireglot.gateway.inspector.replay_page import ReplayPage
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Access as ViewerAccess
from wireglot.gateway.request.viewer import InspectorHandler, Viewer
from wireglot.gateway.settings import ClientKey, FetchSettings, Secret, ServerSettings, Settings
from wireglot.gateway.targets.health import Health
from wireglot.gateway.trace.peers import PeerCommand
from wireglot.http.redaction import Redactor
from wireglot.stores import StoreDown
from wireglot.stores.memory.engine import MemoryKeys, MemoryLedger
from wireglot.stores.records import KeyQuotas, KeyRow, UsageQuery, UsageRow
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.outcome import Usage
from wireglot_core.providers import spec as catalog
from wireglot_core.providers.prices import cost
from wireglot_core.providers.spec import ModelSpec
from wireglot_core.traces.trace import Row
from wireglot_core.wire.json import decode

OPERATOR = Viewer("admin")


def asked_page(query: str = "", now: Settings | None = None, document: Any = None, **more: Any) -> Any:
    made, reply = page(document, now or settings())
    visit = head("GET", "/inspector/api/x", query)
    return msgspec.structs.replace(made, **{"head": visit, **more}), reply


def answered(reply: Any) -> Any:
    return decode(bytes(reply.body))


def handle(handler: InspectorHandler, made: PageRequest, viewer: ViewerAccess) -> None:
    async def work() -> None:
        await handler(made, Viewer(viewer))

    asyncio.run(work())


# The dashboard.

DAY = 86_400
TOKENS = {"input": 10, "cache_read": 3, "output": 5}


def row(id: str, second: int, **more: Any) -> UsageRow:
    fields = {"caller": "ada", "outcome": "ok", "finished": second * 1000 + 40, "first_byte": 20}
    fields |= {"provider": "mine", "upstream_model": "m", "cost": 1_500_000}
    return UsageRow(id=id, started=second * 1000, **{**fields, **TOKENS, **more})


FIGURES = {
    "requests": 1,
    "errors": 0,
    "left": 0,
    "open": 0,
    "latency_ms": {"p50": 40, "p95": 40, "p99": 40},
    "first_ms": {"p50": 20, "p95": 20, "p99": 20},
    "input_tokens": 13,
    "output_tokens": 5,
    "cached_tokens": 3,
    "cost": 1.5,
    "unpriced": 0,
    "lossy": 1,
}
NONE = {name: {f"p{each}": None for each in (50, 95, 99)} if "_ms" in name else 0 for name in FIGURES}
FLAT = {"latency_p50", "latency_p95", "latency_p99", "first_p50", "first_p95", "first_p99"} | {
    name for name in FIGURES if "_ms" not in name
}


class Parts:
    """What a dashboard is made of, and what is asked of it."""

    def __init__(self, *rows: UsageRow, others: tuple[Row, ...] = (), down: bool = False) -> None:
        self.ledger = MemoryLedger()
        asyncio.run(self.ledger.apply(rows))
        self.others, self.down = others, down
        self.asked: list[Any] = []
        self.keys = [ClientKey("bob", "0" * 64, group="team")]

    async def unbooked(self, since: int, until: int) -> tuple[Row, ...]:
        self.asked.append((since, until))
        return self.others

    async def listed(self, wanted: Any) -> list[Row]:
        return []

    async def budgets_now(self, keys: Any, now: Any) -> list[Any]:
        self.asked.append([key.name for key in keys])
        if self.down:
            raise StoreDown("it is away")
        used = {"tokens": 30, "cost": 2_500_000}
        return [
            ("ada", SimpleNamespace(shared=False, unit="tokens", period="day", limit=20, used=used["tokens"], resets=7)),
            ("team", SimpleNamespace(shared=True, unit="cost", period="month", limit=4_000_000, used=used["cost"], resets=8)),
        ]  # fmt: skip

    def page(self) -> DashboardPage:
        async def flush(seconds: float) -> None:
            self.asked.append(seconds)

        async def scrape() -> bytes:
            return b"wireglot_queue 2\n"

        fleet = SimpleNamespace(unbooked=self.unbooked)
        traces: Any = SimpleNamespace(fleet=fleet, listed=self.listed, redacted=lambda row: row)
        usage: Any = SimpleNamespace(flush=flush)
        quotas: Any = SimpleNamespace(budgets=SimpleNamespace(of_keys=self.budgets_now))
        keys: Any = SimpleNamespace(clients=lambda: self.keys)
        return DashboardPage(usage, self.ledger, Health(), scrape, traces=traces, quotas=quotas, keys=keys)

    def ask(self, query: str, viewer: Viewer = OPERATOR) -> Any:
        now = settings(own("mine", "openai-chat"), keys=(ClientKey("ada", "1" * 64),), currency="EUR")
        made, reply = asked_page(query, now)
        asyncio.run(self.page().dashboard(made, viewer))
        return answered(reply)


def test_a_dashboard_is_whole() -> None:
    parts = Parts(row("req_1", 1061, losses=("seed",)), row("req_2", 1000 - 60, provider="old"))
    found = parts.ask("from=1000&to=1120&step=60&by=provider")
    series = {name: [None, None, None] if "_p" in name else [0, 0, 0] for name in FLAT}
    at = {name: [0, FIGURES[name], 0] for name in FLAT if "_p" not in name}
    times = {
        f"{name}_p{each}": [None, ms, None]
        for name, ms in (("latency", 40), ("first", 20))
        for each in (50, 95, 99)
    }
    assert found == {
        "from": 1000,
        "to": 1120,
        "step": 60,
        "by": "provider",
        "currency": "EUR",
        "previous": {**FIGURES, "lossy": 0},
        "times": [960, 1020, 1080],
        "total": FIGURES,
        "series": series | at | times,
        "groups": [{"name": "mine", "total": FIGURES, "series": series | at}],
        "more_groups": 0,
        "losses": [{"feature": "seed", "requests": 1}],
        "durations": "measured",
        "grades": {"serious": 0, "degraded": 0, "harmless": 0},
        "graded": 0,
        "rejected": 0,
        "budgets": [
            {"of": "key", "name": "ada", "unit": "tokens", "period": "day", "limit": 20, "used": 30, "left": 0, "resets": 7},
            {"of": "group", "name": "team", "unit": "cost", "period": "month", "limit": 4, "used": 2.5, "left": 1.5,
             "resets": 8},
        ],
        "health": {
            "providers": [{"name": "mine", "breakers": [], "cooling": [], "rejected": [], "errors": {}}],
            "queue": 2,
            "in_flight": 0,
            "store_down": False,
            "losses": [],
        },
    }  # fmt: skip
    assert parts.asked == [0.5, (1000, 1120), ["ada", "bob"]]
    own_figures = parts.ask("from=1000&to=1120&step=60", Viewer("key", "ada"))
    assert "health" not in own_figures
    assert parts.asked[-1] == ["ada"]
    assert Parts(down=True).ask("from=1000&to=1120")["budgets"] is None


def test_budgets_are_looked_up_for_a_thousand_keys_at_most() -> None:
    parts = Parts()
    parts.keys = [ClientKey(f"key{number}", "0" * 64) for number in range(1000)]
    parts.ask("from=1000&to=1120")
    assert (len(parts.asked[-1]), parts.asked[-1][:2]) == (1000, ["ada", "key0"])


def test_all_time_begins_with_the_first_request_or_an_hour_ago() -> None:
    whole = Parts(row("req_1", 1061), row("req_2", 2000)).ask("from=all&to=2100")
    assert (whole["from"], whole["to"], whole["step"], whole["previous"]) == (1061, 2100, 10, None)
    assert whole["total"]["requests"] == 2
    assert Parts().ask("from=all&to=7200")["from"] == 3600
    assert Parts().ask("from=all&to=60")["from"] == 0
    late = Parts(row("req_1", 2100)).ask("from=all&to=2101")
    assert (late["from"], late["to"], late["total"]["requests"]) == (2100, 2101, 1)


def test_a_row_that_another_machine_reports_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(id: str, **more: Any) -> Row:
        fields: dict[str, Any] = {
            "at": 1010.0,
            "state": "done",
            "key": "bob",
            "provider": "far",
            "booked": True,
        }
        return Row(id=id, **{**fields, **more})

    others = (told("req_1"), told("req_2", at=1030.0), told("req_3", booked=False))
    parts = Parts(row("req_1", 1010), others=others)
    asked: list[Any] = []
    rows = parts.ledger.rows

    async def noted(query: UsageQuery, *, limit: int, newest_first: bool = True) -> list[UsageRow]:
        asked.append((query, limit))
        return await rows(query, limit=limit, newest_first=newest_first)

    monkeypatch.setattr(parts.ledger, "rows", noted)
    found = parts.ask("from=1000&to=1060&by=group")
    assert [(group["name"], group["total"]["requests"]) for group in found["groups"]] == [
        ("", 1),
        ("team", 1),
    ]
    assert asked == [(UsageQuery(since=1_009_000, until=1_031_000), 20_000)]
    asyncio.run(Parts(others=(told("req_1", at=0.5),)).page()._of_others(settings(), TimeSpan(0, 60, 1)))


@pytest.mark.parametrize(("steps", "most"), [(400, 500), (60, 3333), (40_000, 30)])
def test_a_file_has_as_many_groups_as_lines_allow(
    monkeypatch: pytest.MonkeyPatch, steps: int, most: int
) -> None:
    asked: list[Any] = []

    async def charted(self: Any, query: Any, span: Any, by: Any, most: int, *, whole: bool) -> dict[str, Any]:
        asked.append((by, most, whole))
        return {}

    monkeypatch.setattr(Figures, "charted", charted)
    made, _ = asked_page()
    for is_file in (True, False):
        span = TimeSpan(0, steps, 1)
        asyncio.run(Parts().page()._reported(made, Viewer("admin"), span, "model", is_file=is_file))
    assert asked == [("model", most, True), ("model", 30, False)]


def test_waiting_for_a_dashboard_is_bounded() -> None:
    gate: Any = Parts().page()._gate
    assert (gate._limit, gate._queue, gate._seconds) == (1, 16, 30.0)


def test_numbers_in_a_table_have_six_digits_and_no_empty_ones() -> None:
    values = (None, 3, 0.0, 1.25, 0.0000004, 10.0)
    assert [dashboard._number(value) for value in values] == ["", "3", "0", "1.25", "0", "10"]


# Keys.


def test_keys_are_listed_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0  # 2023-11-14 22:13:20
    monkeypatch.setattr(key_pages, "time", SimpleNamespace(time=lambda: now))
    keys, ledger = MemoryKeys(), MemoryLedger()
    asyncio.run(
        keys.put(KeyRow("stored", "d" * 64, "wg-abc", 1_600_000_000_000, limits=KeyQuotas(tokens_per_day=9)))
    )
    used = [row("a", int(now) - 60, caller="filed"), row("b", int(now) - 2 * DAY, caller="filed")]
    asyncio.run(
        ledger.apply([*used, row("c", int(now) - 60, caller="stored"), row("d", int(now) - 20 * DAY)])
    )
    wanted: list[Any] = []

    async def listed(asked: Any) -> list[Row]:
        wanted.append(asked)
        return [
            Row(id="1", at=5.0, client="codex", agent="x"),
            Row(id="2", at=9.0, key="local", agent="curl/8"),
            Row(id="3", at=7.0, client="codex"),
            Row(id="4", at=8.0, key="filed", client="kept"),
        ]

    state: Any = SimpleNamespace(
        engine=SimpleNamespace(keys=keys, ledger=ledger), keys=SimpleNamespace(required=False)
    )
    admin: Any = SimpleNamespace(**{f"{verb}_key": f"{verb} it" for verb in (
        "create", "get", "update", "revoke", "rotate", "delete")})  # fmt: skip
    traces: Any = SimpleNamespace(listed=listed)
    pages = KeyPages(admin, state, traces)
    assert sorted(pages.handlers) == [
        "keys.create", "keys.delete", "keys.get", "keys.list", "keys.revoke", "keys.rotate", "keys.update",
    ]  # fmt: skip

    def ask(configured: Settings) -> Any:
        made, reply = asked_page(now=configured)
        handle(pages.handlers["keys.list"], made, "admin")
        return answered(reply)

    filed = ClientKey("filed", "f" * 64, limits=KeyQuotas(cost_per_month=2_500_000))
    found = ask(settings(keys=(filed,), currency="EUR"))
    stored, configured = found.pop("data")
    assert found == {
        "currency": "EUR",
        "day": 1_699_920_000,
        "month": 1_698_796_800,
        "groups": [],
        "required": True,
        "keyless": [],
    }
    assert (stored["name"], stored["stored"], stored["tokens_per_day"]) == ("stored", True, 9)
    assert stored["used"] == {
        "tokens_per_day": 18, "tokens_per_month": 18, "cost_per_day": 1.5, "cost_per_month": 1.5
    }  # fmt: skip
    unlimited = dict.fromkeys(KeyQuotas.__struct_fields__)
    assert configured == {
        "name": "filed",
        "state": "active",
        "models": [],
        "losses": None,
        "expires": None,
        "group": None,
        "owner": None,
        **unlimited,
        "cost_per_month": 2.5,
        "stored": False,
        "used": {"tokens_per_day": 18, "tokens_per_month": 36, "cost_per_day": 1.5, "cost_per_month": 3.0},
    }
    assert not wanted, "the first key has been made"
    keyless = ask(settings())
    assert (keyless["required"], keyless["keyless"]) == (
        False,
        [
            {"client": "curl/8", "requests": 1, "last": 9.0},
            {"client": "codex", "requests": 2, "last": 7.0},
        ],
    )
    assert (wanted[0].since, wanted[0].limit) == (now - DAY, 5000)
    state.keys.required = True
    assert ask(settings())["required"] is True
    assert ask(settings(server=ServerSettings(require_key=True)))["required"] is True
    with pytest.raises(RequestError, match="admin secret"):
        handle(pages.handlers["keys.get"], asked_page()[0], "open")


# Targets, and what a request may cost.


def test_targets_are_the_models_that_are_on_and_those_of_the_catalog() -> None:
    models = ModelSpec("m", context=100, output=10), ModelSpec("e", embeds=True)
    now = settings(own("mine", "openai-chat", *models), catalogued("kimi", "k"))

    def ask(key: ClientKey | None = None) -> Any:
        caller = Caller("local", key)
        made, reply = asked_page(now=now, caller=caller)
        asyncio.run(Targets().targets(made, Viewer("admin")))
        return answered(reply)

    found = ask()
    on = [each for each in found["targets"] if each["on"]]
    off = [each for each in found["targets"] if not each["on"]]
    mine = [each for each in on if each["id"].endswith("mine/m") or each["id"] == "m"]
    assert mine[0] == {"id": mine[0]["id"], "on": True, "context": 100, "output": 10}
    assert not any(each["id"].endswith("mine/e") for each in on), "it answers nothing"
    assert found["count"] == len(found["targets"]) == len(on) + len(off)
    assert {each["id"].partition("/")[0] for each in on if "/" in each["id"]} <= {"mine", "kimi"}
    assert {each["id"].partition("/")[0] for each in off} <= set(catalog.names()) - {"kimi", "mine"}
    openai = {each["id"]: each for each in off if each["id"].startswith("openai/")}
    listed = [entry for entry in catalog.provider("openai").models if entry.answers]
    assert openai == {
        f"openai/{entry.match}": {
            "id": f"openai/{entry.match}", "on": False, "context": entry.input_limit, "output": entry.output
        }
        for entry in listed
    }  # fmt: skip
    narrow = ask(ClientKey("ada", "0" * 64, models=("mine/*",)))
    assert {each["id"] for each in narrow["targets"] if each["on"]} < {each["id"] for each in on}
    assert [each for each in narrow["targets"] if not each["on"]] == off


def test_a_provider_of_the_catalog_is_added_for_a_translation_only() -> None:
    now = settings(catalogued("kimi", "k"))
    for model in ("kimi/kimi-k3", "no-such/x", "kimi-k3"):
        assert with_catalog(now, model) is now
    azure = with_catalog(now, "azure/gpt-5").providers
    assert list(azure) == ["kimi", "azure"]
    spec = catalog.provider("azure")
    assert azure["azure"].variables == {
        name: f"{{{name}}}" for name, value in spec.variables.items() if value.startswith("env:")
    }
    assert azure["azure"].variables


def test_what_a_request_may_cost_is_reported_whole() -> None:
    found, _ = replay({"id": "req_old", "dry": True})
    entry = next(each for each in catalog.provider("kimi").models if each.match == "kimi-k3")
    price = known_price(KIMI, "kimi", "kimi-k3", int(time.time() * 1000))
    assert price is not None
    assert found == {
        "model": "kimi-k3",
        "provider": "kimi",
        "dialect": "openai-chat",
        "pays": "config",
        "key": "local",
        "context": entry.input_limit,
        "output": entry.output,
        "estimate": {
            "input": 12,
            "max_output": 50,
            "cost": cost(price, Usage(input=12, output=50)),
            "currency": "USD",
        },
        "sends": True,
    }
    small = settings(own("mine", "openai-chat", ModelSpec("m", context=100, output=10)))
    listed, _ = replay({"id": "req_old", "to": "mine/m", "dry": True}, now=small)
    assert (listed["context"], listed["output"], listed["estimate"]["max_output"]) == (100, 10, 10)
    mine = settings(own("mine", "openai-chat"))
    unknown, _ = replay({"id": "req_old", "to": "mine/m", "dry": True}, now=mine)
    assert (unknown["context"], unknown["output"], unknown["pays"]) == (0, 0, "")
    off, _ = replay({"id": "req_old", "to": "openai/gpt-5.5", "dry": True})
    assert (off["provider"], off["sends"]) == ("openai", False)


def test_what_would_be_sent_is_shown_as_an_exchange() -> None:
    found, submitted = replay({"id": "req_old", "dry": True, "show": True})
    assert submitted.incoming is None
    would = found["would"]
    assert decode(would["request"]["body"]) == {**RECORDED, "model": "kimi/kimi-k3"}
    assert (would["row"]["state"], would["row"]["provider"], would["row"]["agent"]) == (
        "done",
        "kimi",
        "wireglot-playground",
    )
    (attempt,) = would["attempts"]
    assert attempt["request"]["url"] == "https://api.moonshot.ai/v1/chat/completions"
    assert decode(attempt["request"]["body"])["model"] == "kimi-k3"
    assert "would" not in replay({"id": "req_old", "dry": True})[0]
    picture = {"type": "image_url", "image_url": {"url": "https://h.example/a.png"}}
    other = {"type": "image_url", "image_url": {"url": "https://h.example/b.png"}}
    asked = {**RECORDED, "messages": [{"role": "user", "content": [picture, other, picture]}]}
    now = settings(own("mine", "openai-chat", limits={"media_urls": False}), fetch=FetchSettings())
    drawn, _ = replay({"id": "req_old", "to": "mine/m", "dry": True, "show": True, "body": asked}, now=now)
    assert drawn["why"] == "the gateway downloads 2 files for this model before it sends the request"
    assert "would" not in drawn


def test_why_a_provider_is_off_is_its_own_note() -> None:
    spec = catalog.provider("kimi")
    notes = ("provider kimi-x is off: another", "provider kimi is off: it lacks a region")
    assert setup_page._why_off(spec, settings(notes=notes)) == "it lacks a region"
    assert setup_page._why_off(spec, settings()) == f"{' or '.join(spec.api_key_env)} is not set"


@rows(
    ("text", "request", "is_apart"),
    [(8192, 0, False), (4096, 4096, False), (4096, 4097, True), (8193, 0, True)],
)
def test_large_documents_are_translated_beside_the_loop(text: int, request: int, is_apart: bool) -> None:
    pages = TranslatePage()
    turns: list[Any] = []

    async def do(work: Callable[[], Any]) -> Any:
        turns.append(work)
        return work()

    turn: Any = SimpleNamespace(do=do)
    pages._turn = turn
    padded = "{" + " " * (text - 2) + "}", "{" + " " * (request - 2) + "}" if request else ""
    document = {
        "dialect": "openai-chat",
        "kind": "request",
        "text": padded[0],
        "request": padded[1],
        "only": [],
    }
    made, reply = page(document, settings())
    asyncio.run(pages.translate(made, Viewer("open")))
    assert (len(turns), answered(reply)["dialect"]) == (int(is_apart), "openai-chat")


@rows(("letters", "is_apart"), [(8000, False), (8300, True)])
def test_what_would_be_sent_of_a_large_request_is_made_beside_the_loop(letters: int, is_apart: bool) -> None:
    preview = Preview(Redactor, lambda exchange: None)
    turns: list[Any] = []

    async def do(work: Callable[[], Any]) -> Any:
        turns.append(work)
        return work()

    turn: Any = SimpleNamespace(do=do)
    preview._turn = turn
    message = {"role": "user", "content": "x" * letters}
    document = {
        "to": "kimi/kimi-k3",
        "dialect": "openai-chat",
        "body": {"messages": [message]},
        "dry": True,
        "show": True,
    }
    made, reply = page(document, KIMI)
    recorded: Any = None
    asyncio.run(ReplayPage(Submitted(), recorded, preview).replay(made, Viewer("open")))
    assert (len(turns), "would" in answered(reply)) == (int(is_apart), True)


def test_what_a_dialect_cannot_say_is_reported_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = {"message": "no such thing", "path": "$.a[0]", "pointer": "/a/0"}

    def refuse(*_: Any, **__: Any) -> Any:
        raise ClientFault("no such thing", "$.a[0]")

    asked = ToTranslate("openai-chat", "request", json.dumps(RECORDED), only=("gemini",))
    monkeypatch.setattr(playground, "translate_request", refuse)
    refused = {"text": "", "losses": [], "error": problem}
    assert translated(asked)["dialects"] == {"gemini": refused}
    reader: Any = SimpleNamespace(stream_reader=lambda context: SimpleNamespace(read=refuse))
    monkeypatch.setattr(playground, "dialect", lambda name: reader)
    stream = translated(ToTranslate("openai-chat", "stream", "data: {}\n\n"))
    assert (stream["problem"], stream["dialects"]) == (problem, {})


def test_a_client_key_sees_what_would_be_sent_and_not_whose_account_pays() -> None:
    viewer = Viewer("key", "team")
    found, _ = replay({"id": "req_old", "dry": True, "show": True}, viewer=viewer)
    assert found["pays"] == "kimi"
    (attempt,) = found["would"]["attempts"]
    assert attempt["request"].get("url", "") == ""
    assert decode(attempt["request"]["body"])["model"] == "kimi-k3"
    bedrock = catalogued("bedrock", "k")
    region = {"region": "eu-west-1"}
    named = settings(msgspec.structs.replace(bedrock, variables=region))
    arn = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/x"
    body = {**RECORDED, "messages": [{"role": "user", "content": f"look at {arn}"}]}
    asked = {"id": "req_old", "to": f"bedrock/{arn}", "dry": True, "show": True, "body": body}
    assert replay(asked, now=named)[0]["would"]["attempts"]
    hidden, _ = replay(asked, now=named, viewer=viewer)
    assert (hidden["model"], hidden["pays"], "would" in hidden) == ("", "bedrock", False)
    assert hidden["why"] == "only the operator can see the upstream request: it names the provider's account"


def test_tools_that_the_gateway_runs_are_offered_before_a_request_is_shown() -> None:
    offered: list[Any] = []

    async def offering(exchange: Any) -> None:
        offered.append(exchange)

    made, reply = page({"id": "req_old", "dry": True, "show": True}, KIMI)
    recorded: Any = Traces()
    shown = ReplayPage(Submitted(), recorded, Preview(Redactor, offering))
    asyncio.run(shown.replay(made, Viewer("open")))
    assert (len(offered), "would" in answered(reply)) == (1, True)


def test_an_answer_of_the_playground_is_the_models_own() -> None:
    made, reply = page({"id": "req_old", "answer": True}, KIMI)
    submitted = Submitted(418, b'{"its": "own"}')
    recorded: Any = Traces()
    asyncio.run(
        ReplayPage(submitted, recorded, Preview(Redactor, lambda _: None)).replay(made, Viewer("open"))
    )
    assert (reply.status, bytes(reply.body)) == (418, b'{"its": "own"}')
    assert submitted.incoming.head.headers["user-agent"] == "wireglot-playground"


# Signing in by a link.


def test_a_link_that_signs_in_and_one_that_is_over_are_noted() -> None:
    with locked() as offline:
        inside: Any = offline.gateway
        inspector = inside._parts.pages.inspector
        signing = inspector._signing["session.enter"].__self__
        notes: list[Any] = []
        signing._note = lambda level, event, **fields: notes.append((level, event, fields))
        told: list[PeerCommand] = []

        async def command(sent: PeerCommand) -> str:
            told.append(sent)
            return ""

        claims: list[str] = []

        async def claim(name: str) -> bool:
            claims.append(name)
            if len(claims) == 2:
                raise StoreDown("away")
            return len(claims) != 3

        signing._command, signing._claim = command, claim
        signing._sessions._operator_key = lambda: "operator"

        def enter(ticket: str, **headers: str) -> Any:
            return offline.ask(f"/inspector/enter/{ticket}", b"", "GET", **headers)

        cookie = ""
        for _ in range(2):  # where the store is away, as far as this process knows
            got = enter(sign_in_ticket("operator", time.time()))
            assert (got.status, got.headers["location"], got.headers["cache-control"]) == (
                303,
                "/inspector",
                "no-store",
            )
            cookie = got.headers["set-cookie"].partition(";")[0]
            assert ask(offline, "session", cookie=cookie).json["access"] == "admin"
            assert notes.pop() == ("info", "inspector sign-in", {"peer": "127.0.0.1", "caller": "admin"})
        assert [each.ended for each in told] == claims
        over = {"peer": "127.0.0.1", "detail": "the link was used or has expired"}
        for ticket in (sign_in_ticket("operator", time.time()), "x"):
            got = enter(ticket)
            assert (got.status, got.headers["content-type"]) == (410, "text/plain; charset=utf-8")
            assert got.body == (
                b"This link was used already, or is too old: it signs in once, within five minutes.\n"
                b"`wireglot inspect` makes a new one.\n"
            )
            assert notes.pop() == ("warn", "inspector sign-in refused", over)
        assert (len(told), len(claims)) == (2, 3)
        assert enter("x", cookie=cookie).status == 303, "who has signed in is led to the page"
        assert enter("x", x_forwarded_proto="https").status == 410
        assert notes.pop()[2] == over
        assert notes == []


# Sessions.

SERVER = ServerSettings(secret=Secret("s" * 40), admin_secret=Secret("an-admin-secret-0123456789"))


def test_what_other_processes_and_versions_must_find_alike() -> None:
    """Workers of two versions run next to each other while a gateway is updated."""
    now = settings(server=SERVER)
    sessions = InspectorSessions(lambda: 1000.0, lambda: "operator")
    key = hashlib.sha256(b"wireglot inspector v1 " + b"s" * 40).digest()

    def signed(text: str) -> str:
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    assert sessions.csrf(None, now) == signed("csrf open")
    session, token = sessions.begin(Caller("admin"), now)
    assert sessions.csrf(session, now) == signed(f"csrf {session.nonce}")
    assert session.mark == signed("admin an-admin-secret-0123456789")
    whose = hashlib.sha256(b"wireglot inspector whose v1 " + session.mark.encode()).hexdigest()[:16]
    assert sessions.end(session) == PeerCommand(1000.0, ended=session.nonce, ends=session.ends, whose=whose)
    old = sessions._sealer(now).seal("\0inspector", "session", "", msgspec.json.encode(session))
    assert sessions._sealer(now).open("\0inspector", "session", "", old) == msgspec.json.encode(session)
    cookie = base64.urlsafe_b64encode(old).decode().rstrip("=")
    assert sessions.read(f"wireglot-inspector={cookie}", "h", now) == session
    assert token.count("=") == 0
    ticket = sign_in_ticket("operator", 1000.0)
    assert len(ticket) == 39
    used = sessions.redeem(ticket)
    raw = base64.urlsafe_b64decode(ticket + "=")
    assert used == PeerCommand(1000.0, ended=f"ticket {raw.hex()}", ends=1300)


@pytest.mark.parametrize(("later", "opens"), [(299.5, True), (300.0, False)])
def test_a_ticket_is_good_for_five_minutes(later: float, opens: bool) -> None:
    clock = [1000.0]
    sessions = InspectorSessions(lambda: clock[0], lambda: "operator")
    ticket = sign_in_ticket("operator", clock[0])
    clock[0] += later
    assert (sessions.redeem(ticket) is not None) is opens


def test_sessions_that_ended_by_themselves_make_room_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_MAX_ENDED", 5)
    clock = [1000.0]
    sessions = InspectorSessions(lambda: clock[0])

    def end(whose: str, nonce: str, ends: float) -> None:
        sessions.obey(PeerCommand(clock[0], ended=nonce, ends=ends, whose=whose), is_new=True)

    for number in range(5):
        end("a", f"a{number}", 1010)
    end("b", "", 5000)
    end("b", "late", 1000)
    assert len(sessions.standing()) == 5, (
        "a command that names no session, or one that is over, changes nothing"
    )
    clock[0] = 1020.0
    end("b", "b0", 5000)
    end("c", "c0", 6000)
    assert sessions._ended == {"b": {"b0": 5000}, "c": {"c0": 6000}}
    for number, ends in enumerate((5500, 5600, 5700), start=1):
        end("b", f"b{number}", ends)
    assert sessions._ended_up_to == {"": 1020.0, "b": 5600}, "the older half of whom most are known"
    assert sessions._ended == {"b": {"b3": 5700}, "c": {"c0": 6000}}


def test_a_token_that_is_no_text_is_a_wrong_one() -> None:
    now = settings(server=SERVER)
    access_ = Access(Gatekeeper(lambda: 0.0), InspectorSessions(), lambda: now)
    for wrong in ("\udc80", "é", ""):
        with pytest.raises(RequestError) as refused:
            access_.check_token(head("POST", "/x", x_wireglot_csrf=wrong), SeenVisitor(None), now)
        assert (refused.value.error.kind, refused.value.error.code) == ("permission", "csrf_token_wrong")
    odd = settings(server=msgspec.structs.replace(SERVER, admin_secret=Secret("\udc80" * 20)))
    assert isinstance(InspectorSessions().begin(Caller("admin"), odd)[0], InspectorSession)


# The configuration file, and keys of providers.

TEXT = b'# mine\r\n[providers.demo]\r\n[models]\r\n"fast" = "demo/demo"\r\n'


class Edited:
    def __init__(self, folder: Path, content: bytes = TEXT, **source: Any) -> None:
        self.file = folder / "wireglot.toml"
        self.file.write_bytes(content)
        self.notes: list[Any] = []
        self.upstream = Upstream()
        environ = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
        given = {"path": self.file, "environ": environ, **source}
        self.source = ConfigSource(**given, reload=self._reload)
        self.pages = ConfigPages(self.source, lambda: self.now, self.upstream, self._note)
        self.now = self.pages._settings(environ)

    def _reload(self) -> None:
        self.now = self.pages._settings(self.source.environ)

    def _note(self, level: str, event: str, **fields: Any) -> None:
        self.notes.append((level, event, fields))

    def ask(self, verb: str, document: Any = None, id: str = "", access: Any = "open") -> Any:
        made, reply = page(document or {}, self.now)
        made = msgspec.structs.replace(made, asked=Asked("openai-chat", "inspector", ids=(id,)))
        handle(self.pages.handlers[verb], made, access)
        return answered(reply)

    def refused(self, verb: str, document: Any = None, id: str = "") -> tuple[int, str, str]:
        with pytest.raises(RequestError) as raised:
            self.ask(verb, document, id)
        error = raised.value.error
        return error.status, error.code, error.message


def test_the_configuration_is_shown_checked_and_written_whole(tmp_path: Path) -> None:
    edited = Edited(tmp_path, overrides={"server": {"port": 1}})
    shown = edited.ask("config.get")
    text = TEXT.decode().replace("\r\n", "\n")
    assert shown == {
        "path": str(edited.file),
        "exists": True,
        "why_fixed": "",
        "may_change_all": False,
        "overridden": ["the command line sets server.port"],
        "digest": digest_of(TEXT),
        "text": text,
    }
    assert edited.ask("config.get", access="admin")["may_change_all"] is True
    wanted = {"digest": shown["digest"], "text": text + '"slow" = "demo/demo"\n'}
    checked = edited.ask("config.check", wanted)
    assert [line for line in checked.pop("difference") if line[0] in "+-"] == ['+"slow" = "demo/demo"']
    assert checked == {"digest": shown["digest"], "text": wanted["text"], "problems": [], "notes": []}
    bad = edited.ask("config.check", {"digest": shown["digest"], "text": f'{text}"x" = "nowhere/x"\n'})
    ((problem),) = bad["problems"]
    assert problem.keys() == {"path", "expected", "found"}
    assert (problem["path"], bad["notes"]) == ("models.x", [])
    written = edited.ask("config.write", wanted)
    after = TEXT + b'"slow" = "demo/demo"\r\n'
    assert edited.file.read_bytes() == after
    assert written == {"digest": digest_of(after), "applied": True}
    place = {"path": str(edited.file)}
    assert edited.notes == [
        ("info", "configuration written", {"peer": "10.0.0.1", "caller": "open", **place})
    ]


def test_a_configuration_that_is_fixed_is_shown_and_not_changed(tmp_path: Path) -> None:
    fixed = Edited(tmp_path, why_fixed="it came by --watch off")
    shown = fixed.ask("config.get")
    assert (shown["why_fixed"], shown["text"]) == ("it came by --watch off", "")
    document = {"digest": digest_of(TEXT), "text": ""}
    for verb in ("config.check", "config.write"):
        assert fixed.refused(verb, document) == (409, "file_unwritable", "it came by --watch off")
    assert fixed.refused("providers.keep", {"key": "sk-1"}, "kimi")[1:] == (
        "cannot_keep",
        "it came by --watch off",
    )
    homeless = Edited(tmp_path)
    homeless.pages._source = ConfigSource()
    shown = homeless.ask("config.get")
    assert (shown["path"], shown["exists"]) == ("", False)
    assert shown["why_fixed"] == "no configuration directory: the environment sets no home directory"
    assert homeless.refused("providers.keep", {"key": "sk-1"}, "kimi") == (
        400, "cannot_keep", "the environment sets no home directory, so no key can be stored"
    )  # fmt: skip
    assert Edited(tmp_path).refused("config.check", {"digest": "another"})[:2] == (409, "file_changed")


def test_changes_are_counted_and_texts_measured(tmp_path: Path) -> None:
    edited = Edited(tmp_path)
    digest = digest_of(TEXT)
    changes = [{"path": ["models", f"m{number}"], "value": "demo/demo"} for number in range(101)]
    assert edited.refused("config.check", {"digest": digest, "changes": changes})[:2] == (
        400,
        "invalid_value",
    )
    assert edited.ask("config.check", {"digest": digest, "changes": changes[:100]})["problems"] == []
    table = "[providers.demo]\n"
    most = table + "#" * (1024 * 1024 - len(table))
    assert edited.refused("config.check", {"digest": digest, "text": most + "#"})[1] == "invalid_value"
    assert (
        edited.refused("config.check", {"digest": digest, "text": "é" * (1024 * 512 + 1)})[1]
        == "invalid_value"
    )
    assert edited.pages._wanted_text(
        page({"text": most}, edited.now)[0], edited.pages._hidden(TEXT, edited.now), b""
    )


LIST = {"object": "list", "data": [{"id": "a"}, {"id": "b"}]}


def test_keys_of_providers_are_tried_kept_and_removed_whole(tmp_path: Path) -> None:
    edited = Edited(tmp_path)
    refusal = {
        "error": {"message": "No such key.", "type": "invalid_request_error", "code": "invalid_api_key"}
    }
    edited.upstream.say(Said(401, refusal))
    found = edited.ask("providers.keep", {"key": "sk-wrong"}, "kimi")
    assert found.pop("milliseconds") >= 0
    refused = {"outcome": "refused", "verdict": "refused", "models": 0}
    sentence = "Moonshot AI rejects the key (it says: No such key.)"
    assert found == {**refused, "sentence": found["sentence"], "kept": False}
    assert found["sentence"].endswith(sentence.partition(" ")[2].partition(" ")[2])
    assert (edited.notes, (tmp_path / "wireglot/credentials").exists()) == ([], False)
    edited.upstream.say(Said(200, LIST))
    found = edited.ask("providers.keep", {"key": " sk-right "}, "kimi")
    title = catalog.provider("kimi").title
    assert found.pop("milliseconds") >= 0
    taken = {"outcome": "taken", "verdict": "good", "sentence": f"{title} accepts the key", "models": 2}
    assert found == {
        **taken,
        "kept": True,
        "applied": True,
        "off": ["demo"] if "demo" not in edited.now.providers else [],
    }
    who = {"peer": "10.0.0.1", "caller": "open", "provider": "kimi"}
    assert edited.notes == [("info", "provider key kept", who)]
    assert "sk-right" in (tmp_path / "wireglot/credentials").read_text()
    tried = edited.ask("providers.try", id="kimi")
    assert tried.pop("milliseconds") >= 0
    assert tried == taken
    assert edited.ask("providers.forget", id="kimi") == {"kept": False, "applied": True}
    assert edited.notes[1:] == [("info", "provider key removed", who)]
    assert edited.refused("providers.forget", id="kimi")[:2] == (400, "no_kept_key")
    assert edited.refused("providers.try", id="kimi") == (404, "provider_off", "no such provider is on")
    unchecked = edited.ask("providers.keep", {"key": "x" * (16 * 1024), "unchecked": True}, "kimi")
    assert unchecked == {"sentence": "kept, untried", "kept": True, "applied": True, "off": unchecked["off"]}


# All routes, and the files of the page.


def test_every_route_of_the_inspector_has_its_handler() -> None:
    with opened() as offline:
        inside: Any = offline.gateway
        inspector = inside._parts.pages.inspector
        answering = [*inspector._files, *inspector._signing, *inspector._handlers]
    assert sorted(answering) == sorted({route.verb for route in INSPECTOR_ROUTES} | {"page", "asset"})


def test_a_file_is_read_once_and_one_that_is_missing_is_looked_for_again(tmp_path: Path) -> None:
    site = Site(tmp_path)

    async def found() -> bytes | None:
        file = await site._found("page.js")
        return file.plain if file is not None else None

    assert asyncio.run(found()) is None
    (tmp_path / "page.js").write_bytes(b"first")
    assert asyncio.run(found()) == b"first"
    (tmp_path / "page.js").write_bytes(b"second")
    assert asyncio.run(found()) == b"first"


def test_why_a_key_cannot_be_kept_tried_or_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = Edited(tmp_path, TEXT + b'[providers.mine]\r\ncatalog = "kimi"\r\napi_key = "sk-own"\r\n')
    key = {"key": "sk-1"}
    for name, error in (
        ("nobody", (404, "provider_unknown", "there is no such provider")),
        ("demo", (400, "no_key_wanted", "demo: it needs no key")),
        ("mine", (400, "no_key_wanted", "mine: its key is in the configuration")),
    ):
        assert edited.refused("providers.keep", key, name) == error
    in_process = "demo runs in this process: there is no key to check"
    assert edited.refused("providers.try", id="demo")[::2] == (400, in_process)
    edited.pages._transport = None
    assert (
        edited.refused("providers.try", id="mine")[2] == "mine runs in this process: there is no key to check"
    )
    status, code, message = edited.refused("providers.keep", {**key, "unchecked": True}, "azure")
    assert (status, code) == (400, "provider_off")
    assert message.startswith("azure needs more than a key: ")
    off = Edited(tmp_path, b"[providers]\ndiscover = false\n[providers.demo]\n")
    where = f"kimi is off in {off.file}: add [providers.kimi] there first"
    assert off.refused("providers.keep", {**key, "unchecked": True}, "kimi") == (400, "provider_off", where)
    assert off.refused("providers.forget", id="kimi") == (400, "no_kept_key", "no key of kimi is stored")
    for wrong in ({"key": "x" * (16 * 1024 + 1)}, {"key": 5}, {"key": " "}, {"key": "a b"}):
        error = off.refused("providers.keep", wrong, "kimi")
        assert error == (400, "invalid_value", "key: expected a key: plain ASCII without spaces")
    off.file.write_text("[providers")
    assert off.refused("providers.keep", {**key, "unchecked": True}, "kimi")[:2] == (400, "config_invalid")
    good, bad = ({"digest": digest_of(b"[providers"), "text": text} for text in ("[models]", "[models"))
    status, code, message = off.refused("config.write", good)
    assert (status, code) == (403, "admin_needed")
    assert message.startswith(
        "the file cannot be read: replacing it from this page requires the admin secret"
    )
    assert message.count(f"Edit {off.file} instead: ") == 1
    with pytest.raises(RequestError) as refused:
        off.ask("config.write", bad, access="admin")
    found = refused.value.error
    assert (found.status, found.code, found.param) == (400, "config_invalid", "text")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    fine = Edited(tmp_path)
    monkeypatch.setattr("wireglot.gateway.inspector.config_page.keep", full)
    full_disk = "the key file: No space left on device"
    assert fine.refused("providers.keep", {**key, "unchecked": True}, "kimi") == (
        409,
        "file_unwritable",
        full_disk,
    )


# Limits.


def test_limits_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError) as unknown:
        replay({"id": "x" * 256})
    assert unknown.value.error.status == 404
    with locked() as offline:
        assert ask(offline, "session", "POST", {"secret": "x" * 4096}).status == 401
    monkeypatch.setattr("wireglot.gateway.inspector.preview._MAX_TARGETS", 3)
    made, reply = asked_page(now=KIMI)
    asyncio.run(Targets().targets(made, Viewer("admin")))
    found = answered(reply)
    assert len(found["targets"]) == 3 < found["count"]
    monkeypatch.setattr(setup_page, "_MAX_MODELS", 1)
    with opened(models={"a": "mine/m", "b": "mine/m"}) as offline:
        setup = ask(offline, "setup").json
    assert (setup["models"], setup["model_count"]) == (["a"], 2)
    chunks = [f'data: {{"x{number}": 1, "candidates": []}}\n\n' for number in range(3)]
    end = 'data: {"candidates":[{"content":{"parts":[{"text":"."}]},"finishReason":"STOP"}]}\n\n'
    text = "".join([*chunks, end])
    asked = ToTranslate("gemini", "stream", text, only=("openai-chat",))
    losses = translated(asked)["dialects"]["openai-chat"]["losses"]
    assert [loss["line"] for loss in losses][-1] == 7
    monkeypatch.setattr(playground, "_MAX_LINES", 0)
    bare = translated(asked)["dialects"]["openai-chat"]["losses"]
    assert bare == [{name: value for name, value in loss.items() if name != "line"} for loss in losses]


def test_every_token_opens_its_session() -> None:
    now = settings(server=SERVER)
    sessions = InspectorSessions(lambda: 1000.0, lambda: "operator")
    for _ in range(300):
        session, token = sessions.begin(Caller("admin"), now)
        assert sessions.read(f"wireglot-inspector={token}", "h", now) == session
        assert sessions.redeem(sign_in_ticket("operator", 1000.0)) is not None


def test_a_step_is_a_year_at_most() -> None:
    year = 366 * DAY
    assert dashboard.span_of(asked_page(f"from=1&to=1700000000&step={year}")[0]) == TimeSpan(
        1, 1_700_000_000, year
    )
    assert dashboard.span_of(asked_page("from=1&to=400&step=1")[0]).step == 1
    for step in (0, year + 1):
        with pytest.raises(RequestError, match=f"step: expected a whole number from 1 to {year}"):
            dashboard.span_of(asked_page(f"from=1&to=1700000000&step={step}")[0])


def test_models_of_a_provider_are_counted_that_can_be_named() -> None:
    models = ModelSpec("m"), ModelSpec("n"), ModelSpec("m-*"), ModelSpec("old", retired=True)
    found = setup_page._on(own("mine", "openai-chat", *models))
    assert found == {
        "name": "mine", "title": "mine", "on": True, "why": found["why"], "dialects": ["openai-chat"],
        "host": "127.0.0.1", "models": 2,
    }  # fmt: skip
