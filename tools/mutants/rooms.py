"""The rooms whose tests are held against deliberate defects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"


class Room(NamedTuple):
    name: str
    sources: tuple[str, ...]
    """Globs below src/wireglot."""
    tests: tuple[str, ...]

    def files(self) -> Iterator[Path]:
        for pattern in self.sources:
            yield from sorted((SOURCES / "wireglot").glob(pattern))


_LAWS = ("tests/laws",)
_WIRE = ("tests/dialects/test_surfaces.py", "tests/dialects/test_taps.py", *_LAWS)

ROOMS = (
    Room(
        "anthropic",
        ("dialects/anthropic/*.py",),
        (
            "tests/dialects/anthropic",
            "tests/dialects/test_surfaces.py",
            "tests/dialects/test_taps.py",
            *_LAWS,
        ),
    ),
    Room(
        "openai-chat",
        ("dialects/openai_chat/*.py",),
        (
            "tests/dialects/openai_chat",
            "tests/dialects/test_surfaces.py",
            "tests/dialects/test_taps.py",
            *_LAWS,
        ),
    ),
    Room(
        "openai-responses",
        ("dialects/openai_responses/*.py",),
        (
            "tests/dialects/openai_responses",
            "tests/gateway/state",
            *_WIRE,
        ),
    ),
    Room(
        "gemini",
        ("dialects/gemini/*.py",),
        (
            "tests/dialects/gemini",
            "tests/requirements/test_code_assist.py",
            *_WIRE,
        ),
    ),
    Room(
        "fit",
        ("providers/fit/*.py", "ir/*.py"),
        ("tests/providers", "tests/ir", "tests/test_translate.py", *_LAWS),
    ),
    Room(
        "vault",
        ("gateway/state/reasoning/*.py", "dialects/envelope.py"),
        ("tests/gateway/state", "tests/dialects/test_envelope.py", "tests/pains", "tests/laws/test_state.py"),
    ),
    Room(
        "ledger",
        ("gateway/state/ledger/*.py", "stores/journal/*.py"),
        ("tests/gateway/state", "tests/stores/test_journal.py", "tests/stores/test_ledger.py"),
    ),
    Room(
        "laws",
        ("testing/laws.py", "testing/codec_laws.py", "testing/conservation.py", "testing/canonical.py"),
        ("tests/laws", "tests/testing"),
    ),
)
