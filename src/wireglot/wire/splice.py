"""Read or replace top-level keys of a JSON object and leave every other byte as it was."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from wireglot.wire.json import DEPTH_MOST, BadJson, bad_json, decode, encode, mend_escapes
from wireglot.wire.memory import Memory

_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

_LONG_BYTES = 256 * 1024
_SHORT_BYTES = 1024
"""Members up to here are decoded sooner than found."""
_EQUAL_MOST = 8
"""So many equal turns of one conversation are remembered, any more are decoded anew."""
_BRACKET = ord("[")
_NESTED = b"[{"

_KEY = re.compile(rb'[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_AFTER_VALUE = re.compile(rb"[ \t\n\r]*([,}])")
_OPENING = re.compile(rb"[ \t\n\r]*\{")
_EMPTY = re.compile(rb"[ \t\n\r]*\}")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^,}\] \t\n\r]+")


class Outline:
    """The top-level members of a JSON object, read once: to look at, and to replace one of them."""

    __slots__ = ("_spans", "_values", "body", "repeated")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._values, readable = _values(body)
        self._spans = _compact_spans(readable, self._values)
        self.repeated = [] if self._spans is not None else _repeated(readable, self._values)
        """The keys that stand there more than once."""

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Any:
        """Its value; None where it is not there. Raises what `unreadable` makes of a BadJson."""
        raw = self._values.get(key)
        if raw is None:
            return None
        try:
            return decode(memoryview(raw))
        except BadJson as problem:
            raise self.unreadable(problem) from None

    def unreadable(self, problem: BadJson) -> Exception:
        """A member that only its own reader finds bad: raw values are checked for where they end, not for
        their letters, numbers and depth. For those who tell it in their own way."""
        return problem

    def document(
        self, depth: int = DEPTH_MOST, memory: Memory | None = None, turns: str = ""
    ) -> dict[str, Any]:
        """The object, decoded. What `memory` knows is taken from it: each item of the member `turns`, any
        other array or object as a whole."""
        values = self._values
        inside = depth - 1
        document = {}
        for key, raw in values.items():
            if memory is not None and len(raw) > _SHORT_BYTES and memoryview(raw)[0] in _NESTED:
                document[key] = (
                    _decode_turns(raw, inside, memory) if key == turns else memory.decode(raw, inside)
                )
            elif len(raw) > _LONG_BYTES:
                document[key] = _decode_long(raw, inside)
            else:
                document[key] = decode(memoryview(raw), inside)
        return document

    def replaced(self, key: str, value: bytes) -> bytes:
        """As `splice` does it."""
        span = self._spans.get(key) if self._spans is not None else None
        if span is None:
            return splice(self.body, {key: value})
        return b"".join((self.body[: span[0]], value, self.body[span[1] :]))


def _decode_long(raw: msgspec.Raw, depth: int) -> Any:
    """A long array item by item: one call into C would keep the interpreter from all other threads."""
    text = memoryview(raw)
    if text[0] != _BRACKET:
        return decode(text, depth)
    try:
        items = _decode_items(text)
    except (ValueError, RecursionError):
        return decode(text, depth)  # which tells what is wrong
    return [decode(memoryview(item), depth - 1) for item in items]


def _decode_turns(raw: msgspec.Raw, depth: int, memory: Memory) -> Any:
    """An array whose items are found one by one: a conversation grows at its end."""
    text = memoryview(raw)
    try:
        items = _decode_items(text)
    except (ValueError, RecursionError):
        return decode(text, depth)  # which tells what is wrong, or reads an object
    times: dict[int, int] = {}
    """How often the value of this identity, and those of the same words, stand among the turns."""
    turns = []
    for item in items:
        value = memory.decode(item, depth - 1)
        if type(value) is dict or type(value) is list:
            again = times.get(id(value), 0)
            if again:
                # Two turns of the same words are two: places in a conversation are told by identity. With
                # spaces behind it, it is another text of the same value.
                times[id(value)] = again + 1
                if again <= _EQUAL_MOST:
                    value = memory.decode(bytes(item) + b" " * again, depth - 1)
                if id(value) in times:
                    value = decode(memoryview(item), depth - 1)
            times[id(value)] = 1
        turns.append(value)
    return turns


def splice(body: bytes, replacements: Mapping[str, bytes]) -> bytes:
    """The body with the values of some top-level keys replaced, each occurrence of them.

    A key that is not there is inserted at the start of the object.
    """
    values, readable = _values(body)
    opening = _OPENING.match(readable)
    assert opening is not None, "msgspec has read an object here"
    start = opening.end()
    missing = [key for key in replacements if key not in values]
    pieces = [body[:start]]
    if missing:
        pieces.append(b",".join(b"%b:%b" % (encode(key), replacements[key]) for key in missing))
        if values:
            pieces.append(b",")
    copied = start
    if len(missing) < len(replacements):
        for key, value_start, value_end in _members(readable, start, values):
            if key in replacements:
                pieces += (body[copied:value_start], replacements[key])
                copied = value_end
    pieces.append(body[copied:])
    return b"".join(pieces)


def without(body: bytes, key: str) -> bytes:
    """The body without a top-level key, each occurrence of it, and with every other byte as it was."""
    values, readable = _values(body)
    opening = _OPENING.match(readable)
    assert opening is not None, "msgspec has read an object here"
    kept = []
    at = opening.end()
    for name, _, value_end in _members(readable, at, values):
        if name != key:
            kept.append(body[at:value_end])
        after = _AFTER_VALUE.match(readable, value_end)
        assert after is not None, "msgspec has read a value before this"
        at = after.end() if after[1] == b"," else value_end
    return b"".join((body[: opening.end()], b",".join(kept), body[at:]))


def _compact_spans(readable: bytes, values: Mapping[str, msgspec.Raw]) -> dict[str, tuple[int, int]] | None:
    """Where each value stands, by arithmetic; None unless the object is written as compactly as can be.

    White space between members, a repeated key, an escape or a letter beyond ASCII in a key: each makes the
    text longer than the sum of its keys and values. Equal lengths therefore prove that there is none.
    """
    spans = {}
    at = len("{")
    for key, raw in values.items():
        start = at + len(key) + len('"":')
        end = start + len(raw)
        spans[key] = (start, end)
        at = end + len(",")  # behind the last value it is the closing brace, of the same length
    return spans if spans and at == len(readable) else None


def _repeated(readable: bytes, values: Mapping[str, msgspec.Raw]) -> list[str]:
    opening = _OPENING.match(readable)
    assert opening is not None, "msgspec has read an object here"
    seen: set[str] = set()
    repeated = []
    for key, _, _ in _members(readable, opening.end(), values):
        if key in seen:
            repeated.append(key)
        seen.add(key)
    return repeated


def _members(
    readable: bytes, start: int, values: Mapping[str, msgspec.Raw]
) -> Iterator[tuple[str, int, int]]:
    """Each key with where its value begins and ends, repeated ones too."""
    at = start
    while not _EMPTY.match(readable, at):
        key_found = _KEY.match(readable, at)
        assert key_found is not None, "msgspec has read a key here"
        key = decode(key_found[1])
        value_start = key_found.end()
        value_end = _value_end(readable, value_start, values[key])
        yield key, value_start, value_end
        after = _AFTER_VALUE.match(readable, value_end)
        assert after is not None, "msgspec has read a value before this"
        if after[1] == b"}":
            break
        at = after.end()


def _values(body: bytes) -> tuple[dict[str, msgspec.Raw], bytes]:
    """The raw value of each key, and the body with half surrogate pairs mended: same length, readable."""
    try:
        return _decode_raw(body), body
    except (ValueError, RecursionError):
        readable = mend_escapes(body)
    try:
        return _decode_raw(readable), readable
    except (ValueError, RecursionError) as fault:
        raise bad_json(body, fault) from None


def _value_end(body: bytes, start: int, expected: msgspec.Raw) -> int:
    """Where the value at `start` ends: `expected`, unless the key stands there several times."""
    value = bytes(expected)
    end = start + len(value)
    if body.startswith(value, start) and _AFTER_VALUE.match(body, end):
        return end
    return _skip_value(body, start)


def _skip_value(body: bytes, start: int) -> int:
    scalar = _SCALAR.match(body, start)
    if body[start] not in b'{["' and scalar is not None:
        return scalar.end()
    depth = 0
    for token in _TOKEN.finditer(body, start):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
        if depth == 0:
            return token.end()
    raise BadJson("the text ends too early", len(body))
