"""Tool arguments: the text a model wrote, toward dialects that demand an object.

Text that is no JSON object is mended where it is plain what was meant, and wrapped where it is not: a wrapped
call comes back as the raw text it was. Dialects whose arguments are text pass them on as they are.
"""

from __future__ import annotations

from typing import Any, Literal

from wireglot.dialects.mended_arguments import mended_object
from wireglot.ir.loss import Action, Loss
from wireglot.wire.json import BadJson, decode, encode_text

RAW = "_raw"
PARSE_ERROR = "_parse_error"

Form = Literal["", "mended", "wrapped"]
"""What became of a text: the object that it spells, the one that it was meant to spell, one around it."""

_TOLD: dict[Form, tuple[Action, str]] = {
    "mended": ("approximated", "no JSON as it was written, and mended: it is plain what was meant"),
    "wrapped": ("emulated", "no JSON object: the raw text stands in `_raw`"),
}


def read_arguments(text: str) -> tuple[dict[str, Any], Form]:
    """The object for `text`: `{}` for blank or null, the object it spells or was meant to spell, or
    `{_parse_error, _raw}`."""
    if not text.strip():
        return {}, ""
    try:
        value = decode(text)
    except BadJson as problem:
        meant = mended_object(text)
        if meant is not None:
            return meant, "mended"
        return {PARSE_ERROR: f"invalid tool arguments JSON: {problem}", RAW: text}, "wrapped"
    if type(value) is dict:
        return value, "wrapped" if is_wrapped(value) else ""
    if value is None:  # some models write this where they mean no arguments
        return {}, ""
    return {PARSE_ERROR: "invalid tool arguments JSON: not an object", RAW: text}, "wrapped"


def arguments_object(text: str) -> dict[str, Any]:
    return read_arguments(text)[0]


def declare_arguments(form: Form, path: str, losses: list[Loss]) -> None:
    """Tell that the arguments of the call at `path` are not those that were written."""
    if form:
        losses.append(Loss(f"{path}.arguments", "tool_call.arguments", *_TOLD[form]))


def is_wrapped(value: dict[str, Any]) -> bool:
    """Whether `value` only wraps a text that is no JSON object."""
    return value.keys() == {RAW, PARSE_ERROR} and type(value[RAW]) is str


def arguments_text(value: dict[str, Any]) -> str:
    """The text for an object; a wrapped one gives back what it wraps."""
    if is_wrapped(value):
        return str(value[RAW])
    return encode_text(value)
