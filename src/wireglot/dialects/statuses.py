"""The HTTP status of an error that brings none of its own."""

from __future__ import annotations

from typing import Final

from wireglot.ir.errors import ApiError, ErrorKind

_USUAL: Final[dict[ErrorKind, int]] = {
    "invalid_request": 400,
    "context_overflow": 400,
    "auth": 401,
    "billing": 402,
    "permission": 403,
    "not_found": 404,
    "conflict": 409,
    "too_large": 413,
    "rate_limit": 429,
    "overloaded": 503,
    "server": 500,
    "timeout": 504,
    "content_policy": 400,
}

UPSTREAM_AUTH: Final = "upstream_auth_failed"
"""The code of an error that a gateway's own key has caused. Its client has done nothing wrong."""


def own_status(error: ApiError) -> int:
    """The one that the error brings, else the one of its kind."""
    return error.status if 400 <= error.status <= 599 else _USUAL[error.kind]


def plain_status(error: ApiError) -> int:
    """The same, for dialects that do not know Anthropic's 529."""
    status = own_status(error)
    return 503 if status == 529 else status
