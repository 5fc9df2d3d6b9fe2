"""Read or replace top-level keys of a JSON object and leave every other byte unchanged."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from wireglot_core.wire.cache import Cache, KnownBody
from wireglot_core.wire.json import MAX_DEPTH, BadJson, bad_json, decode, encode, repair_escapes
from wireglot_core.wire.scan import Span, scan

_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

_LONG_BYTES = 256 * 1024
_BACKSLASH = ord("\\")
_BRACKET = ord("[")

_KEY = re.compile(rb'[ \t\n\r]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_AFTER_VALUE = re.compile(rb"[ \t\n\r]*([,}])")
_OPENING = re.compile(rb"[ \t\n\r]*\{")
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(rb"[^,}\] \t\n\r]+")


class Outline:
    """The top-level members of a JSON object, found once: for reading, and for replacing one of them."""

    __slots__ = ("body", "grown", "is_sound", "members", "repeated")

    def __init__(
        self,
        body: bytes,
        cache: Cache | None = None,
        turns: str = "",
        grown: KnownBody | None = None,
        depth: int = MAX_DEPTH,
    ) -> None:
        """What `cache` knows of the body is not parsed again. `grown`: the result of that lookup, if already
        made. `turns`: the member that holds the conversation."""
        self.body = body
        self.repeated: list[str] = []
        """Keys that occur more than once."""
        self.grown = grown
        """The part of the body that the cache knew."""
        self.is_sound = False
        """Whether the whole body is known to be JSON that needs no repair, nested at most `depth` deep."""
        self.members: dict[str, Span]
        """The span of each value; the last one for a repeated key."""
        if cache is not None:
            self.recall(cache, turns)
        if self.grown is not None:
            self.members = self.grown.spans
        elif (members := scan(body, depth)) is not None:
            self.members, self.is_sound = members, True
        else:
            values, readable = _values(body)
            members = _compact_spans(readable, values)
            if members is None:
                members, self.repeated = _found_spans(readable, values)
            self.members = members

    def recall(self, cache: Cache, turns: str) -> None:
        """Look up the body in `cache`."""
        if self.grown is None:
            self.grown = cache.compare(self.body, turns)

    def get(self, key: str) -> Any:
        """The decoded value of a member; None if it is missing. Raises `unreadable(problem)` for a
        BadJson."""
        span = self.members.get(key)
        if span is None:
            return None
        try:
            return decode(memoryview(self.body)[span[0] : span[1]])
        except BadJson as problem:
            raise self.unreadable(problem) from None

    def unreadable(self, problem: BadJson) -> Exception:
        """The exception for a member that turns out to be invalid when it is decoded: raw values are checked
        for where they end, not for their characters, numbers and depth. Subclasses override this to report it
        their way."""
        return problem

    def document(self, depth: int = MAX_DEPTH) -> dict[str, Any]:
        """The object, decoded member by member."""
        body = memoryview(self.body)
        return {key: decode_member(body[start:end], depth - 1) for key, (start, end) in self.members.items()}

    def replaced(self, key: str, value: bytes) -> bytes:
        """Like `splice`."""
        span = self.members.get(key)
        if span is None or self.repeated:
            return splice(self.body, {key: value})
        body = memoryview(self.body)
        return b"".join((body[: span[0]], value, body[span[1] :]))


def _decode_long(text: memoryview, depth: int) -> Any:
    """Decode a long array item by item: a single call into C would block all other threads."""
    if text[0] != _BRACKET:
        return decode(text, depth)
    try:
        items = decode_items(text)
    except (ValueError, RecursionError):
        return decode(text, depth)  # which reports the error
    return [decode(memoryview(item), depth - 1) for item in items]


def decode_member(text: memoryview, depth: int) -> Any:
    return _decode_long(text, depth) if len(text) > _LONG_BYTES else decode(text, depth)


def splice(body: bytes, replacements: Mapping[str, bytes]) -> bytes:
    """The body with the values of some top-level keys replaced, each occurrence of them.

    A missing key is inserted at the start of the object.
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
    """The body without any occurrence of a top-level key, and with every other byte unchanged."""
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


def _compact_spans(readable: bytes, values: Mapping[str, msgspec.Raw]) -> dict[str, Span] | None:
    """The span of each value, by arithmetic; None unless the object is written without optional white space.

    White space between members, a repeated key, an escape or a non-ASCII character in a key: each makes the
    text longer than the sum of its keys and values. Equal lengths therefore prove that there is none.
    """
    spans = {}
    at = len("{")
    for key, raw in values.items():
        start = at + len(key) + len('"":')
        end = start + len(raw)
        spans[key] = (start, end)
        at = end + len(",")  # after the last value it is the closing brace, of the same length
    return spans if spans and at == len(readable) else None


def _found_spans(readable: bytes, values: Mapping[str, msgspec.Raw]) -> tuple[dict[str, Span], list[str]]:
    """The span of each value, by scanning, and the keys that occur more than once."""
    opening = _OPENING.match(readable)
    assert opening is not None, "msgspec has read an object here"
    spans: dict[str, Span] = {}
    repeated = []
    for key, start, end in _members(readable, opening.end(), values):
        if key in spans:
            repeated.append(key)
        spans[key] = (start, end)
    return spans, repeated


def _members(readable: bytes, start: int, values: Mapping[str, msgspec.Raw]) -> list[tuple[str, int, int]]:
    """Each key with the span of its value, including repeated keys."""
    members: list[tuple[str, int, int]] = []
    at = start
    while values:
        key_found = _KEY.match(readable, at)
        assert key_found is not None, "msgspec has read a key here"
        quoted = key_found[1]
        key = decode(quoted) if _BACKSLASH in quoted else quoted[1:-1].decode()
        value_start = key_found.end()
        value = memoryview(values[key])  # the last value, if the key is repeated
        value_end = value_start + len(value)
        after = _AFTER_VALUE.match(readable, value_end) if readable.startswith(value, value_start) else None
        if after is None:
            value_end = _skip_value(readable, value_start)
            after = _AFTER_VALUE.match(readable, value_end)
        assert after is not None, "msgspec has read a value before this"
        members.append((key, value_start, value_end))
        if after[1] == b"}":
            break
        at = after.end()
    return members


def _values(body: bytes) -> tuple[dict[str, msgspec.Raw], bytes]:
    """The raw value of each key, and the body with half surrogate pairs repaired: same length, readable."""
    try:
        return _decode_raw(body), body
    except (ValueError, RecursionError):
        readable = repair_escapes(body)
    try:
        return _decode_raw(readable), readable
    except (ValueError, RecursionError) as fault:
        raise bad_json(body, fault) from None


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
