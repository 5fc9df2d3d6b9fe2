"""What a verdict is: the answer as the client may have it, and what was left out of it."""

from __future__ import annotations

import msgspec

from wireglot.ir.loss import Loss
from wireglot.ir.outcome import Response


class Accepted(msgspec.Struct, frozen=True):
    response: Response
    losses: tuple[Loss, ...] = ()
