"""The exceptions of this module. Each has a `code`, like the errors of other adapters."""

from __future__ import annotations

from typing import Literal

from wireglot_core.ir.errors import WireglotError

ApiErrorCode = Literal["KIMI_API_ERROR", "KIMI_RETRIES_EXHAUSTED"]


class KimiError(WireglotError):
    """Base of both. The message is for people and never contains the key."""

    code: str = "KIMI_ERROR"

    @property
    def name(self) -> str:
        """The class's own name, for checks that are not written in Python's terms."""
        return type(self).__name__

    def __str__(self) -> str:
        return self.message


class KimiConfigError(KimiError):
    """The call cannot be made as it is configured: no key, an invalid base URL, a retired model."""

    code: Literal["KIMI_CONFIG_ERROR"] = "KIMI_CONFIG_ERROR"


class KimiApiError(KimiError):
    """The call was made and failed.

    `status` is the HTTP status, None if there was no answer. `kind` is its meaning (`rate_limit`, `auth`,
    ...; `network` without an answer), `attempts` the number of attempts, `trace_id` the id that Kimi's
    support needs.
    """

    code: ApiErrorCode

    def __init__(
        self,
        message: str,
        *,
        code: ApiErrorCode = "KIMI_API_ERROR",
        status: int | None = None,
        kind: str = "network",
        attempts: int = 1,
        trace_id: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.kind = kind
        self.attempts = attempts
        self.trace_id = trace_id
