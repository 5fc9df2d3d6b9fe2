"""The usage of an answer whose provider reports none: an estimate, in every dialect whose answers report it.
Agents decide by it when to compact, and zero would be wrong.

It is marked: the loss says so in the log and on the page of losses, a whole answer has a header, and the
ledger calls it an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wireglot.dialects.base import ClientSide
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.token_weight import TOKEN, part_weight, text_weight
from wireglot.ir.content import Part
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Usage
from wireglot.ir.request import Request
from wireglot.ir.stream import Delta, Event, PartStart

ESTIMATED: Final = Loss("$.usage", "usage.detail", "invented", "estimated: the upstream does not tell it")


def tells_usage(client: ClientSide, request: Request | None) -> bool:
    """Whether the answer reports its usage. Where the request was not read, the answer does as ever."""
    return client.tells_usage is not None and (request is None or client.tells_usage(request))


def is_untold(usage: Usage | None) -> bool:
    """No request costs nothing: zeros are what a server prints that does not count."""
    return usage is None or not usage.total


def events_weight(events: Iterable[Event]) -> int:
    """In thousandths of a token."""
    weight = 0
    for event in events:
        if type(event) is Delta:
            weight += text_weight(event.text)
        elif type(event) is PartStart:
            weight += part_weight(event.part)
    return weight


def parts_weight(parts: Iterable[Part]) -> int:
    return sum(part_weight(part) for part in parts)


def estimated_usage(exchange: Exchange, weight: int) -> Usage:
    """`weight`: of the answer, in thousandths of a token."""
    return Usage(input=exchange.expected_input(), output=-(-weight // TOKEN))
