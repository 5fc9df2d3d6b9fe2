"""Translates a recorded exchange again, to check whether it would be sent upstream and returned as it was.

Nothing is sent. The client's request is translated for the recorded target, and compared with what was sent
upstream; the upstream's answer is translated back, and compared with what the client got. Ids made by
Wireglot, times, and sealed state (no trace contains the secret) do not count as differences; nor does
spelling, as defined in `canonical.py`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import UnknownDialect, dialect
from wireglot_core.ir.errors import ApiError, ErrorKind, WireglotError
from wireglot_core.ir.stream import Event, StreamFailed, fold, unfold
from wireglot_core.providers.spec import UnknownProvider
from wireglot_core.traces.again import (
    UNREPORTED,
    USAGE,
    RequestAgain,
    StreamAgain,
    answer_again,
    are_made_up,
    as_shown,
    ask_again,
    finished,
    folded,
    without_error,
)
from wireglot_core.traces.analysis import context_of, traced_losses
from wireglot_core.traces.bodies import UnreadableBody, amount, document, payload, whole
from wireglot_core.traces.canonical import canonical_request
from wireglot_core.traces.diff import Difference, differences, outline, shown
from wireglot_core.traces.target import BadTarget, TraceTarget, target_of
from wireglot_core.traces.trace import Attempt, Trace, TracedLoss
from wireglot_core.wire.json import encode_text

_OURS: Final[frozenset[ErrorKind]] = frozenset({"auth", "permission", "billing"})
"""Errors about a provider's key: the client's own key is not concerned, so a gateway reports another
error."""


class NotReplayed(Exception):
    """Why an error is not compared; the message is for users."""


def error_differences(trace: Trace, attempt: Attempt) -> list[Difference]:
    """Differences between the error that the client was sent and what the upstream's error is translated to
    now."""
    client, upstream = dialect(trace.row.dialect), dialect(attempt.dialect)
    reported = reported_error(trace, client)
    came = attempt.answer
    if came is None or not (came.body or came.frames):
        raise NotReplayed("no answer of the upstream was recorded")
    try:
        error = upstream.parse_error(whole(came, attempt.dialect, "the upstream answer"), came.status)
    except UnreadableBody:
        error = None
    if error is None:
        raise NotReplayed(
            "the upstream answer is not an error of its dialect: the gateway reports that itself"
        )
    return _compared(reported, replace(error, status=error.status or came.status), client)


def refusal_differences(trace: Trace) -> list[Difference]:
    """The same for a request that was not sent upstream: the request itself may be the cause."""
    client = dialect(trace.row.dialect)
    reported = reported_error(trace, client)
    body = document(trace.request, "the client's request")
    try:
        client.parse_request(body, Context(seed=trace.row.id, now=int(trace.row.at)))
    except WireglotError as fault:
        return _words(reported, fault.message)
    raise NotReplayed("nothing was sent upstream, and not because of how the request is written")


def reported_error(trace: Trace, client: Dialect) -> ApiError:
    """The error that the client was sent. Raises NotReplayed if it was not an error."""
    got = trace.answer
    error = client.parse_error(whole(got, trace.row.dialect, "the client's answer"), got.status)
    if error is None:
        raise NotReplayed("only one side is an error")
    return error


def stream_error_differences(was: ApiError, now: dict[str, Any], client: Dialect) -> list[Difference]:
    """Differences for a stream that ended in an error. If the upstream broke off, only that fact is
    compared."""
    error = client.parse_error(now)
    if error is None:
        return [Difference("/error", encode_text(was.message), "null")]
    return _kinds(was.kind, error.kind)


def beginning_differences(was: dict[str, Any], now: dict[str, Any], client: Dialect) -> list[Difference]:
    """For a stream whose client disconnected: differences unless what it got is the beginning of the new
    answer."""
    one, other = (outline(client.parse_response(without_error(each), Context())) for each in (was, now))
    found = [
        Difference(f"/{name}", shown(one[name]), shown(other[name][: len(one[name])]))
        for name in ("text", "reasoning")
        if not other[name].startswith(one[name])
    ]
    begun, made = ([call["name"] for call in each["calls"]] for each in (one, other))
    if made[: len(begun)] != begun:
        found.append(Difference("/calls", shown(begun), shown(made)))
    return found


def _compared(reported: ApiError, error: ApiError, client: Dialect) -> list[Difference]:
    found = _words(reported, error.message)
    if error.kind in _OURS:
        return found
    status = client.surface.status(error)
    again = client.parse_error(client.render_error(replace(error, status=status), Context()).value, status)
    return [*_kinds(reported.kind, again.kind if again is not None else error.kind), *found]


def _words(reported: ApiError, message: str) -> list[Difference]:
    if message.strip() in reported.message:
        return []
    return [Difference("/error/message", encode_text(reported.message), encode_text(message))]


def _kinds(was: ErrorKind, now: ErrorKind) -> list[Difference]:
    return [Difference("/error/kind", encode_text(was), encode_text(now))] if was != now else []


_FAULTS: Final = (WireglotError, UnreadableBody, BadTarget, UnknownDialect, UnknownProvider)
_OK: Final = 200
_BAD: Final = 300


class Replayed(msgspec.Struct, frozen=True):
    request: list[Difference] = []
    """Differences between the recorded upstream request and the one made now."""
    answer: list[Difference] = []
    """Differences between the client's recorded answer and the one made now from the recorded upstream
    answer."""
    losses: list[TracedLoss] = []
    """Losses of the request, as they are reported now."""
    notes: list[str] = []
    """What could not be compared, and why."""
    compared: list[str] = []
    """What was compared: `request`, `answer`."""

    @property
    def is_same(self) -> bool:
        return bool(self.compared) and not self.request and not self.answer

    def report(self) -> str:
        """The differences as text; empty if there are none."""
        lines = [f"upstream request {each}" for each in self.request]
        lines += [f"client answer {each}" for each in self.answer]
        return "\n".join(lines)


def replay(trace: Trace) -> Replayed:
    """Replays a trace. Never raises: what cannot be compared becomes a note."""
    notes: list[str] = []
    compared: list[str] = []
    request: list[Difference] = []
    answer: list[Difference] = []
    losses: list[TracedLoss] = []
    attempt = trace.attempts[-1] if trace.attempts else None
    if attempt is None:
        return _refused(trace)
    asked: RequestAgain | None = None
    try:
        target = target_of(attempt)
        body = document(trace.request, "the client's request")
        sent = document(attempt.request, "the upstream request")
        if not target.passthrough:
            asked = ask_again(trace.row.dialect, body, target, context_of(trace))
            losses = traced_losses(asked.losses, body)
        now = asked.document if asked is not None else _passed(body, target)
        request = _requests(sent, now, target, notes)
        compared.append("request")
    except _FAULTS as fault:
        notes.append(f"the request was not compared: {fault}")
    try:
        answer = _answers(trace, attempt, asked, notes)
        compared.append("answer")
    except (NotReplayed, *_FAULTS) as fault:
        notes.append(f"the answer was not compared: {fault}")
    return Replayed(request, answer, losses, notes, compared)


def _refused(trace: Trace) -> Replayed:
    try:
        return Replayed(answer=refusal_differences(trace), compared=["answer"])
    except (NotReplayed, *_FAULTS) as fault:
        return Replayed(notes=["nothing was sent upstream", f"the answer was not compared: {fault}"])


def _passed(body: dict[str, Any], target: TraceTarget) -> dict[str, Any]:
    named = dialect(target.dialect).surface.model_field
    whole = {**body, named: target.model} if named and target.model and named in body else body
    return finished(whole, target)


def _requests(
    sent: dict[str, Any], now: dict[str, Any], target: TraceTarget, notes: list[str]
) -> list[Difference]:
    if not target.fields and not target.without:
        set_there = [name for name in sent if name not in now]
        if set_there:
            notes.append(f"taken as set by the gateway itself: {', '.join(sorted(set_there))}")
            now = {**now, **{name: sent[name] for name in set_there}}
    found = differences(sent, now)
    if found and _mean_the_same(sent, now, target):
        notes.append("the upstream request is spelled differently now, and says the same")
        return []
    return found


def _mean_the_same(sent: dict[str, Any], now: dict[str, Any], target: TraceTarget) -> bool:
    spoken = dialect(target.dialect)
    try:
        one, other = (canonical_request(spoken.parse_request(each, Context())) for each in (sent, now))
    except WireglotError:
        return False
    return one == other and sent.get("model") == now.get("model")


def _answers(
    trace: Trace, attempt: Attempt, asked: RequestAgain | None, notes: list[str]
) -> list[Difference]:
    came, got = attempt.answer, trace.answer
    if came is None or not (came.body or came.frames):
        raise NotReplayed("no answer of the upstream was recorded")
    if not (_OK <= came.status < _BAD and _OK <= got.status < _BAD):
        return error_differences(trace, attempt)
    heard = amount(got, trace.row.dialect, "the client's answer")
    reported = heard.document
    target = target_of(attempt)
    client = dialect(trace.row.dialect)
    error = client.parse_error(reported) if got.frames else None
    if target.passthrough:
        now = whole(came, attempt.dialect, "the upstream answer")
    elif asked is None:
        raise NotReplayed("its request could not be translated")
    else:
        shown = target if error is not None else as_shown(target, trace.row.dialect, reported, asked)
        now = _translated(trace, attempt, shown, asked)
    if error is not None:
        return stream_error_differences(error, now, client)
    if heard.stops:
        return beginning_differences(reported, now, client)
    left = UNREPORTED
    if target.passthrough or (trace.row.tokens is not None and trace.row.tokens.source == "estimated"):
        left |= USAGE  # which the gateway requests, removes or estimates itself
    return answer_differences(reported, now, left)


def _translated(trace: Trace, attempt: Attempt, target: TraceTarget, asked: RequestAgain) -> dict[str, Any]:
    came = attempt.answer
    assert came is not None
    client, upstream = dialect(target.source or trace.row.dialect), dialect(target.dialect)
    context = asked.context
    if came.frames:
        if came.truncated:
            raise NotReplayed("only the beginning of the upstream's stream was recorded")
        reader = upstream.stream_reader(context)
        events: list[Event] = [*reader.read(payload(came)), *reader.end()]
    else:
        events = list(unfold(upstream.parse_response(document(came, "the upstream answer"), context)))
    if trace.answer.frames:
        stream = StreamAgain(client.name, target, asked)
        return folded(client.name, stream.writer.write(stream.events(events)))
    try:
        response = fold(events)
    except StreamFailed as failed:
        raise NotReplayed(f"the upstream's stream failed: {failed}") from None
    return answer_again(client.name, response, replace(target, source=""), asked, context).document


def answer_differences(
    was: dict[str, Any], now: dict[str, Any], left: frozenset[str] = UNREPORTED
) -> list[Difference]:
    """Differences between two answers, ignoring the fields in `left` and ids made by Wireglot."""
    one, other = ({name: value for name, value in each.items() if name not in left} for each in (was, now))
    return [
        each
        for each in differences(one, other)
        if not are_made_up(each.before.strip('"'), each.after.strip('"'))
    ]
