"""Reads the table of a Go test: the fields of each case that are texts or numbers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)|(?P<raw>`[^`]*`)|(?P<text>"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<rune>'(?:[^'\\]|\\.)+')|(?P<name>[A-Za-z_][\w.]*)|(?P<number>\d+)|(?P<mark>.)""",
    re.DOTALL,
)
_STATUS: Final = {
    "http.StatusOK": 200,
    "http.StatusBadRequest": 400,
    "http.StatusUnauthorized": 401,
    "http.StatusNotFound": 404,
    "http.StatusTooManyRequests": 429,
    "http.StatusInternalServerError": 500,
    "http.StatusServiceUnavailable": 503,
}
Token = tuple[str, str]
_BYTES: Final[list[Token]] = [("mark", "["), ("mark", "]"), ("name", "byte"), ("mark", "(")]


def cases(source: str, start: str) -> Iterator[dict[str, str]]:
    """Those of the table whose declaration begins with `start`. Fields with other values are left out."""
    constants = {
        match["name"]: match["text"]
        for match in re.finditer(r"(?P<name>\w+)\s*:?=\s*`(?P<text>[^`]*)`", source)
    }
    tokens = list(_tokens(source[source.index(start) :]))
    at = tokens.index(("mark", "{"))  # the fields' types
    at = _after_braces(tokens, at)
    depth, case, first = 0, list[Token](), True
    for token in tokens[at:]:
        depth += (token[1] in "({[") - (token[1] in ")}]") if token[0] == "mark" else 0
        if depth == 1 and token == ("mark", "}"):
            yield dict(_fields(case[1:], constants))
            case = []
        elif depth >= 2:
            case.append(token)
        elif depth == 0 and not first:
            return
        first = False


def _tokens(source: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(source):
        kind = str(match.lastgroup)
        if kind != "space":
            yield kind, match[0]


def _after_braces(tokens: list[Token], at: int) -> int:
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index] == ("mark", "{")) - (tokens[index] == ("mark", "}"))
        if depth == 0:
            return index + 1
    raise ValueError("the table does not end")


def _fields(tokens: list[Token], constants: dict[str, str]) -> Iterator[tuple[str, str]]:
    depth, begin = 0, 0
    for index, (kind, text) in enumerate([*tokens, ("mark", ",")]):
        if kind != "mark":
            continue
        depth += (text in "({[") - (text in ")}]")
        if depth == 0 and text == ",":
            name, *value = tokens[begin:index] or [("mark", "")]
            read = _value([token for token in value if token != ("mark", ":")], constants)
            if name[0] == "name" and read is not None:
                yield name[1], read
            begin = index + 1


def _value(tokens: list[Token], constants: dict[str, str]) -> str | None:
    if tokens[:1] == [("name", "strconv.Itoa")]:
        tokens = tokens[2:-1]
    elif tokens[:4] == _BYTES:
        tokens = tokens[4:-1]
    read = ""
    for kind, text in tokens:
        if kind == "raw":
            read += text[1:-1]
        elif kind == "text":
            read += str(json.loads(text))
        elif kind == "number" or text in ("true", "false"):
            read += text
        elif kind == "name" and (text in _STATUS or text in constants):
            read += str(_STATUS[text]) if text in _STATUS else constants[text]
        elif text != "+":
            return None
    return read
