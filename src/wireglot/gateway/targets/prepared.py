"""One request made ready for one target: what is sent, and the way back for its answer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wireglot.dialects.base import Context
from wireglot.http.transport import Answer, Outbound
from wireglot.ir.content import Origin
from wireglot.ir.leaked_calls import LeakFamily
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.ir.safeguards import Safeguard
from wireglot.providers.aliases import Aliases
from wireglot.providers.emulation import Emulation


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """`raw`: body and answer pass through as bytes; `request` and `aliases` are the way back otherwise."""

    outbound: Outbound
    stream: bool
    """Whether the upstream streams, whatever the client asked for."""
    raw: bool
    context: Context
    as_is: bool = False
    """Nothing is repaired, neither of the request nor of its answer: anyone who asked wants the provider's
    own."""
    losses: tuple[Loss, ...] = ()
    request: Request | None = None
    asked: Request | None = None
    """What the upstream is asked, where the gateway has put more into it than the request says."""
    aliases: Aliases = Aliases()
    emulation: Emulation | None = None
    """What is to be done with the answer that the upstream does not, where there is anything."""
    minter: Origin | None = None
    """Who writes what the answer leaves unsigned, for a client of another dialect to carry."""
    leaks_calls: tuple[LeakFamily, ...] = ()
    """The tokens in which the provider may leave calls in the text of an answer: it is read, also where the
    request passed through."""
    own_usage: bool = False
    """We asked for the usage at the end of the stream, and not the client: it does not get to see it."""
    further: int = 0
    """Answers that the client wants in addition to the upstream's one: the gateway requests them."""
    checks: tuple[Safeguard, ...] = ()
    """What the client wants checked of the answer and the upstream does not: the gateway does."""
    unframe: Callable[[Answer], Answer] | None = None
    """Where streams come in a framing of the host's own."""
