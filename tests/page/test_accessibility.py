"""Every view is looked at by axe, in light and dark, wide and narrow."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from tests.page.conftest import WHOLE
from tests.page.given import documents, row, trace

VIEWS = {
    "live": "/inspector?at=req-000002",
    "exchange": "/inspector/x/req-trace?sel=client-request%3A%2Fmessages%2F1%2Fcontent%2F1",
    "exchange as JSON": "/inspector/x/req-trace?m-client-request=json&m-upstream-request=json&m-client-answer=events&t=1500",
    "exchange without bodies": "/inspector/x/req-000001",
    "conversations": "/inspector/conversations?session=session-0",
    "dashboards": "/inspector/dash",
    "playground": "/inspector/play",
    "playground that sends": "/inspector/play?to=gemini%2Fgemini-3-pro",
    "playground with events": "/inspector/play?kind=stream&view=events",
    "set-up": "/inspector/setup",
    "keys": "/inspector/keys",
    "replay": "/inspector/replay/req-trace?to=gemini%2Fgemini-3-pro",
    "compare": "/inspector/compare/req-trace/req-two",
    "exchanges to compare": "/inspector/compare/req-trace",
}


def found_by(axe: str, page: Any) -> list[str]:
    page.evaluate(axe)
    reported = page.evaluate(
        "axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
    )
    return [
        f"{violation['id']} ({violation['impact']}): "
        + "; ".join(
            str(node["target"]) + " " + node["any"][0]["message"] if node["any"] else str(node["target"])
            for node in violation["nodes"][:4]
        )
        for violation in reported["violations"]
    ]


SEEN = [(view, scheme) for view in VIEWS for scheme in ("light", "dark")]
QUICK = [
    ("exchange", "light"),
    ("exchange as JSON", "dark"),
    ("playground that sends", "dark"),
    ("dashboards", "light"),
    ("keys", "light"),
]


@pytest.mark.parametrize(("view", "scheme"), SEEN if WHOLE else QUICK)
def test_axe_finds_nothing_wrong_with_a_view(view, scheme, stand_in, opened, axe):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(1, 40)]
    stand_in.traces["req-trace"] = trace(at)
    stand_in.traces["req-two"] = json.loads(
        json.dumps(trace(at, id="req-two")).replace("one character", "a letter")
    )
    stand_in.traces["req-000001"] = {"row": row(1, at), "losses": stand_in.traces["req-trace"]["losses"][:1]}
    stand_in.documents |= documents(at)
    page = opened(stand_in.origin + VIEWS[view], scheme=scheme)
    page.locator("main").wait_for()
    page.locator(".waiting").wait_for(state="detached")
    assert found_by(axe, page) == []


@pytest.mark.parametrize("view", ["live", "exchange", "dashboards"] if WHOLE else ["live"])
def test_axe_finds_nothing_wrong_on_a_phone(view, stand_in, opened, axe):
    at = time.time()
    stand_in.rows = [row(number, at - number) for number in range(1, 40)]
    stand_in.traces["req-trace"] = trace(at)
    stand_in.documents |= documents(at)
    page = opened(stand_in.origin + VIEWS[view], width=390, height=780)
    page.locator(".waiting").wait_for(state="detached")
    assert found_by(axe, page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page scrolls sideways"


def test_an_empty_list_and_the_sign_in_are_accessible(stand_in, opened, axe):
    stand_in.documents |= documents(time.time())
    page = opened(stand_in.origin + "/inspector")
    page.get_by_role("heading", name="No requests yet").wait_for()
    page.get_by_role("button", name="Ask the demo model").wait_for()
    assert found_by(axe, page) == []
    stand_in.documents["GET", "/session"] = {
        "access": "none",
        "csrf": "",
        "sign_in": True,
        "why": "this gateway has client keys",
    }
    page.reload()
    page.get_by_label("Secret or key").wait_for()
    assert found_by(axe, page) == []
