"""Settings of the circuit breaker, safeguards and recording, which several layers of the gateway use."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from wireglot.gateway.process_limits import MIB, setting


class BreakerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[providers.NAME.breaker]"""

    consecutive: Annotated[
        int,
        setting("requests in a row that fail: those of one caller open it for that caller alone"),
    ] = 5
    ratio: Annotated[float, setting("share of failures that opens it")] = 0.5
    minimum: Annotated[int, setting("requests in the window before the ratio counts")] = 20
    window: Annotated[float, setting("how long requests are remembered", unit="seconds")] = 30.0
    probe_after: Annotated[float, setting("until one request may try again", unit="seconds")] = 5.0
    probe_cap: Annotated[
        float,
        setting("at most between two such tries; the time doubles with each that fails", unit="seconds"),
    ] = 10.0
    """A provider that is well again serves everybody within 15 s, however long it was down."""


SafeguardMode = Literal["judge", "refuse", "off"]


class SafeguardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[safeguards]"""

    mode: Annotated[
        SafeguardMode,
        setting(
            "what answers a client that asks for a check of tool calls, where the provider makes "
            "none: `judge`, a model is asked about each call; `refuse`, status 400 that names the field; "
            "`off`, the answer says that the check is not supported"
        ),
    ] = "judge"
    model: Annotated[
        str,
        setting(
            "the model that judges, as a client would name it: `provider/model`, or a name of `[models]`",
            default="the model of the request",
        ),
    ] = ""
    timeout: Annotated[
        float,
        setting(
            "that a verdict is waited for; a later one is reported as `timeout`", gt=0, le=600, unit="seconds"
        ),
    ] = 20.0


TraceMode = Literal["off", "errors", "all"]


class TraceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[trace]"""

    mode: Annotated[
        TraceMode,
        setting(
            "whose bodies are recorded: nobody's, those of exchanges that failed or lost "
            "something serious, or everybody's; the list of exchanges needs none",
            env="WIREGLOT_TRACE",
        ),
    ] = "off"
    sample: Annotated[
        float, setting("share of the exchanges that are recorded, of those that may be", ge=0, le=1)
    ] = 1.0
    routes: Annotated[
        tuple[str, ...],
        setting(
            "only exchanges for these models, as clients name them; patterns as in `[models]`",
            expected="a list of model names and patterns",
            default="all",
        ),
    ] = ()
    keys: Annotated[
        tuple[str, ...],
        setting(
            "only exchanges with these client keys, by their names",
            expected="a list of names of keys",
            default="all",
        ),
    ] = ()
    body_bytes: Annotated[
        int,
        setting("of one body or stream that are kept; of a longer one its beginning", gt=0, unit="bytes"),
    ] = 4 * MIB
    keep_hours: Annotated[float, setting("how long they are kept", gt=0, unit="hours")] = 24.0
    keep_bytes: Annotated[
        int,
        setting("of all of them together; the oldest go first", gt=0, unit="bytes"),
    ] = 512 * MIB
    fleet_bytes: Annotated[
        int,
        setting(
            "of bodies that a fleet's store keeps, sealed, so that any machine shows them all; "
            "the oldest go first; 0: they stay where they were recorded",
            ge=0,
            unit="bytes",
        ),
    ] = 128 * MIB
