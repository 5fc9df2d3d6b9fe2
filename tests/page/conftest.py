"""A real browser for the tests of the page: Debian's Chromium, headless."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from tests.page.stand_in import StandIn, standing_in

PATIENCE_MS = 120_000
"""Only ends a test that fails: on a busy machine a browser takes its time."""
expect.set_options(timeout=PATIENCE_MS)

REQUIRED = bool(os.environ.get("WIREGLOT_BROWSER"))
WHOLE = bool(os.environ.get("WIREGLOT_WHOLE"))  # `make full`
BROWSERS = (*(() if WHOLE else ("chromium-headless-shell",)), "chromium", "chromium-browser")
"""The same engine without windows shows a page in a quarter of the time; `make full` takes the browser itself."""
AXE = Path(__file__).parents[2] / "page/node_modules/axe-core/axe.min.js"


def missing(what: str) -> None:
    """Skips, or fails where the browser's tests were asked for."""
    if REQUIRED:
        pytest.fail(what)
    pytest.skip(what)


_open: list[tuple[Playwright, Browser]] = []
"""The one browser of this process, once a test has asked for it: to start one takes a second or two."""


@pytest.fixture
def browser() -> Browser:
    if not _open:
        chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
        if chromium is None:
            missing("no chromium here: `make chromium` installs it")
        playwright = sync_playwright().start()
        # Its own sandbox wants namespaces that containers and root do not have; only pages of ours are opened.
        found = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        _open.append((playwright, found))
    return _open[0][1]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Close the browser after this folder: while it is open its loop runs in this thread, and no other test could
    run one."""
    yield
    if _open and (nextitem is None or nextitem.path.parent != Path(__file__).parent):
        playwright, found = _open.pop()
        found.close()
        playwright.stop()


@pytest.fixture
def axe() -> str:
    if not AXE.is_file():
        missing("no axe-core here: `npm ci` in page/ installs it")
    return AXE.read_text(encoding="utf-8")


Opened = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens an address. What a page must never do fails the test that opened it: an error of its script, something that
    its policy forbids, a dialog, a request to anybody else."""
    faults: list[str] = []
    contexts = []

    def open_page(address: str, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        origin = address.split("/inspector")[0]

        def dialog(found):
            if found.type == "beforeunload":  # asks whether to leave what was typed
                found.accept()
                return
            faults.append(f"a dialog: {found.message}")
            found.dismiss()

        def console(message):
            reported = message.text
            # What the browser says of a refusal that a test asks for, and of a gateway that ends while it looks.
            if message.type == "error" and not reported.startswith("Failed to load resource:"):
                faults.append(f"on the console: {reported}")

        def request(asked):
            if not asked.url.startswith((origin, "blob:", "data:")):
                faults.append(f"a request to {asked.url}")

        page.on("dialog", dialog)
        page.on("console", console)
        page.on("request", request)
        page.on("pageerror", lambda error: faults.append(f"an error: {error}"))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))"
        )
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with standing_in() as found:
        yield found
