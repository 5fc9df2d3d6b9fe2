"""The forms in which conversations lie in the store, and the names of their kinds."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from wireglot.ir.content import Message

RESPONSE: Final = "response"
EVENT: Final = "event"
"""Pieces of a response that runs in the background: the bytes of its stream, numbered by its last event."""
CANCEL: Final = "cancel"
REFERENCE: Final = "reference"
"""Which response an item came with, by the item's id."""
CONVERSATION: Final = "conversation"
ITEM: Final = "item"
"""Pieces of a conversation."""
IDEMPOTENT: Final = "idempotent"


class KeptResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """`body` is what GET answers. `input` are the items that this request brought, each with an id; what came
    before it is in its `ancestors` (response ids, the oldest first) or in its conversation."""

    body: dict[str, Any]
    input: list[dict[str, Any]] = []
    ancestors: tuple[str, ...] = ()
    conversation: str = ""
    background: bool = False
    stream: bool = False
    """Made in the background for a client that wants its stream: its events are kept too."""
    instance: str = ""
    """The process that works on it, while it does."""
    beat: int = 0
    """When that process last said so (unix milliseconds)."""


class KeptConversation(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    created: int
    """Unix seconds."""
    metadata: dict[str, str] = {}
    dialect: str = ""
    """Of the client that began it."""
    first: int = 0
    """The number of its first item: earlier ones were exchanged for these, and are being removed."""


class KeptItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of a conversation, so that any dialect can go on with it: in the words of the Responses
    dialect where its client spoke that, else in neutral terms."""

    id: str
    item: dict[str, Any] | None = None
    message: Message | None = None
    joined: bool = False
    """It is a piece of the message before it."""
    response: str = ""
    """The response that it came with."""


# JSON and not MessagePack: clients' numbers may be of any length.
_ENCODER: Final = msgspec.json.Encoder()


def pack(value: msgspec.Struct) -> bytes:
    return _ENCODER.encode(value)
