"""OpenAPI and discovery documents as JSON Schemas (2020-12) in which every object is closed.

A field that a schema does not name is an error, and a union is `anyOf`: documents say `oneOf` where two
branches overlap. `nullable` and the flags of OpenAPI 3.0 are rewritten; discriminators are left out, since
each branch names its own tag.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

Schema = dict[str, Any]
GOOGLE_PREFIX: Final = "GoogleCloudAiplatformV1beta1"


_COMPOSED: Final = ("allOf", "anyOf", "oneOf")
_IGNORED: Final = frozenset(
    (
        "discriminator",
        "example",
        "examples",
        "default",
        "description",
        "title",
        "deprecated",
        "$recursiveAnchor",
    )
)
DOCUMENT: Final = " as a document"
"""What follows a name for the schema of a whole document, in which the object itself is closed."""
_REFERENCE: Final = "#/components/schemas/"


def openapi(path: Path) -> Schema:
    return _Converter(json.loads(path.read_bytes())["components"]["schemas"]).definitions()


class _Converter:
    """Of the components of one document.

    Objects are closed where they are used, by `additionalProperties` next to a list of all names: a part of
    an `allOf` must leave room for its siblings, and `unevaluatedProperties` would report every field of an
    object in which one value is wrong.
    """

    def __init__(self, components: dict[str, Schema]) -> None:
        self._components = components
        self._component = ""

    def definitions(self) -> Schema:
        found: Schema = {}
        for name, schema in self._components.items():
            self._component = name
            found[name] = self._part(schema)
            found[name + DOCUMENT] = self._value({"$ref": _REFERENCE + name})
        return found

    def _value(
        self, schema: Any, siblings: frozenset[str] = frozenset(), inside: tuple[str, ...] = ()
    ) -> Any:
        """A schema at a place of its own in a document; `siblings` are the fields that it need not name."""
        if not isinstance(schema, dict):
            return schema
        if schema.get("nullable"):
            return {"anyOf": [self._value(_without(schema, "nullable"), siblings, inside), {"type": "null"}]}
        name = self._reference(schema)
        if name is not None:
            target = self._components[name]
            if _is_union(target) and name not in inside:
                return self._value(target, siblings, (*inside, name))
            return self._closed({"$ref": f"#/$defs/{name}"}, self._fields(target), siblings)
        if _is_union(schema):
            rest = _without(schema, "anyOf", "oneOf")
            own = siblings | (self._fields(rest, part=True) or frozenset())
            branches = [self._value(each, own, inside) for each in _branches(schema)]
            return {**self._part(rest, part=True), "anyOf": branches}
        if "additionalProperties" in schema:
            return self._part(schema)
        return self._closed(self._part(schema), self._fields(schema), siblings)

    @staticmethod
    def _closed(schema: Schema, fields: frozenset[str] | None, siblings: frozenset[str]) -> Schema:
        if not fields:
            return schema
        named = dict.fromkeys(sorted(fields | siblings), True)
        return {"allOf": [schema], "properties": named, "additionalProperties": False}

    def _part(self, schema: Any, part: bool = False) -> Any:
        """A schema as it is, with closed values; `part`: what it leaves open is left to its siblings."""
        if not isinstance(schema, dict):
            return schema
        if schema.get("nullable"):
            return {"anyOf": [self._part(_without(schema, "nullable")), {"type": "null"}]}
        name = self._reference(schema)
        if name is not None:
            return {"$ref": f"#/$defs/{name}"}
        found: Schema = {}
        for key, value in schema.items():
            if key in _IGNORED or key.startswith("x-") or key in ("nullable", "anyOf", "oneOf"):
                continue
            if key == "properties":
                found[key] = {name: self._value(each) for name, each in value.items()}
            elif key in ("items", "additionalProperties"):
                found[key] = self._value(value)
            elif key == "allOf":
                found[key] = [self._part(each, part=True) for each in value]
            elif key == "required":
                found[key] = list(dict.fromkeys(value))
            elif key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
                if value:  # OpenAPI 3.0 has a flag next to the limit
                    found[key] = schema[key.replace("exclusiveM", "m")]
            else:
                found[key] = value
        if _is_union(schema):
            found["anyOf"] = [self._part(each, part=True) for each in _branches(schema)]
        return found

    def _fields(self, schema: Any, part: bool = False, inside: tuple[str, ...] = ()) -> frozenset[str] | None:
        """The fields that an object may have; None: any. A `part` that names none adds none."""
        if not isinstance(schema, dict):
            return None
        name = self._reference(schema)
        if name is not None:
            return (
                frozenset() if name in inside else self._fields(self._components[name], part, (*inside, name))
            )
        if schema.get("additionalProperties", False) is not False:
            return None
        found = frozenset(schema.get("properties", ()))
        parts = [each for key in _COMPOSED for each in schema.get(key, ())]
        for each in parts:
            fields = self._fields(each, True, inside)
            if fields is None:
                return None
            found |= fields
        kinds = schema.get("type", "object")
        names_none = "properties" not in schema and not parts and "additionalProperties" not in schema
        return None if not part and names_none and "object" in kinds else found

    def _reference(self, schema: Schema) -> str | None:
        if "$recursiveRef" in schema:
            return self._component
        reference = schema.get("$ref")
        return None if reference is None else str(reference).removeprefix(_REFERENCE)


def _is_union(schema: Schema) -> bool:
    return "anyOf" in schema or "oneOf" in schema


def _branches(schema: Schema) -> list[Any]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _without(schema: Schema, *keys: str) -> Schema:
    return {key: value for key, value in schema.items() if key not in keys}


def discovery(path: Path) -> tuple[Schema, str]:
    """Google's form: references by name, formats for numbers that are strings in JSON, no required fields."""
    document = json.loads(path.read_bytes())
    named = {
        name.removeprefix(GOOGLE_PREFIX): _described(schema) for name, schema in document["schemas"].items()
    }
    return named | {name + DOCUMENT: schema for name, schema in named.items()}, document["revision"]


def _described(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref'].removeprefix(GOOGLE_PREFIX)}"}
    kind = schema.get("type")
    if kind == "any":
        return {}
    found: Schema = {"type": kind}
    if kind == "object":
        if "properties" in schema:
            found["properties"] = {name: _described(each) for name, each in schema["properties"].items()}
        found["additionalProperties"] = _described(schema.get("additionalProperties", {"type": "any"}))
        if "additionalProperties" not in schema:
            found["additionalProperties"] = False
    elif kind == "array":
        found["items"] = _described(schema["items"])
    elif "enum" in schema:
        found["enum"] = schema["enum"]
    elif schema.get("format") in ("int64", "uint64"):
        found["type"] = ["string", "integer"]
    return found
