"""One request prepared for one target: what is sent, and how its answer is translated."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot.http.transport import Answer, Outbound
from wireglot_core.dialects.context import Context
from wireglot_core.ir.content import Origin
from wireglot_core.ir.leaked_calls import LeakFamily
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request
from wireglot_core.ir.safeguards import Safeguard
from wireglot_core.providers.aliases import Aliases
from wireglot_core.providers.emulation import Emulation


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """`raw`: body and answer pass through as bytes; `request` and `aliases` are needed to translate the
    answer otherwise."""

    outbound: Outbound
    stream: bool
    """Whether the upstream streams, which may differ from the client's request."""
    raw: bool
    context: Context
    as_is: bool = False
    """Nothing is repaired, neither in the request nor in its answer: the caller wants the provider's own."""
    losses: tuple[Loss, ...] = ()
    request: Request | None = None
    asked: Request | None = None
    """The upstream's request, if the gateway has added something to it."""
    aliases: Aliases = Aliases()
    emulation: Emulation | None = None
    """What the gateway does to the answer because the upstream does not, if anything."""
    minter: Origin | None = None
    """The minter of what the answer leaves unsigned, for a client of another dialect to carry."""
    leaks_calls: tuple[LeakFamily, ...] = ()
    """The tokens of calls that the provider may leave in the text of an answer: it is parsed, also if the
    request passed through."""
    own_usage: bool = False
    """We requested the usage at the end of the stream, and the client did not: it is not shown to the
    client."""
    further: int = 0
    """Answers that the client wants in addition to the upstream's one: the gateway requests them."""
    checks: tuple[Safeguard, ...] = ()
    """Checks of the answer that the client wants and the upstream does not make: the gateway does."""
    context_size: int = 0
    """The size of the model's context that it requests, if any."""
    unframe: Callable[[Answer], Answer] | None = None
    """Decodes streams in the host's own framing."""
