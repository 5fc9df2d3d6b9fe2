"""Requests from a command to a gateway over HTTP: its address, and readable errors if it does not answer.

No message contains a secret: neither a key, nor the parts of a URL before the host or after the path.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from wireglot import __version__
from wireglot.cli.terminal import Failed, Unusable, complain, one_line
from wireglot.cli.trust import find_config
from wireglot.gateway.observe.client_names import OWN_AGENT
from wireglot.gateway.observe.running import SYSTEM_DATA, RunningGateway, find_running
from wireglot.gateway.settings import Settings
from wireglot.stores import described
from wireglot_core.wire.json import BadJson, decode, encode

ANSWER_SECONDS: Final = 30.0
# Bytes of one answer of a gateway to a command: a trace has 64 MiB at most.
MAX_ANSWER_BYTES: Final = 128 * 1024 * 1024
CONNECT_SECONDS: Final = 10.0
_SENDABLE: Final = re.compile(r"[\x21-\x7e]*")
_HOST: Final = re.compile(r"[A-Za-z0-9._:%~-]+")
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_REDIRECTS: Final = range(300, 400)


class GatewayUnreachable(Failed):
    """No server answers, or it is not a gateway."""


class GatewayAddress(msgspec.Struct, frozen=True):
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


class GatewayAnswer(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes

    def document(self) -> dict[str, Any]:
        """The JSON object in the answer, or an empty one."""
        try:
            found = decode(self.body)
        except BadJson:
            return {}
        return found if isinstance(found, dict) else {}

    def complaint(self) -> str:
        """The message of an error, in any dialect."""
        error = self.document().get("error")
        message = error.get("message") if isinstance(error, dict) else None
        if isinstance(message, str) and message:
            return one_line(message)
        if self.status in _REDIRECTS and (place := self.headers.get("location")):
            return f"it redirects to {_without_secrets(place)}: use that address"
        return f"status {self.status}, not from a Wireglot gateway: check the address"


def listening(host: str, port: int) -> GatewayAddress:
    """The address of a gateway that listens at a host of this machine, which may be all of them."""
    return GatewayAddress("http", _EVERYWHERE.get(host, host), port)


def address_of(url: str) -> GatewayAddress:
    """Raises Unusable. A client's base URL with /v1 at its end means the same gateway."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as fault:
        raise Unusable(f"--url: expected http://HOST:PORT: {one_line(str(fault))}") from None
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        raise Unusable(f"--url: expected http://HOST:PORT, got {_without_secrets(url)!r}")
    root = quote(parts.path.rstrip("/").removesuffix("/v1"), safe=_PATH_SAFE)
    return GatewayAddress(parts.scheme, host, port, root)


def admin_secret() -> str:
    """Of a gateway that --url names; raises Unusable."""
    secret = usable_key(os.environ.get(ADMIN_SECRET, ""), ADMIN_SECRET)
    if not secret:
        raise Unusable(f"--url requires the gateway's admin secret in {ADMIN_SECRET}")
    return secret


def usable_key(key: str, source: str) -> str:
    """The key; raises Unusable if HTTP cannot carry it. `source`: its option or variable."""
    if _SENDABLE.fullmatch(key):
        return key
    raise Unusable(f"{source}: expected a key in plain ASCII without spaces and line breaks")


def ask(
    address: GatewayAddress,
    method: str,
    path: str,
    *,
    key: str = "",
    body: Any = None,
    headers: Mapping[str, str] = {},
    seconds: float = ANSWER_SECONDS,
) -> GatewayAnswer:
    """One request on a separate connection. Raises NoAnswer. `seconds`: how long it may be silent."""
    secure = address.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    sent = {"user-agent": f"{OWN_AGENT}{__version__}", **headers}
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
        data = response.read(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES:
            raise GatewayUnreachable(f"{address.url}: an answer of more than {MAX_ANSWER_BYTES >> 20} MiB")
        return GatewayAnswer(response.status, named, data)
    except (OSError, http.client.HTTPException, UnicodeError) as fault:
        raise GatewayUnreachable(f"{address.url}: {_why(fault, seconds, secure=secure)}") from None
    finally:
        connection.close()


def _why(fault: Exception, seconds: float, *, secure: bool) -> str:
    match fault:
        case ConnectionRefusedError():
            return "connection refused: check that the gateway runs (`wireglot serve`), and the port"
        case socket.gaierror() | UnicodeError():
            return "unknown host name"
        case TimeoutError():
            return f"no answer within {seconds:g} s"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {one_line(fault.verify_message)}"
        case ssl.SSLError() if fault.reason in _NO_TLS:
            return "the server does not use TLS: use http://"
        case ssl.SSLError():
            return f"TLS handshake failed: {one_line(fault.reason or str(fault))}"
        case ConnectionError() | http.client.HTTPException() if not secure:
            # A server that expects TLS closes the connection, or answers with an alert.
            return "the server does not speak HTTP: if it uses TLS, use https://"
        case OSError():
            return one_line(fault.strerror or str(fault) or type(fault).__name__)
        case _:
            return f"the server does not speak HTTP ({type(fault).__name__})"


_NO_TLS: Final = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNEXPECTED_EOF_WHILE_READING",
)


def _without_secrets(url: str) -> str:
    """A URL as it may be reported: without user, password and query."""
    scheme, separator, rest = url.partition("://")
    place = (rest if separator else scheme).partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    shown = f"{host.rpartition('@')[2]}{slash}{path}"
    return one_line(f"{scheme}{separator}{shown}" if separator else shown)


ADMIN_SECRET: Final = "WIREGLOT_ADMIN_SECRET"
_ANSWER_SECONDS: Final = 5.0
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def running_url(config: Path | None, environ: Mapping[str, str]) -> str:
    """The URL of this user's running gateway with this configuration, or of any if there is none; else ""."""
    found = _running(config, find_running(environ))
    return reachable(found.url) if found is not None else ""


def operated_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> RunningGateway | None:
    """The gateway whose data a command is about: of this user, or for root that of the system's service.
    `named`: the configuration on the command line."""
    running = find_running(environ, system=SYSTEM_DATA)
    return _running(find_config(named, environ).path, [each for each in running if each.key])


class StoreNote:
    """Reports which store a command used, and which gateway may use another one. Created before the store is
    opened, printed when the command is done: errors are one line."""

    def __init__(
        self,
        settings: Settings,
        options: str = "",
        folder: str = "",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`options`: what the command needs in addition to --url. `folder`: the folder next to the store that
        it used."""
        url = settings.store.url.value
        self._place = described(url)
        self._is_new = url.startswith("sqlite:") and not os.path.exists(self._place)
        self._server = settings.server
        self._options = options
        self._folder = folder
        self._is_said = False
        self._environ = environ

    def say(self) -> None:
        if self._is_said:
            return
        self._is_said = True
        new = ", which was newly created" if self._is_new and not self._folder else ""
        complain(f"no running gateway found, using the store {one_line(self._folder or self._place)}{new}")
        known = find_running(self._environ, system=SYSTEM_DATA)
        for each in known:
            if each.store != self._place:
                store = f" with the store {one_line(each.store)}" if each.store else ""
                complain(f"another gateway runs at {reachable(each.url)}{store}: {_how(each)}")
        host, port = self._server.host, self._server.port
        there = listening(host, port)
        if port and not any(each.url.endswith(f":{port}") for each in known) and is_gateway(there):
            complain(
                f"a gateway that is not recorded in your data folder runs at {there.url}, perhaps with "
                "another store: run this command as its user with its HOME and XDG_DATA_HOME, or with "
                f"--url {there.url}{self._options} and its admin secret in {ADMIN_SECRET}"
            )


def _how(running: RunningGateway) -> str:
    config = f"--config {running.config}" if running.config else f"--url {reachable(running.url)}"
    return f"to use it: {one_line(config)}"


def _running(config: Path | None, known: list[RunningGateway]) -> RunningGateway | None:
    wanted = str(config.absolute()) if config is not None else ""
    return next((each for each in known if wanted in ("", each.config) and _answers(each)), None)


def _answers(running: RunningGateway) -> bool:
    try:
        return is_gateway(address_of(reachable(running.url)))
    except Unusable:
        return False


def is_gateway(address: GatewayAddress) -> bool:
    try:
        answer = ask(address, "GET", "/", seconds=_ANSWER_SECONDS)
    except GatewayUnreachable:
        return False
    return answer.status == 200 and answer.document().get("name") == "wireglot"


def reachable(url: str) -> str:
    """The address at which a gateway that listens everywhere is reached on this machine."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
