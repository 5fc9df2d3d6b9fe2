"""Parses a Messages request into the conversation to continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wireglot_core.dialects.anthropic.mcp import SERVERS, are_carried, servers_of
from wireglot_core.dialects.anthropic.names import NAME, keep, parse_cache
from wireglot_core.dialects.anthropic.parts import BlockParser
from wireglot_core.dialects.anthropic.safeguards import ASKED, parse_safeguards
from wireglot_core.dialects.anthropic.settings import (
    REQUEST_FIELDS,
    config_rest,
    parse_format,
    parse_thinking_config,
    parse_tiers,
)
from wireglot_core.dialects.anthropic.tools import parse_choice, parse_tools
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.dialects.turns import read_turns
from wireglot_core.dialects.unknown_fields import HOLLOW
from wireglot_core.ir.content import Extra, Foreign, Message, Origin, Part, Role, Text
from wireglot_core.ir.errors import ClientFault
from wireglot_core.ir.request import OutputFormat, Request, Thinking

_KNOWN = REQUEST_FIELDS.known.union(
    {
        "model",
        "messages",
        "system",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "metadata",
        "service_tier",
        "cache_control",
    }
)
_BILLING = "x-anthropic-billing-header"
"""The beginning of a system text of Claude Code (2.1.326: its first): its version, for Anthropic's own
accounts. To any other model it would be an instruction, and one that breaks the cache after an update."""
_MESSAGE = frozenset({"role", "content"})
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def parse_request(body: dict[str, Any], context: Context) -> Request:
    fields = Fields(body)
    blocks = BlockParser(context, Origin(NAME), ClientFault)
    messages = _parse_system(fields, blocks)
    turns = fields.array("messages")
    if not turns:
        raise fields.fault("expected at least one message", "$.messages")
    read_turns(_Turns(messages, blocks), turns, context, NAME)
    form: dict[str, Any] = {}
    known = set(_KNOWN)
    settings = REQUEST_FIELDS.read(fields, known)
    if "max_tokens" not in settings:
        form["max_tokens"] = "absent"
    elif settings["max_tokens"] < 0:
        raise ClientFault("expected an integer of at least 0", "$.max_tokens")
    # Readers of missing fields are not called: most requests have few of these.
    output = parse_format(fields) if "output_config" in body or "output_format" in body else None
    if output is not None:
        settings["output"] = output
    if "tool_choice" in body:
        settings["tool_choice"], settings["parallel_tools"] = parse_choice(fields)
    metadata = fields.object_or_none("metadata") if "metadata" in body else None
    if metadata is not None:
        settings["user"] = metadata.text_or("user_id")
    tier = parse_tiers(fields, form) if "service_tier" in body or "speed" in body else ""
    if tier:
        settings["service_tier"] = tier
    if "cache_control" in body:
        settings["cache"] = parse_cache(fields)
    thinks = "thinking" in body or "output_config" in body
    settings["thinking"] = parse_thinking_config(fields) if thinks else Thinking()
    tools = parse_tools(fields, context)
    if ASKED in body and (safeguards := parse_safeguards(fields)):
        settings["safeguards"] = safeguards
        known.add(ASKED)
    if SERVERS in body and are_carried(servers_of(fields), tools, body[SERVERS]):
        form[SERVERS] = body[SERVERS]
    extra = _parse_extra(fields, form, metadata, output, tier, known)
    return Request(messages=tuple(messages), tools=tools, extra=extra, **settings)


def _parse_system(body: Fields, blocks: BlockParser) -> list[Message]:
    """The top-level system text becomes the first message; its extra records how it was written."""
    system = body.value.get("system")
    if system is None:
        return []
    if type(system) is str:
        return [Message("system", (_system_text(system),), extra=Extra(NAME, form={"content": "string"}))]
    if type(system) is not list:
        raise body.wrong("system", "a string or an array")
    parts = _without_billing(blocks.content(system, "$.system"), system)
    return [Message("system", parts, extra=Extra(NAME, form={"content": "array"}))]


def _without_billing(parts: tuple[Part, ...], blocks: list[Any]) -> tuple[Part, ...]:
    """The parts of a system text; the note for Anthropic's accounts, which is one line, becomes a `Foreign`
    part."""
    if len(parts) != len(blocks):  # it has blocks that become no part or several
        return parts
    return tuple(
        Foreign(NAME, _BILLING, block, for_vendor=True)
        if type(part) is Text and _is_billing(part.text)
        else part
        for part, block in zip(parts, blocks, strict=True)
    )


def _is_billing(text: str) -> bool:
    """Whether a text is the note alone: with other lines in it, it is an instruction."""
    return text.startswith(_BILLING) and "\n" not in text.rstrip()


def _system_text(text: str) -> Part:
    """Parses a system text that is not a list."""
    if _is_billing(text):
        return Foreign(NAME, _BILLING, {"type": "text", "text": text}, for_vendor=True)
    return Text(text)


class _Turns(msgspec.Struct, eq=False):
    """Parses messages. They depend on each other in only one way: a call without an id gets one from its
    number."""

    messages: list[Message]
    _blocks: BlockParser

    def read_message(self, item: Any, index: int) -> None:
        self.messages.append(_parse_message(item, f"$.messages[{index}]", self._blocks))

    def state(self, item: Any) -> int:
        return self._blocks.calls

    def mark(self) -> int:
        return self._blocks.calls

    def go_on(self, mark: int) -> None:
        self._blocks.calls = mark

    snapshot, restore = mark, go_on


def _parse_message(item: Any, path: str, blocks: BlockParser) -> Message:
    parts: tuple[Part, ...]
    if _is_plain(item):
        return Message(_ROLES[item["role"]], blocks.content(item["content"], f"{path}.content"))
    fields = Fields(item, path)
    role = _ROLES.get(fields.text("role"))
    if role is None:
        raise ClientFault("expected one of user, assistant, system", f"{path}.role")
    form: dict[str, Any] = {"place": "messages"} if role == "system" else {}
    content = fields.value.get("content")
    if type(content) is str:
        parts = (_system_text(content) if role == "system" else Text(content),)
        form["content"] = "string"
    elif type(content) is list:
        parts = blocks.content(content, f"{path}.content")
        if role == "system":
            parts = _without_billing(parts, content)
    elif content is None and "content" in fields.value:
        parts = ()
    else:
        raise ClientFault(f"expected a string or an array, got {describe(content)}", f"{path}.content")
    return Message(role, parts, extra=keep(fields.value, _MESSAGE, form))


def _is_plain(message: Any) -> bool:
    """Whether the message has only a role and blocks, like nearly all."""
    return (
        type(message) is dict
        and len(message) == 2
        and message.get("role") in ("user", "assistant")
        and type(message.get("content")) is list
    )


def _parse_extra(
    fields: Fields,
    form: dict[str, Any],
    metadata: Fields | None,
    output: OutputFormat | None,
    tier: str,
    known: set[str],
) -> Extra:
    """Always present, because it also marks the messages as divided in this dialect's way."""
    if SERVERS in form:
        known.add(SERVERS)
    if output is not None and output.extra is not None and "key" in output.extra.form:
        known.add("output_format")
    if tier == "fast" and fields.value.get("speed") == "fast":
        known.add("speed")
    rest = keep(fields.value, known, form, blanks=("stop_sequences", "tools", "metadata", "output_config"))
    information = dict(rest.fields) if rest is not None else {}
    kept_form = dict(rest.form) if rest is not None else {}
    for key, is_idle in _IDLE.items():
        if key in information and is_idle(information[key]):
            kept_form[HOLLOW] = {**kept_form.get(HOLLOW, {}), key: information.pop(key)}
    config = config_rest(fields, output) if "output_config" in fields.value else None
    if config:
        information["output_config"] = config
    if metadata is not None:
        beside = {key: value for key, value in metadata.value.items() if key != "user_id" or not value}
        if beside:
            information["metadata"] = beside
    return Extra(NAME, information, kept_form)


def _keeps_all(value: Any) -> bool:
    """Whether `context_management` removes nothing: Claude Code keeps the thinking of all turns."""
    edits = value.get("edits") if type(value) is dict and value.keys() <= {"edits"} else None
    return type(edits) is list and all(_keeps_thinking(edit) for edit in edits)


def _keeps_thinking(edit: Any) -> bool:
    return (
        type(edit) is dict
        and str(edit.get("type")).startswith("clear_thinking_")
        and edit.keys() <= {"type", "keep"}
        and edit.get("keep") in ("all", {"type": "all"})
    )


_IDLE: dict[str, Callable[[Any], bool]] = {
    "context_management": _keeps_all,
    "speed": lambda value: value == "standard",
}
"""Fields whose value equals the default: spelling, written again for Anthropic alone."""
