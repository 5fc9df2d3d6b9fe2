"""Tool arguments: the text a model wrote, toward dialects that demand an object.

Text that is no JSON object is wrapped, never repaired: the wrapped call comes back as the raw text it was.
"""

from __future__ import annotations

from typing import Any

from wireglot.wire.json import BadJson, decode, encode_text

RAW = "_raw"
PARSE_ERROR = "_parse_error"
WRAPPED = "no JSON object: the raw text stands in `_raw`"


def arguments_object(text: str) -> dict[str, Any]:
    """The object for `text`: `{}` for blank or null, the object it spells, or `{_parse_error, _raw}`."""
    if not text.strip():
        return {}
    try:
        value = decode(text)
    except BadJson as problem:
        return {PARSE_ERROR: f"invalid tool arguments JSON: {problem}", RAW: text}
    if type(value) is dict:
        return value
    if value is None:  # some models write this where they mean no arguments
        return {}
    return {PARSE_ERROR: "invalid tool arguments JSON: not an object", RAW: text}


def is_wrapped(value: dict[str, Any]) -> bool:
    """Whether `value` only wraps a text that is no JSON object."""
    return value.keys() == {RAW, PARSE_ERROR} and type(value[RAW]) is str


def arguments_text(value: dict[str, Any]) -> str:
    """The text for an object; a wrapped one gives back what it wraps."""
    if is_wrapped(value):
        return str(value[RAW])
    return encode_text(value)
