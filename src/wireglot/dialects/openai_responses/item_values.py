"""What reading an item can come to beside a part of the IR."""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot.dialects.envelope import Holder
from wireglot.ir.content import Foreign, Media, Role, Signature, Text


class Carried(msgspec.Struct, frozen=True):
    """A reasoning item that is none: it only brought back the signature of a neighbouring part."""

    signature: Signature
    holder: Holder


class MessageItem(msgspec.Struct, frozen=True):
    """A message item. `form` and `fields` are what an `Extra` of it would hold."""

    role: Role
    parts: tuple[Text | Media | Foreign, ...]
    form: dict[str, Any]
    fields: dict[str, Any]
