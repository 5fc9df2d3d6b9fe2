"""OpenAI's Chat Completions, as one value."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.openai_chat import errors
from wireglot_core.dialects.openai_chat.parse_request import parse_request
from wireglot_core.dialects.openai_chat.places import PLACES
from wireglot_core.dialects.openai_chat.render_request import render_request
from wireglot_core.dialects.openai_chat.response import parse_response, render_response
from wireglot_core.dialects.openai_chat.stream_reader import ChatReader
from wireglot_core.dialects.openai_chat.stream_writer import ChatWriter
from wireglot_core.dialects.openai_chat.surface import SURFACE
from wireglot_core.ir.errors import ApiError


def _render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    return Rendered(errors.render_error(error))


DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=_render_error,
    stream_writer=ChatWriter,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=errors.parse_error,
    stream_reader=ChatReader,
    places=PLACES,
)
