"""One table of the configuration, read field by field: a wrong field is noted and the next one is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, get_args

import msgspec

from wireglot.gateway.config.problems import Problems, key_path, kind, meant, one_of, shown

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")


class Table:
    """Fields are taken by name; `close` reports those that nobody took."""

    def __init__(self, values: Mapping[str, Any], path: str, problems: Problems) -> None:
        self.values = values
        self.path = path
        self.problems = problems
        self._known: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def at(self, name: str) -> str:
        return key_path(self.path, name)

    def wrong(self, name: str, expected: str, found: str) -> None:
        self.problems.add(self.at(name), expected, found)

    def raw(self, name: str) -> Any:
        self._known.add(name)
        return self.values.get(name)

    def text(self, name: str, default: str = "") -> str:
        return self._take(name, default, "text", lambda value: type(value) is str)

    def flag(self, name: str, default: bool = False) -> bool:
        return self._take(name, default, "true or false", lambda value: type(value) is bool)

    def whole(self, name: str, default: int, least: int = 0, most: int | None = None) -> int:
        expected = f"a whole number from {least} " + ("up" if most is None else f"to {most}")

        def fits(value: object) -> bool:
            return type(value) is int and value >= least and (most is None or value <= most)

        return self._take(name, default, expected, fits)

    def choice(self, name: str, options: Collection[str], default: Any) -> Any:
        value = self.raw(name)
        if value is None:
            return default
        if type(value) is str and value in options:
            return value
        self.wrong(name, one_of(options, value), shown(value))
        return default

    def texts(self, name: str, expected: str = "a list of texts") -> tuple[str, ...]:
        value = self.raw(name)
        if value is None:
            return ()
        if type(value) is list and all(type(item) is str and item for item in value):
            return tuple(value)
        self.wrong(name, expected, kind(value))
        return ()

    def table(self, name: str) -> Table:
        value = self.raw(name)
        if value is not None and not isinstance(value, Mapping):
            self.wrong(name, "a table", kind(value))
            value = None
        return Table(value or {}, self.at(name), self.problems)

    def struct(self, name: str, default: S) -> S:
        """A table whose fields are those of a Struct of numbers and switches."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, Mapping):
            self.wrong(name, "a table", kind(value))
            return default
        return Table(value, self.at(name), self.problems).over(default)

    def over(self, default: S) -> S:
        """`default` with the fields of this table put over it."""
        changed: dict[str, Any] = {}
        for field in msgspec.structs.fields(type(default)):
            value = self.raw(field.name)
            if value is None:
                continue
            try:
                read = msgspec.convert(value, field.type)
            except msgspec.ValidationError:
                self.wrong(field.name, _described(field.type), shown(value))
                continue
            if _below_zero(read):
                self.wrong(field.name, "a number from 0 up", shown(value))
                continue
            changed[field.name] = read
        self.close()
        return msgspec.structs.replace(default, **changed)

    def close(self) -> None:
        for name in self.values:
            if name not in self._known:
                hint = meant(name, self._known)
                expected = f"a field that exists{hint}" if hint else one_of(self._known)
                self.wrong(name, expected, "a field of that name")

    def _take(self, name: str, default: T, expected: str, fits: Callable[[object], bool]) -> T:
        value = self.raw(name)
        if value is None:
            return default
        if not fits(value):
            self.wrong(name, expected, shown(value))
            return default
        taken: T = value
        return taken


def _described(wanted: Any) -> str:
    if wanted is bool:
        return "true or false"
    if wanted is int:
        return "a whole number"
    if wanted is float:
        return "a number"
    return "a list of numbers" if any("tuple" in str(one) for one in get_args(wanted)) else "text"


def _below_zero(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_below_zero(one) for one in value)
    return isinstance(value, int | float) and not value >= 0  # not >=: NaN is no time either
