"""Usage as it is asked for and reported: parameters, sums and money, without a server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from tests.tiers import rows
from wireglot.gateway.errors import RequestError
from wireglot.gateway.state.ledger.report import BadParameter, money, query_of, report
from wireglot.gateway.state.pages import UsagePages
from wireglot.stores.durations import Durations
from wireglot.stores.records import Grouping, UsageQuery, UsageTotal

NOW = 1_800_000_000.5
MINUTE, HOUR, DAY, WEEK = 60_000, 3_600_000, 86_400_000, 604_800_000
NOW_MS = 1_800_000_000_500


# --- what is asked


def test_unasked_it_is_the_last_month_by_day_and_model() -> None:
    assert query_of({}, NOW) == UsageQuery(("day", "model"), since=NOW_MS - 30 * DAY)
    blank = {"group_by": "", "start": "", "end": "", "key": "", "model": "", "provider": "", "session": ""}
    assert query_of(blank, NOW) == query_of({}, NOW)


def test_every_parameter_chooses_its_own() -> None:
    given = {
        "group_by": "key,model,provider,day,session,outcome",
        "start": "1000",
        "end": "2000",
        "key": "ann",
        "model": "m",
        "provider": "p",
        "session": "s",
    }
    groups: tuple[Grouping, ...] = ("caller", "model", "provider", "day", "session", "outcome")
    assert query_of(given, NOW) == UsageQuery(groups, 1_000_000, 2_000_000, "ann", "m", "p", "s")


def test_whatever_a_ledger_groups_by_can_be_asked_for_by_its_name() -> None:
    spoken = {"caller": "key", "caller_group": "group"}
    for group in get_args(Grouping):
        if group == "step":
            continue  # of the dashboards
        assert query_of({"group_by": spoken.get(group, group)}, NOW).groups == (group,)


def test_groups_come_in_their_order_and_once() -> None:
    assert query_of({"group_by": " model , day,,model "}, NOW).groups == ("model", "day")


@rows(
    ("text", "since"),
    [
        ("5m", NOW_MS - 5 * MINUTE),
        ("12h", NOW_MS - 12 * HOUR),
        ("7d", NOW_MS - 7 * DAY),
        ("4w", NOW_MS - 4 * WEEK),
        ("999999m", NOW_MS - 999_999 * MINUTE),
        ("999999w", 0),
        ("0", 0),
        ("1700000000", 1_700_000_000_000),
        ("99999999999", 99_999_999_999_000),
        ("1970-01-02", DAY),
        ("2026-03-01", 1_772_323_200_000),
        ("1969-12-31", 0),
    ],
)
def test_a_time_is_a_number_a_day_or_a_time_ago(text: str, since: int) -> None:
    assert query_of({"start": text}, NOW).since == since


def test_a_day_as_the_end_is_all_of_it() -> None:
    query = query_of({"start": "1970-01-02", "end": "1970-01-02"}, NOW)
    assert (query.since, query.until) == (DAY, 2 * DAY)
    assert query_of({"start": "2d", "end": "1d"}, NOW).until == NOW_MS - DAY


@rows(
    ("given", "name"),
    [
        ({"colour": "red"}, "colour"),
        ({"group_by": "day,colour"}, "group_by"),
        ({"start": "yesterday"}, "start"),
        ({"start": "1000000m"}, "start"),
        ({"start": "5y"}, "start"),
        ({"start": "-5"}, "start"),
        ({"start": "100000000000"}, "start"),
        ({"start": "²"}, "start"),
        ({"start": "2026-13-01"}, "start"),
        ({"end": "9999-12-31"}, "end"),
        ({"start": "2000", "end": "2000"}, "end"),
        ({"start": "2000", "end": "1999"}, "end"),
        ({"end": "31d"}, "end"),
    ],
)
def test_what_makes_no_sense_is_named(given: dict[str, str], name: str) -> None:
    with pytest.raises(BadParameter) as wrong:
        query_of(given, NOW)
    assert wrong.value.name == name
    assert str(wrong.value).startswith(f"{name}: expected ")


def test_an_end_right_after_the_start_is_one() -> None:
    assert query_of({"start": "2000", "end": "2001"}, NOW).until == 2_001_000


def test_without_a_time_it_is_now() -> None:
    assert query_of({"start": "1d"}).since > NOW_MS - 1000 * DAY


# --- what is reported


@rows(
    ("amount", "reported"),
    [
        (0, "0.000000"),
        (1, "0.000001"),
        (999_999, "0.999999"),
        (1_000_000, "1.000000"),
        (12_345_678, "12.345678"),
        (-1, "-0.000001"),
        (-2_500_000, "-2.500000"),
    ],
)
def test_money_is_reported_to_the_last_millionth(amount: int, reported: str) -> None:
    assert money(amount) == reported


TOKENS = {"input": 1, "cache_read": 20, "cache_write": 300, "output": 4000, "reasoning": 50_000}


def total(*group: str, **more: Any) -> UsageTotal:
    fields: dict[str, Any] = {
        "requests": 10,
        "failed": 2,
        "open": 3,
        "tokens": TOKENS,
        "cost": 1_500_000,
        "unpriced": 1,
        "milliseconds": 1000,
        "left": 1,
        "lossy": 0,
        "took": Durations({120: 7}),
        "first": 1_700_000_000_999,
        "last": 1_700_000_001_999,
    }
    return UsageTotal(group, **{**fields, **more})


class Books:
    """A ledger that has these sums, and tells what it was asked."""

    def __init__(self, *totals: UsageTotal) -> None:
        self.found = list(totals)
        self.asked: list[UsageQuery] = []

    async def totals(self, query: UsageQuery) -> list[UsageTotal]:
        self.asked.append(query)
        return self.found


def reported(books: Books, query: UsageQuery) -> dict[str, Any]:
    return asyncio.run(report(books, query, "EUR"))  # type: ignore[arg-type]  # as much of one as it needs


SUM = {
    "requests": 10,
    "succeeded": 5,
    "failed": 2,
    "open": 3,
    "input_tokens": 1,
    "cache_read_tokens": 20,
    "cache_write_tokens": 300,
    "output_tokens": 4000,
    "reasoning_tokens": 50_000,
    "total_input_tokens": 321,
    "total_output_tokens": 54_000,
    "total_tokens": 54_321,
    "cost_micros": 1_500_000,
    "cost": "1.500000",
    "unpriced_requests": 1,
    "mean_ms": 143,
    "p50_ms": 120,
    "first": 1_700_000_000,
    "last": 1_700_000_001,
}


def test_a_report_is_a_line_for_each_group_and_one_for_all() -> None:
    books = Books(total("ann", "m"), total("bob", "m", requests=20, first=5_000, took=Durations({90: 17})))
    query = UsageQuery(("caller", "model"), 5_000, 9_000, caller="x")
    bobs = {"requests": 20, "succeeded": 15, "mean_ms": 59, "p50_ms": 90, "first": 5}
    assert reported(books, query) == {
        "object": "usage.list",
        "currency": "EUR",
        "start": 5,
        "end": 9,
        "group_by": ["key", "model"],
        "data": [{"key": "ann", "model": "m", **SUM}, {"key": "bob", "model": "m", **SUM, **bobs}],
        "total": {
            **{name: 2 * value for name, value in SUM.items() if isinstance(value, int)},
            "requests": 30,
            "succeeded": 20,
            "cost": "3.000000",
            "mean_ms": 83,
            "p50_ms": 90,
            "first": 5,
            "last": 1_700_000_001,
        },
        "durations": "measured",
    }
    assert books.asked == [query]


def test_a_report_of_nothing_is_zeros() -> None:
    found = reported(Books(), UsageQuery(("day",)))
    assert (found["data"], found["end"], found["start"]) == ([], None, 0)
    assert found["total"].pop("cost") == "0.000000"
    assert set(found["total"].values()) == {0}
    assert "has_more" not in found


@rows(
    ("cost", "unpriced", "known"),
    [(0, 0, 0), (0, 1, None), (1, 1, 1), (5, 0, 5), (5, 1, 5)],
)
def test_what_nobody_knows_the_price_of_is_not_free(cost: int, unpriced: int, known: int | None) -> None:
    found = reported(Books(total("d", cost=cost, unpriced=unpriced)), UsageQuery(("day",)))["total"]
    assert found["cost_micros"] == known
    assert found["cost"] == (None if known is None else money(known))


def test_requests_that_are_still_open_have_no_mean() -> None:
    assert reported(Books(total("d", requests=3, failed=0)), UsageQuery(("day",)))["total"]["mean_ms"] == 0


def test_a_report_is_not_endless_and_says_where_it_was_cut() -> None:
    line = total("d")
    for lines, more in ((10_000, None), (10_001, True)):
        found = reported(Books(*([line] * lines)), UsageQuery(("day",)))
        assert (len(found["data"]), found.get("has_more")) == (10_000, more)


def test_what_a_time_may_be_is_said() -> None:
    with pytest.raises(BadParameter) as wrong:
        query_of({"start": "yesterday"}, NOW)
    assert str(wrong.value) == ("start: expected unix seconds, YYYY-MM-DD or a time ago like 12h, 7d, 4w")


def test_sums_of_other_groups_than_were_asked_for_are_not_reported_as_those() -> None:
    with pytest.raises(ValueError, match="zip"):
        reported(Books(total("ann", "m")), UsageQuery(("day",)))


# --- the page


class Page:
    """As much of a request for a page as this one looks at."""

    def __init__(self, query: str, operation: str = "usage", workers: int = 1) -> None:
        self.head = SimpleNamespace(query=query)
        self.asked = SimpleNamespace(operation=operation)
        self.caller = SimpleNamespace(name="ann", key=None)
        self.settings = SimpleNamespace(server=SimpleNamespace(workers=workers), currency="EUR")
        self.sent: list[dict[str, Any]] = []

    def send(self, document: dict[str, Any]) -> None:
        self.sent.append(document)


class Usage:
    def __init__(self) -> None:
        self.flushed = 0

    async def flush(self) -> bool:
        self.flushed += 1
        return True


def asked(page: Page) -> UsageQuery:
    """What the books are asked for a page, after the store has been given what is known."""
    books, usage = Books(total("d", "m")), Usage()
    pages: Any = UsagePages(usage, books)  # type: ignore[arg-type]  # as much of both as it needs
    asyncio.run(pages.usage(page))
    assert usage.flushed == 1
    assert [document["currency"] for document in page.sent] == ["EUR"]
    return books.asked[0]


@rows(
    ("query", "operation", "caller"),
    [
        ("", "usage", "ann"),
        ("key=bob", "usage", "ann"),
        ("key=", "usage", "ann"),
        ("", "admin", None),
        ("key=bob", "admin", "bob"),
        ("key=", "admin", None),
    ],
)
def test_a_caller_sees_its_own_and_the_admin_whose_it_asks_for(
    query: str, operation: str, caller: str | None
) -> None:
    assert asked(Page(query, operation)).caller == caller


def test_a_parameter_that_is_given_twice_is_a_list() -> None:
    assert asked(Page("group_by=day&group_by=model&start=1000")).groups == ("day", "model")


@pytest.mark.parametrize(("workers", "waits"), [(1, []), (2, [0.15]), (3, [0.15])])
def test_the_rows_of_other_workers_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, workers: int, waits: list[float]
) -> None:
    waited: list[float] = []

    async def noted(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("wireglot.gateway.state.pages.asyncio.sleep", noted)
    asked(Page("", workers=workers))
    assert waited == waits


def test_a_bad_parameter_is_an_error_that_names_it() -> None:
    with pytest.raises(RequestError) as refused:
        asked(Page("colour=red"))
    error = refused.value.error
    assert (refused.value.kind, error.code, error.param) == ("bad", "invalid_value", "colour")
