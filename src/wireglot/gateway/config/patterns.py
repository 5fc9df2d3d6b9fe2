"""Names with `*`, which stands for any text. The text is a client's, so no pattern takes longer than its text
is long; a regular expression with several `.*` does."""

from __future__ import annotations


def caught(pattern: str, text: str) -> tuple[str, ...] | None:
    """What each `*` stands for, the first of them for as much as it can; None where the text does not fit."""
    first, *middle = pattern.split("*")
    if not middle:
        return () if text == pattern else None
    last = middle.pop()
    start, end = len(first), len(text) - len(last)
    if start > end or not text.startswith(first) or not text.endswith(last):
        return None
    found: list[str] = []
    for piece in reversed(middle):
        at = text.rfind(piece, start, end)
        if at < 0:
            return None
        found.append(text[at + len(piece) : end])
        end = at
    return (text[start:end], *reversed(found))
