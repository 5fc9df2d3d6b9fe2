"""Parses and renders errors, by mirrored tables. Servers that imitate OpenAI's wrap theirs in many ways."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.faults import bare_message, error_beside, is_page, stated_message, status_message
from wireglot_core.dialects.fields import own_fields, text_in
from wireglot_core.dialects.openai_chat.extras import NAME
from wireglot_core.dialects.openai_shared import envelope_object, stated_error, type_and_code
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import encode_text


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body; None if neither the body nor the status (0: unknown) is an error."""
    found = _find(body, status)
    if found is None:
        return None
    extra = Extra(NAME, body) if type(body) is dict and body else None
    if not _is_error_status(status):
        status = next(
            (
                value
                for key in ("code", "status", "status_code")
                if type(value := found.get(key)) is int and _is_error_status(value)
            ),
            status,
        )
    message = stated_message(found) or status_message(status)
    code = found.get("code")
    request_id = text_in(body.get("request_id")) if type(body) is dict else ""
    return stated_error(found, message, status, "" if code is None else str(code), extra, request_id)


def _is_error_status(status: int) -> bool:
    return 400 <= status < 600


def _find(body: Any, status: int) -> dict[str, Any] | None:
    """The error object inside whatever the server wrapped around it."""
    failed = _is_error_status(status)
    if type(body) is list:
        return _find(body[0], status) if body else _find(None, status)
    if type(body) is not dict:
        reported = failed or (type(body) is str and is_page(body))
        return {"message": bare_message(body, status)} if reported else None
    error = error_beside(body, "choices")
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


def render_error(error: ApiError) -> dict[str, Any]:
    """The error envelope; an error of this dialect is returned unchanged."""
    native = own_fields(error.extra, NAME)
    if native:
        return dict(native)
    return {"error": envelope_object(error, *type_and_code(error))}
