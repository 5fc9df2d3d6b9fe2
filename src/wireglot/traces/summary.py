"""What a translation did to a request, in numbers: how many of each kind before it, and how many after."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from wireglot.dialects.registry import dialect
from wireglot.ir.content import (
    FOREIGN,
    PHASE,
    UNSIGNED,
    Media,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot.ir.errors import WireglotError
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.traces.again import Asked
from wireglot.traces.target import Target
from wireglot.traces.trace import Counted, TracedLoss

_GRADES: Final = ("serious", "degraded", "harmless")


def request_summary(
    asked: Asked, target: Target, upstream: dict[str, Any], losses: Iterable[Loss | TracedLoss] | None = None
) -> list[Counted]:
    """`losses`: of this request; without them, those of its translation."""
    context = asked.context
    try:
        sent = dialect(target.dialect).parse_request(upstream, context)
    except WireglotError:  # it is written for others, and may not be read here
        sent = asked.planned.upstream
    ours, theirs = counts(asked.own), counts(sent)
    lines = [Counted(what, ours[what], theirs[what]) for what in ours if ours[what] or theirs[what]]
    ids = _rewritten_ids(asked)
    if ids:
        lines.append(Counted("tool ids rewritten", ids, ids))
    names = len(asked.planned.aliases.names)
    if names:
        lines.append(Counted("tool names rewritten", names, names))
    grades = [loss.grade for loss in (asked.losses if losses is None else losses)]
    lines += [Counted(f"{grade} losses", grades.count(grade), 0) for grade in _GRADES if grade in grades]
    return lines


def counts(request: Request) -> dict[str, int]:
    """How many of each kind a request holds, as its dialect cuts it."""
    system = [message for message in request.messages if message.role == "system"]
    parts = [part for message in request.messages for part in _all(message)]
    media = [part.kind for part in parts if type(part) is Media]
    return {
        "system blocks": sum(type(part) is Text for message in system for part in message.content),
        "messages": len(request.messages) - len(system),
        "tools": len(request.tools),
        "tool calls": _of(parts, ToolCall),
        "tool results": _of(parts, ToolResult),
        # One that shows nothing is there for what was signed, which may go on at another part.
        "reasoning": sum(type(part) is Reasoning and not _only_signed(part) for part in parts),
        "signatures": sum(_is_signed(part) for part in parts),
        "images": media.count("image"),
        "other media": len(media) - media.count("image"),
    }


def _all(message: Message) -> Iterable[Part]:
    for part in message.content:
        yield part
        if type(part) is ToolResult:
            yield from part.content


def _only_signed(part: Reasoning) -> bool:
    """Also a part of a hosted tool, which clients of other dialects carry as an opaque thought."""
    signature = part.signature
    return signature is not None and not part.text and (not part.redacted or signature.id == FOREIGN)


def _is_signed(part: Part) -> bool:
    """Not by a name that only says who wrote a thought, which is counted as reasoning already."""
    signature = getattr(part, "signature", None)
    return signature is not None and signature.id not in (FOREIGN, PHASE, UNSIGNED)


def _of(parts: list[Part], kind: type[Part]) -> int:
    return sum(type(part) is kind for part in parts)


def _rewritten_ids(asked: Asked) -> int:
    """Calls that go by another id upstream."""
    planned, trail = asked.planned, asked.planned.trail
    if trail is None:
        return 0
    before = {
        f"$.messages[{number}].content[{at}]": part.id
        for number, message in enumerate(planned.client.messages)
        for at, part in enumerate(message.content)
        if type(part) is ToolCall
    }
    return sum(
        type(part) is ToolCall and before.get(trail.of(part), part.id) != part.id
        for message in planned.upstream.messages
        for part in message.content
    )
