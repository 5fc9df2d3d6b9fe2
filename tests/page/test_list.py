"""The live list: ten thousand rows, filters that are addresses, keys, and what happens while one looks."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.gateway.trace.test_export import fill
from tests.gateway.trace.trace_kit import stage
from tests.page.given import documents, row, trace


@pytest.mark.whole
def test_ten_thousand_rows_are_a_list_of_which_few_are_drawn(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(0, at)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    for number in range(1, 10_000):
        stand_in.tell("row", row(number, at - number))
    expect(page.get_by_text("10,000 exchanges")).to_be_visible()
    assert page.get_by_role("row").count() < 100
    page.keyboard.press("j")
    page.keyboard.press("End")
    expect(page.locator("[role=row][aria-selected=true]")).to_have_id("row-req-009999")
    page.locator(".rows").evaluate("each => { each.scrollTop = each.scrollHeight / 2 }")
    expect(page.get_by_role("row").nth(20)).to_be_visible()
    assert page.get_by_role("row").count() < 100


MAX_NODES = 4_000
"""Of the page with its list, those included that only a script holds: a row that is drawn has thirty."""
MAX_HEAP_BYTES = 8_000_000
"""With 2,000 rows: they and what they are drawn from."""

_SCROLL_ALL = """async () => {
    const drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    const list = document.querySelector(".rows")
    for (let top = 0; top < list.scrollHeight; top += list.clientHeight) {
        list.scrollTop = top
        await drawn()
    }
    list.scrollTop = 0
    await drawn()
}"""


def test_rows_that_are_out_of_sight_are_released(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(0, at)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    for first in range(1, 301, 20):  # above those that are drawn, which move down and out of sight
        for number in range(first, first + 20):
            stand_in.tell("row", row(number, at + number))
        expect(page.locator(f"#row-req-{first + 19:06d}")).to_be_visible()
    for number in range(301, 2_000):
        stand_in.tell("row", row(number, at - number))
    expect(page.get_by_text("2,000 exchanges")).to_be_visible()
    page.evaluate(_SCROLL_ALL)
    devtools = page.context.new_cdp_session(page)
    devtools.send("HeapProfiler.collectGarbage")
    nodes = devtools.send("Memory.getDOMCounters")["nodes"]
    heap = devtools.send("Runtime.getHeapUsage")["usedSize"]
    assert nodes < MAX_NODES
    assert heap < MAX_HEAP_BYTES


@pytest.mark.whole
def test_pages_are_fetched_as_one_scrolls(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(450)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("100 exchanges, more as you scroll")).to_be_visible()
    page.wait_for_function(
        """() => {
            const rows = document.querySelector('.rows')
            rows.scrollTop = rows.scrollHeight
            return document.querySelector('.foot').textContent.startsWith('450 exchanges')
        }"""
    )
    assert [method for method, path, _ in stand_in.asked if path == "/exchanges"] == ["GET"] * 5


@pytest.mark.whole
def test_each_column_has_its_heading_for_those_who_hear_the_list(stand_in, opened):
    stand_in.rows = [row(number, time.time() - number) for number in range(3)]
    page = opened(stand_in.origin + "/inspector")
    grid = page.get_by_role("grid", name="Exchanges of")
    expect(grid).to_have_attribute("aria-owns", "columns")
    headings = page.locator("#columns").get_by_role("columnheader")
    expect(headings).to_have_count(int(grid.get_attribute("aria-colcount")))
    for number, cell in enumerate(grid.get_by_role("row").first.get_by_role("gridcell").all(), 1):
        assert cell.get_attribute("aria-colindex") == str(number)
    expect(headings.nth(3)).to_have_text("Answered by")


@pytest.mark.whole
def test_a_search_is_shown_how_far_it_looked_and_goes_on(stand_in, opened):
    at = time.time()
    pieces = {
        None: {"rows": [], "next": "req-000002"},
        "req-000002": {"rows": [row(4, at)], "next": None, "unread": 2},
    }
    stand_in.documents["GET", "/exchanges"] = lambda query, _: pieces[query.get("before")]
    page = opened(stand_in.origin + "/inspector?q=deep")
    expect(page.get_by_role("heading", name="Nothing yet")).to_be_visible()
    page.get_by_role("button", name="Load older").click()
    expect(page.locator("#row-req-000004")).to_be_visible()
    expect(page.get_by_text("2 recordings of other machines could not be searched here.")).to_be_visible()
    expect(page.get_by_role("button", name="Load older")).to_have_count(0)


@pytest.mark.whole
def test_what_one_reads_stays_where_it_is_while_rows_come_above_it(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(90)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("90 exchanges")).to_be_visible()
    page.locator(".rows").evaluate("each => { each.scrollTop = 34 * 40 }")
    read = page.locator("#row-req-000045")
    expect(read).to_be_visible()
    before = read.bounding_box()
    for number in range(100, 110):
        stand_in.tell("row", row(number, at + number))
    expect(page.get_by_text("100 exchanges")).to_be_visible()
    assert read.bounding_box() == before
    page.locator(".rows").evaluate("each => { each.scrollTop = 0 }")
    expect(page.locator("#row-req-000109")).to_be_visible()


def test_a_filter_is_an_address_and_the_back_button_takes_it_away(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(40)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("40 exchanges")).to_be_visible()
    page.get_by_role("combobox", name="Client").select_option("codex")
    expect(page.get_by_text("8 exchanges")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?client=codex$"))
    page.go_back()
    expect(page.get_by_text("40 exchanges")).to_be_visible()
    page.goto(stand_in.origin + "/inspector?client=codex&q=req-000001")
    expect(page.get_by_text("1 exchange", exact=True)).to_be_visible()
    expect(page.get_by_label("Search exchanges")).to_have_value("req-000001")


def test_keys_move_open_search_explain_and_go_back(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(40)]
    stand_in.traces["req-000001"] = {**trace(at), "row": row(1, at)}
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("40 exchanges")).to_be_visible()
    for key in ("j", "j", "ArrowDown", "k"):
        page.keyboard.press(key)
    expect(page.locator("[aria-selected=true]")).to_have_id("row-req-000001")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Client request")).to_be_visible()
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("/x/req-000002"))
    page.keyboard.press("k")
    expect(page).to_have_url(re.compile("/x/req-000001"))
    page.keyboard.press("g")
    page.keyboard.press("l")
    expect(page.locator("[aria-selected=true]")).to_have_id("row-req-000001")
    # It takes the focus back a moment after it is drawn, and would take it from the search.
    expect(page.get_by_role("grid")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search exchanges")).to_be_focused()
    page.keyboard.press("Escape")  # the suggestions
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next exchange")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.whole
def test_a_row_changes_while_one_looks_and_a_pause_holds_new_ones_back(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(1, at - 5)]
    page = opened(stand_in.origin + "/inspector")
    running = {**row(2, at), "state": "running", "status": 0, "total_ms": None}
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    stand_in.tell("row", {**running, "first_ms": None})
    expect(page.locator("#row-req-000002")).to_contain_text("waiting")
    stand_in.tell("row", running)
    expect(page.locator("#row-req-000002")).to_contain_text("streaming")
    page.get_by_role("button", name="Pause").click()
    stand_in.tell("row", {**running, "state": "failed", "error": "the worker ended"})
    expect(page.locator("#row-req-000002")).to_contain_text("failed")
    stand_in.tell("row", row(2, at))
    expect(page.locator("#row-req-000002")).to_contain_text("200")
    stand_in.tell("row", row(5, at + 1))
    expect(page.get_by_text("Paused, 1 new")).to_be_visible()
    expect(page.locator("#row-req-000005")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#row-req-000005")).to_be_visible()


@pytest.mark.whole
def test_a_row_is_a_link_that_opens_in_a_new_tab(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(5)]
    stand_in.traces["req-000002"] = {**trace(at), "row": row(2, at)}
    page = opened(stand_in.origin + "/inspector?client=gemini-cli")
    line = page.locator("#row-req-000002")
    for button, modifiers in (("left", ["Control"]), ("middle", [])):
        with page.context.expect_page() as started:
            line.click(button=button, modifiers=modifiers)
        tab = started.value
        expect(tab).to_have_url(re.compile("/inspector/x/req-000002$"))
        expect(tab.get_by_role("region", name="Client request")).to_be_visible()
        tab.close()
    expect(page).to_have_url(re.compile(r"/inspector\?client=gemini-cli$"))
    line.click()
    expect(page).to_have_url(re.compile("/inspector/x/req-000002$"))
    expect(page.get_by_label("Neighbours in the list")).to_contain_text("1 of 1")
    # The way back, and the link to the list, have the filter that one came with.
    page.get_by_label("Views").get_by_role("link", name="Live").click()
    expect(page.get_by_text("1 exchange", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"client=gemini-cli"))


def test_list_and_exchange_side_by_side_have_one_address(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(120)]
    for number in range(4):
        stand_in.traces[f"req-{number:06d}"] = {**trace(at), "row": row(number, at - number)}
    page = opened(stand_in.origin + "/inspector", width=1440)
    page.locator("#row-req-000001").click()
    detail = page.get_by_role("region", name="Chosen exchange")
    expect(detail.get_by_role("region", name="Client request")).to_be_visible()
    expect(detail.get_by_label("Neighbours in the list")).to_contain_text("2 of 100+")
    expect(page.get_by_role("grid")).to_be_visible()
    expect(page).to_have_url(re.compile("at=req-000001&open=1"))
    detail.get_by_role("link", name="Next exchange").click()
    expect(page.locator("[aria-selected=true]").first).to_have_id("row-req-000002")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("at=req-000003&open=1"))
    expect(detail.get_by_label("Neighbours in the list")).to_contain_text("4 of 100+")
    address = page.url
    page.goto(address)
    expect(detail.get_by_role("region", name="Client request")).to_be_visible()
    page.keyboard.press("Escape")
    expect(detail).to_have_count(0)
    page.get_by_role("button", name="Side by side").click()
    page.locator("#row-req-000001").click()
    expect(page).to_have_url(re.compile("/inspector/x/req-000001$"))


@pytest.mark.whole
def test_with_a_filter_the_server_says_which_changes_match(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(1, at)]
    page = opened(stand_in.origin + "/inspector?q=codex")
    expect(page.get_by_text("1 exchange", exact=True)).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    for number in range(2, 12):  # of which two are codex's
        stand_in.rows.append(row(number, at + number))
        stand_in.tell("row", row(number, at + number))
    expect(page.get_by_text("3 exchanges")).to_be_visible()
    expect(page.locator("#row-req-000011")).to_be_visible()
    stand_in.rows = [each for each in stand_in.rows if each["id"] != "req-000006"]
    stand_in.tell("row", row(6, at + 6))
    expect(page.get_by_text("2 exchanges")).to_be_visible()
    asked = [path for method, path, _ in stand_in.asked if path == "/exchanges"]
    assert len(asked) < 10  # in batches


def test_a_filter_says_how_many_match_and_not_only_how_many_are_loaded(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(1_000)]
    page = opened(stand_in.origin + "/inspector?client=codex")
    expect(page.get_by_text("200 exchanges match, 100 loaded, more as you scroll")).to_be_visible()
    stand_in.rows.append(row(1_001, at + 1, client="codex"))
    stand_in.tell("row", stand_in.rows[-1])
    expect(page.get_by_text("201 exchanges match, 101 loaded")).to_be_visible()


def test_rows_of_another_search_do_not_stay_under_one_that_runs_or_is_invalid(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(40)]
    page = opened(stand_in.origin + "/inspector")
    shown = page.locator(".rows [role=row]")
    expect(shown.first).to_be_visible()
    held = []
    page.route(re.compile(r"/exchanges\?.*q=slow"), lambda route: held.append(route))
    field = page.get_by_label("Search exchanges")
    field.fill("slow")
    expect(page.get_by_text("Searching …")).to_be_visible()
    expect(shown).to_have_count(0)
    problem = {"error": {"message": "is:slow: expected one of stream, recorded"}}
    page.route(re.compile(r"/exchanges\?.*q=is"), lambda route: route.fulfill(status=400, json=problem))
    field.fill("is:slow")
    expect(page.get_by_role("alert")).to_contain_text("expected one of stream, recorded")
    expect(shown).to_have_count(0)
    held[0].abort()
    field.fill("")
    expect(page.get_by_text("40 exchanges")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.whole
def test_terms_are_suggested_while_one_types(stand_in, opened):
    stand_in.rows = [row(number, time.time() - number) for number in range(5)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("5 exchanges")).to_be_visible()
    field = page.get_by_label("Search exchanges")
    field.click()
    expect(page.get_by_role("listbox", name="Suggestions").get_by_role("option")).to_have_count(3)
    field.press_sequentially("cl")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field).to_have_value("client:")
    expect(page.get_by_role("option", name="client:codex")).to_be_visible()
    field.press_sequentially("code")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    expect(field).to_have_value("client:codex ")
    expect(page).to_have_url(re.compile(r"q=client%3Acodex$"))
    assert not [query for query in stand_in.queries if query.get("q") in ("client:", "cl")][1:]


def test_a_view_is_saved_under_a_name_with_its_filters_order_and_columns(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number, title=f"words {number}") for number in range(10)]
    page = opened(stand_in.origin + "/inspector?client=codex")
    expect(page.get_by_text("2 exchanges")).to_be_visible()
    page.get_by_role("columnheader", name="Cost").get_by_role("button").click()
    expect(page).to_have_url(re.compile("sort=-cost"))
    expect(page.get_by_role("columnheader", name="Cost")).to_have_attribute("aria-sort", "descending")
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("checkbox", name="Last words").check()
    page.get_by_role("checkbox", name="Requested").uncheck()
    page.get_by_role("button", name="Views", exact=False).click()
    page.get_by_label("Name of this view").fill("dear codex")
    page.get_by_role("button", name="Save", exact=True).click()
    page.goto(stand_in.origin + "/inspector")
    expect(page.get_by_text("10 exchanges")).to_be_visible()
    expect(page.get_by_text("words 3")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Requested")).to_have_count(0)
    page.get_by_role("button", name="Views", exact=False).click()
    page.get_by_role("link", name="dear codex").click()
    expect(page.get_by_text("2 exchanges")).to_be_visible()
    expect(page).to_have_url(re.compile(r"client=codex&sort=-cost"))


@pytest.mark.whole
def test_losses_that_are_new_are_marked_and_usual_ones_folded(stand_in, opened):
    at = time.time()
    habit = {"client": "codex", "provider": "kimi", "exchanges": 50, "features": {"usual": 50, "fresh": 1}}
    stand_in.documents["GET", "/losses"] = {"pairs": [habit]}
    fields = {"client": "codex", "provider": "kimi", "losses": {"degraded": 1}}
    stand_in.rows = [
        row(1, at, **fields, features=["usual"]),
        row(2, at - 1, **fields, features=["usual", "fresh"]),
    ]
    page = opened(stand_in.origin + "/inspector")
    expect(page.locator("#row-req-000001 .cell-losses")).to_have_text("1 usual")
    expect(page.locator("#row-req-000002 .cell-losses")).to_contain_text("new")
    page.get_by_role("button", name="Losses: 1 new").click()
    panel = page.get_by_role("group", name="Losses by feature")
    expect(panel.get_by_role("button", name="fresh")).to_be_visible()
    expect(panel.get_by_role("button", name="usual")).to_be_hidden()
    panel.get_by_role("button", name="fresh").click()
    expect(page).to_have_url(re.compile("loss=fresh"))


@pytest.mark.whole
def test_all_that_match_are_exported_of_a_real_gateway(opened):
    with stage('mode = "off"') as made:
        fill(made, 10_000)
        page = opened(made.gateway.url + "/inspector?status=4xx")
        expect(page.get_by_text("100 exchanges, more as you scroll")).to_be_visible()
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as started:
            page.get_by_role("link", name="Table (CSV)").click()
        text = started.value.path().read_text(encoding="utf-8")
        assert text.startswith("id,at,state,client")
        assert len(text.splitlines()) == 2_501


@pytest.mark.whole
def test_an_empty_list_says_how_to_begin(stand_in, opened):
    stand_in.documents |= documents(time.time()) | {("POST", "/ask"): {"id": "req-trace"}}
    stand_in.traces["req-trace"] = trace(time.time())
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_role("heading", name="No requests yet")).to_be_visible()
    expect(page.get_by_text("export ANTHROPIC_BASE_URL=")).to_be_visible()
    page.get_by_role("button", name="Ask the demo model").click()
    expect(page.get_by_role("region", name="Upstream request")).to_be_visible()


@pytest.mark.whole
def test_a_key_that_is_held_moves_on_and_its_address_follows(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(90)]
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("90 exchanges")).to_be_visible()
    page.evaluate(
        "for (let each = 0; each < 400; each++) dispatchEvent(new KeyboardEvent('keydown', {key: each < 320 ? (each % 2 ? 'k' : 'j') : 'j'}))"
    )
    expect(page.locator("[aria-selected=true]")).to_have_id("row-req-000080")
    expect(page).to_have_url(re.compile("at=req-000080"))


@pytest.mark.whole
@pytest.mark.parametrize("width", [1000, 1800])
def test_an_exchange_that_is_clicked_is_asked_for_before_the_page_is_drawn_again(stand_in, opened, width):
    stand_in.rows = [row(number, time.time() - number) for number in range(3)]
    page = opened(stand_in.origin + "/inspector")
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => new Promise(requestAnimationFrame)")
    expect(page.get_by_text("3 exchanges")).to_be_visible()
    asked = page.evaluate("""() => new Promise((done) => {
        const asked = [];
        const fetched = window.fetch;
        window.fetch = (...all) => { asked.push(all[0]); return fetched(...all); };
        document.querySelector("#row-req-000001 a").click();
        requestAnimationFrame(() => done(asked));
    })""")
    assert any("/exchanges/req-000001?only=recorded" in address for address in asked)


@pytest.mark.whole
def test_the_page_says_what_it_cannot_show_of_other_machines(stand_in, opened):
    fleet = {"machines": 2, "trouble": "PostgreSQL cannot be reached", "unreported": 0, "unshared": 0}
    recording = {"mode": "off", "until": None, "dropped": 0, "kept_bytes": 0, "fleet": fleet}
    stand_in.documents["GET", "/recording"] = recording
    stand_in.documents["POST", "/recording"] = {**recording, "unreached": "only this machine until then"}
    stand_in.rows = [row(0, time.time())]
    stand_in.traces["req-000000"] = {
        "row": stand_in.rows[0],
        "losses": [],
        "why": "recorded by elsewhere/7, and sealed with another secret",
    }
    page = opened(stand_in.origin + "/inspector")
    expect(page.get_by_text("The fleet's store is away")).to_contain_text("PostgreSQL cannot be reached")
    page.get_by_role("button", name="Record bodies").click()
    expect(page.get_by_role("alert")).to_have_text("only this machine until then")
    page.goto(stand_in.origin + "/inspector/x/req-000000")
    expect(
        page.get_by_text("They were recorded by elsewhere/7, and sealed with another secret.")
    ).to_be_visible()
