"""Prompt-cache markers: limited in number; the last ones are kept, since they cover most of the prompt."""

from __future__ import annotations

import msgspec

from wireglot_core.dialects.fields import own_form
from wireglot_core.ir.content import CacheMark, Extra, Foreign, Message, Part, Reasoning
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import HostedTool, Request, Tool
from wireglot_core.providers.fit.fitting import Fitting
from wireglot_core.providers.limits import Limits


def fit_cache_markers(request: Request, fitting: Fitting) -> Request:
    """Keeps the maximum number of markers: the first ones are dropped."""
    limits, losses, trail = fitting.limits, fitting.losses, fitting.trail
    elsewhere = _count_elsewhere(request)
    if fitting.markers + elsewhere <= limits.cache_markers:
        return request
    # If none is accepted, all of them are dropped, and they need not be counted first.
    surplus = fitting.markers + elsewhere
    if limits.cache_markers:
        surplus = _count(request.messages) + elsewhere - limits.cache_markers
    if surplus <= 0:
        return request
    # In the order the prompt is built: tools, system and turns. The automatic marker is the last of all.
    dropped = 0
    stated = request.tools
    tools = list(stated)
    for index, tool in enumerate(stated):
        if dropped < surplus and type(tool) is not HostedTool and tool.cache is not None:
            dropped += 1
            losses.append(_loss(trail.of(tool), limits))
            tools[index] = msgspec.structs.replace(tool, cache=None)
            trail.follow(tool, tools[index])
    if dropped:
        stated = tuple(tools)
    messages = list(request.messages)
    for index, message in enumerate(messages):
        if dropped == surplus:
            break
        marked = _marked(message)
        if not marked:
            continue
        content = list(message.content)
        for position in marked[: surplus - dropped]:
            part = content[position]
            losses.append(_loss(trail.of(part), limits))
            content[position] = msgspec.structs.replace(part, cache=None)
            trail.follow(part, content[position])
        dropped += len(marked[: surplus - dropped])
        messages[index] = Message(message.role, tuple(content), message.name, message.extra)
        trail.follow(message, messages[index])
    cache = request.cache
    if dropped < surplus and cache is not None:
        losses.append(_loss("$", limits))
        cache = None
    elif not dropped:
        return request
    return msgspec.structs.replace(request, tools=stated, messages=tuple(messages), cache=cache)


def respell_markers(request: Request, fitting: Fitting) -> Request:
    """Renames the markers of the conversation to the endpoint's field."""
    field, dialect = fitting.limits.marker_field, fitting.dialect

    def respelled(part: Part) -> Part:
        if isinstance(part, Foreign | Reasoning) or part.cache is None:
            return part
        if own_form(part.cache.extra, dialect).get("key") == field:
            return part
        raw = {"type": "ephemeral"}
        if part.cache.ttl:
            raw["ttl"] = "1h" if part.cache.ttl == "long" else "5m"
        mark = CacheMark(part.cache.ttl, Extra(dialect, {}, {"key": field, "raw": raw}))
        return msgspec.structs.replace(part, cache=mark)

    messages = fitting.trail.changed_parts(request.messages, respelled)
    return msgspec.structs.replace(request, messages=messages)


def _loss(path: str, limits: Limits) -> Loss:
    detail = f"at most {limits.cache_markers} are taken" if limits.cache_markers else "none are taken"
    return Loss(f"{path}.cache", "cache_marker", "dropped", detail)


def _count_elsewhere(request: Request) -> int:
    count = 0 if request.cache is None else 1
    for tool in request.tools:
        if type(tool) is Tool and tool.cache is not None:
            count += 1
    return count


def _count(messages: tuple[Message, ...]) -> int:
    return sum([len(_marked(message)) for message in messages])


def _marked(message: Message) -> list[int]:
    """The positions of the parts that have a marker."""
    return [
        position
        for position, part in enumerate(message.content)
        if type(part) is not Foreign and type(part) is not Reasoning and part.cache is not None
    ]
