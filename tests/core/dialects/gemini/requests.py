"""Requests of this dialect in tests: read, written, and back again."""

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.gemini import DIALECT
from wireglot_core.ir.content import (
    Message,
    Text,
)

CONTEXT = Context()
HELLO = (Message("user", (Text("Hello"),)),)


def parse(body):
    return DIALECT.parse_request(body, CONTEXT)


def render(request):
    return DIALECT.render_request(request, CONTEXT)


def comes_back(body):
    rendered = render(parse(body))
    assert rendered.losses == ()
    assert rendered.value == body


def asked(**settings):
    return {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], **settings}


def features(rendered):
    return [(loss.path, loss.feature, loss.action) for loss in rendered.losses]
