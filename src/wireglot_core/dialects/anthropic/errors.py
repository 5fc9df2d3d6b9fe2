"""Error bodies: the dialect's own envelope, and the forms that gateways and clouds send instead."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.anthropic.names import NAME
from wireglot_core.dialects.common_losses import lost_details
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import (
    bare_message,
    error_beside,
    is_page,
    kind_of_message,
    kind_of_name,
    stated_message,
    status_message,
    wait_in_message,
)
from wireglot_core.dialects.fields import text_in
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import MODEL_DENIED, ApiError, ErrorKind
from wireglot_core.ir.loss import Loss

_NOT_SUPPORTED = "not_supported"
"""The code that Claude Code expects with a 501 of a gateway."""
_WRITTEN: dict[ErrorKind, str] = {
    "invalid_request": "invalid_request_error",
    "context_overflow": "invalid_request_error",
    "auth": "authentication_error",
    "billing": "billing_error",
    "permission": "permission_error",
    "not_found": "not_found_error",
    "conflict": "invalid_request_error",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
    "timeout": "timeout_error",
    "content_policy": "invalid_request_error",
}
_KINDS: dict[str, ErrorKind] = {
    **{name: kind for kind, name in reversed(_WRITTEN.items())},
    "conflict_error": "conflict",
    _NOT_SUPPORTED: "server",
    # Types that compatible hosts send in the same envelope.
    "gateway_timeout_error": "timeout",
    "invalid_authentication_error": "auth",
    "exceeded_current_quota_error": "billing",
    "insufficient_quota": "billing",
    "permission_denied_error": "permission",
    "access_terminated_error": "permission",
    "resource_not_found_error": "not_found",
    "rate_limit_reached_error": "rate_limit",
    "engine_overloaded_error": "overloaded",
    "server_error": "server",
    "content_filter": "content_policy",
}

_NUMBER = re.compile(r"\d[\d,]{2,}")
_TOO_LONG = "prompt is too long"
_KNOWN_OVERFLOW = re.compile(rf"{_TOO_LONG}|input length and `?max_tokens`? exceed context limit")
_INPUT_TOO_LONG = "Input is too long."
_WHOLE_INPUT = re.compile(
    r"\bInput is too long\.(?=$|\W*$)"
    r"|\bThe (?:request|message) size \(?[\d,]+ bytes\)? exceeds .{0,40}?limit\b"
)
"""The messages of Bedrock and Vertex: Claude Code drops old images and compacts if this sentence is the whole
message (contract of `claude gateway` 2.1.326)."""
_REWORDED: Final = Loss(
    "$.message", "error.detail", "approximated", "in the wording that this dialect's clients expect"
)


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body; None if neither the body nor the status (0: unknown) is an error."""
    if type(body) is list and len(body) == 1:
        body = body[0]
    if type(body) is bytes:
        body = body.decode("utf-8", "replace")
    failed = status >= 400
    if type(body) is dict:
        inner = error_beside(body, "content")
        if type(inner) is dict:
            return _parse_envelope(body, inner, status)
        if type(inner) is str and inner:
            message = body.get("message")
            return _error("", message if type(message) is str and message else inner, status, body)
        if body.get("type") == "error" or (failed and body.get("type") != "message"):
            return _error("", stated_message(body) or status_message(status), status, body)
        return _error("", status_message(status), status, None) if failed else None
    if failed or (type(body) is str and is_page(body)):
        return _error("", bare_message(body, status), status, None)
    return None


def _parse_envelope(body: dict[str, Any], inner: dict[str, Any], status: int) -> ApiError:
    details = inner.get("details")
    code = details.get("error_code") if type(details) is dict else inner.get("code")
    return _error(
        text_in(inner.get("type")),
        stated_message(inner) or status_message(status),
        status,
        body if body.get("type") == "error" else None,
        code=text_in(code),
        request_id=text_in(body.get("request_id")),
    )


def _error(
    kind: str, message: str, status: int, body: dict[str, Any] | None, code: str = "", request_id: str = ""
) -> ApiError:
    named = _KINDS.get(kind) or _KINDS.get(code)
    if named == "invalid_request" and status == 409:
        named = "conflict"  # the dialect has no type for it
    if kind == _NOT_SUPPORTED:
        status = status or 501
    own = body is not None and body.get("type") == "error" and type(body.get("error")) is dict
    return ApiError(
        kind_of_message(kind_of_name(named, status), message),
        message,
        status,
        kind,
        code,
        retry_after=wait_in_message(message),
        request_id=request_id,
        extra=Extra(NAME, body) if own and body is not None else None,
    )


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    """The error envelope. An error of this dialect is returned unchanged: clients recover by its exact
    wording."""
    if error.extra is not None and error.extra.dialect == NAME and "error" in error.extra.fields:
        return Rendered(error.extra.fields)
    losses: list[Loss] = []
    message = error.message
    if (found := _WHOLE_INPUT.search(message)) is not None and error.kind in (
        "context_overflow",
        "too_large",
    ):
        message = _INPUT_TOO_LONG
        if found[0] != error.message:
            losses.append(_REWORDED)
    elif error.kind == "context_overflow" and not _KNOWN_OVERFLOW.search(message):
        message = _too_long(message)
        losses.append(_REWORDED)
    losses += lost_details(error, ("code", "param"))
    written = _WRITTEN[error.kind]
    if error.kind == "server" and error.status == 501:
        written = _NOT_SUPPORTED
    elif error.code == MODEL_DENIED:
        written = _WRITTEN["invalid_request"]
    # The vendor's OpenAPI document requires the id, which may be null.
    body: dict[str, Any] = {
        "type": "error",
        "error": {"type": written, "message": message},
        "request_id": error.request_id or None,
    }
    return Rendered(body, tuple(losses))


def _too_long(message: str) -> str:
    """`prompt is too long: N tokens > M maximum`, if the two numbers can be extracted."""
    numbers = sorted({int(found.replace(",", "")) for found in _NUMBER.findall(message)})
    if len(numbers) == 2:
        return f"{_TOO_LONG}: {numbers[1]} tokens > {numbers[0]} maximum"
    return f"{_TOO_LONG}: {message}"


def owns_error(body: Any) -> bool:
    error = body.get("error") if type(body) is dict and body.get("type") == "error" else None
    return type(error) is dict and type(error.get("type")) is str and type(error.get("message")) is str
