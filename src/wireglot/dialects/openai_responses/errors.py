"""Errors: the envelope, failed responses, and the shapes that proxies and clones send instead."""

from __future__ import annotations

import re
from typing import Any

from wireglot.dialects.base import Context, Rendered
from wireglot.dialects.openai_responses.spelling import NAME
from wireglot.ir.content import Extra
from wireglot.ir.errors import ApiError, ErrorKind
from wireglot.wire.json import encode_text

_CODES: dict[str, ErrorKind] = {
    "context_length_exceeded": "context_overflow",
    "insufficient_quota": "billing",
    "billing_hard_limit_reached": "billing",
    "billing_not_active": "billing",
    "usage_not_included": "billing",
    "usage_limit_reached": "billing",
    "rate_limit_exceeded": "rate_limit",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "invalid_api_key": "auth",
    "upstream_auth_failed": "server",
    "model_not_found": "not_found",
    "previous_response_not_found": "not_found",
    "request_too_large": "too_large",
    "idempotency_conflict": "conflict",
    "content_policy_violation": "content_policy",
    "content_filter": "content_policy",
    "bio_policy": "content_policy",
    "cyber_policy": "content_policy",
    "misalignment_policy_violation": "content_policy",
    "image_content_policy_violation": "content_policy",
    "upstream_timeout": "timeout",
    "vector_store_timeout": "timeout",
    "internal_error": "server",
    "server_error": "server",
    "upstream_error": "server",
    "upstream_unavailable": "server",
    "invalid_prompt": "invalid_request",
    "invalid_encrypted_content": "invalid_request",
}
_TYPES: dict[str, ErrorKind] = {
    "authentication_error": "auth",
    "invalid_authentication_error": "auth",
    "permission_error": "permission",
    "permission_denied": "permission",
    "not_found_error": "not_found",
    "rate_limit_error": "rate_limit",
    "tokens": "rate_limit",
    "requests": "rate_limit",
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "overloaded_error": "overloaded",
    "server_error": "server",
    "api_error": "server",
    "timeout_error": "timeout",
}
_STATUSES: dict[int, ErrorKind] = {
    401: "auth",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_OVERFLOW = re.compile(
    r"maximum context length|context window|context_length|prompt is too long|input is too long"
    r"|exceeds the (?:maximum|max) (?:number of )?(?:input )?tokens",
    re.IGNORECASE,
)
_AGAIN = re.compile(r"try again in (?:(\d{1,6})m)?(\d{1,9}(?:\.\d{1,9})?)(ms|s)\b", re.IGNORECASE)

_RENDERED: dict[ErrorKind, tuple[str, str | None]] = {
    "invalid_request": ("invalid_request_error", None),
    "context_overflow": ("invalid_request_error", "context_length_exceeded"),
    "auth": ("invalid_request_error", "invalid_api_key"),
    "billing": ("insufficient_quota", "insufficient_quota"),
    "permission": ("permission_error", None),
    "not_found": ("invalid_request_error", "model_not_found"),
    "conflict": ("invalid_request_error", "idempotency_conflict"),
    "too_large": ("invalid_request_error", "request_too_large"),
    "rate_limit": ("rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ("server_error", "server_is_overloaded"),
    "server": ("server_error", "internal_error"),
    "timeout": ("server_error", "upstream_timeout"),
    "content_policy": ("invalid_request_error", "content_policy_violation"),
}
"""Type and code of the envelope."""

_FAILED: dict[ErrorKind, str] = {
    "context_overflow": "context_length_exceeded",
    "billing": "insufficient_quota",
    "rate_limit": "rate_limit_exceeded",
    "overloaded": "server_is_overloaded",
    "invalid_request": "invalid_prompt",
    "content_policy": "invalid_prompt",
}
"""Codes of a failed response that its clients act on; all else is a server error to them."""

_LIMIT = 4096


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error a body reports: envelope, failed response, error event, whatever came with a bad status."""
    if type(body) is not dict:
        return _bare(body, status) if status >= 400 else None
    error = body.get("error")
    if body.get("status") == "failed" or body.get("type") == "response.failed":
        inner = body.get("response")
        response = inner if type(inner) is dict else body
        error = response.get("error")
        return _read(error if type(error) is dict else {}, body, status, "the response failed")
    if type(error) is dict and error:
        return _read(error, body, status)
    if type(error) is str and error:
        return _read({"message": error, "code": body.get("code")}, body, status)
    if body.get("type") == "error":
        return _read(body, body, status)
    if status >= 400 or (status == 0 and type(body.get("detail")) is str and "output" not in body):
        return _read({"message": body.get("detail", body.get("message"))}, body, status)
    return None


def _read(error: dict[str, Any], body: Any, status: int, fallback: str = "") -> ApiError:
    message = error.get("message")
    if type(message) is not str or not message:
        shown = error if error else body
        message = fallback or encode_text(message if message else shown)[:_LIMIT]
    code, kind, param = error.get("code"), error.get("type"), error.get("param")
    code = code if type(code) is str else str(code) if type(code) is int else ""
    kind = kind if type(kind) is str and kind != "error" else ""
    wait = error.get("retry_after", error.get("resets_in_seconds"))
    return ApiError(
        _kind(code, kind, status, message),
        message,
        status,
        kind,
        code,
        param if type(param) is str else "",
        float(wait) if isinstance(wait, int | float) and 0 <= wait < 2**31 else _wait(message),
        extra=Extra(NAME, form={"body": body}),
    )


def _bare(body: Any, status: int) -> ApiError:
    """Text, an HTML page of some proxy, a list, nothing."""
    if type(body) is list and body and type(body[0]) is dict:
        found = parse_error(body[0], status)
        if found is not None:
            return found
    text = body if type(body) is str else "" if body is None else encode_text(body)
    if text.lstrip()[:1] == "<" or not text.strip():
        text = f"the upstream answered with status {status} and no usable body"
    return ApiError(_kind("", "", status, text), text.strip()[:_LIMIT], status, retry_after=_wait(text))


def _kind(code: str, kind: str, status: int, message: str) -> ErrorKind:
    known = _CODES.get(code)
    if known == "invalid_request" and "usage policy" in message:
        return "content_policy"
    if known is not None and known != "server":
        return known
    if _OVERFLOW.search(message):
        return "context_overflow"
    if status in _STATUSES and known is None and kind not in _TYPES:
        return _STATUSES[status]
    known = known or _TYPES.get(kind)
    if known is not None:
        return known
    if kind == "invalid_request_error" or 400 <= status < 500:
        return "invalid_request"
    return "server"


def _wait(message: str) -> float | None:
    found = _AGAIN.search(message)
    if found is None:
        return None
    seconds = float(found[2]) / (1000 if found[3].lower() == "ms" else 1)
    return seconds + 60 * int(found[1] or 0)


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    extra = error.extra
    if extra is not None and extra.dialect == NAME and type(extra.form.get("body")) is dict:
        return Rendered(extra.form["body"])
    return Rendered({"error": error_object(error)})


def error_object(error: ApiError) -> dict[str, Any]:
    kind, code = _RENDERED[error.kind]
    if error.extra is not None and error.extra.dialect == NAME:
        kind, code = error.type or kind, error.code or code
    elif error.code and (error.extra is None or error.code in _CODES):
        code = error.code  # one of the gateway's own, or one that both vendors use
    return {"message": error.message, "type": kind, "param": error.param or None, "code": code}


def failed_code(error: ApiError) -> str:
    if error.extra is not None and error.extra.dialect == NAME and error.code:
        return error.code
    return _FAILED.get(error.kind, "server_error")
