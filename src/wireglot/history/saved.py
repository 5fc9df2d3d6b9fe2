"""A conversation as JSON and back, with nothing lost. The version is the document's, not the program's."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.ir.content import Message
from wireglot.ir.errors import WireglotError
from wireglot.wire.json import BadJson, decode, encode

VERSION: Final = 1


class BadHistory(WireglotError):
    """The document is no saved history, or one that this version cannot read."""

    code = "BAD_HISTORY"


class Saved(msgspec.Struct, frozen=True):
    """`turns` counts everything ever said, also what was cut: made-up ids must not come again."""

    wireglot_history: int
    turns: int
    messages: tuple[Message, ...]


def dump(messages: tuple[Message, ...], turns: int) -> bytes:
    return encode(Saved(VERSION, turns, messages))


def load(data: bytes | str) -> Saved:
    try:
        document: Any = decode(data)
    except BadJson as problem:
        raise BadHistory(f"not JSON: {problem}") from None
    version = document.get("wireglot_history") if isinstance(document, dict) else None
    if type(version) is not int:
        raise BadHistory("expected a saved history", "$.wireglot_history")
    if version != VERSION:
        raise BadHistory(f"version {version}: this release reads version {VERSION}", "$.wireglot_history")
    try:
        return msgspec.convert(document, Saved)
    except msgspec.ValidationError as problem:
        reason, _, path = str(problem).partition(" - at ")
        raise BadHistory(reason, path.strip("`") or "$") from None
