"""The strategies themselves, as `@given` takes them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from wireglot.ir.outcome import Response
from wireglot.ir.request import Request
from wireglot.ir.stream import Event
from wireglot.testing.strategies import samples
from wireglot.testing.strategies.answers import AnswerSource
from wireglot.testing.strategies.settings import RequestSource
from wireglot.testing.strategies.source import Draw


@st.composite
def requests(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Request:
    """Conversations with their tools and settings."""
    return RequestSource(draw, plain, origins).request()


@st.composite
def responses(draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN) -> Response:
    """Whole answers."""
    return AnswerSource(draw, plain, origins).response()


@st.composite
def event_streams(
    draw: Draw, *, plain: bool = False, origins: Sequence[str] = samples.MAIN, failing: bool = False
) -> list[Event]:
    """Grammatical streams, parallel calls interleaved; with `failing` some end in a Failure."""
    return AnswerSource(draw, plain, origins).events(failing)
