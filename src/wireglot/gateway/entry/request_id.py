"""The id of a request: under it the log, the ledger and the page of losses know it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

_RANDOM_BYTES: Final = 8
"""Beside all other requests of the same second, of every process."""


def new_request_id(clock: Callable[[], float] = time.time) -> str:
    """Begins with the second it came in. Rows of a store lie in the order of their ids: those of one moment
    are neighbours, and a batch of them touches a few pages. Of ids that are random altogether each touches a
    page of its own, which is read, written to the log and copied back: ten times the bytes."""
    return f"req_{int(clock()):08x}{os.urandom(_RANDOM_BYTES).hex()}"
