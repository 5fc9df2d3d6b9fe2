"""A conversation with nothing in it that a dialect could say: each demands a message, so one is put there."""

from __future__ import annotations

from typing import Final

from wireglot.ir.loss import Loss

FILLER: Final = "Continue."
"""What the user says where the wire wants a turn of theirs and there is none."""
NO_MESSAGE: Final = Loss("$.messages", "content.position", "invented", "there must be a message")
