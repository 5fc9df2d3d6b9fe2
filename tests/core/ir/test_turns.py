"""Turns: neighbours merge, and every call is answered once, behind its turn, in call order."""

from wireglot_core.ir.content import Extra, Message, Part, Text, ToolCall, ToolResult
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request
from wireglot_core.ir.trail import Trail
from wireglot_core.ir.turns import INTERRUPTED, is_paired, last_words, merge_neighbours, repair_pairs


def user(*parts: Part) -> Message:
    return Message("user", parts)


def assistant(*parts: Part) -> Message:
    return Message("assistant", parts)


def call(identifier: str, name: str = "f") -> ToolCall:
    return ToolCall(identifier, name, "{}")


def result(identifier: str, text: str = "ok") -> ToolResult:
    return ToolResult(identifier, (Text(text),))


def repair(*messages: Message) -> tuple[tuple[Message, ...], list[Loss]]:
    losses: list[Loss] = []
    trail = Trail(Request("m", messages))
    return repair_pairs(messages, losses, trail, lambda call_id, ordinal: f"{call_id}-{ordinal}"), losses


def test_a_sound_conversation_is_left_alone() -> None:
    messages = (
        user(Text("go")),
        assistant(call("a"), call("b")),
        user(result("a"), result("b"), Text("and?")),
    )
    assert is_paired(messages)
    repaired, losses = repair(*messages)
    assert repaired == messages
    assert losses == []


def test_open_calls_of_the_last_turn_stay_open() -> None:
    messages = (user(Text("go")), assistant(call("a")))
    repaired, losses = repair(*messages)
    assert repaired == messages
    assert losses == []


def test_a_call_without_a_result_gets_an_error_result() -> None:
    """R-DB-05"""
    repaired, losses = repair(user(Text("go")), assistant(call("a")), user(Text("never mind")))
    assert repaired[2] == user(ToolResult("a", (Text(INTERRUPTED),), is_error=True), Text("never mind"))
    assert [loss.action for loss in losses] == ["invented"]


def test_one_missing_of_two_results_is_filled_in_its_place() -> None:
    """R-DB-04, PAINS 15: Gemini wants as many responses as calls, in call order."""
    repaired, _ = repair(user(Text("go")), assistant(call("a"), call("b")), user(result("b")))
    answers = [part.call_id for part in repaired[2].content if isinstance(part, ToolResult)]
    assert answers == ["a", "b"]


def test_a_result_without_a_call_is_dropped_aloud() -> None:
    """R-DB-05"""
    repaired, losses = repair(user(Text("go")), assistant(Text("hm")), user(result("ghost"), Text("so?")))
    assert repaired == (user(Text("go")), assistant(Text("hm")), user(Text("so?")))
    assert losses == [
        Loss("$.messages[2].content[0]", "tool_result.pairing", "dropped", "a result without its call"),
    ]


def test_a_second_result_for_one_call_corrects_the_first() -> None:
    """[X24] Later ones correct earlier ones."""
    repaired, losses = repair(
        user(Text("go")), assistant(call("a")), user(result("a", "first"), result("a", "second"))
    )
    assert repaired[2] == user(result("a", "second"))
    assert [loss.detail for loss in losses] == ["replaced by a later result for the same call"]


def test_a_result_that_comes_too_late_moves_behind_its_call() -> None:
    repaired, losses = repair(
        user(Text("go")), assistant(call("a")), user(Text("wait")), assistant(Text("ok")), user(result("a"))
    )
    assert repaired[2] == user(result("a"), Text("wait"))
    assert is_paired(repaired)
    assert [loss.feature for loss in losses] == ["tool_result.pairing", "content.empty"]


def test_results_before_text_and_in_call_order_without_a_loss() -> None:
    """Order inside one user turn carries no meaning: putting it right is not a loss."""
    repaired, losses = repair(
        user(Text("go")), assistant(call("a"), call("b")), user(Text("here"), result("b"), result("a"))
    )
    assert repaired[2] == user(result("a"), result("b"), Text("here"))
    assert losses == []


def test_ids_that_recur_every_turn_become_unique_with_their_results() -> None:
    """C46, R-A-12: Kimi's ids are unique only within a turn."""
    repaired, losses = repair(
        user(Text("go")),
        assistant(call("f:0")),
        user(result("f:0", "one")),
        assistant(call("f:0")),
        user(result("f:0", "two")),
    )
    first, second = repaired[1].content[0], repaired[3].content[0]
    assert isinstance(first, ToolCall)
    assert isinstance(second, ToolCall)
    assert first.id == "f:0"
    assert second.id == "f:0-1"
    assert repaired[4] == user(ToolResult("f:0-1", (Text("two"),)))
    assert [loss.feature for loss in losses] == ["tool_call.id"]


def test_a_system_message_between_call_and_result_does_not_part_them() -> None:
    repaired, _ = repair(
        user(Text("go")), assistant(call("a")), Message("system", (Text("be brief"),)), user(result("a"))
    )
    assert [message.role for message in repaired] == ["user", "assistant", "user", "system"]


def test_the_repair_is_a_fixed_point() -> None:
    broken = (
        user(Text("go"), result("x")),
        assistant(call("a"), call("a")),
        user(Text("t")),
        assistant(call("b")),
        user(result("b"), result("b")),
    )
    once, _ = repair(*broken)
    twice, losses = repair(*once)
    assert twice == once
    assert losses == []


def test_neighbours_of_one_role_merge_and_what_only_their_dialect_knew_is_declared() -> None:
    """R-DD-17"""
    losses: list[Loss] = []
    messages = (user(Text("a")), Message("user", (Text("b"),), extra=Extra("openai-chat", {"odd": 1})))
    merged = merge_neighbours(messages, "gemini", losses, Trail(Request("m", messages)))
    assert merged == (user(Text("a"), Text("b")),)
    assert [(loss.path, loss.feature) for loss in losses] == [("$.messages[1].odd", "unknown_field")]


def test_system_messages_never_merge() -> None:
    messages = (Message("system", (Text("a"),)), Message("system", (Text("b"),)))
    assert merge_neighbours(messages, "gemini", [], Trail(Request("m", messages))) is messages


def test_a_lost_result_of_a_repeated_id_does_not_take_the_later_ones() -> None:
    repaired, _ = repair(
        user(Text("go")),
        assistant(call("f:0")),
        user(Text("on")),
        assistant(call("f:0")),
        user(result("f:0")),
    )
    first, second = repaired[2].content[0], repaired[4].content[0]
    assert isinstance(first, ToolResult)
    assert isinstance(second, ToolResult)
    assert first.is_error
    assert second.content == (Text("ok"),)


def test_the_last_words_of_the_user_are_a_question():
    """A search engine is asked them: words only, of the last turn that has any, and not too many."""
    assistant = Message("assistant", (Text("no"),))
    turns = (Message("user", (Text("first"),)), Message("user", (Text(" a "), ToolResult("1"), Text("b "))))
    assert last_words((*turns, assistant)) == "a  b"
    assert last_words((*turns, Message("user", (ToolResult("1"),)), Message("user", (Text(" "),)))) == "a  b"
    assert last_words((assistant, Message("system", (Text("be good"),)))) == ""
    assert last_words((Message("user", (Text("x" * 1001),)),)) == "x" * 1000
