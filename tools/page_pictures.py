"""Takes the pictures of docs/inspector.md: a real gateway, real requests of every dialect, a real browser.

Run as `make page-pictures`; it needs pngquant. Times and ids are those of the run: no two pictures are equal.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from importlib.resources import files
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, ViewportSize, sync_playwright

from clients.catalog import CLIENTS
from clients.install import is_there
from clients.seat import Seat
from clients.upstream import Upstream
from wireglot.testing.live_gateway import LiveGateway
from wireglot.testing.scripted_upstream import Behaviour, ScriptedUpstream

FOLDER = Path(__file__).parents[1] / "docs/pictures"
MAX_BYTES = 150 * 1024
SIZE: ViewportSize = {"width": 1280, "height": 800}
EXAMPLES = files("wireglot.cli.examples")
ASKING = (
    ("anthropic", "/v1/messages", "claude-cli/2.1.0 (external, cli)", "claude-sonnet-5-5"),
    ("openai-responses", "/v1/responses", "codex_cli_rs/0.60.0", "gpt-5.5-codex"),
    ("openai-chat", "/v1/chat/completions", "opencode/1.0.0", "kimi-k3"),
    ("gemini", "/v1beta/models/{model}:streamGenerateContent?alt=sse", "GeminiCLI/0.20.0", "gemini-3-pro"),
)
CONFIGURATION = """
[providers.demo]
[providers.kimi]
dialect = "openai-chat"
base_url = "{url}/v1"
api_key = "upstream-key-0123456789"
[providers.gemini]
dialect = "gemini"
base_url = "{url}"
api_key = "upstream-key-0123456789"
[models]
"claude-*" = "kimi/kimi-k3"
"gpt-*" = "gemini/gemini-3-pro"
"gemini-*" = "kimi/kimi-k3"
"kimi-*" = "gemini/gemini-3-pro"
[trace]
mode = "all"
"""


def ask(gateway: LiveGateway, number: int) -> None:
    dialect, path, agent, model = ASKING[number % len(ASKING)]
    body: dict[str, Any] = json.loads(EXAMPLES.joinpath(dialect, "request.json").read_text(encoding="utf-8"))
    if "model" in body:
        body["model"] = model
    if number % 8 == 0:
        body = json.loads(json.dumps(body).replace("1 failed, 11 passed in 0.21s", "12 passed in 0.19s"))
    url = gateway.url + path.format(model=model)
    headers = {"content-type": "application/json", "user-agent": agent, "x-api-key": "none"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode(), headers)
        ) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        error.read()


def take(page: Page, name: str) -> None:
    place = FOLDER / f"inspector-{name}.png"
    page.screenshot(path=place)
    # 256 colours are enough for a page of text, and a third of the bytes.
    subprocess.run(
        ["pngquant", "--force", "--strip", "--speed", "1", "--output", str(place), str(place)], check=True
    )
    size = place.stat().st_size
    print(f"{place.name}: {size // 1024} KB")
    if size > MAX_BYTES:
        sys.exit(f"{place.name} is larger than {MAX_BYTES // 1024} KB")


def main() -> None:
    chromium = shutil.which("chromium")
    with (
        ScriptedUpstream() as upstream,
        sync_playwright() as playwright,
        LiveGateway(CONFIGURATION.format(url=upstream.url)) as gateway,
    ):
        began = last = int(time.time())
        for number in range(26):
            upstream.next(
                Behaviour(error=400) if number == 13 else Behaviour(delay=0.05 * (number % 5), gap=0.008)
            )
            last = int(time.time())
            ask(gateway, number)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme, suffix in (("light", ""), ("dark", "-dark")):
            page = browser.new_page(viewport=SIZE, color_scheme="dark" if scheme == "dark" else "light")
            # Seconds after the one in which the last request began have nothing to show.
            pictures(page, gateway.url, suffix, (began, last + 1))
            page.close()
        page = browser.new_page(viewport=SIZE)
        with_claude_code(page)
        browser.close()


def with_claude_code(page: Page) -> None:
    """Claude Code itself reads files by tool, answered by the demo model as if it were another provider's."""
    client = next(each for each in CLIENTS if each.name == "claude-code")
    if not is_there(client.package):
        print("Claude Code is not installed (`python -m clients.install claude-code`): its picture stays")
        return
    with (
        Upstream() as upstream,
        LiveGateway(CONFIGURATION.format(url=upstream.url)) as gateway,
        tempfile.TemporaryDirectory() as logs,
        Seat(gateway.url, "none", Path(logs), "openai-chat", 3) as seat,
    ):
        upstream.gap = 0.02
        outcome = seat.run(client.launch(seat), finals=client.finals, timeout=client.timeout)
        if not outcome.passed:
            sys.exit(f"Claude Code: {outcome.reason}")
        page.goto(gateway.url + "/inspector")
        page.locator(".rows [role=row]").first.click()
        page.locator(".part-call").first.wait_for()
        page.get_by_role("region", name="Client request").locator(".part-call").nth(1).click()
        page.get_by_role("region", name="Upstream request").locator(".part.lit").first.wait_for()
        page.mouse.move(0, 0)
        page.evaluate("scrollTo(0, 0)")
        take(page, "claude-code")


def pictures(page: Page, origin: str, suffix: str, asked: tuple[int, int]) -> None:
    page.goto(origin + "/inspector")
    page.locator(".rows [role=row]").nth(3).wait_for()
    page.keyboard.press("j")
    if not suffix:
        take(page, "live")
    rows = page.evaluate("fetch('/inspector/api/exchanges?client=claude-code').then(each => each.json())")[
        "rows"
    ]
    chosen, *others = [row["id"] for row in rows[:3]]
    page.goto(f"{origin}/inspector/x/{chosen}?sel=client-request%3A%2Fmessages%2F1%2Fcontent%2F1")
    page.locator(".part.lit").first.wait_for()
    take(page, "exchange" + suffix)
    if suffix:
        return
    page.goto(f"{origin}/inspector/compare/{'/'.join([chosen, *others])}")
    page.get_by_role("heading", name="Text").wait_for()
    take(page, "compare")
    page.goto(f"{origin}/inspector/x/{chosen}?m-client-answer=events&m-upstream-answer=events&ev=client%3A8")
    page.locator(".event.lit").first.wait_for()
    page.locator(".panes").evaluate("each => scrollTo(0, each.offsetTop + each.offsetHeight / 2 - 60)")
    take(page, "events")
    page.goto(origin + "/inspector/play?to=demo%2Fdemo-gemini%2Cdemo%2Fdemo-ollama")
    page.get_by_role("region", name="Gemini", exact=True).get_by_text("cache_marker").wait_for()
    page.get_by_text("Goes to").nth(1).wait_for()
    take(page, "play")
    page.goto(f"{origin}/inspector/dash?from={asked[0]}&to={asked[1]}")
    page.locator("canvas").nth(3).wait_for()
    take(page, "dash")


if __name__ == "__main__":
    main()
