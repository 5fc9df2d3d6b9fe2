"""OpenAI Responses, as one value."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.openai_responses.errors import parse_error, render_error
from wireglot_core.dialects.openai_responses.parse_request import parse_request
from wireglot_core.dialects.openai_responses.places import PLACES
from wireglot_core.dialects.openai_responses.render_request import render_request
from wireglot_core.dialects.openai_responses.response import parse_response, render_response
from wireglot_core.dialects.openai_responses.stream_reader import ResponsesReader
from wireglot_core.dialects.openai_responses.stream_writer import ResponsesWriter
from wireglot_core.dialects.openai_responses.surface import SURFACE

DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=ResponsesWriter,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=ResponsesReader,
    places=PLACES,
)
