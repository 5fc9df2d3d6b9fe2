"""The head of a request, parsed strictly: what two parsers could read differently is refused here.

Written by hand because the strict checks have to look at every byte anyway, and a second parser cost more
than they do. The tests compare it with llhttp: what is accepted here, llhttp reads the same way. Heads of
answers are written here too, and the plain JSON errors sent before a dialect is known.
"""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import msgspec

from wireglot.http.application import Familiar, Head, Headers, Refusal
from wireglot.http.limits import HeadLimits

CHUNKED: Final = -1
"""The `length` of a body that comes in chunks."""


class Malformed(Exception):
    """Bytes that are not a valid request. The connection ends with the answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class Inbound(msgspec.Struct, frozen=True):
    """A parsed head, with the framing of its body and the state of the connection."""

    head: Head
    length: int
    keep_alive: bool
    expects_continue: bool
    minor: int
    """The x of HTTP/1.x."""


_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_REQUEST_LINE: Final = re.compile(r"([A-Z]{1,32}) ([!-~]+) HTTP/(\d)\.(\d)")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._\-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_ABSOLUTE: Final = re.compile(r"https?://([^/?#]*+)([^#]*+)", re.IGNORECASE)
_PATH: Final = re.compile(r"(?:/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-Fa-f]{2})*)+")
# Escapes that would change the path: backslash, dot, semicolon and control characters. An encoded slash is
# left to the application: names of models contain them.
_HIDDEN: Final = re.compile(r"//|\.\.|/\.(?:/|\Z)|%(?:2[Ee]|5[Cc]|3[Bb]|[01][0-9A-Fa-f]|7[Ff])")
_QUERY: Final = re.compile(r"[!-\"$-~]*")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)(?=\r\n|\Z)", re.IGNORECASE)
# Digits of a `Content-Length`.
_MAX_LENGTH_DIGITS: Final = 18
_STRAY: Final = re.compile(rb"[^\t\r\n -~\x80-\xff]|(?<!\r)\n|\r(?!\n|\Z)")
_LEGAL: Final = bytes(b for b in range(256) if b == 9 or 32 <= b <= 126 or b >= 128)

_TLS: Final = b"\x16\x03"
"""The beginning of a TLS handshake."""
TLS_NOT_SPOKEN: Final = (
    "this port does not use TLS: start the client's base URL with http:// instead of https://"
)

_ONCE: Final = frozenset({
    "authorization", "content-length", "content-type", "expect", "host", "origin", "transfer-encoding",
    "x-api-key", "x-goog-api-key",
})  # fmt: skip
"""A second one of these could be interpreted differently by another reader."""

_REPEATED: Final = frozenset({
    "accept", "accept-encoding", "accept-language", "anthropic-beta", "anthropic-version", "cache-control",
    "connection", "content-type", "host", "openai-beta", "originator", "sec-fetch-mode", "user-agent",
    "x-app", "x-goog-api-client",
})  # fmt: skip
"""Headers that a client sends the same way every time; none of them contains a secret."""

_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
"""Headers that define where a body ends."""

_REMEMBERED_LINES: Final = 2048
_REMEMBERED_BYTES: Final = 256

_fields: Final[dict[str, tuple[str, str]]] = {}
"""Cached header lines: most lines of a request are those of the last one."""
_names: Final[dict[str, str]] = {}
"""Header names as written -> in lower case."""
_lines: Final[dict[str, tuple[str, str, str, str, int]]] = {}
"""Cached request lines; never one with a query, which may contain a key."""


def read_head(raw: bytes, peer: str, limits: HeadLimits) -> Inbound:
    """Parse a head, given without the empty line that ends it."""
    size = len(raw)
    lines = raw.decode("latin-1").split("\r\n")
    fields = len(lines) - 1
    if raw.translate(None, _LEGAL) != b"\r\n" * fields:
        raise Malformed(400, "invalid_header", "a control character or a bare line end in the head")
    if size > limits.url or size > limits.header_line or size > limits.header_total:
        _check_sizes(lines, size, limits)
    if fields > limits.header_count:
        raise Malformed(431, "headers_too_large", f"more than {limits.header_count} headers")
    rest = iter(lines)
    first = next(rest)
    method, target, path, query, minor = _lines.get(first) or _request_line(first)
    headers: dict[str, str] = {}
    remembered = _fields.get
    for line in rest:
        name, value = remembered(line) or _field(line)
        if name in headers:
            if name in _ONCE:
                raise Malformed(400, "duplicate_header", f"two {name} headers")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    host = headers.get("host")
    if host is None:
        raise Malformed(400, "invalid_host", "no Host header")
    if target[0] != "/":
        path, query = _own_path(target, host)
    connection = headers.get("connection")
    if connection is None or connection == "keep-alive":
        keep_alive = minor == 1 or connection is not None
    else:
        keep_alive = _keeps_alive(connection, minor)
    if minor == 0:
        headers.pop("upgrade", None)  # RFC 9110 7.8: an HTTP/1.0 client's is ignored
    length = headers.get("content-length")
    return Inbound(
        Head(method, target, path, query, headers, peer=peer),
        _framing(headers, minor) if length is None or "transfer-encoding" in headers else int(length),
        keep_alive,
        "expect" in headers and _expects(headers["expect"], minor),
        minor,
    )


def check_partial(held: bytes, start: int, limits: HeadLimits) -> None:
    """Refuse a head that cannot become valid any more, so that nothing waits for its end.

    `start`: how much of it has been checked before.
    """
    first_end = held.find(b"\r\n")
    # + 3: the part of the final empty line that has arrived does not count.
    if len(held) > limits.header_total + 3 or (first_end < 0 and len(held) > limits.url + 64):
        if first_end < 0:
            raise Malformed(414, "url_too_long", f"the request line is longer than {limits.url} bytes")
        raise Malformed(431, "headers_too_large", f"headers of more than {limits.header_total} bytes")
    # Two bytes back: a line end may have been split.
    if _STRAY.search(held, max(0, start - 2)):
        if held.startswith(_TLS):
            raise Malformed(400, "tls_not_spoken", TLS_NOT_SPOKEN)
        raise Malformed(400, "invalid_header", "a control character or a bare line end in the head")
    if first_end >= max(0, start - 2):
        line = held[:first_end].decode("latin-1")
        if line not in _lines:
            if len(line) > limits.url + 64:
                raise Malformed(414, "url_too_long", f"the request line is longer than {limits.url} bytes")
            _request_line(line)


def _check_sizes(lines: list[str], size: int, limits: HeadLimits) -> None:
    if size > limits.header_total:
        raise Malformed(431, "headers_too_large", f"headers of more than {limits.header_total} bytes")
    target = lines[0].partition(" ")[2].rpartition(" ")[0]
    if len(target) > limits.url:
        raise Malformed(414, "url_too_long", f"a target of more than {limits.url} bytes")
    if any(len(line) > limits.header_line for line in lines[1:]):
        raise Malformed(431, "headers_too_large", f"a header of more than {limits.header_line} bytes")


def _request_line(line: str) -> tuple[str, str, str, str, int]:
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Malformed(400, "invalid_request_line", "the request line is not valid HTTP/1.1")
    method, target, major, minor = match.groups()
    if major != "1" or minor not in "01":
        raise Malformed(505, "http_version_not_supported", "only HTTP/1.1 and HTTP/1.0 are supported")
    if method == "CONNECT":
        raise Malformed(405, "method_not_allowed", "this is not a proxy")
    if target[0] != "/":
        if not _ABSOLUTE.fullmatch(target):
            raise Malformed(400, "invalid_target", "the target is not a path")
        # Its path is used once the Host header is known to name the same host.
        return method, target, "", "", int(minor)
    path, query = _split(target)
    found = method, target, path, query, int(minor)
    if "?" not in target and len(line) <= _REMEMBERED_BYTES:
        if len(_lines) >= _REMEMBERED_LINES:
            _lines.clear()
        _lines[line] = found
    return found


def _split(target: str) -> tuple[str, str]:
    path, _, query = target.partition("?")
    if "//" in path:
        # A base URL with a trailing slash makes this of a client's path.
        message = "two slashes in a row: remove the slash at the end of the client's base URL"
        raise Malformed(400, "invalid_target", message)
    if not _PATH.fullmatch(path) or _HIDDEN.search(path):
        raise Malformed(
            400, "invalid_target", "the path contains characters or segments that are not accepted"
        )
    if not _QUERY.fullmatch(query):
        raise Malformed(400, "invalid_target", "the query contains characters that are not accepted")
    return path, query


def _own_path(target: str, host: str) -> tuple[str, str]:
    match = _ABSOLUTE.fullmatch(target)
    if match is None or match[1].lower() != host.lower():
        raise Malformed(400, "invalid_target", "the target names another host than the Host header")
    rest = match[2]
    return _split(rest if rest.startswith("/") else "/" + rest)


def _field(line: str) -> tuple[str, str]:
    written, colon, value = line.partition(":")
    name = _names.get(written) or _name(written)
    if not colon:
        raise Malformed(400, "invalid_header", "a header line that is not `name: value`")
    if name in _FRAMING and ("\t" in value or value.endswith(" ")):
        # Legal, but no client writes it. A proxy before us may read it differently and see another body.
        raise Malformed(400, "invalid_framing", f"white space after or a tab in {name}")
    value = value.strip(" \t")
    if name == "host" and not _HOST.fullmatch(value):
        raise Malformed(400, "invalid_host", "the Host header is not a host name and a port")
    # In Latin-1 only the ten digits are decimal.
    if name == "content-length" and not (value.isdecimal() and len(value) <= _MAX_LENGTH_DIGITS):
        raise Malformed(400, "invalid_content_length", "Content-Length is not one decimal number")
    if (name in _REPEATED or name.startswith("x-stainless-")) and len(line) <= _REMEMBERED_BYTES:
        if len(_fields) >= _REMEMBERED_LINES:
            _fields.clear()
        _fields[line] = name, value
    return name, value


def _name(written: str) -> str:
    if not _NAME.fullmatch(written):
        raise Malformed(400, "invalid_header", "a header line that is not `name: value`")
    name = written.lower()
    if len(written) <= _REMEMBERED_BYTES:
        if len(_names) >= _REMEMBERED_LINES:
            _names.clear()
        _names[written] = name
    return name


def _framing(headers: dict[str, str], minor: int) -> int:
    coding = headers.get("transfer-encoding")
    if coding is None:
        return 0
    if "content-length" in headers:
        raise Malformed(400, "invalid_framing", "both Content-Length and Transfer-Encoding")
    if minor == 0 or coding.lower() != "chunked":
        raise Malformed(400, "invalid_framing", "Transfer-Encoding is not chunked")
    return CHUNKED


def _keeps_alive(connection: str, minor: int) -> bool:
    options = {option.strip() for option in connection.lower().split(",")}
    if "close" in options:
        return False
    return minor == 1 or "keep-alive" in options


def _expects(value: str, minor: int) -> bool:
    if value.lower() != "100-continue":
        raise Malformed(417, "expectation_failed", "an expectation other than 100-continue")
    return minor == 1  # RFC 9110 10.1.1: an HTTP/1.0 client's is ignored


class KnownHead(Familiar, eq=False):
    """The last head of a connection: the next one differs from it only in the length of its body.

    An agent sends the same forty lines with every turn. A repeated head is not parsed again, and the
    application's results about it need not be computed again. It is kept unparsed, with its key, no longer
    than its connection.
    """

    before: bytes
    """The bytes before the digits of the length, and those after them."""
    after: bytes
    inbound: Inbound
    limits: HeadLimits
    max_size: int
    """No line of a head of this size is too long."""

    def again(self, raw: bytes, limits: HeadLimits) -> Inbound | None:
        """The result of `read_head`; None if it is another head."""
        before, after = self.before, self.after
        if not raw.startswith(before) or not raw.endswith(after) or limits is not self.limits:
            return None
        digits = raw[len(before) : len(raw) - len(after)]
        if not digits.isdigit() or len(digits) > _MAX_LENGTH_DIGITS or len(raw) > self.max_size:
            return None
        known, length = self.inbound, digits.decode()
        head = known.head
        headers = head.headers.copy()
        headers["content-length"] = length
        return Inbound(
            Head(head.method, head.target, head.path, head.query, headers, peer=head.peer, familiar=self),
            int(length),
            known.keep_alive,
            known.expects_continue,
            known.minor,
        )


def remember(raw: bytes, inbound: Inbound, limits: HeadLimits) -> KnownHead | None:
    """None if it has no plain length of a body."""
    found = _LENGTH.search(raw) if inbound.length > 0 else None
    if found is None:
        return None
    head = inbound.head
    # A copy: changes by the application must not affect others.
    copy = Head(head.method, head.target, head.path, head.query, head.headers.copy(), peer=head.peer)
    kept = Inbound(copy, inbound.length, inbound.keep_alive, inbound.expects_continue, inbound.minor)
    max_size = min(limits.url, limits.header_line, limits.header_total)
    return KnownHead(raw[: found.start(1)], raw[found.end(1) :], kept, limits, max_size)


# Heads of answers.

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
BODILESS: Final = frozenset({204, 304})

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
_OURS: Final = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})
"""Framing belongs to the server; these headers of a handler are ignored."""
_UNFIT: Final = re.compile(r"[^\t -~\x80-\xff]")


class StatusLines(dict[int, str]):
    """`HTTP/1.1 200 OK` and the date, cached for a second for each status in use."""

    def __init__(self, now: float) -> None:
        super().__init__()
        self.set_date(now)

    def set_date(self, now: float) -> None:
        self._date = formatdate(now, usegmt=True)
        self.clear()

    def __missing__(self, status: int) -> str:
        phrase = _PHRASES.get(status, "Status")
        line = self[status] = f"HTTP/1.1 {status} {phrase}\r\ndate: {self._date}\r\n"
        return line


def render_head(status_line: str, headers: Headers, framing: str) -> bytes:
    """A whole head. `framing`: the server's own lines and the empty one that ends it."""
    text, count = "", 0
    for name, value in headers:
        if name not in _OURS:
            text += f"{name}: {value}\r\n"
            count += 1
    if text.count("\n") != count or text.count("\r") != count or "\0" in text:
        text = _without_injection(headers)
    try:
        return f"{status_line}{text}{framing}".encode("latin-1")
    except UnicodeEncodeError:
        return f"{status_line}{_without_injection(headers)}{framing}".encode("latin-1")


def _without_injection(headers: Headers) -> str:
    return "".join(
        f"{name}: {_UNFIT.sub('?', value)}\r\n"
        for name, value in headers
        if name not in _OURS and _NAME.fullmatch(name)
    )


def plain_refusal(status: int, code: str, message: str) -> Refusal:
    """An error of the HTTP class: no dialect is known, and the connection ends with it."""
    kind = "server_error" if status >= 500 and status != 505 else "invalid_request_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    headers: Headers = [("content-type", "application/json")]
    if status == 503:
        headers.append(("retry-after", "1"))
    return Refusal(status, headers, msgspec.json.encode({"error": error}), close=True)


def closing(refusal: Refusal) -> Refusal:
    """The same answer, as the connection's last one."""
    return refusal if refusal.close else Refusal(refusal.status, refusal.headers, refusal.body, close=True)
