"""Marks on the fields of a record: which forms of a request show a field, and under which name.

A form is one description of a request for one reader: its row in the usage ledger, its row in the list of
exchanges (which is what the inspector's page shows), its log line, the labels and metrics that count it, the
attributes of its span. The code that makes a form gets from `Marks.copied` what it shows unchanged, so that a
field of that kind is declared in one place; values that it computes are listed in it by their names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import takewhile
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

Form = Literal["ledger", "row", "log", "metrics", "span"]
_Struct = TypeVar("_Struct", bound=msgspec.Struct)

FORMS: Final[tuple[Form, ...]] = get_args(Form)

Part = Literal["", "each", "problem", "end"]
"""The part of a form that shows a value. Of a log line: "": what many requests have in common; `each`: what
differs; `problem`: shown unless all went well at once. Of a row of the ledger: "": its intent;
`end`: its completion."""


class As(msgspec.Struct, frozen=True):
    """A name under which a form shows a field."""

    name: str
    letters: int = 0
    """Characters that are shown: others wrote the text, and secrets are removed where others read it. 0: it
    is one of our own words, an operator's name, or no text."""
    of: str = ""
    """The attribute of the field that is shown; "": the field."""
    part: Part = ""
    always: bool = False
    """It is shown even if it is empty."""


Names = str | As | tuple[str | As, ...]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The forms that show a field."""

    ledger: Names = ()
    row: Names = ()
    log: Names = ()
    metrics: Names = ()
    """Labels, and metrics that count it."""
    span: Names = ()
    no_form: str = ""
    """Why no form shows it."""

    def names(self, form: Form) -> tuple[As, ...]:
        named: Names = getattr(self, form)
        each = named if isinstance(named, tuple) else (named,)
        return tuple(name if isinstance(name, As) else As(name) for name in each)


class Source(NamedTuple):
    """A name in a form, and the value of the record that it is made from."""

    name: str
    path: str
    """Of the value: attributes of the record, joined by dots."""
    letters: int
    part: Part
    always: bool


class Marks:
    """The marks of a record, in the order of its fields."""

    def __init__(self, record: type[msgspec.Struct]) -> None:
        hints = get_type_hints(record, include_extras=True)
        self.fields: dict[str, Shown] = {
            field: next(
                (mark for mark in getattr(hints[field], "__metadata__", ()) if isinstance(mark, Shown)),
                Shown(),
            )
            for field in record.__struct_fields__
        }

    def sources(self, form: Form) -> tuple[Source, ...]:
        """All names of a form. One that is made from several values has a source for each."""
        return tuple(
            Source(
                mark.name, f"{field}.{mark.of}" if mark.of else field, mark.letters, mark.part, mark.always
            )
            for field, shown in self.fields.items()
            for mark in shown.names(form)
        )

    def copied(self, form: Form, computed: Collection[str]) -> tuple[Source, ...]:
        """The names that show a value unchanged: all but those that are computed."""
        sources = self.sources(form)
        unknown = set(computed) - {source.name for source in sources}
        assert not unknown, f"no field of the record is shown in the {form} as {', '.join(sorted(unknown))}"
        copied = tuple(source for source in sources if source.name not in computed)
        names = [source.name for source in copied]
        assert len(names) == len(set(names)), f"the {form} copies two fields to one name: {names}"
        return copied


# Projections are written out as source text and compiled at import, as dataclasses do it with their methods:
# with a loop over the sources for each request they would take three times as long.


def tuple_of(
    sources: Iterable[Source], *, computed: Iterable[str] = (), cut: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """Makes a tuple of the values of a record, then of computed ones, which are passed by name. `cut`: texts
    have at most their letters."""
    items = (*[_value(source, cut) for source in sources], *computed)
    return _compiled(computed, f"({', '.join(items)},)")


def dict_of(sources: Iterable[Source], *, sparse: bool = False) -> Callable[..., dict[str, Any]]:
    """Makes a dictionary by name. `sparse`: without empty values, unless they are always shown."""
    items = (
        f"**({{{source.name!r}: value}} if (value := {_value(source)}) else {{}})"
        if sparse and not source.always
        else f"{source.name!r}: {_value(source)}"
        for source in sources
    )
    return _compiled((), f"{{{', '.join(items)}}}")


def struct_of(
    struct: type[_Struct], sources: Iterable[Source], computed: Iterable[str]
) -> Callable[..., _Struct]:
    """Makes a struct of the values of a record and of the computed ones, which are passed by name."""
    given = _given(sources, computed)
    # Without names as far as possible, which is faster.
    leading = list(takewhile(given.__contains__, struct.__struct_fields__))
    items = (*[given.pop(name) for name in leading], *[f"{name}={value}" for name, value in given.items()])
    return _compiled(computed, f"make({', '.join(items)})", struct)


def replacement_of(
    struct: type[_Struct], sources: Iterable[Source], computed: Iterable[str]
) -> Callable[..., _Struct]:
    """The same from another struct of the kind, `old`: a copy with these values."""
    items = [f"{name}={value}" for name, value in _given(sources, computed).items()]
    return _compiled(("old", *computed), f"make(old, {', '.join(items)})", msgspec.structs.replace)


def _given(sources: Iterable[Source], computed: Iterable[str]) -> dict[str, str]:
    return {source.name: _value(source, cut=True) for source in sources} | {name: name for name in computed}


def _value(source: Source, cut: bool = False) -> str:
    assert all(name.isidentifier() for name in source.path.split(".")), source.path
    return f"record.{source.path}{f'[: {source.letters}]' if cut and source.letters else ''}"


def _compiled(
    computed: Iterable[str], expression: str, make: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    text = f"lambda {', '.join(['record', '*', *computed] if computed else ['record'])}: {expression}"
    compiled: Callable[..., Any] = eval(compile(text, "<forms of a record>", "eval"), {"make": make})
    return compiled
