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

from wireglot_core.ir.content import Extra, Signature
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


_Row = tuple[str, object, Lost]
_Rows = tuple[Feature, Callable[[msgspec.Struct], object], object, list[_Row]]
"""The feature of another dialect's fields, the values that have rows, the same if unset, and the rows: name,
default and loss."""


class LostFields:
    """The table of a dialect: `of` declares what is lost of a value."""

    def __init__(self, dialect: str, table: Mapping[type[msgspec.Struct], Carries]) -> None:
        self._dialect: Final = dialect
        self._rows: Final = {kind: _rows(kind, carries) for kind, carries in table.items()}
        self.table: Final = table

    def of(self, value: msgspec.Struct, path: str, losses: list[Loss]) -> None:
        feature, stated, unset, rows = self._rows[type(value)]
        extra: Extra | None = getattr(value, "extra", None)
        if extra is not None and extra.dialect != self._dialect:
            losses_of_extra(extra, self._dialect, path, losses, feature)
        if stated(value) != unset:
            _declare(rows, value, path, losses)

    def without_extra(self, value: msgspec.Struct, path: str, losses: list[Loss]) -> None:
        """The same for a value whose `extra` is known later: that of a part that is being streamed."""
        _, stated, unset, rows = self._rows[type(value)]
        if stated(value) != unset:
            _declare(rows, value, path, losses)

    def uncovered(self) -> list[str]:
        """The fields that would be lost in silence, and names in the table that no field has."""
        return [
            f"{kind.__name__}.{name}"
            for kind, carries in self.table.items()
            for name in sorted({*_defaults(kind), "extra"} ^ {*carries.carried, *carries.lost, "extra"})
        ]


def _rows(kind: type[msgspec.Struct], carries: Carries) -> _Rows:
    defaults = _defaults(kind)
    rows = [(name, defaults[name], lost) for name, lost in carries.lost.items()]
    # The value of one name, a tuple of those of several: never of none.
    stated = attrgetter(*(carries.lost or ("__class__",)))
    unset = tuple([default for _, default, _ in rows]) if len(rows) > 1 else rows[0][1] if rows else kind
    return carries.extra, stated, unset, rows


def _declare(rows: list[_Row], value: msgspec.Struct, path: str, losses: list[Loss]) -> None:
    for name, default, lost in rows:
        field = getattr(value, name)
        if field != default and field not in lost.usual:
            losses.append(lost.at(path if lost.whole else f"{path}.{name}", field))


def _defaults(kind: type[msgspec.Struct]) -> dict[str, object]:
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(kind)
    }
