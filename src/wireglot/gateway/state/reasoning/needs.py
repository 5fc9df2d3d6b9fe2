"""Which state a client loses on its way to an upstream, and so is the vault's to keep."""

from __future__ import annotations

from wireglot.dialects.base import Surface
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.reasoning.parts import signature_of
from wireglot.gateway.targets.routing import Target
from wireglot.ir.content import Origin, Part, Reasoning
from wireglot.wire.search import holds_any


def needs(exchange: Exchange, target: Target) -> bool:
    """Whether answers of this upstream hold state that this client may not bring back."""
    about = exchange.job.surface.reasoning
    if about.returns == "all":
        return False
    if is_foreign(exchange, target) or exchange.hides_state:
        return True
    if about.drops_thoughts and target.limits.reasoning == "text":
        return True
    return shows_only(exchange, target) or replaces(exchange, target)


def is_foreign(exchange: Exchange, target: Target) -> bool:
    return target.surface.family != exchange.job.surface.family


def is_unasked(exchange: Exchange) -> bool:
    """Whether the client did not ask to see the reasoning that others than its own dialect's may answer."""
    asks = exchange.job.surface.reasoning.asks_thinking
    if asks is None or not any(is_foreign(exchange, target) for target in exchange.targets):
        return False
    return not asks(exchange.request())


def shows_only(exchange: Exchange, target: Target) -> bool:
    """Whether the client drops the plain reasoning of a server that the catalog does not know. One that has
    shown some takes it back."""
    if is_foreign(exchange, target) or not exchange.job.surface.reasoning.drops_thoughts:
        return False
    return target.limits.reasoning == "own" and not target.provider.spec.catalog


def replaces(exchange: Exchange, target: Target) -> bool:
    """Whether the client may send placeholders for signatures of this upstream, in its own dialect."""
    if is_foreign(exchange, target) or exchange.hides_state:
        return False
    return bool(exchange.job.surface.reasoning.placeholders) and target.limits.call_signatures


def may_lack(exchange: Exchange) -> bool:
    """Whether turns of the conversation may have lost their state. In its own dialect a signature is lost
    where a placeholder says so, and plain reasoning where there is any turn of the model."""
    if exchange.differs or not is_apart(exchange):
        return True
    about = exchange.job.surface.reasoning
    return holds_any(exchange.job.body, about.placeholders or about.turn_marks)


def is_apart(exchange: Exchange) -> bool:
    """Whether turns are kept for their own dialect alone, beside what others said in the same words."""
    return all(
        not is_foreign(exchange, target)
        and (exchange.hides_state or shows_only(exchange, target) or replaces(exchange, target))
        for target in exchange.targets
    )


def answers(exchange: Exchange, target: Target) -> bool:
    record = exchange.record
    return (target.provider.name, target.model) == (record.provider, record.upstream_model)


def is_of_any(content: tuple[Part, ...], targets: tuple[Target, ...]) -> bool:
    """Whether any of these has minted some of it."""
    names = {target.provider.name for target in targets}
    return any(_minted_by(part) in names for part in content)


def _minted_by(part: Part) -> str:
    signature = signature_of(part)
    if signature is not None:
        return signature.origin.provider
    return part.minter.provider if type(part) is Reasoning and part.minter is not None else ""


def minter_of(target: Target, reasoning: Reasoning) -> Origin | None:
    """Whose reasoning it is without a signature, if that one takes it back."""
    surface = target.surface
    takes = surface.reasoning.takes_unsigned
    if target.limits.reasoning == "drop" or takes is None or not takes(reasoning):
        return None
    return Origin(surface.family, target.provider.name, target.model)


def carries_bare(client: Surface, targets: tuple[Target, ...]) -> bool:
    """Whether signatures of others come back without their minter: another model or account would be asked
    with them, in vain."""
    return client.reasoning.bare_signatures and any(target.dialect != client.name for target in targets)
