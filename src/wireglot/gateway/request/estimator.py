"""Counting tokens where nobody counts: an estimate, calibrated by what the provider reported before."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final

import msgspec

from wireglot.gateway.request.token_weight import TOKEN, token_weight
from wireglot.ir.content import Text
from wireglot.ir.request import Request

CONVERSATIONS_MAX: Final = 10_000
_HEAD: Final = 2048
"""Characters of a text that tell one conversation from another; the rest is in its length."""


class _Seen(msgspec.Struct, frozen=True):
    """What a request weighed and how many tokens its provider found in it."""

    weight: int
    tokens: int


class Estimator:
    """Estimates counts from what a provider reported last in the same conversation.

    Growth since then is weighed at the rate that report gave, kept within reason; less than then is its part
    of the report. So the same request gives the reported number, and more content never gives less. Nothing
    but lengths is kept, and no caller's numbers reach another.
    """

    def __init__(self, conversations: int = CONVERSATIONS_MAX) -> None:
        self._most = conversations
        self._seen: OrderedDict[tuple[str, str, str], _Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    @staticmethod
    def conversation(request: Request, session: str = "", caller: str = "") -> str:
        """A name for the conversation: the caller with its session id, or with how the conversation began."""
        state = hashlib.blake2b(digest_size=16)
        beginnings = (session,) if session else _beginnings(request)
        for text in (caller, "session" if session else "texts", *beginnings):
            state.update(f"{len(text)}:{text[:_HEAD]}".encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    def learn(
        self, provider: str, model: str, conversation: str, request: Request, input_tokens: int
    ) -> None:
        """`input_tokens` is all that was read, from a cache or not; a report of none teaches nothing."""
        if input_tokens <= 0:
            return
        key = (provider, model, conversation)
        self._seen[key] = _Seen(token_weight(request), input_tokens)
        self._seen.move_to_end(key)
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)

    def estimate(self, provider: str, model: str, conversation: str, request: Request) -> int:
        weight = token_weight(request)
        key = (provider, model, conversation)
        seen = self._seen.get(key)
        if seen is None:
            return max(1, -(-weight // TOKEN))
        self._seen.move_to_end(key)
        if weight <= seen.weight:
            return max(1, -(-seen.tokens * weight // seen.weight))
        return seen.tokens + _growth(seen, weight - seen.weight)


def _growth(seen: _Seen, more: int) -> int:
    """A report on much that we do not see (a cached prompt), or on little, must not set the price of text."""
    full = -(-more // TOKEN)
    return min(2 * full, max(-(-full // 2), -(-seen.tokens * more // seen.weight)))


def _beginnings(request: Request) -> list[str]:
    """The system's text and the first user message: they stay the same while a conversation grows."""
    texts: list[str] = []
    for message in request.messages:
        if message.role not in ("system", "user"):
            continue
        own = [part.text for part in message.content if type(part) is Text]
        if message.role == "user":
            return [*texts, "\x1f".join(own)]
        texts += own
    return texts
