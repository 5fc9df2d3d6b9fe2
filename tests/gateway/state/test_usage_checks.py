"""Numbers of providers that do not add up: R-DE-13."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.state.ledger_kit import (
    Ledger,
    Notes,
    answered,
    begin,
    job_of,
    ledger_settings,
    target,
    usage_ledger,
)
from tests.tiers import rows
from tests.waiting import DEADLINE_SECONDS
from wireglot.gateway.observe.metrics import Metrics
from wireglot.gateway.state.ledger.usage_ledger import usage_checks
from wireglot_core.dialects.anthropic.outcome import parse_usage as anthropic
from wireglot_core.dialects.gemini.outcome import read_usage as gemini
from wireglot_core.dialects.openai_chat.outcome import parse_usage as chat
from wireglot_core.dialects.openai_responses.outcome import parse_usage as responses
from wireglot_core.dialects.usage_checks import ABSURD, CACHED, NEGATIVE, ODD, REASONING, TOTAL, WRITTEN
from wireglot_core.ir.content import Extra
from wireglot_core.ir.outcome import Usage

GOOD: list[tuple[Any, dict[str, Any]]] = [
    (anthropic, {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 900}),
    (
        anthropic,
        {
            "input_tokens": 5,
            "output_tokens": 7,
            "cache_creation_input_tokens": 30,
            "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
            "output_tokens_details": {"thinking_tokens": 7},
        },
    ),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7}),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, "cached_tokens": 5}),
    # xAI counts reasoning beside the completion.
    (
        chat,
        {
            "prompt_tokens": 5,
            "completion_tokens": 1,
            "total_tokens": 106,
            "completion_tokens_details": {"reasoning_tokens": 100},
        },
    ),
    (
        responses,
        {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": 12,
        },
    ),
    (
        gemini,
        {
            "promptTokenCount": 5,
            "candidatesTokenCount": 7,
            "thoughtsTokenCount": 100,
            "toolUsePromptTokenCount": 3,
            "cachedContentTokenCount": 5,
            "totalTokenCount": 115,
        },
    ),
    (gemini, {"promptTokenCount": 5, "totalTokenCount": 5}),
    (gemini, {"prompt_token_count": "5", "candidates_token_count": 7.0, "total_token_count": 12}),
]

BAD: list[tuple[Any, dict[str, Any], tuple[str, ...]]] = [
    (anthropic, {"input_tokens": -5, "output_tokens": 7}, (NEGATIVE,)),
    (anthropic, {"input_tokens": "many", "output_tokens": 7}, (ODD,)),
    (
        anthropic,
        {"input_tokens": 1, "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 8}},
        (REASONING,),
    ),
    (
        anthropic,
        {
            "input_tokens": 1,
            "output_tokens": 7,
            "cache_creation_input_tokens": 3,
            "cache_creation": {"ephemeral_5m_input_tokens": 4},
        },
        (WRITTEN,),
    ),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 13}, (TOTAL,)),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7.5, "total_tokens": 12}, (ODD,)),
    (chat, {"prompt_tokens": 5, "completion_tokens": 7, "cached_tokens": 6}, (CACHED,)),
    (
        chat,
        {
            "prompt_tokens": 5,
            "completion_tokens": 7,
            "total_tokens": 12,
            "completion_tokens_details": {"reasoning_tokens": 8},
        },
        (REASONING,),
    ),
    (responses, {"input_tokens": 5, "output_tokens": 7, "total_tokens": 11}, (TOTAL,)),
    (
        responses,
        {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 6}, "output_tokens": 7},
        (CACHED,),
    ),
    (
        responses,
        {
            "input_tokens": 5,
            "output_tokens": -7,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 0,
        },
        (NEGATIVE,),
    ),
    (gemini, {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 11}, (TOTAL,)),
    (
        gemini,
        {"promptTokenCount": 5, "cachedContentTokenCount": 6, "totalTokenCount": 5},
        (CACHED,),
    ),
    (gemini, {"promptTokenCount": 10**30, "totalTokenCount": 1}, (ABSURD, TOTAL)),
    (gemini, {"prompt_token_count": 5, "total_token_count": 6}, (TOTAL,)),
]


@rows(("read", "reported"), GOOD)
def test_an_account_that_adds_up_is_not_flagged(read: Any, reported: dict[str, Any]) -> None:
    assert usage_checks(read(reported)) == ()


@rows(("read", "reported", "wrong"), BAD)
def test_an_account_that_does_not_add_up_is_flagged(
    read: Any, reported: dict[str, Any], wrong: tuple[str, ...]
) -> None:
    assert usage_checks(read(reported)) == wrong


@pytest.mark.parametrize("read", [anthropic, chat, responses, gemini])
def test_no_number_of_the_account_is_ever_negative(read: Any) -> None:
    names = [
        "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
        "prompt_tokens", "completion_tokens", "cached_tokens", "total_tokens", "promptTokenCount",
        "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount",
    ]  # fmt: skip
    for value in (-1, -(10**20), -0.5):
        usage = read(dict.fromkeys(names, value))
        counts = [getattr(usage, name) for name in usage.__struct_fields__ if name != "raw"]
        assert all(count is None or count >= 0 for count in counts)


def test_numbers_of_a_dialect_that_nobody_knows_any_more_are_not_checked() -> None:
    assert usage_checks(Usage(raw=Extra("gone", {"input_tokens": -1}))) == ()


def test_numbers_of_our_own_making_are_not_a_providers() -> None:
    assert usage_checks(None) == usage_checks(Usage(input=1, output=2)) == ()


def test_a_flaw_is_in_the_row_in_the_metrics_and_once_an_hour_in_the_log(tmp_path: Path) -> None:
    async def work() -> None:
        settings, ledger, notes, metrics = ledger_settings(tmp_path), Ledger(), Notes(), Metrics()
        kept = usage_ledger(ledger, settings, notes=notes)
        kept.publish(metrics)
        await kept.start()
        odd = chat({"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 99})
        for number in range(4):
            job = job_of(number, settings)
            begin(kept, job, target(settings))
            answered(job, usage=odd)
            if number == 3:
                job.record.usage_source = "partial"  # half an account need not add up
            kept.finish(job.record)
        await kept.flush(DEADLINE_SECONDS)
        assert [row.flags for row in ledger.rows.values()] == [(TOTAL,)] * 3 + [()]
        assert notes == [("warn", "odd usage", {"provider": "mine", "flaw": TOTAL})]
        text = f'wireglot_usage_flaws_total{{provider="mine",flaw="{TOTAL}"}} 3'
        assert text in metrics.render().decode()
        await kept.close()

    asyncio.run(work())
