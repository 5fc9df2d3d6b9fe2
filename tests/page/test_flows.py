"""What people do with the inspector, on a real gateway before a real upstream, in a real browser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

ADMIN = "admin-secret-0123456789"
EXAMPLES = files("wireglot.cli.examples")


def ask(
    gateway: LiveGateway, *, key: str = "none", agent: str = "claude-cli/2.1.0 (external, cli)", **fields: Any
) -> None:
    """The example of a coding agent's conversation, as Claude Code sends it."""
    body = json.loads(EXAMPLES.joinpath("anthropic", "request.json").read_text(encoding="utf-8"))
    request = urllib.request.Request(
        gateway.url + "/v1/messages",
        json.dumps({**body, **fields}).encode(),
        {"content-type": "application/json", "user-agent": agent, "x-api-key": key},
    )
    with urllib.request.urlopen(request) as answer:
        answer.read()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as found:
        yield found


@pytest.fixture(scope="module")
def gateway(upstream: ScriptedUpstream) -> Iterator[LiveGateway]:
    """Anthropic's clients on a provider that speaks OpenAI Chat; bodies are recorded."""
    with LiveGateway.before(upstream, "openai-chat", '[providers.demo]\n[trace]\nmode = "all"\n') as found:
        yield found


def newest(page: Page, gateway: LiveGateway) -> None:
    """Opens the exchange that came last, from the list."""
    page.goto(gateway.url + "/inspector")
    page.locator(".rows [role=row]").first.click()
    expect(page.get_by_role("region", name="Client request")).to_be_visible()


def test_an_exchange_shows_both_sides_and_what_became_of_what(gateway, opened):
    ask(gateway)
    page = opened(gateway.url + "/inspector")
    expect(page.locator(".rows [role=row]").first).to_contain_text("claude-code")
    newest(page, gateway)
    client = page.get_by_role("region", name="Client request")
    sent = page.get_by_role("region", name="Upstream request")
    client.get_by_text("You are a careful coding agent.").click()
    expect(sent.locator(".part.lit")).to_contain_text("You are a careful coding agent.")
    expect(page).to_have_url(re.compile("sel=client-request"))
    client.get_by_text("I will look at the parser").click()
    expect(sent.locator(".part.lit").first).to_contain_text("I will look at the parser")
    expect(client.get_by_text("cache_marker")).to_be_visible()
    client.get_by_role("button", name="its result ↓").first.press("Enter")
    expect(client.locator(".part.lit")).to_contain_text("tool")
    for mode in ("JSON", "Raw"):
        client.get_by_role("button", name=mode).click()
    expect(client.locator("pre.raw")).to_contain_text('"max_tokens"')
    expect(page).to_have_url(re.compile("m-client-request=raw"))
    page.reload()
    expect(client.locator("pre.raw")).to_contain_text('"max_tokens"')


def test_a_stream_is_played_event_by_event_and_its_place_is_an_address(gateway, opened):
    ask(gateway)
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    answer = page.get_by_role("region", name="Client answer")
    expect(answer.locator(".pane-foot")).to_contain_text("events")
    place = page.get_by_label("Time within the exchange")
    place.focus()
    page.keyboard.press("Home")
    expect(answer.get_by_text("Nothing yet.")).to_be_visible()
    for _ in range(2):
        before = place.input_value()
        page.get_by_role("button", name="One event forward").click()
        expect(place).not_to_have_value(before)
    expect(answer.locator(".pane-foot")).to_contain_text("of")
    # The address follows a moment after the page: what it tells must be where the second step went.
    reached = place.input_value()
    expect(page).to_have_url(re.compile(rf"[?&]t={re.escape(reached)}(&|$)"))
    here = answer.locator(".pane-foot").inner_text()
    page.reload()
    expect(answer.locator(".pane-foot")).to_have_text(here)
    page.get_by_role("button", name="▶ Play").click()
    expect(answer.locator(".pane-foot")).not_to_contain_text("of")
    expect(answer).to_be_in_viewport(ratio=0.9)
    answer.get_by_role("button", name="Events").click()
    answer.get_by_role("button", name="message_start").click()
    expect(answer.get_by_role("tree")).to_contain_text("message_start")
    expect(answer.locator(".event-partners")).to_contain_text("Made from the provider's event")


@pytest.mark.whole
def test_a_stream_is_seen_while_it_runs(gateway, upstream, opened):
    page = opened(gateway.url + "/inspector")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    gate = threading.Event()
    upstream.next(Behaviour(gate=gate, after=4))
    asking = threading.Thread(target=ask, args=(gateway,), kwargs={"agent": "codex_cli_rs/0.60.0"})
    asking.start()
    try:
        row = page.locator(".rows [role=row]").first
        expect(row).to_contain_text("codex")
        expect(row.locator(".status-running")).to_be_visible()
    finally:
        gate.set()
        asking.join()
    expect(row).to_contain_text("200")


def test_the_same_request_goes_to_other_models_and_the_answers_are_compared(gateway, opened):
    ask(gateway)
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    page.get_by_role("link", name="Replay …").click()
    field = page.get_by_role("combobox", name="Send it to")
    expect(page.get_by_role("status").filter(has_text="Goes to")).to_contain_text("mine/")
    # All models are offered, whatever the field holds.
    field.click()
    options = page.get_by_role("listbox", name="Models").get_by_role("option")
    expect(options.filter(has_text=re.compile("^demo/demo-gemini *200k"))).to_be_visible()
    page.keyboard.press("Escape")
    expect(field).to_have_value(re.compile("^mine/"))
    # What is typed holds without leaving the field: the first click sends.
    field.fill("demo/demo")
    expect(page.get_by_role("status").filter(has_text="Goes to")).to_contain_text("demo/demo")
    expect(field).to_have_value("demo/demo")
    page.get_by_role("button", name="Send it and compare").click()
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    expect(page.get_by_role("row", name="Answered by")).to_contain_text("demo/demo")
    expect(page.get_by_role("heading", name="Text", exact=True)).to_be_visible()
    # A third one, chosen with the keyboard.
    page.get_by_role("link", name="Replay again …").click()
    field.press("ArrowDown")
    field.fill("demo gemini")
    field.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(field).to_have_value(re.compile("^demo.*gemini$"))
    expect(page.get_by_role("status").filter(has_text="Goes to")).to_contain_text("gemini")
    page.get_by_role("button", name="Send it and compare").click()
    expect(page.get_by_role("group", name=re.compile("^Text [123]:"))).to_have_count(3)
    expect(page.get_by_role("group", name=re.compile("^Text 1:")).locator("ins, del")).to_have_count(0)
    page.get_by_role("button", name="Compare with 3").click()
    expect(page).to_have_url(re.compile("against=req_"))
    page.get_by_role("link", name="Leave out 2").click()
    expect(page.get_by_role("columnheader")).to_have_count(3)


@pytest.mark.whole
def test_a_request_is_edited_before_it_goes(gateway, opened):
    ask(gateway, system="Be brief.", tools=[], messages=[{"role": "user", "content": "Say one."}])
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    page.get_by_role("link", name="Replay …").click()
    editor = page.get_by_label("The body that is sent")
    expect(editor).to_contain_text("Say one.")
    editor.press("ControlOrMeta+a")
    page.keyboard.insert_text(
        '{"model": "any", "max_tokens": 50, "messages": [{"role": "user", "content": "Say two."}]}'
    )
    expect(page.get_by_text("≈ changed")).to_be_visible()
    expect(page.get_by_role("button", name="Send it and compare")).to_be_enabled()
    page.get_by_role("button", name="Send it and compare").click()
    page.get_by_role("button", name="Requests").click()
    expect(page.locator("ins").filter(has_text="two")).to_be_visible()


@pytest.mark.whole
def test_a_request_is_edited_in_the_dialect_it_is_translated_to(gateway, opened):
    ask(gateway, system="Be brief.", tools=[], messages=[{"role": "user", "content": "Say one."}])
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    page.get_by_role("link", name="Replay …").click()
    page.get_by_label("Speaking").select_option("gemini")
    editor = page.get_by_label("The body that is sent")
    expect(editor).to_contain_text("systemInstruction")
    editor.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"contents": [{"role": "user", "parts": [{"text": "Say three."}]}]}')
    expect(page.get_by_text("≈ changed")).to_be_visible()
    page.get_by_role("button", name="Send it and compare").click()
    expect(page.get_by_role("heading", name="Compare")).to_be_visible()
    page.get_by_role("button", name="Requests").click()
    expect(page.locator("ins").filter(has_text="three").first).to_be_visible()


def test_the_playground_follows_what_is_typed_in_any_column(gateway, opened):
    page = opened(gateway.url + "/inspector/play")
    gemini = page.get_by_role("region", name="Gemini", exact=True)
    expect(gemini).to_contain_text("Do my roses need water today?")
    expect(gemini).to_contain_text("cache_marker")
    source = page.get_by_role("region", name="Anthropic Messages")
    expect(source.locator(".cm-lintRange-info").first).to_have_text('"cache_control"')
    gemini.get_by_role("button", name="Show the place of cache_marker").click()
    expect(page.get_by_label("Anthropic Messages, request")).to_be_focused()
    chat = page.get_by_label("OpenAI Chat, request")
    chat.press("ControlOrMeta+a")
    page.keyboard.insert_text(
        '{"model": "m", "seed": 7, "messages": [{"role": "user", "content": "Hello there"}]}'
    )
    expect(page.get_by_role("region", name="Anthropic Messages")).to_contain_text("Hello there")
    expect(page.get_by_role("region", name="Anthropic Messages")).to_contain_text("sampling.seed")
    chat.press("End")
    page.keyboard.press("Backspace")
    expect(page.get_by_role("region", name="OpenAI Chat")).to_contain_text("line 1")
    expect(gemini).to_contain_text("Hello there")
    expect(gemini).to_contain_text("Of the last valid text.")
    for kind in ("Answer", "Stream"):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(gemini).to_contain_text("Water them")
    # Of a stream, the event that brought a loss is underlined.
    typed = page.get_by_label("Anthropic Messages, stream")
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text(
        'data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m",'
        '"content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
        'data: {"type":"x_progress"}\n\ndata: {"type":"message_stop"}\n\n'
    )
    expect(source.locator(".cm-line:has(.cm-lintRange)").first).to_contain_text("x_progress")
    gemini.get_by_role("button", name="Show the place of foreign_event").click()
    expect(typed).to_be_focused()


CURL = """curl "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse" \\
  -H "x-goog-api-key: $GEMINI_API_KEY" --data-binary @- <<'EOF'
{"contents": [{"role": "user", "parts": [{"text": "Say it's three words."}]}],
 "generationConfig": {"seed": 7}}
EOF
"""
PASTE = """(element, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', text);
    element.dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}));
}"""


def paste(page: Page, label: str, text: str) -> None:
    """Over all that is there, as people do."""
    editor = page.get_by_label(label)
    editor.press("ControlOrMeta+a")
    editor.evaluate(PASTE, text)


@pytest.mark.whole
def test_a_command_is_pasted_sent_to_several_models_and_saved_as_a_test(gateway, opened, tmp_path):
    page = opened(gateway.url + "/inspector/play")
    expect(page.get_by_label("Anthropic Messages, request")).to_contain_text("careful gardener")
    paste(page, "Anthropic Messages, request", CURL)
    status = page.get_by_role("status").filter(has_text="Recognised")
    expect(status).to_contain_text("Gemini request, from a curl command, for gemini-3-pro")
    expect(page.get_by_label("Written in")).to_have_value("gemini")
    expect(page.get_by_role("region", name="OpenAI Chat")).to_contain_text("Say it's three words.")
    field = page.get_by_role("combobox", name="As the gateway would send it to")
    for model in ("demo/demo-anthropic", "demo/demo-ollama"):
        field.fill(model)
        field.press("Enter")
    would = page.get_by_role("region", name="demo/demo-anthropic", exact=True)
    expect(would).to_contain_text("POST demo:/v1/messages")
    expect(would).to_contain_text("sampling.seed")
    expect(would).to_contain_text("No provider key needed")
    page.get_by_role("button", name="Send to 2 models").click()
    names = ("demo/demo-anthropic", "demo/demo-ollama")
    answers = [page.get_by_role("region", name=f"Answer of {each}") for each in names]
    for answer in answers:
        expect(answer).to_be_in_viewport(ratio=0.9)
        expect(answer.get_by_role("status").first).to_have_text("✓ 200")
        expect(answer.locator(".said-text")).not_to_be_empty()
        expect(answer).to_contain_text(re.compile(r"\d+ in, \d+ out"))
    for region in (would, answers[0]):
        with page.expect_download() as started:
            region.get_by_role("button", name="Save test").click()
        file = tmp_path / started.value.suggested_filename
        started.value.save_as(file)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "1 passed" in ran.stdout
    page.get_by_role("link", name="Compare 2 answers").click()
    expect(page.get_by_role("row", name="Answered by")).to_contain_text("demo/demo-ollama")
    page.goto(gateway.url + "/inspector")
    row = page.locator(".rows [role=row]").filter(has_text="wireglot-playground")
    expect(row.first).to_be_visible()


@pytest.mark.whole
def test_what_is_broken_in_a_command_and_what_a_text_is_instead_are_said(gateway, opened):
    page = opened(gateway.url + "/inspector/play")
    typed = page.get_by_label("Anthropic Messages, request")
    expect(typed).to_contain_text("careful gardener")
    paste(page, "Anthropic Messages, request", "curl https://h/v1/messages \\\n -d '{}")
    source = page.get_by_role("region", name="Anthropic Messages", exact=True)
    expect(source).to_contain_text("expected another ' (line 2, column 5)")
    # What is typed, and not pasted, is only said to be another's.
    typed.press("ControlOrMeta+a")
    page.keyboard.insert_text('{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}')
    hint = page.get_by_role("status").filter(has_text="This looks like Gemini request")
    hint.get_by_role("button", name="Read it so").click()
    expect(page.get_by_label("Written in")).to_have_value("gemini")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Written in")).to_have_value("anthropic")
    # The choice is the user's in the end.
    page.get_by_label("Written in").select_option("gemini-interactions")
    region = page.get_by_role("region", name="Gemini Interactions")
    expect(region.get_by_text("source", exact=True)).to_be_visible()


@pytest.mark.whole
def test_streams_are_aligned_event_by_event_in_chosen_columns(gateway, opened):
    page = opened(gateway.url + "/inspector/play?kind=stream")
    page.get_by_text("Columns").click()
    page.get_by_role("checkbox", name="Ollama", exact=True).check()
    page.get_by_role("checkbox", name="OpenAI Responses").uncheck()
    page.get_by_role("button", name="Events").click()
    expect(page).to_have_url(re.compile("cols=anthropic%2Copenai-chat%2Cgemini%2Collama"))
    heads = ["#", re.compile("^Anthropic Messages"), "OpenAI Chat", "Gemini", "Ollama"]
    expect(page.get_by_role("columnheader")).to_have_text(heads)
    row = page.get_by_role("row").filter(has_text="content_block_delta").first
    expect(row.get_by_role("cell")).to_contain_text(["Water them"] * 4)
    page.get_by_text("message_start").first.click()
    expect(page.locator(".aligned pre").first).to_be_visible()


PANGRAM = "the quick brown fox jumps over the lazy dog"


def type_all(page: Page, label: str) -> None:
    """Types as quickly as keys can be pressed, into the middle of it too: no letter is lost, and all is undone again."""
    editor = page.get_by_label(label)
    expect(editor).to_contain_text("{")
    editor.press("ControlOrMeta+End")
    page.keyboard.type(PANGRAM)
    expect(editor).to_contain_text(PANGRAM)
    for _ in "lazy dog":
        page.keyboard.press("ArrowLeft")
    page.keyboard.type("very ")
    expect(editor).to_contain_text("over the very lazy dog")
    for _ in PANGRAM + "very ":
        page.keyboard.press("ControlOrMeta+z")
    expect(editor).not_to_contain_text("fox")


@pytest.mark.whole
def test_no_letter_is_lost_however_quickly_one_types(gateway, opened):
    ask(gateway, system="Be brief.", tools=[], messages=[{"role": "user", "content": "Say one.\n" * 5000}])
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    exchange = page.url
    page.get_by_role("button", name="Playground").click()
    expect(page.get_by_label("Gemini, request")).to_contain_text("Say one.")
    type_all(page, "Anthropic Messages, request")
    # In another column too, which is the source from its first letter on.
    type_all(page, "Gemini, request")
    page.goto(exchange)
    page.get_by_role("link", name="Replay …").click()
    type_all(page, "The body that is sent")


def test_turns_of_a_session_are_one_conversation_and_figures_add_up(gateway, opened):
    for _ in range(2):
        ask(gateway, metadata={"user_id": "user_x_account__session_0b1c2d3e-0000-4000-8000-000000000001"})
    page = opened(gateway.url + "/inspector/conversations")
    page.get_by_role("button", name="claude-code").first.click()
    expect(page.locator(".turn")).not_to_have_count(0)
    page.get_by_role("button", name="Read the conversation").click()
    expect(page.locator(".spoken")).to_contain_text("I will look at the parser")
    page.goto(gateway.url + "/inspector/dash")
    expect(page.get_by_role("heading", name="Time to the first token")).to_be_visible()
    expect(page.locator("canvas").first).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    assert b"," in started.value.path().read_bytes()


@pytest.mark.whole
def test_an_exchange_is_exported_and_copied_as_a_command(gateway, opened):
    ask(gateway)
    page = opened(gateway.url + "/inspector")
    newest(page, gateway)
    with page.expect_download() as started:
        page.get_by_role("link", name="Export").click()
    assert started.value.path().stat().st_size > 1000
    # What is copied cannot be read again: the page's policy lets nobody read the clipboard.
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text }")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    command = page.evaluate("window.copied")
    assert command.startswith("curl ")
    assert "$WIREGLOT_KEY" in command


def test_with_keys_one_signs_in_and_a_key_sees_its_own_exchanges_only(opened):
    with LiveGateway(f'[server]\nadmin_secret = "{ADMIN}"\n[providers.demo]\n') as closed:
        page = opened(closed.url + "/inspector/keys")
        page.get_by_label("Secret or key").fill("wrong-secret-0123456789")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.get_by_label("Secret or key").fill(ADMIN)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="New key").click()
        page.get_by_label("Name").fill("team-a")
        page.get_by_label("Cost a day").fill("5")
        page.get_by_role("button", name="Create").click()
        secret = page.locator(".secret").inner_text()
        expect(page.get_by_role("row", name="team-a")).to_contain_text("active")
        ask(closed, key=secret, model="demo")
        page.get_by_role("button", name="Sign out").click()
        page.goto(closed.url + "/inspector")
        page.get_by_label("Secret or key").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("1 exchange", exact=True)).to_be_visible()
        expect(page.get_by_text("key team-a")).to_be_visible()
