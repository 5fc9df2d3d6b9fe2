"""Renders parts of the IR as items of an input or output list; ids and carriers of state are up to the
caller."""

from __future__ import annotations

import re
from typing import Any, Final

from wireglot_core.dialects.context import is_minted
from wireglot_core.dialects.fields import own_form
from wireglot_core.dialects.openai_responses.client_calls import own_item, own_result
from wireglot_core.dialects.openai_responses.lost_fields import LOST
from wireglot_core.dialects.openai_responses.media import render_media
from wireglot_core.dialects.openai_responses.output import (
    joined,
    message_form,
    phase_said,
)
from wireglot_core.dialects.openai_responses.parts import is_plain, render_text
from wireglot_core.dialects.openai_responses.spelling import NAME, put_back, render_cache
from wireglot_core.dialects.openai_shared import BREAKPOINT
from wireglot_core.dialects.unknown_fields import WITHOUT
from wireglot_core.ir.content import (
    PHASE,
    CacheMark,
    Foreign,
    Media,
    Message,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from wireglot_core.ir.loss import Loss, left_out, losses_of_extra
from wireglot_core.wire.json import BadJson, decode

ERROR_PREFIX = "Error: "
_MARKABLE = frozenset({"input_text", "input_image", "input_file"})
"""Content parts that accept a breakpoint."""


def render_reasoning(part: Reasoning, identifier: str | None, encrypted: str | None) -> dict[str, Any]:
    form = own_form(part.extra, NAME)
    item: dict[str, Any] = {"type": "reasoning"}
    if identifier:
        item["id"] = identifier
    if form.get("source") == "content":
        item["summary"] = form.get("other", [])
        item["content"] = _entries(part.text, "reasoning_text", form.get("shown"))
    else:
        shown = form.get("shown")
        if shown is None and encrypted is not None:
            shown = _summaries(part.text)
        item["summary"] = _entries(part.text, "summary_text", shown)
        if "other" in form:
            item["content"] = form["other"]
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    if "status" in form:
        item["status"] = form["status"]
    return put_back(item, part.extra)


_NEXT: Final = re.compile(r"\n\n(?=\*\*[^*\n]+\*\*\n\n)")


def _summaries(text: str) -> list[dict[str, str]]:
    """OpenAI's summaries, which a client of another dialect has sent back as one text: each begins with a
    heading in bold."""
    return [{"type": "summary_text", "text": each} for each in _NEXT.split(text)] if text else []


def _entries(text: str, kind: str, shown: Any) -> Any:
    """The original list if its text is still `text`; else one entry."""
    if shown is not None and joined(shown) == text:
        return shown
    return [{"type": kind, "text": text}] if text else []


def render_call(call: ToolCall, identifier: str | None, status: str | None) -> dict[str, Any]:
    own = own_item(call)
    if own is not None:
        return own
    form = own_form(call.extra, NAME)
    custom = call.kind == "custom"
    item: dict[str, Any] = {"type": "custom_tool_call" if custom else "function_call"}
    if identifier:
        item["id"] = identifier
    item["call_id"] = call.id
    item["name"] = call.name
    if call.namespace:
        item["namespace"] = call.namespace
    if custom:
        item["input"] = call.arguments
    elif form.get("object"):
        item["arguments"] = _object(call.arguments)
    else:
        item["arguments"] = call.arguments or no_arguments(call)
    if status is not None:
        item["status"] = status
    if "call_id" in form and (is_minted(call.id) or call.id == form.get("id")):
        del item["call_id"]
    return put_back(item, call.extra)


def render_image_call(media: Media, identifier: str | None) -> dict[str, Any]:
    form = own_form(media.extra, NAME)
    item: dict[str, Any] = {"type": "image_generation_call"}
    if identifier is not None:
        item["id"] = identifier
    item["status"] = form.get("status", "completed")
    if form and "status" not in form:
        del item["status"]
    item["result"] = media.data
    if "output_format" in form:
        item["output_format"] = form["output_format"]
    elif not form:
        item["output_format"] = media.mime.removeprefix("image/") or "png"
    return put_back(item, media.extra)


def no_arguments(call: ToolCall) -> str:
    """The value for a call without arguments: the field must be JSON, unless it was empty in the source."""
    form = own_form(call.extra, NAME)
    return "" if "blank" in form or "arguments" in form.get(WITHOUT, ()) else "{}"


def _object(arguments: str) -> Any:
    try:
        return decode(arguments)
    except BadJson:
        return arguments


def render_result(result: ToolResult, path: str, losses: list[Loss], called: str | None) -> dict[str, Any]:
    """`called` is the name of the tool whose call this answers, if known."""
    own = own_result(result)
    if own is not None:
        return own
    LOST.of(result, path, losses)
    form = own_form(result.extra, NAME)
    custom = result.kind == "custom"
    item: dict[str, Any] = {"type": "custom_tool_call_output" if custom else "function_call_output"}
    identifier = form.get("id")
    if identifier is not None and not (type(identifier) is str and is_minted(identifier)):
        item["id"] = identifier
    if result.call_id:
        item["call_id"] = result.call_id
    if result.name and form.get("native"):
        item["name"] = result.name
    elif result.name and result.name != called:
        losses.append(Loss(f"{path}.name", "tool_result.name", "dropped", "a result names its call only"))
    content = result.content
    if result.is_error:
        content = _marked(content)
    item["output"] = _render_output(result, content, bool(form.get("list")), path, losses)
    if "status" in form:
        item["status"] = form["status"]
    return put_back(item, result.extra)


def _marked(content: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    if content and isinstance(content[0], Text):
        return (
            Text(ERROR_PREFIX + content[0].text, cache=content[0].cache, extra=content[0].extra),
            *content[1:],
        )
    return (Text(ERROR_PREFIX.strip()), *content)


def _render_output(
    result: ToolResult, content: tuple[ResultPart, ...], as_list: bool, path: str, losses: list[Loss]
) -> str | list[Any]:
    mark = result.cache
    if not as_list and mark is None:
        if not content:
            return ""
        if len(content) == 1 and is_plain(only := content[0]):
            assert isinstance(only, Text)
            losses_of_extra(only.extra, NAME, f"{path}.content[0]", losses)
            return only.text
    out: list[Any] = []
    for number, part in enumerate(content):
        place = f"{path}.content[{number}]"
        value: dict[str, Any] | None
        match part:
            case Text():
                if not part.text and part.extra is None:
                    continue
                value = render_text(part, "input_text", place, losses)
                declare_signature(part, place, losses)
            case Media(kind="audio" | "video") if not own_form(part.extra, NAME):
                losses.append(Loss(place, "tool_result.media", "dropped", f"no {part.kind} in a tool output"))
                value = None
            case Media():
                value = render_media(part, place, losses)
                declare_signature(part, place, losses)
            case Foreign():
                value = render_foreign(part, place, losses)
        if value is not None:
            out.append(value)
    if mark is not None:
        _mark_last(out, mark, path, losses)
    return out


def _mark_last(out: list[Any], mark: CacheMark, path: str, losses: list[Loss]) -> None:
    """Puts a breakpoint that belongs after the whole output on its last part."""
    last = out[-1] if out else {}
    if last.get("type") not in _MARKABLE:
        losses.append(
            Loss(f"{path}.cache", "cache_marker", "dropped", "this tool output has no part to mark")
        )
    elif BREAKPOINT in last:
        losses.append(Loss(f"{path}.cache", "cache_marker", "approximated", "one with that of its last part"))
    else:
        last[BREAKPOINT] = render_cache(mark, path, losses)


def render_foreign(part: Foreign, path: str, losses: list[Loss]) -> dict[str, Any] | None:
    if part.dialect == NAME:
        return part.value
    losses.append(left_out(part, path))
    return None


def declare_signature(part: Text | Media | ToolCall, path: str, losses: list[Loss]) -> None:
    """Toward an upstream, only reasoning items carry signed state; a phase belongs to its message item."""
    if part.signature is not None and part.signature.id != PHASE:
        losses.append(
            Loss(
                f"{path}.signature",
                "reasoning.signature",
                "dropped",
                f"issued by {part.signature.origin.dialect}",
            )
        )


def render_message(
    message: Message, content: list[tuple[int, Text | Media | Foreign]], path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    """The message item for some parts of a message (with their indexes in it); None if none are left."""
    form = own_form(message.extra, NAME)
    native = form.get("item") == "message"
    usual = "output_text" if message.role == "assistant" else "input_text"
    values: list[dict[str, Any]] = []
    for number, part in content:
        place = f"{path}.content[{number}]"
        value: dict[str, Any] | None
        match part:
            case Text():
                declare_signature(part, place, losses)
                if not part.text and not native:
                    continue
                value = render_text(part, usual, place, losses)
            case Media():
                declare_signature(part, place, losses)
                if message.role == "assistant" and not own_form(part.extra, NAME):
                    losses.append(Loss(place, _FEATURE[part.kind], "dropped", "an answer cannot hold media"))
                    continue
                value = render_media(part, place, losses)
            case Foreign():
                value = render_foreign(part, place, losses)
        if value is not None:
            values.append(value)
    if not values and not native:
        return None
    item: dict[str, Any] = {"type": "message", "role": form.get("role", _ROLE_NAMES[message.role])}
    if not native and isinstance(content[0][1], Text):
        form = message_form(content[0][1])  # a part of an answer, put into a conversation unchanged
    identifier = form.get("id")
    if identifier is not None and not (type(identifier) is str and is_minted(identifier)):
        item["id"] = identifier
    if "status" in form:
        item["status"] = form["status"]
    phase = form["phase"] if "phase" in form else _phase_among(content)
    if phase is not None:
        item["phase"] = phase
    item["content"] = values
    if form.get("string") and len(content) == 1 and is_plain(content[0][1]) and len(values) == 1:
        item["content"] = values[0]["text"]
    return put_back(item, message.extra)


def _phase_among(content: list[tuple[int, Text | Media | Foreign]]) -> str | None:
    said = (phase_said(part) for _, part in content if isinstance(part, Text))
    return next((phase for phase in said if phase is not None), None)


_ROLE_NAMES = {"user": "user", "assistant": "assistant", "system": "developer"}
_FEATURE: dict[str, Any] = {"image": "image", "document": "document", "audio": "audio", "video": "video"}
