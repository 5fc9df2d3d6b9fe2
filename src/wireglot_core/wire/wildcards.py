"""Names with `*`, which matches any text. The text comes from a client, so matching takes time linear in its
length; a regular expression with several `.*` does not."""

from __future__ import annotations


def caught(pattern: str, text: str) -> tuple[str, ...] | None:
    """What each `*` matches, the first one as much as it can; None if the text does not match."""
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
