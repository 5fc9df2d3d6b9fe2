"""Reasoning of several parts as one text, and back.

An item lists its parts, the IR has one text: the parts that say something, joined by a blank line. In a
stream of this dialect a delta that is nothing but that blank line is the seam between two parts; one the
model wrote itself never stands alone in a delta (`spoken` cuts it in two).
"""

from __future__ import annotations

from typing import Any

SEAM = "\n\n"


def texts_of(entries: Any) -> list[str]:
    """The texts of a summary or content list."""
    if type(entries) is not list:
        return []
    return [entry["text"] for entry in entries if type(entry) is dict and type(entry.get("text")) is str]


def joined(entries: Any) -> str:
    """The whole text of a list; empty parts leave no blank lines."""
    return SEAM.join(filter(None, texts_of(entries)))


def spoken(text: str) -> tuple[str, ...]:
    """The deltas for text of one part."""
    return ("\n", "\n") if text == SEAM else (text,)


def pieces(entries: Any, sent: str = "") -> list[str]:
    """The deltas for all parts of a list behind what was sent of it; nothing if that was other text."""
    if not joined(entries).startswith(sent):
        return []
    out: list[str] = []
    end = 0
    for number, text in enumerate(filter(None, texts_of(entries))):
        for piece, is_seam in ((SEAM, True), (text, False)) if number else ((text, False),):
            new = piece[max(len(sent) - end, 0) :]
            end += len(piece)
            if new:
                out += (new,) if is_seam else spoken(new)
    return out
