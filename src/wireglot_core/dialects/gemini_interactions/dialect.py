"""Gemini Interactions, as one value."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.gemini_interactions.errors import parse_error, render_error
from wireglot_core.dialects.gemini_interactions.parse_answer import parse_response
from wireglot_core.dialects.gemini_interactions.parse_request import parse_request
from wireglot_core.dialects.gemini_interactions.places import PLACES
from wireglot_core.dialects.gemini_interactions.render_request import render_request
from wireglot_core.dialects.gemini_interactions.response import render_response
from wireglot_core.dialects.gemini_interactions.stream_reader import InteractionsReader
from wireglot_core.dialects.gemini_interactions.stream_writer import InteractionsWriter
from wireglot_core.dialects.gemini_interactions.surface import SURFACE

DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=InteractionsWriter,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=InteractionsReader,
    places=PLACES,
)
