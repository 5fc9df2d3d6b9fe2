"""What a codec may not make up itself, and what a renderer gives back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable
from typing import Any, Generic, Literal, TypeVar

import msgspec

from wireglot.dialects.envelope import Holder, Sealed, seal, unseal, unseal_all
from wireglot.ir.content import Origin, Reasoning, Signature
from wireglot.ir.loss import Loss
from wireglot.ir.request import Request
from wireglot.wire.cache import Cache
from wireglot.wire.json import encode
from wireglot.wire.sse import MAX_FRAME

T = TypeVar("T")

Framing = Literal["sse", "json-array"]
"""How a stream is cut into events."""

_MINT_BYTES = 11
_MINT_MARK = "wg"


class Rendered(msgspec.Struct, Generic[T], frozen=True):
    """A wire document, and the losses in rendering it."""

    value: T
    losses: tuple[Loss, ...] = ()


class Context(msgspec.Struct, frozen=True, omit_defaults=True):
    """The environment of a codec: the upstream or client, the time, the secret, the seed of ids.

    `provider`, `model`, `account` name the upstream: readers stamp them on signatures, renderers compare them
    before they replay one. `seed` makes minted ids unique to a conversation or process.
    """

    provider: str = ""
    model: str = ""
    account: str = ""
    secret: bytes = b"wireglot"
    """Seals reasoning state (`dialects/envelope.py`)."""
    old_secrets: tuple[bytes, ...] = ()
    """What they sealed is opened too."""
    owner: str = ""
    """Whose reasoning state it is, where a secret serves several: sealed for one, it opens for no other."""
    seed: str = ""
    now: int = 0
    call_prefix: str = "call"
    framing: Framing = "sse"
    max_frame: int = MAX_FRAME
    """How much of one event of a stream is held before the stream is given up."""
    memory: Cache | None = None
    """What the client's requests have in common. Nothing may differ where it is missing, but the time."""
    reasons: bool = True
    """Whether the model may reason: False only where it is known that it does not."""
    first_event: int = 0
    """The number of the first event, in a stream that others began (Responses counts its events)."""

    emulates: bool = True
    """Whether the answer is cut at stop sequences that the upstream does not take, and made of the arguments
    of a function where it has no output formats."""

    withheld: tuple[Reasoning, ...] = ()
    """Reasoning of the request that was not sent to the upstream, for dialects whose answers report it."""

    def new_id(self, prefix: str, *material: str) -> str:
        """An id that is the same for the same material, and recognisable as ours (see `is_minted`)."""
        return _minted(self.seed, prefix, *material)

    def lasting_id(self, prefix: str, *material: str) -> str:
        """An id in what a client sends again with every turn: the same in each request, as the place of what
        it names is. Another one would make another prompt of it, which no cache knows."""
        return _minted("", prefix, *material)

    def scope(self, *reported: Hashable) -> int:
        """A name for `reported` and all of this context that makes a difference to what is read or written of
        a request: under it that is remembered."""
        assert self.memory is not None
        return self.memory.scope(
            *reported,
            self.provider,
            self.model,
            self.account,
            self.secret,
            self.old_secrets,
            self.owner,
            self.call_prefix,
        )

    def remembered(self, value: object, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, made once where `value` comes again. It must follow from value and key alone."""
        return make() if self.memory is None else self.memory.remembered(value, key, make)

    def share(self, value: T, source: object) -> T:
        """The value, which comes again as long as the one does that it was made of."""
        return value if self.memory is None else self.memory.share(value, source)

    def rendered_once(
        self, source: object, key: Hashable, render: Callable[[list[Loss]], T], losses: list[Loss]
    ) -> T:
        """What `render` gives, with its losses, made once where `source` comes again."""
        if self.memory is None:
            return render(losses)

        def make() -> tuple[T, list[Loss]]:
            lost: list[Loss] = []
            return render(lost), lost

        rendered, lost = self.memory.remembered(source, key, make)
        losses += lost
        return rendered

    def as_json(self, source: object, key: Hashable, value: Any) -> Any:
        """`value`, made of `source`: where that comes again, as the JSON that it was written to once."""
        memory = self.memory
        if memory is None or not memory.is_known(source):
            return value
        raw = memory.find(source, key)
        if raw is None:
            raw = msgspec.Raw(encode(value))
            memory.keep(source, key, raw, len(raw))
        return raw

    def seal(self, signature: Signature, holder: Holder, letters: int = -1) -> str:
        """An envelope for the client of this context; see `envelope.seal`."""
        return seal(signature, holder, self.secret, letters, self.owner)

    def unseal(self, text: str) -> Sealed | None:
        """The content of an envelope sent by this client; see `envelope.unseal`."""
        return unseal(text, self.secret, self.owner, self.old_secrets)

    def unseal_all(self, text: str) -> list[Sealed]:
        return unseal_all(text, self.secret, self.owner, self.old_secrets)

    def origin(self, dialect: str, model: str = "") -> Origin:
        """The stamp for opaque values read from the upstream of this context."""
        return Origin(dialect, self.provider, self.model or model, self.account)

    def may_replay(self, signature: Signature, dialect: str) -> bool:
        """Whether this upstream minted the signature, as far as both sides are known."""
        origin = signature.origin
        return (
            origin.dialect == dialect
            and _agree(origin.provider, self.provider)
            and _agree(origin.account, self.account)
            and _same_family(origin.model, self.model)
        )


def _minted(seed: str, prefix: str, *material: str) -> str:
    text = "\x1f".join((seed, prefix, *material)).encode("utf-8", "replace")
    return f"{prefix}_{_MINT_MARK}{hashlib.blake2b(text, digest_size=_MINT_BYTES).hexdigest()}"


def reported_model(model: str, context: Context, request: Request | None) -> str:
    """The model name of an answer: if its upstream names none, the requested model."""
    return model or (request.model if request is not None else "") or context.model


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other


def _same_family(one: str, other: str) -> bool:
    """Providers answer with a dated name for an alias: a common prefix means the same model."""
    return not one or not other or one.startswith(other) or other.startswith(one)


_MINTED = re.compile(rf"[A-Za-z]+_{_MINT_MARK}[0-9a-f]{{{2 * _MINT_BYTES}}}")


def is_minted(identifier: str) -> bool:
    """Whether Wireglot made this id up (no provider ever saw it)."""
    return _MINT_MARK in identifier and _MINTED.fullmatch(identifier) is not None
