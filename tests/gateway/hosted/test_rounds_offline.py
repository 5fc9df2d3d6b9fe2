"""Answers of several rounds, by a gateway without sockets: limits, choices, what is counted and recorded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import ScriptedWeb
from tests.gateway.offline import CHAT, CHAT_PATH, MESSAGES_PATH, RESPONSES_PATH, Got, Offline, Said, asked
from tests.tiers import rows
from wireglot.gateway.hosted.loop import _remaining, _summary
from wireglot.gateway.hosted.web import SourceSealer, web_runners
from wireglot.gateway.state.quotas.tool_uses import ToolUses
from wireglot.web.contract import WebFailed
from wireglot_core.ir.hosted import HostedCall, HostedResult, RanCall
from wireglot_core.ir.outcome import Usage
from wireglot_core.ir.request import Request, Thinking
from wireglot_core.wire.json import decode, encode_text

SEARCH = {"type": "web_search_20250305", "name": "web_search"}
FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
OWN = {"name": "now", "input_schema": {"type": "object"}}


def said(text: str | None, *calls: tuple[str, dict[str, Any]], finish: str = "") -> Said:
    """An answer on Chat Completions, with calls of these functions."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{place}",
                "type": "function",
                "function": {"name": name, "arguments": encode_text(given)},
            }
            for place, (name, given) in enumerate(calls)
        ]
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}
    return Said(body={**CHAT, "choices": [choice]})


def search(query: str = "tower") -> tuple[str, dict[str, Any]]:
    return "web_search", {"query": query}


class Stage:
    def __init__(self, offline: Offline) -> None:
        self.offline = offline
        self.web = ScriptedWeb()
        inside: Any = offline.gateway
        uses = ToolUses(offline.state.quotas.tools, offline.state.ledger)
        sealed = SourceSealer(offline.state.sealer)
        inside._parts.pipeline.parts.runners.update(
            web_runners(lambda _: self.web, lambda _: self.web, sealed, uses)
        )

    def ask(self, *answers: Said, path: str = MESSAGES_PATH, **more: Any) -> Got:
        self.offline.upstream.sent.clear()
        self.offline.records.clear()
        self.offline.upstream.say(*answers)
        body = {"tools": [SEARCH], "max_tokens": 100, **more}
        if path == RESPONSES_PATH:
            body = {"model": "mine/m", "input": "Hi", **more}
        elif path == CHAT_PATH:
            body = asked(web_search_options={}, **more)
        elif path.startswith("/v1beta"):
            body = more
        else:
            body = asked(**body)
        return self.offline.ask(path, body)

    @property
    def sent(self) -> list[Any]:
        return [decode(each.body) for each in self.offline.upstream.sent]


CHATTING = {"dialect": "openai-chat", "base_url": "https://h.example/v1", "limits": {"hosted_tools": False}}
WEB = {"backend": "searxng", "url": "http://127.0.0.1:1", "fetch": True}


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Offline(providers={"mine": CHATTING}, search=WEB) as offline:
        yield Stage(offline)


def blocks(got: Got) -> list[str]:
    return [block["type"] for block in got.json["content"]]


def test_the_record_says_what_was_run(stage: Stage) -> None:
    got = stage.ask(said("Let me see.", search()), said("It is high."))
    assert blocks(got) == ["text", "server_tool_use", "web_search_tool_result", "text"]
    assert got.record is not None
    assert got.record.notes == ["tools run by the gateway: 1 calls"]
    assert (got.record.stop, got.record.within, got.record.operation) == ("end", "", "generate")
    further = stage.offline.records[0]
    assert (further.operation, further.within) == ("tool_round", got.record.id)
    assert [loss.path for loss in got.record.losses] == ["$.tools[0]"]
    assert got.json["stop_reason"] == "end_turn"
    assert got.json["usage"]["server_tool_use"] == {"web_search_requests": 1, "web_fetch_requests": 0}


def test_failed_calls_are_noted_and_counted(stage: Stage) -> None:
    stage.web.problem = WebFailed("unavailable", "it is down")
    got = stage.ask(said(None, search(), search("list")), said("Sorry."))
    assert got.record is not None
    assert got.record.notes == ["tools run by the gateway: 2 calls, 2 failed"]
    calls = stage.offline.observer.metrics.hosted_calls
    assert calls.value(("web_search", "scripted", "unavailable")) == 2
    results = [message for message in stage.sent[1]["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in results] == ["Error: unavailable: it is down"] * 2
    stage.web.problem = None
    stage.ask(said(None, search()), said("Done."))
    assert calls.value(("web_search", "scripted", "ok")) == 1


def test_calls_at_once_have_a_maximum(stage: Stage) -> None:
    got = stage.ask(said(None, *[search(f"q{number}") for number in range(9)]), said("Done."))
    contents = [each["content"] for each in got.json["content"] if each["type"] == "web_search_tool_result"]
    assert [type(each) is list for each in contents] == [True] * 8 + [False]
    assert contents[8]["error_code"] == "too_many_requests"
    assert [query.text for query in stage.web.queries] == [f"q{number}" for number in range(8)]


def test_a_responses_client_says_how_many_calls_it_allows(stage: Stage) -> None:
    tools = [{"type": "web_search"}]
    rounds = (said(None, search("a"), search("b")), said(None, search("c"), search("d")), said("Done."))
    stage.ask(*rounds, path=RESPONSES_PATH, tools=tools, max_tool_calls=3)
    assert [query.text for query in stage.web.queries] == ["a", "b", "c"]
    results = [message["content"] for message in stage.sent[2]["messages"] if message["role"] == "tool"]
    assert [each.startswith("Text from the web") for each in results] == [True, True, True, False]
    assert results[3] == "Error: No more calls of tools are allowed."


def test_after_ten_minutes_no_tool_is_offered(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for seconds, offered in ((599.0, True), (600.0, False)):
        now[0] = 1000.0
        plain = stage.web.search

        async def slow(query: Any, plain: Any = plain, seconds: float = seconds) -> Any:
            now[0] = 1000.0 + seconds
            return await plain(query)

        monkeypatch.setattr(stage.web, "search", slow)
        stage.ask(said(None, search()), said("Done."))
        assert stage.sent[1].get("tool_choice") == (None if offered else "none"), seconds
        now[0] = 1000.0
        stage.ask(said(None, search()), said("Done."), tools=[SEARCH, OWN])
        names = [tool["function"]["name"] for tool in stage.sent[1]["tools"]]
        assert names == (["web_search", "now"] if offered else ["now"])
        monkeypatch.setattr(stage.web, "search", plain)


def test_a_model_that_never_stops_gets_ten_rounds_with_tools(stage: Stage) -> None:
    got = stage.ask(said(None, search()))
    assert len(stage.sent) == 11
    assert [each.get("tool_choice") for each in stage.sent] == [None] * 10 + ["none"]
    assert blocks(got) == ["server_tool_use", "web_search_tool_result"] * 10
    assert got.json["stop_reason"] == "end_turn"


def test_each_round_has_what_is_left_of_the_tokens(stage: Stage) -> None:
    stage.ask(said(None, search()), said(None, search()), said("Done."), max_tokens=5)
    assert [each["max_tokens"] for each in stage.sent] == [5, 3, 1]


@rows(
    ("maximum", "budget", "output", "left"),
    [
        (None, None, 5, None),
        (100, None, None, 100),
        (100, None, 30, 70),
        (100, None, 100, 1),
        (100, None, 500, 1),
        (100, 60, 30, 70),
        (100, 60, 45, 61),
        (100, 60, 90, 61),
        (100, 200, 90, 100),
    ],
)
def test_tokens_of_a_further_round(maximum: Any, budget: Any, output: Any, left: Any) -> None:
    request = Request("m", (), max_tokens=maximum, thinking=Thinking(budget=budget))
    assert _remaining(request, None if output is None else Usage(input=7, output=output)) == left


def test_the_note_of_what_was_run() -> None:
    call = HostedCall("web_search", "")
    good, bad = HostedResult("found"), HostedResult("no", "unavailable")
    assert _summary([RanCall("", call, good), RanCall("", call, None)]) == "tools run by the gateway: 2 calls"
    assert _summary([RanCall("", call, good), RanCall("", call, bad)]).endswith(": 2 calls, 1 failed")


@rows(
    ("path", "more", "lost"),
    [
        (MESSAGES_PATH, {}, False),
        ("/v1beta/models/mine%2Fm:generateContent", {"generationConfig": {"candidateCount": 1}}, False),
        ("/v1beta/models/mine%2Fm:generateContent", {"generationConfig": {"candidateCount": 2}}, True),
    ],
)
def test_one_answer_where_the_gateway_runs_a_tool(stage: Stage, path: str, more: Any, lost: bool) -> None:
    if path != MESSAGES_PATH:
        more = {"contents": [{"parts": [{"text": "Hi"}]}], "tools": [{"googleSearch": {}}], **more}
    got = stage.ask(said(None, search()), said("Done."), path=path, **more)
    assert got.status == 200
    assert got.record is not None
    assert ("candidates" in [loss.feature for loss in got.record.losses]) is lost
    assert "n" not in stage.sent[0]


@rows(
    ("choice", "first", "second"),
    [
        (None, None, None),
        ({"type": "auto"}, "auto", "auto"),
        ({"type": "any"}, "required", "auto"),
        ({"type": "tool", "name": "web_search"}, "web_search", "auto"),
        ({"type": "tool", "name": "now"}, "now", "auto"),
    ],
)
def test_what_is_forced_is_forced_once(stage: Stage, choice: Any, first: Any, second: Any) -> None:
    given = {} if choice is None else {"tool_choice": choice}
    stage.ask(said(None, search()), said("Done."), tools=[SEARCH, OWN], **given)
    made = [each.get("tool_choice") for each in stage.sent]
    named = [each["function"]["name"] if type(each) is dict else each for each in made]
    assert named == [first, second]


def test_a_choice_of_no_tool_offers_none(stage: Stage) -> None:
    stage.ask(said("Done."), tools=[SEARCH, OWN], tool_choice={"type": "none"})
    assert [tool["function"]["name"] for tool in stage.sent[0]["tools"]] == ["now"]


@rows(
    ("allowed", "names", "later"),
    [
        ([{"type": "web_search"}], ["web_search"], ["web_search"]),
        ([{"type": "function", "name": "now"}], ["now"], ["now"]),
        (
            [{"type": "web_search"}, {"type": "function", "name": "now"}],
            ["web_search", "now"],
            ["web_search", "now"],
        ),
    ],
)
def test_only_allowed_tools_are_offered(stage: Stage, allowed: Any, names: Any, later: Any) -> None:
    own = {"type": "function", "name": "now", "parameters": {"type": "object"}}
    other = {"type": "function", "name": "other", "parameters": {"type": "object"}}
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    stage.ask(
        said(None, search()),
        said("Done."),
        path=RESPONSES_PATH,
        tools=[{"type": "web_search"}, own, other],
        tool_choice=choice,
    )
    first, *further = stage.sent
    assert sorted(_named(first)) == sorted(names)
    for each in further:
        assert each["tool_choice"] == "auto" or each["tool_choice"]["allowed_tools"]["mode"] == "auto"


def _named(sent: Any) -> list[str]:
    """What a request may call."""
    choice = sent["tool_choice"]
    if type(choice) is str:
        return [tool["function"]["name"] for tool in sent["tools"]]
    if choice["type"] == "function":
        return [choice["function"]["name"]]
    return [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]]


@rows(
    ("more", "headers", "runs"),
    [
        ({}, {}, True),
        ({}, {"x_wireglot_emulate": "off"}, False),
        ({"tools": []}, {}, False),
        ({"tools": [OWN]}, {}, False),
    ],
)
def test_when_the_gateway_runs_nothing(stage: Stage, more: Any, headers: Any, runs: bool) -> None:
    stage.offline.upstream.sent.clear()
    stage.offline.upstream.say(said("Done."))
    got = stage.offline.ask(MESSAGES_PATH, asked(**{"tools": [SEARCH], **more}), **headers)
    assert got.status in (200, 400)
    names = [tool["function"]["name"] for each in stage.sent for tool in each.get("tools", ())]
    assert ("web_search" in names) is runs


@rows(
    ("tables", "runs"),
    [
        ({}, True),
        ({"losses": "strict"}, False),
        ({"losses": "as-is"}, False),
        ({"providers": {"mine": {**CHATTING, "losses": "strict"}}}, False),
        ({"losses": "strict", "providers": {"mine": {**CHATTING, "losses": "warn"}}}, True),
    ],
)
def test_a_policy_may_forbid_that_the_gateway_runs_tools(tables: Any, runs: bool) -> None:
    with Offline(**{"providers": {"mine": CHATTING}, "search": WEB, **tables}) as offline:
        stage = Stage(offline)
        stage.ask(said(None, search()), said("Done."))
        assert bool(stage.web.queries) is runs


def test_calls_that_were_cut_off_are_not_run(stage: Stage) -> None:
    got = stage.ask(said("It is", search(), finish="length"))
    assert (blocks(got), got.json["stop_reason"]) == (["text"], "max_tokens")
    assert (stage.web.queries, len(stage.sent)) == ([], 1)


def test_a_client_without_a_way_back_gets_its_own_call_alone(stage: Stage) -> None:
    """Chat clients bring back no searches: with a call of their own, the model searches again afterwards."""
    own = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
    got = stage.ask(said(None, search(), ("now", {})), path=CHAT_PATH, tools=[own])
    (choice,) = got.json["choices"]
    assert [call["function"]["name"] for call in choice["message"]["tool_calls"]] == ["now"]
    assert choice["finish_reason"] == "tool_calls"
    assert stage.web.queries == []
    got = stage.ask(said(None, search(), ("now", {})), tools=[SEARCH, OWN])
    assert blocks(got) == ["server_tool_use", "web_search_tool_result", "tool_use"]
    assert (got.json["stop_reason"], len(stage.web.queries), len(stage.sent)) == ("tool_use", 1, 1)


def test_a_function_of_the_clients_own_keeps_its_name(stage: Stage) -> None:
    own = {**OWN, "name": "web_search"}
    searching = {"type": "web_search_20250305", "name": "web_search"}
    got = stage.ask(said(None, ("gateway_web_search", {"query": "x"})), said("Done."), tools=[own, searching])
    assert [tool["function"]["name"] for tool in stage.sent[0]["tools"]] == [
        "web_search",
        "gateway_web_search",
    ]
    assert [query.text for query in stage.web.queries] == ["x"]
    assert got.json["content"][0]["name"] == "web_search"


def test_a_round_that_fails_fails_the_answer(stage: Stage) -> None:
    got = stage.ask(
        said(None, search()), Said(400, {"error": {"message": "no", "type": "invalid_request_error"}})
    )
    assert got.status == 400
    assert got.record is not None
    assert (got.record.outcome, got.record.error_kind) == ("error", "invalid_request")


def test_two_tools_stand_where_the_client_declared_them(stage: Stage) -> None:
    stage.ask(said(None, search()), said("Done."), tools=[FETCH, OWN, SEARCH])
    names = [tool["function"]["name"] for tool in stage.sent[0]["tools"]]
    assert names == ["web_fetch", "now", "web_search"]
    assert stage.offline.records[-1].notes == ["tools run by the gateway: 1 calls"]
    assert [loss.path for loss in stage.offline.records[-1].losses] == ["$.tools[0]", "$.tools[2]"]
