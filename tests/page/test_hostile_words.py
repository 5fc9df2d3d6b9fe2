"""Whatever a model, a client or a provider writes is text on the page, in every field of everything that is shown."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.page.conftest import WHOLE
from tests.page.given import documents, row, trace

SEEDS = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script>{}</script></svg>",
    "<iframe srcdoc='<script>{}</script>'></iframe>",
    "<iframe src=javascript:{}></iframe>",
    "<a href=javascript:{}>press</a>",
    "<body onload={}>",
    "<details open ontoggle={}>",
    "<video><source onerror={}></video>",
    "<input autofocus onfocus={}>",
    "<style>@import 'javascript:{}'</style>",
    "<math><mtext></mtext><script>{}</script></math>",
    "<object data=javascript:{}>",
    "<form action=javascript:{}><input type=submit></form>",
    "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<base href='javascript:{}//'>",
    "<template><script>{}</script></template>",
    "javascript:{}",
    "data:text/html,<script>{}</script>",
)
WRAPPINGS = (
    "%s",
    '">%s',
    "'>%s",
    "</pre>%s",
    "</textarea>%s",
    "]]>%s",
    "--><!-- --!>%s",
    "\u202e%s",
    "${%s}",
    "{{%s}}",
)
RUN = "(window.hit=1,alert(1))"
PROBES = [wrap % seed.format(RUN) for wrap in WRAPPINGS for seed in SEEDS]
TRIED = PROBES if WHOLE else PROBES[:: len(PROBES) // 4]


def everywhere(
    value: Any,
    words: str,
    keep: frozenset[str] = frozenset({"id", "state", "kind", "access", "csrf", "currency"}),
) -> Any:
    """The same with these words in every text, but for what the page finds its way by."""
    if isinstance(value, str):
        return words
    if isinstance(value, list):
        return [everywhere(each, words, keep) for each in value]
    if isinstance(value, dict):
        return {
            name: each if name in keep and isinstance(each, str) else everywhere(each, words, keep)
            for name, each in value.items()
        }
    return value


def hostile_trace(words: str) -> dict[str, Any]:
    """Bodies stay JSON of their dialect, with these words for every text in them; one side has them raw."""
    made = trace(time.time())
    shape = frozenset(
        {"id", "state", "type", "role", "mimeType", "media_type", "object", "tool_use_id", "tool_call_id"}
    )

    def body(text: str) -> str:
        return json.dumps(everywhere(json.loads(text), words, shape))

    def frames(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        reported = []
        for frame in listed:
            lines = [
                f"data: {body(line[6:])}" if line.startswith("data: {") else line
                for line in frame["data"].split("\n")
            ]
            reported.append({"ms": frame["ms"], "data": "\n".join(lines)})
        return reported

    attempt = made["attempts"][0]
    safe = frozenset(
        {"id", "state", "format", "document", "pointer", "upstream", "body", "data", "folded", "client"}
    )
    hostile: dict[str, Any] = everywhere(made, words, safe)
    hostile["row"]["client"] = words
    for before, after in ((made, hostile), (attempt, hostile["attempts"][0])):
        after["request"]["body"] = body(before["request"]["body"])
        after["answer"]["frames"] = frames(before["answer"]["frames"])
        after["answer"]["folded"] = body(before["answer"]["folded"])
    hostile["attempts"][0]["links"] = made["attempts"][0]["links"]
    hostile["attempts"][0]["answer_links"] = []
    return hostile


def untouched(page: Any) -> None:
    assert page.evaluate("window.hit") is None
    wrong = page.evaluate(
        """() => [...document.querySelectorAll('*')].filter(each =>
            ['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'BASE', 'VIDEO', 'STYLE', 'MATH', 'TEMPLATE'].includes(each.tagName.toUpperCase())
                && !(each.tagName === 'SCRIPT' && each.src.endsWith('/inspector/assets/page.js'))
            || [...each.attributes].some(one => one.name.startsWith('on') || /^\\s*(javascript|data):/i.test(one.value) && /^(href|src|action|data)$/.test(one.name))
        ).map(each => each.outerHTML.slice(0, 120))"""
    )
    assert wrong == []


@pytest.mark.sampled(each=1)
@pytest.mark.parametrize("number", range(len(TRIED)))
def test_hostile_words_in_an_exchange_are_text(number, stand_in, opened):
    words = TRIED[number]
    stand_in.traces["req-trace"] = hostile_trace(words)
    page = opened(stand_in.origin + "/inspector/x/req-trace?tab=headers")
    expect(page.get_by_role("region", name="Client request")).to_contain_text(words.strip()[:12])
    untouched(page)
    page.goto(
        stand_in.origin
        + "/inspector/x/req-trace?tab=raw&m-client-request=json&m-upstream-request=raw&m-client-answer=events&m-upstream-answer=raw&t=900"
    )
    expect(page.locator("pre.raw").first).to_contain_text(json.dumps(words)[1:9])
    untouched(page)


@pytest.mark.whole
def test_two_hundred_hostile_rows_conversations_keys_and_providers_are_text(stand_in, opened):
    at = time.time()
    assert len(PROBES) == 200
    shown = frozenset({"id", "state"})
    stand_in.rows = [
        {**everywhere(row(number, at - number), words, shown), "at": at - number}
        for number, words in enumerate(PROBES)
    ]
    reported = documents(at)
    stand_in.documents |= reported
    stand_in.documents["GET", "/conversations"] = {
        "conversations": [
            {"session": words, "client": words, "turns": 2, "first_at": at, "last_at": at} for words in PROBES
        ]
    }
    setup = reported["GET", "/setup"]
    setup["providers"] = [
        {"name": words, "title": words, "on": False, "why": words, "dialects": [words]} for words in PROBES
    ]
    setup["clients"] = [
        {"name": words, "title": words, "kind": "sh", "text": words, "run": words} for words in PROBES
    ]
    setup["models"] = list(PROBES)
    reported["GET", "/keys"]["data"] = [
        {"name": words, "prefix": words, "state": words, "models": [words], "stored": True, "used": {}}
        for words in PROBES
    ]
    dashboard = reported["GET", "/dashboard"]
    dashboard["groups"] = [{**dashboard["groups"][0], "name": words} for words in PROBES[:30]]
    dashboard["losses"] = [{"feature": words, "requests": 1} for words in PROBES]
    dashboard["health"]["providers"] = [
        {"name": words, "breakers": [words], "cooling": [], "rejected": [], "errors": {words: 1}}
        for words in PROBES
    ]
    page = opened(stand_in.origin + "/inspector")
    expect(page.locator(".foot")).to_contain_text("exchanges")
    untouched(page)
    for view, seen in (
        ("conversations", ".conversation"),
        ("setup", ".providers li"),
        ("keys", ".key-table tbody tr"),
        ("dash", ".bars li"),
    ):
        page.goto(f"{stand_in.origin}/inspector/{view}")
        expect(page.locator(seen).first).to_be_visible()
        untouched(page)


@pytest.mark.whole
def test_hostile_errors_translations_and_addresses_are_text(stand_in, opened):
    words = PROBES[1]
    stand_in.documents["POST", "/translate"] = {
        "problem": None,
        "dialects": {
            "gemini": {
                "text": words,
                "losses": [
                    {
                        "feature": words,
                        "action": words,
                        "grade": words,
                        "path": words,
                        "document": "request",
                        "reason": words,
                    }
                ],
            }
        },
    }
    page = opened(stand_in.origin + "/inspector/play?kind=stream")
    expect(page.get_by_role("region", name="Gemini")).to_contain_text("onerror")
    untouched(page)
    page.goto(
        stand_in.origin
        + "/inspector/x/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E?sel=%3Cimg%20src%3Dx%3E&tab=%3Cb%3E"
    )
    expect(page.get_by_role("heading", name="No such exchange")).to_be_visible()
    untouched(page)


def test_a_picture_is_asked_of_the_gateway_after_a_click_only_and_no_address_is_loaded(stand_in, opened):
    made = trace(time.time())
    body = json.loads(made["request"]["body"])
    body["messages"].append(
        {
            "role": "user",
            "content": [
                {"type": "image", "source": {"type": "url", "url": "https://elsewhere.example/a.png"}}
            ],
        }
    )
    made["request"]["body"] = json.dumps(body)
    stand_in.traces["req-trace"] = made
    page = opened(stand_in.origin + "/inspector/x/req-trace")
    pane = page.get_by_role("region", name="Client request")
    expect(pane.get_by_role("button", name="Show the picture")).to_have_count(1)
    assert not [path for _, path, _ in stand_in.asked if path.endswith("/image")]
    with page.expect_request(lambda asked: "/image?part=client&pointer=" in asked.url):
        pane.get_by_role("button", name="Show the picture").click()
