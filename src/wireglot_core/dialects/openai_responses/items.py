"""Items: the elements of an input or output list, each with its parts of the IR.

Message items contain content parts; reasoning, calls and results are separate items; everything else stays
verbatim as a `Foreign`.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.envelope import Holder
from wireglot_core.dialects.fields import Fields
from wireglot_core.dialects.openai_responses.output import ITEM, joined
from wireglot_core.dialects.openai_responses.parts import parse_part, plain_text
from wireglot_core.dialects.openai_responses.spelling import NAME, keep
from wireglot_core.dialects.unknown_fields import split_blank
from wireglot_core.ir.content import (
    PHASE,
    Extra,
    Foreign,
    Media,
    Origin,
    Part,
    Reasoning,
    ResultPart,
    Role,
    Signature,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import ClientFault, UpstreamFault
from wireglot_core.wire.json import encode_text


class Carried(msgspec.Struct, frozen=True):
    """A reasoning item without content: it only returned the signature of a neighbouring part."""

    signature: Signature
    holder: Holder


class MessageItem(msgspec.Struct, frozen=True):
    """A message item. `form` and `fields` are the contents of its `Extra`."""

    role: Role
    parts: tuple[Text | Media | Foreign, ...]
    form: dict[str, Any]
    fields: dict[str, Any]


_MESSAGE_KEYS = frozenset({"type", "id", "role", "status", "phase", "content"})
_REASONING_KEYS = frozenset({"type", "id", "status", "summary", "content", "encrypted_content"})
_CALL_KEYS = frozenset({"type", "id", "status", "call_id", "name", "namespace", "arguments"})
_CUSTOM_KEYS = frozenset({"type", "id", "status", "call_id", "name", "namespace", "input"})
_RESULT_KEYS = frozenset({"type", "id", "status", "call_id", "name", "output"})
_IMAGE_KEYS = frozenset({"type", "id", "status", "result", "output_format"})

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_FOREIGN_ROLES: dict[str, Role] = {
    "additional_tools": "system",
    "configuration_update": "system",
    "compaction_trigger": "user",
    "mcp_approval_response": "user",
    "program_output": "assistant",
}
"""The role for items that the IR has no part for; `_call_output` items are the client's."""

ITEM_TYPES = frozenset(
    {
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_trigger",
        "computer_call",
        "computer_call_output",
        "configuration_update",
        "file_search_call",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)


def item_form(item: Fields) -> dict[str, Any]:
    """Id and status: they belong to OpenAI's store and are spelling for other dialects."""
    form: dict[str, Any] = {}
    identifier, status = item.value.get("id"), item.value.get("status")
    if identifier is not None:
        form["id"] = identifier
    if status is not None:
        form["status"] = status
    return form


def light_form(value: dict[str, Any]) -> dict[str, Any]:
    """The fields of the form that are final when a stream announces the item."""
    return {key: value[key] for key in ("id", "phase") if value.get(key) is not None}


def identity(value: dict[str, Any]) -> set[str]:
    return {value[key] for key in ("id", "call_id") if type(value.get(key)) is str and value[key]}


def phase_of(value: dict[str, Any], origin: Origin) -> Signature | None:
    """The phase of a message item, as the state of its first text: it must be returned to its minter."""
    phase = value.get("phase")
    return Signature(phase, origin, PHASE) if type(phase) is str and phase else None


def with_phase(
    parts: tuple[Text | Media | Foreign, ...], phase: Signature | None
) -> tuple[Text | Media | Foreign, ...]:
    if phase is None:
        return parts
    for number, part in enumerate(parts):
        if isinstance(part, Text):
            return (*parts[:number], replace(part, signature=phase), *parts[number + 1 :])
    return parts


def parse_message(item: Fields, origin: Origin) -> MessageItem:
    raw_role = item.text("role")
    role = _ROLES.get(raw_role)
    if role is None:
        raise item.wrong("role", "user, assistant, system or developer")
    form = {"item": "message", **item_form(item)}
    if role == "system":
        form["role"] = raw_role
    if "type" not in item.value:
        form["without"] = ["type"]
    phase = item.value.get("phase")
    if phase is not None:
        form["phase"] = phase
    content = item.value.get("content")
    usual = "output_text" if role == "assistant" else "input_text"
    parts: tuple[Text | Media | Foreign, ...]
    if type(content) is str:
        form["string"] = True
        parts = (Text(content),)
    elif type(content) is list:
        read: list[Text | Media | Foreign] = []
        for number, part in enumerate(content):
            plain = plain_text(part) if role != "assistant" else None
            read.append(
                plain or parse_part(Fields(part, f"{item.path}.content[{number}]", item.fault), usual)
            )
        parts = tuple(read)
    elif content is None and "content" in item.value:
        parts = ()
    else:
        raise item.wrong("content", "a string or an array of content parts")
    rest = item.rest(_MESSAGE_KEYS, NAME)
    if phase is not None:
        parts = with_phase(parts, phase_of(item.value, origin))
    return MessageItem(role, parts, form, rest.fields if rest is not None else {})


def message_parts(message: MessageItem, number: int, item: dict[str, Any]) -> list[Part]:
    """The parts, each with the form of its item; unknown fields of the item go with the first."""
    foreign = [part for part in message.parts if isinstance(part, Foreign)]
    if foreign and len(foreign) == len(message.parts):
        return [Foreign(NAME, foreign[0].type, item)]
    telling, blank = split_blank(message.fields)
    form: dict[str, Any] = {**message.form, "number": number}
    if blank:
        form["blank"] = blank
    parts: list[Part] = []
    for part in message.parts or (Text("", extra=Extra(NAME, form={"empty": True})),):
        if isinstance(part, Foreign):
            # As an item its type could be a known one, whose required fields this one lacks.
            shell = {"type": "message", "role": "assistant", "content": [part.value]}
            parts.append(Foreign(NAME, part.type, shell))
            continue
        if isinstance(part, Media):
            parts.append(part)
            continue
        own = part.extra
        fields = dict(own.fields) if own is not None else {}
        if telling:
            fields.update({ITEM + key: value for key, value in telling.items()})
            telling = {}
        spelled = {**(own.form if own is not None else {}), "item": form}
        parts.append(replace(part, extra=Extra(NAME, fields, spelled)))
    return parts


def parse_reasoning(item: Fields, origin: Origin, context: Context, source: str = "") -> Reasoning | Carried:
    """`source`: which of the two lists was shown already (in a stream); otherwise the summary has
    priority."""
    form: dict[str, Any] = item_form(item)
    identifier = item.text_or("id")
    summary, content = item.value.get("summary"), item.value.get("content")
    if not source:
        source = "content" if not joined(summary) and joined(content) else "summary"
    shown, other, other_key = (
        (summary, content, "content") if source == "summary" else (content, summary, "summary")
    )
    text = joined(shown)
    form["source"] = source
    if shown is not None:
        form["shown"] = shown
    fields: dict[str, Any] = {}
    if type(other) is list and other:
        fields[other_key] = other
    elif other is not None:
        form["other"] = other
    if "summary" not in item.value:
        form["without"] = ["summary"]
    rest = item.rest(_REASONING_KEYS, NAME)
    extra = Extra(NAME, {**fields, **(rest.fields if rest is not None else {})}, form)
    encrypted = item.value.get("encrypted_content")
    if encrypted is None:
        return Reasoning(text, extra=extra)
    sealed = context.unseal(item.text("encrypted_content"))
    if sealed is None:
        bound = "" if is_minted(identifier) else identifier
        return Reasoning(text, Signature(item.text("encrypted_content"), origin, bound), extra=extra)
    match sealed.holder:
        case "unsigned":
            return Reasoning(text, extra=extra)
        case "redacted":
            return Reasoning("", sealed.signature, redacted=True, extra=extra)
        case "reasoning":
            return Reasoning(text, sealed.signature, extra=extra)
        case holder:
            return Carried(sealed.signature, holder)


def parse_call(item: Fields, context: Context, *material: str) -> ToolCall:
    custom = item.value.get("type") == "custom_tool_call"
    key, known = ("input", _CUSTOM_KEYS) if custom else ("arguments", _CALL_KEYS)
    form = item_form(item)
    raw = item.value.get(key)
    if raw is None:
        arguments = ""
    elif type(raw) is dict:  # some clients forget to encode it
        arguments = encode_text(raw)
        form["object"] = True
    else:
        arguments = item.text(key)
        if not arguments:
            form["blank"] = True
    name = item.text("name")
    if not name and item.fault is UpstreamFault:
        raise item.wrong("name", "the name of a tool")
    identifier = item.text_or("call_id")
    if not identifier:
        made = context.lasting_id if item.fault is ClientFault else context.new_id
        identifier = item.text_or("id") or made(context.call_prefix, *material, name)
        form["call_id"] = item.value.get("call_id", "absent")
    return ToolCall(
        identifier,
        name,
        arguments,
        "custom" if custom else "function",
        item.text_or("namespace"),
        extra=keep(item.value, known, form, always=(key,)),
    )


def parse_result(item: Fields) -> ToolResult:
    form = item_form(item)
    content: tuple[ResultPart, ...]
    mark = None
    output = item.value.get("output")
    if type(output) is str:
        content = (Text(output),)
    elif type(output) is list:
        form["list"] = True
        path = f"{item.path}.output"
        content = tuple(
            parse_part(Fields(part, f"{path}[{number}]", item.fault), "input_text")
            for number, part in enumerate(output)
        )
        if content and isinstance(last := content[-1], Text | Media) and last.cache is not None:
            # Outputs have breakpoints on parts only: one on the last part is one after the whole result.
            mark = last.cache
            content = (*content[:-1], replace(last, cache=None))
    elif output is None and "output" in item.value:
        content = ()
    else:
        raise item.wrong("output", "a string or an array of content parts")
    custom = item.value.get("type") == "custom_tool_call_output"
    return ToolResult(
        item.text_or("call_id"),
        content,
        name=item.text_or("name"),
        kind="custom" if custom else "function",
        cache=mark,
        extra=keep(item.value, _RESULT_KEYS, {"native": True, **form}),
    )


def parse_image_call(item: Fields) -> Media | Foreign:
    """A generated image; without its result it is only a reference to one."""
    result = item.value.get("result")
    if type(result) is not str or not result:
        return Foreign(NAME, "image_generation_call", item.value)
    raw = item.value.get("output_format")
    form = {"item": "image_generation_call", **item_form(item)}
    if raw is not None:
        form["output_format"] = raw
    mime = f"image/{raw}" if type(raw) is str else "image/png"
    return Media("image", mime, result, extra=item.rest(_IMAGE_KEYS, NAME, form))


def foreign_role(value: dict[str, Any], kind: str) -> Role:
    known = _FOREIGN_ROLES.get(kind)
    if known is not None:
        return known
    stated = value.get("role")
    if type(stated) is str and stated in _ROLES:
        return _ROLES[stated]
    if kind == "tool_search_output":
        return "user" if value.get("execution") == "client" else "assistant"
    return "user" if kind.endswith("_call_output") else "assistant"
