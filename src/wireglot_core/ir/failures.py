"""Why an attempt failed, in terms of what can be done about it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from wireglot_core.ir.errors import ApiError, ErrorKind, legible
from wireglot_core.ir.verdict import VERDICTS

Blame = Literal[
    "request",
    "refused",
    "credential",
    "quota",
    "rate",
    "model",
    "upstream",
    "answer",
    "connection",
    "timeout",
    "gateway",
]
"""The blame decides what happens next: nothing helps a bad request, another key helps a rejected one.
`refused`: this upstream cannot do what the request asks for, but another may. `answer`: it came completely
but contained no answer, and was paid for."""

_BLAME: Final[dict[ErrorKind, Blame]] = {
    "invalid_request": "request",
    "context_overflow": "request",
    "content_policy": "request",
    "too_large": "request",
    "conflict": "request",
    "auth": "credential",
    "permission": "credential",
    "billing": "quota",
    "not_found": "model",
    "rate_limit": "rate",
    "overloaded": "upstream",
    "server": "upstream",
    "timeout": "upstream",
}

ConnectionProblem = Literal[
    "dns",
    "connect",
    "tls",
    "broken",
    "protocol",
    "too_large",
    "first_byte_timeout",
    "idle_timeout",
    "total_timeout",
    "busy",
]
"""Why no answer came, in the words of `wireglot.http.transport.TransportProblem`."""

_Outcome = Literal["upstream_down", "upstream_bad", "upstream_timeout", "shed"]

_PROBLEMS: Final[dict[ConnectionProblem, tuple[Blame, _Outcome]]] = {
    "dns": ("connection", "upstream_down"),
    "connect": ("connection", "upstream_down"),
    "tls": ("timeout", "upstream_down"),  # a retry would show the key to the same stranger
    "broken": ("connection", "upstream_bad"),
    "protocol": ("connection", "upstream_bad"),
    "too_large": ("timeout", "upstream_bad"),
    "first_byte_timeout": ("timeout", "upstream_timeout"),
    "idle_timeout": ("timeout", "upstream_timeout"),
    "total_timeout": ("timeout", "upstream_timeout"),
    "busy": ("gateway", "shed"),
}

_OUTCOMES: Final[dict[_Outcome, tuple[ErrorKind, int, str]]] = {
    "upstream_down": ("server", 503, "upstream_unavailable"),
    "upstream_bad": ("server", 502, "upstream_error"),
    "upstream_timeout": ("timeout", 504, "upstream_timeout"),
    "shed": ("overloaded", 503, "server_is_overloaded"),
}

_DOWN_SECONDS: Final = 2.0
"""The reported wait for an upstream that cannot be reached, or until we have room."""

HELPED_BY_RETRY: Final[frozenset[Blame]] = frozenset({"rate", "upstream", "connection"})
COUNTED: Final[frozenset[Blame]] = frozenset({"upstream", "connection", "timeout"})
"""Failures that a breaker counts: those of the upstream, not of a request or a key, nor our own."""


class AttemptFailed(Exception):
    """An attempt that failed before any of its answer reached the client.

    `body`: the upstream's own error, for a client of the same dialect. `wait`: the wait that the upstream
    requested; `reported_wait`: the one that the client is told.
    """

    def __init__(
        self,
        error: ApiError,
        blame: Blame,
        *,
        wait: float | None = None,
        reported_wait: float | None = None,
        body: bytes | None = None,
        status: int = 0,
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.blame: Blame = blame
        self.wait = wait
        self.reported_wait = wait if wait is not None else reported_wait
        self.body = body
        self.status = status
        self.answered: tuple[str, bytes] | None = None
        """The upstream's dialect and its own error, whatever the client's dialect."""
        self.fix = ""
        """For the operator: where to look."""

    @property
    def is_outage(self) -> bool:
        """Whether it is reported with a status that tells the client to retry later."""
        return self.error.kind == "overloaded" or self.error.status in (503, 529)


def of_connection(problem: ConnectionProblem, message: str) -> AttemptFailed:
    blame, outcome = _PROBLEMS[problem]
    wait = _DOWN_SECONDS if outcome in ("upstream_down", "shed") else None
    return AttemptFailed(connection_error(problem, message), blame, reported_wait=wait)


def connection_error(problem: ConnectionProblem, message: str) -> ApiError:
    kind, status, code = _OUTCOMES[_PROBLEMS[problem][1]]
    return ApiError(kind, legible(message), status=status, code=code)


def of_error(
    error: ApiError, status: int, wait: float | None = None, body: bytes | None = None
) -> AttemptFailed:
    blame = _BLAME[error.kind]
    if error.status == 0 and status:
        error = msgspec.structs.replace(error, status=status)
    return AttemptFailed(
        error, blame, wait=wait if wait is not None else error.retry_after, body=body, status=status
    )


def of_stream(error: ApiError) -> AttemptFailed:
    """An error in place of a stream. Data that our reader could not parse is not our own fault."""
    if error.kind == "server" and not (error.status and error.code):
        code = error.code or "upstream_error"
        error = msgspec.structs.replace(error, status=error.status or 502, code=code)
    return of_error(error, error.status)


def is_counted(error: ApiError) -> bool:
    return error.code not in VERDICTS and _BLAME[error.kind] in COUNTED


def no_answer(error: ApiError) -> AttemptFailed:
    """An answer with a good status but without content."""
    return AttemptFailed(error, "answer")


def unreadable(message: str) -> AttemptFailed:
    """An invalid answer: HTML, half a document, a redirect."""
    return AttemptFailed(ApiError("server", message, status=502, code="upstream_error"), "upstream")
