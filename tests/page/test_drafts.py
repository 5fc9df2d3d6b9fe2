"""Escape closes what is on top and nothing else; what was typed, or is shown only once, is not lost by looking elsewhere."""

from __future__ import annotations

import re
import time

from playwright.sync_api import Page, expect

from tests.page.given import documents, row, trace
from tests.page.stand_in import StandIn

FILE = {
    "path": "/etc/wireglot.toml",
    "exists": True,
    "why_fixed": "",
    "may_change_all": True,
    "overridden": [],
    "digest": "one",
    "text": "[providers.demo]\n",
}
MADE = {"name": "ada", "state": "active", "stored": True, "key": "wg-shown-once"}


def escaped(page: Page, times: int = 3) -> None:
    for _ in range(times):
        page.keyboard.press("Escape")


def leaving_asks(page: Page) -> bool:
    return bool(page.evaluate("() => !dispatchEvent(new Event('beforeunload', { cancelable: true }))"))


def go(page: Page, view: str) -> None:
    page.get_by_role("navigation", name="Views").get_by_role("link", name=view).click()


def shown(stand_in: StandIn, opened, path: str) -> Page:
    """A view with another site before it, where going back would leave."""
    stand_in.documents |= documents(time.time())
    stand_in.documents["GET", "/config"] = FILE
    stand_in.documents["POST", "/keys"] = MADE
    page: Page = opened(stand_in.origin + "/inspector/assets/LICENSES.txt")
    page.goto(stand_in.origin + "/inspector" + path)
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()
    return page


def test_escape_closes_what_is_on_top_and_leaves_no_view(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(3)]
    stand_in.traces["req-000000"] = {**trace(at), "row": row(0, at)}
    page = shown(stand_in, opened, "/x/req-000000")
    page.set_viewport_size({"width": 1500, "height": 900})
    expect(page.get_by_role("region", name="Client request")).to_be_visible()
    escaped(page)
    expect(page).to_have_url(re.compile("/x/req-000000"))
    go(page, "Live")
    page.locator("#row-req-000000").click()
    detail = page.get_by_role("region", name="Chosen exchange")
    expect(detail).to_be_visible()
    page.get_by_role("button", name="Columns").click()
    menu = page.get_by_role("group", name="Columns")
    expect(menu).to_be_visible()
    escaped(page, 1)
    expect(menu).to_have_count(0)
    expect(detail).to_be_visible()
    page.get_by_role("button", name="Keys and signs").click()
    escaped(page, 1)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(detail).to_be_visible()
    page.get_by_label("Search exchanges").click()
    suggestions = page.get_by_role("listbox", name="Suggestions")
    expect(suggestions).to_be_visible()
    escaped(page, 1)
    expect(suggestions).to_be_hidden()
    expect(page.get_by_label("Search exchanges")).to_be_focused()
    escaped(page, 1)
    expect(page.get_by_label("Search exchanges")).not_to_be_focused()
    expect(detail).to_be_visible()
    escaped(page, 1)
    expect(detail).to_have_count(0)
    escaped(page)
    expect(page.get_by_role("grid")).to_be_visible()


def test_escape_at_once_closes_what_has_just_opened(stand_in, opened):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(3)]
    stand_in.traces["req-000000"] = {**trace(at), "row": row(0, at)}
    page = shown(stand_in, opened, "?at=req-000000&open=1")
    page.set_viewport_size({"width": 1500, "height": 900})
    detail = page.get_by_role("region", name="Chosen exchange")
    expect(detail).to_be_visible()
    for opener in ("Columns", "Keys and signs"):
        page.get_by_role("button", name=opener).evaluate(
            """opener => {
                opener.click()
                return Promise.resolve().then(() => {
                    window.wasOpen = document.querySelector(".menu-panel, dialog[open]") !== null
                })
            }"""
        )
        assert page.evaluate("wasOpen"), opener
        escaped(page, 1)
        expect(page.locator(".menu-panel, dialog[open]")).to_have_count(0)
        expect(detail).to_be_visible()


def test_a_key_that_is_shown_once_is_shown_until_one_is_done_with_it(stand_in, opened):
    page = shown(stand_in, opened, "/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Create").click()
    secret = page.get_by_text("wg-shown-once")
    expect(secret).to_be_visible()
    escaped(page)
    expect(secret).to_be_visible()
    go(page, "Live")
    expect(secret).to_have_count(0)
    go(page, "Keys")
    expect(secret).to_be_visible()
    assert leaving_asks(page)
    page.get_by_role("button", name="Done").click()
    expect(secret).to_have_count(0)
    assert not leaving_asks(page)


def test_a_second_key_does_not_hide_the_one_that_was_not_read_yet(stand_in, opened):
    page = shown(stand_in, opened, "/keys")
    for name in ("ada", "grace"):
        stand_in.documents["POST", "/keys"] = {**MADE, "name": name, "key": f"wg-of-{name}"}
        page.get_by_role("button", name="New key").click()
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_text(f"wg-of-{name}")).to_be_visible()
    expect(page.get_by_text("wg-of-ada")).to_be_visible()
    page.get_by_role("button", name="Done with the key of grace").click()
    expect(page.get_by_text("wg-of-grace")).to_have_count(0)
    assert leaving_asks(page)
    page.get_by_role("button", name="Done with the key of ada").click()
    expect(page.get_by_text("wg-of-ada")).to_have_count(0)
    assert not leaving_asks(page)


def test_what_was_typed_is_there_for_who_signs_in_again_and_for_no_other_user(stand_in, opened):
    stand_in.documents |= documents(time.time())
    session = stand_in.documents["GET", "/session"]
    stand_in.documents["POST", "/session"] = {}
    users = [{**session, "access": "key", "key": name} for name in ("ada", "ada", "grace")]
    stand_in.documents["GET", "/session"] = users[0]
    page = shown(stand_in, opened, "/play")
    typed = page.get_by_label("Anthropic Messages, request")
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"model": "mine"}')
    for user, expected in ((users[1], "mine"), (users[2], "careful gardener")):
        page.route("**/api/conversations*", lambda route: route.fulfill(status=401, json={}))
        go(page, "Conversations")  # its session has ended
        expect(page.get_by_label("Secret or key")).to_be_visible()
        page.unroute("**/api/conversations*")
        stand_in.documents["GET", "/session"] = user
        page.get_by_label("Secret or key").fill("wg-any")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text(f"key {user['key']}")).to_be_visible()
        go(page, "Playground")
        expect(typed).to_contain_text(expected)


def test_the_next_user_of_a_tab_does_not_see_the_key_that_was_made_before(stand_in, opened):
    session = {**stand_in.documents["GET", "/session"], "access": "admin"}
    stand_in.documents["GET", "/session"] = session
    stand_in.documents["DELETE", "/session"] = {}
    page = shown(stand_in, opened, "/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("ada")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("wg-shown-once")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("wg-shown-once")).to_have_count(0)


def test_the_fields_of_a_key_survive_escape_and_not_cancel(stand_in, opened):
    page = shown(stand_in, opened, "/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Cost a day").fill("5")
    escaped(page, 1)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert leaving_asks(page)
    page.get_by_role("button", name="New key").click()
    expect(page.get_by_label("Name")).to_have_value("grace")
    expect(page.get_by_label("Cost a day")).to_have_value("5")
    page.get_by_role("button", name="Cancel").click()
    assert not leaving_asks(page)
    page.get_by_role("button", name="New key").click()
    expect(page.get_by_label("Name")).to_have_value("")


def test_what_is_typed_in_the_playground_survives_escape_and_other_views(stand_in, opened):
    page = shown(stand_in, opened, "/play")
    typed = page.get_by_label("Anthropic Messages, request")
    expect(typed).to_contain_text("careful gardener")
    assert not leaving_asks(page)
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"model": "mine"}')
    escaped(page)
    expect(typed).to_have_text(re.compile('{"model": "mine"}'))
    go(page, "Dashboards")
    assert leaving_asks(page)
    go(page, "Playground")
    expect(typed).to_have_text(re.compile('{"model": "mine"}'))


def test_what_a_link_became_is_there_when_one_comes_back_to_its_address(stand_in, opened):
    page = shown(stand_in, opened, "/play?dialect=anthropic#text=%7B%22model%22%3A%22linked%22%7D")
    typed = page.get_by_label("Anthropic Messages, request")
    expect(typed).to_contain_text("linked")
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"model": "mine"}')
    go(page, "Dashboards")
    page.go_back()
    expect(typed).to_contain_text("mine")
    assert leaving_asks(page)


def test_what_was_typed_in_the_playground_can_be_taken_back_from_a_recorded_request(stand_in, opened):
    stand_in.traces["req-trace"] = trace(time.time())
    page = shown(stand_in, opened, "/play")
    typed = page.get_by_label("Anthropic Messages, request")
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"model": "mine"}')
    page.evaluate(
        "history.pushState(null, '', '/inspector/x/req-trace'); dispatchEvent(new PopStateEvent('popstate'))"
    )
    page.get_by_role("button", name="Playground").click()
    expect(typed).to_contain_text("careful coding agent")
    assert leaving_asks(page)
    page.get_by_role("button", name="Take it back").click()
    expect(typed).to_contain_text("mine")


def test_edits_of_the_configuration_survive_escape_and_other_views(stand_in, opened):
    page = shown(stand_in, opened, "/setup")
    page.get_by_role("button", name="Edit the file").click()
    assert not leaving_asks(page)
    editor = page.get_by_label("Text of the configuration file")
    editor.fill("[providers.kimi]\n")
    page.get_by_label("Requested name or pattern").fill("fast")
    escaped(page)
    expect(editor).to_have_value("[providers.kimi]\n")
    go(page, "Live")
    assert leaving_asks(page)
    stand_in.documents["GET", "/config"] = {**FILE, "digest": "two"}
    go(page, "Set-up")
    expect(editor).to_have_value("[providers.kimi]\n")
    expect(page.get_by_label("Requested name or pattern")).to_have_value("fast")
    expect(page.get_by_text("The file has changed since this text was begun")).to_be_visible()
    page.get_by_label("Requested name or pattern").fill("")
    page.get_by_role("button", name="Cancel").click()
    expect(editor).to_have_count(0)
    assert not leaving_asks(page)


def test_a_body_that_was_changed_to_be_sent_again_survives_escape_and_other_views(stand_in, opened):
    stand_in.traces["req-trace"] = trace(time.time())
    page = shown(stand_in, opened, "/replay/req-trace")
    editor = page.get_by_label("The body that is sent")
    expect(editor).to_contain_text("careful coding agent")
    editor.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"model": "mine"}')
    escaped(page)
    expect(page.get_by_text("≈ changed")).to_be_visible()
    go(page, "Live")
    assert leaving_asks(page)
    page.go_back()
    expect(editor).to_have_text(re.compile('{"model": "mine"}'))
    page.get_by_role("button", name="Original").click()
    expect(editor).to_contain_text("careful coding agent")
    assert not leaving_asks(page)
