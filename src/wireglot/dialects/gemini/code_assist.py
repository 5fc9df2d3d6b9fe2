"""The Code Assist envelope around Gemini, which Gemini CLI speaks.

Requests are `{model, project, request: {...}}`, answers and chunks `{response: {...}, traceId}`; snake_case
outside, camelCase inside. `wrapped.py` opens them; here they are put on.
"""

from __future__ import annotations

from typing import Any

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.fields import own_form
from wireglot.dialects.gemini import errors, render_request, response, wrapped
from wireglot.dialects.gemini.names import OWN
from wireglot.dialects.gemini.parse_request import bare_model
from wireglot.dialects.gemini.stream_writer import GeminiWriter
from wireglot.dialects.gemini.wrapped import FORM, WrappedReader
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request


class CodeAssistDialect:
    name = "code-assist"

    def parse_request(self, body: dict[str, Any], context: Context) -> Request:
        return wrapped.parse_request(body, context)

    def render_response(
        self, answer: Response, context: Context, request: Request | None = None
    ) -> Rendered[dict[str, Any]]:
        rendered = response.render_response(answer, context, request)
        inner = rendered.value
        form = own_form(answer.extra, OWN).get(FORM)
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
        form = own_form(request.extra, OWN).get(FORM, {})
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
        return wrapped.parse_response(body, context)

    def parse_error(self, body: Any, status: int = 0) -> ApiError | None:
        return errors.parse_error(body, status)

    def stream_reader(self, context: Context) -> WrappedReader:
        return WrappedReader(context)


def _wrap(chunk: dict[str, Any], identifier: str, form: dict[str, Any]) -> dict[str, Any]:
    envelope = {"traceId": identifier} if identifier else {}
    return {"response": chunk, **envelope, **form.get(FORM, {}).get("envelope", {})}


DIALECT = CodeAssistDialect()
