"""The sealed envelope: reasoning state of one provider, carried in-band by a client of another dialect.

Clients echo a few opaque fields untouched (Anthropic `thinking.signature`, Responses `encrypted_content`,
Gemini `thoughtSignature`). A foreign signature travels there as

    base64( b"WG\x31" | 16-byte HMAC-SHA256 | msgpack )
    msgpack: [holder, dialect, provider, model, account, id, data], and letters, owner, named where reported

It is pure base64, because Gemini's SDK decodes and re-encodes the field. The tag detects corruption and
forgery; the payload is opaque to begin with and is not encrypted again.

A gateway that serves several callers with one secret puts the owner into the envelope: an envelope sent by
another caller is dropped like a damaged one. One without an owner (of the library, of a gateway without
client keys, of older versions) is accepted from anyone.

A name that is not a signature (`providers/carried.py`) is placed after all the fields that older versions
read: they would send it to its writer as a signature, and the request would be refused. To older versions the
envelope looks like an unsigned thought, or state that no one can open.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Literal

import msgspec

from wireglot_core.ir.content import FOREIGN, UNSIGNED, Origin, Signature

Holder = Literal["reasoning", "redacted", "call", "text", "media", "unsigned"]
"""What the signature belongs to: the reasoning that carries it, or the next call, text or media after it.
`unsigned`: no signature; the envelope only satisfies clients that require one."""

UNREADABLE = "unreadable"
"""The origin of state in an envelope that could not be opened: it matches no dialect, so no provider gets
it."""

_BYPASSES = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
PLACEHOLDERS = frozenset(_BYPASSES) | {base64.b64encode(text.encode()).decode() for text in _BYPASSES}
"""Google's bypass values for calls that its model did not sign, as clients write them and as its SDKs encode
them (ai.google.dev/gemini-api/docs/thought-signatures, its questions). They are not state: they mark its
absence."""

_MAGIC = b"WG1"
PREFIX = base64.b64encode(_MAGIC).decode()
"""The prefix of every envelope."""
BODY_MARK = b'"' + PREFIX.encode()
"""The bytes by which an envelope is found in a body that is not decoded."""
_TAG_LENGTH = 16


class Sealed(msgspec.Struct, frozen=True):
    signature: Signature
    holder: Holder
    letters: int = -1
    """The length of the text that it belongs to, if reported: several texts may have become one."""


class _Named(msgspec.Struct, frozen=True, array_like=True):
    dialect: str
    provider: str
    model: str
    account: str
    id: str
    data: str


class _Payload(msgspec.Struct, frozen=True, array_like=True):
    holder: Holder
    dialect: str
    provider: str
    model: str
    account: str
    id: str
    data: str
    letters: int = -1
    owner: str = ""
    named: _Named | None = None


_NAMES = frozenset({UNSIGNED, FOREIGN})
_TO_OLDER_ONES: dict[Holder, tuple[Holder, str]] = {
    "reasoning": ("unsigned", ""),
    "redacted": ("redacted", UNREADABLE),
}
"""For an envelope with only a name: the holder and the dialect in the fields that older versions read."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Payload)


def seal(signature: Signature, holder: Holder, secret: bytes, letters: int = -1, owner: str = "") -> str:
    origin = signature.origin
    fields = (
        holder,
        origin.dialect,
        origin.provider,
        origin.model,
        origin.account,
        signature.id,
        signature.data,
    )
    # Without these, the format is byte for byte that of every version; older ones ignore additional fields.
    if signature.id in _NAMES and holder in _TO_OLDER_ONES:
        seen, dialect = _TO_OLDER_ONES[holder]
        payload = _ENCODER.encode((seen, dialect, "", "", "", "", "", letters, owner, fields[1:]))
    elif owner:
        payload = _ENCODER.encode((*fields, letters, owner))
    else:
        payload = _ENCODER.encode(fields if letters < 0 else (*fields, letters))
    return base64.b64encode(_MAGIC + _tag(secret, payload) + payload).decode()


def is_sealed(text: str) -> bool:
    """Whether the text looks like one of our envelopes. Only `unseal` verifies it."""
    return text.startswith(PREFIX)


def unseal(text: str, secret: bytes, owner: str = "", old_secrets: Sequence[bytes] = ()) -> Sealed | None:
    """The content of an envelope, or None if the text is not one of our envelopes.

    One that cannot be opened (another secret, another owner, a damaged byte) has unknown content: it is
    marked unreadable, so that it is never mistaken for a signature of the upstream and sent there.
    """
    if not text.startswith(PREFIX):
        return None
    opened = _opened(text, secret, owner, old_secrets)
    return opened or Sealed(Signature(text, Origin(UNREADABLE)), "reasoning")


def _opened(text: str, secret: bytes, owner: str, old_secrets: Sequence[bytes]) -> Sealed | None:
    standard = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        raw = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    start = len(_MAGIC)
    tag, payload = raw[start : start + _TAG_LENGTH], raw[start + _TAG_LENGTH :]
    if not hmac.compare_digest(tag, _tag(secret, payload)) and not any(
        hmac.compare_digest(tag, _tag(old, payload)) for old in old_secrets
    ):
        return None
    try:
        opened = _DECODER.decode(payload)
    except msgspec.DecodeError:
        return None
    if opened.owner and opened.owner != owner:
        return None
    holder, reported = opened.holder, opened.named or opened
    if holder == "unsigned" and opened.named is not None:
        holder = "reasoning"
    origin = Origin(reported.dialect, reported.provider, reported.model, reported.account)
    return Sealed(Signature(reported.data, origin, reported.id), holder, opened.letters)


def unseal_all(text: str, secret: bytes, owner: str = "", old_secrets: Sequence[bytes] = ()) -> list[Sealed]:
    """The content of several envelopes that a client has concatenated; empty if the text is anything else.
    Qwen Code joins the signatures of neighbouring thoughts."""
    before, *pieces = text.split(PREFIX)
    if before:
        return []
    found: list[Sealed] = []
    begun = ""
    for piece in pieces:
        begun += PREFIX + piece
        opened = _opened(begun, secret, owner, old_secrets)
        if opened is not None:  # else these four characters occur inside an envelope, too
            found.append(opened)
            begun = ""
    return [] if begun else found


def _tag(secret: bytes, payload: bytes) -> bytes:
    return hmac.digest(secret, payload, "sha256")[:_TAG_LENGTH]
