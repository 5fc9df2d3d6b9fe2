"""A small validator, to see whether a schema's meaning was kept."""

import json
from typing import Any

from hypothesis import assume


class Validator:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.steps = 0

    def fits(self, value: Any, schema: Any) -> bool:
        self.steps += 1
        if self.steps >= 3000:
            assume(False)
        if isinstance(schema, bool):
            return schema
        return all(self.one(key, want, value, schema) for key, want in schema.items())

    def one(self, key: str, want: Any, value: Any, schema: dict[str, Any]) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        match key:
            case "$ref":
                here: Any = self.root
                for token in want.split("/")[1:]:
                    here = here[token]
                return self.fits(value, here)
            case "type":
                kinds = [want] if isinstance(want, str) else want
                return any(self.is_a(value, kind.lower(), number) for kind in kinds)
            case "nullable":
                return True
            case "enum":
                return any(json.dumps(each) == json.dumps(value) for each in want)
            case "const":
                return json.dumps(want) == json.dumps(value)
            case "anyOf":
                return any(self.fits(value, each) for each in want)
            case "oneOf":
                return sum([self.fits(value, each) for each in want]) == 1
            case "allOf":
                return all(self.fits(value, each) for each in want)
            case "not":
                return not self.fits(value, want)
        if isinstance(value, dict):
            return self.one_of_object(key, want, value, schema)
        if isinstance(value, list):
            return self.one_of_array(key, want, value, schema)
        if number:
            return self.one_of_number(key, want, value)
        return not (isinstance(value, str) and key == "minLength") or len(value) >= int(want)

    @staticmethod
    def one_of_number(key: str, want: Any, value: Any) -> bool:
        match key:
            case "minimum":
                return bool(value >= want)
            case "maximum":
                return bool(value <= want)
            case "exclusiveMinimum":
                return bool(value > want)
            case "exclusiveMaximum":
                return bool(value < want)
        return True

    @staticmethod
    def is_a(value: Any, kind: str, number: bool) -> bool:
        return {
            "string": isinstance(value, str),
            "integer": number and value == int(value),
            "number": number,
            "boolean": isinstance(value, bool),
            "object": isinstance(value, dict),
            "array": isinstance(value, list),
            "null": value is None,
        }[kind]

    def one_of_object(self, key: str, want: Any, value: dict[str, Any], schema: dict[str, Any]) -> bool:
        match key:
            case "properties":
                return all(self.fits(value[name], each) for name, each in want.items() if name in value)
            case "required":
                return all(name in value for name in want)
            case "additionalProperties":
                known = schema.get("properties", {})
                return all(self.fits(each, want) for name, each in value.items() if name not in known)
        return True

    def one_of_array(self, key: str, want: Any, value: list[Any], schema: dict[str, Any]) -> bool:
        match key:
            case "prefixItems":
                return all(self.fits(each, one) for each, one in zip(value, want, strict=False))
            case "items":
                return all(self.fits(each, want) for each in value[len(schema.get("prefixItems", ())) :])
            case "minItems":
                return len(value) >= int(want)
            case "maxItems":
                return len(value) <= int(want)
        return True


def without_nullable(schema: Any) -> Any:
    """Gemini's flag said in JSON Schema, for the validator."""
    if isinstance(schema, list):
        return [without_nullable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: without_nullable(value) for key, value in schema.items() if key != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain
