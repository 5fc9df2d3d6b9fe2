"""The one JSON decoder and the one JSON encoder.

Both are a single msgspec call. Only when that call fails do the slow paths below look closer: clients cut
text in the middle of a surrogate pair and then send half a character, which is no reason to refuse a whole
conversation.
"""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

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


def decode(data: bytes | str | memoryview) -> Any:
    """The value of a JSON text. Integers keep all their digits; half a surrogate pair becomes U+FFFD."""
    try:
        return _decode(data)
    except (ValueError, RecursionError) as fault:
        return _decode_again(data, fault)


def encode(value: Any) -> bytes:
    """Compact JSON in the order the value has; half a surrogate pair becomes U+FFFD."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, RecursionError):
        pass
    try:
        return _encode(_mend_value(value))
    except RecursionError:
        raise BadJson("nested too deeply") from None


def encode_text(value: Any) -> str:
    return encode(value).decode()


def mend_text(text: str) -> str:
    """The same text with paired surrogates joined and every other one replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mend_escapes(data: bytes) -> bytes:
    """The same JSON text, of the same length, with each escaped half of a surrogate pair made `\\ufffd`."""
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


def bad_json(data: bytes, fault: Exception) -> BadJson:
    """What msgspec said about `data`, in our words and with the offset in the whole text."""
    if isinstance(fault, RecursionError):
        return BadJson("nested too deeply")
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
    """Whether JSON (already found to be legal) is nested more than `limit` deep.

    Level by level, and only into values that have enough opening brackets for it: a text full of brackets
    costs one look.
    """
    pieces = [(data, limit)]
    while pieces:
        piece, room = pieces.pop()
        if piece.count(b"{") + piece.count(b"[") <= room:
            continue
        opening = piece.lstrip(b" \t\r\n")[:1]
        if opening == b"{":
            values: Iterable[msgspec.Raw] = _decode_members(piece).values()
        elif opening == b"[":
            values = _decode_items(piece)
        else:
            continue
        if not room:
            return True
        pieces += ((bytes(value), room - 1) for value in values)
    return False


def _decode_again(data: bytes | str | memoryview, fault: Exception) -> Any:
    raw = mend_text(data).encode() if isinstance(data, str) else bytes(data)
    mended = mend_escapes(raw.removeprefix(_BOM))
    if mended == data:
        raise bad_json(raw, fault) from None
    try:
        return _decode(mended)
    except (ValueError, RecursionError) as still:
        raise bad_json(mended, still) from None


def _mend_value(value: Any) -> Any:
    match value:
        case str():
            return mend_text(value)
        case dict():
            return {_mend_value(key): _mend_value(item) for key, item in value.items()}
        case list() | tuple():
            return [_mend_value(item) for item in value]
        case msgspec.Struct():
            return _mend_value(msgspec.to_builtins(value))
        case _:
            return value
