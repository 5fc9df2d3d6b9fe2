"""The one JSON decoder and the one JSON encoder.

Both are a single msgspec call. Only when that call fails do the slow paths below look closer: clients cut
text in the middle of a surrogate pair and then send half a character, which is no reason to refuse a whole
conversation.
"""

import json
import re
from gc import get_referents
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

MAX_DEPTH = 128
"""Nesting of any JSON that is decoded, whatever its source. No conversation comes near it, and code that
walks through a value may use recursion: Python stops at a thousand frames."""
_COUNTED_BYTES = 4096
"""Up to this size, counting brackets is faster than walking through the value."""

_BOM = b"\xef\xbb\xbf"
_REASON = re.compile(r"(?:JSON is malformed: )?(.*?)(?: \(byte (\d+)\))?", re.DOTALL)
# A whole pair, half a pair (group 1), or any other escape, so that in `\\ud800` the backslash stays one.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class BadJson(ValueError):
    """The bytes are not the JSON they should be; `offset` is the byte where that shows, if known."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        super().__init__(reason if offset is None else f"{reason} (byte {offset})")
        self.reason = reason
        self.offset = offset


class TooDeep(BadJson):
    """The JSON is valid, but nested deeper than `most`."""

    def __init__(self, most: int = MAX_DEPTH) -> None:
        super().__init__(f"nested more than {most} deep")


def decode(data: bytes | str | memoryview, depth: int = MAX_DEPTH) -> Any:
    """The value of a JSON text. Integers keep all their digits; half a surrogate pair becomes U+FFFD. Raises
    TooDeep where it is nested more than `depth` levels."""
    try:
        value = _decode(data)
    except (ValueError, RecursionError) as fault:
        value = _decode_again(data, fault, depth)
    if len(data) > 2 * depth and _is_deep(data, value, depth):
        raise TooDeep(depth)
    return value


def repeats_keys(text: str) -> bool:
    """Whether an object in a JSON text (already found to be legal) has a key twice: a reader may take
    the first value or the last."""
    repeated = False

    def keep(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) < len(pairs)

    json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    return repeated


def encode(value: Any) -> bytes:
    """Compact JSON in the order the value has; half a surrogate pair becomes U+FFFD."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        pass
    try:
        return _encode(_repair_value(value))
    except RecursionError:
        raise BadJson("nested too deeply to be written") from None


def encode_text(value: Any) -> str:
    return encode(value).decode()


def repair_text(text: str) -> str:
    """The same text with paired surrogates joined and every other one replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def repair_escapes(data: bytes) -> bytes:
    """The same JSON text, of the same length, with each escaped half of a surrogate pair made `\\ufffd`."""
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


def bad_json(data: bytes, fault: Exception) -> BadJson:
    """The error of msgspec about `data`, reworded, with the offset in the whole text."""
    if isinstance(fault, RecursionError):
        return TooDeep()
    if isinstance(fault, UnicodeDecodeError):  # its position counts from the start of one string
        try:
            data.decode()
        except UnicodeDecodeError as true_place:
            return BadJson("invalid UTF-8", true_place.start)
    found = _REASON.fullmatch(str(fault))
    if found is None or found[1] == "Input data was truncated":
        return BadJson("the text ends too early", len(data))
    return BadJson(found[1], int(found[2]) if found[2] else None)


def exceeds_depth(data: bytes, limit: int) -> bool:
    """Whether JSON (already found to be legal) is nested more than `limit` deep."""
    if _brackets(data) <= limit:
        return False
    try:
        decode(data, limit)
    except TooDeep:
        return True
    return False


def is_nested(value: Any, limit: int) -> bool:
    """Whether a decoded value is nested more than `limit` deep.

    Walks level by level, in C: `get_referents` returns the values of a dict or list, and nothing for text and
    numbers.
    """
    level = [value]
    for _ in range(limit):
        level = get_referents(*level)
        if not level:
            return False
    return any(type(each) in (dict, list) for each in level)


def _brackets(data: bytes) -> int:
    """The number of opening brackets. Removing a character takes a third of the time of counting it."""
    return 2 * len(data) - len(data.replace(b"{", b"")) - len(data.replace(b"[", b""))


def _is_deep(data: bytes | str | memoryview, value: Any, limit: int) -> bool:
    if len(data) <= _COUNTED_BYTES:
        if type(data) is bytes and _brackets(data) <= limit:
            return False
        if type(data) is str and data.count("{") + data.count("[") <= limit:
            return False
    return type(value) in (dict, list) and is_nested(value, limit)


def _decode_again(data: bytes | str | memoryview, fault: Exception, depth: int) -> Any:
    if isinstance(fault, RecursionError):
        raise TooDeep(depth) from None
    raw = repair_text(data).encode() if isinstance(data, str) else bytes(data)
    repaired = repair_escapes(raw.removeprefix(_BOM))
    if repaired == data:
        raise bad_json(raw, fault) from None
    try:
        return _decode(repaired)
    except RecursionError:
        raise TooDeep(depth) from None
    except ValueError as still:
        raise bad_json(repaired, still) from None


def _repair_value(value: Any) -> Any:
    match value:
        case str():
            return repair_text(value)
        case dict():
            return {_repair_value(key): _repair_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_repair_value(item) for item in value]
        case msgspec.Struct():
            return _repair_value(msgspec.to_builtins(value))
        case _:
            return value
