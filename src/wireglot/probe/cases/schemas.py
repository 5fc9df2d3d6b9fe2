"""Schemas: for the answer, and for tools."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from wireglot.probe.cases.tools import arguments_of, forced
from wireglot.probe.question import Offer, ask
from wireglot.probe.reply import Broken, NotApplicable, ProbeReply
from wireglot.probe.talk import Talk, Theme
from wireglot_core.wire.json import BadJson, decode

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def misfit(value: Any, schema: dict[str, Any], root: dict[str, Any] | None = None, path: str = "$") -> str:
    """What does not fit, and where; "" if it fits."""
    root = schema if root is None else root
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix("#/$defs/")
        return misfit(value, root["$defs"][name], root, path)
    if "anyOf" in schema:
        found = [misfit(value, each, root, path) for each in schema["anyOf"]]
        return "" if "" in found else f"{path}: matches none of the alternatives ({found[0]})"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path}: {value!r} is not one of {schema['enum']!r}"
    kind = schema.get("type")
    if kind is not None and (
        not isinstance(value, _TYPES[kind]) or (kind != "boolean" and isinstance(value, bool))
    ):
        return f"{path}: expected {kind}, found {value!r}"
    if isinstance(value, dict):
        return _members(value, schema, root, path)
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            if found_in := misfit(each, schema["items"], root, f"{path}[{number}]"):
                return found_in
    return ""


def _members(value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str) -> str:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{path}: {name} is missing"
    for name, each in value.items():
        if name in properties:
            if found := misfit(each, properties[name], root, f"{path}.{name}"):
                return found
        elif schema.get("additionalProperties") is False:
            return f"{path}: {name} is not allowed"
    return ""


SCHEMAS: Final = Theme("schemas")
_PLAN: Final = "Plan a day in Paris. Answer with the plan as JSON."
_ENTER: Final = "Enter a plan for a day in Paris with the tool save_plan."


def _closed(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


FLAT: Final = _closed(
    {"city": {"type": "string"}, "hours": {"type": "integer"}, "indoors": {"type": "boolean"}}
)
NESTED: Final = _closed(
    {
        "city": {"type": "string"},
        "stops": {
            "type": "array",
            "items": _closed({"name": {"type": "string"}, "place": _closed({"street": {"type": "string"}})}),
        },
    }
)
ENUMS: Final = _closed(
    {
        "mood": {"type": "string", "enum": ["calm", "busy"]},
        "status": {"type": "string", "enum": ["draft", "final"]},
    }
)
REFS: Final = _closed(
    {"first": {"$ref": "#/$defs/stop"}, "last": {"$ref": "#/$defs/stop"}},
    **{"$defs": {"stop": _closed({"name": {"type": "string"}, "hour": {"type": "integer"}})}},
)
UNIONS: Final = _closed(
    {
        "budget": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "guide": {"anyOf": [_closed({"name": {"type": "string"}}), {"type": "string"}]},
    }
)


def _answer(talk: Talk, schema: dict[str, Any], *, stream: bool = False) -> None:
    if (stream or schema is not FLAT) and not _is_json(talk.optional(ask(_PLAN, schema=FLAT), "").text):
        raise NotApplicable("schemas have no effect: see schemas.output-flat")
    reply = talk.optional(ask(_PLAN, schema=schema, stream=stream), "output_formats", "schema")
    if stream:
        reply.require()
    found = _document(reply)
    if wrong := misfit(found, schema):
        raise Broken(f"the answer does not match the schema: {wrong}")


def _document(reply: ProbeReply) -> Any:
    try:
        return decode(reply.text.encode())
    except BadJson as bad:
        raise Broken(f"the answer is not JSON: {bad}: {reply.text[:120]!r}") from None


def _is_json(text: str) -> bool:
    try:
        decode(text.encode())
    except BadJson:
        return False
    return True


def _tool(talk: Talk, schema: dict[str, Any]) -> None:
    reply = forced(talk, ask(_ENTER, tools=(Offer("save_plan", "Saves a plan.", schema),)))
    if wrong := misfit(arguments_of(reply), schema):
        raise Broken(f"the arguments do not match the schema: {wrong}")


_SCHEMAS: Final = {"flat": FLAT, "nested": NESTED, "enums": ENUMS, "refs": REFS, "unions": UNIONS}
for _name, _schema in _SCHEMAS.items():
    SCHEMAS.case(f"output-{_name}")(partial(_answer, schema=_schema))
    SCHEMAS.case(f"tool-{_name}")(partial(_tool, schema=_schema))


@SCHEMAS.case("output-stream")
def output_stream(talk: Talk) -> None:
    _answer(talk, FLAT, stream=True)


@SCHEMAS.case("json")
def json(talk: Talk) -> None:
    reply = talk.optional(ask(_PLAN, json=True), "output_formats", "json")
    if not isinstance(_document(reply), dict | list):
        raise Broken(f"expected an object, found {reply.text[:120]!r}")


@SCHEMAS.case("unknown-keywords")
def unknown_keywords(talk: Talk) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Plan",
        "type": "object",
        "properties": {
            "city": {"type": "string", "title": "City", "default": "Paris", "examples": ["Rome"]},
            "day": {"type": "string", "format": "date"},
        },
        "required": ["city"],
    }
    reply = forced(talk, ask(_ENTER, tools=(Offer("save_plan", "Saves a plan.", schema),)))
    if "city" not in arguments_of(reply):
        raise Broken(f"the arguments have no city: {reply.calls[0].arguments[:120]!r}")
