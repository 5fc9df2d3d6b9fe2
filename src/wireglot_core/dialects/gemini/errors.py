"""Parses and renders errors: google.rpc.Status as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import (
    bare_message,
    error_beside,
    kind_of_message,
    kind_of_status,
    stated_message,
    status_message,
    wait_in_message,
)
from wireglot_core.dialects.fields import own_fields, own_form, text_in
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.outcome import UNSIGNED
from wireglot_core.dialects.rpc_status import (
    UNIMPLEMENTED,
    detail_text,
    field_violation,
    kind_of_rpc,
    rpc_details,
    rpc_wait,
)
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError, ErrorKind

_TYPES = "type.googleapis.com/google.rpc."

_BY_KIND: dict[ErrorKind, tuple[int, str, str]] = {
    "invalid_request": (400, "INVALID_ARGUMENT", ""),
    "context_overflow": (400, "INVALID_ARGUMENT", "CONTEXT_LENGTH_EXCEEDED"),
    "auth": (400, "INVALID_ARGUMENT", "API_KEY_INVALID"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED", ""),
    "billing": (429, "RESOURCE_EXHAUSTED", "BILLING_DISABLED"),
    "permission": (403, "PERMISSION_DENIED", ""),
    "not_found": (404, "NOT_FOUND", ""),
    "conflict": (409, "ABORTED", ""),
    "too_large": (413, "INVALID_ARGUMENT", "REQUEST_TOO_LARGE"),
    "overloaded": (503, "UNAVAILABLE", ""),
    "server": (500, "INTERNAL", ""),
    "timeout": (504, "DEADLINE_EXCEEDED", ""),
    "content_policy": (400, "INVALID_ARGUMENT", "CONTENT_POLICY_VIOLATION"),
}
"""Code, status, and the reason that distinguishes kinds with the same status. Google answers a bad key with
400."""

_SAID_BY_HTTP = frozenset({405, 408, 415, 426})
"""Statuses that are more specific than the kind; Google repeats the status in the body."""


def unsigned_error(message: Any) -> ApiError:
    """The error for a request that lacks a thought signature, which is reported as a finish reason."""
    said = f": {message}" if type(message) is str and message else ""
    return ApiError(
        "invalid_request",
        f"the request lacks a thought signature{said}",
        status=400,
        type="INVALID_ARGUMENT",
    )


def _unsigned(body: Any) -> ApiError | None:
    """The same for a whole answer, unless it has content."""
    candidates = body.get("candidates") if type(body) is dict else None
    only = candidates[0] if type(candidates) is list and len(candidates) == 1 else None
    if type(only) is not dict or only.get("finishReason") != UNSIGNED:
        return None
    content = only.get("content")
    if type(content) is dict and content.get("parts"):
        return None
    error = unsigned_error(only.get("finishMessage"))
    return msgspec.structs.replace(error, extra=Extra(OWN, body, {}))


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body, in any of the forms that Google and proxies in front of it send."""
    listed = type(body) is list and bool(body)
    whole = _opened(body[0] if listed else body)
    error = error_beside(whole, "candidates") if type(whole) is dict else None
    if not error:
        if status < 400:
            return _unsigned(whole)
        return _bare(whole, status)
    extra = Extra(OWN, whole, {"list": True} if listed else {})
    if type(error) is not dict:
        message = error if type(error) is str else "unknown error"
        described = whole.get("error_description")
        if type(described) is str and described:
            message = f"{message}: {described}"
        return _flat(message, status, extra)
    code = error.get("code")
    code = code if type(code) is int and 100 <= code <= 599 else status
    name = text_in(error.get("status"))
    if name == UNIMPLEMENTED and not 400 <= code < 500:
        code = 501
    message = text_in(error.get("message")) or name or f"status {code}"
    details = rpc_details(error)
    reason = detail_text(details, "ErrorInfo", "reason")
    return ApiError(
        kind_of_rpc(code, name, reason, message),
        message,
        status=code,
        type=name,
        code=reason,
        param=field_violation(details),
        retry_after=rpc_wait(details, message),
        request_id=detail_text(details, "RequestInfo", "requestId"),
        extra=extra,
    )


def _opened(body: Any) -> Any:
    """The error inside Code Assist's envelope, if there is one. Errors usually come without an envelope; left
    inside, it would be a field of an otherwise empty answer."""
    if type(body) is dict and "response" in body and not body.get("error") and "candidates" not in body:
        inner = body["response"]
        if type(inner) is dict and inner.get("error"):
            return inner
    return body


def _bare(body: Any, status: int) -> ApiError:
    if type(body) is dict:
        return _flat(stated_message(body) or status_message(status), status)
    return _flat(bare_message(body, status), status)


def _flat(message: str, status: int, extra: Extra | None = None) -> ApiError:
    """An error of which only the message is known."""
    kind = kind_of_message(kind_of_status(status), message)
    return ApiError(kind, message, status, retry_after=wait_in_message(message), extra=extra)


def render_error(error: ApiError, context: Context) -> Rendered[Any]:
    if error.extra is not None and error.extra.dialect == OWN and error.extra.fields:
        body = own_fields(error.extra, OWN)
        return Rendered([body] if own_form(error.extra, OWN).get("list") else body)
    return Rendered(error_body(error, *_code(error)))


def render_stream_error(error: ApiError) -> dict[str, Any]:
    """The last chunk of a stream that failed; `error` is its first key, where SDKs look for it."""
    kept = own_fields(error.extra, OWN)
    if (
        next(iter(kept), "") == "error"
        and type(kept["error"]) is dict
        and type(kept["error"].get("code")) is int
    ):
        return kept
    code, status, reason = _code(error)
    if error.kind == "server" and error.status not in (500, 501) and error.code != "internal_error":
        code, status = 503, "UNAVAILABLE"  # the upstream broke, not we: worth a retry
    return error_body(error, code, status, reason)


def _code(error: ApiError) -> tuple[int, str, str]:
    code, status, reason = _BY_KIND[error.kind]
    if error.kind == "server" and error.status in (502, 503):
        return error.status, "UNAVAILABLE", reason
    if error.kind == "server" and error.status == 501:
        return 501, UNIMPLEMENTED, reason
    if error.kind == "invalid_request" and error.status in _SAID_BY_HTTP:
        return error.status, status, reason
    return code, status, reason


def error_body(error: ApiError, code: int, status: str, reason: str) -> dict[str, Any]:
    details: list[dict[str, Any]] = []
    reason = reason or (error.code if error.type != status else "") or ""
    if reason:
        details.append({"@type": _TYPES + "ErrorInfo", "reason": reason, "domain": "googleapis.com"})
    if error.param:
        violation = {"field": error.param, "description": error.message}
        details.append({"@type": _TYPES + "BadRequest", "fieldViolations": [violation]})
    if error.retry_after is not None and error.retry_after >= 0:
        details.append({"@type": _TYPES + "RetryInfo", "retryDelay": f"{error.retry_after:g}s"})
    if error.request_id:
        details.append({"@type": _TYPES + "RequestInfo", "requestId": error.request_id})
    body: dict[str, Any] = {"code": code, "message": error.message, "status": status}
    if details:
        body["details"] = details
    return {"error": body}


def owns_error(body: Any) -> bool:
    """Whether the body is Google's envelope, which list streams wrap into a list."""
    whole = body[0] if type(body) is list and len(body) == 1 else body
    error = whole.get("error") if type(whole) is dict else None
    return type(error) is dict and type(error.get("status")) is str and type(error.get("message")) is str
