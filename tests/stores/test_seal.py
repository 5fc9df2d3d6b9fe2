"""Sealed values open for their owner, in their place, under their secret, and in no other way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiers import rows
from wireglot.stores.seal import COMPRESSED, NONCE_BYTES, TAG_BYTES, VERSION, Sealer, Unreadable

SECRET = b"0123456789abcdef0123456789abcdef"
SEALER = Sealer(SECRET)
TEXT = st.text(st.characters(), max_size=8)


@given(TEXT, TEXT, TEXT, st.binary(max_size=300))
def test_what_was_sealed_opens(caller, kind, id, value):
    sealed = SEALER.seal(caller, kind, id, value)
    assert SEALER.open(caller, kind, id, sealed) == value


@rows("value", [b"", b"x", b"x" * 127, b"x" * 128, b"x" * 100_000, os.urandom(5000)])
def test_values_of_any_size_and_kind_open(value):
    assert SEALER.open("t", "k", "i", SEALER.seal("t", "k", "i", value)) == value


def test_what_pays_is_compressed_and_the_rest_is_not():
    small = SEALER.seal("t", "k", "i", b'{"role": "user"}' * 100)
    assert small[0] == VERSION | COMPRESSED
    assert len(small) < 200
    noise = os.urandom(5000)
    assert SEALER.seal("t", "k", "i", noise)[0] == VERSION
    assert len(SEALER.seal("t", "k", "i", noise)) == 1 + NONCE_BYTES + 5000 + TAG_BYTES


def test_nothing_of_the_value_shows_and_no_two_seals_are_alike():
    """T8"""
    sealed = [SEALER.seal("t", "k", "i", b"a secret thought") for _ in range(50)]
    assert len(set(sealed)) == 50
    assert len({one[1 : 1 + NONCE_BYTES] for one in sealed}) == 50
    assert not any(b"secret" in one for one in sealed)


@rows("place", [("u", "k", "i"), ("t", "l", "i"), ("t", "k", "j"), ("tk", "", "i"), ("", "tk", "i")])
def test_a_value_moved_to_another_place_does_not_open(place: tuple[str, str, str]):
    """T19"""
    sealed = SEALER.seal("t", "k", "i", b"value")
    with pytest.raises(Unreadable):
        SEALER.open(*place, sealed)


@pytest.mark.parametrize("value", [b"short", b"long " * 100])
def test_a_changed_bit_anywhere_does_not_open(value):
    sealed = SEALER.seal("t", "k", "i", value)
    for place in range(len(sealed)):
        for bit in (0x01, 0x80):
            changed = bytearray(sealed)
            changed[place] ^= bit
            with pytest.raises(Unreadable):
                SEALER.open("t", "k", "i", bytes(changed))


@given(st.binary(max_size=80))
def test_what_was_never_sealed_does_not_open(garbage):
    with pytest.raises(Unreadable):
        SEALER.open("t", "k", "i", garbage)


def test_a_cut_value_does_not_open():
    sealed = SEALER.seal("t", "k", "i", b"value")
    for length in range(len(sealed)):
        with pytest.raises(Unreadable):
            SEALER.open("t", "k", "i", sealed[:length])


def test_another_secret_does_not_open_it_but_a_new_one_beside_the_old_does():
    old = SEALER.seal("t", "k", "i", b"value")
    with pytest.raises(Unreadable):
        Sealer(b"another secret").open("t", "k", "i", old)
    rotated = Sealer(b"another secret", [b"yet another", SECRET])
    assert rotated.open("t", "k", "i", old) == b"value"
    new = rotated.seal("t", "k", "i", b"value")
    with pytest.raises(Unreadable):
        SEALER.open("t", "k", "i", new)


def test_an_empty_secret_is_no_secret():
    with pytest.raises(ValueError, match="empty"):
        Sealer(b"")
    with pytest.raises(ValueError, match="empty"):
        Sealer(SECRET, [b""])


def test_what_was_sealed_by_the_first_release_opens_for_ever():
    """The format is a promise to everybody's stored data."""
    sealed = bytes.fromhex(
        "01000102030405060708090a0b"
        "d392500cfea2c6844ddfbde12d41c014133a0b4ee5472ce16fd5ff6f9cd5191f85105289822b40a9c9427049"
    )
    assert SEALER.open("tenant", "kind", "id", sealed) == b"kept since the first release"


def test_cryptography_is_loaded_only_when_something_is_sealed():
    code = (
        "import sys, wireglot.stores.seal;"
        "wireglot.stores.seal.Sealer(b'secret'); sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
