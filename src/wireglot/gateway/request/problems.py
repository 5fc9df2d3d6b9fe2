"""Converts any exception that ends a request to the error that is reported to its caller."""

from __future__ import annotations

import traceback
from pathlib import PurePath

import msgspec

from wireglot.gateway.entry.callers import ADMIN_HEADER, LOCAL
from wireglot.gateway.entry.guard import is_forwarded, is_loopback
from wireglot.gateway.errors import RequestError, cleaned
from wireglot.gateway.observe.log import Note
from wireglot.gateway.request import account_details
from wireglot.gateway.request.account_details import without_account
from wireglot.gateway.request.exchange import Exchange
from wireglot.gateway.settings import Provider
from wireglot.http.redaction import Redactor
from wireglot_core.extras import own_file
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.failures import AttemptFailed
from wireglot_core.wire.json import BadJson, decode, encode_text


def error_of(problem: Exception, request_id: str, redactor: Redactor, note: Note) -> ApiError:
    """Our own errors unchanged, an upstream's without our secrets; anything else is a bug, whose details are
    only logged."""
    if isinstance(problem, RequestError):
        return problem.error
    if isinstance(problem, AttemptFailed):
        wait = problem.reported_wait if problem.reported_wait is not None else problem.error.retry_after
        return msgspec.structs.replace(cleaned(problem.error, redactor.text), retry_after=wait)
    note_bug(problem, request_id, note)
    return RequestError("internal", "an internal error; it has been logged").error


def is_final(problem: Exception) -> bool:
    """Whether the caller's SDK is told not to retry: only if repeating cannot help. Never in an outage,
    however long: agents that survive it without a gateway would end."""
    if isinstance(problem, RequestError):
        return problem.final
    return isinstance(problem, AttemptFailed) and problem.blame in ("credential", "quota", "refused")


def shown(error: ApiError, exchange: Exchange) -> ApiError:
    """An upstream's error as its caller sees it: without the operator's account, unless it is the caller's
    own."""
    if tells_all(exchange):
        return error
    return without_account(error, *_asked(exchange))


def may_pass(error: ApiError, body: bytes, exchange: Exchange) -> bool:
    """Whether an upstream's error may be passed on unchanged."""
    if tells_all(exchange):
        return True
    try:
        text = encode_text(decode(body))
    except BadJson:
        text = body.decode("utf-8", "replace")
    return account_details.may_pass(error, text, *_asked(exchange))


def _asked(exchange: Exchange) -> tuple[Provider | None, str]:
    record = exchange.record
    return exchange.job.settings.providers.get(record.provider), record.upstream_url


def tells_all(exchange: Exchange) -> bool:
    """Whether the caller may know hosts, variables and lines of the configuration: a local user of a gateway
    that requires no keys, not behind a proxy; its admin; or a key with that permission."""
    caller, head = exchange.job.caller, exchange.job.head
    if ADMIN_HEADER in head.headers:
        return True  # no request gets this far with a wrong one
    if caller is not LOCAL:
        return caller.key is not None and caller.key.full_errors
    return is_loopback(head.peer) and not is_forwarded(head)


def note_bug(bug: Exception, request_id: str, note: Note) -> None:
    note("error", "bug", id=request_id, type=type(bug).__name__, where=_place(bug))


def _place(bug: BaseException) -> str:
    """Where it happened: file and line of our innermost frames; never a value."""
    frames = traceback.extract_tb(bug.__traceback__)
    ours = [(own, frame.lineno) for frame in frames if (own := own_file(frame.filename))]
    places = ours or [(PurePath(frame.filename).name, frame.lineno) for frame in frames]
    return " < ".join(f"{file}:{line}" for file, line in places[-1:-5:-1])


def redacted(body: bytes, redactor: Redactor) -> bytes:
    """An upstream's own error, byte for byte unless it repeats a secret, in whatever spelling JSON allows."""
    try:
        text = encode_text(decode(body))
    except BadJson:
        return redactor.data(body)
    reported = redactor.text(text)
    return redactor.data(body) if reported == text else reported.encode()
