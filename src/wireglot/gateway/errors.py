"""Errors that the gateway itself raises, by the classes of its fault matrix, and the true status of every
error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeVar

import msgspec

from wireglot.http.application import Headers, Refusal
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import dialect
from wireglot_core.ir.errors import ApiError, ClientFault, ErrorKind, Unsupported, legible
from wireglot_core.wire.json import TooDeep, encode

T = TypeVar("T")

ErrorClass = Literal[
    "bad", "auth", "permission", "not_found", "conflict", "too_large", "media", "rate", "shed", "internal",
    "upstream_bad", "upstream_down", "upstream_timeout", "upstream_auth",
]  # fmt: skip

_CLASSES: Final[dict[ErrorClass, tuple[ErrorKind, int, str]]] = {
    "bad": ("invalid_request", 400, ""),
    "auth": ("auth", 401, "invalid_api_key"),
    "permission": ("permission", 403, ""),
    "not_found": ("not_found", 404, "model_not_found"),
    "conflict": ("conflict", 409, "idempotency_conflict"),
    "too_large": ("too_large", 413, "request_too_large"),
    "media": ("invalid_request", 415, "unsupported_media_type"),
    "rate": ("rate_limit", 429, "rate_limit_exceeded"),
    "shed": ("overloaded", 503, "server_is_overloaded"),
    "internal": ("server", 500, "internal_error"),
    "upstream_bad": ("server", 502, "upstream_error"),
    "upstream_down": ("server", 503, "upstream_unavailable"),
    "upstream_timeout": ("timeout", 504, "upstream_timeout"),
    "upstream_auth": ("server", 502, "upstream_auth_failed"),
}

RETRY_AFTER_MAX = 120
"""Seconds in `retry-after`: a longer wait makes OpenAI's SDK give up."""

_WAIT_SECONDS: Final = {429: 1.0, 503: 2.0, 529: 2.0}
"""Default waits. A status that means "retry later" always has one: Codex gives up at once on a 429 without
it."""

QUOTA = "insufficient_quota"
"""For a spent budget: clients should not retry before the next period begins, however long that is."""


class RequestError(Exception):
    """Ends a request with an error of this class. `retry_after` in seconds, reported to the client.

    `final`: repeating cannot help, so the client's SDK should not try.
    """

    def __init__(
        self,
        kind: ErrorClass,
        message: str,
        *,
        code: str = "",
        param: str = "",
        retry_after: float | None = None,
        final: bool = False,
        document: dict[str, Any] | None = None,
    ) -> None:
        """`document`: the exact body, where a client's SDK expects one; its `request_id` is added."""
        super().__init__(message)
        self.kind: ErrorClass = kind
        self.final = final
        self.document = document
        self.headers: Sequence[tuple[str, str]] = ()
        """Further headers of the refusal."""
        error_kind, self.status, usual = _CLASSES[kind]
        self.error = ApiError(
            error_kind,
            legible(message),
            status=self.status,
            code=code or usual,
            param=param,
            retry_after=retry_after,
        )

    def with_status(self, status: int) -> RequestError:
        """The same error with another status, for errors that HTTP defines a status for."""
        self.status, self.error = status, msgspec.structs.replace(self.error, status=status)
        return self

    def again(self) -> RequestError:
        """The same error, to be kept and raised later: this one refers to all frames that it has passed."""
        same = RequestError.__new__(RequestError, *self.args)
        same.__dict__.update(self.__dict__)
        return same


def invalid_value(name: str, expected: str) -> RequestError:
    """The error for an invalid field or parameter of a request."""
    return RequestError("bad", f"{name}: expected {expected}", code="invalid_value", param=name)


def cleaned(error: ApiError, clean: Callable[[str], str]) -> ApiError:
    """An upstream's error with every field cleaned of what must not be reported."""
    return msgspec.structs.replace(
        error,
        message=clean(error.message),
        type=clean(error.type),
        code=clean(error.code),
        param=clean(error.param),
        extra=None,
    )


def error_headers(error: ApiError, status: int, *, final: bool = False) -> Headers:
    """The headers that report an error. `status`: the one that it is reported with."""
    headers: Headers = []
    stated = error.retry_after if error.retry_after is not None else _WAIT_SECONDS.get(status)
    if stated is not None:
        wait = max(1, round(stated))
        headers.append(("retry-after", str(wait if error.code == QUOTA else min(RETRY_AFTER_MAX, wait))))
    if error.kind == "auth":
        headers.append(("www-authenticate", "Bearer"))
    # Claude Code (2.1.326) silently repeats a 401 for three minutes, and the SDKs of Anthropic and OpenAI
    # repeat every 5xx. Neither a rejected key nor an unsupported feature works the next time.
    if final or error.kind == "auth" or status == 501:
        headers.append(("x-should-retry", "false"))
    return headers


def refusal(
    error: ApiError, dialect_name: str, request_id: str = "", *, final: bool = False, close: bool = False
) -> Refusal:
    """The complete response that reports an error in a dialect."""
    if request_id and not error.request_id:
        error = msgspec.structs.replace(error, request_id=request_id)
    spoken = dialect(dialect_name)
    status = spoken.surface.status(error)
    if error.status != status:
        error = msgspec.structs.replace(error, status=status)
    body = encode(spoken.render_error(error, Context()).value)
    headers: Headers = [("content-type", "application/json"), *error_headers(error, status, final=final)]
    typed = spoken.surface.client.error_headers
    if typed is not None:
        headers += typed(error)
    return Refusal(status, headers, body, close)


UNTRANSLATABLE: Final = (ClientFault, Unsupported, RecursionError)
"""Errors that a translation raises for an invalid request. No body is deep enough for a RecursionError, but
an item stored before the depth limit existed may be."""


def request_error(fault: ClientFault | Unsupported | RecursionError) -> RequestError:
    """One of UNTRANSLATABLE, as an error that names the place."""
    if isinstance(fault, RecursionError):
        return RequestError("bad", str(TooDeep()), code="json_too_deep")
    place = fault.path.removeprefix("$").removeprefix(".")
    message = f"{place}: {fault.message}" if place else fault.message
    code = "unsupported" if isinstance(fault, Unsupported) else "invalid_value"
    return RequestError("bad", message, code=code, param=place)


def with_request_errors(action: Callable[[], T]) -> T:
    """Run a translation; what is wrong with the request becomes an error that names the place."""
    try:
        return action()
    except UNTRANSLATABLE as fault:
        raise request_error(fault) from None
