"""Documents of Python callers in the types that JSON decodes to, which codecs compare exactly."""

from __future__ import annotations

from collections import UserString
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wireglot_core.ir.errors import WireglotError

_SCALARS: Final = frozenset({str, int, float, bool, type(None)})
_BYTES: Final = (bytes, bytearray, memoryview)


def plain_document(value: Any, fault: type[WireglotError]) -> Any:
    """Any mapping as a dict, any sequence as a list, subclasses of str, int and float as these. A document
    that has no others is returned itself. Other types stay: the codec names their place."""
    try:
        return value if _is_plain(value) else _plain(value)
    except RecursionError:
        raise fault("expected a document that is nested less deeply") from None


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return False
        value = value.values()
    elif kind is not list:
        return kind in _SCALARS
    for each in value:  # noqa: SIM110  -- twice as fast as a generator
        if type(each) not in _SCALARS and not _is_plain(each):
            return False
    return True


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS or isinstance(value, _BYTES):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration its value
    if isinstance(value, UserString):
        return value.data
    if isinstance(value, Mapping):
        return {_plain(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_plain(each) for each in value]
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value
