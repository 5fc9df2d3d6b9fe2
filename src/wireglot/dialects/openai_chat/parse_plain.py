"""Answers of one text, as most are, read the short way: everything else is left to `response`, which would
give the same for these.
"""

from __future__ import annotations

from typing import Any

from wireglot.dialects.openai_chat.extras import NAME
from wireglot.dialects.openai_chat.outcome import parse_stop, parse_tier, parse_usage, render_tier
from wireglot.dialects.unknown_fields import is_hollow
from wireglot.ir.content import Extra, Text
from wireglot.ir.outcome import Response

_TAKEN = frozenset({"id", "object", "created", "model", "choices", "usage", "service_tier"})
_PLAIN_CHOICE = frozenset({"index", "message", "logprobs", "finish_reason"})
_PLAIN_MESSAGE = frozenset({"role", "content", "refusal", "annotations"})


def parse_plain(body: dict[str, Any]) -> Response | None:
    """The answer; None if anything about it takes a closer look."""
    identifier, created, model = body.get("id"), body.get("created"), body.get("model")
    choices, usage, tier = body.get("choices"), body.get("usage"), body.get("service_tier")
    if (
        type(identifier) is not str
        or type(created) is not int
        or type(model) is not str
        or body.get("object") != "chat.completion"
        or ("service_tier" in body and (type(tier) is not str or not tier))
        or type(usage) is not dict
        or not usage
        or type(choices) is not list
        or len(choices) != 1
        or type(choices[0]) is not dict
    ):
        return None
    choice: dict[str, Any] = choices[0]
    message, reason, index = choice.get("message"), choice.get("finish_reason"), choice.get("index")
    if (
        type(message) is not dict
        or type(reason) is not str
        or not reason
        or index != 0
        or type(index) is not int
        or choice.get("logprobs") is not None
        or not choice.keys() <= _PLAIN_CHOICE
        or not message.keys() <= _PLAIN_MESSAGE
    ):
        return None
    text, notes = message.get("content"), message.get("annotations")
    if (
        type(text) is not str
        or not text
        or message.get("role") != "assistant"
        or message.get("refusal") is not None
        or not (notes is None or (type(notes) is list and not notes))
    ):
        return None
    fields: dict[str, Any] = {}
    for key, value in body.items():
        if key not in _TAKEN:
            if value and is_hollow(value):
                return None
            fields[key] = value
    if "logprobs" in choice:
        fields["choice.logprobs"] = None
    if len(message) > len(("role", "content")):
        for key, value in message.items():
            if key != "role" and key != "content":
                fields[f"message.{key}"] = value
    form: dict[str, Any] = {"native": True}
    if tier and render_tier(parse_tier(tier), True, "", []) != tier:
        form["service_tier"] = tier
    return Response(
        identifier,
        model,
        content=(Text(text),),
        stop=parse_stop(reason, False, False),
        usage=parse_usage(usage),
        created=created,
        service_tier=parse_tier(tier) if tier else "",
        extra=Extra(NAME, fields, form),
    )
