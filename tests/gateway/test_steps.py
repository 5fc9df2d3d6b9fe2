"""Which steps a request goes through: only those that its kind can need, in the order of the list."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from wireglot.dialects.registry import surface
from wireglot.gateway.steps import Pipeline, RequestKind, StepParts

BARE = ["Admission", "Routing", "Queue", "Counted", "Accounted"]


def chain(dialect: str, operation: str = "generate", **more: bool) -> list[str]:
    facts = dict.fromkeys(("has_key", "has_timeout", "is_idempotent", "is_conversation", "is_own"), False)
    kind = RequestKind(surface(dialect), operation, **{**facts, **more})
    part = SimpleNamespace(
        idempotency=0, compaction=0, background=0, quotas=0, continuing=0, chain=0, reasoning=0, ledger=0
    )
    parts: Any = SimpleNamespace(state=part, router=0, gates=0, counting=0, relay=None)
    answerer: Any = Pipeline(parts).chain(kind)
    names = []
    while answerer is not None:
        names.append(type(answerer).__name__)
        answerer = answerer._inner
    return names


@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "gemini", "openai-responses"])
def test_a_count_needs_no_reasoning_and_no_summary(dialect: str) -> None:
    stored = ["HistoryLoader", "CompactionUnsealer"] if dialect == "openai-responses" else []
    assert chain(dialect, "count") == [*BARE[:2], *stored, *BARE[2:]]


def test_a_plain_request() -> None:
    assert chain("openai-chat") == [*BARE[:2], "ReasoningRecall", *BARE[2:]]


def test_whatever_a_request_brings_adds_its_step() -> None:
    assert chain("openai-chat", is_idempotent=True)[0] == "IdempotentReplay"
    assert chain("openai-chat", has_timeout=True)[-1] == "TimeLimit"
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
        *BARE[2:],
    ]
    assert chain("openai-responses", "compact")[0] == "Summarizer"


def test_a_request_of_the_gateway_itself_neither_waits_nor_is_admitted_again() -> None:
    assert chain("openai-responses", is_own=True) == ["Routing", "Accounted"]
    assert chain("openai-chat", is_own=True, has_key=True, has_timeout=True) == [
        "Routing",
        "QuotaReservation",
        "Accounted",
        "TimeLimit",
    ]


def test_a_chain_is_built_once() -> None:
    own = {"has_key": False, "has_timeout": False, "is_idempotent": False, "is_conversation": False}
    kind = RequestKind(surface("openai-chat"), "generate", **own, is_own=True)
    parts: Any = SimpleNamespace(state=SimpleNamespace(ledger=0), router=0, relay=None)
    pipeline = Pipeline(parts)
    assert pipeline.chain(kind) is pipeline.chain(kind)
    assert set(StepParts.__struct_fields__) == {"state", "router", "gates", "counting", "relay"}
