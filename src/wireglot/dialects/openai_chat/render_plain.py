"""Turns of nothing but plain texts, calls and results: most of any conversation, rendered the short way.

What is plain loses nothing and has one spelling, so neither paths nor losses are needed. Everything else is
left to `render_messages`, which would give the same for these.
"""

from __future__ import annotations

from typing import Any

from wireglot.dialects.openai_chat.extras import NAME, put_cache
from wireglot.ir.content import Extra, Message, Part, Text, ToolCall, ToolResult


def plain_turn(
    message: Message, calls: dict[str, ToolCall], joined: frozenset[str] = frozenset()
) -> list[dict[str, Any]] | None:
    """The messages of a turn, None if anything about it takes a closer look. `calls` are those so far,
    `joined` the roles whose texts are to be one string."""
    if message.name or (message.extra is not None and not _is_mute(message.extra)):
        return None
    content = message.content
    if len(content) == 1 and type(only := content[0]) is Text and only == Text(only.text) and only.text:
        return [{"role": message.role, "content": only.text}]
    match message.role:
        case "user":
            return _user(message, calls, joined)
        case "assistant":
            return _assistant(message, calls, joined)
        case "system":
            texts = _texts(message.content)
            return None if texts is None else _said("system", texts, joined)


def _user(
    message: Message, calls: dict[str, ToolCall], joined: frozenset[str]
) -> list[dict[str, Any]] | None:
    out: list[dict[str, Any]] = []
    content = message.content
    for position, part in enumerate(content):
        if type(part) is not ToolResult:
            texts = _texts(content[position:])
            return None if texts is None else out + _said("user", texts, joined)
        result = _result(part, calls)
        if result is None:
            return None
        out.append(result)
    return out


def _result(part: ToolResult, calls: dict[str, ToolCall]) -> dict[str, Any] | None:
    call = calls.get(part.call_id)
    if call is None or call.kind != part.kind or (part.name and part.name != call.name):
        return None
    if part.is_error or part.cache is not None or (part.extra is not None and not _is_mute(part.extra)):
        return None
    texts = _texts(part.content)
    if texts is None:
        return None
    said = []
    for text in texts:
        if text.cache is not None:
            return None
        said.append(text.text)
    return {"role": "tool", "tool_call_id": part.call_id, "content": "\n\n".join(said)}


def _assistant(
    message: Message, calls: dict[str, ToolCall], joined: frozenset[str]
) -> list[dict[str, Any]] | None:
    content = message.content
    first = 0
    while first < len(content) and type(content[first]) is Text:
        first += 1
    texts = _texts(content[:first])
    if texts is None:
        return None
    if first == len(content):
        return _said("assistant", texts, joined)
    rendered = []
    for part in content[first:]:
        if type(part) is not ToolCall or not part.is_plain():
            return None
        calls[part.id] = part
        # Whoever reads them decodes them: no arguments are an empty object.
        arguments = part.arguments if part.arguments.strip() else "{}"
        function = {"name": part.name, "arguments": arguments}
        rendered.append({"id": part.id, "type": "function", "function": function})
    return [{"role": "assistant", "content": _content(texts, "assistant" in joined), "tool_calls": rendered}]


def _texts(parts: tuple[Part, ...]) -> list[Text] | None:
    """The texts that are there, unless a part is anything more than a text (and a mark of the cache)."""
    texts = []
    for part in parts:
        if type(part) is not Text or (
            (part.extra is not None and not _is_mute(part.extra))
            or (part.cache is not None and part.cache.extra is not None)
            or part.signature is not None
            or part.refusal
            or part.citations
            or part.logprobs
        ):
            return None
        if part.text:
            texts.append(part)
    return texts


def _said(role: str, texts: list[Text], joined: frozenset[str]) -> list[dict[str, Any]]:
    return [{"role": role, "content": _content(texts, role in joined)}] if texts else []


def _content(texts: list[Text], joined: bool) -> str | list[dict[str, Any]] | None:
    if len(texts) == 1 and texts[0].cache is None:
        return texts[0].text
    if joined and texts and all(text.cache is None for text in texts):
        return "\n\n".join(text.text for text in texts)
    parts: list[dict[str, Any]] = []
    for text in texts:
        part: dict[str, Any] = {"type": "text", "text": text.text}
        put_cache(part, text.cache, "", [])  # plain requests have no marks with an Extra, so nothing is lost
        parts.append(part)
    return parts or None


def _is_mute(extra: Extra) -> bool:
    """Whether it holds nothing but another dialect's spelling."""
    return extra.dialect != NAME and not extra.fields
