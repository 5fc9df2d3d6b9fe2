"""One name that a client may send, with what is known of where it leads."""

from __future__ import annotations

import msgspec

from wireglot.providers.limits import Limits
from wireglot.providers.spec import ModelSpec


class ListedModel(msgspec.Struct, frozen=True):
    """One name a client may send, and where a request for it goes first."""

    id: str
    provider: str
    model: str
    spec: ModelSpec | None = None
    dialects: tuple[str, ...] = ()
    limits: Limits = Limits()
    title: str = ""

    @property
    def native(self) -> bool:
        """Whether an Anthropic client is answered by an upstream of its own dialect."""
        return "anthropic" in self.dialects

    @property
    def thinks(self) -> bool:
        return self.limits.thinking not in (None, "none")

    @property
    def context(self) -> int:
        return self.spec.context if self.spec is not None else 0

    @property
    def output(self) -> int:
        return (self.spec.output if self.spec is not None else 0) or self.limits.max_tokens
