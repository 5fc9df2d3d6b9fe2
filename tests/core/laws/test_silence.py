"""Silence means identity, and no false alarm: a loss list is empty if and only if nothing changed."""

from hypothesis import given

from tests.core.laws.cases import every_dialect
from tests.tiers import rows
from wireglot_core.dialects.registry import dialect
from wireglot_core.testing import codec_laws
from wireglot_core.testing.strategies import event_streams, requests, responses


@every_dialect
@given(request=requests())
def test_a_silent_request_renderer_lost_nothing(name, request):
    codec_laws.request_is_honest(dialect(name), request)


@every_dialect
@given(response=responses())
def test_a_silent_response_renderer_lost_nothing(name, response):
    codec_laws.response_is_honest(dialect(name), response)


@every_dialect
@given(events=event_streams())
def test_a_silent_stream_writer_lost_nothing(name, events):
    codec_laws.stream_is_honest(dialect(name), events)


@rows("name", ["anthropic", "openai-chat", "openai-responses", "gemini", "code-assist"])
@given(request=requests(plain=True))
def test_a_plain_conversation_loses_nothing_at_all(name, request):
    """What every dialect has (text, images, tools, results) crosses without any loss."""
    codec_laws.plain_request_loses_nothing(dialect(name), request)
