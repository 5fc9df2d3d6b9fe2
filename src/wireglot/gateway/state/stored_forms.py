"""The forms in which conversations lie in the store, and the names of their kinds."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any, Final

import msgspec

from wireglot.ir.content import Message

RESPONSE: Final = "response"
EVENT: Final = "event"
"""Pieces of a response that runs in the background: the bytes of its stream, numbered by its last event."""
CANCEL: Final = "cancel"
REFERENCE: Final = "reference"
"""Which response an item came with, by the item's id, or by what the ids of a request's items begin with."""
CONVERSATION: Final = "conversation"
METADATA: Final = "metadata"
"""Of a conversation, by its part. They change while others write to it, so they are not in it."""
ITEM: Final = "item"
"""Pieces of a part of a conversation."""
PART: Final = "part"
"""Pieces of a conversation: where its items lie. The one with the highest number is current."""
IDEMPOTENT: Final = "idempotent"
LOSSES: Final = "losses"
"""What could not cross of one request, by the request's id: JSON, as its page tells it."""
HISTORY: Final = (RESPONSE, CONVERSATION, ITEM)
"""What a conversation is made of: where one of these cannot be read, it is not reported without it."""

_MAX_KEY: Final = 200


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
    stem: str = ""
    """What the ids that we gave items of `input` have in common (see `items.Stem`)."""
    dialect: str = ""
    """That of the documents, where they are no items."""
    turns: tuple[Message, ...] = ()
    """What was asked and answered in neutral terms, where the documents are no items."""


class KeptConversation(msgspec.Struct, frozen=True, omit_defaults=True):
    """It never changes: who writes it again could bring back one that was deleted meanwhile."""

    id: str
    created: int
    """Unix seconds."""
    part: str
    """Where its items lie, unless they were exchanged: another conversation of this name has another one."""
    dialect: str = ""
    """Of the client that began it."""


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


def now_ms() -> int:
    """The time as the stores keep it: unix milliseconds."""
    return int(time.time() * 1000)


def new_part() -> str:
    return secrets.token_hex(16)


def key_of(id: str) -> str:
    """The name of a client's or provider's item in a store, whose names must not be long. Some providers' ids
    are whole sealed documents."""
    return (
        id if len(id) <= _MAX_KEY else f"#{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    )


# JSON and not MessagePack: clients' numbers may be of any length.
_ENCODER: Final = msgspec.json.Encoder()


def pack(value: msgspec.Struct) -> bytes:
    return _ENCODER.encode(value)
