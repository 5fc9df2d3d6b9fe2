"""Converts tool arguments, the text a model wrote, to the JSON that clients decode.

Text that is not a JSON object is repaired if its meaning is clear. If not, dialects that require an object
wrap it, and a wrapped call is restored to the raw text; dialects whose arguments are text pass it on
unchanged.
"""

from __future__ import annotations

import operator
import re
from typing import Any, Final, Literal

import msgspec

from wireglot_core.ir.content import Part, ToolCall
from wireglot_core.ir.loss import Action, Loss
from wireglot_core.wire.json import BadJson, decode, encode_text

# A string, a bracket or comma, other text, or a string without an end.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],]|[^"{}\[\],]+|(?P<open>".*+)', re.DOTALL)
ESCAPED: Final = {code: f"\\u{code:04x}" for code in range(0x20)}
"""The control characters, as a JSON string writes them."""
_REMOVED: Final = {code: None for code in range(0x20) if chr(code) not in "\t\n\r"}
_BLANKS = re.compile(r"\s*+")
_PAIRS = {"}": "{", "]": "["}
_SURPLUS = " \t\n\r}]"


def repaired_object(text: str) -> dict[str, Any] | None:
    """The object that `text` was meant to be; None if that is not clear."""
    found: list[dict[str, Any]] = []
    at, end = 0, len(text.rstrip(_SURPLUS))
    while at < end or not found:
        document, at = _first_document(text, _BLANKS.match(text, at).end())  # type: ignore[union-attr]  # it always matches
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
                return None  # two different calls in one: which was meant is unknown
            found[0] = value  # an empty object before a full one is a placeholder
    return found[0]


def _first_document(text: str, start: int) -> tuple[str, int]:
    """The first value of a text that has a bracket at `start`, as JSON, and its end in the text. Empty if
    there is none: the text begins differently or never ends."""
    nothing = "", len(text)
    if text[start : start + 1] not in ("{", "["):
        return nothing
    out: list[str] = []
    stack: list[str] = []
    for token in _TOKEN.finditer(text, start):
        said = token[0]
        if said in ("{", "["):
            stack.append(said)
        elif said in _PAIRS:
            if stack.pop() != _PAIRS[said]:
                return nothing
            _drop_comma(out)
        elif token.lastgroup is not None:
            return nothing
        elif said[0] == '"':
            said = said.translate(ESCAPED)
        else:
            said = said.translate(_REMOVED)
        out.append(said)
        if not stack:
            return "".join(out), token.end()
    return nothing


def _drop_comma(out: list[str]) -> None:
    """Removes a comma before a closing bracket, unless nothing precedes the comma."""
    at = _before_blanks(out, len(out) - 1)
    if out[at] == "," and out[_before_blanks(out, at - 1)] not in ("{", "[", ","):
        del out[at:]


def _before_blanks(out: list[str], at: int) -> int:
    while not out[at].strip():
        at -= 1  # an opening bracket precedes all of them
    return at


RAW = "_raw"
PARSE_ERROR = "_parse_error"

Form = Literal["", "repaired", "wrapped"]
"""How a text was converted: it is an object, it was repaired to one, or it was wrapped in one."""

_REPORTED: dict[Form, tuple[Action, str]] = {
    "repaired": ("approximated", "invalid JSON, repaired: the meaning is clear"),
    "wrapped": ("emulated", "not a JSON object: the raw text is in `_raw`"),
}

_look_over = msgspec.json.Decoder(msgspec.Raw).decode


def read_arguments(text: str) -> tuple[dict[str, Any], Form]:
    """The object for `text`: `{}` for blank or null, the object in it (possibly repaired), or `{_parse_error,
    _raw}`."""
    if not text.strip():
        return {}, ""
    try:
        value = decode(text)
    except BadJson as problem:
        meant = repaired_object(text)
        if meant is not None:
            return meant, "repaired"
        return {PARSE_ERROR: f"invalid tool arguments JSON: {problem}", RAW: text}, "wrapped"
    if type(value) is dict:
        return value, "wrapped" if is_wrapped(value) else ""
    if value is None:  # some models write this for no arguments
        return {}, ""
    return {PARSE_ERROR: "invalid tool arguments JSON: not an object", RAW: text}, "wrapped"


def arguments_object(text: str) -> dict[str, Any]:
    return read_arguments(text)[0]


def declare_arguments(form: Form, path: str, losses: list[Loss]) -> None:
    """Report that the arguments of the call at `path` were changed."""
    if form:
        losses.append(Loss(f"{path}.arguments", "tool_call.arguments", *_REPORTED[form]))


def with_repaired_calls(content: tuple[Part, ...], path: str, losses: list[Loss]) -> tuple[Part, ...]:
    """Parts of an answer, with arguments repaired to JSON if their meaning is clear. The same object if
    nothing was repaired. `path`: of the parts."""
    fixed: list[Part] = []
    for index, part in enumerate(content):
        if type(part) is ToolCall and part.kind == "function" and not is_json(part.arguments):
            meant, form = read_arguments(part.arguments)
            if form == "repaired":
                declare_arguments(form, f"{path}[{index}]", losses)
                fixed.append(msgspec.structs.replace(part, arguments=encode_text(meant)))
                continue
        fixed.append(part)
    return tuple(fixed) if any(map(operator.is_not, fixed, content)) else content


def is_json(text: str) -> bool:
    try:
        _look_over(text)
    except (ValueError, RecursionError):
        return False
    return True


def is_wrapped(value: dict[str, Any]) -> bool:
    """Whether `value` only wraps a text that is not a JSON object."""
    return value.keys() == {RAW, PARSE_ERROR} and type(value[RAW]) is str


def arguments_text(value: dict[str, Any]) -> str:
    """The text for an object; for a wrapper, the wrapped text."""
    if is_wrapped(value):
        return str(value[RAW])
    return encode_text(value)
