"""Heads of answers as bytes, and the plain JSON errors given before a dialect is known."""

from __future__ import annotations

import re
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from wireglot.http.application import Headers, Refusal
from wireglot.ir.errors import legible
from wireglot.wire.json import encode

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
BODILESS: Final = frozenset({204, 304})

_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
_OURS: Final = frozenset({"connection", "content-length", "date", "keep-alive", "transfer-encoding"})
"""Framing belongs to the server; a handler that names them is not asked."""
_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_UNFIT: Final = re.compile(r"[^\t -~\x80-\xff]")


class StatusLines(dict[int, str]):
    """`HTTP/1.1 200 OK` and the date, made once a second for each status in use."""

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
    error = {"message": legible(message), "type": kind, "param": None, "code": code}
    headers: Headers = [("content-type", "application/json")]
    if status == 503:
        headers.append(("retry-after", "1"))
    return Refusal(status, headers, encode({"error": error}), close=True)


def closing(refusal: Refusal) -> Refusal:
    """The same answer, as the connection's last one."""
    return refusal if refusal.close else Refusal(refusal.status, refusal.headers, refusal.body, close=True)
