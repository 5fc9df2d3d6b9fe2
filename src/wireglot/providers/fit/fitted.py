"""What fitting comes to: the whole request, or a list of tools that is used again."""

from __future__ import annotations

import msgspec

from wireglot.ir.loss import Loss
from wireglot.ir.request import AnyTool, Request
from wireglot.ir.trail import Trail
from wireglot.providers.aliases import Aliases


class Fitted(msgspec.Struct, frozen=True):
    request: Request
    aliases: Aliases
    trail: Trail
    losses: tuple[Loss, ...]


class Undisguised(msgspec.Struct, frozen=True):
    """Tools that an endpoint takes under their own names, with nothing to tell about any of them."""

    tools: tuple[AnyTool, ...]
    owners: dict[str, tuple[str, str]]
    changed: tuple[tuple[AnyTool, AnyTool], ...]
