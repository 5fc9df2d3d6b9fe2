"""Reads JSON from the wire: takes known fields, keeps the rest.

A `Fields` wraps one JSON object and its path. Taking a field of the wrong type raises the fault of its
sender, naming the path and what was expected. A null counts as absent, and stays in `rest` so that the same
dialect gets it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wireglot_core.ir.content import Extra
from wireglot_core.ir.errors import ClientFault, WireglotError

_NAMES = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
}


def describe(value: Any) -> str:
    """Describes a wrong value without repeating it: it may be long, or secret."""
    if value is None:
        return "null"
    return _NAMES.get(type(value), type(value).__name__)


def text_in(value: Any) -> str:
    """A string unchanged, "" for any other type: for code that must not fail because of a wrong type."""
    return value if type(value) is str else ""


def object_in(value: Any) -> dict[str, Any]:
    """An object unchanged, an empty one for any other type."""
    return value if type(value) is dict else {}


class Fields:
    __slots__ = ("fault", "path", "value")

    def __init__(self, value: Any, path: str = "$", fault: type[WireglotError] = ClientFault) -> None:
        if type(value) is not dict:
            raise fault(f"expected an object, got {describe(value)}", path)
        self.value: dict[str, Any] = value
        self.path = path
        self.fault = fault

    def wrong(self, key: str, expected: str) -> WireglotError:
        """The fault to raise for one field."""
        if key not in self.value:
            return self.fault(f"expected {expected}, but the field is missing", f"{self.path}.{key}")
        return self.fault(f"expected {expected}, got {describe(self.value[key])}", f"{self.path}.{key}")

    def text(self, key: str) -> str:
        value = self.value.get(key)
        if type(value) is not str:
            raise self.wrong(key, "a string")
        return value

    def text_or_none(self, key: str) -> str | None:
        value = self.value.get(key)
        if value is None or type(value) is str:
            return value
        raise self.wrong(key, "a string")

    def text_or(self, key: str, default: str = "") -> str:
        value = self.value.get(key)
        if value is None:
            return default
        if type(value) is str:
            return value
        raise self.wrong(key, "a string")

    def integer(self, key: str) -> int | None:
        """An integer or None; 4.0 is accepted as 4, as JSON does not distinguish them."""
        value = self.value.get(key)
        if value is None or type(value) is int:
            return value
        if type(value) is float and value.is_integer():
            return int(value)
        raise self.wrong(key, "an integer")

    def number(self, key: str) -> float | int | None:
        value = self.value.get(key)
        if value is None or type(value) is int or type(value) is float:
            return value
        raise self.wrong(key, "a number")

    def boolean(self, key: str) -> bool | None:
        value = self.value.get(key)
        if value is None or type(value) is bool:
            return value
        raise self.wrong(key, "a boolean")

    def object(self, key: str) -> Fields:
        value = self.value.get(key)
        if type(value) is not dict:
            raise self.wrong(key, "an object")
        return Fields(value, f"{self.path}.{key}", self.fault)

    def object_or_none(self, key: str) -> Fields | None:
        return None if self.value.get(key) is None else self.object(key)

    def dict_or_none(self, key: str) -> dict[str, Any] | None:
        """A JSON object taken whole (a schema, metadata)."""
        value = self.value.get(key)
        if value is None or type(value) is dict:
            return value
        raise self.wrong(key, "an object")

    def array(self, key: str) -> list[Any]:
        value = self.value.get(key)
        if type(value) is not list:
            raise self.wrong(key, "an array")
        return value

    def array_or_empty(self, key: str) -> list[Any]:
        return [] if self.value.get(key) is None else self.array(key)

    def objects(self, key: str) -> Iterator[Fields]:
        """The objects of an array; empty if it is absent."""
        path, fault = f"{self.path}.{key}", self.fault
        for index, item in enumerate(self.array_or_empty(key)):
            yield Fields(item, f"{path}[{index}]", fault)

    def texts(self, key: str) -> tuple[str, ...]:
        """An array of strings; empty if it is absent."""
        items = self.array_or_empty(key)
        for index, item in enumerate(items):
            if type(item) is not str:
                raise self.fault(f"expected a string, got {describe(item)}", f"{self.path}.{key}[{index}]")
        return tuple(items)

    def rest(self, known: frozenset[str], dialect: str, form: dict[str, Any] | None = None) -> Extra | None:
        """The unknown fields; nulls of known fields count, so that they come back."""
        value = self.value
        if not form and value.keys() <= known and None not in value.values():
            return None
        fields = {key: item for key, item in value.items() if key not in known or item is None}
        if fields or form:
            return Extra(dialect, fields, form or {})
        return None


def own_fields(extra: Extra | None, dialect: str) -> dict[str, Any]:
    """The fields to put back on a wire object of the same dialect (empty for any other dialect's)."""
    return extra.fields if extra is not None and extra.dialect == dialect else {}


def own_form(extra: Extra | None, dialect: str) -> dict[str, Any]:
    """The spelling to use again (empty for any other dialect's)."""
    return extra.form if extra is not None and extra.dialect == dialect else {}
