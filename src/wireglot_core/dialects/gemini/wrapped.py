"""Unwraps bodies in the Code Assist envelope. Bare bodies pass unchanged: either form may come anywhere.

The inner document is plain Gemini, so every value keeps that dialect's name; the envelope is only spelling
and is kept in the form of the request or response, where only the `code-assist` dialect looks for it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.gemini import parse_request as requests
from wireglot_core.dialects.gemini import response as responses
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.parse_request import bare_model
from wireglot_core.dialects.gemini.stream_reader import GeminiReader
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ClientFault, UpstreamFault
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.ir.stream import Event, Finish

FORM = "code_assist"
_SESSION = ("session_id", "sessionId")


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    if fields.value.get("request") is None or "contents" in body:
        return requests.parse_request(body, context)
    inner = dict(fields.object("request").value)
    envelope = {key: item for key, item in body.items() if key != "request"}
    session = {key: inner.pop(key) for key in _SESSION if key in inner}
    try:
        request = requests.parse_request(inner, context)
    except ClientFault as fault:
        raise ClientFault(fault.message, fault.path.replace("$", "$.request", 1)) from None
    model = bare_model(fields.text_or("model")) or request.model
    extra = _with_form(request.extra, {"envelope": envelope, "session": session})
    return msgspec.structs.replace(request, model=model, extra=extra)


def parse_response(body: dict[str, Any], context: Context) -> Response:
    fields = Fields(body, "$", UpstreamFault)
    if fields.value.get("response") is None or "candidates" in body:
        return responses.parse_response(body, context)
    inner = fields.object("response").value
    envelope = {key: item for key, item in body.items() if key != "response"}
    answer = responses.parse_response(inner, context, _trace(envelope))
    form: dict[str, Any] = {"envelope": envelope}
    if not inner.get("responseId"):
        form["responseId"] = "absent"
    return msgspec.structs.replace(answer, extra=_with_form(answer.extra, form))


class WrappedReader(GeminiReader):
    """Opens each envelope, and reports the fields of the last one at the end."""

    _envelope: dict[str, Any] | None = None

    def end(self) -> list[Event]:
        events = super().end()
        last = events[-1] if events else None
        if type(last) is Finish and self._envelope is not None:
            extra = _with_form(last.extra, {"envelope": self._envelope})
            events[-1] = msgspec.structs.replace(last, extra=extra)
        return events

    def _unwrap(self, chunk: dict[str, Any]) -> dict[str, Any]:
        if "response" not in chunk or "candidates" in chunk:
            return chunk
        inner = chunk["response"] or {}
        if type(inner) is not dict:
            raise UpstreamFault("expected an object", "$.response")
        envelope = {key: item for key, item in chunk.items() if key != "response"}
        self._envelope = envelope if self._envelope is None else self._envelope | envelope
        if inner.get("responseId") or not _trace(chunk):
            return inner
        return {**inner, "responseId": _trace(chunk)}


def _trace(envelope: dict[str, Any]) -> str:
    """The trace id, which is used as response id if there is none."""
    trace = envelope.get("traceId")
    return trace if type(trace) is str else ""


def _with_form(extra: Extra | None, form: dict[str, Any]) -> Extra:
    if extra is None:
        return Extra(OWN, {}, {FORM: form})
    return Extra(extra.dialect, extra.fields, {**extra.form, FORM: form})
