"""The rooms whose tests are held against deliberate defects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"

LEFT_OUT = (
    "tests/laws/test_matrix.py",
    "tests/laws/test_garbage.py",
    "tests/gateway/state/test_long_conversations.py",
    "tests/gateway/state/test_conversations_at_once.py",
)
"""Slow tests, which run a great many lines that others run too."""


class Room(NamedTuple):
    name: str
    sources: tuple[str, ...]
    """Globs below src/wireglot."""
    tests: tuple[str, ...]

    def files(self) -> Iterator[str]:
        for pattern in self.sources:
            for path in sorted((SOURCES / "wireglot").glob(pattern)):
                yield path.relative_to(SOURCES).as_posix()


_LAWS = ("tests/laws",)
_WIRE = (
    "tests/dialects/test_surfaces.py",
    "tests/dialects/test_taps.py",
    "tests/gateway/state/test_usage_checks.py",
    *_LAWS,
)

ROOMS = (
    Room(
        "vault",
        ("gateway/state/reasoning/*.py", "dialects/envelope.py"),
        (
            "tests/gateway/state/test_reasoning.py",
            "tests/gateway/state/test_reasoning_lacking.py",
            "tests/gateway/state/test_reasoning_live.py",
            "tests/gateway/state/test_reasoning_names.py",
            "tests/gateway/state/test_reasoning_parts.py",
            "tests/gateway/state/test_reasoning_round_trips.py",
            "tests/gateway/state/test_reasoning_vault.py",
            "tests/gateway/state/test_client_shapes.py",
            "tests/dialects/test_envelope.py",
            "tests/stores/test_vault.py",
            "tests/pains",
        ),
    ),
    Room(
        "ledger",
        ("gateway/state/ledger/*.py", "stores/journal/*.py"),
        (
            "tests/gateway/state/test_ledger.py",
            "tests/gateway/state/test_ledger_drain.py",
            "tests/gateway/state/test_ledger_rows.py",
            "tests/gateway/state/test_ledger_sweep.py",
            "tests/gateway/state/test_usage.py",
            "tests/gateway/state/test_usage_checks.py",
            "tests/gateway/state/test_usage_report.py",
            "tests/stores/test_journal.py",
            "tests/stores/test_journal_files.py",
            "tests/stores/test_journal_steps.py",
            "tests/stores/test_ledger.py",
        ),
    ),
    Room("anthropic", ("dialects/anthropic/*.py",), ("tests/dialects/anthropic", *_WIRE)),
    Room("openai-chat", ("dialects/openai_chat/*.py",), ("tests/dialects/openai_chat", *_WIRE)),
    Room(
        "openai-responses",
        ("dialects/openai_responses/*.py",),
        ("tests/dialects/openai_responses", "tests/gateway/state", *_WIRE),
    ),
    Room(
        "gemini",
        ("dialects/gemini/*.py",),
        ("tests/dialects/gemini", "tests/requirements/test_code_assist.py", *_WIRE),
    ),
    Room(
        "fit",
        ("providers/fit/*.py", "ir/*.py"),
        ("tests/providers", "tests/ir", "tests/test_translate.py", *_LAWS),
    ),
    Room(
        "laws",
        ("testing/laws.py", "testing/codec_laws.py", "testing/conservation.py", "traces/canonical.py"),
        ("tests/laws", "tests/testing"),
    ),
)
