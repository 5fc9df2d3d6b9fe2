"""What a view says of what it cannot know yet, and how it fits on a phone."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.page.given import documents, row, trace

pytestmark = pytest.mark.whole  # a browser of its own; test_flows.py goes through the views at every change


def test_a_running_exchange_says_that_it_runs_and_shows_its_bodies_at_the_end(stand_in, opened):
    at = time.time()
    running = row(1, at, state="running", status=0, total_ms=None, losses=None, recorded=False)
    stand_in.documents["GET", "/recording"] = {"mode": "all", "until": None, "dropped": 0, "kept_bytes": 0}
    stand_in.traces["req-000001"] = {"row": running, "losses": []}
    page = opened(stand_in.origin + "/inspector/x/req-000001")
    expect(page.get_by_role("heading", name="It is still running")).to_be_visible()
    expect(page.get_by_text("Losses are shown when it ends.")).to_be_visible()
    expect(page.get_by_text("Records all bodies")).to_be_visible()
    for early in ("nothing was lost", "none", "No bodies", "--trace"):
        expect(page.get_by_text(early)).to_have_count(0)
    ended = {**trace(at), "row": row(1, at)}
    stand_in.traces["req-000001"] = ended
    stand_in.tell("row", ended["row"])
    expect(page.get_by_role("region", name="Client request")).to_be_visible()


def test_the_other_side_of_a_part_is_brought_into_sight_however_long_what_stands_above_it_is(
    stand_in, opened
):
    """How high parts are that were never in sight is only guessed."""
    said = ["a line\n" * (1 + number * 7 % 60) for number in range(40)]
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    found = trace(time.time())
    found["request"]["body"] = json.dumps({"model": "m", "messages": messages})
    attempt = found["attempts"][-1]
    attempt["request"]["body"] = json.dumps({"model": "m", "messages": messages[::-1]})
    attempt["links"] = [{"client": f"/messages/{at}", "upstream": f"/messages/{39 - at}"} for at in range(40)]
    stand_in.traces["req-trace"] = found
    page = opened(stand_in.origin + "/inspector/x/req-trace", height=1000)
    client = page.get_by_role("region", name="Client request")
    client.locator('[data-pointer="/messages/0/content"]').click()
    other = page.get_by_role("region", name="Upstream request").locator(".part.lit")
    expect(other).to_have_attribute("data-pointer", "/messages/39/content")
    expect(other).to_be_in_viewport(ratio=0.9)


def test_a_conversation_has_the_colour_of_its_worst_loss(stand_in, opened):
    turns = {"client": "codex", "turns": 4, "first_at": time.time(), "last_at": time.time()}
    stand_in.documents["GET", "/conversations"] = {
        "conversations": [
            {**turns, "session": "kind", "losses": 8, "harmless": 8},
            {**turns, "session": "worse", "losses": 3, "degraded": 1, "harmless": 2},
            {**turns, "session": "whole", "losses": 0, "title": "fix the parser", "failed": 2},
        ]
    }
    page = opened(stand_in.origin + "/inspector/conversations")
    for session, grade in (
        ("kind", "· 8 harmless"),
        ("worse", "≈ 1 degraded +2"),
        ("whole", "✓ none"),
    ):
        expect(page.locator(".conversation").filter(has_text=session).locator(".grade")).to_have_text(grade)
    page.get_by_label("Search conversations").fill("the parser")
    expect(page.locator(".conversation")).to_have_count(1)
    expect(page.locator(".conversation")).to_contain_text("2 failed")


def test_a_search_of_conversations_says_what_it_looked_at(stand_in, opened):
    stand_in.documents |= documents(time.time())
    found = stand_in.documents["GET", "/conversations"]
    stand_in.documents["GET", "/conversations"] = {**found, "count": 12}
    page = opened(stand_in.origin + "/inspector/conversations")
    expect(page.get_by_text("The newest 5 conversations; 7 older ones not shown.")).to_be_visible()
    page.get_by_label("Search conversations").fill("session-3")
    said = page.get_by_role("status").filter(has_text="Found by")
    expect(said).to_contain_text(
        "Found by name, client, model or session: 1 of 5 conversations; 7 older ones not searched."
    )
    said.get_by_role("link", name="Search the texts of all exchanges").click()
    expect(page.get_by_label("Search exchanges")).to_have_value("session-3")


@pytest.mark.parametrize("view", ["keys", "setup", "compare/req-trace/req-two"])
def test_a_view_fits_on_a_phone(view, stand_in, opened):
    at = time.time()
    stand_in.documents |= documents(at)
    stand_in.documents["GET", "/session"] |= {"access": "admin", "admin": True}
    stand_in.traces["req-trace"] = trace(at)
    stand_in.traces["req-two"] = json.loads(json.dumps(trace(at, id="req-two")))
    page = opened(f"{stand_in.origin}/inspector/{view}", width=390, height=780)
    page.locator("main h1").wait_for()
    page.locator(".waiting").wait_for(state="detached")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    # Where one is stands in sight, with nothing of it cut off.
    expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.9)
    for cell in page.locator(".facts-table tr:first-child > *").all():
        expect(cell).to_be_in_viewport(ratio=0.9)


def agents_of_a_conversation(at: float) -> list[dict[str, Any]]:
    """Rows, the newest first: a main agent, one that it started, one that this started, and two in a ring."""
    reported = [
        ("main", "main", "", "", ""),
        ("main", "main", "", "", ""),
        ("subagent", "subagent", "Explore", "a1", ""),
        ("subagent", "subagent", "Plan", "a2", "a1"),
        ("subagent", "workflow", "", "a3", "gone"),
        ("subagent", "subagent", "ring", "r1", "r2"),
        ("subagent", "subagent", "ring", "r2", "r1"),
        ("background", "summary-extraction", "", "", ""),
        ("compaction", "compaction", "", "", ""),
    ]
    return [
        {
            "id": f"req-{number}",
            "at": at - number,
            "state": "done",
            "status": 200,
            "client": "claude-code",
            "session": "s1",
            "asked": "claude-sonnet-5",
            "provider": "kimi",
            "model": "kimi-k3",
            "total_ms": 900.0,
            "tokens": {"input": 1000 * (number + 1), "output": 100},
            "losses": {},
            "purpose": purpose,
            "purpose_word": word,
            "agent_name": name,
            "agent_id": id,
            "parent_agent_id": parent,
        }
        for number, (purpose, word, name, id, parent) in enumerate(reported)
    ]


def test_agents_of_a_conversation_are_a_tree_and_one_can_be_chosen(stand_in, opened):
    at = time.time()
    stand_in.rows = agents_of_a_conversation(at)
    stand_in.documents["GET", "/conversations"] = {
        "conversations": [
            {"session": "s1", "client": "claude-code", "turns": 9, "first_at": at - 9, "last_at": at}
        ]
    }
    page = opened(stand_in.origin + "/inspector/conversations?session=s1")
    tree = page.locator(".agents")
    names = tree.locator(".agent strong")
    # The oldest first; a parent that is not known, or is its own ancestor, is the main agent.
    expect(names).to_have_text(["main", "ring", "ring", "sub-agent", "Explore", "Plan"])
    explore = tree.locator("li").filter(has=page.locator('> button[title="a1"]'))
    expect(explore.locator("ul .agent strong")).to_have_text(["Plan"])
    expect(tree.locator('.agent[title=""]')).to_contain_text("4 turns")
    expect(page.locator(".turn")).to_have_count(9)
    tree.get_by_role("button", name="Explore").click()
    expect(page.locator(".turn")).to_have_count(1)
    expect(page.locator(".turn .purpose")).to_have_text("Explore")
    expect(page).to_have_url(re.compile("agent=a1"))
    tree.get_by_role("button", name="main").click()
    expect(page.locator(".turn")).to_have_count(4)
    expect(page.locator(".turn .purpose")).to_have_text(["compaction", "background"])
    tree.get_by_role("button", name="main").click()
    expect(page.locator(".turn")).to_have_count(9)


def test_a_conversation_of_one_agent_has_no_tree(stand_in, opened):
    at = time.time()
    stand_in.rows = agents_of_a_conversation(at)[:2]
    stand_in.documents["GET", "/conversations"] = {
        "conversations": [
            {"session": "s1", "client": "claude-code", "turns": 2, "first_at": at - 2, "last_at": at}
        ]
    }
    page = opened(stand_in.origin + "/inspector/conversations?session=s1")
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".agents")).to_have_count(0)
    expect(page.locator(".purpose")).to_have_count(0)


def test_the_list_shows_and_filters_what_requests_are_for(stand_in, opened):
    stand_in.rows = agents_of_a_conversation(time.time())
    page = opened(stand_in.origin + "/inspector", width=1280, height=800)
    expect(page.locator(".rows .purpose")).to_have_text(
        ["Explore", "Plan", "sub-agent", "ring", "ring", "background", "compaction"]
    )
    expect(page.locator(".rows .purpose").nth(2)).to_have_attribute(
        "title", "purpose: subagent (workflow)\nagent id: a3\nstarted by: gone"
    )
    page.get_by_label("Agent", exact=True).select_option("Explore")
    expect(page.locator(".rows .purpose")).to_have_text(["Explore"])
    expect(page).to_have_url(re.compile("agent=Explore"))
    page.get_by_label("Agent", exact=True).select_option("")
    page.get_by_label("Purpose").select_option("background")
    expect(page.locator(".rows .purpose")).to_have_text(["background"])
    expect(page).to_have_url(re.compile("purpose=background"))


def test_exchanges_to_compare_are_chosen_from_a_list(stand_in, opened):
    at = time.time()
    ids = [f"req-{number:06d}" for number in range(4)]
    stand_in.rows = [
        row(number, at - number, recorded=number != 3, title=f"words {number}") for number in range(4)
    ]
    for number, id in enumerate(ids):
        stand_in.traces[id] = {**trace(at), "row": stand_in.rows[number]}
    page = opened(f"{stand_in.origin}/inspector/x/{ids[0]}")
    page.get_by_role("link", name="Compare …").click()
    expect(page.get_by_role("checkbox")).to_have_count(3)  # one has no bodies
    expect(page.get_by_role("checkbox").first).to_be_checked()
    expect(page.get_by_role("button", name="Choose two or more")).to_be_disabled()
    page.get_by_role("checkbox", name=re.compile("words 2")).check()
    page.get_by_role("button", name="Compare 2").click()
    expect(page).to_have_url(re.compile(f"/compare/{ids[0]}/{ids[2]}$"))
    expect(page.locator(".compared").first).to_be_visible()
    page.get_by_role("link", name="Add others …").click()
    page.get_by_role("checkbox", name=re.compile("words 1")).check()
    page.get_by_role("button", name="Compare 3").click()
    expect(page).to_have_url(re.compile(f"/compare/{ids[0]}/{ids[2]}/{ids[1]}$"))


def test_all_models_are_in_the_list_of_which_as_many_are_in_sight_as_there_is_room_for(stand_in, opened):
    stand_in.documents |= documents(time.time())
    targets = [{"id": f"vendor/model-{number}", "on": True} for number in range(200)]
    stand_in.documents["GET", "/targets"] = {"targets": targets, "count": len(targets)}
    page = opened(stand_in.origin + "/inspector/play")
    field = page.get_by_role("combobox", name="As the gateway would send it to")
    field.click()
    options = page.get_by_role("listbox", name="Models").get_by_role("option")
    expect(options).to_have_count(200)
    for number in range(10):
        expect(options.nth(number)).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_text("As the gateway would send it to")).to_be_in_viewport(ratio=1)
    field.fill("model-17")
    expect(options).to_have_count(11)


@pytest.mark.parametrize("lost", [True, False])
def test_a_signature_that_is_lost_is_not_said_to_go_back(lost, stand_in, opened):
    found = trace(time.time())
    said = {"type": "thinking", "thinking": "", "signature": "x" * 1200}
    turns = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": [said]}]
    found["request"]["body"] = json.dumps({"model": "m", "messages": turns})
    place = {"path": "$.messages[1].content[0]", "pointer": "/messages/1/content/0"}
    loss = {"feature": "reasoning.signature", "action": "dropped", "grade": "degraded", "document": "request"}
    found["losses"] = [{**loss, **place}] if lost else []
    stand_in.traces["req-trace"] = found
    page = opened(stand_in.origin + "/inspector/x/req-trace")
    card = page.get_by_role("region", name="Client request").locator(".part-reasoning")
    expect(card).to_contain_text("A signature of 1,200 characters without text")
    expect(card.get_by_text("reasoning.signature")).to_have_count(1 if lost else 0)
    expect(card.get_by_text("goes back to the provider unchanged")).to_have_count(0 if lost else 1)


@pytest.mark.parametrize("width", [1280, 390])
def test_no_column_of_the_exchanges_to_compare_is_printed_over_another(width, stand_in, opened):
    at = time.time()
    states: tuple[dict[str, Any], ...] = (
        {"state": "left"},
        {"state": "failed", "status": 200},
        {"state": "running", "status": 0},
    )
    stand_in.rows = [
        row(number, at - number, recorded=True, total_ms=125_000.0, **more)
        for number, more in enumerate(states)
    ]
    stand_in.traces["req-trace"] = trace(at)
    page = opened(stand_in.origin + "/inspector/compare/req-trace", width=width)
    expect(page.locator(".choosing li")).to_have_count(3)
    over = page.locator(".choosing li").evaluate_all(
        """lines => lines.flatMap((line) => {
            const range = document.createRange()
            const boxes = [...line.querySelectorAll("label > *, a")].map((each) => {
                range.selectNodeContents(each)
                const inner = each.matches(".clip") ? each.getBoundingClientRect() : range.getBoundingClientRect()
                return { name: each.textContent, inner }
            }).filter(({ inner }) => inner.width > 0)
            return boxes.flatMap(({ name, inner: one }, at) => boxes.slice(at + 1)
                .filter(({ inner: two }) => one.right > two.left + 1 && two.right > one.left + 1 && one.bottom > two.top + 1 && two.bottom > one.top + 1)
                .map((other) => `${name} | ${other.name}`))
        })"""
    )
    assert over == []
