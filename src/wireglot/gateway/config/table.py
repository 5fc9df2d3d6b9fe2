"""Reads one table of the configuration field by field: an invalid field is noted, and the next one is
read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from wireglot.gateway.config.problems import Problems, key_path, kind, meant, one_of, shown
from wireglot.gateway.settings import Secret

_EXTRA: Final = frozenset({"env", "unit", "form", "expected", "default", "computed"})


class Undeclared(Exception):
    """A field of settings without a description, or with properties that nothing reads."""


class Setting(Struct, frozen=True):
    """One setting. Bounds are None if there are none."""

    attribute: str
    """Its name in the Struct."""
    name: str
    """Its name in `wireglot.toml`."""
    type: Any
    """The bare type, without annotations and without None for an optional one."""
    default: Any
    """`msgspec.NODEFAULT` if it is required."""
    description: str
    example: str = ""
    least: float | None = None
    more_than: float | None = None
    most: float | None = None
    less_than: float | None = None
    min_length: int = 0
    env: str = ""
    unit: str = ""
    form: str = ""
    expected: str = ""
    reported_default: str = ""

    @property
    def is_table(self) -> bool:
        """Whether it is a table with its own settings."""
        return isinstance(self.type, type) and issubclass(self.type, Struct) and self.type is not Secret


@cache
def declared(struct: type[Struct]) -> Mapping[str, Setting]:
    """The settings of a Struct by their names in TOML, in the order of its fields."""
    fields = msgspec.structs.fields(struct)
    found = (_declared(struct, field) for field in fields)
    return MappingProxyType({setting.name: setting for setting in found if setting is not None})


def _declared(struct: type[Struct], field: msgspec.structs.FieldInfo) -> Setting | None:
    """None for a field that is not a setting."""
    plain, metas = _unwrapped(field.type)
    extra: dict[str, Any] = {}
    for meta in metas:
        extra.update(meta.extra or {})
    description = _said(metas, "description")
    place = f"{struct.__name__}.{field.name}"
    if not description:
        raise Undeclared(f"{place}: no description")
    if not extra.keys() <= _EXTRA:
        raise Undeclared(f"{place}: unused variable {', '.join(sorted(extra.keys() - _EXTRA))}")
    if extra.get("computed"):
        return None
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    return Setting(
        attribute=field.name,
        name=field.encode_name,
        type=plain,
        default=default,
        description=description,
        example=(_said(metas, "examples") or [""])[0],
        least=_said(metas, "ge"),
        more_than=_said(metas, "gt"),
        most=_said(metas, "le"),
        less_than=_said(metas, "lt"),
        min_length=_said(metas, "min_length") or 0,
        env=extra.get("env", ""),
        unit=extra.get("unit", ""),
        form=extra.get("form", ""),
        expected=extra.get("expected", ""),
        reported_default=extra.get("default", ""),
    )


def _unwrapped(annotation: Any) -> tuple[Any, list[Meta]]:
    """The bare type, and its annotations from the inside out: the outermost one applies."""
    if get_origin(annotation) is Annotated:
        inner, *said = get_args(annotation)
        plain, metas = _unwrapped(inner)
        return plain, [*metas, *(one for one in said if isinstance(one, Meta))]
    if get_origin(annotation) in (Union, UnionType):
        members = [one for one in get_args(annotation) if one is not type(None)]
        if len(members) == 1:
            return _unwrapped(members[0])
    return annotation, []


def _said(metas: list[Meta], name: str) -> Any:
    said = [value for meta in metas if (value := getattr(meta, name)) is not None]
    return said[-1] if said else None


class Misfit(Exception):
    """The value is invalid for the setting."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected = expected
        self.found = found


def fitted(setting: Setting, value: object) -> Any:
    """The value converted to the setting's type, within its bounds; else a Misfit."""
    wanted = setting.type
    if wanted is bool:
        return _of_type(bool, value, "true or false")
    if wanted is str:
        return _of_type(str, value, "text")
    if wanted is int:
        return _whole(setting, value)
    if wanted is float:
        return _within(setting, _converted(float, value, "a number"), value)
    if get_origin(wanted) is Literal:
        return _chosen(get_args(wanted), value)
    if wanted == tuple[str, ...]:
        return _texts(setting, value)
    if wanted == tuple[float, ...]:
        numbers = _converted(wanted, value, "a list of numbers")
        for number in numbers:
            _within(setting, number, value)
        return numbers
    raise TypeError(f"{setting.name}: {wanted} is read by code of its own")


def expected_number(setting: Setting) -> str:
    """The range of a setting in words."""
    noun = "a whole number" if setting.type is int else "a number"
    least = setting.least or 0
    return f"{noun} from {least} up" if setting.most is None else f"{noun} from {least} to {setting.most}"


def _of_type(wanted: type, value: object, expected: str) -> Any:
    if type(value) is not wanted:
        raise Misfit(expected, shown(value))
    return value


def _converted(wanted: Any, value: object, expected: str) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        raise Misfit(expected, shown(value)) from None


def _whole(setting: Setting, value: object) -> int:
    ranged = setting.least is not None or setting.most is not None
    number: int = _of_type(int, value, expected_number(setting) if ranged else "a whole number")
    return int(_within(setting, number, value))


def _within(setting: Setting, number: float, value: object) -> float:
    """No setting may be below 0, declared or not. `value` is what a problem shows."""
    least, most, above = setting.least, setting.most, setting.more_than
    if (least is not None and number < least) or (most is not None and number > most):
        raise Misfit(expected_number(setting), shown(value))
    if not number >= 0:  # NaN is not a valid number either
        raise Misfit("a number from 0 up", shown(value))
    if above is not None and number <= above:
        raise Misfit(f"more than {above:g}", shown(value))
    if setting.less_than is not None and number >= setting.less_than:
        raise Misfit(f"less than {setting.less_than:g}", shown(value))
    return number


def _chosen(options: tuple[str, ...], value: object) -> Any:
    if type(value) is not str or value not in options:
        raise Misfit(one_of(options, value), shown(value))
    return value


def _texts(setting: Setting, value: object) -> tuple[str, ...]:
    if type(value) is list and all(type(item) is str and item for item in value):
        return tuple(value)
    raise Misfit(setting.expected or "a list of texts", kind(value))


S = TypeVar("S", bound=Struct)
_DECLARED: Final = object()


class Table:
    """Fields are taken by name; `close` reports those that were not taken."""

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
        """A setting as `struct` declares it; `default`, or the declared one, if it is not set or invalid."""
        setting = declared(struct)[name]
        return self._read(setting, setting.default if default is _DECLARED else default)

    def over(self, default: S, **read: Any) -> S:
        """`default` with the fields of this table applied over it. `read` are those that the caller has read;
        any other is read as it is declared."""
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
