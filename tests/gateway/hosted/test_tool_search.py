"""A search for tools, run by the gateway: deferred tools reach the model once a search has named them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.hosted.hosted_kit import DIALECTS, HostedStage
from tests.gateway.hosted.rounds_kit import Script
from wireglot.gateway.hosted import ranking
from wireglot.gateway.hosted.ranking import MAX_HITS, rank_by_words
from wireglot.testing.scripted_upstream import Recorded
from wireglot_core.ir.request import Tool
from wireglot_core.wire.json import encode_text

REGEX = "tool_search_tool_regex"
BM25 = "tool_search_tool_bm25"
FUNCTIONS = {REGEX: ("pattern", "(?i)^get_WEATHER$"), BM25: ("query", "forecast of the weather")}
NAMES = ("get_weather", "send_email", "list_orders")
_DESCRIBED = {
    "now": ("What time it is.", {}),
    "get_weather": ("The forecast for a city.", {"city": "Name of the city."}),
    "send_email": ("Sends a message.", {"recipient": "Address of the recipient."}),
    "list_orders": ("Orders of a customer.", {"customer": "Number of the customer."}),
}


def _schema(name: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": said} for key, said in _DESCRIBED[name][1].items()}
    return {"type": "object", "properties": properties}


def _claude_tools(function: str = REGEX) -> list[dict[str, Any]]:
    own = [
        {
            "name": name,
            "description": said,
            "input_schema": _schema(name),
            **({"defer_loading": True} if name in NAMES else {}),
        }
        for name, (said, _) in _DESCRIBED.items()
    ]
    return [{"type": f"{function}_20251119", "name": function}, *own]


def _responses_tools(**search: Any) -> list[dict[str, Any]]:
    own = [
        {
            "type": "function",
            "name": name,
            "description": said,
            "parameters": _schema(name),
            "strict": False,
            **({"defer_loading": True} if name in NAMES else {}),
        }
        for name, (said, _) in _DESCRIBED.items()
    ]
    return [{"type": "tool_search", **search}, *own]


def _sent(request: Recorded) -> list[str]:
    """The names of the tools that an upstream of any dialect was sent."""
    names = []
    for tool in request.json.get("tools", ()):
        for each in tool.get("functionDeclarations", (tool,)):
            names.append(each.get("name") or each["function"]["name"])
    return names


SCRIPT = Script()


@pytest.fixture(scope="module")
def running() -> Iterator[HostedStage]:
    with HostedStage(decide=SCRIPT.decide) as stage:
        yield stage


@pytest.fixture
def stage(running: HostedStage) -> HostedStage:
    SCRIPT.rounds = []
    return running.reset()


def _ask_claude(stage: HostedStage, streamed: bool, **asked: Any) -> Any:
    asked = {"model": "openai-chat-up/m1", "max_tokens": 1000, **asked}
    if not streamed:
        return stage.claude.messages.create(**asked)
    with stage.claude.messages.stream(**asked) as stream:
        return stream.get_final_message()


def _ask_responses(stage: HostedStage, streamed: bool, **asked: Any) -> Any:
    asked = {"model": "openai-chat-up/m1", "store": False, **asked}
    if not streamed:
        return stage.gpt.responses.create(**asked)
    with stage.gpt.responses.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        assert kinds.count("response.created") == 1
        return stream.get_final_response()


both = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.mark.sampled(each=6)
@both
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("upstream", DIALECTS)
def test_claude_sees_the_search_and_the_model_only_what_it_found(
    stage: HostedStage, upstream: str, function: str, streamed: bool
) -> None:
    argument, value = FUNCTIONS[function]
    message = _ask_claude(
        stage,
        streamed,
        model=f"{upstream}-up/m1",
        messages=[
            {
                "role": "user",
                "content": f"[[demo:tool {function} {encode_text({argument: value})}]] What is the weather?",
            }
        ],
        tools=_claude_tools(function),
    )
    call, result = (block for block in message.content if block.type != "text")
    assert (call.type, call.name, call.input) == ("server_tool_use", function, {argument: value})
    assert (result.type, result.tool_use_id) == ("tool_search_tool_result", call.id)
    assert result.content.type == "tool_search_tool_search_result"
    assert [found.tool_name for found in result.content.tool_references] == ["get_weather"]
    assert message.stop_reason == "end_turn"
    counted = message.usage.server_tool_use
    assert counted is None or counted.web_search_requests == 0
    first, second = stage.upstream.requests
    assert _sent(first) == [function, "now"]
    assert _sent(second) == [function, "now", "get_weather"]


@both
@pytest.mark.parametrize("upstream", DIALECTS)
def test_responses_shows_the_search_as_two_items(stage: HostedStage, upstream: str, streamed: bool) -> None:
    response = _ask_responses(
        stage,
        streamed,
        model=f"{upstream}-up/m1",
        input='[[demo:tool tool_search {"query": "forecast"}]] What is the weather?',
        tools=_responses_tools(),
    )
    call, output = (item for item in response.output if item.type != "message")
    assert (call.type, call.execution, call.status) == ("tool_search_call", "server", "completed")
    assert call.arguments == {"query": "forecast"}
    assert (output.type, output.execution) == ("tool_search_output", "server")
    (found,) = output.tools
    assert (found.type, found.name, found.parameters) == ("function", "get_weather", _schema("get_weather"))
    assert response.tool_usage is None or response.tool_usage.web_search.num_requests == 0
    first, second = stage.upstream.requests
    assert _sent(first) == ["tool_search", "now"]
    assert _sent(second) == ["tool_search", "now", "get_weather"]


@both
def test_a_found_tool_is_called_and_stays_loaded_in_later_turns(stage: HostedStage, streamed: bool) -> None:
    SCRIPT.rounds = [
        [(REGEX, {"pattern": "weather"})],
        [("get_weather", {"city": "Paris"})],
        "It is sunny.",
    ]
    asked = {"role": "user", "content": "What is the weather in Paris?"}
    first = _ask_claude(stage, streamed, messages=[asked], tools=_claude_tools())
    *_, call = first.content
    assert (call.type, call.name, call.input) == ("tool_use", "get_weather", {"city": "Paris"})
    assert first.stop_reason == "tool_use"
    brought = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}],
    }
    spoken = {"role": "assistant", "content": [block.to_dict() for block in first.content]}
    second = _ask_claude(stage, streamed, messages=[asked, spoken, brought], tools=_claude_tools())
    assert [block.type for block in second.content] == ["text"]
    last = stage.upstream.requests[-1]
    assert _sent(last) == [REGEX, "now", "get_weather"]
    roles = [message["role"] for message in last.json["messages"]]
    assert roles == ["user", "assistant", "tool", "tool"]
    searched, found = last.json["messages"][1:3]
    assert searched["tool_calls"][0]["function"]["name"] == REGEX
    assert found["tool_call_id"] == searched["tool_calls"][0]["id"]
    assert "get_weather" in found["content"]


@both
def test_items_of_an_earlier_turn_keep_a_tool_loaded(stage: HostedStage, streamed: bool) -> None:
    SCRIPT.rounds = [
        [("tool_search", {"query": "forecast"})],
        [("get_weather", {"city": "Oslo"})],
        "It is sunny.",
    ]
    asked = {"role": "user", "content": "What is the weather in Oslo?"}
    first = _ask_responses(stage, streamed, input=[asked], tools=_responses_tools())
    *_, call = first.output
    assert (call.type, call.name) == ("function_call", "get_weather")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    items = [item.to_dict() for item in first.output]
    second = _ask_responses(stage, streamed, input=[asked, *items, result], tools=_responses_tools())
    assert second.output_text == "It is sunny."
    last = stage.upstream.requests[-1]
    assert _sent(last) == ["tool_search", "now", "get_weather"]
    roles = [message["role"] for message in last.json["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]


def test_what_others_found_is_loaded_too(stage: HostedStage) -> None:
    """References in results of the client's own search, and results of a provider's."""
    SCRIPT.rounds = ["Done."]
    references = [{"type": "tool_reference", "tool_name": "send_email"}]
    found = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{**references[0], "tool_name": NAMES[2]}],
    }
    history = [
        {"role": "user", "content": "Write to them."},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "server_tool_use",
                    "id": "srvtoolu_1",
                    "name": REGEX,
                    "input": {"pattern": "orders"},
                },
                {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found},
                {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": references}],
        },
    ]
    _ask_claude(stage, False, messages=history, tools=_claude_tools())
    assert _sent(stage.upstream.requests[0]) == [REGEX, "now", "send_email", "list_orders"]


def test_a_tool_that_is_forced_is_loaded(stage: HostedStage) -> None:
    SCRIPT.rounds = [[("send_email", {"recipient": "a@example.com"})]]
    choice = {"type": "tool", "name": "send_email"}
    asked = [{"role": "user", "content": "Write."}]
    message = _ask_claude(stage, False, messages=asked, tools=_claude_tools(), tool_choice=choice)
    assert message.content[0].name == "send_email"
    assert _sent(stage.upstream.requests[0]) == [REGEX, "now", "send_email"]


@both
@pytest.mark.parametrize(
    ("pattern", "code", "said"),
    [
        ("", "invalid_tool_input", "pattern is missing"),
        ("(", "invalid_tool_input", "missing ), unterminated subpattern"),
        ("a" * 201, "invalid_tool_input", "200 characters"),
        ("(([a-z ]+)+)+!", "execution_time_exceeded", "takes too long"),
    ],
    ids=["missing", "malformed", "long", "catastrophic"],
)
def test_errors_have_the_form_of_the_tool(
    stage: HostedStage, monkeypatch: pytest.MonkeyPatch, pattern: str, code: str, said: str, streamed: bool
) -> None:
    monkeypatch.setattr(ranking, "_PATTERN_SECONDS", 0.5 if code == "execution_time_exceeded" else 30.0)
    SCRIPT.rounds = [[(REGEX, {"pattern": pattern})], "I found nothing."]
    asked = [{"role": "user", "content": "Find a tool."}]
    message = _ask_claude(stage, streamed, messages=asked, tools=_claude_tools())
    _, result, text = message.content
    assert (result.content.type, result.content.error_code) == ("tool_search_tool_result_error", code)
    assert said in result.content.error_message
    assert text.text == "I found nothing."
    assert message.stop_reason == "end_turn"
    given = stage.upstream.requests[1].json["messages"][-1]
    assert (given["role"], said in given["content"]) == ("tool", True)


def test_a_failed_search_of_responses_is_incomplete(stage: HostedStage) -> None:
    SCRIPT.rounds = [[("tool_search", {})], "I found nothing."]
    response = _ask_responses(stage, False, input="Find a tool.", tools=_responses_tools())
    call, output, _ = response.output
    assert (call.status, output.status, output.tools) == ("incomplete", "incomplete", [])


def test_a_search_that_the_client_runs_stays_its_own(stage: HostedStage) -> None:
    SCRIPT.rounds = [[("tool_search", {"goal": "weather"})]]
    schema = {"type": "object", "properties": {"goal": {"type": "string"}}}
    search = {"execution": "client", "description": "Finds tools.", "parameters": schema}
    response = _ask_responses(stage, False, input="Find a tool.", tools=_responses_tools(**search))
    (call,) = response.output
    assert (call.type, call.execution, call.arguments) == ("tool_search_call", "client", {"goal": "weather"})
    assert len(stage.upstream.requests) == 1


def test_a_client_can_refuse_that_the_gateway_searches(stage: HostedStage) -> None:
    SCRIPT.rounds = ["Hello."]
    asked = [{"role": "user", "content": "Hello"}]
    headers = {"x-wireglot-emulate": "off"}
    _ask_claude(stage, False, messages=asked, tools=_claude_tools(), extra_headers=headers)
    assert _sent(stage.upstream.requests[0]) == ["now", *NAMES]


def test_no_search_is_offered_where_nothing_is_deferred(stage: HostedStage) -> None:
    SCRIPT.rounds = ["Hello."]
    tools = [tool for tool in _claude_tools() if "defer_loading" not in tool]
    message = _ask_claude(stage, False, messages=[{"role": "user", "content": "Hello"}], tools=tools)
    assert message.content[0].text == "Hello."
    assert _sent(stage.upstream.requests[0]) == ["now"]


def test_words_in_names_descriptions_and_arguments_rank_tools() -> None:
    tools = [
        Tool("createIssue", "Opens a ticket.", {"type": "object", "properties": {"repository": {}}}),
        Tool("close_issue", "Closes a ticket."),
        Tool("weather", "Forecast.", {"type": "object", "properties": {"q": {"description": "A city."}}}),
        Tool("nothing"),
    ]
    assert rank_by_words("create an ISSUE", tools) == [0, 1]
    assert rank_by_words("repository", tools) == [0]
    assert rank_by_words("cities, a city", tools) == [2]
    assert rank_by_words("unrelated", tools) == []
    assert rank_by_words("ticket", []) == []


@pytest.mark.parametrize("function", [REGEX, BM25])
def test_a_search_finds_at_most_five_tools(stage: HostedStage, function: str) -> None:
    argument = FUNCTIONS[function][0]
    SCRIPT.rounds = [[(function, {argument: "report"})], "Done."]
    many = [
        {"name": f"report_{number}", "input_schema": {"type": "object"}, "defer_loading": True}
        for number in range(20)
    ]
    asked = [{"role": "user", "content": "Report."}]
    message = _ask_claude(stage, False, messages=asked, tools=[*_claude_tools(function), *many])
    found = [each.tool_name for each in message.content[1].content.tool_references]
    assert found == [f"report_{number}" for number in range(MAX_HITS)]
    assert _sent(stage.upstream.requests[1]) == [function, "now", *found]
