"""Parses and renders errors: `{"error": {"code": "not_found", "message": "..."}}`, where the code is a
string.

The codes are documented at ai.google.dev/gemini-api/docs/api-errors. Hosts and proxies before the API send
google.rpc.Status in its place (an integer code and a `status`), alone or in a list.
"""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.common_losses import lost_details
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import (
    bare_message,
    error_beside,
    kind_of_message,
    kind_of_name,
    kind_of_status,
    stated_message,
)
from wireglot_core.dialects.fields import own_form, text_in
from wireglot_core.dialects.gemini_interactions.names import OWN
from wireglot_core.dialects.gemini_interactions.outcome import BLOCKED, parse_stop
from wireglot_core.dialects.rpc_status import (
    RPC_KINDS,
    detail_text,
    field_violation,
    kind_of_rpc,
    rpc_details,
    rpc_wait,
)
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError, ErrorKind
from wireglot_core.ir.loss import Loss

_CODES: Final[dict[ErrorKind, str]] = {
    "invalid_request": "invalid_request",
    "context_overflow": "context_length_exceeded",
    "auth": "authentication",
    "billing": "payment_required",
    "permission": "permission_denied",
    "not_found": "not_found",
    "conflict": "conflict",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_exceeded",
    "overloaded": "service_unavailable",
    "server": "api_error",
    "timeout": "gateway_timeout",
    "content_policy": BLOCKED,
}
_KINDS: Final[dict[str, ErrorKind]] = {
    **{code: kind for kind, code in _CODES.items()},
    "failed_precondition": "invalid_request",
    "out_of_range": "invalid_request",
    "parameter_unknown": "invalid_request",
    "invalid_argument": "invalid_request",
    "unauthenticated": "auth",
    "model_not_found": "not_found",
    "quota_exceeded": "rate_limit",
    "resource_exhausted": "rate_limit",
    "too_many_requests": "rate_limit",
    "already_exists": "conflict",
    "aborted": "conflict",
    "unavailable": "overloaded",
    "overloaded": "overloaded",
    "deadline_exceeded": "timeout",
    "internal": "server",
    "internal_error": "server",
    "server_error": "server",
    "unknown": "server",
    "unimplemented": "server",
    "cancelled": "server",
}
"""The codes of the API and, in lower case, those of google.rpc.Status."""


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body or an event of a stream."""
    whole = body[0] if type(body) is list and body else body
    if type(whole) is not dict:
        return _read({}, body, whole, status, bare_message(whole, status)) if status >= 400 else None
    error = error_beside(whole, "steps")
    if type(error) is dict and error:
        return _read(error, body, whole, status)
    if type(error) is str and error:
        return _read({"message": error}, body, whole, status)
    if status >= 400 or whole.get("event_type") == "error":
        return _read({}, body, whole, status, stated_message(whole))
    if whole.get("status") == "cancelled":
        return _read({}, body, whole, 0, "the interaction was cancelled")
    return _failed(body, whole) if whole.get("status") == "failed" else None


def _failed(body: Any, whole: dict[str, Any]) -> ApiError | None:
    """The error of a failed interaction, from its `errors`, unless they are a way an answer can end."""
    errors = whole.get("errors")
    if parse_stop("failed", calls=False, errors=errors).reason != "other":
        return None
    listed = [error for error in errors if type(error) is dict] if type(errors) is list else []
    return _read(listed[0] if listed else {}, body, whole, 0, "the interaction failed")


def _read(error: dict[str, Any], body: Any, whole: Any, status: int, message: str = "") -> ApiError:
    stated = error.get("code")
    code = stated if type(stated) is str else text_in(error.get("status")).lower()
    if type(stated) is int and 400 <= stated <= 599:
        status = stated
    message = stated_message(error) or message or code or bare_message(whole, status)
    details = rpc_details(error)
    if code.upper() in RPC_KINDS and type(stated) is not str:
        reason = detail_text(details, "ErrorInfo", "reason")
        kind = kind_of_rpc(status, code.upper(), reason, message)
    else:
        named = _KINDS.get(code)
        kind = kind_of_name(named, status) if named or status else kind_of_status(500)
        kind = kind_of_message(kind, message)
    return ApiError(
        kind,
        message,
        status,
        code=code,
        param=field_violation(details),
        retry_after=rpc_wait(details, message),
        extra=Extra(OWN, form={"body": body}) if type(body) in (dict, list) else None,
    )


def render_error(error: ApiError, context: Context) -> Rendered[Any]:
    kept = own_form(error.extra, OWN).get("body")
    if type(kept) in (dict, list):
        return Rendered(kept)
    losses: list[Loss] = []
    return Rendered({"error": error_object(error, losses)}, tuple(losses))


def error_object(error: ApiError, losses: list[Loss]) -> dict[str, Any]:
    """The object inside the envelope, with the name of the wrong field before the message."""
    own = error.extra is not None and error.extra.dialect == OWN
    is_known = _KINDS.get(error.code) == error.kind
    code = error.code if error.code and (own or is_known) else _CODES[error.kind]
    if code != error.code:  # the name is a closed list here
        losses += lost_details(error, ("code",))
    message = error.message
    if error.param and error.param not in message:
        message = f"{error.param}: {message}"
    return {"code": code, "message": message}


def owns_error(body: Any) -> bool:
    """Whether the body is the envelope with a string as code, which clients parse."""
    error = body.get("error") if type(body) is dict else None
    return type(error) is dict and type(error.get("code")) is str and type(error.get("message")) is str
