"""A single pass over a request before it is fitted, to find out which passes have anything to do.

A bit is set if there may be something of its kind. It stays valid while the request is fitted: no pass adds
anything that a later pass would change.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from wireglot_core.ir.content import Foreign, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot_core.ir.request import Request, Sampling, Thinking, Tool
from wireglot_core.providers.limits import Limits
from wireglot_core.wire.cache import KnownTurns, fold

ALWAYS: Final = 1

# Findings about messages: media and foreign parts inside results count.
FOREIGN: Final = 1 << 1
"""A part of one dialect alone. Notes to its vendor, which are simply left out, do not count."""
REASONING: Final = 1 << 2
MEDIA: Final = 1 << 3
SIGNED: Final = 1 << 4
"""A call carries reasoning state."""
BLANK: Final = 1 << 5
"""An empty turn, or a text of white space only."""
FIELDS: Final = 1 << 6
"""A message or a part of one has fields of its dialect alone."""
NAMED: Final = 1 << 7
CALLS: Final = 1 << 8
RESULTS: Final = 1 << 9
ODD_CALLS: Final = 1 << 10
"""A call of a kind, a namespace or a name that the endpoint does not accept."""
ODD_IDS: Final = 1 << 11
"""A call with an id that the endpoint does not accept."""
NO_IDS: Final = 1 << 12
"""A call or a result whose id was left out or empty."""
ROLES: Final = 1 << 13
"""A message whose role has several spellings in its dialect."""
MARKED_PARTS: Final = 1 << 14
"""A part has a cache marker."""
MIDWAY: Final = 1 << 15
"""A system text after the first turn."""
NEIGHBOURS: Final = 1 << 16
"""Two turns of one speaker follow each other."""
UNOPENED: Final = 1 << 17
"""The first turn may not be the user's."""
ANSWERED: Final = 1 << 18
"""The last turn is the model's."""

# Other contents of a request.
NO_LIMIT: Final = 1 << 19
"""A negative number of tokens."""
OWN_FIELDS: Final = 1 << 20
"""The request has fields of its dialect alone."""
SETTING_FIELDS: Final = 1 << 21
"""A setting or a tool has."""
TOOLS: Final = 1 << 22
CHOICE: Final = 1 << 23
STOP: Final = 1 << 24
SAMPLING: Final = 1 << 25
OUTPUT: Final = 1 << 26
MARKED: Final = 1 << 27
"""The request or a tool has a cache marker."""
THINKING: Final = 1 << 28

# Set while the request is fitted.
CHANGED: Final = 1 << 29
"""The messages are not those that were surveyed."""
LOST: Final = 1 << 30

DEFERRED: Final = 1 << 31
"""A tool that the model must not see before a search has found it."""

_MARKER: Final = 1 << 32
"""Added for each cache marker; their number is in the bits from here up."""

_KINDS: Final[dict[type, int]] = {Foreign: FOREIGN, Reasoning: REASONING, Media: MEDIA}

_NO_SAMPLING: Final = Sampling()
_NO_THINKING: Final = Thinking()


class CallRules(NamedTuple):
    """Which calls an endpoint accepts unchanged."""

    custom: bool
    namespaces: bool
    name: re.Pattern[str] | None
    name_max: int
    id: re.Pattern[str] | None
    id_max: int
    id_by_place: bool
    """All ids are replaced."""

    @classmethod
    def of(cls, limits: Limits) -> CallRules:
        return cls(
            custom=limits.custom_tools,
            namespaces=limits.namespaces,
            name=re.compile(limits.tool_name) if limits.tool_name else None,
            name_max=limits.tool_name_max,
            id=re.compile(limits.call_id) if limits.call_id else None,
            id_max=limits.call_id_max,
            id_by_place=limits.call_ids != "keep",
        )

    def refuses_name(self, name: str) -> bool:
        return len(name) > self.name_max or (self.name is not None and not self.name.fullmatch(name))

    def refuses_id(self, identifier: str) -> bool:
        return bool(self.id_max and len(identifier) > self.id_max) or (
            self.id is not None and not self.id.fullmatch(identifier)
        )

    def look(self, call: ToolCall) -> int:
        """The findings about a call. Conversations are full of calls, so both rules are inlined here."""
        custom, namespaces, pattern, longest, id_pattern, id_longest, by_place = self
        seen = CALLS if call.signature is None else CALLS | SIGNED
        if (
            len(call.name) > longest
            or (pattern is not None and pattern.fullmatch(call.name) is None)
            or (call.kind == "custom" and not custom)
            or (call.namespace and not namespaces)
        ):
            seen |= ODD_CALLS
        if (
            by_place
            or (id_longest and len(call.id) > id_longest)
            or (id_pattern is not None and id_pattern.fullmatch(call.id) is None)
        ):
            seen |= ODD_IDS
        return seen


class Survey(NamedTuple):
    seen: int = 0
    """Bits of all findings."""
    markers: int = 0
    """Number of cache markers."""
    speaker: str = ""
    """The role of the last turn."""


_NOTHING: Final = Survey()


def survey(messages: tuple[Message, ...], rules: CallRules, row: KnownTurns | None = None) -> Survey:
    """`row`: the first of these messages, if they are known from before."""

    def behind(found: Survey, more: tuple[Message, ...]) -> Survey:
        seen, markers, speaker = found
        for message in more:
            role = message.role
            if role == "system":
                if speaker and speaker != "system":
                    seen |= MIDWAY
            elif role == speaker:
                seen |= NEIGHBOURS
            elif speaker in ("", "system") and not seen & MIDWAY and not _opens(message):
                seen |= UNOPENED
            speaker = role
            look = _look(message, rules)
            if look:
                seen |= look % _MARKER
                markers += look // _MARKER
        return Survey(seen, markers, speaker)

    found = fold(row, messages, rules, _NOTHING, behind)
    seen = found.seen
    if found.markers:
        seen |= MARKED_PARTS
    if found.speaker == "assistant":
        seen |= ANSWERED
    elif found.speaker != "user":
        seen |= UNOPENED
    return found._replace(seen=seen)


def _opens(message: Message) -> bool:
    """Whether the message is certainly a turn of the user: parts of another dialect alone may be empty."""
    return message.role == "user" and not (message.content and type(message.content[0]) is Foreign)


def asks(request: Request) -> int:
    """The contents of a request other than its conversation."""
    seen = ALWAYS
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
    if request.thinking != _NO_THINKING:
        seen |= THINKING
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
            if tool.deferred:
                seen |= DEFERRED
    return seen


def _look(message: Message, rules: CallRules) -> int:
    content = message.content
    seen = NAMED if message.name else 0
    if not content:
        seen |= BLANK
    extra = message.extra
    if extra is not None:
        if extra.fields:
            seen |= FIELDS
            if extra.fields.get("content") == "":
                seen |= BLANK
        if "role" in extra.form:
            seen |= ROLES
    markers = 0
    for part in content:
        if type(part) is Text:
            if not part.text or part.text.isspace():
                seen |= BLANK
        elif type(part) is ToolCall:
            seen |= rules.look(part)
        elif type(part) is ToolResult:
            seen |= RESULTS
            for item in part.content:
                if type(item) is Text:
                    if item.extra is not None and item.extra.fields:
                        seen |= FIELDS
                    continue
                seen |= _KINDS[type(item)]
                if type(item) is Media and item.extra is not None and item.extra.fields:
                    seen |= FIELDS
        elif type(part) is Foreign:
            if not part.for_vendor:
                seen |= FOREIGN
            continue
        else:
            seen |= _KINDS[type(part)]
        extra = part.extra
        if extra is not None:
            if extra.fields:
                seen |= FIELDS
            if "id" in extra.form or "no_id" in extra.form or "id" in extra.fields:
                seen |= NO_IDS
        if type(part) is not Reasoning and part.cache is not None:
            markers += _MARKER
    return seen + markers
