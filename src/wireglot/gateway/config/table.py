"""One table of the configuration, read field by field: a wrong field is noted and the next one is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from wireglot.gateway.config.declared import Setting, declared
from wireglot.gateway.config.problems import Problems, key_path, kind, meant, one_of
from wireglot.gateway.config.values import Misfit, fitted

S = TypeVar("S", bound=Struct)
_DECLARED: Final = object()


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

    def read(self, struct: type[Struct], name: str, default: Any = _DECLARED) -> Any:
        """A setting as `struct` declares it; `default`, or the declared one, where it is not set or wrong."""
        setting = declared(struct)[name]
        return self._read(setting, setting.default if default is _DECLARED else default)

    def over(self, default: S, **read: Any) -> S:
        """`default` with the fields of this table put over it. `read` are those that were read by code of
        their own; any other is read as it is declared."""
        changed = dict(read)
        for setting in declared(type(default)).values():
            if setting.attribute not in read:
                changed[setting.attribute] = self._read(setting, getattr(default, setting.attribute))
        return msgspec.structs.replace(default, **changed)

    def table(self, name: str) -> Table:
        value = self.raw(name)
        if value is not None and not isinstance(value, Mapping):
            self.wrong(name, "a table", kind(value))
            value = None
        return Table(value or {}, self.at(name), self.problems)

    def close(self) -> None:
        for name in self.values:
            if name not in self._known:
                hint = meant(name, self._known)
                expected = f"a field that exists{hint}" if hint else one_of(self._known)
                self.wrong(name, expected, "an unknown one")

    def _read(self, setting: Setting, default: Any) -> Any:
        if setting.is_table:
            return self._nested(setting, default)
        value = self.raw(setting.name)
        if value is None:
            return default
        try:
            return fitted(setting, value)
        except Misfit as misfit:
            self.wrong(setting.name, misfit.expected, misfit.found)
            return default

    def _nested(self, setting: Setting, default: Any) -> Any:
        inner = self.table(setting.name)
        read = inner.over(default)
        inner.close()
        return read
