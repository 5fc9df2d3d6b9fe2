"""The set-up page and the keys page in a real browser: keys of providers, rules, the file, the first client key."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.page.test_flows import ADMIN
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, Recorded, ScriptedUpstream

OLD, NEW = "sk-old-key-0123456789abcdef", "sk-new-key-0123456789abcdef"


def only_with_key(request: Recorded) -> Behaviour | None:
    if request.headers.get("authorization") != f"Bearer {NEW}":
        return Behaviour(error=401)
    if request.method == "GET":
        return Behaviour(body=b'{"object": "list", "data": [{"id": "some-model", "object": "model"}]}')
    return None


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream(decide=only_with_key) as found:
        yield found


@pytest.fixture
def gateway(upstream: ScriptedUpstream, tmp_path: Path) -> Iterator[LiveGateway]:
    (tmp_path / "wireglot").mkdir()
    (tmp_path / "wireglot/credentials").write_text(f"MINE_KEY={OLD}\n")
    (tmp_path / "wireglot/credentials").chmod(0o600)
    text = (
        "# Mine.\n[providers.demo]\n[providers.mine]\n"
        f'dialect = "openai-chat"\nbase_url = "{upstream.url}/v1"\napi_key = "env:MINE_KEY"\n\n'
        '[models]\n"quick" = "demo/demo"  # the demo\n'
    )
    with LiveGateway(text, folder=tmp_path) as found:
        yield found


def accessible(page: Page, axe: str) -> None:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [each["id"] for each in found["violations"]] == []


def asked(gateway: LiveGateway, model: str) -> int:
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"content-type": "application/json", "user-agent": "claude-cli/2.1.0 (external, cli)"}
    request = urllib.request.Request(gateway.url + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


def test_a_key_is_added_tried_and_its_model_answers(gateway, upstream, opened, axe) -> None:
    page = opened(gateway.url + "/inspector/setup")
    row = page.locator(".providers li").filter(has=page.get_by_text("mine", exact=True))
    row.get_by_role("button", name="Try mine").click()
    expect(row.get_by_role("status")).to_contain_text("mine rejects the key")
    row.get_by_role("button", name="Replace key").click()
    row.get_by_label("Key of mine").fill(NEW)
    row.get_by_role("button", name="Try and keep").click()
    expect(row.get_by_role("status")).to_contain_text("mine accepts the key")
    expect(row.get_by_label("Key of mine")).to_have_count(0)
    assert NEW not in page.content()
    assert f"MINE_KEY={NEW}\n" in (gateway.folder / "wireglot/credentials").read_text()
    assert asked(gateway, "mine/some-model") == 200
    accessible(page, axe)


@pytest.mark.whole
def test_a_change_is_shown_before_it_is_written(gateway, opened, axe) -> None:
    page = opened(gateway.url + "/inspector/setup")
    file = gateway.folder / "wireglot.toml"
    before = file.read_text()
    page.get_by_label("Requested name or pattern").fill("fast")
    page.get_by_label("Targets, in order").fill("nowhere/x")
    page.get_by_role("button", name="Show the change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("models.fast")
    expect(dialog.get_by_role("button", name="Write it")).to_be_disabled()
    dialog.get_by_role("button", name="Back").click()
    page.get_by_label("Targets, in order").fill("mine/small, demo/demo")
    page.get_by_role("button", name="Show the change").click()
    expect(dialog.locator(".line-added")).to_have_text('+fast = ["mine/small", "demo/demo"]\n')
    assert file.read_text() == before
    accessible(page, axe)
    dialog.get_by_role("button", name="Write it").click()
    expect(page.get_by_role("group", name="Rules")).to_contain_text("mine/small, then demo/demo")
    assert file.read_text() == before + 'fast = ["mine/small", "demo/demo"]\n'
    page.get_by_role("button", name="Edit the file").click()
    editor = page.get_by_label("Text of the configuration file")
    editor.fill(editor.input_value().replace("# Mine.", "# Ours."))
    page.get_by_role("button", name="Show the difference").click()
    expect(dialog.locator(".line-removed")).to_have_text("-# Mine.\n")
    accessible(page, axe)
    file.write_text(file.read_text() + "# by hand\n")
    dialog.get_by_role("button", name="Write it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("changed by another program in the meantime")
    assert file.read_text().endswith("# by hand\n")
    # What the other program wrote is shown before it is undone; the text is still there to be mended.
    dialog.get_by_role("button", name="Load it again").click()
    expect(dialog.locator(".line-removed")).to_have_text(["-# Mine.\n", "-# by hand\n"])
    expect(dialog.get_by_role("button", name="Write it")).to_be_enabled()
    dialog.get_by_role("button", name="Back").click()
    editor.fill(editor.input_value() + "# by hand\n")
    page.get_by_role("button", name="Show the difference").click()
    expect(dialog.locator(".line-removed")).to_have_text("-# Mine.\n")
    dialog.get_by_role("button", name="Write it").click()
    expect(dialog).to_have_count(0)
    assert file.read_text().startswith("# Ours.\n")
    assert file.read_text().endswith("# by hand\n")


@pytest.mark.whole
def test_targets_are_chosen_one_after_another_and_a_provider_is_turned_on(gateway, opened, axe) -> None:
    page = opened(gateway.url + "/inspector/setup")
    file = gateway.folder / "wireglot.toml"
    page.get_by_label("Requested name or pattern").fill("both")
    field = page.get_by_role("combobox", name="Targets, in order")
    options = page.get_by_role("listbox", name="Models").get_by_role("option")
    for typed, chosen in (
        ("demo/demo-g", "demo/demo-gemini"),
        ("demo/demo-gemini, ollama", "demo/demo-ollama"),
    ):
        field.fill(typed)
        expect(options.first).to_have_text(re.compile(f"{chosen}$"))
        field.press("ArrowDown")
        field.press("Enter")
    expect(field).to_have_value("demo/demo-gemini, demo/demo-ollama")
    page.get_by_role("button", name="Show the change").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".line-added")).to_have_text('+both = ["demo/demo-gemini", "demo/demo-ollama"]\n')
    # A change of one place is made again in the file as it is now.
    file.write_text("# by hand\n" + file.read_text())
    dialog.get_by_role("button", name="Write it").click()
    dialog.get_by_role("button", name="Load it again").click()
    expect(dialog.locator(".line-removed")).to_have_count(0)
    dialog.get_by_role("button", name="Write it").click()
    expect(page.get_by_role("group", name="Rules")).to_contain_text("both")
    expect(page.get_by_label("Requested name or pattern")).to_have_value("")
    assert file.read_text().startswith("# by hand\n# Mine.\n")
    row = page.locator(".providers li").filter(has=page.get_by_text("Ollama", exact=True))
    row.get_by_role("button", name="Turn on Ollama").click()
    expect(dialog.locator(".line-added").first).to_have_text("+[providers.ollama]\n")
    accessible(page, axe)
    dialog.get_by_role("button", name="Write it").click()
    expect(row).to_contain_text("✓ on")
    assert asked(gateway, "both") == 200


def test_the_first_key_says_whom_it_locks_out(upstream, opened, axe, tmp_path) -> None:
    text = f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n[groups.team]\n'
    with LiveGateway(text, folder=tmp_path) as gateway:
        assert asked(gateway, "demo") == 200
        page = opened(gateway.url + "/inspector/keys")
        page.get_by_label(re.compile("secret", re.IGNORECASE)).fill(ADMIN)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="New key").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("alert")).to_contain_text("claude-code: 1 request")
        create = dialog.get_by_role("button", name="Create")
        expect(create).to_be_disabled()
        accessible(page, axe)
        dialog.get_by_label("Name").fill("laptop")
        dialog.get_by_label("Group").select_option("team")
        dialog.get_by_role("combobox", name="Models").fill("demo*, quick")
        dialog.get_by_label("Tokens a day").fill("1000")
        dialog.get_by_label("Lock them out until they have a key").check()
        create.click()
        expect(page.get_by_role("heading", name="The key of laptop")).to_be_visible()
        table = page.get_by_role("group", name="Keys")
        expect(table).to_contain_text("only demo*, quick")
        expect(table).to_contain_text("group team")
        expect(table).to_contain_text("1.0k left")
        assert asked(gateway, "demo") == 401
        row = table.get_by_role("row").filter(has_text="laptop")
        row.get_by_role("button", name="Revoke laptop").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(row).to_contain_text("revoked")
        row.get_by_role("button", name="Delete laptop").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="No keys")).to_be_visible()
