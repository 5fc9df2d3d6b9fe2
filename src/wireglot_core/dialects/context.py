"""The context that codecs need from outside, and the result of rendering."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable
from typing import Any, Generic, Literal, TypeVar

import msgspec

from wireglot_core.dialects.envelope import Holder, Sealed, seal, unseal, unseal_all
from wireglot_core.ir.content import Origin, Reasoning, Signature
from wireglot_core.ir.loss import Loss
from wireglot_core.ir.request import Request
from wireglot_core.wire.cache import Cache
from wireglot_core.wire.json import encode
from wireglot_core.wire.sse import MAX_FRAME

T = TypeVar("T")

Framing = Literal["sse", "json-array"]
"""The framing of a stream."""

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
    project: str = ""
    """The cloud project that pays, for dialects whose requests name it (Code Assist). A gateway fills it in
    later, from the provider's variables."""
    secret: bytes = b"wireglot"
    """Seals reasoning state (`dialects/envelope.py`)."""
    old_secrets: tuple[bytes, ...] = ()
    """Former secrets, whose envelopes are still opened."""
    owner: str = ""
    """The owner of reasoning state, if a secret serves several callers: state sealed for one is not opened
    for another."""
    seed: str = ""
    now: int = 0
    call_prefix: str = "call"
    framing: Framing = "sse"
    max_frame: int = MAX_FRAME
    """Maximum bytes held for one event; a stream with a larger one fails."""
    memory: Cache | None = None
    """The cache of the client's requests. Without it only the time may differ."""
    reasons: bool = True
    """Whether the model may reason: False only if it is known that it does not."""
    summaries: bool = True
    """Whether the upstream may be asked for summaries of reasoning: False if it has refused one."""
    first_event: int = 0
    """The number of the first event, in a stream that something else began (Responses counts its events)."""

    emulates: bool = True
    """Whether the answer is cut at stop sequences that the upstream does not support, and taken from a
    function's arguments if it has no output formats."""

    generates: bool = True
    """False: the request is only read and checked, and its input may still be empty."""

    withheld: tuple[Reasoning, ...] = ()
    """Reasoning of the request that was not sent to the upstream, for dialects whose answers report it."""

    def new_id(self, prefix: str, *material: str) -> str:
        """An id that is the same for the same input, and recognizable as minted (see `is_minted`)."""
        return _minted(self.seed, prefix, *material)

    def lasting_id(self, prefix: str, *material: str) -> str:
        """An id for something that a client sends again with every turn: the same in each request, as its
        place is. Another id would change the prompt, and no cache would match."""
        return _minted("", prefix, *material)

    def scope(self, *reported: Hashable) -> int:
        """A number for `reported` and all fields of this context that affect parsing or rendering of a
        request: part of the cache key."""
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
        """The result of `make`, computed once if `value` is cached. It must depend on value and key alone."""
        return make() if self.memory is None else self.memory.remembered(value, key, make)

    def share(self, value: T, source: object) -> T:
        """The value, cached for as long as the one it was made from."""
        return value if self.memory is None else self.memory.share(value, source)

    def rendered_once(
        self, source: object, key: Hashable, render: Callable[[list[Loss]], T], losses: list[Loss]
    ) -> T:
        """The result of `render`, with its losses, computed once if `source` is cached."""
        if self.memory is None:
            return render(losses)

        def make() -> tuple[T, list[Loss]]:
            lost: list[Loss] = []
            return render(lost), lost

        rendered, lost = self.memory.remembered(source, key, make)
        losses += lost
        return rendered

    def as_json(self, source: object, key: Hashable, value: Any) -> Any:
        """`value`, made from `source`: as encoded JSON if `source` is cached."""
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
        """The origin of opaque values from the upstream of this context."""
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
    """Whether Wireglot minted this id (no provider ever saw it)."""
    return _MINT_MARK in identifier and _MINTED.fullmatch(identifier) is not None
