"""The regular fields of requests as tables: one row per field and dialect.

A row names the field on the wire, its neutral setting and the kind of its value. Reading and writing the
field, its place in the client's document and the set of known fields all follow from the row. Fields that
need more than a row (thinking, output formats, tools) are code in the dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

from wireglot_core.dialects.fields import Fields
from wireglot_core.ir.request import Request, Sampling


class FieldKind(NamedTuple):
    """The kind of a field's value. Values of `types` are used unchanged, all others are passed to `read`,
    which converts or refuses them. `blank` has no meaning: the field keeps it, and the setting stays
    unset."""

    types: tuple[type, ...]
    read: Callable[[Fields, str], Any]
    blank: Any = None


BOOLEAN: Final = FieldKind((bool,), Fields.boolean)
INTEGER: Final = FieldKind((int,), Fields.integer)
NUMBER: Final = FieldKind((int, float), Fields.number)
TEXT: Final = FieldKind((str,), Fields.text_or_none, "")
TEXTS: Final = FieldKind((), Fields.texts, [])


class F(NamedTuple):
    """One regular field of a request."""

    name: str
    setting: str
    """A field of the neutral request, or of its sampling: `max_tokens`, `sampling.top_p`."""
    kind: FieldKind
    also: tuple[str, ...] = ()
    """Other fields of the dialect in which the setting may be found."""
    apart: bool = False
    """Whether the dialect's own code writes it: elsewhere in the body, or conditionally."""
    usual: Any = None
    """The default of every server without the field: not parsed as a setting, and not written."""


_Reader = tuple[str, str, tuple[type, ...], Callable[[Fields, str], Any], tuple[Any, ...]]
"""The group and name of a setting, accepted types, the parser of others, values that set nothing."""

_BLANK: Final = Request("", ())
"""A request without settings."""
_UNSET: Final = ("", ())


class RequestFields:
    """All regular fields of a dialect's requests, or of the object in them that `inside` names."""

    def __init__(self, *rows: F, inside: str = "") -> None:
        self.names: Final = frozenset(row.name for row in rows)
        self.places: Final[dict[str, tuple[str, ...]]] = {
            row.setting: tuple(inside + name for name in (row.name, *row.also))
            for row in rows
            if inside + row.name != row.setting
        }
        self._readers: Final = {row.name: _reader(row) for row in rows}
        self.known: Final = frozenset(name for name in self.names if not self._readers[name][-1])
        """Names of fields that are known with any value."""
        # A request must have a model, be it an empty one.
        self._start: Final[dict[str, Any]] = {"model": ""} if "model" in self.names else {}
        written = [row for row in rows if not row.apart]
        self._written: Final = [row.name for row in written]
        self._usual: Final = {row.name: row.usual for row in written if row.usual is not None}
        self._stated: Final = attrgetter(*[row.setting for row in written])
        self._nothing: Final = self._stated(_BLANK)

    def read(self, fields: Fields, known: set[str]) -> dict[str, Any]:
        """The settings of the fields, by their names in `Request`. Adds to `known` the fields with a meaning
        that are not always known."""
        settings = self._start.copy()
        sampling: dict[str, Any] = {}
        readers = self._readers
        for name, value in fields.value.items():
            if name in readers and value is not None:
                group, attribute, types, read, unset = readers[name]
                if unset:
                    if value in unset:
                        continue
                    known.add(name)
                taken = value if type(value) in types else read(fields, name)
                (sampling if group else settings)[attribute] = taken
        settings["sampling"] = Sampling(**sampling) if sampling else Sampling()
        return settings

    def write(
        self,
        request: Request,
        out: dict[str, Any],
        spelled: Mapping[str, str] = {},
    ) -> None:
        """Write the settings to `out`. `spelled`: other names for some of the fields."""
        values = self._stated(request)
        if values != self._nothing:
            usual = self._usual
            for name, value in zip(self._written, values, strict=True):
                if value is None or value in _UNSET or (name in usual and value == usual[name]):
                    continue
                out[spelled.get(name, name)] = list(value) if type(value) is tuple else value


def _reader(row: F) -> _Reader:
    group, _, attribute = row.setting.rpartition(".")
    unset = tuple(value for value in (row.kind.blank, row.usual) if value is not None)
    return group, attribute, row.kind.types, row.kind.read, unset
