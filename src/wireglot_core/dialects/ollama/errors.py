"""Parses and renders errors: one message; the status contains the rest."""

from __future__ import annotations

from typing import Any

from wireglot_core.dialects.common_losses import lost_details
from wireglot_core.dialects.context import Context, Rendered
from wireglot_core.dialects.faults import (
    bare_message,
    is_page,
    kind_of_message,
    kind_of_status,
    stated_message,
    status_message,
    wait_in_message,
)
from wireglot_core.dialects.fields import own_fields
from wireglot_core.dialects.ollama.extras import NAME
from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ApiError
from wireglot_core.wire.json import encode_text


def parse_error(body: Any, status: int = 0) -> ApiError | None:
    """The error in a body; None if neither the body nor the status (0: unknown) is an error."""
    failed = 400 <= status < 600
    said = _message(body, status)
    if not said:
        if not failed:
            return None
        said = status_message(status)
    extra = Extra(NAME, body) if type(body) is dict and body else None
    kind = kind_of_message(kind_of_status(status), said)
    return ApiError(kind, said, status, retry_after=wait_in_message(said), extra=extra)


def _message(body: Any, status: int) -> str:
    """The message of the body, "" if it reports no error."""
    failed = 400 <= status < 600
    if type(body) is not dict:
        return bare_message(body, status) if failed or (type(body) is str and is_page(body)) else ""
    error = body.get("error")
    if type(error) is str and error:
        return error
    if type(error) is dict and error:  # of a proxy
        return stated_message(error) or encode_text(error)
    if error:
        return encode_text(error)
    return stated_message(body) if failed else ""


def render_error(error: ApiError, context: Context) -> Rendered[dict[str, Any]]:
    """An error of this dialect is returned unchanged."""
    native = own_fields(error.extra, NAME)
    if owns_error(native):
        return Rendered(dict(native))
    losses = tuple(lost_details(error, ("code", "param")))
    return Rendered({"error": error.message or status_message(0)}, losses)


def owns_error(body: Any) -> bool:
    return type(body) is dict and type(body.get("error")) is str and bool(body["error"])
