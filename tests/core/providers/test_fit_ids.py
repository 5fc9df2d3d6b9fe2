"""Call ids toward an endpoint."""

import json
from typing import Any

from tests.core.providers.asks import features, fitted, pair, request, user
from tests.tiers import rows
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.registry import DialectName, dialect
from wireglot_core.ir.content import (
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.providers.fit.fitting import Fitted
from wireglot_core.providers.limits import Limits
from wireglot_core.providers.spec import limits_for
from wireglot_core.translate import translate_request


def ids(outcome: Fitted) -> list[tuple[str, str]]:
    calls = [part.id for m in outcome.request.messages for part in m.content if isinstance(part, ToolCall)]
    results = [
        part.call_id for m in outcome.request.messages for part in m.content if isinstance(part, ToolResult)
    ]
    return list(zip(calls, results, strict=True))


def test_an_illegal_id_is_rewritten_alike_for_call_and_result() -> None:
    """R-DB-02: Kimi's `functions.Bash:0` poisons an Anthropic turn."""
    outcome = fitted(
        request(user(Text("x")), *pair("functions.f:0"), *pair("toolu_1")), Limits(call_id=r"[A-Za-z0-9_-]+")
    )
    (first, first_result), (second, second_result) = ids(outcome)
    assert first == first_result != "functions.f:0"
    assert second == second_result == "toolu_1"
    assert features(outcome) == [("tool_call.id", "emulated")]


def test_short_ids_for_targets_that_take_nine_letters() -> None:
    """R-DB-02"""
    outcome = fitted(
        request(user(Text("x")), *pair("call_abcdefghijkl")),
        limits_for("openai-chat", "mistral-large", "mistral"),
    )
    ((call, result),) = ids(outcome)
    assert call == result
    assert len(call) == 9
    assert call.isalnum()


def test_kimi_gets_the_ids_it_was_trained_on() -> None:
    wanted = request(user(Text("x")), *pair("toolu_1", "Read"), *pair("toolu_2", "Bash"))
    outcome = fitted(wanted, Limits(call_ids="kimi"))
    assert ids(outcome) == [
        ("functions.Read:0", "functions.Read:0"),
        ("functions.Bash:1", "functions.Bash:1"),
    ]


def test_models_that_pair_by_order_get_no_ids() -> None:
    """C7"""
    outcome = fitted(request(user(Text("x")), *pair("toolu_1")), Limits(call_ids="positional"))
    ((call, result),) = ids(outcome)
    assert is_minted(call)
    assert call == result


@rows("target", ["anthropic", "openai-chat", "openai-responses"])
@rows("blank", [{"call_id": ""}, {"call_id": None}, {}], ids=["empty", "null", "absent"])
@rows("provider", ["", "openrouter"])
def test_a_call_that_came_without_an_id_goes_out_with_that_of_its_result(
    target: DialectName, blank: dict[str, Any], provider: str
) -> None:
    """In its own dialect, too, where the request is fitted to a provider."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number in range(2):
        turns += (
            {"type": "function_call", **blank, "name": "f", "arguments": "{}"},
            {"type": "function_call_output", **blank, "output": f"done {number}"},
        )
    body = {"model": "m", "input": turns, "tools": [{"type": "function", "name": "f", "parameters": {}}]}
    sent = translate_request(body, source="openai-responses", target=target, provider=provider or None)
    asked = dialect(target).parse_request(sent.value, Context())
    parts = [part for message in asked.messages for part in message.content]
    if provider or target != "openai-responses":
        calls = [part.id for part in parts if isinstance(part, ToolCall)]
        assert calls == [part.call_id for part in parts if isinstance(part, ToolResult)]
        assert len(set(calls)) == 2
        assert json.dumps(sent.value).count(calls[0]) == 2
    else:
        assert sent.value["input"] == [
            {key: value for key, value in turn.items() if value != ""} for turn in turns
        ]
