"""Gemini, as one value. It accepts wrapped bodies too (R-T-04), and never wraps one."""

from __future__ import annotations

from typing import Final

from wireglot_core.dialects.base import Dialect
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import wrapped
from wireglot_core.dialects.gemini.errors import parse_error, render_error
from wireglot_core.dialects.gemini.places import PLACES
from wireglot_core.dialects.gemini.render_request import render_request
from wireglot_core.dialects.gemini.response import render_response
from wireglot_core.dialects.gemini.stream_writer import GeminiWriter
from wireglot_core.dialects.gemini.surface import SURFACE
from wireglot_core.ir.request import Request


def _stream_writer(context: Context, request: Request | None = None) -> GeminiWriter:
    return GeminiWriter(context)


DIALECT: Final = Dialect(
    surface=SURFACE,
    parse_request=wrapped.parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=_stream_writer,
    render_request=render_request,
    parse_response=wrapped.parse_response,
    parse_error=parse_error,
    stream_reader=wrapped.WrappedReader,
    places=PLACES,
)
