"""An error told again: would the client hear of it what it heard?

A gateway tells errors in words of its own around the upstream's (who was asked, where, and what may help), so
what is compared is what kind of error it is, and that the upstream's words are among those told.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from wireglot.dialects.base import Context, Dialect
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import ApiError, ErrorKind, WireglotError
from wireglot.traces.again import without_error
from wireglot.traces.bodies import Unreadable, document, whole
from wireglot.traces.diff import Difference, outline, shown
from wireglot.traces.trace import Attempt, Trace
from wireglot.wire.json import encode_text

_OURS: Final[frozenset[ErrorKind]] = frozenset({"auth", "permission", "billing"})
"""Of a provider's key: the client's own is none of it, and a gateway says so in its place."""


class NotReplayed(Exception):
    """Why an error is not told again; in words for people."""


def error_differences(trace: Trace, attempt: Attempt) -> list[Difference]:
    """Between the error that the client was told and what the upstream's comes to now."""
    client, upstream = dialect(trace.row.dialect), dialect(attempt.dialect)
    told = told_error(trace, client)
    came = attempt.answer
    if came is None or not (came.body or came.frames):
        raise NotReplayed("no answer of the upstream was recorded")
    try:
        error = upstream.parse_error(whole(came, attempt.dialect, "the upstream answer"), came.status)
    except Unreadable:
        error = None
    if error is None:
        raise NotReplayed("what came from upstream is no error of its dialect: the gateway tells that itself")
    return _compared(told, replace(error, status=error.status or came.status), client)


def refusal_differences(trace: Trace) -> list[Difference]:
    """The same, where nothing went upstream: the request itself may be why."""
    client = dialect(trace.row.dialect)
    told = told_error(trace, client)
    body = document(trace.request, "the client's request")
    try:
        client.parse_request(body, Context(seed=trace.row.id, now=int(trace.row.at)))
    except WireglotError as fault:
        return _words(told, fault.message)
    raise NotReplayed("nothing was sent upstream, and not because of how the request is written")


def told_error(trace: Trace, client: Dialect) -> ApiError:
    """What the client was told. Raises NotReplayed where that is no error."""
    got = trace.answer
    error = client.parse_error(whole(got, trace.row.dialect, "the client's answer"), got.status)
    if error is None:
        raise NotReplayed("only one side is an error")
    return error


def stream_error_differences(was: ApiError, now: dict[str, Any], client: Dialect) -> list[Difference]:
    """Of a stream that ended in one. Where the upstream broke off, only that it did is the same."""
    error = client.parse_error(now)
    if error is None:
        return [Difference("/error", encode_text(was.message), "null")]
    return _kinds(was.kind, error.kind)


def beginning_differences(was: dict[str, Any], now: dict[str, Any], client: Dialect) -> list[Difference]:
    """Of a stream whose client left: what it got is how the answer begins that is made now."""
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


def _compared(told: ApiError, error: ApiError, client: Dialect) -> list[Difference]:
    found = _words(told, error.message)
    if error.kind in _OURS:
        return found
    status = client.surface.status(error)
    again = client.parse_error(client.render_error(replace(error, status=status), Context()).value, status)
    return [*_kinds(told.kind, again.kind if again is not None else error.kind), *found]


def _words(told: ApiError, message: str) -> list[Difference]:
    if message.strip() in told.message:
        return []
    return [Difference("/error/message", encode_text(told.message), encode_text(message))]


def _kinds(was: ErrorKind, now: ErrorKind) -> list[Difference]:
    return [Difference("/error/kind", encode_text(was), encode_text(now))] if was != now else []
