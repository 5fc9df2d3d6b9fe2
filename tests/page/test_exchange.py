"""What is seen of one exchange before anything is clicked, what is found in it, and what its cache gave."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.page.given import trace
from tests.page.test_accessibility import found_by

ID = "req-trace"
BROKEN = {
    "reason": "a date or time in the system text changed",
    "pointer": "/messages/0/content",
    "before": "…Today is 2026-11-17.",
    "after": "…Today is 2026-11-18.",
}


def truths(at: float) -> list[dict[str, Any]]:
    first = {"id": "req-before", "at": at - 60, "verdict": "first", "input": 5000, "cached": 0}
    second = {"id": ID, "at": at, "verdict": "partly", "previous": "req-before", "input": 12_345}
    counted = {"expected": 11_800, "cached": 4096, "same": 7, "blocks": 9}
    return [first, {**second, **counted, "broken": BROKEN}]


def made(at: float) -> dict[str, Any]:
    """With a thought that is only signed, and a system text whose white space differs upstream."""
    found = trace(at)
    body, sent = json.loads(found["request"]["body"]), json.loads(found["attempts"][0]["request"]["body"])
    body["system"][0]["text"] += "\n\nBe  brief."
    sent["messages"][0]["content"] = body["system"][0]["text"].replace("Be  brief.", "Be brief.\n")
    turn = next(turn for turn in body["messages"] if turn["role"] == "assistant")
    turn["content"].insert(0, {"type": "thinking", "thinking": "", "signature": "s" * 1200})
    found["request"]["body"] = json.dumps(body)
    found["attempts"][0]["request"]["body"] = json.dumps(sent)
    links = found["attempts"][0]["links"]
    links.append({"client": "/system/0", "upstream": "/messages/0/content"})
    return found


def test_the_last_words_the_answer_and_what_plays_it_are_in_sight(stand_in, opened):
    stand_in.traces[ID] = made(time.time())
    page = opened(f"{stand_in.origin}/inspector/x/{ID}", width=1440, height=900)
    for side in ("Client request", "Upstream request"):
        last = page.get_by_role("region", name=side).locator(".reading > [data-pointer]").last
        expect(last).to_be_in_viewport()
    answer = page.get_by_role("region", name="Client answer")
    expect(answer.locator(".part").nth(1)).to_be_in_viewport()
    play, above = page.get_by_role("button", name="▶ Play").bounding_box(), answer.bounding_box()
    asked = page.get_by_role("region", name="Client request").bounding_box()
    assert play
    assert above
    assert asked
    assert asked["y"] + asked["height"] <= play["y"] < above["y"]
    # Short ones are short, and long ones scroll.
    assert above["height"] < 400
    reading = page.get_by_role("region", name="Client request").locator(".reading")
    assert reading.evaluate("each => each.scrollHeight > each.clientHeight + 100")
    # Once somebody has been there, nothing moves by itself.
    reading.focus()
    page.keyboard.press("Home")
    expect(reading.locator("[data-pointer]").first).to_be_in_viewport()


@pytest.mark.whole
def test_what_cannot_be_seen_is_explained(stand_in, opened):
    stand_in.traces[ID] = made(time.time())
    page = opened(f"{stand_in.origin}/inspector/x/{ID}")
    asked = page.get_by_role("region", name="Client request")
    expect(asked.locator(".part-note")).to_contain_text("A signature of 1,200 characters without text")
    spaced = asked.locator(".spaced")
    expect(spaced.locator("summary")).to_contain_text("White space differs from the other side in 2 places")
    spaced.locator("summary").click()
    expect(spaced.locator("del")).to_contain_text("␣")
    expect(spaced.locator("ins")).to_contain_text("⏎")


@pytest.mark.whole
def test_a_search_finds_places_on_every_side_and_marks_them(stand_in, opened, axe):
    stand_in.traces[ID] = made(time.time())
    page = opened(f"{stand_in.origin}/inspector/x/{ID}")
    page.get_by_label("Search in this exchange").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("brief")
    found = page.get_by_role("region", name="Found in this exchange")
    expect(found.get_by_role("status")).to_have_text("2 places")
    hit = found.get_by_role("button").nth(1)
    expect(hit).to_contain_text("Upstream request")
    expect(hit.locator("mark")).to_have_text("brief")
    assert found_by(axe, page) == []
    hit.click()
    asked = page.get_by_role("region", name="Upstream request")
    expect(asked.locator(".part.lit mark")).to_have_text("brief")
    expect(asked.locator(".part.lit mark")).to_be_in_viewport()
    page.get_by_label("Search in this exchange").fill("nowhere to be found")
    expect(found.get_by_role("status")).to_have_text("Not found in this exchange.")


@pytest.mark.whole
def test_a_search_is_in_the_exchange_next_to_the_list(stand_in, opened):
    stand_in.traces[ID] = made(time.time())
    stand_in.rows = [stand_in.traces[ID]["row"]]
    page = opened(f"{stand_in.origin}/inspector?at={ID}&open=1", width=1440)
    field = page.get_by_label("Search in this exchange")
    field.fill("brief")
    found = page.get_by_role("region", name="Found in this exchange")
    expect(found.get_by_role("status")).to_have_text("2 places")
    expect(field).to_be_focused()


@pytest.mark.whole
def test_every_place_that_was_found_is_brought_into_sight(stand_in, opened):
    found = trace(time.time())
    said = ["a line\n" * 80 + f"needle {number}." for number in range(200)]
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    found["request"]["body"] = json.dumps({"model": "m", "messages": messages})
    stand_in.traces[ID] = found
    page = opened(f"{stand_in.origin}/inspector/x/{ID}")
    asked = page.get_by_role("region", name="Client request")
    for number in (20, 90, 21):
        page.get_by_label("Search in this exchange").fill(f"needle {number}.")
        places = page.get_by_role("region", name="Found in this exchange")
        expect(places.get_by_role("status")).to_have_text("1 place")
        places.get_by_role("button").click()
        expect(asked.locator(".part.lit mark")).to_have_text(f"needle {number}.")
        expect(asked.locator(".part.lit mark")).to_be_in_viewport()
        assert asked.locator(".part").count() < 60


@pytest.mark.sampled
@pytest.mark.parametrize("width", [1440, 390])
def test_what_the_cache_should_have_had_is_shown_with_what_broke_it(width, stand_in, opened, axe):
    at = time.time()
    stand_in.traces[ID] = made(at)
    stand_in.caches[ID] = truths(at)
    scheme = "dark" if width == 390 else "light"
    page = opened(f"{stand_in.origin}/inspector/x/{ID}", width=width, scheme=scheme)
    page.get_by_role("button", name="4,096 of ≈11,800 cached").click()
    cache = page.get_by_role("region", name="Prompt cache")
    expect(cache).to_contain_text("7 of 9 blocks of the turn before")
    expect(cache.locator("del")).to_contain_text("2026-11-17")
    assert found_by(axe, page) == []
    cache.get_by_role("button", name="/messages/0/content").click()
    asked = page.get_by_role("region", name="Upstream request")
    expect(asked.locator(".jl.lit").first).to_be_in_viewport()


def test_a_conversation_sums_up_its_cache(stand_in, opened, axe):
    at = time.time()
    row = {**made(at)["row"], "session": "s1"}
    stand_in.rows = [row]
    stand_in.caches[ID] = truths(at)
    listed = {"session": "s1", "client": "claude-code", "turns": 2, "first_at": at, "last_at": at}
    stand_in.documents["GET", "/conversations"] = {"conversations": [listed]}
    page = opened(f"{stand_in.origin}/inspector/conversations?session=s1")
    cache = page.get_by_role("group", name="Prompt cache")
    expect(cache).to_contain_text("4,096 of about 11,800 tokens that could come from the cache did (35 %)")
    expect(cache.get_by_role("listitem")).to_have_count(1)
    expect(cache).to_contain_text("a date or time in the system text changed")
    # Every turn has its own part of it.
    expect(page.locator(".turn-cache")).to_have_text("≈ 4,096 of ≈11,800 cached")
    assert found_by(axe, page) == []


def test_losses_fit_a_phone(stand_in, opened):
    stand_in.traces[ID] = made(time.time())
    page = opened(f"{stand_in.origin}/inspector/x/{ID}", width=390, height=844)
    losses = page.get_by_role("group", name="Losses")
    expect(losses).to_contain_text("reported in words")
    assert losses.evaluate("each => each.scrollWidth <= each.clientWidth"), "the losses scroll sideways"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


@pytest.mark.whole
def test_losses_of_an_exchange_are_grouped_and_usual_ones_folded(stand_in, opened, axe):
    found = made(time.time())
    usual, often = found["losses"][0], found["losses"][1]
    found["losses"] += [{**often, "path": f"$.messages[{at}]"} for at in range(9)]
    found["losses"] += [{**usual, "path": "$.tools[0].cache_control"}]
    stand_in.traces[ID] = found
    row = found["row"]
    features = {"cache_marker": 40, "thinking.budget": 5, "tool_result.error": 1}
    habit = {"client": row["client"], "provider": row["provider"], "exchanges": 50, "features": features}
    stand_in.documents["GET", "/losses"] = {"pairs": [habit]}
    page = opened(f"{stand_in.origin}/inspector/x/{ID}", width=1440)
    shown = page.get_by_role("group", name="Losses").first
    expect(shown.locator("tbody").first).to_contain_text("tool_result.error")
    expect(shown.locator("tbody").first.get_by_text("new", exact=True)).to_be_visible()
    expect(shown).not_to_contain_text("cache_marker")
    expect(shown.locator("tbody").nth(1).get_by_role("row")).to_have_count(4)
    shown.get_by_role("button", name="thinking.budget at 7 more places").click()
    expect(shown.locator("tbody").nth(1).get_by_role("row")).to_have_count(10)
    folded = page.locator(".losses .usual")
    expect(folded.locator("summary")).to_contain_text(
        "1 feature usual for claude-code with kimi: ≈ cache_marker"
    )
    expect(folded.get_by_text("$.tools[0].cache_control")).to_be_hidden()
    folded.locator("summary").click()
    expect(folded.get_by_text("$.tools[0].cache_control")).to_be_visible()
    assert found_by(axe, page) == []
