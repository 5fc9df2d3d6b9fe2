"""One message of an event stream, apart from its decoder: structs stand in modules that are not compiled."""

import msgspec


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
    """Its headers that are text, and its payload as it came."""

    headers: dict[str, str]
    payload: bytes
