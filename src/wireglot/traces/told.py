"""A trace with all that can be told from it: links between both sides, the places of losses, the summary."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from wireglot.dialects.base import Context
from wireglot.dialects.registry import UnknownDialect, surface
from wireglot.ir.errors import WireglotError
from wireglot.providers.spec import UnknownProvider
from wireglot.traces.again import Asked, as_shown, ask_again
from wireglot.traces.answer_links import answer_links
from wireglot.traces.bodies import Unreadable, amount, check_linkable, document, whole
from wireglot.traces.causes import with_causes
from wireglot.traces.links import request_links
from wireglot.traces.losses import by_client, placed
from wireglot.traces.summary import request_summary
from wireglot.traces.target import BadTarget, Target, target_of
from wireglot.traces.trace import Attempt, Link, Message, Trace, TracedLoss
from wireglot.wire.json import BadJson, decode, encode_text

_FAULTS = (WireglotError, Unreadable, BadTarget, UnknownDialect, UnknownProvider, BadJson)


def context_of(trace: Trace) -> Context:
    """What the codecs were told beside the body, as far as they may tell it again: no secret."""
    row = trace.row
    prefix = surface(row.dialect).client.call_prefix
    return Context(seed=row.id, now=int(row.at), call_prefix=prefix or Context().call_prefix)


def with_told(trace: Trace) -> Trace:
    """What is there already stays. A body that cannot be read leaves its links empty, and a note says so."""
    notes: list[str] = []
    try:
        check_linkable(trace.request, "the client's request")
        body: dict[str, Any] | None = document(trace.request, "the client's request")
    except Unreadable as fault:
        notes.append(f"no links: {fault}")
        body = None
    answer = _with_folded(trace.answer, trace.row.dialect)
    attempts: list[Attempt] = []
    for attempt in trace.attempts:
        told, answer = _told(trace, attempt, body, answer, notes)
        attempts.append(told)
    last = attempts[-1] if attempts else None
    links = by_client(last.links) if last is not None else {}
    answers = by_client(last.answer_links) if last is not None else {}
    losses = [_placed(loss, body, answer, trace.row.dialect, links, answers) for loss in trace.losses]
    new = [note for note in dict.fromkeys(notes) if note not in trace.notes]
    return replace(trace, answer=answer, attempts=attempts, losses=losses, notes=[*trace.notes, *new])


def _told(
    trace: Trace, attempt: Attempt, body: dict[str, Any] | None, answer: Message, notes: list[str]
) -> tuple[Attempt, Message]:
    """The attempt, and the client's answer: its events are linked with the last attempt's."""
    client = trace.row.dialect
    came = _with_folded(attempt.answer, attempt.dialect) if attempt.answer is not None else None
    is_last = attempt is trace.attempts[-1]
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
    told = replace(
        attempt,
        answer=came,
        links=links,
        summary=attempt.summary or summary,
        losses=[_placed(loss, body, answer, client, places, answers) for loss in attempt.losses],
    )
    return told, answer


def _caused(trace: Trace, answer: Message, attempt: Attempt, asked: Asked | None) -> Message:
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
        return with_causes(answer, attempt.answer, row.dialect, target, asked, row.asked)
    except _FAULTS:
        return answer


def _answers(
    trace: Trace,
    attempt: Attempt,
    target: Target,
    asked: Asked | None,
    answer: Message,
    notes: list[str],
) -> list[Link]:
    if attempt.answer is None or not (answer.body or answer.frames):
        return []
    try:
        check_linkable(answer, "the client's answer")
        check_linkable(attempt.answer, "the upstream answer")
        told = whole(answer, trace.row.dialect, "the client's answer")
        came = whole(attempt.answer, attempt.dialect, "the upstream answer")
        if asked is not None:
            target = as_shown(target, trace.row.dialect, told, asked)
        return answer_links(trace.row.dialect, told, target, came, asked=asked)
    except _FAULTS as fault:
        notes.append(f"no links of the answer: {fault}")
        return []


def _with_folded(message: Message, dialect: str) -> Message:
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
    answer: Message,
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
        told = decode(answer.folded) if answer.folded else whole(answer, dialect, "the client's answer")
        return placed(loss, told, answers)
    except _FAULTS:
        return loss
