"""Errors as values (reported by a provider) and as exceptions (grouped by who caused them)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from wireglot_core.ir.content import Extra

ErrorKind = Literal[
    "invalid_request",
    "context_overflow",
    "auth",
    "billing",
    "permission",
    "not_found",
    "conflict",
    "too_large",
    "rate_limit",
    "overloaded",
    "server",
    "timeout",
    "content_policy",
]


class ApiError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error an API reported, in neutral terms. `type`, `code` are the source's raw spellings.

    `extra` holds the whole native error body, so that its own dialect gets it back verbatim.
    """

    kind: ErrorKind
    message: str
    status: int = 0
    type: str = ""
    code: str = ""
    param: str = ""
    retry_after: float | None = None
    request_id: str = ""
    extra: Extra | None = None


class WireglotError(Exception):
    """Base class of all errors that Wireglot raises on purpose. `code` identifies them without knowing the
    class."""

    code: str = "WIREGLOT_ERROR"

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class ClientFault(WireglotError):
    """The client sent something that its dialect does not allow: `path` is the place, the message what was
    expected."""

    code = "CLIENT_FAULT"


class UpstreamFault(WireglotError):
    """The provider's document does not follow its dialect."""

    code = "UPSTREAM_FAULT"


class Unsupported(WireglotError):
    """The request is well-formed, but cannot be expressed for the target and must not be dropped."""

    code = "UNSUPPORTED"


class StrictLoss(Unsupported):
    """Something would have been changed or lost, and the caller allowed no losses."""

    code = "STRICT_LOSS"


MODEL_DENIED: Final = "model_not_allowed"
"""The code of an error about a model that the caller's key may not use."""

# Characters of an error's message.
MESSAGE_MAX = 512


def legible(message: str, limit: int = MESSAGE_MAX) -> str:
    """A message as one line, without control characters, limited in length."""
    if not message.isprintable():
        message = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    return message if len(message) <= limit else message[: limit - 1] + "…"
