"""Arguments that are no JSON though it is plain what was meant.

Models and the servers around them make four mistakes again and again: the object twice, a comma behind the
last member, control characters that should have been escaped, a closing bracket too many. Each has one
reading. Everything else has several, or none; above all a text that is merely cut: what it lacks was never
said, and nobody may make it up.
"""

from __future__ import annotations

import re
from typing import Any

from wireglot.wire.json import BadJson, decode

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|[^"{}\[\],]+', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_NO_SPACE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_PAIRS = {"}": "{", "]": "["}
_SURPLUS = " \t\n\r}]"


def mended_object(text: str) -> dict[str, Any] | None:
    """The object that `text` was meant to spell; None where that is not plain."""
    found: list[dict[str, Any]] = []
    rest = text
    while rest.strip(_SURPLUS if found else None):
        document, rest = _first_document(rest.lstrip())
        try:
            value = decode(document)
        except BadJson:
            return None
        if type(value) is not dict:
            return None
        if not found:
            found.append(value)
        elif value and value != found[0]:
            if found[0]:
                return None  # two different calls in one: nobody knows which was meant
            found[0] = value  # an empty object before a full one is a placeholder
    return found[0] if found else None


def escaped(control: str) -> str:
    """A control character as a JSON string may hold it."""
    return f"\\u{ord(control):04x}"


def _first_document(text: str) -> tuple[str, str]:
    """The first value of a text that begins with a bracket, spelled as JSON, and what follows it. Empty where
    there is none: other beginnings, and ends that never come."""
    if text[:1] not in ("{", "["):
        return "", ""
    out: list[str] = []
    stack: list[str] = []
    for token in _TOKEN.finditer(text):
        said = token[0]
        if said in ("{", "["):
            stack.append(said)
        elif said in _PAIRS:
            if stack.pop() != _PAIRS[said]:
                return "", ""
            _drop_comma(out)
        elif said[0] == '"':
            said = _CONTROL.sub(lambda control: escaped(control[0]), said)
        else:
            said = _NO_SPACE.sub("", said)
        out.append(said)
        if not stack:
            return "".join(out), text[token.end() :]
    return "", ""


def _drop_comma(out: list[str]) -> None:
    """Before a closing bracket, unless nothing stands before the comma either."""
    at = _before_blanks(out, len(out) - 1)
    if out[at] == "," and out[_before_blanks(out, at - 1)] not in ("{", "[", ","):
        del out[at:]


def _before_blanks(out: list[str], at: int) -> int:
    while not out[at].strip():
        at -= 1  # an opening bracket stands before all of them
    return at
