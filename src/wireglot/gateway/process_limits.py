"""[limits]: what protects the process, each declared once as all settings are (see `settings.py`)."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from wireglot.wire.json import DEPTH_MOST

KIB: Final = 1024
MIB: Final = 1024 * KIB

Bytes = Annotated[int, Meta(gt=0, extra={"unit": "bytes"})]
Seconds = Annotated[float, Meta(gt=0, extra={"unit": "seconds"})]
Count = Annotated[int, Meta(gt=0)]


class ProcessLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[limits]: what protects the process. Sizes in bytes, times in seconds. Only where none is a sensible
    number of things may one be 0: any other would refuse or hang everything."""

    body: Annotated[Bytes, Meta(description="a request's body")] = 64 * MIB
    anthropic_body: Annotated[
        Bytes, Meta(description="the same for Anthropic Messages, whose own limit it is")
    ] = 32 * MIB
    header_line: Annotated[Bytes, Meta(description="one header")] = 8 * KIB
    header_count: Annotated[Count, Meta(description="headers of a request")] = 128
    header_total: Annotated[Bytes, Meta(description="all headers of a request")] = 32 * KIB
    url: Annotated[Bytes, Meta(description="the target on the request line")] = 8 * KIB
    json_depth: Annotated[
        int, Meta(gt=0, le=DEPTH_MOST, description="how deep a body may be nested; 128 at most")
    ] = DEPTH_MOST
    json_items: Annotated[
        Count, Meta(description="members and items of a body, at most (commas and colons are counted)")
    ] = 500_000
    header_time: Annotated[Seconds, Meta(description="for a request's headers")] = 10.0
    body_idle: Annotated[Seconds, Meta(description="between two pieces of a body")] = 30.0
    body_total: Annotated[Seconds, Meta(description="for a body that arrives slower than 1 KiB a second")] = (
        120.0
    )
    keep_alive: Annotated[
        Seconds, Meta(description="how long a connection may wait for its next request")
    ] = 75.0
    ping: Annotated[
        Seconds, Meta(description="silence in a stream before a keep-alive goes to the client")
    ] = 15.0
    write_stall: Annotated[
        Seconds, Meta(description="how long a client may take nothing of what waits for it")
    ] = 60.0
    write_pending: Annotated[
        Bytes, Meta(description="waiting for a slow client, from which on the provider is not read")
    ] = 64 * KIB
    event: Annotated[Bytes, Meta(description="one event of a provider's stream")] = 32 * MIB
    response: Annotated[Bytes, Meta(description="a provider's whole answer")] = 64 * MIB
    error_body: Annotated[Bytes, Meta(description="a provider's error")] = 64 * KIB
    buffered: Annotated[
        Bytes,
        Meta(
            description="bytes held at once: bodies, what is made of them, answers. Beyond it requests are "
            "refused before they are sent, and answers wait; one at a time may go past it"
        ),
    ] = 512 * MIB
    remembered: Annotated[
        int,
        Meta(
            ge=0,
            description="what is remembered of tools and turns that come again with every request, within "
            "`buffered`; 0: nothing",
            extra={"unit": "bytes"},
        ),
    ] = 128 * MIB
    remembered_per_key: Annotated[Bytes, Meta(description="the same of one client key's requests")] = 64 * MIB
    connections: Annotated[Count, Meta(description="connections of clients")] = 10_000
    connections_per_peer: Annotated[
        Count, Meta(description="the same from one address; this machine's own are not counted")
    ] = 256
    requests: Annotated[int, Meta(description="requests answered at once")] = 5_000
    requests_per_key: Annotated[int, Meta(description="the same for one client key; 0: no limit")] = 64
    queue: Annotated[
        int, Meta(description="requests that wait for their turn; any more are told to come back")
    ] = 256
    queue_time: Annotated[float, Meta(description="how long they wait", extra={"unit": "seconds"})] = 2.0
    pool: Annotated[
        Count,
        Meta(
            description="connections to one provider with one key; fewer than `requests` make requests wait "
            "in the same queue"
        ),
    ] = 5_000
    pool_idle: Annotated[
        Seconds,
        Meta(description="how long an unused one is kept, unless its server ends it sooner"),
    ] = 60.0
    auth_failures: Annotated[Count, Meta(description="wrong keys a minute from one address, then 429")] = 20
    drain: Annotated[
        float, Meta(description="how long requests have to finish after SIGTERM", extra={"unit": "seconds"})
    ] = 300.0
    drain_again: Annotated[
        float, Meta(description="how long they have after a second one", extra={"unit": "seconds"})
    ] = 2.0

    def body_of(self, dialect: str) -> int:
        """Bytes of a body in this dialect: what a field of its name says, else what holds for all."""
        most: int = getattr(self, _body_name(dialect), self.body)
        return most


@cache
def _body_name(dialect: str) -> str:
    """Made once for each: the interpreter remembers every name that it has looked up."""
    return f"{dialect.replace('-', '_')}_body"
