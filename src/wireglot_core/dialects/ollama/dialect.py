"""Ollama's `/api/chat`, as one value."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.ollama.answer import parse_response, render_response
from wireglot_core.dialects.ollama.errors import parse_error, render_error
from wireglot_core.dialects.ollama.places import PLACES
from wireglot_core.dialects.ollama.request import parse_request, render_request
from wireglot_core.dialects.ollama.stream_reader import OllamaReader
from wireglot_core.dialects.ollama.stream_writer import OllamaWriter
from wireglot_core.dialects.ollama.surface import SURFACE

DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=OllamaWriter,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=OllamaReader,
    places=PLACES,
)
