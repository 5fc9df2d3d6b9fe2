"""[trace]: which bodies are recorded, and how long they are kept."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from wireglot.gateway.process_limits import MIB

Mode = Literal["off", "errors", "all"]


class TraceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[trace]"""

    mode: Annotated[
        Mode,
        Meta(
            description="whose bodies are recorded: nobody's, those of exchanges that failed or lost "
            "something serious, or everybody's; the list of exchanges needs none",
            extra={"env": "WIREGLOT_TRACE"},
        ),
    ] = "off"
    sample: Annotated[
        float, Meta(ge=0, le=1, description="share of the exchanges that are recorded, of those that may be")
    ] = 1.0
    routes: Annotated[
        tuple[str, ...],
        Meta(
            description="only exchanges for these models, as clients name them; patterns as in `[models]`",
            extra={"expected": "a list of model names and patterns", "default": "all"},
        ),
    ] = ()
    keys: Annotated[
        tuple[str, ...],
        Meta(
            description="only exchanges with these client keys, by their names",
            extra={"expected": "a list of names of keys", "default": "all"},
        ),
    ] = ()
    body_bytes: Annotated[
        int,
        Meta(
            gt=0,
            description="of one body or stream that are kept; of a longer one its beginning",
            extra={"unit": "bytes"},
        ),
    ] = 4 * MIB
    keep_hours: Annotated[
        float, Meta(gt=0, description="how long they are kept", extra={"unit": "hours"})
    ] = 24.0
    keep_bytes: Annotated[
        int,
        Meta(gt=0, description="of all of them together; the oldest go first", extra={"unit": "bytes"}),
    ] = 512 * MIB
    fleet_bytes: Annotated[
        int,
        Meta(
            ge=0,
            description="of bodies that a fleet's store keeps, sealed, so that any machine shows them all; "
            "the oldest go first; 0: they stay where they were recorded",
            extra={"unit": "bytes"},
        ),
    ] = 128 * MIB
