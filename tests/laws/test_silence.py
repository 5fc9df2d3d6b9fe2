"""Silence means identity, and no false alarm: a loss list is empty if and only if nothing changed."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from tests.laws.cases import every_dialect
from wireglot.dialects.base import Context
from wireglot.dialects.registry import dialect
from wireglot.ir.errors import Unsupported
from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Response
from wireglot.ir.stream import Event, ForeignEvent, fold
from wireglot.testing.canonical import canonical_request, canonical_response
from wireglot.testing.laws import differences, opened, read_stream, write_stream
from wireglot.testing.strategies import event_streams, requests, responses

CONTEXT = Context(now=1760000000)


def honest(before: object, after: object, losses: tuple[Loss, ...]) -> None:
    """An emulated thing may come back as it was: the loss says that it travels in another form."""
    found = differences(before, after)
    if not losses:
        assert not found
    elif any(loss.action != "emulated" for loss in losses):
        assert found, f"nothing changed, but it says {losses}"


def told(events: list[Event]) -> tuple[Response, list[ForeignEvent]]:
    """What a stream says: the answer, and the events that are no part of it."""
    foreign = [
        replace(event, value={key: item for key, item in event.value.items() if key != "sequence_number"})
        for event in events
        if isinstance(event, ForeignEvent) and "x_" in event.type  # others accompany parts of their own
    ]
    return canonical_response(opened(fold(events))), foreign


@every_dialect
@given(request=requests())
def test_a_silent_request_renderer_lost_nothing(name, request):
    codec = dialect(name)
    try:
        rendered = codec.render_request(request, CONTEXT)
    except Unsupported:
        return
    again = codec.parse_request(rendered.value, CONTEXT)
    honest(canonical_request(request), canonical_request(again), rendered.losses)


@every_dialect
@given(response=responses())
def test_a_silent_response_renderer_lost_nothing(name, response):
    codec = dialect(name)
    rendered = codec.render_response(response, CONTEXT)
    again = opened(codec.parse_response(rendered.value, CONTEXT))
    honest(canonical_response(response), canonical_response(again), rendered.losses)


@every_dialect
@given(events=event_streams())
def test_a_silent_stream_writer_lost_nothing(name, events):
    codec = dialect(name)
    written = write_stream(codec, events, CONTEXT)
    again = read_stream(codec, [written.value], CONTEXT)
    honest(told(events), told(again), written.losses)


@pytest.mark.parametrize("name", ["anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"])
@given(request=requests(plain=True))
def test_a_plain_conversation_loses_nothing_at_all(name, request):
    """What every dialect has (text, images, tools, results) crosses without any loss."""
    codec = dialect(name)
    expected = {"max_tokens", "tool_result.error", "tool_result.media", "content.empty"}
    losses = [loss for loss in codec.render_request(request, CONTEXT).losses if loss.feature not in expected]
    assert losses == []
