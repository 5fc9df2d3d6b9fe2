"""Results whose calls are missing get one back, and results without an id get that of the call they answer."""

from __future__ import annotations

from wireglot.gateway.request.results import paired, with_calls
from wireglot_core.ir.content import Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request


def user(*parts: Part) -> Message:
    return Message("user", parts)


def model(*parts: Part) -> Message:
    return Message("assistant", parts)


def result(id: str, name: str | None = None) -> ToolResult:
    return ToolResult(id, (Text("ok"),), name=name or "")


def test_a_result_without_its_call_gets_one_before_it_and_that_is_a_loss() -> None:
    asked = Request("m", (user(Text("go")), user(result("c1", "f"), result("c2"))))
    request, losses = with_calls(asked)
    assert request.messages == (
        asked.messages[0],
        model(ToolCall("c1", "f", "{}"), ToolCall("c2", "tool", "{}")),
        asked.messages[1],
    )
    assert [(loss.path, loss.feature, loss.action) for loss in losses] == [
        ("$.messages[1]", "tool_result.pairing", "invented")
    ]


def test_a_call_is_put_back_once_however_often_its_result_comes() -> None:
    asked = Request("m", (user(result("c1", "f")), user(result("c1", "f"))))
    request, losses = with_calls(asked)
    assert [message.role for message in request.messages] == ["assistant", "user", "user"]
    assert len(losses) == 1


def test_a_request_whose_results_have_their_calls_is_left_alone() -> None:
    asked = Request("m", (model(ToolCall("c1", "f", "{}")), user(result("c1", "f"))))
    assert with_calls(asked) == (asked, ())
    assert with_calls(asked)[0] is asked


def test_a_result_without_an_id_answers_the_first_waiting_call_of_its_name() -> None:
    history = [
        model(ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "{}"), ToolCall("c3", "f", "{}")),
        user(result("c1", "f")),
    ]
    (message,) = paired(history, (user(Text("so"), result("", "f"), result("", "g"), result("", "h")),))
    assert [part.call_id for part in message.content if type(part) is ToolResult] == ["c3", "c2", ""]
    assert message.content[0] == Text("so")


def test_a_result_that_names_its_call_keeps_it_and_no_other_answers_it() -> None:
    history = [model(ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{}"))]
    (message,) = paired(history, (user(result("c1", "f"), result("", "f"), result("", "f")),))
    assert [part.call_id for part in message.content if type(part) is ToolResult] == ["c1", "c2", ""]


def test_where_no_call_waits_nothing_is_paired() -> None:
    messages = (user(result("", "f")),)
    assert paired([model(ToolCall("c1", "f", "{}")), user(result("c1", "f"))], messages) is messages
    assert paired([], messages) is messages
