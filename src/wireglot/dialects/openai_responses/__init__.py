"""OpenAI Responses: `POST /v1/responses`."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.base import Context, Rendered, StreamReader, StreamWriter
from wireglot.dialects.openai_responses.errors import parse_error, render_error
from wireglot.dialects.openai_responses.parse_request import parse_request
from wireglot.dialects.openai_responses.render_request import render_request
from wireglot.dialects.openai_responses.response import parse_response, render_response
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.dialects.openai_responses.stream_reader import ResponsesReader
from wireglot.dialects.openai_responses.stream_writer import ResponsesWriter
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request


class OpenAIResponses:
    name = NAME

    def parse_request(self, body: dict[str, Any], context: Context) -> Request:
        return parse_request(body, context)

    def render_response(
        self, response: Response, context: Context, request: Request | None = None
    ) -> Rendered[dict[str, Any]]:
        return render_response(response, context, request)

    def render_error(self, error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
        return render_error(error, context)

    def stream_writer(self, context: Context, request: Request | None = None) -> StreamWriter:
        return ResponsesWriter(context, request)

    def render_request(self, request: Request, context: Context) -> Rendered[dict[str, Any]]:
        return render_request(request, context)

    def parse_response(self, body: dict[str, Any], context: Context) -> Response:
        return parse_response(body, context)

    def parse_error(self, body: Any, status: int = 0) -> ApiError | None:
        return parse_error(body, status)

    def stream_reader(self, context: Context) -> StreamReader:
        return ResponsesReader(context)


DIALECT = OpenAIResponses()
