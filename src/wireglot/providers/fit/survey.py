"""One look at a conversation before it is fitted, so that passes with nothing to do are not made.

What it tells holds while the request is fitted: no pass puts anything there that a later one would change.
"""

from __future__ import annotations

import msgspec

from wireglot.ir.content import Foreign, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot.providers.limits import ALL_MEDIA, Limits
from wireglot.wire.known_row import KnownRow
from wireglot.wire.memory import Memory


class Survey(msgspec.Struct, frozen=True):
    kinds: frozenset[type]
    """The kinds of parts there are; media inside of results count."""
    neighbours: bool
    """Whether two turns of one speaker follow each other."""
    named: bool
    signed: bool
    """Whether a call carries reasoning state."""
    blank: bool
    """Whether there is a turn of nothing, or a text of nothing but white space."""
    markers: int
    fields: bool
    """Whether a message or a part of one has fields of its dialect alone."""

    def suits(self, limits: Limits) -> bool:
        """Whether no part has to change for an endpoint of these limits."""
        kinds = self.kinds
        return not (
            Reasoning in kinds
            or self.signed
            or limits.reasoning_required
            or (self.blank and not limits.blank_text)
            or (self.named and not limits.message_names)
            or (
                Media in kinds
                and not (
                    limits.media_urls and limits.media == ALL_MEDIA and limits.tool_result_media == "inside"
                )
            )
        )


class _Look(msgspec.Struct, frozen=True):
    """The same of one message."""

    kinds: frozenset[type]
    signed: bool
    blank: bool
    markers: int
    fields: bool


_LOOK = "survey"
_SURVEY = "survey"


_NOTHING = Survey(
    kinds=frozenset(), neighbours=False, named=False, signed=False, blank=False, markers=0, fields=False
)


def survey(
    messages: tuple[Message, ...], memory: Memory | None = None, row: KnownRow | None = None
) -> Survey:
    """`row`: the first of these messages, where they came before."""
    if row is None:
        return _behind(_NOTHING, messages, memory)
    settled = len(row.values)
    start, found = row.reached(_SURVEY) or (0, _NOTHING)
    if start < settled:
        found = _behind(found, messages[start:settled], memory, messages[start - 1].role if start else "")
        row.settle(_SURVEY, found)
    return _behind(found, messages[settled:], memory, messages[settled - 1].role)


def _behind(found: Survey, messages: tuple[Message, ...], memory: Memory | None, speaker: str = "") -> Survey:
    """With more messages behind those of `speaker` at the end."""
    kinds = set(found.kinds)
    neighbours, named, signed, blank = found.neighbours, found.named, found.signed, found.blank
    fields, markers = found.fields, found.markers
    for message in messages:
        if message.role == speaker != "system":
            neighbours = True
        speaker = message.role
        if message.name:
            named = True
        look: _Look | None = memory.find(message, _LOOK) if memory is not None else None
        if look is None:
            look = _look(message)
            if memory is not None:
                memory.keep(message, _LOOK, look)
        kinds |= look.kinds
        if look.signed:
            signed = True
        if look.blank:
            blank = True
        if look.fields:
            fields = True
        markers += look.markers
    return Survey(
        kinds=frozenset(kinds),
        neighbours=neighbours,
        named=named,
        signed=signed,
        blank=blank,
        markers=markers,
        fields=fields,
    )


_ONE_TEXT = _Look(frozenset({Text}), signed=False, blank=False, markers=0, fields=False)


def _look(message: Message) -> _Look:
    content = message.content
    if len(content) == 1 and message.extra is None:  # as most are
        part = content[0]
        if (
            type(part) is Text
            and part.extra is None
            and part.cache is None
            and part.text
            and not part.text.isspace()
        ):
            return _ONE_TEXT
    kinds: set[type] = set()
    extra = message.extra
    signed = fields = False
    blank = not content
    if extra is not None and extra.fields:
        fields = True
        blank = blank or extra.fields.get("content") == ""
    markers = 0
    for part in content:
        kinds.add(type(part))
        if type(part) is Foreign:
            continue
        if part.extra is not None and part.extra.fields:
            fields = True
        if type(part) is Reasoning:
            continue
        if type(part) is Text:
            if not part.text or part.text.isspace():
                blank = True
        elif type(part) is ToolCall:
            if part.signature is not None:
                signed = True
        elif type(part) is ToolResult:
            for item in part.content:
                if type(item) is not Text:
                    kinds.add(type(item))
                if type(item) is not Foreign and item.extra is not None and item.extra.fields:
                    fields = True
        if part.cache is not None:
            markers += 1
    return _Look(frozenset(kinds), signed, blank, markers, fields)
