"""A stream of server-sent events cut into frames, with all that a lenient reader would overlook."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.wire.json import BadJson, decode


class Frame(msgspec.Struct, frozen=True):
    """`lines`: those that are neither an event's name nor data: comments, ids, retry times."""

    event: str
    data: str
    lines: tuple[str, ...] = ()
    spaced: bool = True
    """Whether a space stands behind each `data:`, without which one vendor's SDK reads nothing."""

    def document(self) -> Any:
        """None where it is no JSON."""
        try:
            return decode(self.data.encode())
        except BadJson:
            return None


def frames_of(body: bytes) -> list[Frame]:
    """What stands behind the last blank line is a frame too."""
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return [_frame(block) for block in text.split("\n\n") if block.strip("\n")]


def _frame(block: str) -> Frame:
    event, data, others, spaced = "", [], [], True
    for line in block.strip("\n").split("\n"):
        name, colon, value = line.partition(":")
        if name == "data" and colon:
            spaced = spaced and value.startswith(" ")
            data.append(value.removeprefix(" "))
        elif name == "event" and colon:
            event = value.strip()
        else:
            others.append(line)
    return Frame(event, "\n".join(data), tuple(others), spaced)
