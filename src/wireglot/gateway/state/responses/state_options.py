"""What a request of the Responses dialect says of state."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.state.conversations.items import is_reference

_BARE_REFERENCE: Final = re.compile(rb'\{\s*"id"\s*:\s*"[^"\\]*"\s*\}')


class StateOptions(msgspec.Struct, frozen=True):
    """What a request says of state. `store` None: it does not say, and then it is stored."""

    store: bool | None
    previous: str
    conversation: str
    background: bool
    refers: bool

    @property
    def stateful(self) -> bool:
        return self.store is not False or self.needs_state

    @property
    def needs_state(self) -> bool:
        return bool(self.previous or self.conversation or self.background or self.refers)


def state_options(exchange: Exchange) -> StateOptions:
    """Read from the body's outline: what needs no state is not read any further."""
    job = exchange.job
    outline = job.outline
    store, previous = outline.get("store"), outline.get("previous_response_id")
    if store is not None and type(store) is not bool:
        raise RequestError("bad", "store: expected true or false", code="invalid_type", param="store")
    if previous is not None and type(previous) is not str:
        raise RequestError(
            "bad",
            "previous_response_id: expected a string",
            code="invalid_type",
            param="previous_response_id",
        )
    if previous and outline.get("conversation") is not None:
        raise RequestError(
            "bad",
            "previous_response_id and conversation exclude each other: a conversation has its own history",
            code="mutually_exclusive_parameters",
            param="previous_response_id",
        )
    conversation = "" if previous else job.conversation
    return StateOptions(
        store,
        previous or "",
        conversation,
        background=outline.get("background") is True,
        refers=_refers(exchange),
    )


def _refers(exchange: Exchange) -> bool:
    body = exchange.job.body
    if b"item_reference" not in body and _BARE_REFERENCE.search(body) is None:
        return False
    value = exchange.document().get("input")
    return isinstance(value, list) and any(map(is_reference, value))
