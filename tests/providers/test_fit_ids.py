"""Call ids toward an endpoint."""

from tests.providers.asks import features, fitted, pair, request, user
from wireglot.dialects.base import is_minted
from wireglot.ir.content import (
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.providers.fit.fitted import Fitted
from wireglot.providers.limits import Limits
from wireglot.providers.spec import limits_for


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
