"""Which steps a request goes through: only those that its kind can need, in the order of the list."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.steps import Pipeline, RequestKind, StepParts, StepSequence, steps_of
from wireglot_core.dialects.registry import surface

BARE = ["Admission", "Routing", "Queue", "Account", "HostedTools"]


def chain(dialect: str, operation: str = "generate", **more: bool) -> list[str]:
    facts = dict.fromkeys(("has_key", "has_timeout", "is_idempotent", "is_conversation", "is_own"), False)
    kind = RequestKind(surface(dialect), operation, **{**facts, **more})
    return [step.name for step in steps_of(kind)]


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "gemini", "openai-responses"])
def test_a_count_needs_no_reasoning_and_no_summary(dialect: str) -> None:
    stored = ["HistoryLoader", "CompactionUnsealer"] if dialect == "openai-responses" else []
    hosted = ["HostedHistory"] if dialect in ("anthropic", "openai-responses") else []
    counted = ["HostedToolCount"] if hosted else []
    assert chain(dialect, "count") == [*BARE[:2], *stored, *hosted, *counted, "Queue"]


@pytest.mark.parametrize("dialect", ["openai-chat", "gemini"])
def test_a_request_for_embeddings_needs_nothing_of_conversations(dialect: str) -> None:
    assert chain(dialect, "embed") == ["Admission", "EmbeddingRouting", "Queue", "Account"]
    everything = chain(
        dialect, "embed", has_key=True, has_timeout=True, is_idempotent=True, is_conversation=True
    )
    assert everything == [
        "IdempotentReplay", "Admission", "EmbeddingRouting", "QuotaReservation", "QuotaGrowth", "Queue",
        "Account", "TimeLimit",
    ]  # fmt: skip


def test_a_plain_request() -> None:
    assert chain("openai-chat") == [*BARE[:2], "ReasoningRecall", *BARE[2:]]


def test_whatever_a_request_brings_adds_its_step() -> None:
    assert chain("openai-chat", is_idempotent=True)[0] == "IdempotentReplay"
    assert chain("openai-chat", has_timeout=True)[-2:] == ["TimeLimit", "HostedTools"]
    keyed = chain("openai-chat", has_key=True)
    assert keyed == [
        *BARE[:2],
        "QuotaReservation",
        "ReasoningRecall",
        "QuotaGrowth",
        *BARE[2:],
    ]
    assert chain("openai-chat", is_conversation=True)[2] == "ConversationLoader"
    assert "ConversationLoader" not in chain("openai-responses", is_conversation=True)
    assert "IdempotentReplay" not in chain("anthropic", "count", is_idempotent=True)


def test_stored_responses() -> None:
    assert chain("openai-responses") == [
        "Summarizer",
        "BackgroundStart",
        *BARE[:2],
        "HistoryLoader",
        "CompactionUnsealer",
        "ReasoningRecall",
        "HostedHistory",
        "Queue",
        "CountLearning",
        "Account",
        "HostedTools",
    ]
    assert chain("openai-responses", "compact")[0] == "Summarizer"


def test_a_request_of_the_gateway_itself_neither_waits_nor_is_admitted_again() -> None:
    assert chain("openai-responses", is_own=True) == ["Routing", "Account"]
    assert chain("openai-chat", is_own=True, has_key=True, has_timeout=True) == [
        "Routing",
        "QuotaReservation",
        "Account",
        "TimeLimit",
    ]


def test_a_chain_is_built_once() -> None:
    own = {"has_key": False, "has_timeout": False, "is_idempotent": False, "is_conversation": False}
    kind = RequestKind(surface("openai-chat"), "generate", **own, is_own=True)
    ledger = SimpleNamespace(open_account=None)
    parts: Any = SimpleNamespace(state=SimpleNamespace(ledger=ledger), router=0, relay=None)
    pipeline = Pipeline(parts)
    job = SimpleNamespace(
        surface=kind.surface,
        asked=SimpleNamespace(operation="generate"),
        caller=SimpleNamespace(key=None),
        timeout=None,
        head=SimpleNamespace(headers={}),
        conversation="",
    )
    exchange: Any = SimpleNamespace(job=job, record=SimpleNamespace(within="req_1"))
    assert pipeline.of(exchange) is pipeline.of(exchange)
    assert set(StepParts.__struct_fields__) == {
        "state", "router", "gates", "counting", "relay", "embedding", "runners", "ask_round",
        "count_hosted_call",
    }  # fmt: skip


@pytest.mark.parametrize("problem", [None, RuntimeError("it broke")])
def test_steps_are_taken_in_their_order_and_notified_how_the_answer_ended(problem: Exception | None) -> None:
    taken: list[Any] = []

    async def waits() -> None:
        await asyncio.sleep(0)
        taken.append("waited")

    class Relay:
        async def answer(self, exchange: Any) -> None:
            taken.append("answered")
            if problem is not None:
                raise problem

    def first(exchange: Any) -> None:
        taken.append("first")

    exchange: Any = SimpleNamespace(leave=taken.append, record=SimpleNamespace(waits=""))
    chain = StepSequence([first, lambda exchange: waits()], Relay())
    if problem is None:
        asyncio.run(chain.answer(exchange))
    else:
        with pytest.raises(RuntimeError):
            asyncio.run(chain.answer(exchange))
    assert taken == ["first", "waited", "answered", problem]


def test_a_step_that_fails_at_the_end_keeps_no_other_from_its_end() -> None:
    """Or the budget that one of them reserved is never released."""
    problem, ended = RuntimeError("no"), list[Any]()

    def fails(given: Any) -> None:
        raise problem

    exchange: Any = SimpleNamespace(gates=[], at_end=[ended.append, fails, ended.append])
    with pytest.raises(RuntimeError):
        Exchange.leave(exchange, None)
    assert ended == [None, problem]
    assert not exchange.at_end


def test_what_a_step_refuses_no_later_one_sees() -> None:
    refusal, ended = RuntimeError("no"), list[Any]()

    def refuses(exchange: Any) -> None:
        raise refusal

    relay: Any = None
    exchange: Any = SimpleNamespace(leave=ended.append, record=SimpleNamespace(waits=""))
    with pytest.raises(RuntimeError):
        asyncio.run(StepSequence([refuses], relay).answer(exchange))
    assert ended == [refusal]
