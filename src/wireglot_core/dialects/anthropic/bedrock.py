"""Anthropic Messages as clients of Amazon Bedrock send it: InvokeModel, its stream and CountTokens.

Paths and bodies: the `anthropic` SDK 2.9.0 (lib/bedrock/_client.py); errors and exceptions of streams: the
service model of `bedrock-runtime` in botocore 1.44.3. `invoked_stream.py` reads what is written here.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from wireglot_core.dialects.anthropic import cloud_form, errors
from wireglot_core.dialects.anthropic.cloud_form import HEADERS, parse_request, plain_model, render_request
from wireglot_core.dialects.anthropic.dialect import DIALECT as ANTHROPIC
from wireglot_core.dialects.anthropic.names import NAME as VENDOR
from wireglot_core.dialects.body import BadField, Body, RequestGlance
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.counting import tokens_in
from wireglot_core.dialects.faults import (
    UPSTREAM_AUTH,
    kind_of_message,
    plain_status,
    stated_message,
    wait_in_message,
)
from wireglot_core.dialects.fields import text_in
from wireglot_core.dialects.surface import CloudForm, Probe, RouteMatch, StreamFraming, Thread
from wireglot_core.ir.errors import MODEL_DENIED, ApiError, ErrorKind
from wireglot_core.wire.event_stream import message
from wireglot_core.wire.json import BadJson, decode, encode
from wireglot_core.wire.sse import Frame, SseDecoder

NAME: Final = "anthropic-bedrock"
_VERSION: Final = "bedrock-2023-05-31"
_PATH: Final = re.compile(r"/model/([^/]+)/(invoke|invoke-with-response-stream|count-tokens)")


def find(method: str, path: str) -> RouteMatch | None:
    found = _PATH.fullmatch(path) if method == "POST" else None
    if found is None:
        return None
    if found[2] == "count-tokens":
        return RouteMatch("count", found[1], verb=found[2])
    return RouteMatch("generate", found[1], found[2] != "invoke", found[2])


# --- errors

_EXCEPTIONS: Final[dict[ErrorKind, tuple[str, int]]] = {
    "invalid_request": ("ValidationException", 0),
    "context_overflow": ("ValidationException", 0),
    "auth": ("UnrecognizedClientException", 401),  # Amazon sends 403, which Claude Code 2.1.326 retries
    "billing": ("ServiceQuotaExceededException", 400),
    "permission": ("AccessDeniedException", 403),
    "not_found": ("ResourceNotFoundException", 404),
    "conflict": ("ConflictException", 0),
    "too_large": ("RequestEntityTooLargeException", 413),
    "rate_limit": ("ThrottlingException", 429),
    "overloaded": ("ServiceUnavailableException", 503),
    "server": ("InternalServerException", 0),
    "timeout": ("ModelTimeoutException", 0),
    "content_policy": ("ValidationException", 0),
}
"""The type of an error, and the status that Amazon has for it; 0: the error's own."""


def status(error: ApiError) -> int:
    if error.code == UPSTREAM_AUTH:
        return 500
    if error.code == MODEL_DENIED:
        return 400
    return _EXCEPTIONS[error.kind][1] or plain_status(error)


def error_headers(error: ApiError) -> tuple[tuple[str, str], ...]:
    return (("x-amzn-errortype", _EXCEPTIONS[error.kind][0]),)


_KINDS: Final[dict[str, ErrorKind]] = {name: kind for kind, (name, _) in reversed(_EXCEPTIONS.items())}
_TYPE: Final = "__type"
"""The field in which Amazon's SDKs look for the type, if no header has it."""


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    rendered = errors.render_error(error, context)
    said = rendered.value["error"]["message"]
    return Rendered({_TYPE: _EXCEPTIONS[error.kind][0], "message": said}, rendered.losses)


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    kind = _KINDS.get(text_in(body.get(_TYPE))) if type(body) is dict else None
    if kind is None:
        return errors.parse_error(body, status)
    said = stated_message(body)
    return ApiError(kind_of_message(kind, said), said, status, body[_TYPE], retry_after=wait_in_message(said))


def owns_error(body: Any) -> bool:
    return type(body) is dict and type(body.get("message")) is str and "error" not in body


# --- streams

_STREAM_EXCEPTIONS: Final = {
    "api_error": "internalServerException",
    "overloaded_error": "serviceUnavailableException",
    "rate_limit_error": "throttlingException",
    "timeout_error": "modelTimeoutException",
}
"""A stream has no others, except `validationException`."""
_JSON: Final = {":content-type": "application/json"}
_CHUNK: Final = {":event-type": "chunk", **_JSON, ":message-type": "event"}


class InvocationFramer:
    """Implements `Framer`: each event as a `chunk`, an `error` event as the exception that ends a stream."""

    def __init__(self, max_event: int) -> None:
        self._events = SseDecoder(max_event)

    def feed(self, data: bytes) -> bytes:
        return b"".join([_framed(event) for event in self._events.feed(data)])

    def close(self) -> bytes:
        return b"".join([_framed(event) for event in self._events.close()])


def _framed(event: Frame) -> bytes:
    if event.event == "error":
        return _exception(event.data)
    return message(_CHUNK, b'{"bytes":"' + b64encode(event.data) + b'"}')


def _exception(data: bytes) -> bytes:
    try:
        error = errors.parse_error(decode(data))
    except BadJson:
        error = None
    kind, said = (error.type, error.message) if error is not None else ("api_error", "")
    headers = {
        ":exception-type": _STREAM_EXCEPTIONS.get(kind, "validationException"),
        **_JSON,
        ":message-type": "exception",
    }
    return message(headers, encode({"message": said}))


# --- counting


def unwrapped_count(body: bytes) -> bytes:
    """A body without `invokeModel` stays unchanged, and is refused by `glance`."""
    try:
        return b64decode(decode(body)["input"]["invokeModel"]["body"], validate=True)
    except (BadJson, KeyError, TypeError, ValueError):
        return body


def glance(body: Body) -> RequestGlance:
    members = body.outline.members
    if "input" in members and "messages" not in members:
        expected = "invokeModel, with a Messages request in base64 as its body"
        raise BadField(f"input: expected {expected}", "$.input")
    return cloud_form.glance(body)


def _render_count(tokens: int) -> dict[str, Any]:
    return {"inputTokens": tokens}


def _parse_count(body: Any) -> int:
    return tokens_in(body, "inputTokens")


_PLAIN: Final = ANTHROPIC.surface
assert _PLAIN.counts is not None
assert _PLAIN.client.thread is not None
_THREAD: Final = _PLAIN.client.thread

SURFACE: Final = replace(
    _PLAIN,
    name=NAME,
    client=replace(
        _PLAIN.client,
        cloud=CloudForm(
            dialect=VENDOR,
            headers=HEADERS,
            plain_model=plain_model,
            unwrapped_count=unwrapped_count,
            framing=StreamFraming("application/vnd.amazon.eventstream", InvocationFramer),
        ),
        routes=(),
        find=find,
        lists=(),
        # Claude Code 2.1.326 lists the profiles of an account at its start; without any it uses the usual
        # names.
        probes={"/inference-profiles": Probe(("GET",), {"inferenceProfileSummaries": []})},
        unserved={"/converse": "Converse requests", "/converse-stream": "Converse requests"},
        endpoints=(
            "POST /model/{model}/invoke",
            "POST /model/{model}/invoke-with-response-stream",
            "POST /model/{model}/count-tokens",
        ),
        headers=(),
        prefixes=("/model/",),
        typed_bodies=False,  # botocore 1.44.3 sends no type unless `contentType` is given
        glance=glance,
        key_hint="set AWS_BEARER_TOKEN_BEDROCK to it (a signature of AWS keys cannot be verified here)",
        managed=None,
        budgets=None,
        thread=Thread(_THREAD.field, _THREAD.error, {"message": _THREAD.error.message}),
        owns_error=owns_error,
        error_headers=error_headers,
        identity_headers=("request-id", "x-amzn-requestid"),
    ),
    upstream=None,
    model_field="",
    status=status,
    counts=replace(_PLAIN.counts, render_answer=_render_count, parse_answer=_parse_count),
)

DIALECT: Final = replace(
    ANTHROPIC,
    surface=SURFACE,
    parse_request=parse_request,
    render_request=partial(render_request, version=_VERSION, without=frozenset({"model", "stream"})),
    render_error=render_error,
    parse_error=parse_error,
)
