"""The judge of translated bodies."""

from random import Random

import pytest

from proofs.lab.fuzz_codecs import JsonBodies
from proofs.lab.fuzz_target import Input
from tests.tiers import rows
from wireglot_core.wire.json import MAX_DEPTH, TooDeep, decode, encode


@rows("seed", range(10))
def test_what_may_just_be_read_may_be_reported_deeper(seed: int) -> None:
    """Whatever dialect it is asked to, Code Assist's envelope among them."""
    deep: object = []
    for _ in range(MAX_DEPTH - 4):
        deep = [deep]
    rating = {"candidates": [{"content": {"parts": [{"text": "One."}]}, "finishReason": "STOP", "odd": deep}]}
    data = encode(rating)
    decode(data)
    with pytest.raises(TooDeep):
        decode(b"[" + data + b"]")
    assert JsonBodies().tried(Input("gemini responses", data), Random(seed)) == "translated"
