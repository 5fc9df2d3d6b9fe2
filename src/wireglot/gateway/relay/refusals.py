"""Refusals by an upstream: reasoning of earlier turns that it rejects, or features that it does not support.

Servers of open models (llama.cpp, vLLM, SGLang) answer an unsupported feature with 500: an image to a model
without vision, a role that the template lacks, a grammar. Taken for outages, two such requests would open the
model's circuit breaker for everybody. Some errors are recognized by their message; others once the same body
was refused the same way twice.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from wireglot.gateway.errors import RequestError
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.targets.routing import Target
from wireglot_core.dialects.registry import UnknownDialect, surface, surfaces
from wireglot_core.ir.content import Extra, Message, Part, Reasoning, Text, ToolCall
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request
from wireglot_core.providers.fit.thinking import stop_thinking_in_loop

# Targets whose refused fields are known.
_MAX_TARGETS: Final = 4096
_DETAIL: Final = "the provider rejected the reasoning of earlier turns: sent again without it"
_ABOUT_REQUEST: Final = frozenset({"request", "refused", "model", "upstream", "answer"})
"""Refusals of a request come with status 400 or 404 (an item that is not stored), in streams without a
status, and as the reason why an answer stopped."""

_INTERNAL: Final = frozenset({500, 501})
"""Any other 5xx means by definition a failure of a server, or of one behind it."""

_SAYS_SO: Final = re.compile(
    r"\b(?:not|isn't|aren't) (?:yet |currently )?(?:supported|implemented|allowed)\b|\bunsupported\b"
    r"|\b(?:do|does)(?:n't| not) (?:yet |currently )?support\b"
    r"|\bnot a (?:multi-?modal|vision|embedding|chat) model\b"
    r"|\bfailed to (?:parse|decode|load) (?:the )?"
    r"(?:image|audio|video|grammar|messages?|tools?|input|request|json|schema)"
    r"|\binvalid (?:request|arguments?|parameters?|value|input|type|format|schema|json|role|messages?|content"
    r"|tools?|field|body|grammar|images?|audio|base64)\b",
    re.IGNORECASE,
)
_PASSES: Final = re.compile(
    r"try again|temporar|time[ds]?[ -]?out|overload|unavailable|connection|upstream|backend", re.IGNORECASE
)
"""A temporary condition, whatever else the message says."""


def goes_on_without_state(exchange: Exchange, target: Target, failed: AttemptFailed) -> bool:
    """Whether the upstream refused the reasoning of earlier turns, and can be called again without it.
    Callers that accept no losses get the refusal."""
    if failed.blame not in _ABOUT_REQUEST or not is_about_state(failed.error):
        return False
    if exchange.job.thread or exchange.attempt.policy in ("strict", "as-is"):
        return False
    try:
        return helps(exchange.request(), target.dialect, exchange.record.passthrough)
    except RequestError:
        return False  # only its own vendor can read it


def has_no_state(exchange: Exchange, target: Target, failed: AttemptFailed) -> bool:
    """Whether the upstream reports that its model has no reasoning state, which we requested."""
    says = target.surface.reasoning.has_none
    if says is None or failed.blame not in _ABOUT_REQUEST or exchange.record.passthrough:
        return False
    return says(failed.error)


def has_no_summary(exchange: Exchange, target: Target, failed: AttemptFailed) -> bool:
    """Whether the upstream reports that this account gets no summaries of reasoning, which we requested."""
    says = target.surface.reasoning.has_no_summary
    if says is None or failed.blame not in _ABOUT_REQUEST or exchange.record.passthrough:
        return False
    return says(failed.error)


class RefusedState:
    """How an upstream is called again that refused reasoning state, or a request for it."""

    def __init__(self) -> None:
        self.without: set[str] = set()
        """Targets whose models have no reasoning state, as they reported."""
        self.without_summary: set[str] = set()
        """Targets that refused to summarize reasoning."""

    def goes_on(self, exchange: Exchange, target: Target, failed: AttemptFailed) -> bool:
        """Whether the conversation can continue without reasoning state; each way is tried once."""
        if not exchange.attempt.stripped and goes_on_without_state(exchange, target, failed):
            exchange.attempt.stripped = True  # it is another account's, or has expired
            exchange.record.noted("reasoning state refused: left out")
            return True
        if exchange.attempt.asks_state and has_no_state(exchange, target, failed):
            _remember(target.name, self.without)
            exchange.attempt.asks_state = False
            return True
        if exchange.attempt.asks_summary and has_no_summary(exchange, target, failed):
            _remember(target.name, self.without_summary)
            exchange.attempt.asks_summary = False
            return True
        return False


def _remember(name: str, names: set[str]) -> None:
    if len(names) >= _MAX_TARGETS:  # model names come from clients
        names.clear()
    names.add(name)


def judged(failed: AttemptFailed) -> AttemptFailed:
    """The same failure, or the refusal of a request if its status or its message says so."""
    if not is_internal(failed):
        return failed
    error = failed.error
    if error.status == 501:  # by definition about the request
        return AttemptFailed(error, "refused", body=failed.body, status=failed.status)
    if _SAYS_SO.search(error.message) is None or _PASSES.search(error.message) is not None:
        return failed
    reported = msgspec.structs.replace(
        error, kind="invalid_request", status=400, code="unsupported", extra=None
    )
    # In its own dialect the error is passed on unchanged.
    return AttemptFailed(reported, "refused", body=failed.body, status=failed.status)


def is_internal(failed: AttemptFailed) -> bool:
    """Whether it may be about the request: a 500 or 501 without a `retry-after`."""
    error = failed.error
    return (
        failed.blame == "upstream"
        and error.kind == "server"
        and error.status in _INTERNAL
        and failed.wait is None
    )


def is_same(earlier: AttemptFailed | None, failed: AttemptFailed) -> bool:
    """Whether the same body was refused the same way twice. Providers that are down tend to put a request id
    into the message, and to answer with another status."""
    if earlier is None or not is_internal(earlier) or not is_internal(failed):
        return False
    return _words(earlier.error) == _words(failed.error)


def _words(error: ApiError) -> tuple[int, str, str, str]:
    return error.status, error.type, error.code, error.message


# --- the request without reasoning state: losing it costs quality, but not the conversation


class Stripped(msgspec.Struct, frozen=True):
    request: Request
    losses: tuple[Loss, ...]


def is_about_state(error: ApiError) -> bool:
    """Whether the upstream complains about a signature or blob that it did not mint or no longer knows."""
    return any(
        known.reasoning.is_refusal(error) for known in surfaces() if known.reasoning.is_refusal is not None
    )


def helps(request: Request, dialect: str, passed_raw: bool) -> bool:
    """Whether a retry without state can end differently. For a request that has none, only with an upstream
    whose thinking can be disabled, or with one that accepts a bypass for a missing signature (but a fitted
    request had it)."""
    if without_opaque_state(request, dialect).request != request:
        return True
    return (
        passed_raw
        and surface(dialect).reasoning.takes_bypass
        and any(type(part) is ToolCall for message in request.messages for part in message.content)
    )


def without_opaque_state(request: Request, dialect: str) -> Stripped:
    """The request without thinking that carries state and without signatures. Text without state (Kimi's) is
    kept, unless it was put back or carried here and only its minter would accept it."""
    losses: list[Loss] = []
    messages = tuple(
        kept
        for index, message in enumerate(request.messages)
        if (kept := _message(message, f"$.messages[{index}]", losses)).content
        or kept.content == message.content
    )
    stripped = msgspec.structs.replace(request, messages=messages)
    if surface(dialect).reasoning.thinks_only_with_state and request.thinking.budget is not None:
        stripped = stop_thinking_in_loop(stripped, losses)
    return Stripped(stripped, tuple(losses))


def _message(message: Message, path: str, losses: list[Loss]) -> Message:
    if message.role != "assistant":
        return message
    content: list[Part] = []
    for index, part in enumerate(message.content):
        kept = _part(part, f"{path}.content[{index}]", losses)
        if kept is not None:
            content.append(kept)
    return Message(message.role, tuple(content), message.name, _stateless(message.extra))


def _part(part: Part, path: str, losses: list[Loss]) -> Part | None:
    if type(part) is Reasoning:
        if part.signature is None and not part.redacted and part.minter is None:
            return part
        feature: Any = "reasoning.redacted" if part.redacted else "reasoning.text"
        losses.append(Loss(path, feature, "dropped", _DETAIL))
        return None
    if getattr(part, "signature", None) is not None:
        losses.append(Loss(f"{path}.signature", "reasoning.signature", "dropped", _DETAIL))
        part = msgspec.structs.replace(part, signature=None)
    if type(part) is ToolCall or type(part) is Text:
        extra = _stateless(part.extra)
        if extra is not part.extra:
            return msgspec.structs.replace(part, extra=extra)
    return part


def _stateless(extra: Extra | None) -> Extra | None:
    """The extra without fields that tie a part to state, in the terms of its original dialect."""
    if extra is None:
        return None
    try:
        strip = surface(extra.dialect).reasoning.without_state
    except UnknownDialect:  # stored while the dialect was registered
        return extra
    return strip(extra) if strip is not None else extra


def minters(request: Request) -> set[str]:
    """The accounts whose reasoning state a conversation carries."""
    accounts = set()
    for message in request.messages:
        for part in message.content:
            if isinstance(part, Reasoning | ToolCall | Text) and part.signature is not None:
                accounts.add(part.signature.origin.account)
    return accounts
