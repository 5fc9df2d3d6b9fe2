"""A setting as its one declaration tells it: `port: Annotated[int, Meta(description=...)] = 8484`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from wireglot.gateway.settings import Secret

_EXTRA: Final = frozenset({"env", "unit", "form", "expected", "default", "computed"})


class Undeclared(Exception):
    """A field of settings that does not say what it means, or says more than anybody reads."""


class Setting(Struct, frozen=True):
    """One setting. Bounds are None where there are none."""

    attribute: str
    """Its name in the Struct."""
    name: str
    """Its name in `wireglot.toml`."""
    type: Any
    """Without annotations, and without the None of one that may be left out."""
    default: Any
    """`msgspec.NODEFAULT` where it must be given."""
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
    told_default: str = ""

    @property
    def is_table(self) -> bool:
        """Whether it is a table of settings of its own."""
        return isinstance(self.type, type) and issubclass(self.type, Struct) and self.type is not Secret


@cache
def declared(struct: type[Struct]) -> Mapping[str, Setting]:
    """The settings of a Struct by their names in TOML, in the order of its fields."""
    fields = msgspec.structs.fields(struct)
    found = (_declared(struct, field) for field in fields)
    return MappingProxyType({setting.name: setting for setting in found if setting is not None})


def _declared(struct: type[Struct], field: msgspec.structs.FieldInfo) -> Setting | None:
    """None for a field that is no setting."""
    plain, metas = _unwrapped(field.type)
    extra: dict[str, Any] = {}
    for meta in metas:
        extra.update(meta.extra or {})
    description = _said(metas, "description")
    place = f"{struct.__name__}.{field.name}"
    if not description:
        raise Undeclared(f"{place}: no description")
    if not extra.keys() <= _EXTRA:
        raise Undeclared(f"{place}: nobody reads {', '.join(sorted(extra.keys() - _EXTRA))}")
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
        told_default=extra.get("default", ""),
    )


def _unwrapped(annotation: Any) -> tuple[Any, list[Meta]]:
    """The bare type, and what was said of it, from the inside out: the outermost word holds."""
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
