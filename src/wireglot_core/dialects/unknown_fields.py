"""Fields the IR has no name for: kept with the value they belong to, written back by their own dialect.

A field with a meaning is kept in `Extra.fields`, where any other dialect declares it lost. A field without
one (an empty list, an omitted field) is spelling and is kept in `Extra.form` under one of the keys below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wireglot_core.ir.content import Extra
from wireglot_core.ir.loss import is_blank

WITHOUT = "without"
"""Form key: names the renderer would write and the source left out."""
HOLLOW = "rest"
"""Form key: unknown fields without content."""
_BLANK = "blank"
_EMPTY_TYPES = (bool, str, list, dict)


class UnknownFields:
    """Collects the unknown fields of one dialect's objects.

    `deep`: a key with a dot names a field of a nested object (`image_url.x_new`), and a value that is empty
    at every depth has no meaning: some servers print every field of their schema. `over_blanks`: the renderer
    writes empty values itself, which are replaced by what the source had there.
    """

    __slots__ = ("_deep", "_dialect", "_over_blanks")

    def __init__(self, dialect: str, *, deep: bool = False, over_blanks: bool = False) -> None:
        self._dialect = dialect
        self._deep = deep
        self._over_blanks = over_blanks

    def keep(
        self,
        value: dict[str, Any],
        known: frozenset[str] | set[str],
        form: dict[str, Any] | None = None,
        *,
        blanks: tuple[str, ...] = (),
        always: tuple[str, ...] = (),
        nested: Mapping[str, tuple[dict[str, Any], frozenset[str]]] | None = None,
    ) -> Extra | None:
        """The unknown fields of an object and of the objects inside it, and nulls of known fields. `blanks`:
        known fields whose empty value would not be written again; `always`: those that are written even if
        the source left them out."""
        empty: dict[str, Any] = {}
        for key in blanks:
            item = value.get(key)
            if not item and type(item) in _EMPTY_TYPES:
                empty[key] = item
        if empty:
            form = {**(form or {}), _BLANK: empty}
        if always:
            missing = [key for key in always if key not in value]
            if missing:
                form = {**(form or {}), WITHOUT: missing}
        if not form and value.keys() <= known and None not in value.values():
            for inner, inner_known in nested.values() if nested else ():
                if not inner.keys() <= inner_known or None in inner.values():
                    break
            else:
                return None
        fields: dict[str, Any] = {}
        hollow: dict[str, Any] = {}
        self.sift(value, known, fields, hollow)
        if nested:
            for key, (inner, inner_known) in nested.items():
                self.sift(inner, inner_known, fields, hollow, f"{key}.")
        if hollow:
            form = {**(form or {}), HOLLOW: hollow}
        return Extra(self._dialect, fields, form or {}) if fields or form else None

    def sift(
        self,
        value: dict[str, Any],
        known: frozenset[str] | set[str],
        fields: dict[str, Any],
        hollow: dict[str, Any],
        prefix: str = "",
    ) -> None:
        """Sort unknown fields into those with a meaning and those without."""
        deep = self._deep
        for key, item in value.items():
            if key not in known or item is None:
                (hollow if deep and item and is_hollow(item) else fields)[prefix + key] = item

    def put_back(self, out: dict[str, Any], extra: Extra | None) -> dict[str, Any]:
        """Add the kept fields to a wire object; those of another dialect are none of it. Changes and returns
        `out`. A field that the source left out is removed only if it has no new value."""
        if extra is None or extra.dialect != self._dialect:
            return out
        form = extra.form
        if WITHOUT in form:
            for key in form[WITHOUT]:
                if key == "type" or is_blank(out.get(key)):
                    out.pop(key, None)
        if extra.fields:
            self._put(out, extra.fields)
        for name in (_BLANK, HOLLOW):
            if name in form and type(form[name]) is dict:
                self._put(out, form[name])
        return out

    def _put(self, out: dict[str, Any], kept: dict[str, Any]) -> None:
        deep, over_blanks = self._deep, self._over_blanks
        for key, item in kept.items():
            here = out
            if deep:
                head, dot, tail = key.partition(".")
                while dot and type(here.get(head)) is dict:
                    here, key = here[head], tail
                    head, dot, tail = key.partition(".")
            if key not in here or (over_blanks and is_blank(here[key])):
                here[key] = item
            elif type(item) is dict and type(here[key]) is dict:
                here[key] = merge(dict(here[key]), item)


def merge(out: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """`out` with the kept fields, objects merged. Values in `out` win. Changes and returns `out`."""
    for key, item in kept.items():
        if key not in out:
            out[key] = item
        elif type(item) is dict and type(out[key]) is dict:
            out[key] = merge(dict(out[key]), item)
    return out


def is_hollow(value: Any) -> bool:
    """Whether a value is empty at every depth."""
    if type(value) is dict:
        return all(is_hollow(item) for item in value.values())
    if type(value) is list:
        return all(is_hollow(item) for item in value)
    return is_blank(value)


def split_blank(fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits leftovers of a nested object: those with a meaning, and those that are only spelling."""
    telling = {key: value for key, value in fields.items() if not is_blank(value)}
    blank = {key: value for key, value in fields.items() if is_blank(value)}
    return telling, blank
