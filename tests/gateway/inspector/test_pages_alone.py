"""Pages of the inspector without a gateway: the playground, questions and replays of its own, keys."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gateway.kit import catalogued, head, own, settings
from tests.tiers import rows
from wireglot.gateway.entry.callers import LOCAL
from wireglot.gateway.entry.routes import Asked
from wireglot.gateway.errors import RequestError
from wireglot.gateway.inspector import dashboard, key_pages, playground
from wireglot.gateway.inspector.playground import ToTranslate, asked_of, translated
from wireglot.gateway.inspector.preview import Preview
from wireglot.gateway.inspector.replay_page import AskPage, ReplayPage
from wireglot.gateway.observe.record import ExchangeRecord
from wireglot.gateway.request.collected_reply import CollectedReply
from wireglot.gateway.request.page_request import PageRequest
from wireglot.gateway.request.viewer import Viewer
from wireglot.gateway.settings import ClientKey, Rule
from wireglot.http.redaction import Redactor
from wireglot.stores.records import KeyQuotas
from wireglot_core.wire.json import decode, encode


def wrong(document: dict[str, Any], most: int = 10) -> tuple[str, str]:
    with pytest.raises(RequestError) as error:
        asked_of(document, most)
    return error.value.error.param, error.value.error.message


@rows(
    ("document", "param", "message"),
    [
        ({"other": 1}, "other", "other: expected one of aligned, dialect, kind, model, only, request, text"),
        ({"text": 7}, "text", "text: expected text"),
        ({"text": "x" * 11}, "text", "text: expected at most 10 characters"),
        ({"dialect": "latin"}, "dialect", "dialect: expected one of "),
        ({"dialect": "gemini", "kind": "x"}, "kind", "kind: expected one of request, answer, stream"),
        (
            {"dialect": "gemini", "kind": "answer", "only": "gemini"},
            "only",
            "only: expected a list of dialects",
        ),
        (
            {"dialect": "gemini", "kind": "answer", "only": ["ollama", 5]},
            "only[1]",
            "only[1]: expected one of ",
        ),
        (
            {"dialect": "gemini", "kind": "stream", "aligned": "yes"},
            "aligned",
            "aligned: expected true or false",
        ),
        (
            {"dialect": "gemini", "kind": "answer", "request": "[]"},
            "request",
            "request: expected a JSON object",
        ),
        (
            {"dialect": "gemini", "kind": "answer", "request": "{"},
            "request",
            "request: expected a JSON object: ",
        ),
    ],
)
def test_what_cannot_be_translated_is_named(document: dict[str, Any], param: str, message: str) -> None:
    found = wrong(document)
    assert (found[0], found[1].startswith(message)) == (param, True)


def test_what_is_to_be_translated() -> None:
    whole = {"dialect": "gemini", "kind": "stream", "text": "x" * 10, "request": "{}", "model": "m"}
    assert asked_of(whole, 10) == ToTranslate("gemini", "stream", "x" * 10, "{}", "m")
    assert asked_of({"dialect": "gemini", "kind": "request"}, 10) == ToTranslate("gemini", "request", "")


@rows(
    ("kind", "text", "message", "line", "column"),
    [
        ("request", '{"a":\n  x}', None, 2, 3),
        ("request", "[]", "expected a JSON object", None, None),
        ("request", "", None, 1, 1),
        ("stream", "data: {}\n\ndata:  {x}\n\n", None, 3, 9),
        ("stream", "event: x\ndata: [DONE]\n\n: {x}\n", None, None, None),
        ("stream", "hello", "expected server-sent events: lines that begin with data:", None, None),
    ],
)
def test_where_a_document_is_wrong(
    kind: Any, text: str, message: str | None, line: int | None, column: int | None
) -> None:
    problem = translated(ToTranslate("openai-chat", kind, text))["problem"]
    assert message is None or problem["message"] == message
    if line is not None:
        assert (problem["line"], problem["column"]) == (line, column)
        assert (problem["offset"] is None) is (kind == "stream")


def test_a_document_is_translated_into_every_other_dialect() -> None:
    text = '{"model":"m","messages":[{"role":"user","content":"Hi"}],"seed":7}'
    found = translated(ToTranslate("openai-chat", "request", text))
    assert (found["problem"], "openai-chat" in found["dialects"]) == (None, False)
    claude = found["dialects"]["anthropic"]
    assert decode(claude["text"])["model"] == "m"
    assert claude["text"].startswith('{\n  "')
    seed = next(loss for loss in claude["losses"] if loss["feature"] == "sampling.seed")
    assert seed["pointer"]
    assert seed["reason"]
    assert "line" not in seed
    nameless = translated(
        ToTranslate("gemini", "request", '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}', model="x")
    )
    assert decode(nameless["dialects"]["openai-chat"]["text"])["model"] == "x"


def test_losses_are_bounded_and_the_rest_is_counted() -> None:
    from wireglot_core.ir.loss import Loss

    many = [Loss(f"$.a[{number}]", "sampling.seed", "dropped", "") for number in range(501)]
    found = playground._reported_losses(many)
    assert (len(found["losses"]), found["more_losses"]) == (500, 1)
    assert "more_losses" not in playground._reported_losses(many[:500])
    assert playground._reported_losses(many[:1], {many[0]: 4})["losses"][0]["line"] == 4


def test_events_of_a_stream_with_their_lines() -> None:
    text = "event: a\ndata: 1\ndata: 2\n\n: x\r\n\r\ndata: 3"
    assert list(playground._events(text)) == [
        (2, "event: a\ndata: 1\ndata: 2\n\n"),
        (0, ": x\r\n\r\n"),
        (7, "data: 3"),
    ]
    assert list(playground._events('{"a":1}\r\n{"b":2}')) == [(1, '{"a":1}\r\n'), (2, '{"b":2}')]


def test_the_events_of_a_stream_are_aligned_with_those_they_became() -> None:
    text = (
        'data: {"responseId":"r","candidates":[{"content":{"role":"model","parts":[{"text":"One"}]}}]}\n\n'
        'data: {"candidates":[{"content":{"parts":[{"text":" two"}]},"finishReason":"STOP"}]}\n\n'
    )
    asked = {"dialect": "gemini", "kind": "stream", "text": text, "only": ["anthropic"]}
    whole = translated(asked_of(asked, 999))
    found = translated(asked_of(asked | {"aligned": True}, 999))
    assert ["".join(found["events"]), len(found["events"])] == [text, 2]
    assert found["dialects"].keys() == {"anthropic"}
    became = found["dialects"]["anthropic"]["events"]
    assert ["One" in piece for piece in became] == [True, False, False]
    assert " two" in became[1]
    assert "".join(became) == whole["dialects"]["anthropic"]["text"]


# Questions and replays.

DEMO = own("demo", "openai-chat")


class Submitted:
    def __init__(self, status: int = 200, body: bytes = b"{}") -> None:
        self.status, self.body = status, body
        self.incoming: Any = None
        self.document: Any = None

    async def __call__(self, incoming: Any, body: bytes, reply: Any) -> str:
        self.incoming, self.document = incoming, decode(body)
        reply.send(self.status, [], self.body)
        return "req_new"


def page(document: Any, now: Any) -> tuple[PageRequest, CollectedReply]:
    reply = CollectedReply(999_999)
    made = PageRequest(
        settings=now,
        caller=LOCAL,
        head=head("POST", "/inspector/api/x", peer="10.0.0.1"),
        asked=Asked("openai-chat", "inspector"),
        body=encode(document),
        reply=reply,
        record=ExchangeRecord("req_1", 0.0),
    )
    return made, reply


KIMI = settings(catalogued("kimi", "k"))


def ask(document: Any, submitted: Submitted, now: Any = KIMI) -> Any:
    made, reply = page(document, now)
    asyncio.run(AskPage(submitted).ask(made, Viewer("open")))
    return decode(bytes(reply.body))


def test_a_question_of_the_page() -> None:
    submitted = Submitted()
    found = ask({"model": "kimi/kimi-k3", "text": "Hi", "stream": False}, submitted)
    assert found == {"id": "req_new", "model": "kimi/kimi-k3", "status": 200}
    assert submitted.document["messages"] == [{"role": "user", "content": "Hi"}]
    assert submitted.document["model"] == "kimi/kimi-k3"
    incoming = submitted.incoming
    assert (incoming.head.method, incoming.head.path, incoming.head.peer) == (
        "POST",
        "/v1/chat/completions",
        "10.0.0.1",
    )
    assert incoming.head.headers == {
        "host": "localhost:8484", "user-agent": "wireglot-inspector", "content-type": "application/json",
    }  # fmt: skip
    ask({"model": "kimi/kimi-k3"}, submitted)
    assert submitted.document["stream"] is True
    assert "What can you do?" in submitted.document["messages"][0]["content"]


def test_a_question_that_fails_says_why() -> None:
    found = ask({"model": "m"}, Submitted(400, b'{"error": {"message": "no such model"}}'))
    assert (found["status"], found["error"]) == (400, {"message": "no such model"})
    for body in (b"<html>", b'{"error": {}}', b'{"error": "x"}'):
        assert ask({"model": "m"}, Submitted(500, body))["error"] == {"message": "it failed"}
    assert "error" not in ask({"model": "m"}, Submitted(399))


@rows(
    ("document", "param"),
    [
        ({"model": 7}, "model"),
        ({"model": "x" * 100_001}, "model"),
        ({"model": "m", "text": 7}, "text"),
        ({"model": "m", "stream": "yes"}, "stream"),
        ({"model": "m", "other": 1}, "other"),
        ({}, "model"),
    ],
)
def test_a_question_that_is_none(document: Any, param: str) -> None:
    with pytest.raises(RequestError) as error:
        ask(document, Submitted())
    assert error.value.error.param == param
    assert ask({"model": "x" * 100_000}, Submitted())["status"] == 200


def test_without_a_model_the_demo_answers() -> None:
    from wireglot_core.providers.spec import ModelSpec

    demo = settings(own("demo", "openai-chat", ModelSpec("demo-1")))
    assert ask({}, Submitted(), demo)["model"] == "demo/demo-1"


OPEN = Viewer("open")
RECORDED = {"model": "old", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50}


class Traces:
    def __init__(self, *, truncated: bool = False, missing: bool = False, stream: bool = False) -> None:
        row = SimpleNamespace(
            asked="kimi/kimi-k3",
            dialect="openai-chat",
            operation="generate",
            stream=stream,
            key="team",
            at=5.0,
        )
        request = SimpleNamespace(body=encode(RECORDED).decode(), truncated=truncated)
        self._trace = None if missing else SimpleNamespace(row=row, request=request)
        self._row = row

    async def find(self, id: str) -> Any:
        return self._row if id == "req_old" else None

    async def opened(self, row: Any) -> Any:
        return self._trace, None


def replay(
    document: Any, traces: Any = None, viewer: Viewer = OPEN, now: Any = KIMI
) -> tuple[Any, Submitted]:
    made, reply = page(document, now)
    submitted = Submitted()
    recorded: Any = traces or Traces()
    asyncio.run(
        ReplayPage(submitted, recorded, Preview(Redactor, lambda exchange: None)).replay(made, viewer)
    )
    return decode(bytes(reply.body)), submitted


def test_a_recorded_request_again() -> None:
    found, submitted = replay({"id": "req_old"})
    assert found == {"id": "req_new", "status": 200, "model": "kimi/kimi-k3"}
    assert submitted.document == {**RECORDED, "model": "kimi/kimi-k3"}
    assert submitted.incoming.asked.dialect == "openai-chat"
    found, submitted = replay({"id": "req_old", "to": "kimi/kimi-k2"})
    assert (found["model"], submitted.document["model"]) == ("kimi/kimi-k2", "kimi/kimi-k2")


def test_a_replay_in_another_dialect_or_changed() -> None:
    _, submitted = replay({"id": "req_old", "dialect": "anthropic"})
    assert submitted.incoming.head.path == "/v1/messages"
    assert submitted.document["messages"][0]["content"] in ("Hi", [{"type": "text", "text": "Hi"}])
    changed = {"messages": [{"role": "user", "content": "Ho"}], "previous_response_id": "r"}
    _, submitted = replay({"id": "req_old", "body": changed})
    assert submitted.document["messages"] == changed["messages"]
    _, submitted = replay({"id": "req_old", "body": encode(changed).decode(), "dialect": "openai-responses"})
    assert "previous_response_id" not in submitted.document
    _, submitted = replay({"id": "req_old", "dialect": "gemini", "stream": True})
    assert (submitted.incoming.asked.model, submitted.incoming.asked.stream) == ("kimi/kimi-k3", True)
    assert submitted.incoming.head.query == "alt=sse"
    _, submitted = replay({"id": "req_old", "dialect": "gemini"})
    assert (submitted.incoming.asked.stream, submitted.incoming.head.query) == (False, "")
    _, submitted = replay({"id": "req_old", "dialect": "gemini"}, Traces(stream=True))
    assert submitted.incoming.asked.stream is True


def test_a_replay_of_what_another_gateway_recorded() -> None:
    found, submitted = replay({"to": "kimi/kimi-k3", "dialect": "openai-chat", "body": RECORDED})
    assert (found["model"], submitted.document["model"]) == ("kimi/kimi-k3", "kimi/kimi-k3")
    for missing in ("to", "dialect", "body"):
        whole = {"to": "kimi/kimi-k3", "dialect": "openai-chat", "body": RECORDED}
        del whole[missing]
        with pytest.raises(RequestError) as error:
            replay(whole)
        assert error.value.error.param == missing


def test_a_named_provider_is_meant_whatever_patterns_say() -> None:
    patterns = settings(catalogued("kimi", "k"), rules=(Rule("*", ("other/x",)),))
    _, submitted = replay({"id": "req_old"}, now=patterns)
    first = submitted.incoming.settings.rules[0]
    assert (first.match, first.targets) == ("kimi/kimi-k3", ("kimi/kimi-k3",))
    exact = settings(catalogued("kimi", "k"), rules=(Rule("kimi/kimi-k3", ("other/x",)),))
    assert replay({"id": "req_old"}, now=exact)[1].incoming.settings is exact
    assert replay({"id": "req_old", "to": "some-name"}, now=patterns)[1].incoming.settings is patterns


@rows(
    ("document", "traces", "viewer", "status", "code"),
    [
        ({"id": "req_unknown"}, Traces(), Viewer("open"), 404, "exchange_not_found"),
        ({"id": "req_old"}, Traces(), Viewer("key", "other"), 404, "exchange_not_found"),
        ({"id": "req_old"}, Traces(), Viewer("key", "team", created=6000), 404, "exchange_not_found"),
        ({"id": "req_old"}, Traces(truncated=True), Viewer("open"), 404, "not_recorded"),
        ({"id": "req_old"}, Traces(missing=True), Viewer("open"), 404, "not_recorded"),
        ({"id": "req_old", "dry": "yes"}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "req_old", "stream": "yes"}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "req_old", "dialect": "latin"}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "req_old", "other": 1}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "x" * 257}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "req_old", "body": "{"}, Traces(), Viewer("open"), 400, "invalid_json"),
        ({"id": "req_old", "body": [1]}, Traces(), Viewer("open"), 400, "invalid_value"),
        ({"id": "req_old", "to": "nobody/x", "dry": True}, Traces(), Viewer("open"), 404, "model_not_found"),
    ],
)
def test_a_replay_that_is_refused(document: Any, traces: Any, viewer: Viewer, status: int, code: str) -> None:
    with pytest.raises(RequestError) as error:
        replay(document, traces, viewer)
    assert (error.value.error.status, error.value.error.code) == (status, code)


def test_what_a_replay_may_cost() -> None:
    found, submitted = replay({"id": "req_old", "dry": True})
    assert submitted.incoming is None
    assert (found["model"], found["provider"], found["dialect"], found["key"]) == (
        "kimi-k3",
        "kimi",
        "openai-chat",
        "local",
    )
    assert found["pays"] == "config"
    estimate = found["estimate"]
    assert (estimate["input"], estimate["max_output"], estimate["currency"]) == (12, 50, "USD")
    assert estimate["cost"] is None or estimate["cost"] > 0
    unsaid, _ = replay({"id": "req_old", "dry": True, "body": {**RECORDED, "max_tokens": 10**9}})
    assert 50 < unsaid["estimate"]["max_output"] < 10**9
    mine = settings(own("mine", "openai-chat"))
    unknown, _ = replay(
        {"id": "req_old", "to": "mine/m", "dry": True, "body": {"messages": RECORDED["messages"]}}, now=mine
    )
    assert (unknown["estimate"]["max_output"], unknown["estimate"]["cost"], unknown["pays"]) == (
        128 * 1024,
        None,
        "",
    )
    seen, _ = replay({"id": "req_old", "dry": True}, viewer=Viewer("key", "team"))
    assert seen["pays"] == "kimi"


# Keys and figures.


def test_what_a_key_has_used() -> None:
    found = key_pages.used_of("a", {"a": (5, 2_000_000)}, {"a": (50, 3_500_000)})
    assert found == {"tokens_per_day": 5, "tokens_per_month": 50, "cost_per_day": 2.0, "cost_per_month": 3.5}
    assert set(key_pages.used_of("b", {}, {}).values()) == {0}


def test_a_configured_key_as_it_is_listed() -> None:
    key = ClientKey("a", "d", models=("m",), losses="strict", group="g", owner="o", expires=5000)
    found = key_pages.configured_key(key, 4.9)
    assert (found["name"], found["state"], found["models"], found["losses"]) == (
        "a",
        "active",
        ["m"],
        "strict",
    )
    assert (found["group"], found["owner"], found["expires"]) == ("g", "o", "1970-01-01T00:00:05Z")
    assert key_pages.configured_key(key, 5.0)["state"] == "expired"
    bare = key_pages.configured_key(ClientKey("b", "d", limits=KeyQuotas()), 1.0)
    assert (bare["group"], bare["owner"], bare["expires"], bare["state"]) == (None, None, None, "active")


def test_days_and_months_begin_at_midnight_of_utc() -> None:
    day, month = key_pages.beginnings(1_700_000_000.0)  # 2023-11-14 22:13:20
    assert (day, month) == (1_699_920_000_000, 1_698_796_800_000)


def test_a_table_for_spreadsheets() -> None:
    series = {"requests": [1, 2], "cost": [0.5, 0.0], "latency_p50": [None, 1.25]}
    groups = [{"name": "=evil", "series": series}, {"name": "", "series": series}]
    reported = {"by": "model", "currency": "EUR", "series": series, "groups": groups, "times": [0, 60]}
    assert dashboard.as_csv(reported).decode().split("\r\n") == [
        "time,model,requests,cost,latency_p50,currency",
        "1970-01-01T00:00:00Z,,1,0.5,,EUR",
        "1970-01-01T00:01:00Z,,2,0,1.25,EUR",
        "1970-01-01T00:00:00Z,'=evil,1,0.5,,EUR",
        "1970-01-01T00:01:00Z,'=evil,2,0,1.25,EUR",
        "1970-01-01T00:00:00Z,(none),1,0.5,,EUR",
        "1970-01-01T00:01:00Z,(none),2,0,1.25,EUR",
        "",
    ]


def test_samples_of_metrics_are_read() -> None:
    text = '# HELP x\nwireglot_queue 3\nwireglot_errors_total{provider="a\\"b",kind="x\\n"} 1.5e1\nother 1\n'
    found = dashboard._samples(text)
    assert found == {"queue": [({}, 3.0)], "errors_total": [({"provider": 'a"b', "kind": "x\n"}, 15.0)]}
    assert (dashboard._sum(found, "queue"), dashboard._sum(found, "nothing")) == (3, 0)
