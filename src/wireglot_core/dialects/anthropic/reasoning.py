"""Thinking blocks and the envelopes they carry: state of another provider, echoed by clients of this dialect.

A thinking block has a signature. One minted by Anthropic is written unchanged; one minted elsewhere is sealed
into the field. A signature that belongs to a call or a text (Gemini's) travels in a thinking block without
text directly before it, and returns to that part when the client sends the conversation back.
"""

from __future__ import annotations

from typing import Any

import msgspec

from wireglot_core.dialects.anthropic.lost_fields import NO_CONTENT, UNSIGNED_THINKING
from wireglot_core.dialects.anthropic.names import NAME, keep
from wireglot_core.dialects.context import Context
from wireglot_core.dialects.envelope import PREFIX, Holder, Sealed, is_sealed
from wireglot_core.dialects.fields import Fields, own_form
from wireglot_core.ir.content import Extra, Media, Origin, Part, Reasoning, Signature, Text, ToolCall
from wireglot_core.ir.loss import Loss

_THINKING = frozenset({"type", "thinking", "signature"})
_REDACTED = frozenset({"type", "data"})
_UNSIGNED = Signature("", Origin(""))


def open_signature(text: str, context: Context, origin: Origin) -> Sealed:
    """The minter of a signature, and what it belongs to. Anything other than our envelope is this dialect's
    own."""
    sealed = context.unseal(text) if is_sealed(text) else None
    return sealed if sealed is not None else Sealed(Signature(text, origin), "reasoning")


def parse_thinking(fields: Fields, context: Context, origin: Origin) -> Reasoning | Sealed:
    """The reasoning, or the state of the following part (which has no text and is not reasoning)."""
    text = fields.text_or("thinking")
    raw = fields.text_or("signature")
    if not raw:
        spelling = "empty" if "signature" in fields.value else "absent"
        return Reasoning(text, extra=keep(fields.value, _THINKING, {"signature": spelling}))
    sealed = open_signature(raw, context, origin)
    if sealed.holder in ("call", "text", "media") and not text:
        return sealed
    signature = sealed.signature if sealed.holder == "reasoning" else None
    return Reasoning(text, signature, extra=keep(fields.value, _THINKING))


def joined_thoughts(block: Any, context: Context) -> list[dict[str, Any]]:
    """The thinking blocks that a client has joined into one, whose envelopes follow one another in its
    signature; else none. Their text belongs to the first that is a thought: the others showed nothing."""
    if type(block) is not dict or block.get("type") != "thinking":
        return []
    raw = block.get("signature")
    if type(raw) is not str or raw.count(PREFIX) < 2 or not is_sealed(raw):
        return []
    states = context.unseal_all(raw)
    if len(states) < 2:
        return []
    owner = next((at for at, state in enumerate(states) if state.holder == "reasoning"), 0)
    return [
        {
            "type": "thinking",
            "thinking": block.get("thinking", "") if at == owner else "",
            "signature": context.seal(state.signature, state.holder),
        }
        for at, state in enumerate(states)
    ]


def parse_redacted(fields: Fields, context: Context, origin: Origin) -> Reasoning:
    sealed = open_signature(fields.text("data"), context, origin)
    return Reasoning("", sealed.signature, redacted=True, extra=keep(fields.value, _REDACTED))


def belongs(sealed: Sealed, part: Part) -> bool:
    match part:
        case ToolCall():
            return sealed.holder == "call"
        case Text():
            return sealed.holder == "text"
        case Media():
            return sealed.holder == "media"
        case _:
            return False


def attach_wherever(parts: list[Part], held: list[tuple[int, Sealed]]) -> None:
    """Attaches each state to its part: the next matching one after its place, else the first before it.
    Clients have been seen to move thinking to the front of the turn."""
    for place, sealed in held:
        order = (*range(place, len(parts)), *range(place))
        for index in order:
            part = parts[index]
            if belongs(sealed, part) and isinstance(part, Text | ToolCall | Media) and part.signature is None:
                parts[index] = msgspec.structs.replace(part, signature=sealed.signature)
                break


def signature_for_client(reasoning: Reasoning, context: Context) -> str | None:
    """The signature that a client is to echo for this reasoning; None to leave the field as recorded in
    `extra`."""
    signature = reasoning.signature
    if signature is None:
        if "signature" in own_form(reasoning.extra, NAME):
            return None
        return context.seal(_UNSIGNED, "unsigned")
    return signature.data if signature.origin.dialect == NAME else context.seal(signature, "reasoning")


def redacted_for_client(signature: Signature, context: Context) -> str:
    return signature.data if signature.origin.dialect == NAME else context.seal(signature, "redacted")


def carrier(signature: Signature, holder: Holder, context: Context) -> dict[str, Any]:
    """The block that carries the state of the call or text after it."""
    return {"type": "thinking", "thinking": "", "signature": context.seal(signature, holder)}


def render_for_upstream(
    reasoning: Reasoning, context: Context, path: str, losses: list[Loss]
) -> dict[str, Any] | None:
    """The block to replay, or None (with a loss): an upstream refuses thinking it did not sign."""
    signature = reasoning.signature
    if signature is not None and not context.may_replay(signature, NAME):
        if reasoning.redacted:
            losses.append(Loss(path, "reasoning.redacted", "dropped", "issued by another provider"))
        else:
            losses.append(
                Loss(f"{path}.signature", "reasoning.signature", "dropped", "issued by another provider")
            )
            if reasoning.text:
                losses.append(UNSIGNED_THINKING.at(path))
        return None
    if reasoning.redacted:
        if signature is None:
            losses.append(NO_CONTENT.at(path))
            return None
        return {"type": "redacted_thinking", "data": signature.data}
    if signature is not None:
        return {"type": "thinking", "thinking": reasoning.text, "signature": signature.data}
    if "signature" in own_form(reasoning.extra, NAME):
        # This dialect's own client sent it unsigned: some upstreams (Kimi, Ollama) never sign. The empty
        # string is left out, because a signature field is always verified.
        return {"type": "thinking", "thinking": reasoning.text}
    if reasoning.text:
        losses.append(UNSIGNED_THINKING.at(path))
    return None


def unsigned_mark(fields: dict[str, Any], spelling: str) -> Extra:
    return Extra(NAME, fields, {"signature": spelling})
