"""[limits]: limits that protect the process, each declared once like all settings (see `settings.py`)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from wireglot_core.wire.json import MAX_DEPTH

KIB: Final = 1024
MIB: Final = 1024 * KIB


def setting(description: str, *, examples: list[str] | None = None, **more: Any) -> Meta:
    """Describe a setting. `more`: its bounds, as msgspec calls them, and the extras that `settings.py`
    lists."""
    bounds = {name: more.pop(name) for name in ("gt", "ge", "le", "min_length") if name in more}
    return Meta(description=description, examples=examples, extra=more or None, **bounds)


Bytes = Annotated[int, Meta(gt=0, extra={"unit": "bytes"})]
Seconds = Annotated[float, Meta(gt=0, extra={"unit": "seconds"})]
Count = Annotated[int, Meta(gt=0)]


class ProcessLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[limits]: limits that protect the process. Sizes in bytes, times in seconds. Only a limit on a number
    of things may be 0, where 0 of them makes sense: for any other, 0 would refuse or block every request."""

    body: Annotated[Bytes, setting("maximum size of a request's body")] = 64 * MIB
    anthropic_body: Annotated[Bytes, setting("the same for Anthropic Messages (Anthropic's own limit)")] = (
        32 * MIB
    )
    header_line: Annotated[Bytes, setting("maximum size of one header")] = 8 * KIB
    header_count: Annotated[Count, setting("maximum number of headers of a request")] = 128
    header_total: Annotated[Bytes, setting("maximum size of all headers of a request")] = 32 * KIB
    url: Annotated[Bytes, setting("maximum length of the URL on the request line")] = 8 * KIB
    json_depth: Annotated[int, setting("maximum nesting of a body; at most 128", gt=0, le=MAX_DEPTH)] = (
        MAX_DEPTH
    )
    json_items: Annotated[
        Count, setting("maximum number of members and items of a body (commas and colons are counted)")
    ] = 500_000
    header_time: Annotated[Seconds, setting("timeout for the headers of a request")] = 10.0
    body_idle: Annotated[Seconds, setting("timeout between two reads of a body")] = 30.0
    body_total: Annotated[Seconds, setting("timeout for a body that arrives slower than 1 KiB a second")] = (
        120.0
    )
    keep_alive: Annotated[Seconds, setting("how long an idle client connection is kept open")] = 75.0
    ping: Annotated[
        Seconds, setting("time without events in a stream until a keep-alive is sent to the client")
    ] = 15.0
    write_stall: Annotated[
        Seconds, setting("how long a client may stop reading before it is disconnected")
    ] = 60.0
    write_pending: Annotated[
        Bytes, setting("bytes waiting for a slow client beyond which the provider is not read")
    ] = 64 * KIB
    event: Annotated[Bytes, setting("maximum size of one event of a provider's stream")] = 32 * MIB
    response: Annotated[Bytes, setting("maximum size of a provider's answer")] = 64 * MIB
    error_body: Annotated[Bytes, setting("maximum size of a provider's error")] = 64 * KIB
    buffered: Annotated[
        Bytes,
        setting(
            "memory for bodies, translations and answers. Beyond it requests are rejected before they are "
            "sent, and answers wait; one at a time may exceed it"
        ),
    ] = 448 * MIB
    remembered: Annotated[
        int,
        setting(
            "cache for tools and turns that are sent again with every request, within `buffered`; 0: off",
            ge=0,
            unit="bytes",
        ),
    ] = 128 * MIB
    remembered_per_key: Annotated[Bytes, setting("the same for the requests of one client key")] = 64 * MIB
    connections: Annotated[Count, setting("maximum number of client connections")] = 10_000
    connections_per_peer: Annotated[
        Count, setting("the same from one address; connections from this machine are not counted")
    ] = 256
    websockets: Annotated[
        int, setting("WebSockets of one client key, or of all without keys; 0: none, clients use POST", ge=0)
    ] = 64
    websocket_time: Annotated[Seconds, setting("how long a WebSocket may last")] = 3600.0
    requests: Annotated[int, setting("maximum concurrent requests")] = 5_000
    requests_per_key: Annotated[int, setting("the same for one client key; 0: no limit")] = 64
    candidates: Annotated[
        Count,
        setting(
            "maximum of `n` or `candidateCount` for a model that gives one answer to a request: the gateway "
            "sends a request for each"
        ),
    ] = 8
    queue: Annotated[int, setting("requests that may wait; more are rejected with 503")] = 256
    queue_time: Annotated[float, setting("how long requests wait in the queue", unit="seconds")] = 2.0
    pool: Annotated[
        Count,
        setting(
            "connections to one provider with one key; fewer than `requests` make requests wait "
            "in the same queue"
        ),
    ] = 5_000
    pool_idle: Annotated[
        Seconds,
        setting("how long an idle connection is kept, unless its server closes it"),
    ] = 60.0
    auth_failures: Annotated[Count, setting("wrong keys a minute from one address, then 429")] = 20
    drain: Annotated[float, setting("how long requests have to finish after SIGTERM", unit="seconds")] = 300.0
    drain_again: Annotated[float, setting("how long they have after a second one", unit="seconds")] = 2.0

    hang: Annotated[
        float,
        setting(
            "how long the event loop may stop responding until the process prints where it hangs and is "
            "ended, or [replaced by its supervisor](operations.md#a-process-that-hangs); 0: off",
            unit="seconds",
            ge=0,
        ),
    ] = 60.0

    def body_of(self, dialect: str) -> int:
        """The maximum size of a body in this dialect: its own field where it has one, else the general
        limit."""
        most: int = getattr(self, _body_name(dialect), self.body)
        return most


@cache
def _body_name(dialect: str) -> str:
    """Cached per dialect: the interpreter keeps every attribute name that was looked up."""
    return f"{dialect.replace('-', '_')}_body"
