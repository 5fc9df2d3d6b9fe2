"""Ids of requests."""

from __future__ import annotations

import re
from functools import partial

from wireglot.gateway.entry.guard import new_request_id


def test_the_id_of_a_later_second_sorts_behind_those_before_it() -> None:
    """A store keeps rows in the order of their ids: those of one moment are to be neighbours."""
    seconds = [1_700_000_000.9, 1_700_000_001.0, 1_900_000_000.0, 4_000_000_000.0]
    ids = [new_request_id(partial(lambda second: second, second)) for second in seconds]
    assert ids == sorted(ids)


def test_requests_of_the_same_moment_have_ids_of_their_own() -> None:
    ids = {new_request_id(lambda: 1_700_000_000.0) for _ in range(10_000)}
    assert len(ids) == 10_000
    assert all(re.fullmatch("req_[0-9a-f]{24}", id) for id in ids)
