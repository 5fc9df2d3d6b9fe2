"""A recorded exchange as a test: its translation must be the same as when it was exported."""

from __future__ import annotations

import os
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from wireglot.http.redaction import MASK
from wireglot_core.traces.bodies import UnreadableBody, whole
from wireglot_core.traces.diff import Difference
from wireglot_core.traces.file import read_trace
from wireglot_core.traces.replay import Replayed, answer_differences
from wireglot_core.traces.replay import replay as translated_again
from wireglot_core.traces.trace import Trace, TraceFrame, TraceMessage

_SECONDS: Final = 300
_NOT_SENT: Final = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})


def replay(trace: Trace | bytes | str | os.PathLike[str], *, gateway: str = "", key: str = "") -> Replayed:
    """Translate an exported trace again, offline, and fail with an AssertionError that says the differences
    by JSON pointers, or why nothing could be compared.

    `trace` is a file, its bytes, or the result of `read_trace`. With `gateway`, the URL of one, the client's
    request is sent to it instead (with a client `key`, where it needs one), and the answer compared with the
    recorded one: for models that answer alike each time, such as the demo model or a scripted upstream. Ids,
    times and the name of the model are not compared. Raises `BadTrace` if the file is not a trace.
    """
    if isinstance(trace, Trace):
        recorded, name = trace, trace.row.id
    elif isinstance(trace, bytes):
        recorded = read_trace(trace)
        name = recorded.row.id
    else:
        recorded, name = read_trace(Path(trace).read_bytes()), os.fspath(trace)
    again = _sent_again(recorded, gateway, key) if gateway else translated_again(recorded)
    name = f"{name or 'the trace'}: "
    notes = "".join(f"\n  note: {note}" for note in again.notes)
    if not again.compared:
        raise AssertionError(f"{name}nothing of it can be replayed{notes}")
    if not again.is_same:
        found = "".join(f"\n  {line}" for line in again.report().splitlines())
        how = "answered" if gateway else "translated"
        raise AssertionError(f"{name}{how} otherwise than it was recorded (was -> is){found}{notes}")
    return again


def _sent_again(trace: Trace, gateway: str, key: str) -> Replayed:
    was = trace.answer
    if not was.status:
        return Replayed(notes=["no answer was recorded"])
    if trace.request.truncated or trace.request.base64:
        return Replayed(notes=["the client's request was not recorded whole, as text"])
    now = _answer(trace, gateway, key)
    if now.status != was.status:
        found = [Difference("/status", str(was.status), f"{now.status} {now.body[:300]}".strip())]
        return Replayed(answer=found, compared=["answer"])
    try:
        one, other = (
            whole(each, trace.row.dialect, f"the {which} answer")
            for which, each in (("recorded", was), ("gateway's", now))
        )
    except UnreadableBody as fault:
        return Replayed(notes=[f"the answer was not compared: {fault}"])
    return Replayed(answer=answer_differences(one, other), compared=["answer"])


def _answer(trace: Trace, gateway: str, key: str) -> TraceMessage:
    """Raises an AssertionError if the gateway cannot be reached."""
    request, address = trace.request, urlsplit(gateway)
    path = urlsplit(request.url)
    mask = MASK.decode()
    headers = {
        name: value
        for name, value in request.headers
        if name.lower() not in _NOT_SENT and mask not in value  # secrets are not in a trace
    }
    if key:
        headers["authorization"] = f"Bearer {key}"
    if address.scheme not in ("http", "https") or not address.netloc:
        raise ValueError(f"gateway: expected a URL such as http://127.0.0.1:8484, got {gateway!r}")
    make = HTTPSConnection if address.scheme == "https" else HTTPConnection
    connection = make(address.netloc, timeout=_SECONDS)
    try:
        target = f"{path.path}?{path.query}" if path.query else path.path
        connection.request(request.method or "POST", target, request.body.encode(), headers)
        got = connection.getresponse()
        body = got.read().decode("utf-8", "replace")
    except (OSError, HTTPException) as fault:
        raise AssertionError(f"{gateway} does not answer: {fault}") from None
    finally:
        connection.close()
    if trace.answer.frames:
        return TraceMessage(status=got.status, frames=[TraceFrame(0.0, body)], body=body)
    return TraceMessage(status=got.status, body=body)
