"""`thoughtSignature`: raw for our own kind, a sealed envelope for anyone else's."""

from __future__ import annotations

from wireglot.dialects.base import Context
from wireglot.dialects.envelope import Holder, Sealed
from wireglot.dialects.gemini.names import OWN
from wireglot.ir.content import Origin, Signature
from wireglot.ir.loss import Loss, feature_of


def open_signature(text: str, context: Context) -> Sealed:
    """What a client echoed: the envelope we gave it, or a signature of Gemini's own."""
    return context.unseal(text) or Sealed(Signature(text, Origin(OWN)), "reasoning")


def signature_for_client(signature: Signature, holder: Holder, context: Context) -> str:
    if signature.origin.dialect == OWN and not signature.id and holder != "redacted":
        return signature.data
    return context.seal(signature, holder)


def signature_for_upstream(signature: Signature | None, context: Context, path: str, out: list[Loss]) -> str:
    """The signature if this upstream minted it, else nothing and a loss."""
    if signature is None:
        return ""
    if context.may_replay(signature, OWN) and signature.data:
        return signature.data
    out.append(
        Loss(
            f"{path}.signature",
            feature_of(signature),
            "dropped",
            f"minted by {signature.origin.dialect or 'nobody'}",
        )
    )
    return ""
