"""A value that a JSON schema accepts: the arguments of a call, or an answer in a given format.

Knows const, enum, default, type (one or several, in any case), properties, required, minProperties, items,
prefixItems, minItems, maxItems, uniqueItems, minimum, maximum, exclusiveMinimum, exclusiveMaximum,
multipleOf, minLength, maxLength, format, nullable, local $ref, allOf, anyOf, oneOf. A `pattern` is ignored:
it comes from a client, and running it could take for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeGuard

import msgspec

_Bound = tuple[float, bool]
"""A bound, and whether the number may not be equal to it."""


def is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_for(given: Mapping[str, Any], *, whole: bool) -> int | float:
    """1 if that is allowed, else a number near the bound that forbids it."""
    low = _bound(given, "minimum", "exclusiveMinimum", max)
    high = _bound(given, "maximum", "exclusiveMaximum", min)
    step = given.get("multipleOf")
    grid = Fraction(str(step)) if is_number(step) and step > 0 else None
    if whole:
        grid = Fraction(grid.numerator) if grid is not None else Fraction(1)
    if grid is not None:
        return _on_grid(grid, low, high)
    if (low is None or low[0] < 1) and (high is None or high[0] > 1):
        return 1.0
    if low is not None and high is not None:
        return (low[0] + high[0]) / 2
    if low is not None:
        return low[0] + 1 if low[1] else low[0]
    assert high is not None
    return high[0] - 1 if high[1] else high[0]


def _bound(
    given: Mapping[str, Any], name: str, exclusive: str, narrower: Callable[[float, float], float]
) -> _Bound | None:
    """OpenAPI's older schemas have `exclusiveMinimum: true` next to the minimum."""
    value, strict = given.get(name), given.get(exclusive)
    bound = (value, strict is True) if is_number(value) else None
    if is_number(strict) and (bound is None or narrower(strict, bound[0]) == strict):
        return strict, True
    return bound


def _on_grid(grid: Fraction, low: _Bound | None, high: _Bound | None) -> int | float:
    """The multiple nearest to 1 within the bounds."""
    place = int(max(Fraction(1), grid) // grid)
    if low is not None:
        least = math.ceil(Fraction(low[0]) / grid)
        place = max(place, least + (1 if low[1] and least * grid == Fraction(low[0]) else 0))
    if high is not None:
        most = math.floor(Fraction(high[0]) / grid)
        place = min(place, most - (1 if high[1] and most * grid == Fraction(high[0]) else 0))
    made = place * grid
    return int(made) if made.denominator == 1 else float(made)


# Values of one document that the demo model makes for a schema.
NODES_MAX = 2_000
# Nesting of a document that the demo model makes for a schema.
DEPTH_MAX = 12
# Items of one list that the demo model makes for a schema.
ITEMS_MAX = 64
# Characters of one text that the demo model makes for a schema.
LENGTH_MAX = 4_096
_SHOW_DEPTH = 3
"""The depth down to which optional fields are filled, in schemas that require none."""

_FORMATS: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1H",
    "email": "demo@example.com",
    "hostname": "example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/demo",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "byte": "ZGVtbw==",
}

PATH_KEYS: Final = frozenset(
    {"path", "file_path", "filepath", "file", "filename", "file_name", "absolute_path", "target_file"}
)
COMMAND_KEYS: Final = frozenset({"command", "cmd", "script", "shell_command"})


class Hints(msgspec.Struct, frozen=True):
    """Values from the prompt for fields that need them."""

    path: str = ""
    command: str = ""
    text: str = ""
    place: str = ""


_LOWER_BOUNDS: Final = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER_BOUNDS: Final = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems"})
_KEYS: Final[tuple[tuple[frozenset[str], Callable[[Hints], str], str], ...]] = (
    (PATH_KEYS, lambda hints: hints.path, "README.md"),
    (COMMAND_KEYS, lambda hints: hints.command, "echo hello from the demo model"),
    (
        frozenset({"dir_path", "directory", "workdir", "cwd", "dir", "folder"}),
        lambda hints: hints.path.rpartition("/")[0],
        ".",
    ),
    (frozenset({"city", "location", "place", "town"}), lambda hints: hints.place, "Paris"),
    (
        frozenset({"query", "q", "text", "prompt", "message", "question", "input", "content", "task",
                   "search", "answer"}),
        lambda hints: hints.text,
        "demo",
    ),
    (
        frozenset({"description", "reason", "justification", "explanation", "why"}),
        lambda hints: "",
        "The demo model tries its tools",
    ),
    (frozenset({"url", "uri", "link", "href"}), lambda hints: "", "https://example.com/"),
)  # fmt: skip
"""Fields by their names: the values from the prompt, and the defaults otherwise."""


def filled(schema: Mapping[str, Any] | None, hints: Hints | None = None) -> Any:
    """A value for the schema; an object if the schema does not say."""
    if not schema:
        return {}
    return _Filler(schema, hints or Hints()).value(schema, "", 0)


def plain_key(key: str) -> str:
    """`filePath`, `file-path` and `FILE_PATH` are the same key."""
    words = "".join(
        f"_{c}" if c.isupper() and before.islower() else c for before, c in zip(" " + key, key, strict=False)
    )
    return words.replace("-", "_").lower()


class _Filler:
    def __init__(self, root: Mapping[str, Any], hints: Hints) -> None:
        self._root = root
        self._hints = hints
        self._left = NODES_MAX

    def value(self, schema: Any, key: str, depth: int) -> Any:
        self._left -= 1
        given = self._flat(schema, 0)
        if self._left <= 0 or depth > DEPTH_MAX:
            return None
        if "const" in given:
            return given["const"]
        choices = given.get("enum")
        if isinstance(choices, list) and choices:
            return next((choice for choice in choices if choice is not None), None)
        kind = _type(given)
        if kind == "object":
            return self._object(given, depth)
        if kind == "array":
            return self._array(given, key, depth)
        hint = self._hint(key) if kind == "string" and "format" not in given else ""
        if given.get("default") is not None and not hint and _is(given["default"], kind):
            return given["default"]
        if kind == "string":
            return _text(given, hint or _usual_text(key))
        if kind in ("integer", "number"):
            return number_for(given, whole=kind == "integer")
        return None if kind == "null" else False

    def _flat(self, schema: Any, turns: int) -> dict[str, Any]:
        """The schema with references, `allOf` and the first fitting branch merged into it."""
        if not isinstance(schema, Mapping) or turns > DEPTH_MAX:
            return {}
        given = {key: item for key, item in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
        if isinstance(schema.get("$ref"), str):
            given = _merged(self._flat(self._lookup(schema["$ref"]), turns + 1), given)
        for branch in _list(schema, "allOf"):
            given = _merged(given, self._flat(branch, turns + 1))
        for word in ("anyOf", "oneOf"):
            branches = [self._flat(branch, turns + 1) for branch in _list(schema, word)]
            if branches:
                given = _merged(given, next((b for b in branches if _type(b) != "null"), branches[0]))
        return given

    def _lookup(self, reference: str) -> Any:
        here: Any = self._root
        if not reference.startswith("#"):
            return {}
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping):
                here = here.get(step)
            elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
                here = here[int(step)]
            else:
                return {}
        return here

    def _object(self, given: dict[str, Any], depth: int) -> dict[str, Any]:
        known = given.get("properties")
        properties: dict[str, Any] = dict(known) if isinstance(known, Mapping) else {}
        required = [name for name in _list(given, "required") if isinstance(name, str)]
        names = required
        if "required" not in given and depth < _SHOW_DEPTH:
            names = list(properties)
        elif self._hints.path and not any(plain_key(name) in PATH_KEYS for name in names):
            names = [
                *names,
                *(name for name in properties if plain_key(name) in PATH_KEYS and name not in names),
            ]
        fewest = _size(given, "minProperties", 0)
        names = [*names, *(name for name in properties if name not in names)][: max(len(names), fewest)]
        other = given.get("additionalProperties")
        rest = other if isinstance(other, Mapping) else {"type": "string"}
        made = {name: self.value(properties.get(name, rest), name, depth + 1) for name in names}
        for number in range(len(made), fewest):
            made[f"demo_{number}"] = self.value(rest, "", depth + 1)
        return made

    def _array(self, given: dict[str, Any], key: str, depth: int) -> list[Any]:
        first = _list(given, "prefixItems")
        items = given.get("items")
        rest: Any = items if isinstance(items, Mapping) else {"type": "string"}
        if (
            plain_key(key) in COMMAND_KEYS
            and _type(self._flat(rest, 0)) == "string"
            and "maxItems" not in given
        ):
            return ["bash", "-lc", self._hint(key) or _usual_text(key)]
        fewest = _size(given, "minItems", 0)
        wanted = max(fewest, len(first) or 1)
        if self._left < NODES_MAX // 2 or depth >= DEPTH_MAX // 2:
            wanted = fewest  # it may be a list of items that contain such a list
        count = min(wanted, _size(given, "maxItems", ITEMS_MAX))
        made = [self.value(first[n] if n < len(first) else rest, key, depth + 1) for n in range(count)]
        return _distinct(made, self._flat(rest, 0)) if given.get("uniqueItems") is True else made

    def _hint(self, key: str) -> str:
        plain = plain_key(key)
        return next((hint(self._hints) for names, hint, _ in _KEYS if plain in names), "")


def _type(given: Mapping[str, Any]) -> str:
    stated = given.get("type")
    if isinstance(stated, list):
        stated = next((word for word in stated if str(word).lower() != "null"), "null")
    if isinstance(stated, str) and stated.lower() not in ("", "type_unspecified"):
        return stated.lower()
    if "properties" in given or "required" in given or "additionalProperties" in given:
        return "object"
    if "items" in given or "prefixItems" in given:
        return "array"
    if any(word in given for word in ("minimum", "maximum", "multipleOf", "exclusiveMinimum")):
        return "number"
    return "string"


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return is_number(value)
        case _:
            return kind == "boolean" and isinstance(value, bool)


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Both combined: the narrower bound, all properties, all required ones."""
    both = one.keys() & other.keys()
    return {**one, **other, **{key: _merged_value(key, one[key], other[key]) for key in both}}


def _merged_value(key: str, left: Any, right: Any) -> Any:
    if key == "properties" and isinstance(left, Mapping) and isinstance(right, Mapping):
        both = {name: {"allOf": [left[name], right[name]]} for name in left if name in right}
        return {**left, **right, **both}
    if isinstance(left, list) and isinstance(right, list):
        if key == "required":
            return [*left, *(name for name in right if name not in left)]
        if key == "enum":
            return [choice for choice in left if choice in right] or right
    if is_number(left) and is_number(right):
        if key in _LOWER_BOUNDS:
            return max(left, right)
        if key in _UPPER_BOUNDS:
            return min(left, right)
    return right


def _list(given: Mapping[str, Any], key: str) -> list[Any]:
    value = given.get(key)
    return value if isinstance(value, list) else []


def _size(given: Mapping[str, Any], key: str, otherwise: int) -> int:
    value = given.get(key)
    if isinstance(value, str) and value.isdigit():
        value = int(value)  # Gemini's schemas write sizes as strings
    return max(0, min(int(value), ITEMS_MAX)) if is_number(value) else otherwise


def _text(given: Mapping[str, Any], text: str) -> str:
    text = _FORMATS.get(str(given.get("format", "")), text)
    shortest, longest = given.get("minLength"), given.get("maxLength")
    if is_number(shortest):
        text = text.ljust(min(int(shortest), LENGTH_MAX), "x")
    if is_number(longest) and "format" not in given:
        text = text[: max(0, int(longest))]
    return text


def _usual_text(key: str) -> str:
    plain = plain_key(key)
    return next((usual for names, _, usual in _KEYS if plain in names), "demo")


def _distinct(made: list[Any], schema: Mapping[str, Any]) -> list[Any]:
    """The values made distinct, as far as their schema allows it."""
    choices = [*_list(schema, "enum")]
    if choices:
        return choices[: len(made)]
    seen: list[Any] = []
    for number, value in enumerate(made):
        if value in seen and isinstance(value, str):
            value = f"{value}{number}"
        elif value in seen and is_number(value):
            value = value + number
        seen.append(value)
    return seen
