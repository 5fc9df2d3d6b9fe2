"""One look at a conversation before it is fitted, so that passes with nothing to do are not made.

What it tells holds while the request is fitted: no pass puts anything there that a later one would change.
"""

from __future__ import annotations

import msgspec

from wireglot.ir.content import Foreign, Media, Message, Reasoning, Text, ToolCall, ToolResult
from wireglot.providers.limits import ALL_MEDIA, Limits


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


def survey(messages: tuple[Message, ...]) -> Survey:
    kinds: set[type] = set()
    neighbours = named = signed = blank = False
    markers = 0
    speaker = ""
    for message in messages:
        if message.role == speaker != "system":
            neighbours = True
        speaker = message.role
        if message.name:
            named = True
        if not message.content or (message.extra is not None and message.extra.fields.get("content") == ""):
            blank = True
        for part in message.content:
            kinds.add(type(part))
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
            elif isinstance(part, Foreign | Reasoning):
                continue
            if part.cache is not None:
                markers += 1
    return Survey(
        kinds=frozenset(kinds),
        neighbours=neighbours,
        named=named,
        signed=signed,
        blank=blank,
        markers=markers,
    )
