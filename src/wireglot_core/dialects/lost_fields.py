"""What a dialect has no place for, as a table: a row for each field of the neutral form that it cannot write.

The losses follow from the rows, those of another dialect's own fields included. A field that a table neither
loses nor carries is `uncovered`, which a test over all dialects reports: a new field is lost by nobody in
silence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from wireglot_core.ir.content import Signature
from wireglot_core.ir.loss import Action, Feature, Loss, losses_of_extra


class Lost(NamedTuple):
    """The loss of a field that has any other value than its default."""

    feature: Feature | Callable[[Signature], Feature]
    """That of a signature depends on what it is (`feature_of`)."""
    action: Action
    detail: str
    usual: tuple[object, ...] = ()
    """Further values that lose nothing."""
    whole: bool = False
    """Whether the loss is that of the value itself, not of its field."""

    def at(self, path: str, value: Any = None) -> Loss:
        feature = self.feature if isinstance(self.feature, str) else self.feature(value)
        return Loss(path, feature, self.action, self.detail)


class Carries:
    """The fields of a struct: the names of those that the dialect writes or has its own for (an answer's id),
    or whose loss depends on more than their value and is declared in code; and the rows of the others.
    `extra`: what is lost with the fields of another dialect."""

    def __init__(self, carried: str, extra: Feature = "unknown_field", **lost: Lost) -> None:
        self.carried: Final = carried.split()
        self.extra: Final[Feature] = extra
        self.lost: Final[Mapping[str, Lost]] = lost


class _Rows(NamedTuple):
    stated: Callable[[msgspec.Struct], tuple[Any, ...]]
    """The `extra` of a value, its fields that have rows, and its class."""
    unset: tuple[object, ...]
    """The same of a value that loses nothing, as most."""
    lost: list[tuple[str, Lost]]
    extra: Feature


class _RowsByKind(dict[type[msgspec.Struct], _Rows]):
    """A subclass loses what its base does."""

    def __missing__(self, kind: type[msgspec.Struct]) -> _Rows:
        found = self[kind] = next(self[base] for base in kind.__mro__[1:] if base in self)
        return found


class LostFields:
    """The table of a dialect: `of` declares what is lost of a value."""

    def __init__(self, dialect: str, table: Mapping[type[msgspec.Struct], Carries]) -> None:
        self._dialect: Final = dialect
        self._rows: Final = _RowsByKind({kind: _rows(kind, carries) for kind, carries in table.items()})
        self.table: Final = table

    def of(self, value: msgspec.Struct, path: str, losses: list[Loss]) -> None:
        stated, unset, lost, feature = self._rows[type(value)]
        values = stated(value)
        if values != unset:
            extra = values[0]
            if extra is not None and extra.dialect != self._dialect:
                losses_of_extra(extra, self._dialect, path, losses, feature)
            _declare(lost, values, unset, path, losses)

    def of_fields(self, value: msgspec.Struct, path: str, losses: list[Loss]) -> None:
        """The same for a value that has no `extra`, or whose `extra` is known later (a part of a stream)."""
        stated, unset, lost, _ = self._rows[type(value)]
        values = stated(value)
        if values != unset:
            _declare(lost, values, unset, path, losses)

    def uncovered(self) -> list[str]:
        """The fields that would be lost in silence, and names in the table that no field has."""
        return [
            f"{kind.__name__}.{name}"
            for kind, carries in self.table.items()
            for name in sorted({*_defaults(kind)} ^ {*carries.carried, *carries.lost})
            if name != "extra"
        ]


def _declare(
    lost: list[tuple[str, Lost]],
    values: tuple[Any, ...],
    unset: tuple[object, ...],
    path: str,
    losses: list[Loss],
) -> None:
    for (name, row), value, default in zip(lost, values[1:-1], unset[1:-1], strict=True):
        if value != default and value not in row.usual:
            losses.append(row.at(path if row.whole else f"{path}.{name}", value))


def _rows(kind: type[msgspec.Struct], carries: Carries) -> _Rows:
    defaults = _defaults(kind)
    # With the class there are always several names, and `attrgetter` returns a tuple.
    first = "extra" if "extra" in defaults else "__class__"
    stated = attrgetter(first, *carries.lost, "__class__")
    unset = (defaults.get("extra", kind), *map(defaults.__getitem__, carries.lost), kind)
    return _Rows(stated, unset, [*carries.lost.items()], carries.extra)


def _defaults(kind: type[msgspec.Struct]) -> dict[str, object]:
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(kind)
    }
