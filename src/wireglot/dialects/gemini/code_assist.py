"""The Code Assist envelope around Gemini, which Gemini CLI speaks: `{model, project, request}` and
`{response, traceId}`.

What is inside is Gemini's own, so every value keeps that dialect's name; the envelope is spelling and
stands in the form of the request or response. Bare bodies are taken too. Wrapper fields: snake_case
outside, camelCase inside.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.fields import Fields, own_form
from wireglot.dialects.gemini import errors, parse_request, render_request, response
from wireglot.dialects.gemini.names import OWN
from wireglot.dialects.gemini.parse_request import bare_model
from wireglot.dialects.gemini.stream_reader import GeminiReader
from wireglot.dialects.gemini.stream_writer import GeminiWriter
from wireglot.ir.content import Extra
from wireglot.ir.errors import ApiError, ClientFault, UpstreamFault
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request
from wireglot.ir.stream import Event, Finish

_FORM = "code_assist"
_SESSION = ("session_id", "sessionId")


class CodeAssistDialect:
    name = "code-assist"

    def parse_request(self, body: dict[str, Any], context: Context) -> Request:
        fields = Fields(body)
        if fields.value.get("request") is None:
            return parse_request.parse_request(body, context)
        inner = dict(fields.object("request").value)
        envelope = {key: item for key, item in body.items() if key != "request"}
        session = {key: inner.pop(key) for key in _SESSION if key in inner}
        request = _parse_inner(inner, context)
        model = bare_model(fields.text_or("model")) or request.model
        form = {"envelope": envelope, "session": session}
        return msgspec.structs.replace(request, model=model, extra=_with_form(request.extra, form))

    def render_response(
        self, answer: Response, context: Context, request: Request | None = None
    ) -> Rendered[dict[str, Any]]:
        rendered = response.render_response(answer, context, request)
        inner = rendered.value
        form = own_form(answer.extra, OWN).get(_FORM)
        if form is None:
            inner.pop("responseId", None)
            return Rendered(_wrap(inner, answer.id, {}), rendered.losses)
        if form.get("responseId") == "absent":
            inner.pop("responseId", None)
        return Rendered({"response": inner, **form["envelope"]}, rendered.losses)

    def render_error(self, error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
        return errors.render_error(error, context)

    def stream_writer(self, context: Context, request: Request | None = None) -> GeminiWriter:
        return GeminiWriter(context, _wrap)

    def render_request(self, request: Request, context: Context) -> Rendered[dict[str, Any]]:
        rendered = render_request.render_request(request, context)
        inner = rendered.value
        inner.pop("model", None)
        form = own_form(request.extra, OWN).get(_FORM, {})
        inner.update(form.get("session", {}))
        envelope = dict(form.get("envelope", {}))
        stated = envelope.pop("model", None)
        body: dict[str, Any] = {}
        if type(stated) is str and bare_model(stated) == request.model:
            body["model"] = stated
        elif request.model:
            body["model"] = request.model
        return Rendered({**body, **envelope, "request": inner}, rendered.losses)

    def parse_response(self, body: dict[str, Any], context: Context) -> Response:
        fields = Fields(body, "$", UpstreamFault)
        if fields.value.get("response") is None:
            return response.parse_response(body, context)
        inner = fields.object("response").value
        envelope = {key: item for key, item in body.items() if key != "response"}
        answer = response.parse_response(inner, context, _trace(envelope))
        form: dict[str, Any] = {"envelope": envelope}
        if not inner.get("responseId"):
            form["responseId"] = "absent"
        return msgspec.structs.replace(answer, extra=_with_form(answer.extra, form))

    def parse_error(self, body: Any, status: int = 0) -> ApiError | None:
        return errors.parse_error(body, status)

    def stream_reader(self, context: Context) -> CodeAssistReader:
        return CodeAssistReader(context)


class CodeAssistReader:
    """A Gemini reader that opens each envelope and remembers what the last one said."""

    def __init__(self, context: Context) -> None:
        self._envelope: dict[str, Any] = {}
        self._bare = True
        self._reader = GeminiReader(context, self._unwrap)

    def read(self, data: bytes) -> list[Event]:
        return self._reader.read(data)

    def end(self) -> list[Event]:
        events = self._reader.end()
        last = events[-1] if events else None
        if type(last) is Finish and not self._bare:
            form = {"envelope": self._envelope}
            events[-1] = msgspec.structs.replace(last, extra=_with_form(last.extra, form))
        return events

    def _unwrap(self, chunk: dict[str, Any]) -> dict[str, Any]:
        inner = chunk.get("response")
        if inner is None:
            return chunk
        if type(inner) is not dict:
            raise UpstreamFault("expected an object", "$.response")
        self._bare = False
        self._envelope.update({key: item for key, item in chunk.items() if key != "response"})
        if inner.get("responseId") or not _trace(chunk):
            return inner
        return {**inner, "responseId": _trace(chunk)}


def _parse_inner(inner: dict[str, Any], context: Context) -> Request:
    try:
        return parse_request.parse_request(inner, context)
    except ClientFault as fault:
        raise ClientFault(fault.message, fault.path.replace("$", "$.request", 1)) from None


def _wrap(chunk: dict[str, Any], identifier: str, form: dict[str, Any]) -> dict[str, Any]:
    envelope = {"traceId": identifier} if identifier else {}
    return {"response": chunk, **envelope, **form.get(_FORM, {}).get("envelope", {})}


def _trace(envelope: dict[str, Any]) -> str:
    trace = envelope.get("traceId")
    return trace if type(trace) is str else ""


def _with_form(extra: Extra | None, form: dict[str, Any]) -> Extra:
    if extra is None:
        return Extra(OWN, {}, {_FORM: form})
    return Extra(extra.dialect, extra.fields, {**extra.form, _FORM: form})


DIALECT = CodeAssistDialect()
