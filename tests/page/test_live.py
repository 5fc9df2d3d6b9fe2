"""What happens now: an exchange that grows before one's eyes, one connection for all tabs, and the first ten seconds."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.gateway.faults.faults_kit import BY_NAME, provider, start
from tests.gateway.trace.trace_kit import Stage, stage
from tests.page.conftest import WHOLE
from tests.page.given import row
from tests.waiting import wait_until
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour

TABS = 50 if WHOLE else 8
"""More than the six connections that a browser has to one address."""


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Stage]:
    retry = "retry = {retries = 1}\n"
    with stage('mode = "off"', lambda up: provider("slow", up, "gemini", retry), memory=32 << 20) as made:
        yield made


def at(made: Stage, path: str) -> str:
    return f"http://127.0.0.1:{made.gateway.port}/inspector{path}"


def running(made: Stage, model: str) -> str:
    found = wait_until(lambda: next(iter(made.look.rows(f"model={model}&status=running")), None))
    return str(found["id"])


def test_a_running_exchange_grows_before_ones_eyes(in_memory, opened):
    gate = threading.Event()
    in_memory.upstream.next(Behaviour(gate=gate, after=2))
    call = start(in_memory.gateway, BY_NAME["anthropic"], "gemini-up/eyes", "Watch me grow", stream=True)
    call.until(b"content_block_delta")
    page = opened(at(in_memory, "/x/" + running(in_memory, "gemini-up/eyes") + "?m-client-answer=events"))
    for side in ("Client request", "Upstream request"):
        expect(page.get_by_role("region", name=side)).to_contain_text("Watch me grow")
    expect(page.get_by_text("waits for the next event")).to_be_visible()
    events = page.get_by_role("region", name="Client answer").locator(".event")
    expect(events.first).to_be_visible()
    expect(page.get_by_role("region", name="Client answer")).to_contain_text(
        re.compile(r"\b\d events, last at")
    )
    gate.set()
    call.rest()
    expect(page.get_by_text("waits for the next event")).to_have_count(0)
    expect(page.get_by_role("region", name="Client answer")).to_contain_text(
        re.compile(r"2\d events, last at")
    )


def test_one_that_hangs_says_what_it_waits_for(in_memory, opened):
    in_memory.upstream.next(Behaviour(error=503, retry_after=4))
    call = start(in_memory.gateway, BY_NAME["openai-chat"], "slow/hangs")
    page = opened(at(in_memory, "/x/" + running(in_memory, "slow/hangs")))
    expect(page.get_by_text("waits for the next attempt, in")).to_be_visible()
    expect(page.locator(".key-retry-wait")).to_be_visible()
    call.rest()
    expect(page.get_by_text("waits for")).to_have_count(0)


def hide(page: Page, hidden: bool) -> None:
    state = "hidden" if hidden else "visible"
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


def test_any_number_of_tabs_have_one_connection_and_hidden_ones_none(stand_in, opened):
    stand_in.rows = [row(1, time.time())]
    first = opened(stand_in.origin + "/inspector")
    tabs = [first]
    for _ in range(TABS - 1):
        tab = first.context.new_page()
        tab.goto(stand_in.origin + "/inspector")
        tabs.append(tab)
    for tab in tabs:
        expect(tab.locator(".connection")).to_have_text("Live")
    assert stand_in.following == 1
    stand_in.tell("row", row(2, time.time()))
    for tab in (tabs[0], tabs[-1]):
        expect(tab.locator("#row-req-000002")).to_be_visible()
    for tab in tabs[1:]:
        tab.close()
    hide(first, True)

    def left() -> bool:
        # A connection that is gone is noticed when it is written to.
        stand_in.tell("row", row(3, time.time()))
        return bool(stand_in.following == 0)

    wait_until(left)
    stand_in.rows.append(row(4, time.time()))
    hide(first, False)
    expect(first.locator(".connection")).to_have_text("Live")
    expect(first.locator("#row-req-000004")).to_be_visible()  # what came while it was hidden
    assert stand_in.most_following == 1


@pytest.mark.whole
def test_a_view_that_shows_nothing_of_now_has_no_connection(stand_in, opened):
    page = opened(stand_in.origin + "/inspector/play")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    assert stand_in.most_following == 0
    page.get_by_role("link", name="Live", exact=True).click()
    expect(page.locator(".connection")).to_have_text("Live")
    assert stand_in.most_following == 1


def test_without_a_shared_worker_one_tab_follows_for_all(stand_in, opened):
    first = opened(stand_in.origin + "/inspector/play")
    first.context.add_init_script("delete window.SharedWorker")
    second = first.context.new_page()
    for tab in (first, second):
        tab.goto(stand_in.origin + "/inspector")
        expect(tab.locator(".connection")).to_have_text("Live")
    assert stand_in.following == 1
    stand_in.tell("row", row(2, time.time()))
    for tab in (first, second):
        expect(tab.locator("#row-req-000002")).to_be_visible()
    first.close()  # the other one follows from then on
    expect(second.locator(".connection")).to_have_text("Live")
    stand_in.tell("row", row(5, time.time()))
    expect(second.locator("#row-req-000005")).to_be_visible()


def test_the_first_ten_seconds_lead_from_an_empty_list_to_four_panes_with_a_loss(opened):
    with LiveGateway("") as fresh:
        page = opened(f"http://127.0.0.1:{fresh.port}/inspector")
        expect(page.get_by_role("heading", name="No requests yet")).to_be_visible()
        expect(page.get_by_text("ANTHROPIC_BASE_URL")).to_be_visible()
        page.get_by_role("button", name="Ask the demo model").click()
        for side in ("Client request", "Upstream request", "Client answer", "Upstream answer"):
            expect(page.get_by_role("region", name=side)).to_be_visible()
        expect(page.get_by_role("region", name="Upstream request")).to_contain_text(
            "What is the weather in Paris?"
        )
        expect(page.get_by_role("region", name="Upstream answer")).to_contain_text("get_weather")
        expect(page.get_by_role("tab", name=re.compile("Losses 1"))).to_be_visible()
        page.get_by_role("link", name="Live", exact=True).click()
        expect(page.get_by_text("last bodies in memory")).to_be_visible()
        page.get_by_role("button", name="Record bodies").click()
        expect(page.get_by_role("button", name="Recording until")).to_be_visible()
