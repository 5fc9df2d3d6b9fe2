"""Errors both ways, by mirrored tables. Servers that only resemble OpenAI's wrap theirs in many ways."""

from __future__ import annotations

import re
from typing import Any

from wireglot.dialects.fields import own_fields
from wireglot.dialects.openai_chat.extras import NAME
from wireglot.ir.content import Extra
from wireglot.ir.errors import ApiError, ErrorKind
from wireglot.wire.json import encode_text

_ENVELOPE: dict[ErrorKind, tuple[str, str | None]] = {
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
    "content_policy": ("invalid_request_error", "content_filter"),
}
_BY_CODE: dict[str, ErrorKind] = {
    "context_length_exceeded": "context_overflow",
    "invalid_api_key": "auth",
    "insufficient_quota": "billing",
    "billing_hard_limit_reached": "billing",
    "model_not_found": "not_found",
    "deploymentnotfound": "not_found",
    "idempotency_conflict": "conflict",
    "request_too_large": "too_large",
    "rate_limit_exceeded": "rate_limit",
    "server_is_overloaded": "overloaded",
    "slow_down": "overloaded",
    "upstream_timeout": "timeout",
    "content_filter": "content_policy",
    "content_policy_violation": "content_policy",
}
_BY_TYPE: dict[str, ErrorKind] = {
    "invalid_request_error": "invalid_request",
    "too_many_prompt_tokens": "context_overflow",
    "authentication_error": "auth",
    "invalid_authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "permission",
    "permission_denied_error": "permission",
    "access_terminated_error": "permission",
    "not_found_error": "not_found",
    "resource_not_found_error": "not_found",
    "rate_limit_error": "rate_limit",
    "rate_limit_reached_error": "rate_limit",
    "requests": "rate_limit",
    "tokens": "rate_limit",
    "insufficient_quota": "billing",
    "billing_error": "billing",
    "exceeded_current_quota_error": "billing",
    "overloaded_error": "overloaded",
    "engine_overloaded_error": "overloaded",
    "server_error": "server",
    "internal_server_error": "server",
    "timeout_error": "timeout",
    "content_filter": "content_policy",
}
_BY_STATUS: dict[int, ErrorKind] = {
    400: "invalid_request",
    401: "auth",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    524: "timeout",
    529: "overloaded",
}
_OVERFLOW = re.compile(
    r"(maximum|max) (context|prompt|input) (length|tokens)|context (length|window|size)|prompt is too long"
    r"|too many (input |prompt )?tokens|reduce the length|length of all messages is too long"
    r"|exceeds? the (available|model'?s?)?.{0,20}context",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"considered high risk|content management policy|content policy", re.IGNORECASE)
_HTML = re.compile(r"\s*<(!doctype|html|head|body|\?xml)", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
# Kinds whose type stands for nothing else: any code may stand beside it.
_TYPED = frozenset({"invalid_request", "permission", "rate_limit", "billing", "server"})


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error a body reports; None if it is none and the status does not say so."""
    found = _find(body, status)
    if found is None:
        return None
    extra = Extra(NAME, body) if type(body) is dict and body else None
    if isinstance(found, str):
        return ApiError(_kind("", "", status, found), found, status, extra=extra)
    message = _message(found) or f"the upstream answered with status {status or 500}"
    code, kind_name = found.get("code"), found.get("type")
    if not _is_error_status(status):
        status = next(
            (
                value
                for key in ("code", "status", "status_code")
                if type(value := found.get(key)) is int and _is_error_status(value)
            ),
            status,
        )
    code = "" if code is None else str(code)
    kind_name = kind_name if type(kind_name) is str else ""
    param = found.get("param")
    request_id = body.get("request_id") if type(body) is dict else None
    return ApiError(
        _kind(kind_name, code, status, message),
        message,
        status,
        kind_name,
        code,
        param if type(param) is str else "",
        request_id=request_id if type(request_id) is str else "",
        extra=extra,
    )


def _is_error_status(status: int) -> bool:
    return 400 <= status < 600


def _find(body: Any, status: int) -> dict[str, Any] | str | None:
    """The error object or text inside whatever the server wrapped around it."""
    failed = _is_error_status(status)
    if type(body) is list:
        return _find(body[0], status) if body else _find(None, status)
    if type(body) is str:
        if _HTML.match(body):
            title = _TITLE.search(body)
            return f"the upstream answered with a web page{f': {title[1].strip()[:200]}' if title else ''}"
        return (body.strip()[:2000] or {}) if failed else None
    if type(body) is not dict:
        return {} if failed else None
    error = body.get("error")
    if type(error) is str and error:
        return {**body, "message": error}
    if type(error) is dict and error:
        return error
    if error:
        return {"message": encode_text(error)}
    if "choices" in body:
        return _find_in_choices(body["choices"]) or ({} if failed else None)
    errors = body.get("errors")
    if type(errors) is list and errors:
        return errors[0] if type(errors[0]) is dict else {"message": encode_text(errors[0])}
    if body.get("object") == "error" or failed:
        return body
    return body if ("message" in body or "detail" in body) and "id" not in body else None


def _find_in_choices(choices: Any) -> dict[str, Any] | None:
    """OpenRouter reports a provider's failure inside the choice."""
    if type(choices) is not list or not choices or type(choices[0]) is not dict:
        return None
    error = choices[0].get("error")
    if type(error) is dict and error:
        return error
    return (
        {"message": "the upstream stopped with an error"}
        if choices[0].get("finish_reason") == "error"
        else None
    )


def _message(found: dict[str, Any]) -> str:
    for key in ("message", "detail", "msg", "error_description", "title"):
        value = found.get(key)
        if type(value) is str and value:
            return value
        if value and type(value) in (dict, list):
            inner = value[0] if type(value) is list else value
            if type(inner) is dict and type(inner.get("msg")) is str:
                return str(inner["msg"])
            return encode_text(value)
    return ""


def _kind(type_name: str, code: str, status: int, message: str) -> ErrorKind:
    kind = _BY_CODE.get(code.lower())
    if kind is not None:
        return kind
    if type_name != "invalid_request_error" and type_name in _BY_TYPE:
        kind = _BY_TYPE[type_name]
    else:
        # "invalid_request_error" stands on everything from 400 to 404: the status knows better.
        kind = _BY_STATUS.get(status) or _BY_TYPE.get(type_name) or ("server" if status >= 500 else None)
    if kind is None:
        kind = "invalid_request" if _is_error_status(status) else "server"
    if kind in ("invalid_request", "too_large", "server") and _OVERFLOW.search(message):
        return "context_overflow"
    if kind == "invalid_request" and _FILTERED.search(message):
        return "content_policy"
    return kind


def render_error(error: ApiError) -> dict[str, Any]:
    """The error envelope; an error of this dialect comes back as it was."""
    native = own_fields(error.extra, NAME)
    if native:
        return dict(native)
    type_name, code = _ENVELOPE[error.kind]
    known = _BY_CODE.get(error.code)
    if error.code and (
        known == error.kind or (known is None and error.kind in _TYPED and _is_word(error.code))
    ):
        code = error.code
    return {
        "error": {"message": error.message, "type": type_name, "param": error.param or None, "code": code}
    }


def _is_word(code: str) -> bool:
    return code.isascii() and code.replace("_", "").isalnum() and code == code.lower()
