"""The sealed envelope: opaque state comes back as it went, or not at all."""

import base64
import hmac
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wireglot_core
from proofs.lab.forms import open_envelope
from tests.tiers import rows
from wireglot_core.dialects.context import Context, is_minted
from wireglot_core.dialects.envelope import (
    BODY_MARK,
    PLACEHOLDERS,
    PREFIX,
    UNREADABLE,
    Holder,
    Sealed,
    is_sealed,
    seal,
    unseal,
    unseal_all,
)
from wireglot_core.dialects.registry import NAMES, DialectName
from wireglot_core.ir.content import FOREIGN, UNSIGNED, Origin, Signature

_SECRET = b"s3cret"
_SIGNATURE = Signature("EqQBCg==", Origin("anthropic", "anthropic", "claude-opus-5", "acct"), "rs_1")


@given(st.text(), st.text(), st.text(max_size=20))
def test_what_is_sealed_is_unsealed(data: str, identifier: str, model: str) -> None:
    signature = Signature(
        data.encode("utf-8", "replace").decode(),
        Origin("gemini", "", model.encode("utf-8", "replace").decode()),
        identifier.encode("utf-8", "replace").decode(),
    )
    opened = unseal(seal(signature, "call", _SECRET), _SECRET)
    assert opened is not None
    assert opened.signature == signature
    assert opened.holder == "call"


@pytest.mark.parametrize("owner", ["", "0123456789abcdef"])
@pytest.mark.parametrize(
    ("id", "holder", "to_older_ones"),
    [
        (UNSIGNED, "reasoning", ["unsigned", "", "", "", "", "", ""]),
        (FOREIGN, "redacted", ["redacted", UNREADABLE, "", "", "", "", ""]),
    ],
)
def test_a_name_is_no_signature_to_older_versions(
    id: str, holder: Holder, to_older_ones: list[str], owner: str
) -> None:
    """They read the first seven fields, and send what they find to its minter as a signature: a provider refuses
    the spelling of a thought in that place."""
    name = Signature('{"field":"reasoning"}', _SIGNATURE.origin, id)
    sealed = seal(name, holder, _SECRET, owner=owner)
    assert (open_envelope(sealed) or [])[:7] == to_older_ones
    assert unseal(sealed, _SECRET, owner) == Sealed(name, holder)
    assert unseal_all(sealed + sealed, _SECRET, owner) == [Sealed(name, holder)] * 2


@pytest.mark.parametrize(("id", "holder"), [(UNSIGNED, "reasoning"), (FOREIGN, "redacted")])
def test_a_name_where_signatures_stand_is_still_read(id: str, holder: Holder) -> None:
    """Sealed so before names stood apart."""
    origin = _SIGNATURE.origin
    fields = [holder, origin.dialect, origin.provider, origin.model, origin.account, id, "{}"]
    payload = msgspec.msgpack.encode(fields)
    tag = hmac.digest(_SECRET, payload, "sha256")[:16]
    sealed = base64.b64encode(b"WG1" + tag + payload).decode()
    assert unseal(sealed, _SECRET) == Sealed(Signature("{}", origin, id), holder)


def test_envelopes_that_a_client_put_together_are_distinguished() -> None:
    """[L7] Qwen Code joins the signatures of neighbouring thoughts."""
    holders: tuple[Holder, ...] = ("reasoning", "call", "text")
    joined = "".join(seal(_SIGNATURE, holder, _SECRET) for holder in holders)
    assert [state.holder for state in unseal_all(joined, _SECRET)] == [*holders]
    assert unseal_all(joined[:-3], _SECRET) == []
    assert unseal_all(joined, b"another") == []


def test_the_letters_an_envelope_begins_with_may_stand_inside_of_one() -> None:
    """[L7] Whatever the place of those letters, two envelopes put together are two, and none is cut in it."""
    inside = 0
    for shift in range(3):  # one of three places falls together with the letters of base64
        signature = Signature("x" * shift + "WG1WG1", _SIGNATURE.origin, "rs_1")
        sealed = seal(signature, "reasoning", _SECRET)
        inside += sealed.count(PREFIX) > 1
        opened = unseal_all(sealed + seal(_SIGNATURE, "call", _SECRET), _SECRET)
        assert [state.signature for state in opened] == [signature, _SIGNATURE]
    assert inside == 1


def test_the_envelope_survives_a_client_that_decodes_and_re_encodes_it() -> None:
    """google-genai returns signatures url-safe."""
    sealed = seal(_SIGNATURE, "reasoning", _SECRET)
    again = base64.urlsafe_b64encode(base64.b64decode(sealed)).decode()
    opened = unseal(again, _SECRET)
    assert opened is not None
    assert opened.signature == _SIGNATURE
    assert unseal(again.rstrip("="), _SECRET) == opened


@pytest.mark.parametrize("text", ["", "EqQBCkYIBRgC", "gAAAAABx", "V0c"])
def test_what_is_not_ours_is_not_opened(text: str) -> None:
    assert unseal(text, _SECRET) is None


def test_an_envelope_that_cannot_be_opened_is_nobodys_state() -> None:
    """It must never be mistaken for a signature of the upstream."""
    sealed = seal(_SIGNATURE, "reasoning", _SECRET)
    raw = bytearray(base64.b64decode(sealed))
    raw[-1] ^= 1
    damaged = base64.b64encode(bytes(raw)).decode()
    assert is_sealed(sealed)
    for text, secret in ((sealed, b"other"), (damaged, _SECRET), ("V0cx", _SECRET), ("V0cx!!!", _SECRET)):
        opened = unseal(text, secret)
        assert opened is not None
        for dialect in NAMES:
            assert not Context().may_replay(opened.signature, dialect)


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            "anthropic",
            {
                "model": "m",
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": "a"},
                    {
                        "role": "assistant",
                        "content": [{"type": "thinking", "thinking": "t", "signature": "SEALED"}],
                    },
                ],
            },
        ),
        (
            "openai-responses",
            {
                "model": "m",
                "input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SEALED"}],
            },
        ),
        ("gemini", {"contents": [{"role": "model", "parts": [{"text": "a", "thoughtSignature": "SEALED"}]}]}),
        (
            "openai-chat",
            {
                "model": "m",
                "messages": [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "c",
                                "type": "function",
                                "function": {"name": "f", "arguments": "{}"},
                                "extra_content": {"google": {"thought_signature": "SEALED"}},
                            }
                        ],
                    }
                ],
            },
        ),
    ],
)
def test_a_foreign_gateways_envelope_is_not_sent_upstream(dialect: DialectName, body: dict[str, Any]) -> None:
    sealed = seal(_SIGNATURE, "reasoning", b"another gateway's")
    asked = json.loads(json.dumps(body).replace("SEALED", sealed))
    out = wireglot_core.translate_request(asked, source=dialect, target=dialect)
    assert sealed not in json.dumps(out.value)
    assert [loss.feature for loss in out.losses if loss.feature == "reasoning.signature"]


def test_minted_ids_are_stable_and_recognisable_and_no_providers_id_is() -> None:
    context = Context(seed="x")
    identifier = context.new_id("call", "0", "f")
    assert identifier == context.new_id("call", "0", "f") != context.new_id("call", "1", "f")
    assert is_minted(identifier)
    assert len(identifier) <= 40
    for other in ("toolu_01A09q90qw90lq917835lq9", "call_abc", "functions.f:0", "TodoWrite_0", "", "_wg"):
        assert not is_minted(other)


def test_a_signature_returns_only_to_its_minter() -> None:
    """C9, PAINS 3, 10"""
    assert Context().may_replay(_SIGNATURE, "anthropic")
    assert Context(provider="anthropic", model="claude-opus-5-20260801").may_replay(_SIGNATURE, "anthropic")
    assert not Context().may_replay(_SIGNATURE, "gemini")
    assert not Context(provider="other").may_replay(_SIGNATURE, "anthropic")
    assert not Context(account="other").may_replay(_SIGNATURE, "anthropic")
    assert not Context(model="claude-sonnet-5").may_replay(_SIGNATURE, "anthropic")


def test_an_envelope_is_that_of_every_version() -> None:
    """Clients keep them for months, and send them to whichever version runs then."""
    plain = (
        "V0cxLveopiH1vRIJcHvwj+0vWJekdGV4dKlhbnRocm9waWOpYW50aHJvcGljrWNsYXVkZS1vcHVzLTWkYWNjdKRyc1"
        "8xqEVxUUJDZz09"
    )
    lettered = (
        "V0cxFO7TFF5PYJsOcGCQwDTiWpikdGV4dKlhbnRocm9waWOpYW50aHJvcGljrWNsYXVkZS1vcHVzLTWkYWNjdKRyc1"
        "8xqEVxUUJDZz09AA=="
    )
    assert seal(_SIGNATURE, "text", _SECRET) == plain
    assert seal(_SIGNATURE, "text", _SECRET, letters=0) == lettered
    assert unseal(plain, _SECRET) == Sealed(_SIGNATURE, "text")
    assert unseal(lettered, _SECRET) == Sealed(_SIGNATURE, "text", 0)


def test_what_an_envelope_looks_like_in_the_bytes_of_a_body() -> None:
    sealed = seal(_SIGNATURE, "text", _SECRET)
    assert sealed.startswith(PREFIX)
    assert BODY_MARK in json.dumps({"signature": sealed}).encode()
    assert not is_sealed(sealed[1:])
    assert not is_sealed("")


def test_googles_bypasses_are_known_as_they_are_written_and_as_its_sdks_encode_them() -> None:
    for text in ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go"):
        assert {text, base64.b64encode(text.encode()).decode()} <= PLACEHOLDERS
    assert len(PLACEHOLDERS) == 4


def test_a_payload_that_another_version_wrote_is_nobodys() -> None:
    """Its tag is right, and what is in it is not ours to read."""
    payload = msgspec.msgpack.encode(["nobody", "x"])
    raw = b"WG1" + hmac.digest(_SECRET, payload, "sha256")[:16] + payload
    opened = unseal(base64.b64encode(raw).decode(), _SECRET)
    assert opened is not None
    assert opened.signature.origin.dialect == "unreadable"
    assert opened.holder == "reasoning"


def test_nothing_is_no_envelope() -> None:
    assert unseal_all("", _SECRET) == []
    assert unseal_all("x", _SECRET) == []
    one = seal(_SIGNATURE, "text", _SECRET, letters=7)
    assert unseal_all(one, _SECRET) == [Sealed(_SIGNATURE, "text", 7)]
    assert unseal_all(one + "x", _SECRET) == []


@rows(
    ("secret", "owner", "old", "opens"),
    [
        (_SECRET, "ann", (), True),
        (_SECRET, "bob", (), False),
        (_SECRET, "", (), False),
        (b"new", "ann", (), False),
        (b"new", "ann", (_SECRET,), True),
        (b"new", "ann", (b"older", _SECRET), True),
        (b"new", "bob", (_SECRET,), False),
        (b"new", "ann", (b"older",), False),
        (_SECRET, "ann", (b"older",), True),
    ],
)
def test_an_envelope_opens_for_its_owner_under_any_secret_of_the_gateway(
    secret: bytes, owner: str, old: tuple[bytes, ...], opens: bool
) -> None:
    sealed = seal(_SIGNATURE, "call", _SECRET, owner="ann")
    opened = unseal(sealed, secret, owner, old)
    assert opened is not None
    if opens:
        assert opened == Sealed(_SIGNATURE, "call")
    else:
        assert opened == Sealed(Signature(sealed, Origin("unreadable")), "reasoning")
    assert unseal_all(sealed, secret, owner, old) == ([opened] if opens else [])


@pytest.mark.parametrize("owner", ["", "ann"])
def test_an_envelope_without_an_owner_is_for_anyone_who_brings_it(owner: str) -> None:
    assert unseal(seal(_SIGNATURE, "call", _SECRET), _SECRET, owner) == Sealed(_SIGNATURE, "call")


def test_an_owner_and_letters_go_together() -> None:
    sealed = seal(_SIGNATURE, "text", _SECRET, letters=3, owner="ann")
    assert unseal(sealed, _SECRET, "ann") == Sealed(_SIGNATURE, "text", 3)


def test_an_envelope_is_opened_whatever_its_length_and_its_last_letter() -> None:
    """Also without the signs that only fill it up, which some clients cut off."""
    last = set()
    for number in range(400):
        signature = Signature(f"{'x' * (number % 7)}{chr(33 + number % 94)}", _SIGNATURE.origin)
        sealed = seal(signature, "call", _SECRET)
        bare = sealed.rstrip("=")
        last.add(bare[-1])
        assert unseal(sealed, _SECRET) == unseal(bare, _SECRET) == Sealed(signature, "call")
    assert {"x", "A", "5"} <= last


def test_a_letter_that_is_none_of_base64_is_damage() -> None:
    sealed = seal(_SIGNATURE, "call", _SECRET)
    opened = unseal(f"{sealed[:30]}!{sealed[30:]}", _SECRET)
    assert opened is not None
    assert opened.signature.origin.dialect == "unreadable"


def test_what_stands_before_or_between_envelopes_makes_them_none() -> None:
    one, two = seal(_SIGNATURE, "text", _SECRET), seal(_SIGNATURE, "call", _SECRET)
    assert len(unseal_all(one + two, _SECRET)) == 2
    for text in (f"AAAA{one}", f"{one}AAAA{two}", f"{one}{two}AAAA", f"{one}{PREFIX}", f"AAAA{one[4:]}"):
        assert unseal_all(text, _SECRET) == []
