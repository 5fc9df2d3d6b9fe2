"""What an answer came to whose provider does not tell: an estimate, for clients that are told a number in any
case. Zero is a number, too, and a wrong one: agents decide by it when to compact.

It is marked: the loss says so in the log and on the page of losses, a whole answer has a header, and the
ledger calls it an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.token_weight import TOKEN, part_weight, text_weight
from wireglot.ir.content import Part
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Usage
from wireglot.ir.stream import Delta, Event, PartStart

ESTIMATE: Final = ("x-wireglot-estimate", "true")
ESTIMATED: Final = Loss("$.usage", "usage.detail", "invented", "estimated: the upstream does not tell it")


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
