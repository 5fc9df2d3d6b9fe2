"""What the scrubbing of a recording costs."""

from __future__ import annotations

import tracemalloc

import pytest

from wireglot.gateway.trace.secrets import Scrubber
from wireglot.http.redaction import Redactor


@pytest.mark.parametrize("word", [b"QUJD", b"\\n", b'\\"a'])
def test_a_picture_in_one_event_takes_no_more_than_a_few_times_its_size(word: bytes) -> None:
    event = b'data: {"data": "' + word * (1024 * 1024 // len(word)) + b'"}\n\n'
    scrubber = Scrubber(Redactor(["a-secret-that-is-not-there"]), [], "/")
    tracemalloc.start()
    try:
        assert scrubber.spread([(0.0, event)]) == [(0.0, event)]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * len(event)
