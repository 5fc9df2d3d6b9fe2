"""Parses generateContent requests."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, TypeGuard

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.dialects.gemini import names
from wireglot_core.dialects.gemini.generation import (
    GENERATION,
    REQUEST_FIELDS,
    is_default_modality,
    parse_output,
    parse_thinking,
)
from wireglot_core.dialects.gemini.names import OWN
from wireglot_core.dialects.gemini.parts import Mark, PartParser
from wireglot_core.dialects.gemini.tools import Layout, parse_choice, parse_tools
from wireglot_core.dialects.turns import read_turns
from wireglot_core.ir.content import APART, Extra, Message, Part, Reasoning, Role, Text
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import AnyTool, Request, Sampling, Thinking, ToolChoice

_TAKEN = frozenset(
    {
        "model",
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "labels",
        "serviceTier",
    }
)
_ROLES: dict[str, Role] = {
    "user": "user",
    "model": "assistant",
    "function": "user",
    "tool": "user",
    "assistant": "assistant",
    "system": "system",
}
_PARTS = frozenset({"parts"})
_USUAL = {"user": "user", "assistant": "model"}
TIERS = {"unspecified": "auto", "flex": "flex", "standard": "standard", "priority": "priority"}


_MAX_PENDING: Final = 16
"""Calls without a result, up to which a conversation is cached: with more, the state that waits for results
is larger than the new turns."""


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = names.REQUEST.read(body, "$", ClientFault)
    form: dict[str, Any] = {}
    kept: dict[str, Any] = {
        key: item for key, item in fields.value.items() if key not in _TAKEN or item is None
    }
    messages = _parse_messages(fields, context, form)
    tools, layout = _parse_tools(fields, context)
    if fields.value.get("tools") is not None and layout is not None:
        form["tools"] = layout
    if type(fields.value.get("tools")) is dict:
        form["tools_shape"] = "single"
    choice = parse_tool_config(fields, kept)
    settings = _parse_generation(fields, kept, form)
    return Request(
        _parse_model(fields, form),
        messages,
        tools,
        choice,
        metadata=_parse_labels(fields, kept),
        service_tier=_parse_tier(fields, form),
        extra=Extra(OWN, kept, form),
        **settings,
    )


def _parse_tools(fields: Fields, context: Context) -> tuple[tuple[AnyTool, ...], Layout | None]:
    given = fields.value.get("tools")
    known = context.remembered(given, OWN, lambda: parse_tools(fields))
    context.share(known[0], given)
    return known


def _parse_model(fields: Fields, form: dict[str, Any]) -> str:
    """The path contains the model; some clients repeat it in the body."""
    stated = fields.text_or("model")
    if stated:
        form["model"] = stated
    return bare_model(stated)


def bare_model(name: str) -> str:
    return name.removeprefix("models/")


def _parse_messages(fields: Fields, context: Context, form: dict[str, Any]) -> tuple[Message, ...]:
    parser = PartParser(context, ClientFault)
    messages: list[Message] = []
    if fields.value.get("systemInstruction") is not None:
        messages.append(_parse_system(fields, parser))
    contents = fields.value.get("contents")
    if type(contents) is str:
        contents = [contents]
    elif type(contents) is dict:
        form["contents"] = "single"
        contents = [contents]
    if type(contents) is not list:
        raise fields.wrong("contents", "an array of contents")
    if not contents:
        raise fields.fault("expected at least one content", "$.contents")
    read_turns(_Turns(messages, parser), contents, context, OWN)
    return tuple(messages)


class _Turns:
    """Parses contents: results are matched with the pending calls."""

    def __init__(self, messages: list[Message], parser: PartParser) -> None:
        self.messages = messages
        self._parser = parser
        self._last: Role = "system"
        self._alone = True
        """Whether the last content was parsed without changing earlier messages."""

    def read_message(self, item: Any, index: int) -> None:
        read = message = _parse_content(item, f"$.contents[{index}]", self._parser, self._last)
        if message.role == self._last:
            message = _reclaimed(self.messages, read)
        self._alone = message is read
        self._last = message.role
        self.messages.append(message)

    def state(self, item: Any) -> Hashable:
        if len(self._parser.results.pending) > _MAX_PENDING:
            return None
        return self._last, self._parser.state()

    def mark(self) -> tuple[Role, Mark] | None:
        return (self._last, self._parser.mark()) if self._alone else None

    def go_on(self, mark: tuple[Role, Mark]) -> None:
        self._last, self._alone = mark[0], True
        self._parser.go_on(mark[1])

    snapshot, restore = mark, go_on


def _parse_system(fields: Fields, parser: PartParser) -> Message:
    value = fields.value["systemInstruction"]
    path = "$.systemInstruction"
    if type(value) is str:
        return Message("system", (Text(value),))
    if type(value) is list:
        raise fields.wrong("systemInstruction", "a content object")
    content = names.CONTENT.read(value, path, ClientFault)
    form: dict[str, Any] = {"shape": "instruction"}
    if "parts" not in content.value and "text" in content.value:
        part = parser.parse(value, path)
        return Message("system", (part,), extra=Extra(OWN, {}, {"shape": "part"}))
    if content.value.get("role") is not None:
        form["role"] = content.text("role")
    parts = _parse_parts(content, parser, form)
    return Message("system", parts, extra=content.rest(names.CONTENT.known, OWN, form))


def _parse_content(value: Any, path: str, parser: PartParser, last: Role) -> Message:
    if type(value) is str:
        return Message("user", (Text(value),))
    content = names.CONTENT.read(value, path, ClientFault)
    form: dict[str, Any] = {}
    stated = content.value.get("role")
    if stated is None or stated == "":
        role: Role = "user"
        form["role"] = "absent"
    else:
        role = _ROLES.get(content.text("role").lower(), "user")
        if stated != _USUAL.get(role):
            form["role"] = stated
    if role == "assistant" and last != "assistant":
        parser.results.pending.clear()  # only calls of the turn before are pending; older ones were given up
    parts = _parse_parts(content, parser, form)
    if not parts:
        form["parts"] = "empty" if "parts" in content.value else "absent"
    if role == last:
        form[APART] = True
    # An unknown role is kept as information: other dialects report it as a loss.
    known = names.CONTENT.known if stated is None or str(stated).lower() in _ROLES or not stated else _PARTS
    return Message(role, parts, extra=content.rest(known, OWN, form))


def _parse_parts(content: Fields, parser: PartParser, form: dict[str, Any]) -> tuple[Part, ...]:
    given = content.value.get("parts")
    if type(given) is list:
        parts = given
    elif given is None:
        parts = []
    elif type(given) in (dict, str):
        parts = [given]
        form["parts"] = "single"
    else:
        raise content.fault(f"expected an array of parts, got {describe(given)}", f"{content.path}.parts")
    path = f"{content.path}.parts"
    return _rejoined([parser.parse(part, f"{path}[{index}]") for index, part in enumerate(parts)])


def _rejoined(parts: list[Part]) -> tuple[Part, ...]:
    """Joins signed prose of another provider.

    Streamed to a Gemini client, its text is sent in unsigned pieces, followed by its signature, known last,
    in an empty part. The minter accepts the signature only with the whole text. Gemini's own parts stay
    unchanged.
    """
    joined: list[Part] = []
    for part in parts:
        if (type(part) is Reasoning or type(part) is Text) and not part.text and _is_carried(part):
            texts: list[str] = []
            while joined and type(before := joined[-1]) is type(part) and _is_piece(before):
                texts.append(before.text)
                joined.pop()
            part = msgspec.structs.replace(part, text="".join(reversed(texts)))
        joined.append(part)
    return tuple(joined)


def _reclaimed(messages: list[Message], message: Message) -> Message:
    """The same across contents: Google's SDK keeps every chunk of a stream as a separate content."""
    first = message.content[0] if message.content else None
    if not (type(first) is Reasoning or type(first) is Text) or first.text or not _is_carried(first):
        return message
    texts: list[str] = []
    while messages and messages[-1].role == message.role:
        content = list(messages[-1].content)
        while content and type(content[-1]) is type(first) and _is_piece(piece := content[-1]):
            texts.append(piece.text)
            content.pop()
        if content:
            messages[-1] = msgspec.structs.replace(messages[-1], content=tuple(content))
            break
        messages.pop()
    whole = msgspec.structs.replace(first, text="".join(reversed(texts)))
    return msgspec.structs.replace(message, content=(whole, *message.content[1:]))


def _is_carried(part: Reasoning | Text) -> bool:
    redacted = type(part) is Reasoning and part.redacted
    return part.signature is not None and part.signature.origin.dialect != OWN and not redacted


def _is_piece(part: Part) -> TypeGuard[Reasoning | Text]:
    return (type(part) is Reasoning or type(part) is Text) and part.signature is None


def parse_tool_config(fields: Fields, kept: dict[str, Any]) -> ToolChoice | None:
    if fields.value.get("toolConfig") is None:
        return None
    config = names.TOOL_CONFIG.child(fields, "toolConfig")
    rest = {key: item for key, item in config.value.items() if key != "functionCallingConfig" or item is None}
    choice = None
    if config.value.get("functionCallingConfig") is not None:
        calling = names.CALLING_CONFIG.child(config, "functionCallingConfig")
        choice = parse_choice(calling)
        within = {
            key: item
            for key, item in calling.value.items()
            if key not in ("mode", "allowedFunctionNames") or item is None or item == []
        }
        kept.update({names.CALLING_FIELD + key: item for key, item in within.items()})
        if not within and choice is None:
            rest["functionCallingConfig"] = {}
    kept.update({names.TOOL_CONFIG_FIELD + key: item for key, item in rest.items()})
    if not config.value:
        kept["toolConfig"] = {}
    return choice


def _parse_generation(fields: Fields, kept: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    """The settings in `generationConfig`, under their names in `Request`."""
    if fields.value.get("generationConfig") is None:
        return {"sampling": Sampling(), "thinking": Thinking()}
    config = GENERATION.child(fields, "generationConfig")
    output, taken = parse_output(config)
    known = {"thinkingConfig", *REQUEST_FIELDS.known, *taken}
    settings = REQUEST_FIELDS.read(config, known)
    # Fields the IR has no name for, and known ones without information.
    rest = {key: item for key, item in config.value.items() if key not in known or item is None}
    if is_default_modality(rest.get("responseModalities")):
        form["responseModalities"] = rest.pop("responseModalities")
    kept.update({names.GENERATION_FIELD + key: item for key, item in rest.items()})
    if not config.value:
        kept["generationConfig"] = {}
    return {**settings, "thinking": parse_thinking(config), "output": output}


def _parse_labels(fields: Fields, kept: dict[str, Any]) -> dict[str, str]:
    labels = fields.dict_or_none("labels")
    if labels is None:
        return {}
    for key, value in labels.items():
        if type(value) is not str:
            raise ClientFault(f"expected a string, got {describe(value)}", f"$.labels.{key}")
    if not labels:
        kept["labels"] = labels
    return labels


def _parse_tier(fields: Fields, form: dict[str, Any]) -> str:
    stated = fields.text_or("serviceTier")
    if not stated:
        return ""
    form["serviceTier"] = stated
    return read_tier(stated)


def read_tier(stated: str) -> str:
    """The neutral name of a service tier; an unknown one is returned unchanged."""
    plain = stated.lower().removeprefix("service_tier_")
    return TIERS.get(plain, stated)
