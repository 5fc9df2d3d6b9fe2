"""google.rpc.Status, the error format of Google's APIs: an integer code, a status in capitals, details."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.faults import kind_of_message, kind_of_name, wait_in_message
from wireglot_core.dialects.fields import text_in
from wireglot_core.ir.errors import ErrorKind

UNIMPLEMENTED: Final = "UNIMPLEMENTED"
RPC_KINDS: Final[dict[str, ErrorKind]] = {
    "INVALID_ARGUMENT": "invalid_request",
    "FAILED_PRECONDITION": "invalid_request",
    "OUT_OF_RANGE": "invalid_request",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "permission",
    "NOT_FOUND": "not_found",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "ABORTED": "conflict",
    "ALREADY_EXISTS": "conflict",
    "UNAVAILABLE": "overloaded",
    "DEADLINE_EXCEEDED": "timeout",
    "INTERNAL": "server",
    "CANCELLED": "server",
    "UNKNOWN": "server",
    UNIMPLEMENTED: "server",
    "DATA_LOSS": "server",
}
_BY_REASON: Final[dict[str, ErrorKind]] = {
    "CONTEXT_LENGTH_EXCEEDED": "context_overflow",
    "API_KEY_INVALID": "auth",
    "API_KEY_EXPIRED": "auth",
    "ACCESS_TOKEN_EXPIRED": "auth",
    "BILLING_DISABLED": "billing",
    "REQUEST_TOO_LARGE": "too_large",
    "CONTENT_POLICY_VIOLATION": "content_policy",
}
"""Reasons that distinguish kinds of one status."""
_BILLING: Final = re.compile(
    r"billing (account|has|is|to be|not)|enable billing|credits are depleted|prepay", re.IGNORECASE
)
_BAD_KEY: Final = re.compile(r"api[ _]key (not valid|not found|expired|is invalid)", re.IGNORECASE)
_SECONDS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)s?")


def kind_of_rpc(code: int, name: str, reason: str, message: str) -> ErrorKind:
    """`code`: the HTTP status. `name`: the status in capitals. `reason`: of the `ErrorInfo` among the
    details."""
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    kind = kind_of_name(RPC_KINDS.get(name), code)
    if code == 413 and kind == "invalid_request":
        kind = "too_large"
    if kind == "overloaded" and code == 502:
        kind = "server"
    if kind == "invalid_request" and _BAD_KEY.search(message):
        return "auth"
    if kind in ("invalid_request", "permission", "rate_limit") and _BILLING.search(message):
        return "billing"
    return kind_of_message(kind, message)


def rpc_details(error: dict[str, Any]) -> list[dict[str, Any]]:
    listed = error.get("details")
    return [item for item in listed if type(item) is dict] if type(listed) is list else []


def detail_text(details: list[dict[str, Any]], kind: str, key: str) -> str:
    for item in details:
        if str(item.get("@type", "")).endswith(kind) and type(item.get(key)) is str:
            return str(item[key])
    return ""


def field_violation(details: list[dict[str, Any]]) -> str:
    """The field of the request that is wrong."""
    for item in details:
        violations = item.get("fieldViolations")
        if type(violations) is list and violations and type(violations[0]) is dict:
            return text_in(violations[0].get("field"))
    return ""


def rpc_wait(details: list[dict[str, Any]], message: str) -> float | None:
    """Seconds to wait before the next try."""
    for item in details:
        delay = item.get("retryDelay")
        if type(delay) is dict:
            seconds = delay.get("seconds", 0)
            delay = str(seconds) if type(seconds) in (int, float, str) else None
        if type(delay) is str and (found := _SECONDS.fullmatch(delay)):
            return float(found[1])
    return wait_in_message(message)
