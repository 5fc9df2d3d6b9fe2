"""Parses content blocks, for requests and answers alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from wireglot_core.dialects.anthropic.citations import parse_citations
from wireglot_core.dialects.anthropic.client_tools import TOOLSETS
from wireglot_core.dialects.anthropic.media import parse_media
from wireglot_core.dialects.anthropic.names import NAME, keep, parse_cache
from wireglot_core.dialects.anthropic.reasoning import (
    attach_wherever,
    joined_thoughts,
    parse_redacted,
    parse_thinking,
)
from wireglot_core.dialects.arguments import PARSE_ERROR, RAW, arguments_text
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import Sealed
from wireglot_core.dialects.fields import Fields, describe
from wireglot_core.ir.content import (
    CacheMark,
    Extra,
    Foreign,
    Origin,
    Part,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.errors import WireglotError
from wireglot_core.wire.json import encode_text

_TEXT = frozenset({"type", "text", "citations", "cache_control"})
_CALL = frozenset({"type", "id", "name", "input", "cache_control"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"})
_DIRECT = {"type": "direct"}
_EPHEMERAL = {"type": "ephemeral"}
_STRING = Extra(NAME, form={"content": "string"})
# The form in which clients send back the blocks of an answer: these fields are in every one.
_UNCITED = Extra(NAME, form={"blank": {"citations": None}})
_CITED_NOWHERE = Extra(NAME, form={"blank": {"citations": []}})
_CALLED = Extra(NAME, form={"blank": {"caller": _DIRECT}})


def _plain_texts(blocks: list[Any]) -> tuple[Text, ...] | None:
    texts = []
    for block in blocks:
        if type(block) is not dict or len(block) != 2 or "text" not in block or block.get("type") != "text":
            return None
        text = block["text"]
        if type(text) is not str:
            return None
        texts.append(Text(text))
    return tuple(texts)


class BlockParser(msgspec.Struct, eq=False):
    """Parses the blocks of one document. `fault` is the error raised for what its sender did wrong.

    `origin` is stamped on signatures that are not ours. A call without an id gets one derived from its place
    and, in an answer (`response_id` is not None), from that answer's id or, without one, the call's
    arguments.
    """

    context: Context
    origin: Origin
    fault: type[WireglotError]
    response_id: str | None = None
    calls: int = 0
    """Number of calls parsed so far."""

    def content(self, blocks: list[Any], path: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        held: list[tuple[int, Sealed]] = []
        for index, block in enumerate(blocks):
            part = self._plain(block)
            if part is not None:
                parts.append(part)
                continue
            for each in joined_thoughts(block, self.context) or (block,):
                read = self.block(Fields(each, f"{path}[{index}]", self.fault))
                if isinstance(read, Sealed):
                    held.append((len(parts), read))
                else:
                    parts.append(read)
        if held:
            attach_wherever(parts, held)
        return tuple(parts)

    def _plain(self, block: Any) -> Part | None:
        """The part of an ordinary block without additional fields; None: the block needs the full
        conversion."""
        if type(block) is not dict:
            return None
        size = len(block)
        try:
            kind = block["type"]
            if kind == "tool_use" and (size == 4 or (size == 5 and block["caller"] == _DIRECT)):
                identifier, name, value = block["id"], block["name"], block["input"]
                named = type(identifier) is str and identifier and type(name) is str and name
                if named and type(value) is dict and RAW not in value:
                    self.calls += 1
                    extra = _CALLED if size == 5 else None
                    return ToolCall(identifier, name, encode_text(value), extra=extra)
            elif kind == "tool_result" and size == 3 and self.response_id is None:
                identifier, content = block["tool_use_id"], block["content"]
                if type(identifier) is str and content:
                    if type(content) is list:
                        texts = _plain_texts(content)
                        return ToolResult(identifier, texts) if texts is not None else None
                    if type(content) is str:
                        return ToolResult(identifier, (Text(content),), extra=_STRING)
            elif kind == "text" and type(text := block["text"]) is str:
                if size == 2:
                    return Text(text)
                if size == 3 and block.get("cache_control") == _EPHEMERAL:
                    return Text(text, cache=CacheMark())
                if size == 3:
                    citations = block["citations"]
                    if citations is None or citations == []:
                        return Text(text, extra=_UNCITED if citations is None else _CITED_NOWHERE)
        except KeyError:
            pass
        return None

    def block(self, fields: Fields) -> Part | Sealed:
        """The part of one block, or the state that belongs to the part after it."""
        match fields.text("type"):
            case "text":
                return parse_text(fields)
            case "tool_use":
                return self._call(fields)
            case "tool_result" if self.response_id is None:
                return self._result(fields)
            case "thinking":
                return parse_thinking(fields, self.context, self.origin)
            case "redacted_thinking":
                return parse_redacted(fields, self.context, self.origin)
            case "image":
                return parse_media(fields, "image")
            case "document":
                return parse_media(fields, "document")
            case other if self.response_id is None:
                return parse_other(fields, other)
            case other:
                return Foreign(NAME, other, fields.value)

    def _call(self, fields: Fields) -> ToolCall:
        name = fields.text("name")
        if not name and self.response_id is not None:
            raise fields.wrong("name", "the name of a tool")
        self.calls += 1
        value = fields.dict_or_none("input")
        identifier = fields.text_or("id")
        if not identifier:
            said = {None: (), "": (call_text(value or {}),)}.get(self.response_id, (self.response_id or "",))
            made = self.context.lasting_id if self.response_id is None else self.context.new_id
            identifier = made(self.context.call_prefix, *said, str(self.calls), name)
        return ToolCall(
            identifier,
            name,
            call_text(value) if value is not None else "",
            namespace=toolset_of(fields),
            cache=parse_cache(fields),
            extra=call_extra(fields),
        )

    def _result(self, fields: Fields) -> ToolResult:
        content = fields.value.get("content")
        parts: tuple[ResultPart, ...] = ()
        form = {}
        if type(content) is str:
            parts, form = (Text(content),), {"content": "string"}
        elif type(content) is list:
            parts = tuple(self._result_part(item) for item in fields.objects("content"))
        elif content is not None:
            raise self.fault(
                f"expected a string or an array, got {describe(content)}", f"{fields.path}.content"
            )
        known = _RESULT
        if toolset := toolset_of(fields):  # repeated in the call
            known, form = _RESULT | {"toolset_name"}, {**form, "toolset_name": toolset}
        return ToolResult(
            fields.text("tool_use_id"),
            parts,
            fields.boolean("is_error") or False,
            cache=parse_cache(fields),
            extra=keep(
                fields.value, known, form, blanks=("is_error",) if content else ("is_error", "content")
            ),
        )

    def _result_part(self, fields: Fields) -> ResultPart:
        match fields.text("type"):
            case "text":
                return parse_text(fields)
            case "image":
                return parse_media(fields, "image")
            case "document":
                return parse_media(fields, "document")
            case other:
                return parse_other(fields, other)


def parse_other(fields: Fields, kind: str) -> Foreign:
    reported = _IN_WORDS.get(kind)
    if reported is None:
        return Foreign(NAME, kind, fields.value)
    return Foreign(
        NAME, kind, fields.value, reported(fields.value), stands_elsewhere=_says_nothing(fields.value)
    )


def _search_result(value: dict[str, Any]) -> str:
    """A search result as text: its title, its source, its content."""
    content = value.get("content")
    texts = [block.get("text") for block in content if type(block) is dict] if type(content) is list else []
    said = [text for text in (value.get("title"), value.get("source"), *texts) if type(text) is str and text]
    return "\n".join(said)


def _reference(value: dict[str, Any]) -> str:
    """Tools found by the client's own tool search. For upstreams without deferred tools they are loaded: the
    model is informed that it may call them."""
    name = value.get("tool_name")
    return f"The tool {name} can be called now." if type(name) is str else ""


def _browser_state(value: dict[str, Any]) -> str:
    """The tabs and other state reported with a result of the browser tool."""
    lines = ["Open tabs:"]
    for tab in value.get("tabs") or ():
        if type(tab) is dict:
            active = " (active)" if tab.get("active") is True else ""
            lines.append(f"{tab.get('tab_id')}{active}: {tab.get('title', '')} {tab.get('url', '')}".rstrip())
    for change in value.get("state_changes") or ():
        if type(change) is dict:
            said = [f"{key}: {item}" for key, item in change.items() if key != "type" and item is not None]
            lines.append(f"{change.get('type')}: {', '.join(said)}")
    return "\n".join(lines)


def _compaction(value: dict[str, Any]) -> str:
    """The summary that replaces the turns before it."""
    summary = value.get("content")
    return f"Summary of the conversation so far:\n\n{summary}" if type(summary) is str and summary else ""


def _says_nothing(value: dict[str, Any]) -> bool:
    """Whether a compaction failed: its vendor ignores it, and the turns before it are all there."""
    return value.get("type") == "compaction" and not any(map(value.get, _TELLING))


_TELLING = ("content", "encrypted_content", "tool_changes")


_IN_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "browser_state": _browser_state,
    "compaction": _compaction,
    "search_result": _search_result,
    "tool_reference": _reference,
}


def parse_text(fields: Fields) -> Text:
    known = _TEXT if type(fields.value.get("citations")) is list else _TEXT - {"citations"}
    value, form = fields.value, None
    if "citations" in value and value["citations"] is None:
        value, form = {key: item for key, item in value.items() if key != "citations"}, _UNCITED.form
    return Text(
        fields.text("text"),
        citations=parse_citations(fields),
        cache=parse_cache(fields),
        extra=keep(value, known, form, blanks=("citations",)),
    )


def call_text(value: dict[str, Any]) -> str:
    """The arguments of an `input`. A wrapped one gives back the model's text, which was invalid JSON; also if
    a streamed beginning of it is next to the wrapping."""
    raw = value.get(RAW)
    if type(raw) is str and PARSE_ERROR in value:
        return raw
    return arguments_text(value)


def toolset_of(fields: Fields) -> str:
    """The family that a call or a result belongs to, "" for single tools."""
    name = fields.value.get("toolset_name")
    return name if type(name) is str and name in TOOLSETS else ""


def call_extra(fields: Fields) -> Extra | None:
    """The fields of a `tool_use` block other than id, name and input. `caller: direct` is the default,
    written out."""
    known = _CALL
    form: dict[str, Any] = {}
    if toolset_of(fields):
        known = known | {"toolset_name"}
    if fields.value.get("caller") == _DIRECT:
        known = known | {"caller"}
        form["blank"] = {"caller": _DIRECT}
    value = fields.value.get("input")
    if type(value) is dict and RAW in value:
        form["input"] = value
    elif "input" not in fields.value:
        form["input"] = "absent"
    return fields.rest(known, NAME, form or None)
