"""HTTP messages as values; who sends them is not known here."""

import msgspec

Headers = tuple[tuple[str, str], ...]


class WireRequest(msgspec.Struct, frozen=True):
    method: str
    path: str
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return find_header(self.headers, name)


class WireResponse(msgspec.Struct, frozen=True):
    status: int
    headers: Headers = ()
    body: bytes = b""

    def header(self, name: str) -> str | None:
        return find_header(self.headers, name)


def find_header(headers: Headers, name: str) -> str | None:
    """The first header of that name, in any case."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)
