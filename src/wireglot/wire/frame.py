"""One server-sent event, apart from its decoder: structs are declared in modules that are not compiled."""

import msgspec


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event: its name ("" if it has none) and its data, the lines joined with LF."""

    event: str
    data: bytes
