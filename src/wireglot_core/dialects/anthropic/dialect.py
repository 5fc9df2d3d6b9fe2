"""Anthropic Messages, as one value."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.anthropic.errors import parse_error, render_error
from wireglot_core.dialects.anthropic.parse_request import parse_request
from wireglot_core.dialects.anthropic.places import PLACES
from wireglot_core.dialects.anthropic.render_request import render_request
from wireglot_core.dialects.anthropic.response import parse_response, render_response
from wireglot_core.dialects.anthropic.stream_reader import MessageReader
from wireglot_core.dialects.anthropic.stream_writer import MessageWriter
from wireglot_core.dialects.anthropic.surface import SURFACE
from wireglot_core.dialects.base import Dialect

DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=MessageWriter,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=MessageReader,
    places=PLACES,
)
