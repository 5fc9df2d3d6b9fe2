"""The rules of every target. A new target is one more table."""

from typing import Any

from .keywords import infer_type, words
from .place import Place
from .rewrites import (
    any_type_or,
    close_false_items,
    close_objects,
    const_to_enum,
    drop_false_properties,
    drop_idle_keywords,
    drop_idle_values,
    every_type,
    integer_bounds,
    items_for_arrays,
    limit_enum,
    limit_formats,
    merge_all_of,
    one_of_to_any_of,
    required_exists,
    simplify_any_of,
    split_types,
    spread_into_any_of,
    tuple_to_items,
    type_from_keywords,
    type_from_values,
)
from .root import plain_root, plain_typed_root
from .values import Node, SchemaTarget, json_text, type_names
from .walk import Rules

# "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
OPENAI = Rules(
    rewrites=(plain_root("enum", "const", "not"), close_false_items),
    finish=(items_for_arrays,),
)


def _nullable(node: Node) -> Node:
    """The schema, or null."""
    kinds = type_names(node)
    if "$ref" in node:
        return {"anyOf": [node, {"type": "null"}]}
    if kinds:
        if "null" in kinds:
            return node
        node = {**node, "type": [*kinds, "null"]}
        return (
            {**node, "enum": [*node["enum"], None]} if "enum" in node and None not in node["enum"] else node
        )
    if any(type_names(branch) == ("null",) for branch in node["anyOf"]):
        return node
    return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}


def _all_required(node: Node, place: Place) -> Node:
    """Makes every property required; one that was optional may be null instead."""
    if "object" not in type_names(node):
        return node
    properties = dict(node.get("properties", {}))
    required = frozenset(node.get("required", ()))
    for name, schema in properties.items():
        if name not in required:
            place.note("required", "optional property made nullable and required", "properties", name)
            properties[name] = _nullable(schema)
    return {**node, "properties": properties, "required": list(properties)}


def _scalar_type(node: Node, place: Place) -> Node:
    place.note("type", "a type is needed; any string, number, boolean or null is allowed")
    return {"type": ["string", "number", "boolean", "null"], **node}


_STRICT_FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")

OPENAI_STRICT = Rules(
    refs="named",
    refs_if_cyclic="named",
    keeps=words(
        "$ref $defs type title description enum anyOf items minItems maxItems properties required "
        "additionalProperties pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"
    ),
    rewrites=(
        merge_all_of,
        plain_root("enum", "const", "not"),
        const_to_enum,
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        drop_idle_values,
        type_from_values,
        type_from_keywords,
        any_type_or(_scalar_type),
        tuple_to_items,
        drop_idle_keywords,
        items_for_arrays,
        limit_formats(*_STRICT_FORMATS),
        drop_false_properties,
        required_exists,
        close_objects,
    ),
    finish=(_all_required,),
)

ANTHROPIC = Rules(booleans=True, rewrites=(plain_root(),))

_HARD_PATTERNS = ("(?", r"\b", r"\B", *(rf"\{digit}" for digit in range(1, 10)))


def _few_items(node: Node, place: Place) -> Node:
    """For array lengths only a minimum of 0 or 1 is enforced."""
    if node.get("minItems", 0) > 1:
        place.tell("minItems", node["minItems"])
        node["minItems"] = 1
    return node


def _simple_pattern(node: Node, place: Place) -> Node:
    """Drops patterns with look-arounds, word boundaries and back references, which are refused."""
    if any(part in node.get("pattern", "") for part in _HARD_PATTERNS):
        place.drop(node, "pattern")
    return node


ANTHROPIC_STRICT = Rules(
    refs="named",
    refs_if_cyclic="inline",
    keeps=words(
        "$ref $defs type title description default enum const anyOf items minItems properties required "
        "additionalProperties pattern format"
    ),
    rewrites=(
        merge_all_of,
        plain_root(),
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        limit_enum("string", "integer", "number", "boolean", "null"),
        type_from_values,
        type_from_keywords,
        tuple_to_items,
        drop_idle_keywords,
        limit_formats(*_STRICT_FORMATS, "uri"),
        _few_items,
        _simple_pattern,
        drop_false_properties,
        required_exists,
        close_objects,
    ),
)


def _plain_type_list(node: Node, place: Place) -> Node:
    """Several types are allowed if only a description is next to them."""
    return node if node.keys() <= {"type", "title", "description"} else split_types(node, place)


def _no_empty_items(node: Node, place: Place) -> Node:
    if node.get("items") in (True, {}):
        del node["items"]
    return node


# github.com/MoonshotAI/walle docs/walle.md: every subschema declares `type`, inside anyOf, never next to it;
# next to anyOf only title and description; required names declared properties; enums hold strings, numbers or
# (testdata/walle_validator_cases of github.com/MoonshotAI/Kimi-Vendor-Verifier) booleans.
MOONSHOT = Rules(
    refs="inline",
    refs_if_cyclic="named",
    keeps=words(
        "$ref $defs type title description default enum anyOf items minItems maxItems uniqueItems properties "
        "required additionalProperties minProperties maxProperties minLength maxLength pattern format "
        "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf examples"
    ),
    rewrites=(
        merge_all_of,
        plain_root("enum", "const", "not"),
        const_to_enum,
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        drop_idle_values,
        type_from_values,
        type_from_keywords,
        drop_idle_keywords,
        limit_enum("string", "integer", "number", "boolean"),
        any_type_or(every_type),
        _plain_type_list,
        spread_into_any_of(frozenset(("title", "description"))),
        tuple_to_items,
        _no_empty_items,
        drop_false_properties,
        required_exists,
    ),
)

# `api.ToolFunctionParameters` and `api.ToolProperty` of Ollama (read 2026-08-21): the server decodes a tool
# into these fields and silently drops all others, including a `$ref`. Output schemas are accepted unchanged.
OLLAMA = Rules(
    refs="inline",
    refs_if_cyclic="inline",
    keeps=words("type description enum anyOf items properties required"),
    rewrites=(
        merge_all_of,
        plain_root("enum", "const", "not"),
        const_to_enum,
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        drop_idle_values,
        type_from_values,
        type_from_keywords,
        drop_idle_keywords,
        tuple_to_items,
        drop_false_properties,
        required_exists,
    ),
)

# Gemini: raw JSON Schema with few supported keywords, and the older Schema message.


def _open_cycles(node: Node, place: Place) -> Node:
    """Recursion is only allowed through optional properties (gemini.md, "Schema dialects")."""
    refs = place.walk.refs
    if "required" not in node or not refs.is_cyclic(place.home):
        return node
    known = node.get("properties", {})
    looping = {name: None for name in node["required"] if refs.leads_into_cycle(known.get(name), place.spend)}
    for name in looping:
        place.note("required", "a recursive property cannot be required", "properties", name)
    node["required"] = [name for name in node["required"] if name not in looping]
    return node


GEMINI_JSON = Rules(
    refs="named",
    refs_if_cyclic="named",
    object_root=False,
    keeps=words(
        "$ref $defs type format title description enum items prefixItems minItems maxItems minimum maximum "
        "anyOf properties additionalProperties required propertyOrdering"
    ),
    rewrites=(
        merge_all_of,
        const_to_enum,
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        drop_idle_values,
        type_from_values,
        drop_idle_keywords,
        limit_enum("string", "integer", "number"),
        integer_bounds,
        drop_false_properties,
        _open_cycles,
        required_exists,
    ),
)


def _null_to_nullable(node: Node, place: Place) -> Node:
    """null as a type, a branch or an enum value becomes the nullable flag."""
    kinds = type_names(node)
    if "enum" in node and None in node["enum"] and len(node["enum"]) > 1:
        node["enum"] = [value for value in node["enum"] if value is not None]
        place.nullable = not kinds or "null" in kinds
    if "null" in kinds and len(kinds) > 1:
        place.nullable = place.nullable or "enum" not in node
        rest = [kind for kind in kinds if kind != "null"]
        node["type"] = rest[0] if len(rest) == 1 else rest
    if "anyOf" in node:
        node["anyOf"] = _branches_without_null(node, place)
    return node


def _branches_without_null(node: Node, place: Place) -> list[Any]:
    branches: list[Any] = node["anyOf"]
    rest = [branch for branch in branches if not _only_null(branch)]
    if not rest or len(rest) == len(branches):
        return branches
    if not type_names(node):  # a type next to the branches itself defines whether null is allowed
        place.nullable = True
    return rest


def _only_null(branch: Any) -> bool:
    if not isinstance(branch, dict):
        return False
    kind = branch.get("type")
    return (
        (isinstance(kind, str) and kind.lower() == "null")
        or branch.get("enum") == [None]
        or ("const" in branch and branch["const"] is None)
    )


def _enum_of_strings(node: Node, place: Place) -> Node:
    """Values of an enum are strings here; numbers are converted."""
    values = node.get("enum", [])
    if not values or all(isinstance(value, bool) or value is None for value in values):
        return node  # handled by limit_enum
    if any(isinstance(value, dict | list | bool) for value in values):
        place.drop(node, "enum")
        return node
    if not all(isinstance(value, str) for value in values):
        place.note("enum", "numbers are sent as strings")
        node["type"] = "string"
        if "default" in node and not isinstance(node["default"], str):
            node["default"] = json_text(node["default"])
    node["enum"] = [value if isinstance(value, str) else json_text(value) for value in values]
    return _without_empty_value(node, place)


def _without_empty_value(node: Node, place: Place) -> Node:
    if "" in node["enum"]:
        place.note("enum", "the empty string cannot be a value")
        node["enum"] = [value for value in node["enum"] if value]
        if not node["enum"]:
            del node["enum"]
    return node


def _string_or_object(node: Node, place: Place) -> Node:
    if kind := infer_type(node):
        return {"type": kind, **node}
    if place.is_root:
        return {"type": "object", **node}
    place.note("type", "a type is needed; sent as string")
    return {"type": "string", **node}


def _no_null_type(node: Node, place: Place) -> Node:
    if node.get("type") == "null":
        place.note("type", "null alone is no type; sent as a nullable string")
        place.nullable = True
        node["type"] = "string"
    return node


def _example(node: Node, place: Place) -> Node:
    """Only one example is supported; others are reported."""
    if "example" not in node and len(node.get("examples", ())) == 1:
        node["example"] = node.pop("examples")[0]
    return node


def _additional(node: Node, place: Place) -> Node:
    if node.get("additionalProperties") is False:
        place.note("additionalProperties", "not supported; dropped")
        del node["additionalProperties"]
    return node


def _ordering_exists(node: Node, place: Place) -> Node:
    if "propertyOrdering" in node:
        known = node.get("properties", {})
        node["propertyOrdering"] = [name for name in node["propertyOrdering"] if name in known]
        if not node["propertyOrdering"]:
            del node["propertyOrdering"]
    return node


def _spelled(node: Node, place: Place) -> Node:
    """Types in capitals, as in the Schema message's enum, and the nullable flag."""
    if "type" in node:
        node["type"] = node["type"].upper()
    if place.nullable and "anyOf" not in node:
        node["nullable"] = True
    return node


def _alone(node: Node, place: Place) -> Node:
    """Vertex: "When using any_of, it must be the only field set". All other keywords move into the
    branches."""
    if "anyOf" not in node:
        return node
    text = place.describe(node).get("description")
    branches = [inner for branch in node["anyOf"] for inner in branch.get("anyOf", [branch])]
    if text:
        place.spend(len(text) * len(branches))
        branches = [_described(branch, text) for branch in branches]
    if place.nullable:
        branches = [{**branch, "nullable": True} for branch in branches]
    return {"anyOf": branches}


def _described(branch: Node, text: str) -> Node:
    own = branch.get("description")
    return {**branch, "description": f"{text}\n{own}" if own else text}


GEMINI_OPENAPI = Rules(
    refs="inline",
    refs_if_cyclic="inline",
    object_root=False,
    keeps=words(
        "type format title description nullable enum items minItems maxItems properties required "
        "minProperties maxProperties minLength maxLength pattern minimum maximum anyOf default example "
        "propertyOrdering"
    ),
    rewrites=(
        merge_all_of,
        const_to_enum,
        plain_typed_root,
        one_of_to_any_of,
        simplify_any_of,
        close_false_items,
        drop_idle_values,
        type_from_values,
        _null_to_nullable,
        simplify_any_of,
        _null_to_nullable,
        split_types,
        spread_into_any_of(frozenset()),
        _enum_of_strings,
        limit_enum("string"),
        any_type_or(_string_or_object),
        _no_null_type,
        tuple_to_items,
        drop_idle_keywords,
        items_for_arrays,
        integer_bounds,
        limit_formats("enum", "date-time", "float", "double", "int32", "int64"),
        drop_false_properties,
        required_exists,
        _ordering_exists,
        _example,
        _additional,
    ),
    finish=(_spelled, _alone),
)


RULES: dict[SchemaTarget, Rules] = {
    "gemini-json": GEMINI_JSON,
    "gemini-openapi": GEMINI_OPENAPI,
    "openai": OPENAI,
    "openai-strict": OPENAI_STRICT,
    "anthropic": ANTHROPIC,
    "anthropic-strict": ANTHROPIC_STRICT,
    "moonshot": MOONSHOT,
    "ollama": OLLAMA,
}
