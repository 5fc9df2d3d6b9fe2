"""OpenAI's Chat Completions API, and the many servers that speak it (Kimi's among them)."""

from __future__ import annotations

from typing import Any

from wireglot.dialects.base import Context, Rendered, StreamReader, StreamWriter
from wireglot.dialects.openai_chat import errors
from wireglot.dialects.openai_chat.extras import NAME
from wireglot.dialects.openai_chat.parse_request import parse_request
from wireglot.dialects.openai_chat.render_request import render_request
from wireglot.dialects.openai_chat.response import parse_response, render_response
from wireglot.dialects.openai_chat.stream_reader import ChatReader
from wireglot.dialects.openai_chat.stream_writer import ChatWriter
from wireglot.ir.errors import ApiError
from wireglot.ir.outcome import Response
from wireglot.ir.request import Request


class OpenAIChat:
    name = NAME

    def parse_request(self, body: dict[str, Any], context: Context) -> Request:
        return parse_request(body, context)

    def render_response(
        self, response: Response, context: Context, request: Request | None = None
    ) -> Rendered[dict[str, Any]]:
        return render_response(response, context, request)

    def render_error(self, error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
        return Rendered(errors.render_error(error))

    def stream_writer(self, context: Context, request: Request | None = None) -> StreamWriter:
        return ChatWriter(context, request)

    def render_request(self, request: Request, context: Context) -> Rendered[dict[str, Any]]:
        return render_request(request, context)

    def parse_response(self, body: dict[str, Any], context: Context) -> Response:
        return parse_response(body, context)

    def parse_error(self, body: Any, status: int = 0) -> ApiError | None:
        return errors.parse_error(body, status)

    def stream_reader(self, context: Context) -> StreamReader:
        return ChatReader(context)


DIALECT = OpenAIChat()
