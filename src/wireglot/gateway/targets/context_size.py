"""The size of the context that a local server loads a model with, and what a request needs of it.

Such a server (Ollama) cuts the beginning of longer prompts without an error. Only its native dialect can
request a size; a request in another one reloads the model with the server's own default.
"""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot_core.dialects.registry import surface
from wireglot_core.ir.loss import Loss
from wireglot_core.providers.spec import ProviderSpec

DEFAULT_SIZE: Final = 4096
"""The smallest default of Ollama. Servers with much video memory have a larger one, which none reports."""
ANSWER_TOKENS: Final = 4096
"""The room for an answer beside its prompt, unless the request limits it to less."""


class ContextSize(msgspec.Struct, frozen=True):
    """Sizes in tokens; 0: unknown."""

    most: int = 0
    """The model's own maximum."""
    set_to: int = 0
    """The size that is set for the model."""
    loaded: int = 0
    ours: bool = False
    """Whether it is loaded in a size that this gateway has requested: other dialects reload it."""

    def request(self, tokens: int, answer: int | None) -> int:
        """The size to request for a prompt: a power of two, at least what is loaded, at most the maximum. 0
        for a server that reports neither: it is of another kind."""
        if not self.is_known:
            return 0
        room = ANSWER_TOKENS if answer is None else min(answer, ANSWER_TOKENS)
        size = max(1 << (tokens + room - 1).bit_length(), self.loaded, self.set_to)
        return min(size, self.most) if self.most else size

    @property
    def is_known(self) -> bool:
        return bool(self.most or self.loaded)

    @property
    def unasked(self) -> int:
        """The size for a request that cannot name one; 0: unknown."""
        if not self.is_known:
            return 0
        return (
            self.set_to or (0 if self.ours else self.loaded) or min(DEFAULT_SIZE, self.most or DEFAULT_SIZE)
        )


def context_loss(tokens: int, size: int) -> Loss | None:
    """The loss of a prompt that is longer than the context; 0: that is unknown."""
    if not size or tokens <= size:
        return None
    detail = f"about {tokens - size} tokens too long: the model's context has {size}"
    return Loss("$.messages", "context", "dropped", detail)


def context_dialect(spec: ProviderSpec) -> str:
    """The dialect in which a provider's server is asked for context sizes; "": it loads none."""
    for spoken in spec.dialects:
        upstream = surface(spoken).upstream
        if upstream is not None and upstream.contexts is not None:
            return spoken
    return ""
