"""A gateway asked over HTTP by a command: where it is, and in words why it did not answer.

No words hold a secret: neither a key, nor what stands before the host or behind the path of a URL.
"""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from wireglot.cli.paint import one_line
from wireglot.wire.json import BadJson, decode, encode

ANSWER_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 10.0
_SENDABLE: Final = re.compile(r"[\x21-\x7e]*")
_HOST: Final = re.compile(r"[A-Za-z0-9._:%~-]+")
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_REDIRECTS: Final = range(300, 400)


class UnusableUrl(Exception):
    """In words for people."""


class UnusableKey(Exception):
    """In words for people."""


class NoAnswer(Exception):
    """In words for people."""


class Address(msgspec.Struct, frozen=True):
    """Where a gateway listens."""

    scheme: str
    host: str
    port: int | None
    root: str = ""

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.root}"


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """The JSON object that it is, or an empty one."""
        try:
            found = decode(self.body)
        except BadJson:
            return {}
        return found if isinstance(found, dict) else {}

    def complaint(self) -> str:
        """What an error says, in any dialect."""
        error = self.document().get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if isinstance(message, str) and message:
            return one_line(message)
        if self.status in _REDIRECTS and (place := self.headers.get("location")):
            return f"it sends on to {_without_secrets(place)}: use that address"
        return f"status {self.status}, but not from a gateway: is the address right?"


def address_of(url: str) -> Address:
    """Raises UnusableUrl. A base URL as clients have it, with /v1 at its end, means the same gateway."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise UnusableUrl(f"--url: expected http://HOST:PORT: {one_line(str(fault))}") from None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        raise UnusableUrl(f"--url: expected http://HOST:PORT, got {_without_secrets(url)!r}")
    root = quote(parts.path.rstrip("/").removesuffix("/v1"), safe=_PATH_SAFE)
    return Address(parts.scheme, host, port, root)


def usable_key(key: str, source: str) -> str:
    """The key; raises UnusableKey where HTTP could not carry it. `source`: its option or variable."""
    if _SENDABLE.fullmatch(key):
        return key
    raise UnusableKey(f"{source}: expected a key of plain ASCII, without spaces and line ends")


def ask(
    address: Address,
    method: str,
    path: str,
    *,
    key: str = "",
    body: Any = None,
    headers: Mapping[str, str] = {},
    seconds: float = ANSWER_SECONDS,
) -> Answer:
    """One request on a connection of its own. Raises NoAnswer. `seconds`: for which it may be silent."""
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    sent = dict(headers)
    if key:
        sent["authorization"] = f"Bearer {key}"
    if body is not None:
        sent["content-type"] = "application/json"
    connection = kind(address.host, address.port, timeout=min(seconds, CONNECT_SECONDS))
    try:
        connection.connect()
        connection.sock.settimeout(seconds)
        connection.request(method, address.root + path, None if body is None else encode(body), sent)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, named, response.read())
    except (OSError, http.client.HTTPException, UnicodeError) as fault:
        raise NoAnswer(f"{address.url}: {_why(fault, seconds, secure=secure)}") from None
    finally:
        connection.close()


def _why(fault: Exception, seconds: float, *, secure: bool) -> str:
    match fault:
        case ConnectionRefusedError():
            return "nothing listens there: is the gateway started (`wireglot serve`), and the port right?"
        case socket.gaierror() | UnicodeError():
            return "there is no host of that name"
        case TimeoutError():
            return f"no answer within {seconds:g} s"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {one_line(fault.verify_message)}"
        case ssl.SSLError() if fault.reason in _NO_TLS:
            return "no TLS is spoken there: say http://"
        case ssl.SSLError():
            return f"no TLS connection comes about: {one_line(fault.reason or str(fault))}"
        case ConnectionError() | http.client.HTTPException() if not secure:
            # A server that expects TLS hangs up, or answers with an alert.
            return "no HTTP is spoken there: if it is TLS, say https://"
        case OSError():
            return one_line(fault.strerror or str(fault) or type(fault).__name__)
        case _:
            return f"what answers there speaks no HTTP ({type(fault).__name__})"


_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNEXPECTED_EOF_WHILE_READING",
)


def _without_secrets(url: str) -> str:
    """A URL as it may be told: no name and password before the host, no query."""
    scheme, separator, rest = url.partition("://")
    place = (rest if separator else scheme).partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    shown = f"{host.rpartition('@')[2]}{slash}{path}"
    return one_line(f"{scheme}{separator}{shown}" if separator else shown)
