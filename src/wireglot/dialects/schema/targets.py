"""Every target's rules. A new target is one more table."""

from .gemini import GEMINI_JSON, GEMINI_OPENAPI
from .keywords import words
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
from .root import plain_root
from .values import Node, SchemaTarget, type_names
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
    """Every property is required; one that was optional may be null instead."""
    if "object" not in type_names(node):
        return node
    properties = node.get("properties", {})
    required = node.get("required", [])
    for name, schema in properties.items():
        if name not in required:
            place.note("required", "optional property made nullable and required", "properties", name)
            properties = {**properties, name: _nullable(schema)}
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
    """Of the lengths of arrays only a minimum of 0 or 1 is enforced."""
    if node.get("minItems", 0) > 1:
        place.tell("minItems", node["minItems"])
        node["minItems"] = 1
    return node


def _simple_pattern(node: Node, place: Place) -> Node:
    """Look-arounds, word boundaries and back references are refused."""
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
    """Several types may stand together when only a description stands beside them."""
    return node if node.keys() <= {"type", "title", "description"} else split_types(node, place)


def _no_empty_items(node: Node, place: Place) -> Node:
    if node.get("items") in (True, {}):
        del node["items"]
    return node


# github.com/MoonshotAI/walle docs/walle.md: every subschema declares `type`, inside anyOf, never beside it;
# beside anyOf only title and description; required names declared properties; enums hold strings, numbers or
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

RULES: dict[SchemaTarget, Rules] = {
    "gemini-json": GEMINI_JSON,
    "gemini-openapi": GEMINI_OPENAPI,
    "openai": OPENAI,
    "openai-strict": OPENAI_STRICT,
    "anthropic": ANTHROPIC,
    "anthropic-strict": ANTHROPIC_STRICT,
    "moonshot": MOONSHOT,
}
