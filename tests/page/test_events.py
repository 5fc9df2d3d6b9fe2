"""Events of both streams: which came of which, on the other side, in the timeline, and while one scrubs."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.page.given import trace

pytestmark = pytest.mark.whole  # a browser of its own; test_flows.py plays a stream at every change
BOTH = "m-client-answer=events&m-upstream-answer=events"


def test_an_event_that_is_chosen_marks_what_it_comes_of_on_the_other_side(stand_in, opened):
    made = trace(time.time())
    stand_in.traces["req-trace"] = made
    page = opened(f"{stand_in.origin}/inspector/x/req-trace?{BOTH}")
    client = page.get_by_role("region", name="Client answer")
    upstream = page.get_by_role("region", name="Upstream answer")
    client.locator(".event button").nth(5).click()
    (cause,) = made["answer"]["frames"][5]["causes"]
    lit = upstream.locator(".event.lit")
    expect(lit).to_have_count(1)
    expect(lit.locator(".event-number")).to_have_text(str(cause + 1))
    expect(client.locator(".event-partners")).to_contain_text("Made from the provider's event")
    expect(page).to_have_url(re.compile("ev=client%3A5"))
    assert page.locator(".ticks-lit").get_attribute("d")
    client.locator(".event-partners").get_by_role("button").click()
    effects = [at for at, frame in enumerate(made["answer"]["frames"]) if cause in frame["causes"]]
    expect(upstream.locator(".event.active .event-number")).to_have_text(str(cause + 1))
    expect(client.locator(".event.lit")).to_have_count(len(effects))
    upstream.get_by_role("list").focus()
    page.keyboard.press("ArrowDown")
    expect(upstream.locator(".event.active .event-number")).to_have_text(str(cause + 2))


def test_few_of_twenty_thousand_events_are_drawn(stand_in, opened):
    made = trace(time.time())
    data = made["answer"]["frames"][5]["data"]
    for side in (made["answer"], made["attempts"][0]["answer"]):
        side["frames"] = [{"ms": number / 4, "data": data, "causes": [number]} for number in range(20_000)]
    stand_in.traces["req-trace"] = made
    page = opened(f"{stand_in.origin}/inspector/x/req-trace?{BOTH}&ev=client:19999")
    client = page.get_by_role("region", name="Client answer")
    expect(client.locator(".event.active .event-number")).to_have_text("20000")
    expect(client.locator(".event-partners")).to_contain_text("Made from the provider's event 20000")
    assert 0 < page.locator(".event").count() < 200
    for ticks in (".ticks-client", ".ticks-upstream"):
        assert 100 < (page.locator(ticks).get_attribute("d") or "").count("M") <= 2001


def test_scrubbing_marks_the_newest_event_and_its_partner(stand_in, opened):
    made = trace(time.time())
    stand_in.traces["req-trace"] = made
    at = made["answer"]["frames"][6]["ms"]
    page = opened(f"{stand_in.origin}/inspector/x/req-trace?{BOTH}&t={at}")
    client = page.get_by_role("region", name="Client answer")
    expect(client.locator(".event.lit .event-number")).to_have_text("7")
    (cause,) = made["answer"]["frames"][6]["causes"]
    upstream = page.get_by_role("region", name="Upstream answer")
    expect(upstream.locator(".event.lit .event-number")).to_have_text(str(cause + 1))


def test_streams_of_which_it_is_not_known_say_so(stand_in, opened):
    made = trace(time.time())
    del made["answer"]["caused_by"]
    stand_in.traces["req-trace"] = made
    page = opened(f"{stand_in.origin}/inspector/x/req-trace?{BOTH}&ev=client:5")
    client = page.get_by_role("region", name="Client answer")
    expect(client.locator(".event-partners")).to_contain_text("is not known")
    expect(page.locator(".event.lit")).to_have_count(0)
