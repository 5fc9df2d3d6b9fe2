"""A dialect whose wire shares no key, value, event name or end marker with any vendor's: Chat's documents in ROT13.

It declares no marks of its streams.
"""

from codecs import encode as recoded
from typing import Any

from msgspec.structs import replace

from tests.core.dialects import acme
from wireglot_core.dialects.body import Body, RequestGlance, whole_number
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.surface import AnswerGlance, Route
from wireglot_core.ir.errors import ApiError
from wireglot_core.ir.outcome import Response
from wireglot_core.ir.request import Request
from wireglot_core.wire.json import decode, encode

NAME = "turned"
CHAT = acme.CHAT
END = b"[QBAR]"


def _turned(text: str) -> str:
    return recoded(text, "rot13")


def turned(document: Any) -> Any:
    """All keys and all texts, but for the names of models, which a gateway writes itself."""
    match document:
        case dict():
            return {
                _turned(key): value if key in ("model", _turned("model")) else turned(value)
                for key, value in document.items()
            }
        case list():
            return [turned(each) for each in document]
        case str():
            return _turned(document)
        case _:
            return document


def parse_request(body: dict[str, Any], context: Context) -> Request:
    return CHAT.parse_request(turned(body), context)


def render_request(request: Request, context: Context) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_request(request, context)
    return Rendered(turned(rendered.value), rendered.losses)


def parse_response(body: dict[str, Any], context: Context) -> Response:
    return CHAT.parse_response(turned(body), context)


def render_response(
    response: Response, context: Context, request: Request | None = None
) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_response(response, context, request)
    return Rendered(turned(rendered.value), rendered.losses)


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    return CHAT.parse_error(turned(body), status)


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    rendered = CHAT.render_error(error, context)
    return Rendered(turned(rendered.value), rendered.losses)


class Reader(acme.Reader):
    words = staticmethod(turned)
    last = END


class Writer(acme.Writer):
    words = staticmethod(turned)
    last = END


class Listener(acme.Listener):
    words = staticmethod(turned)
    last = END


def glance(body: bytes) -> AnswerGlance:
    return CHAT.surface.glance(encode(turned(decode(body))))


def glance_request(body: Body) -> RequestGlance:
    return RequestGlance(body.outline.get(_turned("model")) or "", body.outline.get(_turned("stream")))


SURFACE = replace(
    acme.SURFACE,
    name=NAME,
    client=replace(
        acme.SURFACE.client,
        routes=(Route("POST", "/turned", "generate"),),
        lists=("/turned/models",),
        endpoints=("POST /turned",),
        prefixes=("/turned",),
        headers=("x-turned",),
        glance=glance_request,
        asked_output=lambda body: whole_number(body.outline.get(_turned("max_tokens"))),
        asked_answers=lambda body: whole_number(body.outline.get(_turned("n"))),
        conversation_field="",
        gateway_fields=frozenset(),
    ),
    model_field=_turned("model"),
    tap=Listener,
    glance=glance,
    counts=None,
)

DIALECT = replace(
    acme.DIALECT,
    surface=SURFACE,
    parse_request=parse_request,
    render_response=render_response,
    render_error=render_error,
    stream_writer=Writer,
    render_request=render_request,
    parse_response=parse_response,
    parse_error=parse_error,
    stream_reader=Reader,
)
