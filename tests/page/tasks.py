"""What the page's thread is busy with, by Chromium's own trace, and how long a click takes until something is painted.

A task counts with the processor time that it took: on a busy machine the clock runs on while others compute.
`pytest --log-cli-level=INFO` shows the figures.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from playwright.sync_api import Browser, Page

figures = logging.getLogger("figures")
MAX_ELEMENTS = 6_000
"""Of a page, however much it shows: a list of 100,000 rows, a stream of 20,000 events, a body of 10 MB."""
_CATEGORIES = ["blink.user_timing", "devtools.timeline", "disabled-by-default-devtools.timeline"]
_TASK = "RunTask"
_THREAD = "CrRendererMain"

_WATCH = """(shown) => {
    window.painted = new Promise((done) => {
        let from = 0
        const look = () => {
            if (!shown.every((each) => document.querySelector(each))) return requestAnimationFrame(look)
            // What is there in a frame is painted with it, and a timer runs after that.
            setTimeout(() => {
                performance.mark("painted")
                done(performance.now() - from)
            })
        }
        addEventListener("click", (event) => {
            from = event.timeStamp
            performance.mark("clicked")
            requestAnimationFrame(look)
        }, { capture: true, once: true })
    })
}"""


class Task(NamedTuple):
    """In milliseconds: when it began and ended by the clock, and the processor time that it took."""

    began: float
    ended: float
    took: float


class Tasks:
    """Of all tabs, once they are over."""

    def __init__(self) -> None:
        self.all: list[Task] = []
        self.marks: dict[str, float] = {}
        """When the page had come so far."""

    @property
    def longest(self) -> float:
        return max(task.took for task in self.all)

    def between(self, first: str, last: str) -> float:
        """What the tasks from one mark to another took together."""
        begin, end = self.marks[first], self.marks[last]
        return sum(task.took for task in self.all if task.ended > begin and task.began < end)

    def read(self, trace: bytes) -> None:
        events = json.loads(trace)["traceEvents"]
        pages = {
            (event["pid"], event["tid"])
            for event in events
            if event["name"] == "thread_name" and event["args"]["name"] == _THREAD
        }
        # Chromium omits a processor time that its clock shows as zero.
        self.all = [
            Task(event["ts"] / 1000, (event["ts"] + event["dur"]) / 1000, event.get("tdur", 0) / 1000)
            for event in events
            if event["name"] == _TASK and event["ph"] == "X" and (event["pid"], event["tid"]) in pages
        ]
        self.marks = {
            event["name"]: event["ts"] / 1000 for event in events if event["cat"] == "blink.user_timing"
        }
        assert any(task.took for task in self.all), "no task of a page, or no processor time, in the trace"


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


def measured(browser: Browser, what: str, act: Callable[[], None]) -> None:
    """Logs the longest task of the pages meanwhile. What is tested is its cause: what a page draws does not grow
    with what there is."""
    with watched(browser) as tasks:
        act()
    elements = max(
        page.evaluate("document.getElementsByTagName('*').length")
        for context in browser.contexts
        for page in context.pages
    )
    figures.info("%s: longest task %d ms, %d elements", what, tasks.longest, elements)
    assert elements < MAX_ELEMENTS, f"{what}: {elements}"


class Painted(NamedTuple):
    """Milliseconds from a click until what it opens is painted."""

    clock: float
    took: float
    """Processor time of the page's thread."""


def click_to_paint(browser: Browser, page: Page, clicked: str, *shown: str) -> Painted:
    """`shown`: all of these."""
    page.evaluate(_WATCH, list(shown))
    with watched(browser) as tasks:
        page.locator(clicked).first.click()
        clock = float(page.evaluate("window.painted"))
    return Painted(clock, tasks.between("clicked", "painted"))
