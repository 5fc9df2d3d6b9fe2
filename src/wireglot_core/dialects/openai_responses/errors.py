"""Errors: the envelope, failed responses, and the shapes that proxies and clones send instead."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import bare_message, error_beside, stated_message
from wireglot_core.dialects.openai_responses.spelling import NAME
from wireglot_core.dialects.openai_shared import envelope_object, stated_error, type_and_code
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError, ErrorKind

_FAILED: dict[ErrorKind, str] = {
    "context_overflow": "context_length_exceeded",
    "billing": "insufficient_quota",
    "rate_limit": "rate_limit_exceeded",
    "invalid_request": "invalid_prompt",
    "content_policy": "invalid_prompt",
}
"""Codes of a failed response that its clients act on; they treat all others as a server error, and try again.
Overload is not among them: Codex ends its turn on `server_is_overloaded` and `slow_down` (codex-rs,
`is_server_overloaded_error`), and survives the same outage under `server_error`."""


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body: envelope, failed response, error event, or any body with an error status."""
    if type(body) is not dict:
        return _bare(body, status) if status >= 400 else None
    error = error_beside(body, "output")
    if body.get("status") == "cancelled" or body.get("type") == "response.cancelled":
        return _read({}, body, status, "the response was cancelled")
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
        return _read({"message": stated_message(body)}, body, status)
    return None


def event_error(event: dict[str, Any]) -> ApiError:
    """The error of an error event. If only the event's name shows that it is one, its fields are those of the
    error."""
    return parse_error(event) or _read(event, event, 0, "the response failed")


def _read(error: dict[str, Any], body: Any, status: int, fallback: str = "") -> ApiError:
    message = stated_message(error) or fallback or bare_message(error or body, status)
    code = error.get("code")
    if error.get("type") == "error":  # the event's own
        error = {**error, "type": None}
    stated = code if type(code) is str else str(code) if type(code) is int else ""
    return stated_error(error, message, status, stated, Extra(NAME, form={"body": body}))


def _bare(body: Any, status: int) -> ApiError:
    """Text, a proxy's page, a list, or an empty body."""
    if type(body) is list and body and type(body[0]) is dict:
        found = parse_error(body[0], status)
        if found is not None:
            return found
    return stated_error({}, bare_message(body, status), status, "", None)


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    extra = error.extra
    if extra is not None and extra.dialect == NAME and type(extra.form.get("body")) is dict:
        return Rendered(extra.form["body"])
    return Rendered({"error": error_object(error)})


def error_object(error: ApiError) -> dict[str, Any]:
    """The object inside the envelope, with type and code of an error of this dialect."""
    kind, code = type_and_code(error)
    if error.extra is not None and error.extra.dialect == NAME:
        kind, code = error.type or kind, error.code or code
    return envelope_object(error, kind, code)


def failed_code(error: ApiError) -> str:
    if error.extra is not None and error.extra.dialect == NAME and error.code:
        return error.code
    return _FAILED.get(error.kind, "server_error")
