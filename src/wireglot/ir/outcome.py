"""What came back: the answer, why it ended, what it cost."""

from __future__ import annotations

from typing import Literal

import msgspec

from wireglot.ir.content import Extra, Part

StopReason = Literal[
    "end",
    "stop_sequence",
    "length",
    "context_full",
    "tool_calls",
    "refused",
    "paused",
    "malformed_call",
    "other",
]


class Stop(msgspec.Struct, frozen=True, omit_defaults=True):
    """The unified reason beside the raw one; `sequence` is the stop sequence that matched, where told.

    `raw` is spelling: it returns to its own `dialect` verbatim and is ignored by every other.
    """

    reason: StopReason
    raw: str = ""
    dialect: str = ""
    sequence: str | None = None
    extra: Extra | None = None


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One account whose numbers never overlap.

    total input = input + cache_read + cache_write + cache_write_long + tool_prompt
    total output = output + (reasoning or 0); `reasoning` None: the provider did not tell it apart.
    `raw` are the provider's own numbers, verbatim (spelling, returned to its own dialect only).
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_long: int = 0
    tool_prompt: int = 0
    output: int = 0
    reasoning: int | None = None
    raw: Extra | None = None

    @property
    def total_input(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.cache_write_long + self.tool_prompt

    @property
    def total_output(self) -> int:
        return self.output + (self.reasoning or 0)

    @property
    def total(self) -> int:
        return self.total_input + self.total_output


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A second or later answer to one request (`n`, `candidateCount`)."""

    content: tuple[Part, ...]
    stop: Stop
    extra: Extra | None = None


class Response(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole answer. `created` is in unix seconds, 0 where the dialect does not tell."""

    id: str
    model: str
    content: tuple[Part, ...]
    stop: Stop
    usage: Usage | None = None
    created: int = 0
    service_tier: str = ""
    others: tuple[Candidate, ...] = ()
    extra: Extra | None = None
