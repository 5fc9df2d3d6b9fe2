"""A response object of OpenAI's, whole or as the last event of a stream holds it."""

from __future__ import annotations

from typing import Any, Final

from wireglot.probe.question import Call
from wireglot.probe.reply import At, Counted, Reply, Stop, Thought
from wireglot.probe.verdict import Broken
from wireglot.wire.json import BadJson, decode

_PRESENT: Final = ("parallel_tool_calls", "tool_choice", "tools")
"""The SDK's type has them without a default: code reads them without asking."""

_REASONS: Final[dict[str, Stop]] = {"max_output_tokens": "length", "content_filter": "other"}


def read_response(at: At) -> Reply:
    at.is_("object", "response")
    reply = Reply(id=at.text("id", filled=True), model=at.text("model", filled=True))
    at.number("created_at")
    for name in _PRESENT:
        at.get(name)
    status = at.is_("status", "completed", "incomplete")
    for item in at.get("output").each():
        read_item(reply, item)
    reply.stop_word = status
    reply.stop = "tool" if reply.calls else "end"
    if status == "incomplete":
        reply.stop_word = at.get("incomplete_details").text("reason", filled=True)
        reply.stop = _REASONS.get(reply.stop_word, "other")
    reply.items = [item.object() for item in at.get("output").each()]
    reply.usage = counted(at.get("usage"))
    return reply


def read_item(reply: Reply, item: At) -> None:
    match item.text("type", filled=True):
        case "message":
            item.text("id", filled=True)
            item.is_("role", "assistant")
            item.is_("status", "completed", "incomplete", "in_progress")
            for part in item.get("content").each():
                if part.is_("type", "output_text", "refusal") == "output_text":
                    reply.text += part.text("text")
                    part.get("annotations").each()
        case "function_call":
            item.text("id", filled=True)
            arguments = item.text("arguments")
            check_object(arguments, item.path)
            call = Call(item.text("call_id", filled=True), item.text("name", filled=True), arguments)
            reply.calls = [*reply.calls, call]
        case "reasoning":
            item.text("id", filled=True)
            parts = [*item.get("summary").each(), *_content(item)]
            state = item.text("encrypted_content") if item.has("encrypted_content") else ""
            thought = Thought("".join(part.text("text") for part in parts), state)
            reply.thoughts = [*reply.thoughts, thought]
            reply.state += state


def check_object(arguments: str, place: str) -> None:
    try:
        found = decode(arguments.encode()) if arguments else {}
    except BadJson as bad:
        raise Broken(f"{place}.arguments: no JSON ({bad}): {arguments[:120]!r}") from None
    if not isinstance(found, dict):
        raise Broken(f"{place}.arguments: expected an object in the text, found {arguments[:120]!r}")


def counted(usage: At) -> Counted:
    return Counted(
        input=usage.number("input_tokens"),
        output=usage.number("output_tokens"),
        cached=usage.get("input_tokens_details").number("cached_tokens"),
        reasoning=usage.get("output_tokens_details").number("reasoning_tokens"),
        total=usage.number("total_tokens"),
    )


def _content(item: At) -> list[At]:
    return item.get("content").each() if item.has("content") else []


def plain(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else {}
