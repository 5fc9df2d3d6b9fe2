"""The stored forms of conversations, and the names of their kinds."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any, Final

import msgspec

from wireglot_core.ir.content import Message

RESPONSE: Final = "response"
EVENT: Final = "event"
"""Pieces of a response that runs in the background: the bytes of its stream, numbered by its last event."""
CANCEL: Final = "cancel"
REFERENCE: Final = "reference"
"""Which response an item came with, by the item's id, or by the common stem of the ids of a request's
items."""
CONVERSATION: Final = "conversation"
METADATA: Final = "metadata"
"""Of a conversation, by its part. They change while other requests write to the conversation, so they are
stored separately."""
ITEM: Final = "item"
"""Pieces of a part of a conversation."""
PART: Final = "part"
"""Pieces of a conversation: the parts of its items. The one with the highest number is current."""
IDEMPOTENT: Final = "idempotent"
LOSSES: Final = "losses"
"""What of a request was lost in translation, by the request's id: JSON, as its page reports it."""
HISTORY: Final = (RESPONSE, CONVERSATION, ITEM)
"""The kinds that make up a conversation: if one of these cannot be read, it is not reported without it."""

# Characters of an id as a key of the store; of a longer one its hash is used.
_MAX_KEY: Final = 200


class KeptResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """`body` is the answer to GET. `input` are the items of this request, each with an id; what came before
    it is in its `ancestors` (response ids, the oldest first) or in its conversation."""

    body: dict[str, Any]
    input: list[dict[str, Any]] = []
    ancestors: tuple[str, ...] = ()
    conversation: str = ""
    background: bool = False
    stream: bool = False
    """Made in the background for a client that wants its stream: its events are stored too."""
    instance: str = ""
    """The process that works on it, while it does."""
    stem: str = ""
    """The common stem of the ids that we gave items of `input` (see `items.Stem`)."""
    dialect: str = ""
    """The dialect of the documents, if they are not items."""
    turns: tuple[Message, ...] = ()
    """Request and answer in neutral terms, if the documents are not items."""


class KeptConversation(msgspec.Struct, frozen=True, omit_defaults=True):
    """It never changes: writing it again could restore one that was deleted meanwhile."""

    id: str
    created: int
    """Unix seconds."""
    part: str
    """The part of its items, until they are replaced: another conversation of this name has another one."""
    dialect: str = ""
    """The dialect of the client that began it."""


class KeptItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of a conversation, in a form with which any dialect can continue it: that of the Responses
    dialect if its client spoke that, else in neutral terms."""

    id: str
    item: dict[str, Any] | None = None
    message: Message | None = None
    joined: bool = False
    """Whether it is a piece of the message before it."""
    response: str = ""
    """The response that it came with."""


def now_ms() -> int:
    """The time as the stores keep it: unix milliseconds."""
    return int(time.time() * 1000)


def new_part() -> str:
    return secrets.token_hex(16)


def key_of(id: str) -> str:
    """The store's name for a client's or provider's item, since names must not be long. Some providers' ids
    are whole sealed documents."""
    return (
        id if len(id) <= _MAX_KEY else f"#{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()}"
    )


# JSON, not MessagePack: clients' numbers may be of any length.
_ENCODER: Final = msgspec.json.Encoder()


def pack(value: msgspec.Struct) -> bytes:
    return _ENCODER.encode(value)
