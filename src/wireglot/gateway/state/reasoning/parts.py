"""The parts of a stored turn that its client did not send back, and how they are put back in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from wireglot.gateway.state.reasoning.names import Turn, call_key, may_be_same, without_ids
from wireglot.gateway.targets.routing import Target
from wireglot_core.dialects.envelope import UNREADABLE
from wireglot_core.ir.content import Foreign, Media, Origin, Part, Reasoning, Signature, Text, ToolCall

_MAX_TURN_BYTES: Final = 1 << 20
"""Bytes of a turn's reasoning that is stored. Reasoning is far smaller; images, which are left out of a
larger one, are not."""


class KeptTurn(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer as its client saw it, with its complete state."""

    content: tuple[Part, ...]


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(KeptTurn)


GIVEN_UP: Final = _ENCODER.encode(KeptTurn(()))
"""Marks a turn whose state is useless."""


def pack(content: tuple[Part, ...]) -> bytes | None:
    """None: it is too large to store."""
    try:
        body = _ENCODER.encode(KeptTurn(content))
        if len(body) > _MAX_TURN_BYTES:
            body = _ENCODER.encode(KeptTurn(tuple(part for part in content if type(part) is not Media)))
    except UnicodeEncodeError:  # half a surrogate pair, which cannot be written
        return None
    return body if len(body) <= _MAX_TURN_BYTES else None


def unpack(body: bytes) -> tuple[Part, ...] | None:
    """None: it was written by another version."""
    try:
        return _DECODER.decode(body).content
    except msgspec.DecodeError:
        return None


def signature_of(part: Part) -> Signature | None:
    """The part's state, if some provider may be able to read it."""
    signature: Signature | None = getattr(part, "signature", None)
    return None if signature is None or signature.origin.dialect == UNREADABLE else signature


def is_signed_call(part: Part) -> bool:
    return type(part) is ToolCall and signature_of(part) is not None


def is_whole(content: Iterable[Part], by_name: bool) -> bool:
    """Whether a turn came back with its state, and without reasoning that lacks it. `by_name`: the minter of
    a signature must be known, not only the signature."""
    signed = False
    for part in content:
        signature = signature_of(part)
        if signature is not None:
            if by_name and not signature.origin.provider:
                return False
            signed = True
        elif type(part) is Reasoning:
            return False
    return signed


def worth_keeping(
    content: tuple[Part, ...], minter_of: Callable[[Reasoning], Origin | None]
) -> tuple[Part, ...]:
    """The parts to send back to their minter: unsigned reasoning only if the minter accepts it."""
    worth: list[Part] = []
    for part in content:
        if type(part) is Reasoning and part.signature is None:
            minter = minter_of(part)
            if minter is not None:
                worth.append(msgspec.structs.replace(part, minter=minter))
        else:
            worth.append(part)
    return tuple(worth)


class Restored(msgspec.Struct, frozen=True):
    content: tuple[Part, ...]
    renamed: dict[str, str] = {}
    """Ids of calls as the client wrote them -> the original ids: the client's results name them too."""


def restored(turn: Turn, kept: tuple[Part, ...], by_name: bool) -> Restored | None:
    """A turn as a client sent it, completed from the stored one; None if that adds nothing."""
    content = turn.content
    if _brings_anothers(content, kept):
        return None
    if turn.said != without_ids(kept) or not _same_calls(content, kept):
        partly = _in_part(content, kept)
        return Restored(partly) if partly is not None else None
    if _places(content, by_name, kept) == _places(kept, by_name, kept):
        return None
    renamed = {
        sent.id: own.id for sent, own in zip(_calls(content), _calls(kept), strict=True) if sent.id != own.id
    }
    return Restored(_whole(content, kept), renamed)


def _brings_anothers(content: Iterable[Part], kept: Iterable[Part]) -> bool:
    """Whether a turn has state that the stored one never had: another model said the same words here."""
    brought = {signature.data for part in content if (signature := signature_of(part)) is not None}
    if not brought:
        return False
    return not brought <= {signature.data for part in kept if (signature := signature_of(part)) is not None}


def _calls(content: Iterable[Part]) -> list[ToolCall]:
    return [part for part in content if type(part) is ToolCall]


def _same_calls(content: Iterable[Part], kept: Iterable[Part]) -> bool:
    """Whether the calls have equal content, in the same order."""
    pairs = zip(_calls(content), _calls(kept), strict=True)
    return all(call_key(sent) == call_key(own) or may_be_same(sent, own) for sent, own in pairs)


def _places(content: Iterable[Part], by_name: bool, kept: tuple[Part, ...]) -> list[tuple[str, ...]]:
    """The state of a turn, each piece with its place among texts and calls. Thoughts without a signature, and
    parts that only their own dialect knows, count only if the stored turn has some."""
    unsigned = any(type(part) is Reasoning and part.signature is None for part in kept)
    foreign = any(type(part) is Foreign for part in kept)
    places: list[tuple[str, ...]] = []
    for part in content:
        if type(part) is Foreign and foreign:
            places.append((part.dialect, part.type))
        piece = _piece(part, by_name)
        if piece is not None and (unsigned or piece[1]):
            places.append(piece)
        if type(part) is Text and part.text.strip() and places[-1:] != [("text",)]:
            places.append(("text",))
        elif type(part) is ToolCall:
            places.append(("call",))
    return places


def _piece(part: Part, by_name: bool) -> tuple[str, ...] | None:
    signature = signature_of(part)
    data = signature.data if signature is not None else ""
    minter = signature.origin.provider if signature is not None and by_name else ""
    if type(part) is Reasoning and part.minter is not None:
        minter = part.minter.provider
    if type(part) is Reasoning and not part.redacted:
        return part.text, data, minter  # the text is bound to its signature, or is the only state
    return ("", data, minter) if signature is not None else None


def _state(content: Iterable[Part]) -> Counter[tuple[str, ...]]:
    return Counter(piece for part in content if (piece := _piece(part, by_name=False)) is not None)


def _whole(content: tuple[Part, ...], kept: tuple[Part, ...]) -> tuple[Part, ...]:
    """The stored turn, with the client's own marks for prompt caching."""
    calls = iter(_calls(content))
    marks = [part.cache for part in content if type(part) is Text and part.cache is not None]
    last = max((at for at, part in enumerate(kept) if type(part) is Text), default=-1)
    result: list[Part] = []
    for at, part in enumerate(kept):
        if type(part) is ToolCall:
            cache = next(calls).cache
            result.append(part if cache == part.cache else msgspec.structs.replace(part, cache=cache))
        elif type(part) is Text and at == last and marks:
            result.append(msgspec.structs.replace(part, cache=marks[-1]))
        else:
            result.append(part)
    return tuple(result)


def _in_part(content: tuple[Part, ...], kept: tuple[Part, ...]) -> tuple[Part, ...] | None:
    """A turn that its client has changed: each remaining call gets its signature back, and the thinking is
    put before the first call, if it led to that one."""
    found = {call_key(part): part for part in kept if type(part) is ToolCall}
    first = next((part for part in content if type(part) is ToolCall), None)
    if first is None or not found:
        return None
    leads = _leading_thoughts(kept, call_key(first))
    changed = bool(_state(leads) - _state(content))
    if changed:
        content = (*leads, *(part for part in content if type(part) is not Reasoning))
    result: list[Part] = []
    for part in content:
        if type(part) is ToolCall and signature_of(part) is None:
            twin = found.get(call_key(part))
            if twin is not None and twin.signature is not None:
                result.append(msgspec.structs.replace(part, signature=twin.signature))
                changed = True
                continue
        result.append(part)
    return tuple(result) if changed else None


def _leading_thoughts(kept: tuple[Part, ...], call: tuple[str, ...]) -> tuple[Part, ...]:
    """The thoughts that led to this call, if it is the first one. Thoughts between calls belong to an order
    that is lost: all of them are put back, or none."""
    at, first = next((at, part) for at, part in enumerate(kept) if type(part) is ToolCall)
    if call_key(first) != call or any(type(part) is Reasoning for part in kept[at:]):
        return ()
    return tuple(part for part in kept if type(part) is Reasoning)


def is_of_any(content: tuple[Part, ...], targets: tuple[Target, ...]) -> bool:
    """Whether any of these targets has minted some of it."""
    names = {target.provider.name for target in targets}
    return any(_minted_by(part) in names for part in content)


def is_for_any(content: tuple[Part, ...], targets: tuple[Target, ...]) -> bool:
    """Whether any of these targets accepts some of it: it came from the same family of dialects, or the
    target accepts anyone's reasoning as text."""
    families = {family for part in content if (family := _family_of(part)) is not None}
    for target in targets:
        if target.limits.reasoning == "text" or "" in families:
            return True
        if target.surface.family in families or target.dialect in families:
            return True
    return False


def _family_of(part: Part) -> str | None:
    """The family of the minter of the part's state; "" if that is unknown, None if the part has no state."""
    signature = signature_of(part)
    if signature is not None:
        return signature.origin.dialect
    if type(part) is Reasoning:
        return part.minter.dialect if part.minter is not None else ""
    return part.dialect if type(part) is Foreign else None


def _minted_by(part: Part) -> str:
    signature = signature_of(part)
    if signature is not None:
        return signature.origin.provider
    return part.minter.provider if type(part) is Reasoning and part.minter is not None else ""


def minter_of(target: Target, reasoning: Reasoning) -> Origin | None:
    """The minter of unsigned reasoning, if it accepts it back."""
    surface = target.surface
    takes = surface.reasoning.takes_unsigned
    if target.limits.reasoning == "drop" or takes is None or not takes(reasoning):
        return None
    return Origin(surface.family, target.provider.name, target.model)
