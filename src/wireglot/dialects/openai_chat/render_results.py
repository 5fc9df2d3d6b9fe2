"""Tool results, as `tool` messages (`function` messages for the deprecated kind of call)."""

from __future__ import annotations

from typing import Any, assert_never

from wireglot.dialects.fields import own_fields, own_form
from wireglot.dialects.openai_chat.extras import (
    NAME,
    is_of_message,
    lose_cache,
    put_back,
    put_cache,
    put_message_cache,
)
from wireglot.dialects.openai_chat.parts import (
    foreign_part,
    is_plain,
    is_text,
    joined_texts,
    lose_of_text,
    media_part,
    text_part,
)
from wireglot.dialects.openai_chat.tools import is_legacy
from wireglot.ir.content import Foreign, Media, Text, ToolCall, ToolResult
from wireglot.ir.loss import Loss, losses_of_extra


def render_result(
    part: ToolResult,
    path: str,
    calls: dict[str, ToolCall],
    native: bool,
    losses: list[Loss],
    *,
    joined: bool = False,
) -> tuple[dict[str, Any], list[Any]]:
    """The message, and the parts only a user message can show. `calls` are those so far, by id; `native`:
    the conversation came in this dialect."""
    call = calls.get(part.call_id)
    texts = _plain_texts(part, call, native)
    if texts is not None:
        return {"role": "tool", "tool_call_id": part.call_id, "content": "\n\n".join(texts)}, []
    losses_of_extra(part.extra, NAME, path, losses)
    form = own_form(part.extra, NAME)
    out: dict[str, Any] = {"role": "tool"}
    if form.get("legacy") and (call is None or is_legacy(call.extra)):
        out["role"] = "function"
    elif "id" not in form:
        out["tool_call_id"] = part.call_id
    elif form["id"] == "blank":
        out["tool_call_id"] = ""
    _put_name(out, part, call, native, path=path, losses=losses)
    entries, moved, plain = _entries(part, path, losses)
    if part.is_error:
        losses.append(Loss(f"{path}.is_error", "tool_result.error", "approximated", "told in the text"))
        entries = _as_error(entries)
    if is_of_message(part.cache):
        put_message_cache(out, part.cache)
    elif part.cache is not None:
        if entries and type(entries[-1]) is dict and "text" in entries[-1]:
            put_cache(entries[-1], part.cache, path, losses)
            plain = False
        else:
            lose_cache(part.cache, path, losses)
    if not plain and not (joined and all(map(is_text, entries))):
        out["content"] = entries
    else:
        content = joined_texts(entries)
        if content or (form.get("content") != "absent" and "content" not in own_fields(part.extra, NAME)):
            out["content"] = content
    put_back(out, part.extra)
    return out, moved


def _plain_texts(part: ToolResult, call: ToolCall | None, native: bool) -> list[str] | None:
    """The texts of a result that says nothing else, as nearly all do."""
    extra = part.extra
    if call is None or call.kind != part.kind or (part.name and (native or part.name != call.name)):
        return None
    if part.is_error or part.cache is not None:
        return None
    if extra is not None and (extra.dialect == NAME or extra.fields):
        return None
    texts = []
    for item in part.content:
        if type(item) is not Text or not item.is_plain(NAME):
            return None
        if item.text:
            texts.append(item.text)
    return texts


def _put_name(
    out: dict[str, Any], part: ToolResult, call: ToolCall | None, native: bool, path: str, losses: list[Loss]
) -> None:
    own = part.extra is not None and part.extra.dialect == NAME
    if part.name and (own or native):
        out["name"] = part.name
    elif part.name and (call is None or call.name != part.name):
        losses.append(Loss(f"{path}.name", "tool_result.name", "dropped", "the id says it"))
    if part.kind != ("function" if call is None else call.kind):
        losses.append(Loss(path, "tool.custom", "approximated", "results do not tell their kind"))


def _entries(part: ToolResult, path: str, losses: list[Loss]) -> tuple[list[Any], list[Any], bool]:
    """What the tool message holds, what a user message must hold, and whether a string says the former."""
    listed = own_form(part.extra, NAME).get("content") == "parts"
    entries: list[Any] = []
    moved: list[Any] = []
    plain = not listed
    for index, item in enumerate(part.content):
        place = f"{path}.content[{index}]"
        match item:
            case Text():
                if not item.text and not listed:
                    continue
                lose_of_text(item, place, losses)
                entries.append(text_part(item, place, losses))
                plain = plain and is_plain(item) and not item.refusal
            case Media():
                if listed:  # some servers do read images here
                    entries.append(media_part(item, place, losses))
                else:
                    _move(item, part.call_id, place, entries, moved=moved, losses=losses)
            case Foreign():
                own = foreign_part(item, place, losses)
                if own is not None:
                    entries.append(own)
                    plain = False
            case _:
                assert_never(item)
    return [entry for entry in entries if entry is not None], moved, plain


def _move(
    item: Media, call_id: str, path: str, entries: list[Any], moved: list[Any], losses: list[Loss]
) -> None:
    """Results are text only: show the rest in a user message behind all results of the step."""
    bent: list[Loss] = []
    seen = media_part(item, path, bent)
    if seen is None:
        losses.append(Loss(path, "tool_result.media", "dropped", f"Chat cannot show this {item.kind}"))
        return
    losses.append(Loss(path, "tool_result.media", "approximated", "moved into a user message"))
    losses += bent
    if not moved:
        moved.append({"type": "text", "text": f"Attached to the result of {call_id}:"})
    moved.append(seen)
    entries.append({"type": "text", "text": f"[{item.kind}: see next message]"})


def _as_error(entries: list[Any]) -> list[Any]:
    if entries and type(entries[0]) is dict and "text" in entries[0]:
        return [{**entries[0], "text": f"Error: {entries[0]['text']}"}, *entries[1:]]
    return [{"type": "text", "text": "Error: the tool failed"}, *entries]
