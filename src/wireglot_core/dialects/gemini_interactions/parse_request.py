"""Parses a client's request: `POST /v1/interactions`."""

from __future__ import annotations

from typing import Any, Final

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.dialects.gemini_interactions.content import is_content, parse_content
from wireglot_core.dialects.gemini_interactions.names import OWN
from wireglot_core.dialects.gemini_interactions.settings import (
    GENERATION,
    GENERATION_FIELDS,
    REQUEST_FIELDS,
    parse_output,
    parse_thinking,
)
from wireglot_core.dialects.gemini_interactions.steps import StepReader
from wireglot_core.dialects.gemini_interactions.tools import parse_choice, parse_tools
from wireglot_core.dialects.turns import read_turns
from wireglot_core.ir.content import Extra, Message, Text
from wireglot_core.ir.request import Request, Sampling, Thinking

_KNOWN: Final = REQUEST_FIELDS.known.union(
    {"model", "input", "system_instruction", "tools", "labels", GENERATION}
)
_OPERATIONAL: Final = ("store", "background")
"""Fields about how the exchange runs, without content. `background: true` does have a meaning."""
_GOES_ON: Final = ("previous_interaction_id", "continuation_token")
"""With any of these, a request needs no input."""
_INPUT: Final = "a string, content or an array of content or of steps"


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    form: dict[str, Any] = {}
    known = set(_KNOWN)
    messages: list[Message] = []
    if body.get("system_instruction") is not None:
        messages.append(Message("system", (Text(fields.text("system_instruction")),)))
    _read_input(fields, messages, form, context)

    listed = fields.array_or_empty("tools") if "tools" in body else []
    tools = context.remembered(listed, OWN, lambda: context.share(parse_tools(listed), listed))
    if body.get("tools") == []:
        form["tools"] = []
    settings = REQUEST_FIELDS.read(fields, known)
    kept, choice = _read_generation(fields, settings, form)
    output = parse_output(fields, known)
    labels = _read_labels(fields, form)
    for key in _OPERATIONAL:
        if type(body.get(key)) is bool and not (key == "background" and body[key]):
            form[key] = body[key]
            known.add(key)
    for key in ("model", "input"):
        if key not in body:
            form.setdefault("without", []).append(key)
    rest = {key: item for key, item in body.items() if key not in known or item is None}
    return Request(
        messages=tuple(messages),
        tools=tools,
        tool_choice=choice,
        output=output,
        metadata=labels,
        extra=Extra(OWN, {**rest, **kept}, form),
        **settings,
    )


def _read_input(fields: Fields, messages: list[Message], form: dict[str, Any], context: Context) -> None:
    given = fields.value.get("input")
    if given is None:
        if not any(fields.value.get(key) for key in _GOES_ON):
            raise fields.wrong("input", _INPUT)
        form["input"] = "absent"
    elif type(given) is str:
        form["input"] = "string"
        messages.append(Message("user", (Text(given),)))
    elif type(given) is dict and is_content(given):
        form["input"] = "content"
        messages.append(Message("user", (parse_content(fields.object("input")),)))
    elif type(given) is dict:
        form["input"] = "step"
        _read_steps([given], messages, context)
    elif type(given) is not list:
        raise fields.wrong("input", _INPUT)
    elif not given:
        raise fields.fault("expected at least one step", "$.input")
    elif is_content(given[0]) or type(given[0]) is str:
        form["input"] = "contents"
        messages.append(Message("user", tuple(_contents(given))))
    else:
        _read_steps(given, messages, context)


def _contents(given: list[Any]) -> list[Any]:
    parts = []
    for index, value in enumerate(given):
        item = Fields(value, f"$.input[{index}]")
        if not is_content(value):
            item.text("type")
            raise item.fault("expected content: content and steps cannot be mixed", item.path)
        parts.append(parse_content(item))
    return parts


def _read_steps(given: list[Any], messages: list[Message], context: Context) -> None:
    reader = StepReader(context)
    read_turns(reader, given, context, OWN)
    messages += reader.messages


def _read_generation(
    fields: Fields, settings: dict[str, Any], form: dict[str, Any]
) -> tuple[dict[str, Any], Any]:
    """Adds the settings of the config. Returns its unknown fields by path, and the choice among tools."""
    settings["thinking"] = Thinking()
    settings["sampling"] = Sampling()
    config = fields.object_or_none(GENERATION)
    if config is None:
        return {}, None
    known = {"tool_choice", *GENERATION_FIELDS.known}
    settings.update(GENERATION_FIELDS.read(config, known))
    settings["thinking"] = parse_thinking(config, known)
    rest = {key: item for key, item in config.value.items() if key not in known or item is None}
    if not config.value:
        form[GENERATION] = "empty"
    return {f"{GENERATION}.{key}": item for key, item in rest.items()}, parse_choice(config)


def _read_labels(fields: Fields, form: dict[str, Any]) -> dict[str, str]:
    labels = fields.dict_or_none("labels") or {}
    for key, value in labels.items():
        if type(value) is not str:
            raise fields.fault(f"expected a string, got {describe(value)}", f"$.labels.{key}")
    if fields.value.get("labels") == {}:
        form["labels"] = "empty"
    return labels
