"""State that the passes of `fit` share: the endpoint, the request being fitted, and the results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias

import msgspec

from wireglot_core.dialects.context import Context
from wireglot_core.dialects.registry import surface
from wireglot_core.dialects.surface import Surface
from wireglot_core.ir.content import Message, Part
from wireglot_core.ir.loss import Action, Feature, Loss
from wireglot_core.ir.request import Request
from wireglot_core.ir.trail import Trail
from wireglot_core.ir.turns import joined, still_paired
from wireglot_core.providers.aliases import NO_ALIASES, Aliases
from wireglot_core.providers.emulation import Emulation
from wireglot_core.providers.fit.survey import CallRules, asks, survey
from wireglot_core.providers.limits import Limits
from wireglot_core.wire.cache import fold

_PLACE_BYTES: Final = 64
"""Estimated size of a message in a joined turn; its parts are held with it, wherever it came from."""
_CHANGED_BYTES: Final = 512
"""Estimated size of a changed message."""
_PART_BYTES: Final = 256
"""Estimated size of a part in it: mostly another copy of the same text."""

_Pairing: TypeAlias = tuple[list[str], set[str]] | None
"""The calls without a result so far, and all calls; None: some call and its result do not pair."""


class Fitted(msgspec.Struct, frozen=True):
    request: Request
    aliases: Aliases
    trail: Trail
    losses: tuple[Loss, ...]
    emulation: Emulation | None = None
    """What to change in the answer, if anything."""


class FitTarget(msgspec.Struct, frozen=True, eq=False):
    """An endpoint, for the clients of one dialect."""

    limits: Limits
    server: Surface
    """The surface of the family that the endpoint's dialect belongs to."""
    foreign: bool
    """Whether requests come from another dialect."""
    in_pieces: bool
    """Whether clients send answers back in the pieces of their stream."""
    client: Surface | None
    """The surface of the clients' dialect, if known."""
    rules: CallRules

    @classmethod
    def of(
        cls,
        limits: Limits,
        dialect: str,
        *,
        foreign: bool = True,
        in_pieces: bool = False,
        client: Surface | None = None,
    ) -> FitTarget:
        if not foreign and not limits.media_urls:
            # Nothing is translated, so a media URL is sent to the provider as its own dialect wrote it.
            limits = msgspec.structs.replace(limits, media_urls=True)
        return cls(limits, surface(dialect), foreign, in_pieces, client, CallRules.of(limits))

    @property
    def has_variants(self) -> bool:
        """Whether the limits define how fields are spelled."""
        return self.server.upstream is not None and self.server.upstream.has_variants


class Fitting:
    """One request while it is fitted."""

    __slots__ = (
        "_known",
        "_row",
        "aliases",
        "asked",
        "context",
        "dialect",
        "emulation",
        "foreign",
        "limits",
        "losses",
        "markers",
        "memory",
        "seen",
        "target",
        "trail",
    )

    def __init__(self, request: Request, target: FitTarget, context: Context) -> None:
        self.target: Final = target
        self.limits: Final = target.limits
        self.dialect: Final = target.server.family
        self.foreign: Final = target.foreign
        self.context: Final = context
        self.losses: Final[list[Loss]] = []
        self.trail: Final = Trail(request)
        self.aliases = NO_ALIASES
        self.emulation: Emulation | None = None
        self.asked: Final = request.thinking
        self.settle(request.messages)
        found = survey(request.messages, target.rules, self._row)
        self.seen = found.seen | asks(request)
        self.markers: Final = found.markers
        """Upper bound for the number of cache markers in the conversation."""

    def emulate(self, **what: Any) -> None:
        """Add a change to the answer, by its field in `Emulation`."""
        self.emulation = msgspec.structs.replace(self.emulation or Emulation(), **what)

    def lose(self, path: str, feature: Feature, action: Action, detail: str) -> None:
        self.losses.append(Loss(path, feature, action, detail))

    def settle(self, messages: tuple[Message, ...]) -> None:
        """Look up what is known of these messages: known ones are not processed again."""
        memory = self.context.memory
        self._known = messages
        self.memory = memory.for_turns(messages) if memory is not None else None
        """The cache, if some of the messages are known."""
        self._row = self.memory.row(messages) if self.memory is not None else None

    def is_paired(self, messages: tuple[Message, ...]) -> bool:
        row = self._row if messages is self._known else None
        nothing: _Pairing = ([], set())
        return fold(row, messages, "paired", nothing, _pair) is not None

    def join(self, turn: list[Message]) -> Message:
        """Join several messages into one; returns the same object for messages that were joined before."""
        if self.memory is None:
            return joined(turn)
        # The whole turn at once: caching every prefix of a long one would take quadratic memory.
        first, *others = turn
        key = ("joined", *map(id, others))
        found: tuple[list[Message], Message] | None = self.memory.find(first, key)
        if found is not None and all(map(operator.is_, found[0], others)):
            return found[1]
        whole = joined(turn)
        if all(map(self.memory.is_known, others)):
            size = _PLACE_BYTES * (len(turn) + len(whole.content))
            self.memory.keep(first, key, (others, whole), size, shared=whole)
        return whole

    def changed(
        self, message: Message, key: Hashable, change: Callable[[Message], tuple[Part, ...]]
    ) -> Message:
        """The message with each part changed; returns the same object for a known message, so that its
        rendering is found, too. `key`: everything else that the change depends on."""
        memory = self.memory
        new: Message | None = memory.find(message, key) if memory is not None else None
        if new is None:
            content = change(message)
            new = Message(message.role, content, message.name, message.extra)
            if memory is not None:
                size = _CHANGED_BYTES + _PART_BYTES * len(content)
                memory.keep(message, key, new, size, shared=new)
        for part, replaced in zip(message.content, new.content, strict=True):
            if replaced is not part:
                self.trail.follow(part, replaced)
        self.trail.follow(message, new)
        return new


def _pair(before: _Pairing, messages: tuple[Message, ...]) -> _Pairing:
    if before is None:
        return None
    waiting, made = [*before[0]], {*before[1]}
    return (waiting, made) if still_paired(messages, waiting, made) else None
