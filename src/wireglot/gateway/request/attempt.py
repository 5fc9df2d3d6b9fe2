"""One try at one target: a new one is made for each, so nothing of one that failed is left in the next."""

from __future__ import annotations

import msgspec

from wireglot.gateway.targets.context_size import ContextSize
from wireglot.http.application import Headers
from wireglot_core.ir.content import Origin
from wireglot_core.ir.loss import Loss


class Attempt(msgspec.Struct, eq=False):
    policy: str
    """How losses are handled: by the caller's setting, else the route's, else the general one."""
    asks_state: bool = True
    """Whether the upstream is asked for the reasoning state of its answer: not if its model has none."""
    asks_summary: bool = True
    """Whether the upstream may be asked for a summary of the reasoning: not if it has refused one."""
    stripped: bool = False
    """The upstream refused the reasoning state of old turns: it is left out."""
    context_size: ContextSize | None = None
    """The sizes of the model's context at a server that loads models."""
    minter: Origin | None = None
    """The minter of what the answer leaves unsigned, if the client's dialect is another."""
    losses: tuple[Loss, ...] = ()
    """Those that are reported to the client."""
    returned_headers: Headers = []
    """Headers of the provider that are passed to the client."""

    def again(self) -> Attempt:
        """The next one at the same target: what its provider refused stays left out."""
        return Attempt(self.policy, self.asks_state, self.asks_summary, self.stripped)
