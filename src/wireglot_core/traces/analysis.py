"""Adds everything derived to a trace: links between both sides, the places of losses, the summary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import UnknownDialect, dialect, surface
from wireglot_core.ir.content import (
    FOREIGN,
    PHASE,
    UNSIGNED,
    Media,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.content import Message as IrMessage
from wireglot_core.ir.errors import WireglotError
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request
from wireglot_core.providers.spec import UnknownProvider
from wireglot_core.traces.again import RequestAgain, as_shown, ask_again
from wireglot_core.traces.bodies import UnreadableBody, amount, check_linkable, document, whole
from wireglot_core.traces.causes import with_causes
from wireglot_core.traces.links import answer_links, request_links
from wireglot_core.traces.pointer import found, pointer_of
from wireglot_core.traces.target import BadTarget, TraceTarget, target_of
from wireglot_core.traces.trace import Attempt, Link, Trace, TraceCounted, TracedLoss, TraceMessage, traced
from wireglot_core.wire.json import BadJson, decode, encode_text

_GRADES: Final = ("serious", "degraded", "harmless")


def request_summary(
    asked: RequestAgain,
    target: TraceTarget,
    upstream: dict[str, Any],
    losses: Iterable[Loss | TracedLoss] | None = None,
) -> list[TraceCounted]:
    """`losses`: those of this request; without them, those of its translation."""
    context = asked.context
    try:
        sent = dialect(target.dialect).parse_request(upstream, context)
    except WireglotError:  # it is written for others, and may not be read here
        sent = asked.planned.upstream
    ours, theirs = counts(asked.own), counts(sent)
    lines = [TraceCounted(what, ours[what], theirs[what]) for what in ours if ours[what] or theirs[what]]
    ids = _rewritten_ids(asked)
    if ids:
        lines.append(TraceCounted("tool ids rewritten", ids, ids))
    names = len(asked.planned.aliases.names)
    if names:
        lines.append(TraceCounted("tool names rewritten", names, names))
    grades = [loss.grade for loss in (asked.losses if losses is None else losses)]
    lines += [TraceCounted(f"{grade} losses", grades.count(grade), 0) for grade in _GRADES if grade in grades]
    return lines


def counts(request: Request) -> dict[str, int]:
    """The number of parts of each kind in a request, as its dialect divides it."""
    system = [message for message in request.messages if message.role == "system"]
    parts = [part for message in request.messages for part in _all(message)]
    media = [part.kind for part in parts if type(part) is Media]
    return {
        "system blocks": sum(type(part) is Text for message in system for part in message.content),
        "messages": len(request.messages) - len(system),
        "tools": len(request.tools),
        "tool calls": _of(parts, ToolCall),
        "tool results": _of(parts, ToolResult),
        # Reasoning without text is only there for a signature, which may belong to another part.
        "reasoning": sum(type(part) is Reasoning and not _only_signed(part) for part in parts),
        "signatures": sum(_is_signed(part) for part in parts),
        "images": media.count("image"),
        "other media": len(media) - media.count("image"),
    }


def _all(message: IrMessage) -> Iterable[Part]:
    for part in message.content:
        yield part
        if type(part) is ToolResult:
            yield from part.content


def _only_signed(part: Reasoning) -> bool:
    """Includes parts of a hosted tool, which clients of other dialects carry as an opaque thought."""
    signature = part.signature
    return signature is not None and not part.text and (not part.redacted or signature.id == FOREIGN)


def _is_signed(part: Part) -> bool:
    """Whether a part has a real signature: a name that only identifies the writer of a thought does not
    count, since that thought is already counted as reasoning."""
    signature = getattr(part, "signature", None)
    return signature is not None and signature.id not in (FOREIGN, PHASE, UNSIGNED)


def _of(parts: list[Part], kind: type[Part]) -> int:
    return sum(type(part) is kind for part in parts)


def _rewritten_ids(asked: RequestAgain) -> int:
    """Number of calls with another id upstream."""
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


def traced_losses(losses: Iterable[Loss], body: Any, links: Sequence[Link] = ()) -> list[TracedLoss]:
    """Losses in one document of the client (`body`), with their places upstream."""
    known = by_client(links)
    return [placed(traced(loss), body, known) for loss in losses]


def placed(loss: TracedLoss, body: Any, links: Mapping[str, str]) -> TracedLoss:
    """The same loss with pointers: into the client's document as far as the path resolves there, and to the
    upstream place of the nearest part around it. `links`: see `by_client`."""
    pointer = pointer_of(loss.path)
    while pointer and not found(body, pointer):
        pointer = pointer.rpartition("/")[0]
    return replace(loss, pointer=pointer, upstream=_upstream(pointer, links) if pointer else "")


def _upstream(pointer: str, links: Mapping[str, str]) -> str:
    while pointer:
        if pointer in links:
            return links[pointer]
        pointer = pointer.rpartition("/")[0]
    return ""


def by_client(links: Iterable[Link]) -> dict[str, str]:
    """Client place -> upstream place; for a place that became several, the last one: turns come before their
    parts."""
    return {link.client: link.upstream for link in links}


_FAULTS = (WireglotError, UnreadableBody, BadTarget, UnknownDialect, UnknownProvider, BadJson)


def context_of(trace: Trace) -> Context:
    """The context that the codecs had in addition to the body, without secrets."""
    row = trace.row
    prefix = surface(row.dialect).client.call_prefix
    return Context(seed=row.id, now=int(row.at), call_prefix=prefix or Context().call_prefix)


def with_analysis(trace: Trace) -> Trace:
    """Adds links and notes to a trace; existing records are kept. If a body cannot be read, its links stay
    empty and a note says so."""
    notes: list[str] = []
    try:
        check_linkable(trace.request, "the client's request")
        body: dict[str, Any] | None = document(trace.request, "the client's request")
    except UnreadableBody as fault:
        notes.append(f"no links: {fault}")
        body = None
    answer = _with_folded(trace.answer, trace.row.dialect)
    attempts: list[Attempt] = []
    for attempt in trace.attempts:
        reported, answer = _reported(trace, attempt, body, answer, notes)
        attempts.append(reported)
    last = attempts[-1] if attempts else None
    links = by_client(last.links) if last is not None else {}
    answers = by_client(last.answer_links) if last is not None else {}
    losses = [_placed(loss, body, answer, trace.row.dialect, links, answers) for loss in trace.losses]
    new = [note for note in dict.fromkeys(notes) if note not in trace.notes]
    return replace(trace, answer=answer, attempts=attempts, losses=losses, notes=[*trace.notes, *new])


def _reported(
    trace: Trace, attempt: Attempt, body: dict[str, Any] | None, answer: TraceMessage, notes: list[str]
) -> tuple[Attempt, TraceMessage]:
    """The attempt, and the client's answer: its events are linked with the last attempt's."""
    client = trace.row.dialect
    came = _with_folded(attempt.answer, attempt.dialect) if attempt.answer is not None else None
    is_last = attempt is trace.attempts[-1]
    if trace.row.operation == "embed":  # not a conversation, so there are no places to compare
        return replace(attempt, answer=came), answer
    if body is None:
        if is_last and attempt.passthrough:
            answer = _caused(trace, answer, attempt, None)
        return replace(attempt, answer=came), answer
    try:
        target = target_of(attempt)
        check_linkable(attempt.request, "the upstream request")
        sent = document(attempt.request, "the upstream request")
        asked = None if target.passthrough else ask_again(client, body, target, context_of(trace))
        links = request_links(client, body, target, sent, asked=asked)
        losses = attempt.losses or trace.losses
        summary = request_summary(asked, target, sent, losses) if asked is not None else []
    except _FAULTS as fault:
        notes.append(f"no links: {fault}")
        return replace(attempt, answer=came), answer
    if is_last:
        attempt = replace(attempt, answer_links=_answers(trace, attempt, target, asked, answer, notes))
        answer = _caused(trace, answer, attempt, asked)
    places, answers = by_client(links), by_client(attempt.answer_links)
    reported = replace(
        attempt,
        answer=came,
        links=links,
        summary=attempt.summary or summary,
        losses=[_placed(loss, body, answer, client, places, answers) for loss in attempt.losses],
    )
    return reported, answer


def _caused(trace: Trace, answer: TraceMessage, attempt: Attempt, asked: RequestAgain | None) -> TraceMessage:
    if attempt.answer is None:
        return answer
    try:
        row = trace.row
        check_linkable(answer, "the client's answer")
        check_linkable(attempt.answer, "the upstream answer")
        target = target_of(attempt)
        if asked is not None and answer.frames:
            document = amount(answer, row.dialect, "the client's answer").document
            target = as_shown(target, row.dialect, document, asked)
        return with_causes(answer, attempt.answer, row.dialect, target, asked)
    except _FAULTS:
        return answer


def _answers(
    trace: Trace,
    attempt: Attempt,
    target: TraceTarget,
    asked: RequestAgain | None,
    answer: TraceMessage,
    notes: list[str],
) -> list[Link]:
    if attempt.answer is None or not (answer.body or answer.frames):
        return []
    try:
        check_linkable(answer, "the client's answer")
        check_linkable(attempt.answer, "the upstream answer")
        reported = whole(answer, trace.row.dialect, "the client's answer")
        came = whole(attempt.answer, attempt.dialect, "the upstream answer")
        if asked is not None:
            target = as_shown(target, trace.row.dialect, reported, asked)
        return answer_links(trace.row.dialect, reported, target, came, asked=asked)
    except _FAULTS as fault:
        notes.append(f"no links of the answer: {fault}")
        return []


def _with_folded(message: TraceMessage, dialect: str) -> TraceMessage:
    if not message.frames or message.folded or message.truncated:
        return message
    try:
        check_linkable(message, "the stream")
        came = amount(message, dialect, "the stream")
        return replace(message, folded=encode_text(came.document), stops=came.stops)
    except _FAULTS:
        return message


def _placed(
    loss: TracedLoss,
    body: dict[str, Any] | None,
    answer: TraceMessage,
    dialect: str,
    links: dict[str, str],
    answers: dict[str, str],
) -> TracedLoss:
    if loss.pointer:
        return loss
    if loss.document == "request":
        return placed(loss, body, links) if body is not None else loss
    try:
        check_linkable(answer, "the client's answer")
        reported = decode(answer.folded) if answer.folded else whole(answer, dialect, "the client's answer")
        return placed(loss, reported, answers)
    except _FAULTS:
        return loss
