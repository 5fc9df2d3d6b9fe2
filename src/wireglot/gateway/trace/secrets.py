"""What is secret goes from a recording before it is written: by its value, and by the name that it has."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import msgspec

from wireglot.http.redaction import MASK, Redactor
from wireglot.traces.bodies import is_tangled

_SECRET_HEADER: Final = re.compile(
    r"(?i)auth|secret|cookie|password|credential|x-wireglot-admin|jwt|(?:keys?|tokens?|signature|assertion)$"
)
_NO_SECRET: Final = frozenset({"idempotency-key"})
_SECRET_FIELD: Final = re.compile(r"(?i)(?:key|token|secret|password|auth|signature|credential|sig)$")
_MASK: Final = MASK.decode()
_WORDS: Final = re.compile(
    rb'(?P<before>"(?P<name>text|content|delta|refusal|thinking|reasoning|reasoning_content|partial_json'
    rb'|arguments|input|signature|data)"\s*:\s*")(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
"""What a model says, in the events of any dialect. Nothing of it is tried twice: otherwise a picture in one
event would take two hundred times its size, and the interpreter from everybody for seconds."""
_USER: Final = re.compile(r"""(?i)(?P<before>\b[a-z][a-z0-9+.-]{0,30}://)(?P<user>[^/\s?#@"'<>]{0,1000})@""")
"""A user, and perhaps a password, in a URL."""
_NAMED: Final = re.compile(r"""(?P<before>[?&;](?P<name>[\w.~-]{1,100})=)(?P<value>[^&\s#;,"'<>]{1,10000})""")
"""A field of a URL's query."""
_SCHEME: Final = re.compile(r"(?i)(bearer|basic|digest|negotiate)\s+")
_SERVER_TOKEN: Final = re.compile(
    rb'"(?:authorization_token|authorization)"\s*:\s*(?P<text>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
)
_SERVERS: Final = b'"mcp'
_SERVER_KIND: Final = "mcp"
_TELLING: Final = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers for a tool server that are no secret, whoever names them."""


class Scrubber:
    """For one exchange: the secrets of the configuration, and the credentials that this request brought. A
    client's key is known to nobody by its value, but for the request that brings it."""

    def __init__(
        self, redactor: Redactor, headers: Iterable[tuple[str, str]], url: str, body: bytes = b""
    ) -> None:
        told = list(headers)
        brought = {_SCHEME.sub("", value) for name, value in told if is_secret(name)}
        brought |= {value for name, value in _fields(url) if _SECRET_FIELD.search(name)}
        for name, value in told:
            if not is_secret(name):
                brought |= _in_urls(value)
        self.unsearched = False
        """The request has too many parts to look for credentials in it: then none of it may be kept."""
        try:
            brought |= {_SCHEME.sub("", value) for value in _for_servers(body)}
        except TooManyParts:
            self.unsearched = True
        self._redactor = redactor
        self._own = Redactor({value for value in brought if value})

    def data(self, data: bytes) -> bytes:
        """The same object where there is nothing to hide."""
        return self._redactor.data(self._own.values(data))

    def text(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        clean = self.data(data)
        return text if clean is data else clean.decode("utf-8", "replace")

    def spread(self, pieces: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
        """A model writes a secret that it was told in many small events: none of them holds it, all together
        do. Where that is so, the first event has the whole of what they say, without it, and the others
        nothing."""
        said: dict[bytes, list[bytes]] = {}
        for _, data in pieces:
            for field in _WORDS.finditer(data):
                said.setdefault(field["name"], []).append(field["text"])
        hidden: dict[bytes, bytes] = {}
        for name, texts in said.items():
            whole = b"".join(texts)
            if (clean := self.data(whole)) is not whole:
                hidden[name] = clean
        if not hidden:
            return pieces

        def instead(field: re.Match[bytes]) -> bytes:
            name = field["name"]
            if name not in hidden:
                return field[0]
            clean, hidden[name] = hidden[name], b""
            return field["before"] + clean + b'"'

        return [(at, _WORDS.sub(instead, data)) for at, data in pieces]

    def headers(self, headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, _MASK if is_secret(name) else self.text(_plain(value))) for name, value in headers]

    def url(self, url: str) -> str:
        path, mark, query = url.partition("?")
        if mark:
            pairs = (pair.partition("=") for pair in query.split("&"))
            query = "&".join(
                f"{name}={_MASK}" if _SECRET_FIELD.search(name) else f"{name}{equals}{value}"
                for name, equals, value in pairs
            )
        return self.text(_USER.sub(_no_user, f"{path}{mark}{query}"))


def _in_urls(text: str) -> set[str]:
    """Credentials in the URLs of a text, as they are spelled there and as they are meant."""
    if "=" not in text and "@" not in text:
        return set()
    found = {each["user"].partition(":")[2] for each in _USER.finditer(text)}
    found |= {each["value"] for each in _NAMED.finditer(text) if _SECRET_FIELD.search(each["name"])}
    return found | {unquote(value) for value in found}


def _plain(text: str) -> str:
    """Without them."""
    if "=" not in text and "@" not in text:
        return text
    return _NAMED.sub(_no_value, _USER.sub(_no_user, text))


def _no_user(found: re.Match[str]) -> str:
    return f"{found['before']}{_MASK}@"


def _no_value(found: re.Match[str]) -> str:
    return f"{found['before']}{_MASK}" if _SECRET_FIELD.search(found["name"]) else found[0]


def is_secret(header: str) -> bool:
    return _SECRET_HEADER.search(header) is not None and header not in _NO_SECRET


def _for_servers(body: bytes) -> set[str]:
    """What a request has its provider show to tool servers: tokens, and headers of any name."""
    found = set()
    for field in _SERVER_TOKEN.finditer(body):
        with contextlib.suppress(msgspec.DecodeError):
            found.add(msgspec.json.decode(field["text"], type=str))
    if _SERVERS not in body:
        return found
    try:
        asked = msgspec.json.decode(body, type=_Asked)
        for server in _elements(asked.mcp_servers):
            if isinstance(address := _of_server(server).url, str):
                found |= _in_urls(address)
        for tool in _elements(asked.tools):
            known = _of_server(tool) if _SERVERS in bytes(tool) else None
            if known is None or known.type != _SERVER_KIND:
                continue
            if isinstance(known.server_url, str):
                found |= _in_urls(known.server_url)
            for name, value in known.headers.items() if isinstance(known.headers, dict) else ():
                if isinstance(value, str) and name.lower() not in _TELLING:
                    found.add(value)
    except msgspec.DecodeError:  # cut short, or none of ours
        pass
    return found


def _elements(array: msgspec.Raw) -> list[msgspec.Raw]:
    """Each as it is written, to be read by itself. Raises TooManyParts."""
    text = bytes(array)
    if not text.startswith(b"["):
        return []
    if is_tangled(text):
        raise TooManyParts
    return msgspec.json.decode(array, type=list[msgspec.Raw])


def _of_server(element: msgspec.Raw) -> _Server:
    return msgspec.json.decode(element, type=_Server) if bytes(element).startswith(b"{") else _Server()


class TooManyParts(Exception):
    """To look for credentials in it would take the interpreter from everybody."""


class _Asked(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw()
    mcp_servers: msgspec.Raw = msgspec.Raw()


class _Server(msgspec.Struct):
    type: Any = None
    url: Any = None
    server_url: Any = None
    headers: Any = None


def _fields(url: str) -> list[tuple[str, str]]:
    query = url.partition("?")[2]
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=64)
    except ValueError:  # more fields than that: the values by their patterns alone
        return []
