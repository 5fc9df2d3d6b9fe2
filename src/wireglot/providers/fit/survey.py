"""One look at a request before it is fitted, so that passes with nothing to do are not made.

What it reports holds while the request is fitted: no pass puts anything there that a later one would change.
"""

from __future__ import annotations

from typing import Final

import msgspec

from wireglot.ir.content import Foreign, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot.ir.request import Request, Sampling, Tool
from wireglot.providers.limits import ALL_MEDIA, Limits
from wireglot.wire.known_row import KnownRow


class Survey(msgspec.Struct, frozen=True):
    seen: int
    """What there is, a bit for each."""
    neighbours: bool
    """Whether two turns of one speaker follow each other."""
    markers: int

    def suits(self, limits: Limits) -> bool:
        """Whether no part has to change for an endpoint of these limits."""
        seen = self.seen
        return not (
            seen & (REASONING | SIGNED)
            or limits.reasoning_required
            or (seen & BLANK and not limits.blank_text)
            or (seen & NAMED and not limits.message_names)
            or (
                seen & MEDIA
                and not (
                    limits.media_urls and limits.media == ALL_MEDIA and limits.tool_result_media == "inside"
                )
            )
        )


# What is seen of a message: media and foreign parts inside of results count.
FOREIGN: Final = 1
"""A part of one dialect alone. Notes to its vendor, which are only left out, do not count."""
REASONING: Final = 2
MEDIA: Final = 4
SIGNED: Final = 8
"""A call carries reasoning state."""
BLANK: Final = 16
"""A turn of nothing, or a text of nothing but white space."""
FIELDS: Final = 32
"""A message or a part of one has fields of its dialect alone."""
NAMED: Final = 64
CALLS: Final = 128
MIDWAY: Final = 256
"""A system text after the first turn."""

# What else a request asks for.
NO_LIMIT: Final = 512
"""A negative number of tokens."""
OWN_FIELDS: Final = 1024
"""The request has fields of its dialect alone."""
SETTING_FIELDS: Final = 2048
"""A setting or a tool has."""
TOOLS: Final = 4096
CHOICE: Final = 8192
STOP: Final = 16384
SAMPLING: Final = 32768
OUTPUT: Final = 65536
MARKED: Final = 131072
"""The request or a tool has a mark of the cache."""

_MARKER: Final = 1 << 20
"""One mark of the cache; their number stands above all else."""

_KINDS: Final[dict[type, int]] = {Foreign: FOREIGN, Reasoning: REASONING, Media: MEDIA}

_NO_SAMPLING: Final = Sampling()
_SURVEY = "survey"
_NOTHING = Survey(0, neighbours=False, markers=0)


def survey(messages: tuple[Message, ...], row: KnownRow | None = None) -> Survey:
    """`row`: the first of these messages, where they came before."""
    if row is None:
        return _behind(_NOTHING, messages)
    settled = len(row.values)
    start, found = row.reached(_SURVEY) or (0, _NOTHING)
    if start < settled:
        found = _behind(found, messages[start:settled], messages[start - 1].role if start else "")
        row.settle(_SURVEY, found)
    return _behind(found, messages[settled:], messages[settled - 1].role)


def _behind(found: Survey, messages: tuple[Message, ...], speaker: str = "") -> Survey:
    """With more messages behind those of `speaker` at the end."""
    seen, neighbours, markers = found.seen, found.neighbours, found.markers
    for message in messages:
        if message.role == speaker != "system":
            neighbours = True
        elif message.role == "system" and speaker and speaker != "system":
            seen |= MIDWAY
        speaker = message.role
        look = _look(message)
        if look:
            seen |= look % _MARKER
            markers += look // _MARKER
    return Survey(seen, neighbours, markers)


def asks(request: Request) -> int:
    """What a request asks for beside its conversation."""
    seen = 0
    if request.max_tokens is not None and request.max_tokens < 0:
        seen |= NO_LIMIT
    if request.extra is not None and request.extra.fields:
        seen |= OWN_FIELDS
    if request.tool_choice is not None or request.parallel_tools is not None:
        seen |= CHOICE
    if request.stop:
        seen |= STOP
    if request.output is not None:
        seen |= OUTPUT
    if request.cache is not None:
        seen |= MARKED
    if request.sampling != _NO_SAMPLING:
        seen |= SAMPLING
    for setting in (request.thinking, request.output, request.tool_choice):
        if setting is not None and setting.extra is not None and setting.extra.fields:
            seen |= SETTING_FIELDS
    for tool in request.tools:
        seen |= TOOLS
        if type(tool) is Tool:
            if tool.cache is not None:
                seen |= MARKED
            if tool.extra is not None and tool.extra.fields:
                seen |= SETTING_FIELDS
    return seen


def _look(message: Message) -> int:
    content = message.content
    seen = NAMED if message.name else 0
    if not content:
        seen |= BLANK
    extra = message.extra
    if extra is not None and extra.fields:
        seen |= FIELDS
        if extra.fields.get("content") == "":
            seen |= BLANK
    markers = 0
    for part in content:
        if type(part) is Text:
            if not part.text or part.text.isspace():
                seen |= BLANK
        elif type(part) is ToolCall:
            seen |= CALLS if part.signature is None else CALLS | SIGNED
        elif type(part) is ToolResult:
            for item in part.content:
                if type(item) is not Text:
                    seen |= _KINDS[type(item)]
                if type(item) is not Foreign and item.extra is not None and item.extra.fields:
                    seen |= FIELDS
        elif type(part) is Foreign:
            if not part.for_vendor:
                seen |= FOREIGN
            continue
        else:
            seen |= _KINDS[type(part)]
        if part.extra is not None and part.extra.fields:
            seen |= FIELDS
        if type(part) is not Reasoning and part.cache is not None:
            markers += _MARKER
    return seen + markers
