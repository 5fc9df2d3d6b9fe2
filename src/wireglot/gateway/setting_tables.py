"""Settings of the circuit breaker, safeguards, recording and clients' telemetry: several layers use them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from wireglot.gateway.process_limits import MIB, setting


class BreakerPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[providers.NAME.breaker]"""

    consecutive: Annotated[
        int,
        setting("consecutive failures; those of one caller open it for that caller only"),
    ] = 5
    ratio: Annotated[float, setting("share of failures that opens the breaker")] = 0.5
    minimum: Annotated[int, setting("requests in the window before the ratio counts")] = 20
    window: Annotated[float, setting("period over which requests are counted", unit="seconds")] = 30.0
    probe_after: Annotated[float, setting("time until one request may try again", unit="seconds")] = 5.0
    probe_cap: Annotated[
        float,
        setting("maximum time between two probes; it doubles with each failure", unit="seconds"),
    ] = 10.0
    """A provider that has recovered serves everybody within 15 s, however long it was down."""


SafeguardMode = Literal["judge", "refuse", "off"]


class SafeguardSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[safeguards]"""

    mode: Annotated[
        SafeguardMode,
        setting(
            "how a requested check of tool calls is answered if the provider makes none: `judge`, a model "
            "judges each call; `refuse`, status 400 that names the field; `off`, the answer says that the "
            "check is not supported"
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
        setting("timeout of a verdict; a later one is reported as `timeout`", gt=0, le=600, unit="seconds"),
    ] = 20.0


class TelemetrySettings(msgspec.Struct, frozen=True):
    """[telemetry]"""

    forward: Annotated[
        str,
        setting(
            "the collector that gets the OpenTelemetry of clients (`/v1/metrics`, `/v1/logs`, `/v1/traces`), "
            "without these paths: `http://127.0.0.1:4318`",
            default="none: it is counted and discarded",
        ),
    ] = ""
    headers: Annotated[
        tuple[tuple[str, str], ...],
        setting("headers for the collector; values may be secrets", form="table"),
    ] = ()

    def __repr__(self) -> str:
        """Headers may contain secrets: they are not shown."""
        return f"TelemetrySettings({self.forward})"


class ManagedSettings(msgspec.Struct, frozen=True):
    """[claude_code]"""

    settings: Annotated[
        dict[str, Any] | None,
        setting(
            "[managed settings](https://code.claude.com/docs/en/settings) that Claude Code gets from the "
            "gateway once it is signed in",
            form="table",
        ),
    ] = None
    """JSON values; None: there is no policy, which is not the same as an empty one."""


TraceMode = Literal["off", "errors", "all"]


class TraceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[trace]"""

    mode: Annotated[
        TraceMode,
        setting(
            "which bodies are recorded: none, those of exchanges that failed or had a serious loss, or all;"
            " the list of exchanges needs none",
            env="WIREGLOT_TRACE",
        ),
    ] = "off"
    sample: Annotated[float, setting("share of the matching exchanges that is recorded", ge=0, le=1)] = 1.0
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
        setting(
            "maximum of one body or stream; in longer JSON bodies long strings are cut, others end there",
            gt=0,
            unit="bytes",
        ),
    ] = 4 * MIB
    keep_hours: Annotated[float, setting("how long they are kept", gt=0, unit="hours")] = 24.0
    keep_bytes: Annotated[
        int,
        setting("maximum of all recordings; the oldest are deleted first", gt=0, unit="bytes"),
    ] = 512 * MIB
    memory_bytes: Annotated[
        int,
        setting(
            "bodies of the last exchanges that each process holds in memory for the inspector, and never "
            "writes, while the gateway listens only on this machine and requires no key; running exchanges "
            "may take twice as much in addition; 0: none",
            ge=0,
            unit="bytes",
        ),
    ] = 32 * MIB
    fleet_bytes: Annotated[
        int,
        setting(
            "maximum of recorded bodies in the store of a fleet, encrypted, so that every machine can show "
            "them; the oldest are deleted first; 0: bodies stay on the machine that recorded them",
            ge=0,
            unit="bytes",
        ),
    ] = 128 * MIB
