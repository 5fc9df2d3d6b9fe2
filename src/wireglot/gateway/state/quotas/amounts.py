"""How much a request may use before anybody knows, and how much it used where nobody tells."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.gateway.targets.routing import Target
from wireglot.ir.outcome import Usage

LETTERS: Final = 4
"""Of English or JSON, to a token."""
_LARGE: Final = 32 * 1024
_MEDIA: Final = (b"base64", b"inlineData", b"inline_data")
_UNSAID: Final = 1024
"""Tokens reserved for an answer whose length the client does not limit."""
_OUTPUT_MOST: Final = 128 * 1024
_ANSWERS_MOST: Final = 128

_SAID: Final = re.compile(
    rb'"(?:text|content|delta|thinking|partial_json|arguments|reasoning_content|refusal)"'
    rb'\s*:\s*"((?:[^"\\]|\\.)*)'
)
"""Words of an answer, in any dialect."""


def expected_usage(exchange: Exchange, target: Target) -> Usage:
    """What the request may come to: its own size, and all that it lets the model say."""
    return Usage(input=_input(exchange), output=_output(exchange, target))


def whole_input(exchange: Exchange) -> int:
    """What the model reads, all that was put before the request included."""
    return token_weight(exchange.request()) // TOKEN


def _input(exchange: Exchange) -> int:
    body = exchange.job.body
    if len(body) > _LARGE and any(mark in body for mark in _MEDIA):
        try:
            return token_weight(exchange.request()) // TOKEN  # a picture's letters are not its tokens
        except RequestError:
            pass  # told to the client by whoever must read it
    return len(body) // LETTERS


def _output(exchange: Exchange, target: Target) -> int:
    asked = _asked_output(exchange)
    most = next((entry.output for entry in target.provider.spec.models if entry.covers(target.model)), 0)
    tokens = min(asked if asked else _UNSAID, most or _OUTPUT_MOST)
    return tokens * _answers(exchange)


def _asked_output(exchange: Exchange) -> int:
    job = exchange.job
    match job.dialect:
        case "openai-chat":
            return _whole(job.outline.get("max_completion_tokens")) or _whole(job.outline.get("max_tokens"))
        case "openai-responses":
            return _whole(job.outline.get("max_output_tokens"))
        case "anthropic":
            return _whole(job.outline.get("max_tokens"))
        case "gemini-simple":
            return _whole(job.outline.get("maxOutputTokens"))
    generation = _generation(exchange)
    return _whole(generation.get("maxOutputTokens", generation.get("max_output_tokens")))


def _answers(exchange: Exchange) -> int:
    job = exchange.job
    if job.dialect == "openai-chat":
        count = _whole(job.outline.get("n"))
    elif job.dialect in ("gemini", "code-assist"):
        generation = _generation(exchange)
        count = _whole(generation.get("candidateCount", generation.get("candidate_count")))
    else:
        count = 1
    return min(max(1, count), _ANSWERS_MOST)


def _generation(exchange: Exchange) -> dict[str, Any]:
    job = exchange.job
    outer: Any = exchange.document().get("request") if job.dialect == "code-assist" else job.outline
    for name in ("generationConfig", "generation_config"):
        found = outer.get(name) if outer is not None and hasattr(outer, "get") else None
        if isinstance(found, dict):
            return found
    return {}


def _whole(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


class Letters:
    """How many letters of an answer went out. A client that leaves before its provider has told any usage is
    charged by these."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    @property
    def tokens(self) -> int:
        return -(-self.count // LETTERS)

    def listen(self, data: bytes) -> None:
        self.count += sum(map(len, _SAID.findall(data)))


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
