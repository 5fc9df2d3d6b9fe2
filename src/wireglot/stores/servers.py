"""Common parts of server URLs: hosts, and errors of certificates."""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import unquote

Host = tuple[str, int | None]
"""A name and a port; None: the default."""

_EXPIRED_CODE: Final = 10
_NAME_CODES: Final = (62, 63, 64)
"""OpenSSL's codes for another host, e-mail address or IP address."""


def read_host(text: str) -> Host:
    """`name`, `name:port`, `[::1]:port`. Raises ValueError."""
    bracketed, bracket, rest = text.partition("]")
    name, port = (bracketed[1:], rest.removeprefix(":")) if bracket else text.partition(":")[::2]
    if not name or text.startswith("[") != bool(bracket):
        raise ValueError("a host without a name")
    return unquote(name), read_port(port)


def read_port(text: str) -> int | None:
    """Raises ValueError."""
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65_536:
        raise ValueError("a port that is none")
    return int(text)


def tls_fault(problem: BaseException) -> str:
    """In our own words; "" if the problem is not TLS."""
    at: BaseException | None = problem
    while at is not None and not isinstance(at, ssl.SSLError):
        at = at.__cause__ or at.__context__
    if at is None:
        return ""
    if not isinstance(at, ssl.SSLCertVerificationError):
        return "the TLS handshake failed"
    if at.verify_code == _EXPIRED_CODE:
        return "its certificate has expired"
    if at.verify_code in _NAME_CODES:
        return "its certificate is for another name"
    return "its certificate is not signed by an authority that is trusted here"
