"""[providers.NAME.breaker]: when a provider that fails is left alone."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class BreakerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[providers.NAME.breaker]"""

    consecutive: Annotated[
        int,
        Meta(description="requests in a row that fail: those of one caller open it for that caller alone"),
    ] = 5
    ratio: Annotated[float, Meta(description="share of failures that opens it")] = 0.5
    minimum: Annotated[int, Meta(description="requests in the window before the ratio counts")] = 20
    window: Annotated[
        float, Meta(description="how long requests are remembered", extra={"unit": "seconds"})
    ] = 30.0
    probe_after: Annotated[
        float, Meta(description="until one request may try again", extra={"unit": "seconds"})
    ] = 5.0
    probe_cap: Annotated[
        float,
        Meta(
            description="at most between two such tries; the time doubles with each that fails",
            extra={"unit": "seconds"},
        ),
    ] = 10.0
    """A provider that is well again serves everybody within 15 s, however long it was down."""
