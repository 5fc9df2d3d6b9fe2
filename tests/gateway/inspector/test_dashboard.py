"""The figures of the dashboard: from what really happened, for anyone who may see it."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.faults.faults_kit import post
from tests.gateway.inspector.inspector_kit import ADMIN, Visitor, configured
from tests.gateway.kit import head, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector import dashboard
from wireglot.gateway.inspector.dashboard import (
    BY,
    By,
    DashboardPage,
    Figures,
    TimeSpan,
    as_csv,
    graded,
    plain,
    previous,
    query_of,
    span_of,
    usage_of,
    usual_step,
)
from wireglot.gateway.inspector.key_pages import beginnings, configured_key, used_of
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import ClientKey
from wireglot.gateway.targets.health import Health
from wireglot.gateway.trace.wanted import Wanted
from wireglot.stores.durations import Durations
from wireglot.stores.memory.engine import MemoryLedger
from wireglot.stores.records import KeyQuotas, Outcome, UsageQuery, UsageRow, UsageTotal, added
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import ScriptedUpstream
from wireglot_core.traces.trace import LossCounts, Row, State, Tokens

DASHBOARD = "/inspector/api/dashboard"


def row(number: int, second: int, ms: int = 100, **more) -> UsageRow:
    fields = {
        "outcome": "ok",
        "status": 200,
        "first_byte": ms // 2,
        "cost": 1500,
        "provider": "mine",
        "upstream_model": "m",
        "input": 10,
        "output": 5,
        "finished": second * 1000 + ms,
    }
    return UsageRow(id=f"req_{number}", caller="a", started=second * 1000, **{**fields, **more})


def charted(
    rows: list[UsageRow], span: TimeSpan, by: By, max_groups: int = 30, **more: Any
) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        ledger = MemoryLedger()
        await ledger.apply(rows)
        query = UsageQuery(since=span.since * 1000, until=span.until * 1000)
        return await Figures(ledger, more.pop("others", ())).charted(
            query, span, by, max_groups, whole=more.pop("whole", False)
        )

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("in_all", "in_a_step", "durations"),
    [
        (True, True, "measured"),
        (True, False, "within_5_percent"),
        (False, True, "within_5_percent"),
    ],
)
def test_durations_are_called_measured_where_all_of_them_are(in_all, in_a_step, durations):
    def total(group: str, is_exact: bool) -> UsageTotal:
        return msgspec.structs.replace(added(()), group=(group,), took=Durations({5: 1}, is_exact))

    charts = dashboard._charts(TimeSpan(0, 60, 60), 1, [total("m", in_all)], [total("0", in_a_step)], [], {})
    assert charts["durations"] == durations


def test_rows_are_counted_in_the_step_they_began_in():
    rows = [
        row(1, 1000, 100),
        row(2, 1059, 300),
        row(5, 999, 300),
        row(6, 1200, 300),
        row(3, 1060, 200, outcome="error"),
        row(4, 1190, outcome="", input=0, output=0, cost=None),
    ]
    reported = charted(rows, TimeSpan(1000, 1200, 60), "model")
    assert reported["times"] == [960, 1020, 1080, 1140]
    assert reported["series"]["requests"] == [1, 2, 0, 1]
    assert reported["series"]["errors"] == [0, 1, 0, 0]
    assert reported["series"]["latency_p50"] == [100, 200, None, None]
    assert reported["series"]["first_p95"] == [50, 150, None, None]
    total = reported["total"]
    assert (total["requests"], total["errors"], total["open"]) == (4, 1, 1)
    assert total["latency_ms"] == {"p50": 200, "p95": 300, "p99": 300}
    assert (total["input_tokens"], total["output_tokens"], total["cost"]) == (30, 15, 0.0045)


def test_every_outcome_is_counted_as_what_it_was():
    for outcome in get_args(Outcome):
        told = charted([row(1, 1000, outcome=outcome)], TimeSpan(1000, 1010, 1), "model")["total"]
        failed = outcome in ("error", "gateway_abort", "crash")
        assert (told["errors"], told["left"], told["open"]) == (
            failed,
            outcome == "client_abort",
            not outcome,
        )


def test_what_was_cached_lost_or_has_no_price_is_counted():
    rows = [row(1, 1000, cache_read=7), row(2, 1000, cost=None), row(3, 1000, losses=("seed", "top_k"))]
    told = charted(rows, TimeSpan(1000, 1010, 1), "model")
    assert (told["total"]["cached_tokens"], told["total"]["unpriced"], told["total"]["lossy"]) == (7, 1, 1)
    assert told["series"]["cached_tokens"][0] == 7
    lines = as_csv({**charted([row(1, 1000, upstream_model="", provider="")], TimeSpan(1000, 1001, 1), "provider"),
                    "by": "provider"}).decode().splitlines()  # fmt: skip
    assert lines[0].startswith("time,provider,requests,errors,left,open,")
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["1970-01-01T00:16:40Z", "", "1"],
        ["1970-01-01T00:16:40Z", "(none)", "1"],
    ]


def test_groups_are_those_asked_for_the_largest_first():
    rows = [row(number, 1000, provider="big" if number % 3 else "small") for number in range(9)]
    reported = charted(rows, TimeSpan(1000, 1010, 1), "provider")
    assert [(group["name"], group["total"]["requests"]) for group in reported["groups"]] == [
        ("big", 6),
        ("small", 3),
    ]
    many = [row(number, 1000, upstream_model=f"m{number}") for number in range(40)]
    reported = charted(many, TimeSpan(1000, 1010, 1), "model")
    assert (len(reported["groups"]), reported["more_groups"]) == (30, 10)
    assert charted(many, TimeSpan(1000, 1010, 1), "model", 1000)["more_groups"] == 0


def test_all_that_a_dashboard_is_grouped_by():
    one = row(1, 1000, caller_group="team", client="codex", agent="Explore")
    names = {by: charted([one], TimeSpan(1000, 1010, 1), by)["groups"][0]["name"] for by in BY}
    assert names == {
        "model": "m",
        "provider": "mine",
        "key": "a",
        "group": "team",
        "client": "codex",
        "agent": "Explore",
    }


def test_times_of_groups_in_each_step_are_in_files():
    rows = [row(1, 1000, 100), row(2, 1001, 300)]
    shown = charted(rows, TimeSpan(1000, 1002, 1), "model")["groups"][0]
    assert (shown["series"]["latency_p50"], shown["series"]["requests"]) == ([None, None], [1, 1])
    assert shown["total"]["latency_ms"]["p50"] == 100
    filed = charted(rows, TimeSpan(1000, 1002, 1), "model", whole=True)["groups"][0]
    assert filed["series"]["latency_p50"] == [100, 300]


def test_rows_of_other_machines_are_added_to_the_sums():
    own, others = [row(1, 1000, 100, losses=("seed",))], [row(2, 1001, 300, losses=("seed",)), row(3, 2000)]
    reported = charted(own, TimeSpan(1000, 1010, 5), "model", others=others)
    assert reported["total"]["requests"] == 2
    assert reported["series"]["requests"] == [2, 0]
    assert reported["groups"][0]["total"]["latency_ms"]["p95"] == 300
    assert reported["losses"] == [{"feature": "seed", "requests": 2}]


def test_the_time_before_is_as_long_and_seen_whole():
    asked = UsageQuery(since=5000, until=7000, caller="a")
    assert previous(asked, Viewer("admin")) == UsageQuery(since=3000, until=5000, caller="a")
    assert previous(asked, Viewer("key", "a", created=3000)) == UsageQuery(since=3000, until=5000, caller="a")
    assert previous(asked, Viewer("key", "a", created=3001)) is None
    assert previous(UsageQuery(since=1000, until=7000), Viewer("admin")) is None


def test_budgets_and_what_is_left_of_them_are_for_those_they_bind():
    group = "[groups.team.shared]\ntokens_per_month = 50000"
    with configured(f'admin_secret = "{ADMIN}"', group) as gateway:
        admin, ada = Visitor(gateway), Visitor(gateway)
        admin.headers["authorization"] = f"Bearer {ADMIN}"
        keys: list[dict[str, Any]] = [
            {"name": "ada", "group": "team", "tokens_per_day": 1000},
            {"name": "bob", "cost_per_month": 2.5},
            {"name": "eve"},
        ]
        made = [admin.post("/v1/admin/keys", key, x_wireglot_csrf=None, origin=None) for key in keys]
        ada.headers["authorization"] = f"Bearer {made[0].json()['key']}"
        body = {"model": "demo", "messages": [{"role": "user", "content": "x"}]}
        assert ada.post("/v1/chat/completions", body, x_wireglot_csrf=None).status == 200
        found = admin.get(DASHBOARD).json()["budgets"]
        assert [
            (each["of"], each["name"], each["unit"], each["period"], each["limit"]) for each in found
        ] == [
            ("key", "ada", "tokens", "day", 1000),
            ("group", "team", "tokens", "month", 50000),
            ("key", "bob", "cost", "month", 2.5),
        ]
        assert 0 < found[0]["used"] == 1000 - found[0]["left"] == found[1]["used"]
        assert (found[2]["used"], found[2]["left"]) == (0, 2.5)
        own = ada.get(DASHBOARD).json()
        assert [each["name"] for each in own["budgets"]] == ["ada", "team"]
        assert "health" not in own


def test_losses_are_counted_by_feature_and_by_grade():
    rows = [row(1, 1000, losses=("top_k", "seed")), row(2, 1000, losses=("top_k",)), row(3, 1000)]
    reported = charted(rows, TimeSpan(1000, 1010, 1), "model")
    assert reported["losses"] == [{"feature": "top_k", "requests": 2}, {"feature": "seed", "requests": 1}]
    known = charted([row(1, 1000, losses=("image", "sampling.seed"))], TimeSpan(1000, 1010, 1), "model")
    assert known["losses"] == [
        {"feature": "image", "requests": 1},
        {"feature": "sampling.seed", "requests": 1, "grade": "degraded"},
    ]
    seen = [Row(id="1", at=1.0, losses=LossCounts(serious=1, harmless=2)), Row(id="2", at=1.0)]
    assert graded(seen) == {"serious": 1, "degraded": 0, "harmless": 2}


def test_grades_are_counted_of_what_the_filters_choose():
    rows = [
        Row(id="1", at=1001.0, key="ada", model="m", client="codex", losses=LossCounts(serious=1)),
        Row(id="2", at=1002.0, key="bob", model="m", client="codex", losses=LossCounts(harmless=4)),
        Row(id="3", at=1003.0, key="ada", model="other", losses=LossCounts(degraded=2), state="failed"),
    ]

    async def listed(wanted: Wanted) -> list[Row]:
        assert (wanted.since, wanted.until, wanted.limit) == (1000.0, 2000.0, 5000)
        return rows

    unused: Any = None
    traces: Any = SimpleNamespace(listed=listed)
    keys: Any = SimpleNamespace(clients=lambda: [ClientKey("ada", "0" * 64, group="team")])
    page = DashboardPage(unused, unused, Health(), unused, traces=traces, quotas=unused, keys=keys)

    def grades(**chosen: Any) -> Any:
        query = UsageQuery(since=1_000_000, until=2_000_000, **chosen)
        return asyncio.run(page._grades(settings(), query))

    none = {"serious": 0, "degraded": 0, "harmless": 0}
    assert grades() == {"grades": {"serious": 1, "degraded": 2, "harmless": 4}, "graded": 3, "rejected": 1}
    assert grades(model="m", client="codex") == {
        "grades": none | {"serious": 1, "harmless": 4},
        "graded": 2,
        "rejected": 0,
    }
    assert grades(group="team") == {
        "grades": none | {"serious": 1, "degraded": 2},
        "graded": 2,
        "rejected": 1,
    }
    assert grades(caller="bob", model="other") == {"grades": none, "graded": 0, "rejected": 0}


@given(st.integers(0, 2_000_000_000), st.integers(1, 400 * 86_400))
def test_a_usual_step_makes_a_chart_that_can_be_read(since, seconds):
    step = usual_step(since, since + seconds)
    assert len(TimeSpan(since, since + seconds, step).times) <= 501


def test_no_name_is_a_formula_in_a_spreadsheet():
    for name in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =cmd|' /C calc'!A0", "%0a=1", "|x"):
        assert plain(name).startswith("'"), name
    assert plain("kimi-k3") == "kimi-k3"
    reported = charted(
        [row(1, 1000, upstream_model='=HYPERLINK("http://x")')], TimeSpan(1000, 1001, 1), "model"
    )
    lines = list(csv.reader(io.StringIO(as_csv({**reported, "by": "model"}).decode())))
    assert (lines[0][:3], lines[0][-1]) == (["time", "model", "requests"], "currency")
    assert lines[2][:3] == ["1970-01-01T00:16:40Z", '\'=HYPERLINK("http://x")', "1"]


@given(st.text(max_size=40))
def test_whatever_a_model_is_called_a_cell_is_one_cell_and_no_formula(name):
    reported = charted([row(1, 1000, upstream_model=name)], TimeSpan(1000, 1001, 1), "model")
    lines = list(csv.reader(io.StringIO(as_csv({**reported, "by": "model"}).decode("utf-8", "replace"))))
    assert {len(line) for line in lines} == {len(lines[0])}
    assert not lines[2][1].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_what_was_asked_is_on_the_dashboard():
    with LiveGateway() as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        for number in range(3):
            assert visitor.post("/inspector/api/ask", {"text": f"number {number}"}).json()["status"] == 200
        reported = visitor.get(f"{DASHBOARD}?from=1h&by=provider").json()
        assert reported["total"]["requests"] == 3
        assert reported["total"]["latency_ms"]["p99"] is not None
        assert sum(reported["series"]["requests"]) == 3
        assert [group["name"] for group in reported["groups"]] == ["demo"]
        assert reported["health"]["providers"][0]["name"] == "demo"
        assert (reported["health"]["queue"], reported["health"]["store_down"]) == (0, False)
        assert visitor.get(f"{DASHBOARD}?provider=nobody").json()["total"]["requests"] == 0
        whole = visitor.get(f"{DASHBOARD}?from=all&by=client").json()
        assert (whole["total"]["requests"], whole["previous"], whole["durations"]) == (3, None, "measured")
        assert sum(whole["series"]["requests"]) == 3
        assert visitor.get(f"{DASHBOARD}?from=1h").json()["previous"]["requests"] == 0
        saved = visitor.get(f"{DASHBOARD}?format=json&from=1h")
        assert saved.headers["content-disposition"] == 'attachment; filename="wireglot-dashboard.json"'
        assert saved.json()["total"]["requests"] == 3
        table = visitor.get(f"{DASHBOARD}?format=csv")
        assert table.headers["content-type"] == "text/csv; charset=utf-8"
        assert table.headers["content-disposition"].startswith("attachment")


def test_what_failed_before_a_provider_was_called_is_counted_beside_the_figures():
    with LiveGateway() as gateway:
        visitor = Visitor(gateway).browse()
        visitor.look()
        assert visitor.post("/inspector/api/ask", {"text": "hello"}).json()["status"] == 200
        for model in ("nowhere/model", "nothing"):
            body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]}).encode()
            assert post(gateway.port, "/v1/chat/completions", body).status == 404
        reported = visitor.get(f"{DASHBOARD}?from=1h").json()
        assert (reported["total"]["requests"], reported["rejected"]) == (1, 2)


def test_breakers_cool_downs_and_losses_are_reported():
    with ScriptedUpstream() as upstream, LiveGateway.before(upstream, "openai-chat") as gateway:
        health = gateway.process.gateway.health

        async def cool() -> None:
            now = asyncio.get_running_loop().time()
            health.cool("mine", "account-1", "m", now + 60)
            health.reject("mine", "account-2", now)

        gateway.call(cool())
        visitor = Visitor(gateway)
        body = {"model": "m", "max_tokens": 5, "top_k": 4, "messages": [{"role": "user", "content": "x"}]}
        assert visitor.post("/v1/messages", body, x_wireglot_csrf=None).status == 200
        reported = visitor.get(DASHBOARD).json()
        (mine,) = reported["health"]["providers"]
        assert [(rest["model"], rest["account"]) for rest in mine["cooling"]] == [("m", "account-1")]
        assert [rest["account"] for rest in mine["rejected"]] == ["account-2"]
        assert reported["losses"][0]["requests"] == 1
        assert reported["health"]["losses"][0].keys() == {"feature", "grade", "requests"}


@rows(
    ("query", "field"),
    [
        ("from=yesterday", "from"), ("to=never", "to"), ("from=1h&to=2h", "to"), ("step=0", "step"), ("step=x", "step"),
        ("from=7d&step=1", "step"), ("by=colour", "by"), ("format=xml", "format"), ("from=99999999999999", "from"),
        ("from=-1", "from"), ("step=99999999999999999999", "step"),
    ],
)  # fmt: skip
def test_a_bad_question_names_its_field(open_visitor, query, field):
    answer = open_visitor.get(f"{DASHBOARD}?{query}")
    assert (answer.status, answer.json()["error"]["param"]) == (400, field)


@pytest.fixture(scope="module")
def open_visitor():
    with configured(f'admin_secret = "{ADMIN}"') as gateway:
        yield Visitor(gateway)


def test_an_empty_dashboard_is_one_too(open_visitor):
    reported = open_visitor.get(f"{DASHBOARD}?from=7d").json()
    assert reported["total"]["latency_ms"] == {"p50": None, "p95": None, "p99": None}
    assert set(reported["series"]["requests"]) == {0}


def page_of(query: str) -> PageRequest:
    return PageRequest(
        settings=settings(),
        caller=LOCAL,
        head=head("GET", DASHBOARD, query),
        asked=Asked("openai-chat", "inspector"),
        body=b"",
        reply=CollectedReply(),
        record=ExchangeRecord("req_1", 0.0),
    )


def asked_by(viewer: Viewer, query: str = "", since: int = 100) -> UsageQuery:
    return query_of(page_of(query), TimeSpan(since, since + 3600, 60), viewer)


def test_a_span_has_as_many_steps_as_can_be_shown_and_no_more():
    assert span_of(page_of("from=1700000000&to=1700000500&step=1")) == TimeSpan(1700000000, 1700000500, 1)
    with pytest.raises(RequestError, match="step: expected one that makes at most 500"):
        span_of(page_of("from=1700000000&to=1700000501&step=1"))
    with pytest.raises(RequestError, match="to: expected a time after from"):
        span_of(page_of("from=1700000000&to=1700000000"))
    usual = span_of(page_of(""))
    assert (usual.until - usual.since, usual.step) == (3601, 60)


SCRAPED = b"""\
# HELP wireglot_queue Requests waiting in the queue for all requests (limits.queue).
wireglot_queue{worker="1"} 2
wireglot_queue{worker="2"} 3
wireglot_requests_in_flight 7
wireglot_store_down 1
wireglot_breaker_open{route="mine/m"} 1
wireglot_breaker_open{route="mine/quiet"} 0
wireglot_breaker_open{route="mineral/m"} 1
wireglot_upstream_errors_total{provider="mine",kind="odd \\"kind\\"\\n"} 4
wireglot_upstream_errors_total{provider="other",kind="server"} 5
wireglot_losses_total{feature="refusal",action="dropped"} 1.5e1
"""


def test_the_condition_is_reported_as_metrics_and_health_have_it():
    health = Health()

    async def scrape() -> bytes:
        return SCRAPED

    async def reported():
        now = asyncio.get_running_loop().time()
        health.cool("mine", "spare", "m", now + 30)
        health.reject("mine", "main", now)
        unused: Any = None
        page = DashboardPage(unused, unused, health, scrape, traces=unused, quotas=unused, keys=unused)
        settings: Any = SimpleNamespace(providers={"mine": None, "calm": None})
        return await page._condition(settings)

    condition = asyncio.run(reported())
    mine, calm = condition["providers"]
    assert (mine["name"], mine["breakers"], mine["errors"]) == ("mine", ["mine/m"], {'odd "kind"\n': 4.0})
    assert [(each["model"], each["account"]) for each in mine["cooling"]] == [("m", "spare")]
    assert [each["account"] for each in mine["rejected"]] == ["main"]
    assert calm == {"name": "calm", "breakers": [], "cooling": [], "rejected": [], "errors": {}}
    assert (condition["queue"], condition["in_flight"], condition["store_down"]) == (5, 7, True)
    assert condition["losses"] == [{"feature": "refusal", "action": "dropped", "requests": 15.0}]


def test_one_dashboard_is_added_up_at_a_time_also_where_one_fails():
    """Each may read many rows."""

    class Slow(DashboardPage):
        def __init__(self) -> None:
            usage: Any = SimpleNamespace(flush=lambda _: asyncio.sleep(0))
            unused: Any = None
            super().__init__(usage, unused, Health(), unused, traces=unused, quotas=unused, keys=unused)
            self.turns: list[asyncio.Future[None]] = []

        async def _reported(self, *_: Any, **__: Any) -> Any:
            self.turns.append(asyncio.get_running_loop().create_future())
            await self.turns[-1]

    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def shown() -> list[int]:
        page, counts = Slow(), []
        tasks = [asyncio.ensure_future(page.dashboard(page_of(""), Viewer("key", "a"))) for _ in range(3)]
        for _ in tasks:
            await settle()
            counts.append(len(page.turns))
            page.turns[-1].set_exception(ValueError("broken"))
        assert all(
            isinstance(each, ValueError) for each in await asyncio.gather(*tasks, return_exceptions=True)
        )
        return counts

    assert asyncio.run(shown()) == [1, 2, 3]


def test_a_key_sees_its_own_figures_since_it_was_made():
    key = Viewer("key", "ada", created=150_000)
    assert asked_by(key, "key=bob") == UsageQuery(caller="ada", since=150_000, until=3_700_000)
    assert asked_by(key, since=200).since == 200_000
    admin = asked_by(Viewer("admin"), "key=bob&model=m&provider=p")
    assert admin == UsageQuery(caller="bob", model="m", provider="p", since=100_000, until=3_700_000)
    assert asked_by(Viewer("open")).caller is None


def test_a_viewer_sees_what_its_key_did_since_it_was_made():
    key = Viewer("key", "ada", created=150_000)
    assert key.sees("ada", 150.0)
    assert key.sees("ada")
    assert not key.sees("ada", 149.999)
    assert not key.sees("bob", 150.0)
    assert not key.sees_all
    for access in ("open", "admin"):
        assert Viewer(access).sees("bob", 1.0)
        assert Viewer(access).sees_all
    with pytest.raises(RequestError, match="its own exchanges"):
        key.need_all("recording")
    Viewer("open").need_all("recording")
    with pytest.raises(RequestError, match="admin secret"):
        Viewer("open").need_admin()
    Viewer("admin").need_admin()


def test_the_usual_step_is_the_smallest_that_makes_at_most_120():
    """Whole hours beyond six of them, and whole days beyond two weeks: those are added up."""
    hour, day = 3600, 86_400
    ends = (120, 600, 1200, hour, 2 * hour, 6 * hour, 7 * hour, day, 7 * day, 14 * day, 15 * day, 90 * day)
    steps = (1, 5, 10, 30, 60, 300, hour, hour, 2 * hour, 3 * hour, day, day)
    assert tuple(usual_step(7, 7 + end) for end in ends) == steps
    assert [usual_step(0, years * 365 * day) // day for years in (1, 5, 20, 100)] == [7, 28, 28, 73]


def test_what_is_added_up_of_a_row_is_what_it_says():
    row = Row(
        id="req_1", at=1000.25, state="failed", key="ada", asked="fast", provider="mine", model="m", total_ms=12.6,
        first_ms=3.4, cost=7, features=["refusal"], client="codex", agent_name="Explore", session="s",
        tokens=Tokens(input=100, output=50, cached=30, cache_written=20, reasoning=5),
    )  # fmt: skip
    assert usage_of(row, "team") == UsageRow(
        id="req_1", caller="ada", started=1_000_250, finished=1_000_263, model="fast", provider="mine",
        upstream_model="m", outcome="error", first_byte=3, cost=7, losses=("refusal",), input=50, cache_read=30,
        cache_write=20, output=45, reasoning=5, client="codex", agent="Explore", session="s", caller_group="team",
    )  # fmt: skip
    bare = usage_of(Row(id="req_2", at=1.0, state="running"))
    assert (bare.started, bare.finished, bare.first_byte, bare.outcome) == (1000, 1000, 0, "")
    assert (bare.input, bare.output, bare.cost) == (0, 0, None)
    states: dict[State, str] = {"done": "ok", "left": "client_abort"}
    for state, outcome in states.items():
        assert usage_of(Row(id="req_3", at=1.0, state=state)).outcome == outcome


def test_a_configured_key_has_its_limits_in_money_and_in_tokens():
    limits = KeyQuotas(cost_per_day=2_500_000, tokens_per_day=7)
    key = ClientKey("ada", "0" * 64, models=("m",), expires=5_000, limits=limits)
    reported = configured_key(key, now=4.9)
    assert (reported["cost_per_day"], reported["tokens_per_day"], reported["cost_per_month"]) == (
        2.5,
        7,
        None,
    )
    assert (reported["name"], reported["models"], reported["state"]) == ("ada", ["m"], "active")
    assert configured_key(key, now=5.0)["state"] == "expired"
    assert configured_key(ClientKey("bob", "0" * 64), now=5.0)["state"] == "active"
    assert used_of("ada", {"ada": (3, 1_500_000)}, {"ada": (9, 4_500_000), "bob": (1, 1)}) == {
        "tokens_per_day": 3, "tokens_per_month": 9, "cost_per_day": 1.5, "cost_per_month": 4.5
    }  # fmt: skip
    # 2026-11-18T01:32:44Z
    assert beginnings(1_794_965_564.0) == (1_794_960_000_000, 1_793_491_200_000)
