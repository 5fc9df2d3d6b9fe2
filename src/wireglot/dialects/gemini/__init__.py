"""Google Gemini: generateContent and streamGenerateContent."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.gemini import errors, render_request, response, wrapped
from wireglot.dialects.gemini.names import OWN
from wireglot.dialects.gemini.stream_writer import GeminiWriter
from wireglot.dialects.gemini.wrapped import WrappedReader
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request


class GeminiDialect:
    """Takes wrapped bodies too (R-T-04), and never wraps one."""

    name = OWN

    def parse_request(self, body: dict[str, Any], context: Context) -> Request:
        return wrapped.parse_request(body, context)

    def render_response(
        self, answer: Response, context: Context, request: Request | None = None
    ) -> Rendered[dict[str, Any]]:
        return response.render_response(answer, context, request)

    def render_error(self, error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
        return errors.render_error(error, context)

    def stream_writer(self, context: Context, request: Request | None = None) -> GeminiWriter:
        return GeminiWriter(context)

    def render_request(self, request: Request, context: Context) -> Rendered[dict[str, Any]]:
        return render_request.render_request(request, context)

    def parse_response(self, body: dict[str, Any], context: Context) -> Response:
        return wrapped.parse_response(body, context)

    def parse_error(self, body: Any, status: int = 0) -> ApiError | None:
        return errors.parse_error(body, status)

    def stream_reader(self, context: Context) -> WrappedReader:
        return WrappedReader(context)


DIALECT = GeminiDialect()
