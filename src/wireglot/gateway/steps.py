"""The steps around an answer, in one list: how a request is wrapped, from the outside in.

Each is a small class that takes the next one and is one itself, and begins with the one question whether the
request concerns it. A new concern is a class in the room it belongs to, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from wireglot.gateway.entry.gates import Gates
from wireglot.gateway.pages.counts import Counted, Counting
from wireglot.gateway.relay.relay import Relay
from wireglot.gateway.request.exchange import Answerer
from wireglot.gateway.request.steps import Gated, Open, Opened, Permitted, Routed, WithinTime
from wireglot.gateway.state.conversations.continued import Continued
from wireglot.gateway.state.idempotency import Idempotent
from wireglot.gateway.state.ledger.usage_ledger import Accounted
from wireglot.gateway.state.quotas.steps import Grown, Reserved
from wireglot.gateway.state.reasoning.vault import Recalled
from wireglot.gateway.state.responses.background import InBackground
from wireglot.gateway.state.responses.chain import Chained
from wireglot.gateway.state.responses.compaction import Compacted, Unsealed
from wireglot.gateway.state.state import State
from wireglot.gateway.targets.routing import Router


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps are made with."""

    state: State
    router: Router
    gates: Gates
    counting: Counting
    relay: Relay
    is_draining: Callable[[], bool]


Step = Callable[[Answerer, Parts], Answerer]

STEPS: Final[tuple[Step, ...]] = (
    # Around whole answers: the same one again, a summary in its place, or one that nobody waits for.
    lambda inner, parts: Idempotent(inner, parts.state.idempotency),
    lambda inner, parts: Compacted(inner, parts.state.compaction),
    lambda inner, parts: InBackground(inner, parts.state.background),
    # Whether, and where to: the route before the quotas, which reserve by the first target's price.
    lambda inner, parts: Open(inner, parts.is_draining),
    lambda inner, parts: Permitted(inner),
    lambda inner, parts: Routed(inner, parts.router),
    lambda inner, parts: Opened(inner),
    lambda inner, parts: Reserved(inner, parts.state.quotas),
    # What the client did not send and the model needs. The store is asked before the gates: whoever waits for
    # it takes nobody's place. Summaries are opened once the stored history stands before them.
    lambda inner, parts: Continued(inner, parts.state.continuing),
    lambda inner, parts: Chained(inner, parts.state.chain),
    lambda inner, parts: Unsealed(inner, parts.state.compaction),
    lambda inner, parts: Recalled(inner, parts.state.reasoning),
    lambda inner, parts: Grown(inner, parts.state.quotas),
    # Its turn, its account, its time.
    lambda inner, parts: Gated(inner, parts.gates),
    lambda inner, parts: Counted(inner, parts.counting),
    lambda inner, parts: Accounted(inner, parts.state.ledger),
    lambda inner, parts: WithinTime(inner),
)

STEPS_WITHIN: Final[tuple[Step, ...]] = (
    # A request of the gateway's own, for the answer to another one: that one has been let in, and holds a
    # place at every gate.
    lambda inner, parts: Routed(inner, parts.router),
    lambda inner, parts: Opened(inner),
    lambda inner, parts: Reserved(inner, parts.state.quotas),
    lambda inner, parts: Accounted(inner, parts.state.ledger),
    lambda inner, parts: WithinTime(inner),
)


def around(parts: Parts, steps: tuple[Step, ...] = STEPS) -> Answerer:
    """The relay within all steps."""
    answerer: Answerer = parts.relay
    for step in reversed(steps):
        answerer = step(answerer, parts)
    return answerer
