"""Values that come again and again, byte for byte, and what was made of them.

An agent sends the same tools with every turn. Whoever decodes such a member with `decode_shared` gets the
value it got before, and `remembered` keeps what was made of it. Nobody may change a shared value or anything
inside of it; a value that did not come from here is never taken for one that did, so everybody else's may
change as they like.

Several threads may come at once. Each step is one that the interpreter does not interrupt; between two
of them another thread may have forgotten anything, and what it leaves behind is swept by `_make_room`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from wireglot.wire.json import DEPTH_MOST, decode

_MOST_TEXTS = 64
_MOST_BYTES = 2 * 1024 * 1024  # of all texts: decoded, they may take twenty times as much
_LONGEST_BYTES = 128 * 1024  # longer texts are decoded anew each time
_MOST_KNOWN = 64 * _MOST_TEXTS
"""More than this is there only if threads have got in one another's way."""
_MOST_MADE = 32
"""How much is kept of one value: one for each kind of endpoint it goes to."""

_T = TypeVar("_T")


class _Shared:
    __slots__ = ("beside", "made", "value")

    def __init__(self, value: Any) -> None:
        self.value = value  # held, so that no other can take its identity
        self.made: dict[Hashable, Any] = {}
        self.beside: list[int] = []


_texts: dict[bytes, Any] = {}  # the least recently used first
_known: dict[int, _Shared] = {}


def decode_shared(text: bytes | memoryview, depth: int = DEPTH_MOST) -> Any:
    """As `decode`, but an array or an object that was decoded lately is the same one."""
    if len(text) > _LONGEST_BYTES:
        return decode(text, depth)
    key = bytes(text)
    value = _texts.pop(key, None)
    if value is None:
        value = decode(key, depth)
        if type(value) not in (list, dict):
            return value
        _make_room(len(key))
        _known[id(value)] = _Shared(value)
    other = _texts.pop(key, None)  # decoded by another thread meanwhile
    if other is not None and other is not value:
        _forget(id(other))
    _texts[key] = value
    return value


def is_shared(value: object) -> bool:
    known = _known.get(id(value))
    return known is not None and known.value is value


def remembered(value: object, key: Hashable, make: Callable[[], _T]) -> _T:
    """What `make` gives, made once where `value` is shared. It must follow from `value` and `key` alone."""
    known = _known.get(id(value))
    if known is None or known.value is not value:
        return make()
    made: _T
    if key in known.made:
        made = known.made[key]
        return made
    made = make()
    if len(known.made) < _MOST_MADE:
        known.made[key] = made
    return made


def share(value: _T, beside: object) -> _T:
    """The value, shared as long as the one it was made of is, if that is."""
    if value and is_shared(beside) and not is_shared(value):
        source = _known.get(id(beside))
        if source is not None:
            _known[id(value)] = _Shared(value)
            source.beside.append(id(value))
    return value


def _make_room(wanted: int) -> None:
    texts = list(_texts)
    held = sum(map(len, texts))
    for count, oldest in enumerate(texts):
        if len(texts) - count < _MOST_TEXTS and held + wanted <= _MOST_BYTES:
            break
        held -= len(oldest)
        value = _texts.pop(oldest, None)
        if value is not None:
            _forget(id(value))
    if len(_known) > _MOST_KNOWN:
        _texts.clear()
        _known.clear()


def _forget(identity: int) -> None:
    known = _known.pop(identity, None)
    if known is not None:
        for other in known.beside:
            _forget(other)
