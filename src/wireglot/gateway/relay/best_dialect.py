"""The dialect of a provider in which a request loses least.

The client's own comes first, and nearly always stays: only a request that would lose something there is also
tried in the others. Some servers enforce a JSON schema on Chat and know none on Messages (Ollama, llama.cpp).
"""

from __future__ import annotations

from typing import Final

from wireglot.gateway.errors import RequestError
from wireglot.gateway.relay.attempt import LOSS_REFUSED, policy_of, prepare
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Credential
from wireglot.gateway.targets.prepared import Prepared
from wireglot.gateway.targets.routing import Target
from wireglot.ir.grades import Grade
from wireglot.ir.loss import Loss

_WEIGHTS: Final[dict[Grade, int]] = {"serious": 1000, "degraded": 1, "harmless": 0}
"""One serious loss weighs more than all others that a request can have. What is harmless moves nothing."""


def prepare_best(
    exchange: Exchange, target: Target, credential: Credential | None
) -> tuple[Target, Prepared]:
    """The request made ready, and where it goes: `target`, or the same model in another dialect."""
    try:
        prepared = prepare(exchange, target, credential)
    except RequestError as refused:
        if refused.error.code != LOSS_REFUSED or not target.others:
            raise
        return _without_losses(exchange, target, credential, refused)
    best = target, prepared
    if not target.others or not prepared.losses:
        return best
    least = _weight(prepared.losses)
    if not least or policy_of(exchange.job, target) == "as-is":
        return best
    for other in target.others:
        try:
            candidate = prepare(exchange, other, credential)
        except RequestError:
            continue  # what cannot be said there at all
        weight = _weight(candidate.losses)
        if weight < least:
            least, best = weight, (other, candidate)
    return best


def _without_losses(
    exchange: Exchange, target: Target, credential: Credential | None, refused: RequestError
) -> tuple[Target, Prepared]:
    """Who wants no losses at all is served by the first dialect without any."""
    for other in target.others:
        try:
            return other, prepare(exchange, other, credential)
        except RequestError:
            continue
    raise refused


def _weight(losses: tuple[Loss, ...]) -> int:
    return sum(_WEIGHTS[loss.grade] for loss in losses)
