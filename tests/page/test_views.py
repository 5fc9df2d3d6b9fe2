"""What a view says of what it cannot know yet, and how it fits on a phone."""

from __future__ import annotations

import json
import time

import pytest
from playwright.sync_api import expect

from tests.page.given import documents, row, trace


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
            {**turns, "session": "whole", "losses": 0},
        ]
    }
    page = opened(stand_in.origin + "/inspector/conversations")
    for session, grade in (
        ("kind", "· 8 harmless"),
        ("worse", "≈ 1 degraded +2"),
        ("whole", "✓ none"),
    ):
        expect(page.locator(".conversation").filter(has_text=session).locator(".grade")).to_have_text(grade)


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
