"""What the page's thread is busy with, by Chromium's own trace, and how long a click takes until something is painted.

A task counts with the processor time that it took: on a busy machine the clock runs on while others compute.
`pytest --log-cli-level=INFO` shows the figures.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

figures = logging.getLogger("figures")
LONG_MS = 200.0
"""No task of the page may be longer."""
PAINT_MS = 300.0
"""Within it a click on an exchange of a megabyte shows both requests."""
TRIES = 8
"""Of what is measured by the clock the best counts: others compute meanwhile, and only make it longer."""
_CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline"]
_TASK = "RunTask"
_THREAD = "CrRendererMain"

_WATCH = """([clicked, shown]) => {
    window.painted = new Promise((done) => {
        let from = 0
        const look = () => {
            // What is there in a frame is painted with it, and a timer runs after that.
            if (shown.every((each) => document.querySelector(each))) setTimeout(() => done(performance.now() - from))
            else requestAnimationFrame(look)
        }
        addEventListener("click", (event) => {
            from = event.timeStamp
            requestAnimationFrame(look)
        }, { capture: true, once: true })
    })
}"""


class Tasks:
    """`longest`: milliseconds of processor time of the longest task of any tab, once it is over."""

    def __init__(self) -> None:
        self.all: list[float] = []

    @property
    def longest(self) -> float:
        return max(self.all)

    def read(self, trace: bytes) -> None:
        events = json.loads(trace)["traceEvents"]
        pages = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == _THREAD
        }
        self.all = [
            event["tdur"] / 1000
            for event in events
            if event["name"] == _TASK and event["ph"] == "X" and (event["pid"], event["tid"]) in pages
        ]
        assert self.all, "no task of a page in the trace"


@contextmanager
def watched(browser: Browser) -> Iterator[Tasks]:
    """What the tabs do meanwhile."""
    tasks = Tasks()
    browser.start_tracing(categories=_CATEGORIES)
    try:
        yield tasks
    finally:
        trace = browser.stop_tracing()
    tasks.read(trace)


def without_long_tasks(browser: Browser, what: str, act: Callable[[], None]) -> None:
    """The best of three: a task in which garbage of others is collected is not the fault of what is looked at."""
    seen: list[float] = []
    for _ in range(3):
        with watched(browser) as tasks:
            act()
        seen.append(round(tasks.longest))
        if seen[-1] <= LONG_MS:
            break
    figures.info("%s: longest task %d ms", what, min(seen))
    assert min(seen) <= LONG_MS, f"{what}: {seen}"


def click_to_paint(page: Page, clicked: str, *shown: str) -> float:
    """Milliseconds from a click until all of these are painted."""
    page.evaluate(_WATCH, [clicked, list(shown)])
    page.locator(clicked).first.click()
    return float(page.evaluate("window.painted"))
