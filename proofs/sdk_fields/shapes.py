"""The types of an SDK as data: which structures there are, where they stand, what fields they have."""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

import pydantic
import typing_extensions

_QUALIFIERS = (
    typing.Annotated,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
    typing_extensions.Required,
)


class Step(NamedTuple):
    """One step from a structure to another that stands in one of its fields."""

    field: str
    into: type
    listed: int = 0
    """How many lists stand around it."""
    keyed: bool = False
    """Whether it is the value of a mapping."""


Place = tuple[Step, ...]


def bare(hint: Any) -> Any:
    """A type without what is said about it."""
    while True:
        if get_origin(hint) in _QUALIFIERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, typing_extensions.TypeAliasType):
            hint = hint.__value__
        else:
            return hint


def is_structure(hint: Any) -> bool:
    return typing_extensions.is_typeddict(hint) or (
        inspect.isclass(hint) and issubclass(hint, pydantic.BaseModel)
    )


def is_union(hint: Any) -> bool:
    return get_origin(hint) in (typing.Union, types.UnionType)


def is_list(hint: Any) -> bool:
    origin = get_origin(hint)
    return (
        inspect.isclass(origin)
        and issubclass(origin, collections.abc.Iterable)
        and not issubclass(origin, collections.abc.Mapping)
    )


def is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return inspect.isclass(origin) and issubclass(origin, collections.abc.Mapping)


@functools.cache
def fields_of(structure: type) -> dict[str, Any]:
    """Each field by its name on the wire."""
    if typing_extensions.is_typeddict(structure):
        return typing_extensions.get_type_hints(structure, include_extras=True)
    model = typing.cast(type[pydantic.BaseModel], structure)
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


@functools.cache
def required_of(structure: type) -> frozenset[str]:
    if typing_extensions.is_typeddict(structure):
        # `__required_keys__` does not see through annotations that are kept as text.
        total = bool(getattr(structure, "__total__", True))
        return frozenset(name for name, hint in fields_of(structure).items() if _is_required(hint, total))
    model = typing.cast(type[pydantic.BaseModel], structure)
    return frozenset(
        field.alias or name
        for name, field in model.model_fields.items()
        if field.is_required() or _is_constant(field.annotation)
    )


def _is_constant(hint: Any) -> bool:
    """Whether a field has one value only: the kind of its structure, which is always sent."""
    return get_origin(hint) is typing.Literal and len(get_args(hint)) == 1


def _is_required(hint: Any, total: bool) -> bool:
    origin = get_origin(hint)
    return origin is typing_extensions.Required or (total and origin is not typing_extensions.NotRequired)


def structures_in(hint: Any, listed: int = 0, keyed: bool = False) -> Iterator[tuple[type, int, bool]]:
    """The structures that a field may hold, with the lists and mappings around them."""
    hint = bare(hint)
    if is_union(hint):
        for option in get_args(hint):
            yield from structures_in(option, listed, keyed)
    elif is_mapping(hint):
        yield from structures_in(get_args(hint)[1], listed, keyed=True)
    elif is_list(hint):
        for item in get_args(hint):
            yield from structures_in(item, listed + 1, keyed)
    elif is_structure(hint) and "is_unknown" not in fields_of(hint):  # what an SDK makes of a kind it lacks
        yield hint, listed, keyed


def places(root: type, without: frozenset[str] = frozenset()) -> dict[type, Place]:
    """Every structure below `root`, at the nearest place where it can stand; some fields of `root` apart."""
    found: dict[type, Place] = {root: ()}
    edge = [root]
    while edge:
        beyond: list[type] = []
        for structure in edge:
            for field, hint in fields_of(structure).items():
                if structure is root and field in without:
                    continue
                for into, listed, keyed in structures_in(hint):
                    if into not in found:
                        found[into] = (*found[structure], Step(field, into, listed, keyed))
                        beyond.append(into)
        edge = beyond
    return found
