"""Charts that draw what there is, tell its numbers, and say what to do where there is nothing."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.given import documents, row

pytestmark = pytest.mark.whole  # a browser of its own; test_flows.py looks at the figures at every change
DASHBOARD = ("GET", "/dashboard")
AT = 30
"""The one moment of which anything is known."""


def _only(series: dict[str, list[float]]) -> dict[str, list[float | None]]:
    """Nothing but one moment: percentiles are not known before and after it, what is counted is nought."""
    return {
        name: [value if at == AT else (None if "_p" in name else 0) for at, value in enumerate(values)]
        for name, values in series.items()
    }


def _one_moment(page: dict[str, Any]) -> dict[str, Any]:
    groups = [{**group, "series": {**_only(group["series"]), "errors": [0] * 60}} for group in page["groups"]]
    return {**page, "series": _only(page["series"]), "groups": groups}


def _drawn(page: Page, title: str) -> int:
    """How many dots of a canvas have the colour of its first series."""
    canvas = page.get_by_role("figure").filter(has=page.get_by_role("heading", name=title, exact=True))
    found: int = canvas.locator("canvas").evaluate(
        """canvas => {
            const colour = getComputedStyle(document.documentElement).getPropertyValue('--series-1').trim()
            const wanted = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16))
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
            let count = 0
            for (let at = 0; at < data.length; at += 4)
                if (data[at + 3] > 200 && wanted.every((each, place) => Math.abs(data[at + place] - each) < 12)) count++
            return count
        }"""
    )
    return found


def test_without_prices_no_cost_is_reported(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = stand_in.documents[DASHBOARD]
    nothing = {"cost": 0, "unpriced": page["total"]["requests"] - page["total"]["open"]}
    free = {**page["series"], "cost": [0] * 60}
    groups = [{**each, "total": {**each["total"], **nothing}, "series": free} for each in page["groups"]]
    stand_in.documents[DASHBOARD] = {
        **page,
        "total": {**page["total"], **nothing},
        "series": free,
        "groups": groups,
    }
    shown = opened(stand_in.origin + "/inspector/dash")
    expect(shown.get_by_text("No prices are known for these requests.")).to_be_visible()
    expect(shown.locator(".figure").filter(has_text="Cost")).to_contain_text("Cost, USDnot known")
    expect(shown.get_by_text("$0")).to_have_count(0)


def test_a_single_moment_is_drawn_in_every_chart(stand_in, opened):
    stand_in.documents |= documents(time.time())
    stand_in.documents[DASHBOARD] = _one_moment(stand_in.documents[DASHBOARD])
    page = opened(stand_in.origin + "/inspector/dash")
    expect(page.locator("canvas")).to_have_count(5)
    for title in ("Requests", "Time to the last byte", "Time to the first token", "Tokens", "Cost"):
        assert _drawn(page, title) > 10, title
    expect(page.get_by_text("None failed in this time.")).to_be_visible()
    page.get_by_text("Numbers of Time to the last byte").click()
    numbers = page.get_by_role("group", name="Time to the last byte, numbers")
    expect(numbers.get_by_role("row")).to_have_count(2)


def test_the_numbers_of_a_moment_are_reported_where_one_points(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector/dash")
    chart = page.get_by_role("figure").filter(has=page.get_by_role("heading", name="Requests", exact=True))
    expect(chart.locator(".chart-legend strong")).to_have_count(0)
    chart.locator(".u-over").hover()
    expect(chart.locator(".chart-legend strong").first).to_have_text(re.compile(r"\d"))


def test_a_dashboard_of_nothing_says_what_to_do(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = stand_in.documents[DASHBOARD]
    stand_in.documents[DASHBOARD] = {
        **page,
        "total": {"requests": 0, "errors": 0},
        "series": {},
        "groups": [],
        "losses": [],
        "grades": {},
    }
    shown = opened(stand_in.origin + "/inspector/dash")
    expect(shown.get_by_role("heading", name="No requests in this time")).to_be_visible()
    expect(shown.get_by_role("link", name="Set-up").nth(1)).to_be_visible()


def test_budgets_show_what_is_left_and_the_fullest_comes_first(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector/dash")
    rows = page.get_by_role("group", name="Budgets").get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("ada")
    expect(rows.nth(1)).to_contain_text("used up")
    expect(rows.nth(2)).to_contain_text("$68.80")
    expect(page.get_by_text("within 5 % of the measured values")).to_be_visible()


def test_figures_are_compared_with_the_time_before(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector/dash")
    expect(page.locator(".figure").filter(has_text="Requests")).to_contain_text("▲ 24 % vs. before")
    expect(page.locator(".figure").filter(has_text="Cost, USD")).to_contain_text("▼ 24 % vs. before")


def test_a_group_becomes_a_filter_that_the_address_and_the_files_have(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector/dash?range=30d")
    page.get_by_role("link", name="Only model gpt-5.5-codex").click()
    expect(page).to_have_url(re.compile(r"dash\?range=30d&by=key&model=gpt-5.5-codex"))
    for name in ("CSV", "JSON"):
        link = page.get_by_role("link", name=name, exact=True)
        expect(link).to_have_attribute(
            "href", re.compile(f"from=30d.*model=gpt-5.5-codex.*format={name.lower()}")
        )
    page.get_by_role("button", name="Remove the filter: Model gpt-5.5-codex").click()
    expect(page).to_have_url(re.compile(r"dash\?range=30d&by=key$"))


def test_a_range_may_have_one_day_and_all_money_has_the_gateways_currency(stand_in, opened):
    stand_in.documents |= documents(time.time())
    session = stand_in.documents["GET", "/session"]
    stand_in.documents["GET", "/session"] = {**session, "currency": "EUR"}
    stand_in.rows = [row(number, time.time()) for number in range(3)]
    page = opened(stand_in.origin + "/inspector/dash")
    expect(page.locator(".figure").filter(has_text="Cost, EUR")).to_contain_text("€")
    page.get_by_label("to", exact=True).fill("2026-11-03")
    expect(page).to_have_url(re.compile(r"dash\?to=2026-11-03$"))
    link = page.get_by_role("link", name="CSV", exact=True)
    expect(link).to_have_attribute("href", re.compile("from=all&to=2026-11-03"))
    expect(page.get_by_role("button", name="1 h", exact=True)).to_have_attribute("aria-pressed", "false")
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.locator(".cell-cost").filter(has_text="€").first).to_be_visible()
    expect(page.get_by_text("$")).to_have_count(0)


def test_grades_say_of_how_many_exchanges_they_are(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = stand_in.documents[DASHBOARD]
    losses = [{"feature": f"feature_{number}", "requests": 40 - number} for number in range(17)]
    stand_in.documents[DASHBOARD] = {**page, "graded": 12, "losses": losses}
    shown = opened(stand_in.origin + "/inspector/dash")
    expect(shown.get_by_text("in the newest 12 exchanges, which are still in the list")).to_be_visible()
    shown.get_by_text("3 more features").click()
    expect(shown.get_by_role("link", name="feature_16")).to_be_visible()


def test_what_failed_before_a_provider_was_called_is_said_and_shown(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector/dash")
    expect(page.get_by_text("failed before a provider was called")).to_have_count(0)
    stand_in.documents[DASHBOARD] = {**stand_in.documents[DASHBOARD], "rejected": 3, "graded": 5000}
    page.reload()
    expect(page.get_by_text("3 more requests failed before a provider was called")).to_be_visible()
    page.get_by_role("link", name="Show them").click()
    expect(page.get_by_label("Search exchanges")).to_have_value("status:failed -provider:*")
