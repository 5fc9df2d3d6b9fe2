"""For each JSON Schema keyword: its value, what it applies to, when it has no effect, and the type that a
schema implies when it names none."""

from typing import Any

from .values import TYPES, Node, common_type, json_type, type_names


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCHEMA_KEYWORDS = words(
    "items additionalProperties additionalItems not if then else contains propertyNames unevaluatedItems "
    "unevaluatedProperties contentSchema"
)
LIST_KEYWORDS = words("anyOf oneOf allOf prefixItems")
DEFINITION_KEYWORDS = frozenset(("$defs", "definitions"))
MAP_KEYWORDS = words("properties patternProperties dependentSchemas") | DEFINITION_KEYWORDS
CHILD_KEYWORDS = SCHEMA_KEYWORDS | LIST_KEYWORDS | MAP_KEYWORDS

COUNT_KEYWORDS = words(
    "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains"
)
NUMBER_KEYWORDS = words("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf")
STRING_KEYWORDS = words(
    "$ref $schema $id $anchor $comment title description format pattern contentEncoding contentMediaType"
)
FLAG_KEYWORDS = words("uniqueItems nullable deprecated readOnly writeOnly")

# These do not restrict values, so dropping them is no loss.
SILENT = words(
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $comment $vocabulary $defs definitions"
)
ANNOTATIONS = words(
    "title description default example examples deprecated readOnly writeOnly propertyOrdering"
)
# Added to the description if the target does not support them. Unknown keywords (x-...) are reported as lost
# but not described: the model could do nothing with them.
TELLING = (
    (SCHEMA_KEYWORDS | LIST_KEYWORDS | MAP_KEYWORDS | COUNT_KEYWORDS | NUMBER_KEYWORDS | FLAG_KEYWORDS)
    | words(
        "const enum type format pattern contentEncoding contentMediaType default example examples "
        "dependentRequired dependencies required $dynamicRef $recursiveRef"
    )
) - DEFINITION_KEYWORDS

# Keywords that only narrow the values of a type, or describe them: as text in a description they have the
# same effect on a model whose arguments are not checked.
HINTS = (COUNT_KEYWORDS | NUMBER_KEYWORDS | ANNOTATIONS) | words(
    "format pattern contentEncoding contentMediaType uniqueItems"
)

_APPLIES: dict[str, str] = {
    "object": "properties patternProperties additionalProperties required minProperties maxProperties "
    "propertyNames dependentRequired dependentSchemas dependencies unevaluatedProperties propertyOrdering",
    "array": "items prefixItems additionalItems minItems maxItems uniqueItems contains minContains "
    "maxContains unevaluatedItems",
    "string": "minLength maxLength pattern contentEncoding contentMediaType contentSchema",
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
}
APPLIES_TO: dict[str, str] = {key: kind for kind, keys in _APPLIES.items() for key in keys.split()}

_VACUOUS: dict[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "deprecated": (False,),
    "readOnly": (False,),
    "writeOnly": (False,),
    "nullable": (False,),
    "minLength": (0,),
    "minItems": (0,),
    "minProperties": (0,),
    "items": ({},),
    "additionalItems": (True, {}),
    "additionalProperties": (True, {}),
    "unevaluatedItems": (True, {}),
    "unevaluatedProperties": (True, {}),
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "dependencies": ({},),
    "propertyNames": (True, {}, {"type": "string"}),
    "required": ([],),
    "examples": ([],),
    "minContains": (1,),
}


def is_vacuous(keyword: str, value: Any) -> bool:
    """True if leaving the keyword out is equivalent."""
    return any(type(value) is type(idle) and value == idle for idle in _VACUOUS.get(keyword, ()))


def concerns(keyword: str, kinds: tuple[str, ...]) -> bool:
    """True if the keyword can affect a value of one of these types."""
    kind = APPLIES_TO.get(keyword)
    return kind is None or kind in kinds or (kind == "number" and "integer" in kinds)


_GUESS_DEPTH = 8  # how far into nested anyOf/oneOf/allOf a guess is worth making


def infer_type(node: Any, look: int = _GUESS_DEPTH) -> str | None:
    """The single JSON type of the values that `node` describes (not counting null), or None if there are
    several."""
    if not isinstance(node, dict) or look == 0:
        return None
    named = [name for name in type_names(node) if name in TYPES]
    if named:
        return _apart_from_null(named)
    return _from_values(node) or _from_keywords(node) or _from_branches(node, look)


def _apart_from_null(kinds: list[str]) -> str | None:
    return common_type([kind for kind in kinds if kind != "null"] or ["null"])


def value_types(node: Node) -> list[str]:
    """The types of a schema's const or enum values, in order of appearance."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(values, list):
        return []
    return list(dict.fromkeys(json_type(value) for value in values))


def _from_values(node: Node) -> str | None:
    kinds = value_types(node)
    return _apart_from_null(kinds) if kinds else None


def _from_keywords(node: Node) -> str | None:
    return common_type([APPLIES_TO[key] for key in node if key in APPLIES_TO])


def _from_branches(node: Node, look: int) -> str | None:
    for keyword in ("anyOf", "oneOf"):
        branches = node.get(keyword)
        if isinstance(branches, list) and branches:
            kinds = [infer_type(branch, look - 1) for branch in branches]
            known = [kind for kind in kinds if kind is not None]
            return _apart_from_null(known) if len(known) == len(kinds) else None
    members = node.get("allOf")
    kinds = [infer_type(member, look - 1) for member in members] if isinstance(members, list) else []
    return common_type([kind for kind in kinds if kind])
