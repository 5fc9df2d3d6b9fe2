"""How much a request may use before anybody knows, and how much it used where nobody tells."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.gateway.targets.routing import Target
from wireglot.ir.outcome import Usage

LETTERS_PER_TOKEN: Final = 4
"""Of English or JSON."""
_LARGE_BYTES: Final = 32 * 1024
"""Smaller bodies hold no picture worth reading them for."""
_UNSAID_TOKENS: Final = 1024
"""Reserved for an answer whose length the client does not limit."""
_OUTPUT_TOKENS_MOST: Final = 128 * 1024
_ANSWERS_MOST: Final = 128


def expected_usage(exchange: Exchange, target: Target) -> Usage:
    """What the request may come to: its own size, and all that it lets the model say."""
    return Usage(input=_input(exchange), output=_output(exchange, target))


def whole_input(exchange: Exchange) -> int:
    """What the model reads, all that was put before the request included."""
    return token_weight(exchange.request()) // TOKEN


def _input(exchange: Exchange) -> int:
    body = exchange.job.body
    marks = exchange.job.surface.client.media_marks
    if len(body) > _LARGE_BYTES and any(mark in body for mark in marks):
        try:
            return token_weight(exchange.request()) // TOKEN  # a picture's letters are not its tokens
        except RequestError:
            pass  # told to the client by whoever must read it
    return len(body) // LETTERS_PER_TOKEN


def _output(exchange: Exchange, target: Target) -> int:
    client = exchange.job.surface.client
    asked = client.asked_output(exchange.job)
    most = next((entry.output for entry in target.provider.spec.models if entry.covers(target.model)), 0)
    tokens = min(asked if asked else _UNSAID_TOKENS, most or _OUTPUT_TOKENS_MOST)
    return tokens * min(max(1, client.asked_answers(exchange.job)), _ANSWERS_MOST)


class Letters:
    """How many letters of an answer went out. A client that leaves before its provider has told any usage is
    charged by these."""

    __slots__ = ("_find", "count")

    def __init__(self, words: re.Pattern[bytes] | None) -> None:
        """`words` finds those of an answer; without it nothing is counted."""
        self.count = 0
        self._find = words.findall if words is not None else None

    @property
    def tokens(self) -> int:
        return -(-self.count // LETTERS_PER_TOKEN)

    def listen(self, data: bytes) -> None:
        if self._find is not None:
            self.count += sum(map(len, self._find(data)))


class Period(msgspec.Struct, frozen=True):
    """A day or a month, UTC. Moments in unix milliseconds."""

    name: str
    """2026-11-15 or 2026-11."""
    since: int
    until: int


def day(now: float) -> Period:
    start = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return _period(f"{start:%Y-%m-%d}", start, start + timedelta(days=1))


def month(now: float) -> Period:
    start = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return _period(f"{start:%Y-%m}", start, (start + timedelta(days=32)).replace(day=1))


def _period(name: str, since: datetime, until: datetime) -> Period:
    return Period(name, int(since.timestamp() * 1000), int(until.timestamp() * 1000))
