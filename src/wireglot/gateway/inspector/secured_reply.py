"""What every answer of the inspector says to browsers, whoever writes it and however it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from wireglot.gateway.entry.routes import INSPECTOR_API
from wireglot.http.application import Headers, Reply

TRUSTED_TYPES: Final = "wireglot"
"""The one policy of the page: for the address of its worker."""

PAGE_CSP: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "font-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        f"trusted-types {TRUSTED_TYPES}",
    )
)
DATA_CSP: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""Of an answer that is no page, should anybody open it as one."""

_ALWAYS: Final[Headers] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    (
        "permissions-policy",
        "accelerometer=(), camera=(), clipboard-read=(), display-capture=(), geolocation=(), gyroscope=(), "
        "hid=(), magnetometer=(), microphone=(), midi=(), payment=(), publickey-credentials-get=(), "
        "screen-wake-lock=(), serial=(), usb=(), xr-spatial-tracking=()",
    ),
]
_UNCACHED: Final = ("cache-control", "no-store")


def secured(path: str, headers: Headers) -> Headers:
    """Headers with those that every answer at this path has; `headers` may only say how long it may be
    kept."""
    fixed = [*_ALWAYS, ("content-security-policy", DATA_CSP if path.startswith(INSPECTOR_API) else PAGE_CSP)]
    names = {name for name, _ in fixed}
    given = [each for each in headers if each[0] not in names]
    if not any(name == "cache-control" for name, _ in given):
        given.append(_UNCACHED)
    return given + fixed


class SecuredReply:
    """Implements `Reply`: the same way back, with these headers."""

    def __init__(self, path: str, reply: Reply) -> None:
        self._path = path
        self._reply = reply

    @property
    def started(self) -> bool:
        return self._reply.started

    @started.setter
    def started(self, value: bool) -> None:
        self._reply.started = value

    def send(self, status: int, headers: Headers, body: bytes) -> None:
        self._reply.send(status, secured(self._path, headers), body)

    def start(self, status: int, headers: Headers) -> None:
        self._reply.start(status, secured(self._path, headers))

    def write(self, data: bytes) -> None:
        self._reply.write(data)

    def end(self) -> None:
        self._reply.end()

    def abort(self) -> None:
        self._reply.abort()

    def on_pressure(self, pause: Callable[[], None], resume: Callable[[], None]) -> None:
        self._reply.on_pressure(pause, resume)
