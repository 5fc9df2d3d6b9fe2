"""What arrives late leaves what is under the pointer where it is: no click is lost, and none goes to another line."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import Opened
from tests.page.given import documents, row, trace
from tests.page.stand_in import StandIn
from tests.page.test_exchange import truths

API = r"/inspector/api"
SESSION = "s1"
WIDTHS = (1440, 1024, 390)
READ = """
(() => {
  const json = Response.prototype.json;
  window.answersRead = [];
  Response.prototype.json = async function () {
    const found = await json.call(this);
    setTimeout(() => window.answersRead.push(this.url));
    return found;
  };
})()
"""
"""Says which answers the page has read, after it has put them into its state."""


class Late:
    """The answers at the addresses that match, held back until a test lets them go."""

    def __init__(self, page: Page, path: str) -> None:
        self.page = page
        self.pattern = re.compile(API + path + r"(\?|$)")
        self._routes: list[Route] = []
        page.route(self.pattern, lambda route: self._routes.append(route))

    def arrive(self) -> None:
        """Let the oldest one go, and wait until the page has read it and had the time to draw it."""
        while not self._routes:
            self.page.wait_for_timeout(10)
        address = self._routes[0].request.url
        self._routes.pop(0).continue_()
        self.page.wait_for_function("address => window.answersRead.includes(address)", arg=address)
        drawn(self.page)


def drawn(page: Page) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def visited(page: Page, stand_in: StandIn, path: str) -> None:
    page.goto(f"{stand_in.origin}/inspector{path}")
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()


def prepared(opened: Opened, stand_in: StandIn, **how: object) -> Page:
    """A page that says what it has read, in a view that asks for nothing."""
    page = opened(f"{stand_in.origin}/inspector/nowhere", **how)
    page.add_init_script(READ)
    return page


def press(page: Page, what: Locator) -> None:
    what.hover()
    page.mouse.down()


class Still:
    """What is there when it is made, each by its words and its place; `moved` says which has another place by now."""

    def __init__(self, what: Locator) -> None:
        self.what = what.element_handles()
        self.before = self._places()
        assert self.before

    def _places(self) -> list[tuple[str, list[float]]]:
        return [
            each.evaluate(
                """each => {
                    const { left, top, right, bottom } = each.getBoundingClientRect();
                    return [each.innerText || each.ariaLabel, each.isConnected ? [left, top, right, bottom] : []];
                }"""
            )
            for each in self.what
        ]

    def moved(self) -> list[tuple[str, list[float], list[float]]]:
        both = zip(self.before, self._places(), strict=True)
        return [(name, before, after) for (name, before), (_, after) in both if before != after]


def conversation(stand_in: StandIn, turns: int = 6) -> list[str]:
    """A session of so many turns, the newest first, of which every second has a mark of the cache; their ids."""
    at = time.time()
    stand_in.rows = [
        row(number, at - number, session=SESSION, recorded=True, title=f"words {number}")
        for number in range(turns)
    ]
    ids = [each["id"] for each in stand_in.rows]
    truth = truths(at)[-1]
    first = {"id": ids[-1], "at": at - turns, "verdict": "first"}
    stand_in.caches[ids[0]] = [first, *({**truth, "id": id} for id in ids[-3::-2])]
    listed = {"session": SESSION, "client": "codex", "turns": turns, "first_at": at - turns, "last_at": at}
    stand_in.documents["GET", "/conversations"] = {"conversations": [listed]}
    for each in stand_in.rows:
        stand_in.traces[each["id"]] = {**trace(at), "row": each}
    return ids


def test_a_turn_that_is_pressed_opens_though_the_marks_of_the_cache_come_meanwhile(stand_in, opened):
    ids = conversation(stand_in)
    page = prepared(opened, stand_in)
    cache = Late(page, r"/exchanges/[^/]+/cache")
    visited(page, stand_in, f"/conversations?session={SESSION}")
    expect(page.locator(".turn")).to_have_count(len(ids))
    press(page, page.locator(".turn").last)
    cache.arrive()
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"/x/{ids[0]}$"))


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_marks_of_the_cache_move_no_turn_and_no_button(width, stand_in, opened):
    conversation(stand_in)
    page = prepared(opened, stand_in, width=width)
    cache = Late(page, r"/exchanges/[^/]+/cache")
    visited(page, stand_in, f"/conversations?session={SESSION}")
    read = page.get_by_role("button", name="Read the conversation")
    expect(read).to_be_visible()
    still = Still(page.locator(".turn").or_(read))
    cache.arrive()
    expect(page.locator(".turn-cache .grade").first).to_be_visible()
    expect(page.get_by_role("group", name="Prompt cache")).to_be_visible()
    assert still.moved() == []


@pytest.mark.whole
def test_a_conversation_that_is_pressed_opens_though_others_come_before_it(stand_in, opened):
    at = time.time()
    stand_in.documents |= documents(at)
    page = prepared(opened, stand_in)
    page.clock.install()
    visited(page, stand_in, "/conversations")
    lines = page.locator(".conversation")
    expect(lines).to_have_count(5)
    listed = stand_in.documents["GET", "/conversations"]["conversations"]
    new = [{**listed[0], "session": f"new-{number}"} for number in range(2)]
    stand_in.documents["GET", "/conversations"] = {"conversations": [*new, *listed[::-1]]}
    conversations = Late(page, "/conversations")
    press(page, lines.filter(has_text="session-1"))
    page.clock.fast_forward(10_000)
    conversations.arrive()
    page.mouse.up()
    expect(page).to_have_url(re.compile("session=session-1$"))
    expect(lines).to_have_count(7)


def test_an_exchange_that_is_pressed_opens_though_others_come_above_it(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(40)]
    for each in stand_in.rows:
        stand_in.traces[each["id"]] = {**trace(at), "row": each}
    page = opened(stand_in.origin + "/inspector", width=1000)
    other = page.context.new_page()
    other.goto(stand_in.origin + "/inspector")
    for tab in (page, other):
        expect(tab.get_by_text("40 exchanges")).to_be_visible()
        expect(tab.locator(".connection")).to_have_text("Live")
    page.bring_to_front()
    press(page, page.locator("#row-req-000005"))
    for number in range(100, 103):
        stand_in.tell("row", row(number, at + number))
    running = row(5, at - 5, state="running", status=0, total_ms=None, losses=None, purpose="subagent")
    stand_in.tell("row", running)
    expect(other.locator("#row-req-000005 .status-running")).to_be_visible()
    drawn(page)
    page.mouse.up()
    expect(page).to_have_url(re.compile("/x/req-000005$"))


@pytest.mark.whole
def test_a_link_of_the_dashboards_that_is_pressed_is_followed_though_other_figures_come(stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = prepared(opened, stand_in, height=3000)
    page.clock.install()
    visited(page, stand_in, "/dash")
    links = page.get_by_role("link", name="Only model")
    expect(links.nth(1)).to_be_visible()
    name = links.nth(1).inner_text()
    found = stand_in.documents["GET", "/dashboard"]
    new = {**found["groups"][0], "name": "another"}
    stand_in.documents["GET", "/dashboard"] = {
        **found,
        "durations": "measured",
        "groups": [new, {**new, "name": "a third"}, *found["groups"][::-1]],
    }
    figures = Late(page, "/dashboard")
    press(page, links.nth(1))
    page.clock.fast_forward(30_000)
    figures.arrive()
    page.mouse.up()
    expect(page).to_have_url(re.compile(f"model={re.escape(name)}"))


@pytest.mark.whole
def test_a_key_that_is_pressed_is_changed_though_the_secret_of_another_is_shown_meanwhile(stand_in, opened):
    stand_in.documents |= documents(time.time())
    stand_in.documents["GET", "/session"] |= {"access": "admin", "admin": True}
    keys = stand_in.documents["GET", "/keys"]["data"]
    active = [{**keys[0], "name": name, "state": "active", "stored": True} for name in ("ada", "bob", "cy")]
    stand_in.documents["GET", "/keys"] = {"data": active}
    stand_in.documents["POST", "/keys/ada/rotate"] = {**active[0], "key": "wg-a-new-secret"}
    page = prepared(opened, stand_in)
    renewed = Late(page, "/keys/ada/rotate")
    visited(page, stand_in, "/keys")
    page.get_by_role("button", name="Renew ada").click()
    page.get_by_role("dialog").get_by_role("button", name="Renew").click()
    press(page, page.get_by_role("row", name="cy").get_by_role("button", name="Change"))
    renewed.arrive()
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_contain_text("cy")
    page.keyboard.press("Escape")
    expect(page.get_by_text("wg-a-new-secret")).to_be_visible()


@pytest.mark.whole
def test_a_part_of_an_exchange_that_is_pressed_is_chosen_though_its_losses_come_meanwhile(stand_in, opened):
    found = trace(time.time())
    stand_in.traces["req-trace"] = {**found, "losses": []}
    page = prepared(opened, stand_in, height=1400)
    told = Late(page, r"/exchanges/req-trace\?only=told")
    visited(page, stand_in, "/x/req-trace")
    client = page.get_by_role("region", name="Client request")
    part = client.locator(".part.by-user").last  # it is in sight
    expect(part).to_be_visible()
    stand_in.traces["req-trace"] = {**found, "notes": [f"note {number}" for number in range(4)]}
    press(page, part)
    told.arrive()
    page.mouse.up()
    expect(part).to_have_class(re.compile(r"\blit\b"))
    expect(page.get_by_text("note 3")).to_be_visible()


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_recorded_and_what_is_usual_moves_no_row_and_no_button_of_the_list(width, stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(20)]
    pair = {"client": "codex", "provider": "kimi", "exchanges": 50, "features": {"cache_marker": 1}}
    stand_in.documents["GET", "/losses"] = {"pairs": [pair]}
    memory = {"exchanges": 20, "bytes": 9000, "most_bytes": 90_000}
    stand_in.documents["GET", "/recording"] |= {"memory": memory}
    page = prepared(opened, stand_in, width=width)
    recording, losses = Late(page, "/recording"), Late(page, "/losses")
    visited(page, stand_in, "")
    expect(page.locator(".connection")).to_have_text("Live")
    expect(page.get_by_text("20 exchanges")).to_be_visible()
    stay = page.locator(".rows .line, .actions > button, .actions .menu > button, .filters select")
    still = Still(stay)
    recording.arrive()
    losses.arrive()
    expect(page.get_by_text("last bodies in memory")).to_be_attached()
    expect(page.get_by_role("button", name="Losses: 1 new")).to_be_visible()
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_the_mark_of_the_cache_moves_nothing_of_an_exchange(width, stand_in, opened):
    at = time.time()
    stand_in.traces["req-trace"] = trace(at)
    stand_in.caches["req-trace"] = [{**truths(at)[-1], "id": "req-trace"}]
    page = prepared(opened, stand_in, width=width)
    cache = Late(page, "/exchanges/req-trace/cache")
    visited(page, stand_in, "/x/req-trace")
    expect(page.get_by_role("region", name="Client request").locator(".loss-mark").first).to_be_visible()
    stay = page.locator(".facts a, .exchange-actions > *, .pane, .pane .part")
    still = Still(stay)
    cache.arrive()
    expect(page.locator(".facts").get_by_role("button", name="cached")).to_be_visible()
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_that_bodies_can_be_recorded_moves_nothing_of_an_exchange_without_them(width, stand_in, opened):
    at = time.time()
    stand_in.traces["req-000001"] = {"row": row(1, at), "losses": []}
    page = prepared(opened, stand_in, width=width)
    recording = Late(page, "/recording")
    visited(page, stand_in, "/x/req-000001")
    stay = page.get_by_role("tab")
    expect(stay.first).to_be_visible()
    still = Still(stay)
    recording.arrive()
    expect(page.get_by_role("button", name="Record bodies")).to_be_enabled()
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_new_figures_move_no_link_of_those_that_are_shown(width, stand_in, opened):
    stand_in.documents |= documents(time.time())
    page = prepared(opened, stand_in, width=width)
    visited(page, stand_in, "/dash")
    links = page.locator(".dash table a")
    expect(links.first).to_be_visible()
    still = Still(links)
    figures = Late(page, "/dashboard")
    page.get_by_role("button", name="6 h").click()
    expect(page.get_by_text("Adding up")).to_be_visible()
    assert still.moved() == []
    figures.arrive()
    expect(page.get_by_text("Adding up")).to_have_count(0)
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_what_the_file_allows_moves_no_button_of_a_provider(width, stand_in, opened):
    stand_in.documents |= documents(time.time())
    setup = stand_in.documents["GET", "/setup"]
    kept = {"key": "file", "keeps_as": "A_KEY", "kept": "A_KEY", "host": "api.example", "models": 3}
    named = [("kimi", True), ("openai", False), ("groq", False)]
    setup["providers"] = [
        {**kept, "name": name, "title": name, "on": on, "why": "its key is kept"} for name, on in named
    ]
    stand_in.documents["GET", "/config"] = {
        "path": "wireglot.toml",
        "text": "",
        "digest": "d",
        "exists": True,
        "overridden": [],
        "may_change_all": True,
        "why_fixed": "",
    }
    page = prepared(opened, stand_in, width=width)
    file = Late(page, "/config")
    visited(page, stand_in, "/setup")
    expect(page.get_by_role("heading", name="Settings for each client")).to_be_visible()
    stay = page.locator("main button")
    still = Still(stay)
    file.arrive()
    expect(page.get_by_role("button", name="Turn on groq")).to_be_visible()
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_what_a_replay_costs_moves_neither_its_button_nor_its_body(width, stand_in, opened):
    stand_in.documents |= documents(time.time())
    stand_in.traces["req-trace"] = trace(time.time())
    estimate = {"input": 12_000, "max_output": 4000, "cost": 93_000}
    goes = {"provider": "kimi", "model": "kimi-k3", "pays": "MOONSHOT_API_KEY", "key": "ada", "sends": True}
    stand_in.documents["POST", "/replay"] = {**goes, "estimate": estimate}
    page = prepared(opened, stand_in, width=width)
    cost = Late(page, "/replay")
    visited(page, stand_in, "/replay/req-trace")
    stay = page.locator(".replay-form > .main, .replay-body")
    expect(page.get_by_role("button", name="Estimating")).to_be_visible()
    still = Still(stay)
    cost.arrive()
    expect(page.get_by_role("button", name="Send it and compare")).to_be_enabled()
    # The button's words are longer by now, and the body has its editor.
    assert [each for each in still.moved() if each[1][1:3] != each[2][1:3]] == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_changes_that_were_skipped_move_no_row_of_the_list(width, stand_in, opened):
    stand_in.rows = [row(number, time.time() - number) for number in range(5)]
    page = opened(stand_in.origin + "/inspector", width=width)
    expect(page.get_by_text("5 exchanges")).to_be_visible()
    expect(page.locator(".connection")).to_have_text("Live")
    expect(page.get_by_role("button", name="Record bodies")).to_be_enabled()
    still = Still(page.locator(".rows .line"))
    stand_in.tell("dropped", {"count": 3})
    expect(page.get_by_text("3 changes were skipped")).to_be_visible()
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_a_new_exchange_moves_no_link_to_a_neighbour(width, stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(9)]
    stand_in.traces["req-000001"] = {**trace(at), "row": stand_in.rows[1]}
    page = opened(stand_in.origin + "/inspector/x/req-000001", width=width)
    neighbours = page.get_by_role("navigation", name="Neighbours in the list")
    expect(neighbours).to_contain_text("2 of 9")
    still = Still(neighbours.get_by_role("link"))
    stand_in.tell("row", row(10, at + 1))
    expect(neighbours).to_contain_text("3 of 10")
    assert still.moved() == []


@pytest.mark.whole
@pytest.mark.parametrize("width", WIDTHS)
def test_the_end_of_a_running_exchange_moves_none_of_those_it_is_compared_with(width, stand_in, opened):
    at = time.time()
    ended = trace(at, id="req-two")
    stand_in.traces["req-trace"] = trace(at)
    stand_in.traces["req-two"] = {**ended, "row": {**ended["row"], "state": "running"}}
    page = opened(stand_in.origin + "/inspector/compare/req-trace/req-two", width=width)
    expect(page.get_by_text("Some are still running")).to_be_visible()
    still = Still(page.locator(".compare table a, .compare .actions a"))
    stand_in.traces["req-two"] = ended
    stand_in.tell("row", ended["row"])
    expect(page.get_by_text("Some are still running")).to_have_count(0)
    assert [each for each in still.moved() if each[1][1] != each[2][1]] == []  # its column is wider by now
