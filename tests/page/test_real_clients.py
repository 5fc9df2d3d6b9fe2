"""What people do with the inspector, on what Claude Code, Codex and Gemini CLI really send."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import Opened
from tests.page.real_traffic import (
    ADMIN,
    AGENTS,
    FILES,
    THREE,
    Agent,
    Traffic,
    held,
    key_of,
    real_traffic,
)
from tests.page.test_accessibility import found_by
from wireglot.testing import replay

pytestmark = pytest.mark.whole  # real clients take minutes
of_three = pytest.mark.parametrize("agent", THREE, ids=lambda agent: agent.name)
CLAUDE, CODEX, GEMINI = THREE


@pytest.fixture(scope="module")
def traffic() -> Iterator[Traffic]:
    with real_traffic() as found:
        yield found


def signed_in(
    opened: Opened, traffic: Traffic, path: str = "", *, secret: str = ADMIN, **how: object
) -> Page:
    page = opened(f"{traffic.url}/inspector", **how)
    page.get_by_label("Secret or key").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.goto(f"{traffic.url}/inspector{path}")
    return page


def pane(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_client_is_seen_under_its_name_while_it_is_answered(agent: Agent, traffic: Traffic, opened: Opened):
    page = signed_in(opened, traffic, f"?client={agent.name}")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    running = page.get_by_role("row").filter(has=page.locator(".status-running"))
    with held(traffic):
        run = traffic.start(agent)
        if not run.done():
            running.first.wait_for(timeout=300_000)
            expect(running.first).to_contain_text(agent.name)
    rows = traffic.of(agent)
    expect(running).to_have_count(0)
    expect(page.get_by_text(f"{len(rows)} exchange", exact=False)).to_be_visible()
    for row in rows:
        assert (row["client"], row["dialect"]) == (agent.name, agent.speaks)
        assert (row["upstream_dialect"], row["status"], row["key"]) == (agent.answered_in, 200, agent.name)
        assert row["tokens"]["input"] > 100


def test_rows_are_filtered_and_found_by_words_of_their_bodies(traffic: Traffic, opened: Opened):
    expected = {agent.name: traffic.of(agent) for agent in THREE}
    page = signed_in(opened, traffic)
    page.get_by_label("Client", exact=True).select_option("codex")
    expect(page).to_have_url(re.compile("client=codex"))
    expect(page.get_by_role("row").filter(has_text="codex")).to_have_count(len(expected["codex"]))
    expect(page.get_by_role("row").filter(has_text="gemini-cli")).to_have_count(0)
    page.goto(f"{traffic.url}/inspector")
    page.get_by_label("Search exchanges").fill("You are Codex")
    expect(page.get_by_role("row").filter(has_text="codex")).to_have_count(len(expected["codex"]))
    expect(page.get_by_role("row").filter(has_text="claude-code")).to_have_count(0)


@of_three
def test_the_turns_of_a_session_are_one_conversation(agent: Agent, traffic: Traffic, opened: Opened):
    spoken = traffic.spoken(agent)
    assert len(spoken) > FILES
    session = traffic.conversation(agent)
    assert {row["id"] for row in traffic.get(f"exchanges?session={session}")["rows"]} >= {
        row["id"] for row in spoken
    }
    page = signed_in(opened, traffic, "/conversations")
    conversation = page.get_by_role("button", name=agent.name)
    expect(conversation).to_have_count(1)
    expect(conversation).to_contain_text("turns")
    conversation.click()
    expect(page.locator(".turn")).not_to_have_count(0)
    assert page.locator(".turn").count() >= len(spoken)
    page.locator(".turn").last.click()
    expect(pane(page, "Client request")).to_be_visible()


@of_three
def test_both_sides_are_linked_and_every_loss_stands_at_its_place(
    agent: Agent, traffic: Traffic, opened: Opened
):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    client, upstream = pane(page, "Client request"), pane(page, "Upstream request")
    expect(page.locator(".facts")).to_contain_text(last["asked"])
    for request in (client, upstream):  # what is new in it is seen first, and whole
        expect(request.locator(".reading > .part").last).to_be_in_viewport(ratio=0.99)
    client.locator(".part").filter(has_text="Read the marker file").first.click()
    expect(upstream.locator(".part.lit").first).to_contain_text("Read the marker file")
    upstream.locator(".part-call").filter(has_text="note-1.txt").first.click()
    expect(client.locator(".part-call.lit").first).to_contain_text("note-1.txt")
    client.locator(".part-call").first.get_by_role("button", name="its result ↓").click()
    expect(client.locator(".part-result.lit").first).to_contain_text("says nothing")
    thought = pane(page, "Upstream answer").locator(".part-reasoning details").first
    expect(thought).to_be_visible()
    expect(thought).not_to_have_attribute("open", "")
    expect(pane(page, "Client answer")).to_contain_text("FINAL-OK NONCE-")

    for declared in client.locator(".declared > summary").all():
        declared.click()
    reported = traffic.get(f"exchanges/{last['id']}")
    placed = [loss for loss in reported["losses"] if loss["document"] == "request" and loss.get("pointer")]
    assert len(placed) == sum(last["losses"].values())
    expect(client.locator(".loss-mark")).to_have_count(len(placed))
    expect(client.locator(".reading > .loss-mark")).to_have_count(0)


@of_three
def test_a_body_is_a_tree_and_raw_and_its_place_is_an_address(agent: Agent, traffic: Traffic, opened: Opened):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    client = pane(page, "Client request")
    client.get_by_role("button", name="JSON").click()
    expect(client.get_by_role("tree")).to_be_visible()
    client.get_by_role("button", name="Raw").click()
    expect(client.locator("pre.raw")).to_contain_text("Read the marker file")
    expect(page).to_have_url(re.compile("m-client-request=raw"))
    page.reload()
    expect(client.locator("pre.raw")).to_contain_text("Read the marker file")


@of_three
def test_an_address_leads_to_a_tool_that_stands_in_a_fold(agent: Agent, traffic: Traffic, opened: Opened):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    client, upstream = pane(page, "Client request"), pane(page, "Upstream request")
    client.locator(".declared > summary").click()
    chosen = client.locator(".part-tool.linked").last.get_attribute("data-pointer")
    page.goto(f"{traffic.url}/inspector/x/{last['id']}?sel={quote(f'client-request:{chosen}', safe='')}")
    expect(client.locator(".part-tool.lit").first).to_be_in_viewport()
    expect(upstream.locator(".part-tool.lit").first).to_be_in_viewport()


@of_three
def test_a_stream_is_played_again(agent: Agent, traffic: Traffic, opened: Opened):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    answer = pane(page, "Client answer")
    expect(answer.locator(".pane-foot")).to_contain_text("events")
    page.get_by_label("Time within the exchange").focus()
    page.keyboard.press("Home")
    expect(answer.get_by_text("Nothing yet.")).to_be_visible()
    page.get_by_role("button", name="One event forward").click()
    page.get_by_role("button", name="One event forward").click()
    expect(answer.locator(".pane-foot")).to_contain_text("of")
    page.get_by_role("button", name="▶ Play").click()
    expect(answer.locator(".pane-foot")).not_to_contain_text("of")
    expect(answer).to_contain_text("FINAL-OK NONCE-")


@of_three
def test_a_request_goes_to_another_model_and_the_answers_are_compared(
    agent: Agent, traffic: Traffic, opened: Opened
):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    page.get_by_role("link", name="Replay …").click()
    page.get_by_label("Send it to").fill("demo/demo-openai-responses")
    page.get_by_label("Send it to").press("Enter")
    goes = page.get_by_role("status").filter(has_text="Goes to")
    expect(goes).to_contain_text("demo/demo-openai-responses")
    expect(goes).to_contain_text("tokens in")
    page.get_by_role("button", name="Send it and compare").click()
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    expect(page.get_by_role("row", name="Answered by")).to_contain_text("demo/demo-openai-responses")
    expect(page.get_by_role("heading", name="Text", exact=True)).to_be_visible()


@of_three
def test_a_request_is_opened_in_the_playground(agent: Agent, traffic: Traffic, opened: Opened):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    page.get_by_role("button", name="Playground").click()
    expect(page.get_by_role("heading", name="Playground")).to_be_visible()
    for title in ("Anthropic Messages", "OpenAI Chat", "OpenAI Responses", "Gemini"):
        column = page.get_by_role("region", name=title, exact=True)
        expect(column).to_contain_text('"')
        expect(column.get_by_role("alert")).to_have_count(0)
    feature = {"claude-code": "cache_marker", "codex": "verbosity", "gemini-cli": "sampling.top_k"}
    other = "OpenAI Chat" if agent is GEMINI else "Gemini"
    expect(page.get_by_role("region", name=other, exact=True)).to_contain_text(feature[agent.name])


@of_three
def test_an_exported_exchange_is_read_without_a_gateway(
    agent: Agent, traffic: Traffic, opened: Opened, tmp_path: Path
):
    last = traffic.spoken(agent)[0]
    page = signed_in(opened, traffic, f"/x/{last['id']}")
    with page.expect_download() as started:
        page.get_by_role("link", name="Export").click()
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    assert key_of(agent) not in file.read_text()
    replay(file)
    command = [sys.executable, "-m", "wireglot.cli", "inspect", str(file), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shown:
        try:
            assert shown.stdout is not None
            address = next(line for line in shown.stdout if "http://" in line)
            found = re.search(r"http://\S+", address)
            assert found is not None
            offline = opened(found[0])
            pane(offline, "Client request").locator(".part").filter(has_text="Read the marker").first.click()
            lit = pane(offline, "Upstream request").locator(".part.lit").first
            expect(lit).to_contain_text("Read the marker file")
        finally:
            shown.terminate()


@of_three
def test_every_exchange_is_translated_again_as_it_was(agent: Agent, traffic: Traffic, tmp_path: Path):
    for row in traffic.of(agent):
        file = tmp_path / f"{row['id']}.wgtrace.json"
        file.write_bytes(traffic.raw(f"exchanges/{row['id']}/export"))
        replay(file)


def test_figures_are_those_of_the_traffic(traffic: Traffic, opened: Opened):
    rows = [row for agent in THREE for row in traffic.of(agent)]
    page = signed_in(opened, traffic, "/dash")
    expect(page.get_by_role("heading", name="Time to the first token")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    for row in rows:
        expect(page.get_by_text(row["model"], exact=True).first).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    table = started.value.path().read_text()
    for row in rows:
        assert row["model"] in table


def test_a_newcomer_asks_the_demo_model(traffic: Traffic, opened: Opened):
    page = signed_in(opened, traffic, "/setup")
    for title in ("Claude Code", "Codex", "Gemini CLI"):
        expect(page.get_by_text(title, exact=True).first).to_be_visible()
    page.get_by_role("button", name="Ask the demo model").click()
    expect(pane(page, "Client answer")).to_contain_text("demo")


def test_a_client_key_sees_its_own_exchanges_only(traffic: Traffic, opened: Opened):
    own, others = traffic.of(CLAUDE), traffic.of(CODEX)
    page = signed_in(opened, traffic, secret=key_of(CLAUDE))
    expect(page.get_by_text(f"{len(own)} exchanges", exact=True)).to_be_visible()
    expect(page.get_by_text("key claude-code")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="codex")).to_have_count(0)
    page.goto(f"{traffic.url}/inspector/x/{others[0]['id']}")
    expect(page.get_by_text("no exchange")).to_be_visible()
    page.goto(f"{traffic.url}/inspector/conversations")
    expect(page.get_by_role("button", name="claude-code")).to_have_count(1)
    expect(page.get_by_role("button", name="codex")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_axe_finds_nothing_wrong_with_real_traffic(
    width: int, scheme: str, traffic: Traffic, opened: Opened, axe: str
):
    last = {agent.name: traffic.spoken(agent)[0]["id"] for agent in THREE}
    page = signed_in(opened, traffic, width=width, scheme=scheme)
    views = [
        *(
            "",
            f"?at={last['codex']}",
            f"?at={last['codex']}&open=1",
            "/conversations",
            "/dash",
            f"/compare/{last['codex']}/{last['gemini-cli']}",
        ),
        *(f"/x/{id}" for id in last.values()),
        *(f"/conversations?session={traffic.conversation(agent)}&read=1" for agent in THREE),
    ]
    for path in views:
        page.goto(f"{traffic.url}/inspector{path}")
        page.locator("h1, .table").first.wait_for()
        expect(page.locator(".waiting")).to_have_count(0)
        assert (path, found_by(axe, page)) == (path, [])
        assert (path, page.evaluate("document.documentElement.scrollWidth")) <= (path, width)
        heads = page.locator(".part-head").evaluate_all("all => all.map(each => each.offsetHeight)")
        assert width == 390 or max(heads, default=0) < 2 * min(heads, default=1), (
            f"a head in two lines: {path}"
        )
