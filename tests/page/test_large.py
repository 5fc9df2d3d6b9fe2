"""The page at its largest: 100,000 exchanges in the store, 200 rows a second, bodies of 10 MB, streams of 20,000 events,
50 tabs, two workers, a fleet. What a page draws does not grow with them; its longest tasks are logged."""

from __future__ import annotations

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from proofs.bench.processes import Meter
from proofs.lab.link import Link
from proofs.served import Served
from proofs.servers import PostgresServer, RedisServer
from tests.fleet.fleet_kit import SECRET, Fleet, chat
from tests.page.conftest import Opened
from tests.page.given import row
from tests.page.tasks import click_to_paint, figures, measured
from tests.page.test_live import hide
from tests.stores.servers import needs_own_postgres, needs_own_redis
from tests.waiting import wait_until
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.trace.shelf import TraceShelf
from wireglot.stores import open_engine
from wireglot.stores.records import UsageRow
from wireglot.stores.seal import Sealer
from wireglot.testing.live_gateway import LiveGateway
from wireglot_core.traces.trace import Row, Trace, TraceMessage

pytestmark = pytest.mark.whole  # minutes

EXCHANGES = 100_000
HOURS = 20
"""Within which they came."""
A_SECOND = 200
SECONDS = 12
LINKS = 8
"""Connections to each machine over which they come."""
TABS = 50
BATCH = 5_000
CONFIGURATION = f"""
[server]
secret = "{SECRET}"
[limits]
body = 67_108_864
[store]
url = "sqlite:wireglot.db"
[providers.demo]
[trace]
body_bytes = 33_554_432
memory_bytes = 536_870_912
keep_bytes = 8_589_934_592
"""


def fill_shelf(folder: Path) -> None:
    shelf = TraceShelf(folder, Sealer(SECRET.encode()), lambda *_, **__: None)
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What is it?"}]})
    now = time.time()
    for number in range(EXCHANGES):
        at = now - HOURS * 3600 * number / EXCHANGES
        told = msgspec.convert(row(number, at, recorded=True), Row)
        shelf.put(
            Trace(row=told, request=TraceMessage(body=asked), answer=TraceMessage(status=200, body="{}"))
        )


def fill_ledger(url: str) -> None:
    """In a thread: in this one the browser's loop runs."""
    with ThreadPoolExecutor(1) as one:
        one.submit(lambda: asyncio.run(_fill_ledger(url))).result()


async def _fill_ledger(url: str) -> None:
    now = int(time.time() * 1000)
    engine = await open_engine(url)
    try:
        for first in range(0, EXCHANGES, BATCH):
            await engine.ledger.apply([booked(number, now) for number in range(first, first + BATCH)])
    finally:
        await engine.close()


def booked(number: int, now: int) -> UsageRow:
    told = row(number, 0)
    started = now - HOURS * 3_600_000 * number // EXCHANGES
    return UsageRow(
        told["id"],
        "local",
        started,
        operation="generate",
        dialect=told["dialect"],
        model=told["asked"],
        provider=told["provider"],
        upstream_model=told["model"],
        client=told["client"],
        outcome="error" if told["state"] == "failed" else "ok",
        status=told["status"],
        finished=started + int(told["total_ms"]),
        first_byte=int(told["first_ms"]),
        input=told["tokens"]["input"],
        output=told["tokens"]["output"],
        cost=told["cost"],
    )


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("large")
    fill_shelf(folder / "wireglot/traces")
    fill_ledger(f"sqlite:{folder}/wireglot.db")
    served = Served(folder, CONFIGURATION, workers=2, log="off")
    served.start()
    try:
        yield served
    finally:
        served.stop()


def inspector(served: Served, path: str = "") -> str:
    return f"http://127.0.0.1:{served.port}/inspector{path}"


def told(served: Served, path: str) -> Any:
    request = urllib.request.Request(inspector(served, f"/api/{path}"))
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def workers_in(served: Served) -> set[str]:
    """Of the newest exchanges of its list, those that answered them."""
    return {row["worker"] for row in told(served, "exchanges?limit=1000")["rows"] if row.get("worker")}


class Load:
    """Requests at an even pace, as far as the machine can, a fourth of them streams."""

    def __init__(self, *ports: int, key: str = "") -> None:
        self._ports = ports
        self._key = key
        self.sent = 0
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[Load]:
        with ThreadPoolExecutor(1) as one:
            running = one.submit(lambda: asyncio.run(self._run()))
            yield self
            running.result()
        figures.info("%.0f exchanges a second", self.sent / self.seconds)

    async def _run(self) -> None:
        began = time.monotonic()
        links = [Link(port, self._key) for _ in range(LINKS) for port in self._ports]

        async def ask(number: int, link: Link) -> None:
            while (seconds := time.monotonic() - began) < SECONDS:
                # On a slower machine later, and not more of them at once.
                await asyncio.sleep(max(0.0, self.sent / A_SECOND - seconds))
                self.sent += 1
                asked = chat("demo-anthropic", f"Number {self.sent} of {number}", stream=not self.sent % 4)
                reply = await link.ask("POST", "/v1/chat/completions", asked)
                assert reply.status == 200, reply.body

        await asyncio.gather(*(ask(number, link) for number, link in enumerate(links)))
        for link in links:
            link.close()
        self.seconds = time.monotonic() - began


def rows_in_list(page: Page) -> int:
    return int((page.locator(".foot").text_content() or "0").split(" ")[0].replace(",", ""))


def look_around(page: Page) -> None:
    """As somebody does who watches: scrolls, moves on by keys, opens one and comes back."""
    rows = page.locator(".rows")
    rows.evaluate("each => { each.scrollTop = each.scrollHeight / 2 }")
    for key in "jjjjkk":
        page.keyboard.press(key)
    page.keyboard.press("End")
    rows.evaluate("each => { each.scrollTop = 0 }")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator(".exchange").first).to_be_visible()
    page.go_back()
    expect(rows).to_be_visible()


def wait_for_rows(page: Page, load: Load, before: int) -> None:
    """Until the page has heard of all that were sent."""
    expect(page.locator(".foot")).to_have_text(re.compile(r"exchanges"))
    wait_until(lambda: rows_in_list(page) >= min(before + load.sent, 10_000))


async def tell_rows(gateway: LiveGateway, name: str) -> float:
    """Exchanges that begin and end in it at an even pace, without what answering them costs. So many a second."""
    rows, began = gateway.process.gateway.traces.rows, time.monotonic()
    for number in range(A_SECOND * SECONDS):
        await asyncio.sleep(max(0.0, began + number / A_SECOND - time.monotonic()))
        record = ExchangeRecord(f"req_{name}{number:06d}", time.monotonic() - 0.2, "anthropic", "generate")
        record.path, record.model, record.provider = "/v1/messages", f"model-{number % 7}", "demo"
        rows.begin(record)
        record.status, record.finished = 200 if number % 9 else 429, time.monotonic()
        rows.finish(record)
    return A_SECOND * SECONDS / (time.monotonic() - began)


def test_two_hundred_rows_a_second_and_fifty_tabs(opened: Opened, browser: Browser) -> None:
    with LiveGateway("[providers.demo]\n") as gateway:
        address = f"{gateway.url}/inspector"
        page = opened(address, width=1440)
        others = [page.context.new_page() for _ in range(TABS - 1)]
        for tab in others:
            tab.goto(address, wait_until="commit")
        for tab in others:
            expect(tab.get_by_role("heading", name="No requests yet")).to_be_visible()
            hide(tab, True)  # as all but one are in a browser
        page.bring_to_front()
        before = 0

        def live() -> None:
            nonlocal before
            with ThreadPoolExecutor(1) as one:
                telling = one.submit(gateway.call, tell_rows(gateway, f"{before:06d}"))
                expect(page.locator(".rows [role=row]").nth(9)).to_be_visible()
                while not telling.done():
                    look_around(page)
            figures.info("%.0f rows a second", telling.result())
            before += A_SECOND * SECONDS
            wait_until(lambda: rows_in_list(page) == before)

        measured(browser, "200 rows a second, 50 tabs", live)
        expect(page.get_by_text("changes were skipped")).to_have_count(0)
        # Another one comes in sight: it has what came meanwhile.
        hide(others[0], False)
        expect(others[0].get_by_text("more as you scroll")).to_be_visible()


def test_rows_of_two_workers_are_told_as_they_come(
    two_workers: Served, opened: Opened, browser: Browser
) -> None:
    page = opened(inspector(two_workers), width=1440)
    expect(page.locator(".connection")).to_have_text("Live")
    before = rows_in_list(page)

    def live() -> None:
        nonlocal before
        with Load(two_workers.port).running() as load:
            until = time.monotonic() + SECONDS * 0.8
            while time.monotonic() < until:
                look_around(page)
        wait_for_rows(page, load, before)
        before = rows_in_list(page)

    measured(browser, "live list of two workers", live)
    assert len(workers_in(two_workers)) == 2


def test_a_hundred_thousand_exchanges_are_listed_sorted_filtered_and_summed(
    two_workers: Served, opened: Opened, browser: Browser
) -> None:
    page = opened(inspector(two_workers), width=1440)
    expect(page.get_by_text("more as you scroll")).to_be_visible()

    def scroll() -> None:
        for _ in range(10):
            wanted = rows_in_list(page) + 100
            page.locator(".rows").evaluate("each => { each.scrollTop = each.scrollHeight }")
            page.wait_for_function(
                "wanted => parseInt(document.querySelector('.foot').textContent.replace(',', '')) >= wanted",
                arg=wanted,
            )

    def sort() -> None:
        page.get_by_role("columnheader", name="Cost").get_by_role("button").click()
        expect(page.locator(".rows [role=row]").first.locator(".cell-cost")).to_have_text(re.compile("0.06"))
        page.goto(inspector(two_workers))
        expect(page.get_by_text("more as you scroll")).to_be_visible()

    def filter_() -> None:
        field = page.get_by_label("Search exchanges")
        field.fill("client:codex status:>=400 -loss:serious")
        expect(page.locator(".rows [role=row]").first).to_contain_text("529")
        field.fill("")
        expect(page.get_by_text("more as you scroll")).to_be_visible()

    def views() -> None:
        for view, seen in (("conversations", ".conversation"), ("dash", "canvas"), ("setup", "h1")):
            page.goto(inspector(two_workers, f"/{view}"))
            expect(page.locator(seen).first).to_be_visible()
            expect(page.locator(".waiting")).to_have_count(0)
        page.goto(inspector(two_workers))
        expect(page.get_by_text("more as you scroll")).to_be_visible()

    for name, act in (("scroll", scroll), ("sort", sort), ("filter", filter_), ("views", views)):
        measured(browser, f"100,000 exchanges, {name}", act)
    assert told(two_workers, "dashboard?from=30d&by=model")["total"]["requests"] >= EXCHANGES


def conversation(size: int) -> dict[str, Any]:
    """Of turns with calls and results, as an agent's is, of so many bytes."""
    text = "The quick brown fox jumps over the lazy dog.\n" * 90
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read them all."}]
    for number in range(size // (len(text) + 400)):
        id = f"toolu_{number}"
        call = {"type": "tool_use", "id": id, "name": "read_file", "input": {"path": f"/{number}"}}
        result = {"type": "tool_result", "tool_use_id": id, "content": f"{text}needle {number}."}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = {"name": "read_file", "description": "Reads a file.", "input_schema": schema}
    return {"model": "demo-openai-chat", "max_tokens": 100, "tools": [tool], "messages": messages}


def send(served: Served, asked: dict[str, Any]) -> str:
    """The id of the exchange, once it is over."""
    headers = {
        "content-type": "application/json",
        "user-agent": "claude-cli/2.1.0 (external, cli)",
        "x-api-key": "none",
    }
    body = json.dumps(asked).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{served.port}/v1/messages", body, headers)
    with urllib.request.urlopen(request) as answer:
        answer.read()
        id = str(answer.headers["x-wireglot-request-id"])
    wait_until(lambda: told(served, f"exchanges/{id}?only=recorded")["row"].get("state") == "done")
    return id


REQUESTS = ("[data-side=client-request] .part", "[data-side=upstream-request] .part")


def test_a_megabyte_is_opened_from_the_list(two_workers: Served, opened: Opened, browser: Browser) -> None:
    id = send(two_workers, conversation(1 << 20))
    page = opened(inspector(two_workers), width=1280)
    row = f"#row-{id}"

    def open_it() -> None:
        page.goto(inspector(two_workers))
        page.locator(row).click()
        expect(page.locator(".part.linked").first).to_be_visible()
        expect(page.get_by_role("region", name="Client answer")).to_contain_text("The tool answered")

    measured(browser, "1 MB, opened", open_it)
    page.goto(inspector(two_workers))
    painted(browser, page, two_workers, id)


def painted(browser: Browser, page: Page, served: Served, id: str) -> None:
    """Logs what passes from a click to the paint: by the clock, and what page and gateway compute until then."""
    meter = Meter(served.pid)
    told(served, f"exchanges/{id}?only=recorded")
    answered = 1000 * meter.spent()
    clock, took = click_to_paint(browser, page, f"#row-{id}", *REQUESTS)
    figures.info(
        "click to paint: %.0f ms, the page computes %.0f and the gateway %.0f", clock, took, answered
    )


def test_ten_megabytes_are_read_searched_and_folded(
    two_workers: Served, opened: Opened, browser: Browser
) -> None:
    id = send(two_workers, conversation(10 << 20))
    page = opened(inspector(two_workers), width=1440)
    client = page.get_by_role("region", name="Client request")

    def open_it() -> None:
        page.goto(inspector(two_workers))
        page.locator(f"#row-{id}").click()
        expect(page.locator(".part.linked").first).to_be_visible()

    def fold() -> None:
        client.get_by_role("button", name="JSON").click()
        expect(client.get_by_role("tree")).to_be_visible()
        client.get_by_role("button", name="Raw").click()
        expect(client.locator("pre.raw")).to_contain_text("quick brown fox")
        client.get_by_role("button", name="Read").click()
        expect(client.locator(".part").first).to_be_visible()

    def search() -> None:
        found = page.get_by_role("region", name="Found in this exchange")
        page.get_by_label("Search in this exchange").fill("nowhere in it")
        expect(found.get_by_role("status")).to_contain_text("Not found")
        page.get_by_label("Search in this exchange").fill("needle 600.")
        expect(found.get_by_role("status")).to_contain_text("2 places")
        found.get_by_role("button", name="Client request").first.click()
        expect(client.locator(".part.lit mark").first).to_be_in_viewport()
        page.get_by_label("Search in this exchange").fill("")
        expect(found).to_have_count(0)

    def choose() -> None:
        client.locator(".part").last.click()
        expect(page.get_by_role("region", name="Upstream request").locator(".part.lit").first).to_be_visible()

    def show_more() -> None:
        """Those before the ones around what was found, and behind them."""
        spoken = client.locator(".reading > .part")
        for which in ("earlier", "later"):
            had = spoken.count()
            client.get_by_role("button", name=re.compile(rf"^Show 100 of .* {which} parts$")).click()
            expect(spoken).to_have_count(had + 100)

    page.goto(inspector(two_workers))
    painted(browser, page, two_workers, id)
    acts = {
        "opened": open_it,
        "other views": fold,
        "a part": choose,
        "search": search,
        "more parts": show_more,
    }
    for name, act in acts.items():
        measured(browser, f"10 MB, {name}", act)


def test_twenty_thousand_events_are_played_and_walked_through(
    two_workers: Served, opened: Opened, browser: Browser
) -> None:
    words = {"role": "user", "content": "[[demo:text 20000]]"}
    asked = {"model": "demo-openai-chat", "max_tokens": 100_000, "stream": True, "messages": [words]}
    id = send(two_workers, asked)
    page = opened(inspector(two_workers), width=1440)
    client, upstream = (page.get_by_role("region", name=f"{side} answer") for side in ("Client", "Upstream"))
    answers = "?m-client-answer=events&m-upstream-answer=events"

    def open_it() -> None:
        page.goto(inspector(two_workers, f"/x/{id}"))
        for side in (client, upstream):
            expect(side.locator(".pane-foot")).to_have_text(re.compile(r"^2\d,?\d{3} events"))
        expect(client.locator(".part").first).to_be_visible()

    def walk() -> None:
        page.goto(inspector(two_workers, f"/x/{id}{answers}"))
        client.locator(".event button").nth(5).click()
        expect(upstream.locator(".event.lit").first).to_be_visible()
        client.get_by_role("list").focus()
        for key in ("ArrowDown", "PageDown", "End", "ArrowUp", "Home"):
            page.keyboard.press(key)
        expect(client.locator(".event.active .event-number")).to_have_text("1")

    def play() -> None:
        page.goto(inspector(two_workers, f"/x/{id}"))
        expect(page.locator(".part.linked").first).to_be_visible()
        page.get_by_label("Time within the exchange").focus()
        page.keyboard.press("Home")
        for _ in range(3):
            page.get_by_role("button", name="One event forward").click()
        page.get_by_label("Speed").select_option("10")
        page.get_by_role("button", name="▶ Play").click()
        expect(page.get_by_role("button", name="▶ Play")).to_be_visible()

    for name, act in (("opened", open_it), ("walked through", walk), ("played", play)):
        measured(browser, f"20,000 events, {name}", act)


@needs_own_postgres
@needs_own_redis
@pytest.mark.parametrize("store", ["postgres", "redis"])
def test_rows_of_a_fleet_are_told_as_they_come(
    store: str, tmp_path: Path, opened: Opened, browser: Browser
) -> None:
    server = PostgresServer() if store == "postgres" else RedisServer()
    with server:
        if isinstance(server, PostgresServer):
            fill_ledger(server.url)
            two = Fleet(tmp_path, server.url, "")
        else:
            two = Fleet(tmp_path, "sqlite:wireglot.db", server.url)
        with two.running():
            page = opened(inspector(two.machines[0]), width=1440)
            expect(page.get_by_role("heading", name="No requests yet")).to_be_visible()
            before = 0

            def live() -> None:
                nonlocal before
                with Load(*(machine.port for machine in two.machines)).running() as load:
                    expect(page.locator(".rows [role=row]").nth(9)).to_be_visible()
                    until = time.monotonic() + SECONDS * 0.8
                    while time.monotonic() < until:
                        look_around(page)
                wait_for_rows(page, load, before)
                before = rows_in_list(page)

            measured(browser, f"live list of a fleet, {store}", live)
            assert len(workers_in(two.machines[0])) == 2
