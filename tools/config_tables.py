"""Tables of numbers for docs/configuration.md: names and defaults from the Structs, meanings from here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tools.blocks import table
from wireglot.gateway.settings import BreakerPolicy, Keep, ProcessLimits
from wireglot.http.retry import RetryPolicy
from wireglot.http.transport import Timeouts

_KIB: Final = 1024
_MIB: Final = 1024 * 1024

_LIMITS: Final = {
    "body": "bytes: a request's body",
    "anthropic_body": "bytes: the same for Anthropic Messages, whose own limit it is",
    "header_line": "bytes: one header",
    "header_count": "headers of a request",
    "header_total": "bytes: all headers of a request",
    "url": "bytes: the target on the request line",
    "json_items": "members and items of a body, at most (commas and colons are counted)",
    "json_depth": "how deep a body of up to 16 KiB may be nested",
    "header_time": "seconds for a request's headers",
    "body_idle": "seconds between two pieces of a body",
    "body_total": "seconds for a body that arrives slower than 1 KiB a second",
    "keep_alive": "seconds a connection may wait for its next request",
    "ping": "seconds of silence in a stream before a keep-alive goes to the client",
    "write_stall": "seconds a client may take nothing of what waits for it",
    "write_pending": "bytes waiting for a slow client, from which on the provider is not read",
    "event": "bytes: one event of a provider's stream",
    "response": "bytes: a provider's whole answer",
    "error_body": "bytes: a provider's error",
    "buffered": "bytes: request bodies held by the process",
    "connections": "connections of clients",
    "connections_per_peer": "the same from one address; this machine's own are not counted",
    "requests": "requests answered at once",
    "requests_per_key": "the same for one client key; 0: no limit",
    "queue": "requests that wait for their turn; any more are told to come back",
    "queue_time": "seconds they wait",
    "pool": "connections to one provider with one key",
    "pool_idle": "seconds an unused one is kept",
    "auth_failures": "wrong keys a minute from one address, then 429",
    "drain": "seconds that requests have to finish after SIGTERM",
    "drain_again": "seconds that are left after a second one",
}
_TIMEOUTS: Final = {
    "connect": "to the provider's address; also for its name",
    "tls": "for the handshake",
    "first_byte": "from the last byte of the request to the first of the answer",
    "idle": "between any two reads of an answer",
    "total": "for the whole exchange",
}
_RETRY: Final = {
    "retries": "further attempts at one target",
    "base": "seconds; doubled for each attempt, then drawn by chance from 0 up to that (full jitter)",
    "cap": "the most seconds such a wait can be",
    "wait_max": "the longest `retry-after` that is waited for; a longer one fails at once",
    "connection_errors": "whether a connection that failed or broke is tried again",
    "schedule": "seconds before each further attempt, in place of all of the above",
}
_BREAKER: Final = {
    "consecutive": "failures in a row that open it",
    "ratio": "share of failures that opens it",
    "minimum": "attempts in the window before the ratio counts",
    "window": "seconds that attempts are remembered",
    "probe_after": "seconds until one request may try again",
    "probe_cap": "the most seconds between two such tries; the time doubles with each that fails",
}


_KEEP: Final = {
    "responses_days": "days of a stored response, from its end",
    "responses_bytes": "bytes of stored responses together",
    "conversations_days": "days of a conversation",
    "conversations_bytes": "bytes of conversations together",
    "vault_days": "days of reasoning that clients cannot carry",
    "usage_days": "days of usage",
    "idempotency_hours": "hours in which an Idempotency-Key gets the same answer again",
    "idempotency_bytes": "bytes of such answers together",
    "events_bytes": "bytes of the streams of background responses together",
    "events_hours": "hours in which the stream of a background response can be resumed",
}


class Undocumented(Exception):
    """A Struct and the meanings told of its fields do not agree."""


def blocks() -> dict[str, str]:
    return {
        "limits": _fields(ProcessLimits, _LIMITS),
        "timeouts": _fields(Timeouts, _TIMEOUTS),
        "retry": _fields(RetryPolicy, _RETRY),
        "breaker": _fields(BreakerPolicy, _BREAKER),
        "keep": _fields(Keep, _KEEP),
    }


def _fields(struct: type[msgspec.Struct], meanings: Mapping[str, str]) -> str:
    fields = msgspec.structs.fields(struct)
    differing = {field.name for field in fields} ^ set(meanings)
    if differing:
        raise Undocumented(f"{struct.__name__}: {', '.join(sorted(differing))}")
    rows = [(f"`{field.name}`", shown(field.default), meanings[field.name]) for field in fields]
    return table(("field", "default", "meaning"), rows)


def shown(value: Any) -> str:
    """A default as one would write it down."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value >= _MIB and value % _MIB == 0:
        return f"{value // _MIB} MiB"
    if isinstance(value, int) and value >= _KIB and value % _KIB == 0:
        return f"{value // _KIB} KiB"
    return f"{value:g}"
